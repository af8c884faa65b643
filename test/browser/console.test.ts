import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../harness.ts'
import { executablePath, expectAccessible, launch } from './chromium.ts'

vi.setConfig({ testTimeout: 60_000 })

const desk = { viewport: { width: 1440, height: 900 }, locale: 'en-GB', timezoneId: 'Europe/London' }
const phone = { viewport: { width: 360, height: 740 } }

let harness: Harness
let browser: Browser
let origin: string
const problems: string[] = []

describe.skipIf(executablePath === undefined)('the console in Chromium', () => {
  beforeAll(async () => {
    harness = await startHarness()
    origin = await harness.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await launch()
  })
  afterAll(async () => {
    await browser?.close()
    await harness?.stop()
  })

  async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({
      ...desk,
      ...options,
      extraHTTPHeaders: { 'x-api-key': harness.key },
    })
    const page = await context.newPage()
    page.on('pageerror', error => problems.push(String(error)))
    page.on('console', message => {
      if (message.type() === 'error') problems.push(message.text())
    })
    page.on('request', request => {
      if (!request.url().startsWith(origin) && !request.url().startsWith('blob:')) problems.push(request.url())
    })
    const { id, name } = harness.partner
    await page.route('**/console/v1/session', route =>
      route.fulfill({
        json: {
          ...{ user: { id: 'usr_1', name: 'Dana Reyes', email: 'dana@example.com', hasTotp: false }, mode: 'sandbox' },
          ...{ isOperator: false, partners: [{ id, name, roles: ['admin'] }] },
        },
      }),
    )
    await page.goto(`${origin}/console/${id}/${path}`)
    return page
  }
  async function close(page: Page): Promise<void> {
    await page.context().close()
    expect(problems.splice(0)).toEqual([])
  }
  async function withdraw(idempotencyKey: string): Promise<string> {
    const memberId = await harness.addMember({ available: 20_000 })
    const amount = { amount: 5_000, currency: 'GBP' }
    const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount } })
    const { withdrawalIntentId } = intent.body
    const headers = { prefer: 'return=representation', 'x-idempotency-key': idempotencyKey }
    const done = await harness.call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId }, headers })
    expect(done.status, done.text).toBe(201)
    return done.body.id
  }
  const fitsItsWidth = (page: Page) =>
    page.evaluate<boolean>('document.documentElement.scrollWidth <= document.documentElement.clientWidth')

  test.each([
    ['at 1440 px, light', { colorScheme: 'light' }],
    ['at 1440 px, dark', { colorScheme: 'dark' }],
    ['at 360 px, light', { colorScheme: 'light', ...phone }],
    ['at 360 px, dark', { colorScheme: 'dark', ...phone }],
  ] as const)('withdrawals are listed, and one opens with its whole timeline (%s)', async (look, options) => {
    const id = await withdraw(look)
    await harness.flushRequestLog()
    const page = await open('withdrawals', options)
    await page.getByRole('row', { name: '£49.50' }).first().waitFor()
    await expectAccessible(page)
    expect(await fitsItsWidth(page)).toBe(true)
    await page.getByRole('row', { name: '£49.50' }).first().getByRole('cell').first().click()
    await page.getByText('Held: the money has left the member’s pay').waitFor()
    await page.getByText(look).waitFor()
    await page.getByText('6 rules gave a fee of £0.50').waitFor()
    expect(page.url()).toContain(`/withdrawals/${id}`)
    await expectAccessible(page)
    expect(await fitsItsWidth(page)).toBe(true)
    await close(page)
  })
})
