import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../harness/harness.ts'
import { executablePath, expectAccessible, launch } from './chromium.ts'

vi.setConfig({ testTimeout: 180_000 })

const phone = { viewport: { width: 360, height: 740 }, locale: 'en-GB', timezoneId: 'Europe/London' }
const screenshots = process.env.SCREENSHOTS

let harness: Harness
let browser: Browser
let partner: Server
let apiUrl: string
let partnerUrl: string
/** The partner's server returns this token to its page. */
let newToken: () => Promise<string>

describe.skipIf(executablePath === undefined)('in Chromium', () => {
  beforeAll(async () => {
    harness = await startHarness()
    apiUrl = await harness.app.listen({ host: '127.0.0.1', port: 0 })
    partner = createServer(async (request, response) => {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end(request.url === '/token' ? await newToken() : partnersPage())
    })
    await new Promise<void>(resolve => partner.listen(0, '127.0.0.1', resolve))
    partnerUrl = `http://127.0.0.1:${(partner.address() as AddressInfo).port}`
    browser = await launch()
  })
  afterAll(async () => {
    await browser?.close()
    partner?.close()
    await harness?.stop()
  })

  // The partner's page: the script, the element and the source of tokens.
  const partnersPage = () => `<!doctype html><html lang="en-GB"><meta charset="utf-8"><title>Shifts</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<main><h1>Shifts</h1><midmonth-withdraw></midmonth-withdraw></main>
<script src="${apiUrl}/components/midmonth-withdraw.js"></script>
<script>
  document.querySelector('midmonth-withdraw').addEventListener('midmonth-token-needed', async event => {
    event.preventDefault()
    const element = event.target
    element.token = await (await fetch('/token')).text()
  })
</script></html>`

  const sessionOf = async (memberId: string, more: object = {}) => {
    const body = { memberId, scope: 'withdraw', ...more }
    const created = await harness.call('POST', '/v1/member-sessions', { body })
    expect(created.status, created.text).toBe(201)
    return created.body
  }

  const problems: string[] = []
  async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ ...phone, ...options })
    const page = await context.newPage()
    page.on('pageerror', error => problems.push(String(error)))
    page.on('console', message => {
      // Chromium also reports error responses of the server.
      if (message.type() === 'error' && !/status of 4/.test(message.text())) problems.push(message.text())
    })
    await page.goto(url)
    return page
  }
  async function close(page: Page): Promise<void> {
    await page.context().close()
    expect(problems.splice(0)).toEqual([])
  }
  const openPartnersPage = async (memberId: string, options?: BrowserContextOptions) => {
    newToken = async () => (await sessionOf(memberId, { origin: partnerUrl, expiresInSeconds: 60 })).token
    return await open(partnerUrl, options)
  }
  const picture = async (page: Page, name: string) => {
    if (screenshots !== undefined) await page.screenshot({ path: `${screenshots}/${name}.png` })
  }
  const fitsItsWidth = (page: Page) =>
    page.evaluate<boolean>('document.documentElement.scrollWidth <= document.documentElement.clientWidth')
  const withdrawalOf = async (memberId: string) =>
    (
      await harness.call(
        'GET',
        `/v1/pay/withdrawals?memberId=${memberId}&statuses=held&statuses=submitted&statuses=paid`,
      )
    ).body.withdrawals[0]

  test.each(['light', 'dark'] as const)(
    'a worker withdraws on the partner’s page at 360 px (%s), with nothing for axe to find',
    async colorScheme => {
      const memberId = await harness.addMember({ available: 12_345 })
      const page = await openPartnersPage(memberId, { colorScheme })
      await page.getByText('£123.45', { exact: true }).waitFor()
      await expectAccessible(page)
      expect(await fitsItsWidth(page)).toBe(true)
      await picture(page, `form-${colorScheme}`)

      await page.getByRole('button', { name: '£50', exact: true }).click()
      expect(await page.getByRole('textbox', { name: 'Amount' }).inputValue()).toBe('50.00')
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('heading', { name: 'Check your withdrawal' }).waitFor()
      for (const text of ['£0.50', '£49.50', 'ending in 4958', '10 Mar 2026, 09:00'])
        expect(await page.getByText(text).first().isVisible(), text).toBe(true)
      await expectAccessible(page)
      expect(await fitsItsWidth(page)).toBe(true)
      await picture(page, `quote-${colorScheme}`)
      expect(await withdrawalOf(memberId)).toBeUndefined()

      await page.getByRole('button', { name: 'Withdraw £50.00' }).click()
      await page.getByRole('heading', { name: '£49.50 is on its way' }).waitFor()
      await page.getByText('Accepted').waitFor()
      await expectAccessible(page)
      await picture(page, `held-${colorScheme}`)
      const { id } = await withdrawalOf(memberId)
      expect((await harness.call('POST', `/v1/sandbox/withdrawals/${id}/pay`)).status).toBe(200)
      await page.locator('li.past', { hasText: 'Paid to your account' }).waitFor()
      await page.getByRole('heading', { name: 'Withdrawal of £49.50' }).waitFor()
      await expectAccessible(page)
      await picture(page, `paid-${colorScheme}`)

      await page.getByRole('button', { name: 'Done' }).click()
      await page.getByText('£73.45', { exact: true }).waitFor()
      await close(page)
    },
  )

  test('a worker withdraws on the hosted page, which removes the token from its address', async () => {
    const memberId = await harness.addMember({ available: 20_000 })
    const { token } = await sessionOf(memberId)
    const seen: string[] = []
    harness.app.server.on('request', request => seen.push(`${request.url} ${request.headers.referer ?? ''}`))
    const page = await open(`${apiUrl}/m#${token}`)
    await page.getByText('£200.00', { exact: true }).first().waitFor()
    await page.getByText('Acme Couriers').waitFor()
    await expect.poll(() => page.title()).toBe('Your pay · Acme Couriers')
    await expect.poll(() => page.url()).toBe(`${apiUrl}/m`)
    await expectAccessible(page)
    await page.getByRole('textbox', { name: 'Amount' }).fill('1000')
    await page.keyboard.press('Enter')
    await page.getByText('The largest amount is £200.00.').waitFor()
    await page.getByRole('textbox', { name: 'Amount' }).fill('25,5')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Withdraw £25.50' }).click()
    await page.getByRole('heading', { name: '£25.00 is on its way' }).waitFor()
    expect((await withdrawalOf(memberId)).netAmount).toEqual({ amount: 2_500, currency: 'GBP' })
    await page.reload()
    await page.getByText('£174.50', { exact: true }).first().waitFor()
    await picture(page, 'hosted')
    expect(seen.length).toBeGreaterThan(5)
    expect(seen.filter(line => line.includes(token))).toEqual([])
    await close(page)
  })

  test('the hosted page explains that a link has expired, and accepts a new link in the same tab', async () => {
    const memberId = await harness.addMember({ available: 20_000 })
    const first = await sessionOf(memberId, { expiresInSeconds: 1 })
    harness.clock.advance({ seconds: 2 })
    const page = await open(`${apiUrl}/m#${first.token}`)
    await page.getByRole('heading', { name: 'This page has expired' }).waitFor()
    await expectAccessible(page)
    await picture(page, 'expired')
    const second = await sessionOf(memberId)
    await page.goto(`${apiUrl}/m#${second.token}`)
    await page.getByText('£200.00', { exact: true }).first().waitFor()
    await close(page)
  })

  test('the partner’s page renews a session that ends during a withdrawal, and the withdrawal continues', async () => {
    const memberId = await harness.addMember({ available: 20_000 })
    const page = await openPartnersPage(memberId)
    await page.getByRole('textbox', { name: 'Amount' }).fill('20')
    await page.getByRole('button', { name: 'Continue' }).click()
    const confirm = page.getByRole('button', { name: 'Withdraw £20.00' })
    await confirm.waitFor()
    harness.clock.advance({ seconds: 61 })
    await confirm.click()
    await page.getByRole('heading', { name: '£19.50 is on its way' }).waitFor()
    expect((await withdrawalOf(memberId)).netAmount).toEqual({ amount: 1_950, currency: 'GBP' })
    await close(page)
  })

  test('the component works with only the keyboard, and the focus follows the view', async () => {
    const page = await openPartnersPage(await harness.addMember({ available: 20_000 }))
    await page.getByRole('textbox', { name: 'Amount' }).waitFor()
    const focused = () =>
      page.evaluate<string>("document.querySelector('midmonth-withdraw').shadowRoot.activeElement.textContent")
    await page.keyboard.press('Tab')
    await page.keyboard.type('abc')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').filter({ hasText: 'Enter an amount such as 20.00.' }).waitFor()
    expect(await page.getByRole('textbox', { name: 'Amount' }).getAttribute('aria-invalid')).toBe('true')
    await expectAccessible(page)
    await page.keyboard.press('Control+A')
    await page.keyboard.type('20')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Check your withdrawal' }).waitFor()
    expect(await focused()).toBe('Check your withdrawal')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('Withdraw £20.00')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'is on its way' }).waitFor()
    expect(await focused()).toBe('£19.50 is on its way')
    await close(page)
  })

  test.each([
    ['de-DE', 'Jetzt verfügbar', '123,45 £'],
    ['fr-FR', 'Disponible maintenant', '123,45 £GB'],
    ['es-ES', 'Disponible ahora', '123,45 GBP'],
    ['pl-PL', 'Dostępne teraz', '123,45 GBP'],
    ['ro-RO', 'Disponibil acum', '123,45 GBP'],
    ['sv-SE', 'Available now', '123,45 GBP'],
  ])('in the locale %s, the page shows %j and %j', async (locale, label, amount) => {
    const { token } = await sessionOf(await harness.addMember({ available: 12_345 }))
    const page = await open(`${apiUrl}/m#${token}`, { locale })
    await page.getByText(label).first().waitFor()
    const shown = (await page.locator('.amount').textContent())?.replaceAll(/\s/g, ' ')
    expect(shown).toBe(amount)
    expect(await fitsItsWidth(page)).toBe(true)
    await picture(page, `language-${locale}`)
    await close(page)
  })

  test('a page of another origin cannot use the token, and no page can send an API key', async () => {
    const memberId = await harness.addMember({ available: 20_000 })
    const { token } = await sessionOf(memberId, { origin: 'https://app.partner.example' })
    newToken = async () => ''
    const page = await open(partnerUrl)
    const outcome = await page.evaluate(
      async ({ apiUrl, token, key }) => {
        const ask = (path: string, headers: Record<string, string>) =>
          fetch(apiUrl + path, { headers }).then(
            answer => String(answer.status),
            error => String(error),
          )
        return [
          await ask('/v1/me/balance', { authorization: `Bearer ${token}` }),
          await ask('/v1/members', { 'x-api-key': key }),
          await ask('/v1/me/balance', { 'x-api-key': key }),
        ]
      },
      { apiUrl, token, key: harness.key },
    )
    expect(outcome).toEqual(Array(3).fill('TypeError: Failed to fetch'))
    expect(problems.splice(0)).toHaveLength(6)
    await close(page)
  })
})
