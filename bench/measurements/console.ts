import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { seedEmployers, settle } from '../dataset/seed.ts'
import type { Server } from '../machine/postgres.ts'
import { operate, type Service, startService, type Where } from '../machine/service.ts'
import { median } from './median.ts'

/** One figure of the console: what was measured, over which network and of which checkout, with the time of every visit. */
export type ConsoleFigure = { side: 'product' | 'before'; network: string; what: string; ms: number[] }

const executablePath = '/usr/bin/chromium'
// Without the pages behind the address bar of a new window, which would compete with the first visit for the CPU.
const args = ['--no-sandbox', '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,HttpsUpgrades,PaintHolding']
const database = 'bench_console'
// Enough to fill a page of every list.
const members = 1_000
const intents = 5_000
// Round-trip time added to every response; 50 ms is a user in the same region.
const networks = { 'this machine': 0, '50 ms away': 50 } as const
type Network = keyof typeof networks
const restMs = 150

export function hasChromium(): boolean {
  return existsSync(executablePath)
}

/** Measures the console in Chromium, with the floor that no console could beat on this machine. The checkouts take turns. */
export async function measureConsole(
  server: Server,
  where: Omit<Where, 'databaseUrl'>,
  { rounds, visits, beforeDir }: { rounds: number; visits: number; beforeDir: string | undefined },
): Promise<ConsoleFigure[]> {
  const databaseUrl = await server.create(database)
  await operate(['migrate'], { ...where, databaseUrl })
  await seedEmployers(databaseUrl, [{ name: 'One', firstMember: 0, members, past: { intents, pending: 10 } }])
  await settle(databaseUrl)
  const figures = new Map<string, ConsoleFigure>()
  const sides = { product: where.productDir, ...(beforeDir === undefined ? {} : { before: beforeDir }) }
  const browser = await chromium.launch({ executablePath, args })
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [side, productDir] of Object.entries(sides) as [ConsoleFigure['side'], string][]) {
        const here = { ...where, productDir, databaseUrl }
        const service = await startService('product', here)
        const note = (network: Network, what: string, ms: number) => {
          const key = [side, network, what].join()
          const figure = figures.get(key) ?? { side, network, what, ms: [] }
          figure.ms.push(ms)
          figures.set(key, figure)
        }
        await measureSide({ browser, service, where: here, visits, note })
        await service.stop()
      }
    }
  } finally {
    await browser.close()
  }
  await server.drop(database)
  return [...figures.values()]
}

type Note = (network: Network, what: string, ms: number) => void

async function measureSide({
  browser,
  service: { address },
  where,
  visits,
  note,
}: {
  browser: Browser
  service: Service
  where: Where
  visits: number
  note: Note
}): Promise<void> {
  const link = await operate(['operator', 'link'], where)
  const token = /#(\S+)/.exec(link)?.[1]
  const first = await browser.newContext()
  const signedIn = await first.newPage()
  await signedIn.goto(`${address}/console/sign-in#${token}`)
  await signedIn.waitForURL(/\/console\/par_/)
  const partner = new URL(signedIn.url()).pathname
  const storageState = await first.storageState()
  await first.close()
  for (const network of Object.keys(networks) as Network[]) {
    for (let visit = 0; visit < visits; visit++) {
      // Without a cache, as on the first visit.
      const context = await browser.newContext({ storageState, viewport: { width: 1440, height: 900 } })
      await context.addInitScript(timing)
      await visitOnce(context, { root: address + partner, address, network, note })
      await context.close()
    }
  }
}

async function visitOnce(
  context: BrowserContext,
  { root, address, network, note }: { root: string; address: string; network: Network; note: Note },
): Promise<void> {
  const empty = await openPage(context, network)
  await empty.goto(`${address}/livez`)
  note(network, 'floor: first paint of a page without content', await firstPaint(empty))
  await empty.close()

  const page = await openPage(context, network)
  let requests = 0
  page.on('request', () => {
    requests++
  })
  await page.goto(`${root}/withdrawals`)
  note(network, 'first paint', await firstPaint(page))
  note(network, 'withdrawals, first visit: rows painted', await page.evaluate<number>('whenShown("tbody tr")'))
  note(network, 'requests until then (a count)', requests)
  // Requests that the page sends once its rows are painted.
  await page.waitForLoadState('networkidle')
  const partnerId = root.split('/').at(-1)
  note(
    network,
    'floor: the members by fetch',
    await page.evaluate<number>(`(async () => {
      const start = performance.now()
      const response = await fetch('/v1/members?take=50', { headers: { 'midmonth-partner': '${partnerId}' } })
      await response.json()
      return performance.now() - start
    })()`),
  )
  const click = async (what: string, selector: string, shown: string) => {
    await page.evaluate(`void (window.shown = afterClick(${JSON.stringify(shown)}))`)
    // A person’s pointer rests on a target for about this long before the click.
    await page.hover(selector)
    await sleep(restMs)
    await page.click(selector)
    note(network, what, await page.evaluate<number>('window.shown'))
    await page.waitForLoadState('networkidle')
  }
  const table = (label: string) => `table[aria-label="${label}"] tbody tr`
  await click('from withdrawals to members', 'nav a[href$="/members"]', table('Members'))
  await click('back to withdrawals', 'nav a[href$="/withdrawals"]', table('Withdrawals'))
  await click('a withdrawal from its row', `${table('Withdrawals')} td:first-child`, '.timeline')
  await click('to the overview', 'nav a[href*="/par_"]', '.figures')
  await click('again to members', 'nav a[href$="/members"]', table('Members'))
  await click('a filter', '.chip', '.chip[aria-pressed="true"]')
  note(network, 'longest task of an interaction', await page.evaluate<number>('longestEvent()'))
}

async function openPage(context: BrowserContext, network: Network): Promise<Page> {
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await session.send('Network.emulateNetworkConditions', {
    ...{ offline: false, latency: networks[network], downloadThroughput: -1, uploadThroughput: -1 },
  })
  return page
}

async function firstPaint(page: Page): Promise<number> {
  return await page.evaluate<number>(`new Promise(resolve => new PerformanceObserver(list => {
    for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') resolve(startTime)
  }).observe({ type: 'paint', buffered: true }))`)
}

// Runs in the page. A frame has been painted once the task after its callbacks runs.
const timing = `
  const painted = (isShown, since) => new Promise(resolve => {
    const look = () => isShown() ? setTimeout(() => resolve(performance.now() - since)) : requestAnimationFrame(look)
    requestAnimationFrame(look)
  })
  let firstRows
  const isShown = selector => document.querySelector(selector) !== null
  window.whenShown = selector => firstRows
  firstRows = painted(() => isShown('tbody tr'), 0)
  window.afterClick = selector => new Promise(resolve => addEventListener('click', event => {
    resolve(painted(() => isShown(selector), event.timeStamp))
  }, { once: true, capture: true }))
  let longest = 0
  new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration)
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })
  window.longestEvent = () => longest
`

/** Formats the figures of all checkouts as Markdown. */
export function consoleTable(figures: ConsoleFigure[]): string {
  const find = (side: ConsoleFigure['side'], { network, what }: ConsoleFigure) =>
    figures.find(figure => figure.side === side && figure.network === network && figure.what === what)?.ms ?? []
  const hasBefore = figures.some(({ side }) => side === 'before')
  const cells = (ms: number[]) => [median(ms), p95(ms)].map(value => value.toFixed(0))
  const rows = figures
    .filter(({ side }) => side === 'product')
    .map(figure =>
      [figure.what, figure.network, ...(hasBefore ? cells(find('before', figure)) : []), ...cells(figure.ms)].join(
        ' | ',
      ),
    )
  const columns = ['Console, ms', 'network', ...(hasBefore ? ['before: median', 'p95'] : []), 'median', 'p95']
  const line = columns.map((_, index) => (index < 2 ? '---' : '---:'))
  return [columns.join(' | '), line.join(' | '), ...rows].map(row => `| ${row} |`).join('\n')
}

function p95(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? Number.NaN
}
