import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { closeIfOver } from '../../src/closing/closing.ts'
import type { TestPartner } from '../harness/harness.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import { type ConsolePages, expectToFit, phone, startConsole } from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

const gbp = (amount: number) => ({ amount, currency: 'GBP' })

describe.skipIf(executablePath === undefined)('a partner’s fees', () => {
  let pages: ConsolePages
  let mine: TestPartner
  beforeAll(async () => {
    pages = await startConsole()
    mine = await partnerWithFees()
  })
  afterAll(() => pages?.stop())

  /** A partner whose members have paid 0.50 in fees and whose employer owes 0.50. */
  async function partnerWithFees(): Promise<TestPartner> {
    const { harness } = pages
    harness.clock.set(new Date('2026-03-10T09:00:00.000Z'))
    const added = await harness.addPartner('Fees and more')
    const { key, partner, payCycle } = added
    const [payer, employed] = [
      await harness.addMember({ key, available: 20_000 }),
      await harness.addMember({ key, tier: 'Gold', available: 20_000 }),
    ]
    for (const memberId of [payer, employed]) await harness.withdraw({ key, memberId })
    harness.clock.set(new Date('2026-04-02T10:00:00.000Z'))
    await harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: partner.id, now: harness.clock.now() }))
    const body = { deductions: [payer, employed].map(memberId => ({ memberId, taken: gbp(5_000) })) }
    await harness.call('POST', `/v1/pay/cycles/${payCycle.id}/settlement`, { key, body })
    return added
  }

  test('are withdrawn from the float, billed, and marked as paid', async () => {
    const { open, close, origin } = pages
    const page = await open(`/console/operator/partners/${mine.partner.id}`, { isOperator: true })
    await page.getByRole('link', { name: 'Fees', exact: true }).click()
    await page.getByRole('heading', { name: 'Fees of Fees and more' }).waitFor()
    const revenue = page.getByRole('table', { name: 'Revenue' })
    const row = revenue.getByRole('row', { name: /^GBP/ })
    await row.getByText('£0.50').first().waitFor()
    await expectAccessible(page)

    await row.getByRole('button', { name: 'Withdraw' }).click()
    const dialog = page.getByRole('dialog')
    await expect.poll(() => page.evaluate<string>('document.activeElement.name')).toBe('amount')
    // The button that opens the dialog is in a right-aligned column.
    const align = "getComputedStyle(document.querySelector('dialog[open] p')).textAlign"
    expect(await page.evaluate<string>(align)).toBe('left')
    await dialog.getByLabel(/^Amount/).fill('0.51')
    await dialog.getByLabel(/^Reference/).fill('fees 1')
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByText('Only £0.50 of collected fees is in the float').waitFor()
    await dialog.getByLabel(/^Amount/).fill('0.30')
    await dialog.getByRole('button', { name: 'Review changes' }).click()
    await dialog.getByRole('button', { name: 'Withdraw £0.30' }).click()
    await page.getByText('£0.30 recorded as withdrawn from the float').waitFor()
    await row.getByText('£0.20').first().waitFor()

    await row.getByRole('button', { name: 'Issue an invoice' }).click()
    const invoices = page.getByRole('table', { name: 'Invoices' })
    await invoices.getByText('£0.50').waitFor()
    await page.goto(`${origin}/console/operator/fees/${mine.partner.id}?month=2026-03`)
    const lines = page.getByRole('table', { name: 'Fees by day and tier' })
    await lines.getByText('Silver').waitFor()
    expect(await lines.getByRole('row').count()).toBe(3)

    await invoices.getByText('£0.50').click()
    await page.getByRole('button', { name: 'Mark as paid' }).click()
    await page
      .getByRole('dialog')
      .getByLabel(/^Transfer reference/)
      .fill('transfer 7')
    await page.getByRole('dialog').getByLabel(/^Day/).fill('2026-04-01')
    await page.getByRole('dialog').getByRole('button', { name: 'Mark as paid' }).click()
    await page.getByText('transfer 7').waitFor()
    await expectAccessible(page)
    await close(page)
  })

  test('and invoices are readable on a phone, and the journal can be downloaded', async () => {
    const { open, close, origin } = pages
    const page = await open(`/console/operator/fees/${mine.partner.id}?month=2026-03`, { isOperator: true }, phone)
    await page.getByText('Silver').first().waitFor()
    await expectToFit(page)
    await page.goto(`${origin}/console/operator/invoices?from=2026-03-01&to=2026-04-30`)
    await page.getByRole('heading', { name: 'Journal' }).waitFor()
    await expectToFit(page)
    await expectAccessible(page)
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download the journal' }).click()
    expect((await downloading).suggestedFilename()).toBe('journal-2026-03-01-2026-04-30.csv')
    await close(page)
  })
})
