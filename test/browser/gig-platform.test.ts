import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { baseEnvironment, newDatabase, type Service, start, tidyUp } from '../program/program.ts'
import { freePort } from '../servers/free-port.ts'
import { executablePath, expectAccessible, launch } from './chromium.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const screenshots = process.env.SCREENSHOTS

let service: Service
let example: ChildProcess
let url: string
let browser: Browser

describe.skipIf(executablePath === undefined)('the example of a gig platform', () => {
  beforeAll(async () => {
    service = await start(await newDatabase({ hasDemo: true }), [])
    const port = await freePort()
    const env = {
      ...baseEnvironment,
      ...{ MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key, PORT: String(port) },
    }
    // In a separate process group, so that npm and its child end together.
    example = spawn('npm', ['run', 'example'], {
      cwd: checkout,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await waitForOutput(example, 'Press Ctrl-C to stop.')
    url = `http://127.0.0.1:${port}/`
    browser = await launch()
  })
  afterAll(async () => {
    await browser?.close()
    if (example?.pid !== undefined && example.exitCode === null) {
      const ended = once(example, 'exit')
      process.kill(-example.pid, 'SIGTERM')
      await ended
    }
    await tidyUp()
  })

  test('explains a rejected withdrawal, and does not complete another rider’s quote', async () => {
    const page = await browser.newPage()
    await page.goto(url)
    await page.getByLabel('How much do you need?').fill('1000000')
    await page.getByRole('button', { name: 'Get a quote' }).click()
    await expect.poll(() => page.getByRole('alert').textContent()).toMatch('at once is 200.00 GBP')

    const stranger = await fetch(`${url}withdrawals`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ quoteId: 'wi_01m81va01femeava5x991cveh6' }),
    })
    expect({ status: stranger.status, body: await stranger.json() }).toEqual({
      status: 400,
      body: { message: 'Ask for a new quote first' },
    })
  })

  test('lets a rider withdraw with the component on its second page', async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 740 }, locale: 'en-GB' })
    await page.goto(`${url}embedded`)
    await page.getByRole('textbox', { name: 'Amount' }).fill('30.00')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Check your withdrawal' }).waitFor()
    if (screenshots)
      await page.locator('midmonth-withdraw').screenshot({ path: `${screenshots}/gig-platform-embedded.png` })
    // The line above the total is straight.
    const total = page.locator('midmonth-withdraw dl .total')
    const tops = await total.evaluateAll(parts => parts.map(part => part.getBoundingClientRect().top))
    expect(tops).toHaveLength(2)
    expect(tops[0]).toBe(tops[1])
    await page.getByRole('button', { name: 'Withdraw £30.00' }).click()
    await page.getByText('Accepted').waitFor()
    await page.getByRole('link', { name: 'The same with a form of the platform' }).click()
    await expect
      .poll(() => page.locator('#withdrawals li').first().textContent())
      .toMatch(/^£30\.00 · (held|submitted|paid)$/)
    await page.close()
  })

  test('lets a rider see the balance, request a quote and withdraw, and shows updates from webhooks', async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 740 }, locale: 'en-GB' })
    await page.goto(url)
    const available = page.getByLabel('Available')
    await expect.poll(() => available.textContent()).toMatch(/^£\d/)
    const before = await available.textContent()

    await page.getByLabel('How much do you need?').fill('20.00')
    await page.getByRole('button', { name: 'Get a quote' }).click()
    const quote = page.getByRole('region', { name: 'Quote' })
    await expect.poll(() => quote.isVisible()).toBe(true)
    expect(await quote.textContent()).toMatch(/You withdraw\s*£20\.00\s*Fee\s*£\d+\.\d\d\s*You get\s*£\d+\.\d\d/)
    await expectAccessible(page)
    if (screenshots) await page.screenshot({ path: `${screenshots}/gig-platform-quote.png` })

    await page.getByRole('button', { name: 'Withdraw' }).dblclick()
    const newest = page.locator('#withdrawals li').first()
    await expect.poll(() => newest.textContent()).toBe('£20.00 · held')
    expect(await available.textContent()).not.toBe(before)

    // The page does not poll: the service's webhooks update it.
    await api('POST', `/v1/sandbox/withdrawals/${await newestWithdrawal()}/return`, { reason: 'AC04' })
    await expect.poll(() => newest.textContent(), { timeout: 10_000 }).toMatch('£20.00 · returned')
    await expect.poll(() => available.textContent()).toBe(before)
    // The second click of the double click withdrew nothing.
    expect(await page.locator('#withdrawals li', { hasText: '£20.00' }).count()).toBe(1)
    if (screenshots) await page.screenshot({ path: `${screenshots}/gig-platform.png` })
  })

  test('rejects an unsigned webhook', async () => {
    const response = await fetch(`${url}webhooks/midmonth`, { method: 'POST', body: '{}' })
    expect(response.status).toBe(401)
  })
})

async function api(method: string, path: string, body?: object): Promise<{ withdrawals: { id: string }[] }> {
  const response = await fetch(service.address + path, {
    method,
    headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(response.ok, await response.clone().text()).toBe(true)
  return (await response.json()) as { withdrawals: { id: string }[] }
}

async function newestWithdrawal(): Promise<string | undefined> {
  return (await api('GET', '/v1/pay/withdrawals?take=1')).withdrawals[0]?.id
}

/** Waits for a text on a process's standard output. */
async function waitForOutput(child: ChildProcess, text: string): Promise<void> {
  let output = ''
  for await (const chunk of child.stdout ?? []) {
    output += chunk
    if (output.includes(text)) return
  }
  throw new Error(`The process ended without '${text}': ${output}`)
}
