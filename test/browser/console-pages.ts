import { randomBytes } from 'node:crypto'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Role } from '../../src/users/roles.ts'
import { createSession } from '../../src/users/sessions.ts'
import { addRoles, createUser } from '../../src/users/users.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { launch } from './chromium.ts'

export const desk = { viewport: { width: 1440, height: 900 }, locale: 'en-GB', timezoneId: 'Europe/London' }
export const phone = { viewport: { width: 360, height: 740 } }

type Reader = { roles?: readonly Role[]; isOperator?: boolean }
export type ConsolePages = {
  harness: Harness
  origin: string
  browser: Browser
  /** Opens a page of the partner as a new reader with these roles. A path that begins with a slash is used unchanged. */
  open(path: string, reader?: Reader, options?: BrowserContextOptions): Promise<Page>
  /** Closes the page. Expects no errors, no violations of the content security policy and no requests to other hosts. */
  close(page: Page): Promise<void>
  stop(): Promise<void>
}

/** Starts a console on a new database in a real Chromium. */
export async function startConsole(options: Parameters<typeof startHarness>[0] = {}): Promise<ConsolePages> {
  const harness = await startHarness(options)
  const origin = await harness.app.listen({ host: '127.0.0.1', port: 0 })
  const browser = await launch()
  const problems = new Map<Page, string[]>()
  return {
    ...{ harness, origin, browser },
    async open(path, reader = { roles: ['admin'] }, options = {}) {
      const context = await browser.newContext({ ...desk, ...options })
      const token = await signIn(harness, reader)
      await context.addCookies([
        { name: 'midmonth-console', value: token, url: origin, httpOnly: true, sameSite: 'Strict' },
      ])
      const page = await context.newPage()
      const found: string[] = []
      problems.set(page, found)
      page.on('pageerror', error => found.push(String(error)))
      page.on('console', message => {
        // Chromium also reports error responses of the server.
        if (message.type() === 'error' && !/status of 4/.test(message.text())) found.push(message.text())
      })
      page.on('request', request => {
        if (!request.url().startsWith(origin) && !request.url().startsWith('blob:')) found.push(request.url())
      })
      await page.goto(path.startsWith('/') ? origin + path : `${origin}/console/${harness.partner.id}/${path}`)
      return page
    },
    async close(page) {
      await page.context().close()
      expect(problems.get(page)).toEqual([])
    },
    async stop() {
      await browser.close()
      await harness.stop()
    },
  }
}

async function signIn(harness: Harness, { roles = [], isOperator = false }: Reader): Promise<string> {
  const { db, mode, clock, partner } = harness
  const now = clock.now()
  return await db.transaction().execute(async tx => {
    const email = `${randomBytes(4).toString('hex')}@console.example`
    const user = await createUser(tx, { email, name: 'Dana Reyes', isOperator, now })
    await addRoles(tx, { userId: user.id, partnerId: partner.id, roles })
    const from = { address: '127.0.0.1', userAgent: 'Chromium' }
    return (await createSession(tx, { userId: user.id, mode, method: 'password', ...from, now })).token
  })
}

/** Waits until no part of the page is loading. A list keeps its rows until new rows arrive, and is busy until then. */
export async function waitUntilLoaded(page: Page): Promise<void> {
  await expect.poll(() => page.locator('.skeleton, [aria-busy=true]').count(), { timeout: 20_000 }).toBe(0)
}

/** Expects the loaded page not to scroll sideways. */
export async function expectToFit(page: Page, message = ''): Promise<void> {
  await waitUntilLoaded(page)
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
  // Plots adapt to the width a moment later.
  await expect.poll(() => page.evaluate<number>(overflow), { message }).toBeLessThanOrEqual(0)
}

/** Expects a button to be filled in red, as for an irreversible action. */
export async function expectRed(button: Locator): Promise<void> {
  await button.focus()
  const filled = await button.page().evaluate<string>('getComputedStyle(document.activeElement).backgroundColor')
  const [red = 0, green = 0, blue = 0] = filled.match(/\d+/g)?.map(Number) ?? []
  expect(red, filled).toBeGreaterThan(2 * Math.max(green, blue))
}

/** Creates a withdrawal through the API, as a partner's server does. */
export async function withdraw(
  harness: Harness,
  { amount = 5_000, idempotencyKey = randomBytes(8).toString('hex') } = {},
): Promise<{ id: string; memberId: string }> {
  const memberId = await harness.addMember({ available: 20_000 })
  const headers = { 'x-idempotency-key': idempotencyKey }
  const intent = await harness.createIntent({ memberId, amount })
  return { id: await harness.completeIntent(intent, { headers }), memberId }
}
