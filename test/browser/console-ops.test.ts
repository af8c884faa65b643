import pg from 'pg'
import type { Locator, Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { closeIfOver } from '../../src/closing/closing.ts'
import { euroRail } from '../banks/file-bank.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import { type ConsolePages, expectToFit, phone, startConsole } from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

const operator = { isOperator: true }

/** Fills fields by the beginning of their labels, which a note may follow. */
async function fill(within: Page | Locator, values: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(values)) await within.getByLabel(new RegExp(`^${name}`)).fill(value)
}

describe.skipIf(executablePath === undefined)('a new live installation', () => {
  let pages: ConsolePages
  beforeAll(async () => {
    pages = await startConsole({ mode: 'live' })
    const { host, superuser, database } = pages.harness
    const client = new pg.Client({ host, user: superuser, database })
    await client.connect()
    // Removes the harness's partners with their append-only tables.
    await client.query('set session_replication_role = replica; truncate partners cascade')
    await client.end()
  })
  afterAll(() => pages?.stop())

  test('an operator sees the first steps and sets up a partner, including a working API key', async () => {
    const { harness, open, close } = pages
    const page = await open('/console', operator)
    await page.getByRole('heading', { name: 'No partners yet' }).waitFor()
    await expect.poll(() => page.url()).toContain('/console/operator/partners')
    await expectAccessible(page)
    await page.getByRole('link', { name: 'Create a partner' }).click()

    await fill(page, { 'Time zone': 'Europe/Londres' })
    await page.getByRole('button', { name: 'Create the partner' }).click()
    await page.locator('.field-problem').first().waitFor()
    await expectAccessible(page)
    await fill(page, { Name: 'Acme Couriers', 'Intent validity': 'ten' })
    await page.getByRole('button', { name: 'Create the partner' }).click()
    await page.getByText('Must be a whole number').waitFor()
    await fill(page, { 'Intent validity': '10' })
    await page.getByRole('button', { name: 'Create the partner' }).click()
    await page.getByText('Use an IANA time zone').waitFor()
    await fill(page, { 'Time zone': 'Europe/London', 'Cycle start date': '2026-01-05' })
    await page.getByLabel('Cycle length').selectOption({ label: 'One week' })
    await page.getByRole('button', { name: 'Create the partner' }).click()

    const steps = page.locator('.steps')
    await steps.waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'New tier' }).click()
    const dialog = page.getByRole('dialog')
    await fill(dialog, { Name: 'Bronze', Fee: '0.50', 'Minimum withdrawal': '10.00', 'Maximum withdrawal': 'much' })
    await dialog.getByRole('button', { name: 'Show the effect' }).click()
    await dialog.getByText("'much' is not an amount").waitFor()
    await fill(dialog, { 'Maximum withdrawal': '200.00', 'Withdrawals per day': '3' })
    await dialog.getByRole('button', { name: 'Show the effect' }).click()
    await dialog.getByText('The tier has no members yet').waitFor()
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Create the tier' }).click()
    await page.getByRole('cell', { name: 'Bronze' }).waitFor()

    await page.getByRole('button', { name: 'Fund', exact: true }).click()
    await fill(dialog, { 'Amount, GBP': '12000.00' })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('row', { name: 'Free £0.00 £12,000.00' }).waitFor()
    await expectAccessible(page)
    await fill(dialog, { 'Repeat the amount, GBP': '1200.00' })
    await dialog.getByRole('button', { name: 'Fund £12,000.00' }).click()
    await dialog.getByText('Does not match the amount above').waitFor()
    await fill(dialog, { 'Repeat the amount, GBP': '12000.00' })
    await dialog.getByRole('button', { name: 'Fund £12,000.00' }).click()
    await page.getByText('The float is now £12,000.00').waitFor()

    await page.getByRole('button', { name: 'New key' }).click()
    await dialog.getByRole('button', { name: 'Create the key' }).click()
    const key = (await dialog.getByText(/^mm_live_/).textContent()) ?? ''
    await expectAccessible(page)
    const tiers = await harness.call('GET', '/v1/tiers', { key })
    expect(tiers.status, tiers.text).toBe(200)
    expect(tiers.body).toMatchObject([{ name: 'Bronze' }])
    const member = { email: 'ada@example.com', firstName: 'Ada', lastName: 'Byron', tier: 'Bronze' }
    expect((await harness.call('POST', '/v1/members', { key, body: member })).status).toBe(201)
    await page.getByRole('button', { name: 'Close' }).click()
    await expect.poll(() => steps.locator('.step-done').count()).toBe(3)

    await page.getByRole('link', { name: 'View as partner' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await close(page)
  })
})

describe.skipIf(executablePath === undefined)('the operators’ pages for partners', () => {
  let pages: ConsolePages
  beforeAll(async () => {
    pages = await startConsole({ rails: [euroRail()] })
  })
  afterAll(() => pages?.stop())

  const openPartner = async (id: string, options = {}) => {
    const page = await pages.open(`/console/operator/partners/${id}`, operator, options)
    await page.getByRole('heading', { name: 'Settings', level: 2 }).waitFor()
    return page
  }
  const floatOf = async (id: string) => {
    const caller = await pages.harness.addOperator()
    const { floats } = (await caller.call('GET', `/partners/${id}/float`)).body
    return floats.find(({ currency }: { currency: string }) => currency === 'GBP').float.amount
  }
  const fund = async (page: Page, amount: string) => {
    await page.getByRole('row', { name: 'GBP' }).getByRole('button', { name: 'Fund' }).click()
    const dialog = page.getByRole('dialog')
    await fill(dialog, { 'Amount, GBP': amount })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('button', { name: `Fund £${amount}` }).click()
    return dialog
  }
  /** Lets requests take effect but loses their responses. */
  const lose = async (route: Route) => {
    await route.fetch()
    await route.abort()
  }

  test('an operator who leaves the form for a new partner before the response stays on the new page', async () => {
    const page = await pages.open('/console/operator/new-partner', operator)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/operator/v1/partners', async route => {
      if (route.request().method() === 'POST') await released
      await route.continue()
    })
    await fill(page, { Name: 'Late Couriers', 'Cycle start date': '2026-01-05' })
    await page.getByRole('button', { name: 'Create the partner' }).click()
    await page.getByRole('link', { name: 'Rails' }).click()
    await page.getByRole('heading', { name: 'Rails' }).waitFor()
    release()
    await page.getByRole('option', { name: 'Late Couriers' }).waitFor({ state: 'attached' })
    // The page itself knows its address earlier than Playwright.
    expect(await page.evaluate('location.pathname')).toBe('/console/operator/rails')
    await pages.close(page)
  })

  test('pressing again after a lost response funds a float only once', async () => {
    const { partner } = await pages.harness.addPartner('Lost answers')
    const page = await openPartner(partner.id)
    await page.route('**/float/fund', lose)
    const dialog = await fund(page, '700.00')
    await dialog.getByText('No connection').waitFor()
    expect(await floatOf(partner.id)).toBe(70_000)
    await page.unroute('**/float/fund')
    await dialog.getByRole('button', { name: 'Fund £700.00' }).click()
    await page.getByText('nothing was done twice').waitFor()
    await page.getByText('The float is now £700.00').waitFor()
    expect(await floatOf(partner.id)).toBe(70_000)

    await fund(page, '700.00')
    await page.getByText('The float is now £1,400.00').waitFor()
    expect(await floatOf(partner.id)).toBe(140_000)
    await page.context().close()
  })

  test('after a lost response, a reloaded page does not fund twice, and a different amount is rejected with the reason', async () => {
    const { partner } = await pages.harness.addPartner('Lost and reloaded')
    const page = await openPartner(partner.id)
    await page.route('**/float/fund', lose)
    const lost = await fund(page, '50.00')
    await lost.getByText('No connection').waitFor()
    await page.unroute('**/float/fund')
    await page.reload()
    const dialog = await fund(page, '60.00')
    await dialog.getByText('An earlier attempt took effect').waitFor()
    await expectAccessible(page)
    expect(await floatOf(partner.id)).toBe(5_000)
    await dialog.getByRole('button', { name: 'Fund £60.00' }).click()
    await page.getByText('The float is now £110.00').waitFor()
    await page.context().close()
  })

  test('a key whose secret was lost with the response is reported as lost, not shown as empty', async () => {
    const { partner } = await pages.harness.addPartner('Lost key')
    const page = await openPartner(partner.id)
    await page.route('**/keys', route => (route.request().method() === 'POST' ? lose(route) : route.continue()))
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByRole('button', { name: 'Create the key' }).click()
    await page.getByText('No connection').waitFor()
    await page.unroute('**/keys')
    await page.getByRole('button', { name: 'Create the key' }).click()
    await page.getByText('the response with the secret was lost').waitFor()
    await page.context().close()
  })

  test('a half-entered amount for one partner is gone when the reader switches to another', async () => {
    const { partner } = await pages.harness.addPartner('Half entered')
    const page = await openPartner(partner.id)
    await page.getByRole('row', { name: 'GBP' }).getByRole('button', { name: 'Fund' }).click()
    await fill(page.getByRole('dialog'), { 'Amount, GBP': '700.00' })
    await page.getByRole('button', { name: 'Review changes' }).click()
    await page.getByRole('button', { name: 'Fund £700.00' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('A page, an action, an id').fill(pages.harness.partner.id)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: pages.harness.partner.name }).waitFor()
    await page.getByRole('button', { name: 'Fund £700.00' }).waitFor({ state: 'detached' })
    await page.context().close()
  })

  test('withdrawals from a float are limited to the free amount, the float has a floor, and no reference is used twice', async () => {
    const { partner } = await pages.harness.addPartner('Movements')
    const page = await openPartner(partner.id)
    await fund(page, '500.00')
    await page.getByText('The float is now £500.00').waitFor()
    const gbp = page.getByRole('row', { name: 'GBP' })
    const dialog = page.getByRole('dialog')

    await gbp.getByRole('button', { name: 'Floor' }).click()
    await fill(dialog, { 'Floor, GBP': '450.00' })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('row', { name: 'Floor – £450.00' }).waitFor()
    await dialog.getByRole('button', { name: 'Set the floor' }).click()
    await gbp.getByText('£450.00').waitFor()

    await gbp.getByRole('button', { name: 'Withdraw' }).click()
    await fill(dialog, { 'Amount, GBP': '500.01', Reference: 'bank 17' })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByText('Only £500.00 is free').waitFor()
    await fill(dialog, { 'Amount, GBP': '100.00' })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByText('members could not withdraw').waitFor()
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Withdraw £100.00' }).click()
    await page.getByText('The float is now £400.00').waitFor()

    await gbp.getByRole('button', { name: 'Withdraw' }).click()
    await fill(dialog, { 'Amount, GBP': '100.00', Reference: 'bank 17' })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('button', { name: 'Withdraw £100.00' }).click()
    await page.getByText('A movement with this reference already exists').waitFor()
    expect(await floatOf(partner.id)).toBe(40_000)
    await pages.close(page)
  })

  test('settlement money can arrive in part, and the rest stays due', async () => {
    const { harness } = pages
    const { partner, key, payCycle } = await harness.addPartner('Settlements')
    const account = { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' }
    const memberId = await harness.addMember({ key, available: 9_000, currency: 'EUR', tier: 'Silver EU', account })
    const amount = { amount: 5_000, currency: 'EUR' }
    await harness.withdraw({ key, memberId, currency: 'EUR' })
    const now = new Date('2026-04-02T10:00:00.000Z')
    await harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: partner.id, now }))
    const deductions = [{ memberId, taken: amount }]
    const settled = await harness.call('POST', `/v1/pay/cycles/${payCycle.id}/settlement`, {
      key,
      body: { deductions },
    })
    expect(settled.status, settled.text).toBe(201)

    const page = await openPartner(partner.id)
    await page.getByRole('button', { name: 'Receive' }).click()
    const dialog = page.getByRole('dialog')
    await fill(dialog, { 'Amount, EUR': '20.00' })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('row', { name: 'Outstanding €50.00 €30.00' }).waitFor()
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Record €20.00' }).click()
    await page.getByRole('row', { name: 'Receive' }).getByText('€30.00').waitFor()
    await pages.close(page)
  })

  test('changed settings are reviewed with old and new values, and going back keeps the entries', async () => {
    const { partner } = await pages.harness.addPartner('Settings')
    const page = await openPartner(partner.id)
    await page
      .locator('section', { hasText: 'Settings' })
      .getByRole('button', { name: 'Change', exact: true })
      .last()
      .click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByText('No changes.').waitFor()
    await dialog.getByRole('button', { name: 'Back' }).click()
    await fill(dialog, { 'Reject imports awaiting approval after': '400' })
    await dialog.getByLabel('Activate members when invited').uncheck()
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('row', { name: 'after 14 days 400 days' }).waitFor()
    await dialog.getByRole('row', { name: 'invited Yes No' }).waitFor()
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByRole('button', { name: 'Back' }).click()
    await fill(dialog, { 'Reject imports awaiting approval after': '30' })
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('row', { name: 'invited Yes No' }).waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Settings changed').waitFor()
    const caller = await pages.harness.addOperator()
    const { settings } = (await caller.call('GET', `/partners/${partner.id}`)).body
    expect(settings).toMatchObject({ reviewDays: 30, autoActivate: false })
    await pages.close(page)
  })

  test('a partner is suspended with a reason and restored', async () => {
    const { harness, close } = pages
    const { clock } = harness
    const { partner, key } = await harness.addPartner('Stops')
    const statusOf = async () => (await harness.call('GET', '/v1/tiers', { key })).status
    const page = await openPartner(partner.id)
    await page.getByRole('button', { name: 'Suspend' }).click()
    await fill(page.getByRole('dialog'), { Reason: 'contract ended' })
    await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click()
    await page.getByText('contract ended').waitFor()
    // Keys are cached for a second.
    clock.advance({ seconds: 2 })
    expect(await statusOf()).toBe(403)
    await page.getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('button', { name: 'Suspend' }).waitFor()
    clock.advance({ seconds: 2 })
    expect(await statusOf()).toBe(200)
    await close(page)
  })

  test('a rail is held and released, and shows who holds it', async () => {
    const page = await pages.open('/console/operator/rails', operator)
    await page.getByRole('button', { name: 'Hold' }).click()
    await fill(page.getByRole('dialog'), { Reason: 'wrong account' })
    await page.getByRole('dialog').getByRole('button', { name: 'Hold' }).click()
    await page.getByRole('cell', { name: /^by .+: wrong account/ }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Release' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click()
    await page.getByRole('button', { name: 'Hold' }).waitFor()
    await pages.close(page)
  })

  test.each([
    ['at 1440 px, light', { colorScheme: 'light' }],
    ['at 1440 px, dark', { colorScheme: 'dark' }],
    ['at 360 px, light', { colorScheme: 'light', ...phone }],
    ['at 360 px, dark', { colorScheme: 'dark', ...phone }],
  ] as const)('every page and drawer is accessible and fits its width (%s)', async (look, options) => {
    const { partner } = await pages.harness.addPartner(`Looks ${look}`)
    const page = await openPartner(partner.id, options)
    const check = async (name: string) => {
      await expectToFit(page, name)
      await expectAccessible(page)
    }
    await check('partner')
    await page.getByRole('button', { name: 'New tier' }).click()
    await check('new-tier')
    await page.keyboard.press('Escape')
    await page.getByRole('row', { name: 'GBP' }).getByRole('button', { name: 'Fund' }).click()
    await fill(page.getByRole('dialog'), { 'Amount, GBP': '25000.00', Reference: 'bank transfer 2026-03-10' })
    await check('fund')
    await page.getByRole('button', { name: 'Review changes' }).click()
    await page.getByText('will be recorded as paid').waitFor()
    await check('fund-review')
    for (const [path, text] of Object.entries({
      'new-partner': 'Create the partner',
      partners: 'Looks at',
      rails: 'Hold',
    })) {
      await page.goto(`${pages.origin}/console/operator/${path}`)
      await page.getByText(text).filter({ visible: true }).first().waitFor()
      await check(path)
    }
    await pages.close(page)
  })
})
