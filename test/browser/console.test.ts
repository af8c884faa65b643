import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createDemoLink } from '../../src/users/demo-operator.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import {
  type ConsolePages,
  desk,
  expectToFit,
  phone,
  startConsole,
  waitUntilLoaded,
  withdraw,
} from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

let pages: ConsolePages

describe.skipIf(executablePath === undefined)('the console in Chromium', () => {
  beforeAll(async () => {
    pages = await startConsole()
  })
  afterAll(() => pages?.stop())

  test('a printed link signs in once, and its token is removed from the address', async () => {
    const { harness, browser, origin } = pages
    const token = await createDemoLink(harness.db, harness.clock.now())
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`${origin}/console/sign-in#${token}`)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await expect.poll(() => page.url()).not.toContain(token)
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Midmonth' }).waitFor()
    await expectAccessible(page)
    await page.goto('about:blank')
    await page.goto(`${origin}/console/sign-in#${token}`)
    await page.getByText('This link has expired or has already been used').waitFor()
    await context.close()
  })

  test('every page is accessible and fits its width, at 1440 and 360 px, light and dark', async () => {
    const { harness, open, close } = pages
    const { id, memberId } = await withdraw(harness)
    const webhook = await harness.call('POST', '/v1/webhooks', { body: { url: 'https://example.com/hook' } })
    const runs = await harness.call('GET', '/v1/pay/runs?take=1')
    await harness.flushRequestLog()
    const requests = await harness.call('GET', '/v1/requests?take=1')
    const page = await open('')
    const { withdrawalIntentId } = (await harness.call('GET', `/v1/pay/withdrawals/${id}`)).body
    const content: Record<string, string> = {
      '': 'Latest withdrawals',
      withdrawals: 'Paid out',
      [`withdrawals/${id}`]: 'Held: deducted from the member’s available balance',
      [`intents/${withdrawalIntentId}`]: 'Decided by tier Silver, version 1',
      members: 'Sam Okafor',
      [`members/${memberId}`]: 'Pay added',
      lists: 'Drop a file here',
      'pay-runs': 'Drop a file here',
      [`pay-runs/${runs.body.payRuns[0].id}`]: 'Total in GBP',
      cycles: 'Open',
      [`cycles/${harness.payCycle.id}`]: 'Deductions so far',
      webhooks: 'example.com',
      [`webhooks/${webhook.body.id}`]: 'No deliveries yet',
      requests: '/v1/pay/withdrawals/complete',
      [`requests/${requests.body.requests[0].id}`]: 'The same request as curl',
      events: 'withdrawal.held',
      settings: 'Drop a picture here',
    }
    for (const [path, text] of Object.entries(content)) {
      await page.goto(`${pages.origin}/console/${harness.partner.id}/${path}`)
      await page.getByText(text).filter({ visible: true }).first().waitFor()
      // Resizing is faster than loading the page again.
      for (const { viewport } of [desk, phone]) {
        await page.setViewportSize(viewport)
        await expectToFit(page, `${path} at ${viewport.width} px`)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          await expectAccessible(page)
        }
      }
    }
    await close(page)
  })

  test('a page in another locale formats amounts and dates for that locale', async () => {
    await withdraw(pages.harness, { amount: 123_45 })
    const page = await pages.open('withdrawals', undefined, { locale: 'de-DE' })
    await page.getByRole('cell', { name: '123,45' }).waitFor()
    await page.getByRole('cell', { name: '10. März' }).first().waitFor()
    await pages.close(page)
  })

  test('records of another partner are not found at any address', async () => {
    const { harness, open, close, origin } = pages
    const memberId = await harness.addMember({ key: harness.other.key })
    const page = await open(`members/${memberId}`)
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    for (const path of ['withdrawals/w_none00', 'cycles/pc_none00', 'nothing', 'members/w_none00']) {
      await page.goto(`${origin}/console/${harness.partner.id}/${path}`)
      await page
        .getByText(/Not found|Request rejected/)
        .first()
        .waitFor()
    }
    await page.goto(`${origin}/console/${harness.other.partner.id}/members/${memberId}`)
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    expect(await page.getByText('Sam Okafor').count()).toBe(0)
    await close(page)
  })

  test('everything works with the keyboard: search, rows, pages and help', async () => {
    const { harness, open, close } = pages
    const { id } = await withdraw(harness, { amount: 7_777 })
    const page = await open('')
    await page.getByText('Latest withdrawals').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('w')
    await page.getByRole('row', { name: '£77.27' }).waitFor()
    await page.getByRole('row', { name: '£77.27' }).focus()
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    // Forced colours remove the shadow that otherwise marks the focus.
    await page.emulateMedia({ forcedColors: 'active' })
    expect(await page.evaluate('getComputedStyle(document.activeElement).outline')).toContain('solid 2px')
    await page.emulateMedia({ forcedColors: 'none' })
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    await expect.poll(() => page.url()).toContain(id)
    await page.keyboard.press('?')
    await page.getByText('Search pages and records').waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('pay cyc')
    await page.getByRole('option', { name: 'Pay cycles' }).waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Pay cycles' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('okaf')
    await page.getByRole('option', { name: 'Sam Okafor' }).first().waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.keyboard.type(id)
    await page.getByRole('option', { name: `${id} Withdrawal`, exact: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    await close(page)
  })

  test('a page that could not be loaded recovers when the network or the service is back', async () => {
    const { harness, open } = pages
    await withdraw(harness)
    const page = await open('')
    await page.getByText('Latest withdrawals').waitFor()
    await page.context().setOffline(true)
    await page.getByRole('link', { name: 'Pay cycles' }).first().click()
    await page.getByRole('heading', { name: 'No connection' }).first().waitFor()
    await page.context().setOffline(false)
    await page.getByRole('table', { name: 'Pay cycles' }).getByRole('row', { name: 'Open' }).waitFor()

    // The browser stays online, so no event announces that the service is back.
    await page.route('**/v1/**', route => route.abort())
    await page.getByRole('link', { name: 'Members' }).click()
    await page.getByRole('heading', { name: 'No connection' }).first().waitFor()
    await page.unroute('**/v1/**')
    await page.getByRole('row', { name: 'Sam Okafor' }).first().waitFor()
    await page.context().close()
  })

  test('a plot follows the system’s colour scheme', async () => {
    const { harness, open, close } = pages
    await withdraw(harness)
    const page = await open('')
    const drawn = () => page.evaluate<string>("document.querySelector('.plot canvas')?.toDataURL() ?? ''")
    await expect.poll(async () => (await drawn()).length).toBeGreaterThan(1_000)
    const light = await drawn()
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(async () => (await drawn()) !== light).toBe(true)
    await close(page)
  })

  test('a plot shows a day’s figures on hover and with the arrow keys, and its axis has whole pounds', async () => {
    const { harness, open, close } = pages
    // More than £1,000 in one day, at most £200 each.
    for (let count = 0; count < 6; count++) await withdraw(harness, { amount: 20_000 })
    const page = await open('')
    await page.addInitScript(`
      window.written = []
      const { fillText } = CanvasRenderingContext2D.prototype
      CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
        written.push(text)
        fillText.call(this, text, ...at)
      }`)
    await page.reload()
    const plot = page.getByRole('slider', { name: 'Amounts over time' })
    await plot.locator('canvas').waitFor()
    await plot.press('End')
    const figures = page.locator('.plot-pointed')
    await figures.getByText('10 Mar').waitFor()
    await expect.poll(() => plot.getAttribute('aria-valuetext')).toMatch(/^10 Mar: £1,[0-9]{3}\.[0-9]{2}$/)
    await plot.press('ArrowLeft')
    await expect.poll(() => plot.getAttribute('aria-valuetext')).toBe('9 Mar: £0.00')
    await expectAccessible(page)
    await plot.blur()
    await expect.poll(() => figures.count()).toBe(0)
    const { x, y, width } = (await plot.boundingBox()) ?? { x: 0, y: 0, width: 0 }
    await page.mouse.move(x + width - 30, y + 60)
    await figures.getByText('10 Mar').waitFor()
    expect(await page.evaluate<string[]>('written')).toContain('£1,000')
    await close(page)
  })

  test.each([
    ['Windows NT 10.0; Win64; x64', 'Ctrl K'],
    ['Macintosh; Intel Mac OS X 10_15_7', '⌘K'],
  ])('on %s the search shows the key %s', async (system, key) => {
    const userAgent = `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36`
    const page = await pages.open('', undefined, { userAgent })
    await page.getByText(key, { exact: true }).first().waitFor()
    await pages.close(page)
  })

  test('an action in the palette opens the drawer or file dialog directly, even on the same page', async () => {
    const { open, close } = pages
    const page = await open('', { isOperator: true })
    await page.getByText('Latest withdrawals').waitFor()
    const act = async (text: string) => {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Search for a page or a record' }).fill(text)
      await page.getByRole('option', { name: `${text} Action` }).waitFor()
      await page.keyboard.press('Enter')
    }
    // Without a text, the palette lists the actions first.
    await page.keyboard.press('Control+k')
    const palette = page.getByRole('listbox', { name: 'Results' })
    const first = () => palette.getByRole('option').first().textContent()
    await expect.poll(first).toBe('Invite a memberAction')
    await page.getByRole('combobox', { name: 'Search for a page or a record' }).fill('users')
    await expect.poll(first).toBe('UsersPeople')
    await page.getByRole('combobox', { name: 'Search for a page or a record' }).fill('invite')
    await expect.poll(first).toBe('Invite a memberAction')
    await page.keyboard.press('Escape')
    await act('Fund float')
    await page.getByRole('dialog', { name: /^Fund the float/ }).waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    for (let count = 0; count < 2; count++) {
      await act('Invite an operator')
      await page.getByRole('dialog', { name: 'Invite an operator' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog', { name: 'Invite an operator' }).waitFor({ state: 'hidden' })
    }
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), act('Add pay')])
    expect(chooser.isMultiple()).toBe(false)
    await close(page)
  })

  test('on a phone, a row is a card: one figure at the top, buttons below, and no minor columns', async () => {
    const { harness, open, close, origin } = pages
    await withdraw(harness)
    const page = await open(`/console/operator/partners/${harness.partner.id}`, { isOperator: true }, phone)
    const row = page.getByRole('table', { name: 'Float' }).getByRole('row', { name: 'GBP' })
    await row.waitFor()
    await waitUntilLoaded(page)
    const figure = await row.locator('.figure-lead').boundingBox()
    const button = await row.getByRole('button', { name: 'Fund' }).boundingBox()
    expect(figure?.x).toBeGreaterThan(button?.x ?? Number.POSITIVE_INFINITY)
    expect(button?.y).toBeGreaterThan((figure?.y ?? 0) + (figure?.height ?? 0))
    await page.goto(`${origin}/console/${harness.partner.id}/events`)
    await page.getByText('withdrawal.held').first().waitFor()
    expect(await page.locator('td.minor').count()).toBeGreaterThan(0)
    expect(await page.locator('td.minor').filter({ visible: true }).count()).toBe(0)
    await close(page)
  })

  test('the current page is visible in the menu, even at the end of a long menu', async () => {
    const viewport = { width: 1440, height: 600 }
    const page = await pages.open('/console/operator/audit-log', { isOperator: true }, { viewport })
    await page.getByRole('heading', { name: 'Audit log' }).waitFor()
    const shown = page.getByRole('navigation').getByRole('link', { name: 'Audit log' })
    const bottomOf = async (locator: typeof shown) => {
      const { y, height } = (await locator.boundingBox()) ?? { y: 0, height: Number.POSITIVE_INFINITY }
      return y + height
    }
    const end = await bottomOf(page.getByRole('navigation'))
    await expect.poll(() => bottomOf(shown)).toBeLessThanOrEqual(end)
    await pages.close(page)
  })

  test('a logo that an admin uploads appears above the member’s pay until it is removed', async () => {
    const { harness, open, close, origin } = pages
    const page = await open('settings')
    const choose = (name: string, buffer: Buffer) =>
      page.getByLabel('Drop a picture here').setInputFiles({ name, mimeType: 'image/png', buffer })
    await choose('logo.png', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'))
    await page.getByText('The file must be a PNG, JPEG or WebP picture').waitFor()
    await choose('logo.png', await page.screenshot({ clip: { x: 0, y: 0, width: 64, height: 64 } }))
    await page.getByRole('img', { name: 'Logo' }).waitFor()
    await expectAccessible(page)
    const session = { memberId: await harness.addMember({ available: 5_000 }), scope: 'read' }
    const { token } = (await harness.call('POST', '/v1/member-sessions', { body: session })).body
    const member = await open(`/m#${token}`)
    await member.locator('header .mark img').waitFor()
    await expectAccessible(member)
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.goto(`${origin}/console/${harness.partner.id}`)
    await expect.poll(() => harness.db.selectFrom('partnerLogos').select('partnerId').execute()).toEqual([])
    await member.reload()
    await member.locator('header .mark').getByText('A', { exact: true }).waitFor()
    for (const each of [page, member]) await close(each)
  })
})
