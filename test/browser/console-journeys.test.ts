import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { goodAccount } from '../harness/samples.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import { type ConsolePages, startConsole, waitUntilLoaded, withdraw } from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

let pages: ConsolePages

const drop = (page: Page, name: string, text: string) =>
  page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) })

describe.skipIf(executablePath === undefined)('a journey through the console', () => {
  beforeAll(async () => {
    pages = await startConsole()
  })
  afterAll(() => pages?.stop())

  test('of a payroll clerk: errors in a file are marked in the sheet, and the corrected file is planned and applied', async () => {
    const { harness, open, close } = pages
    const page = await open('lists', { roles: ['payroll'] })
    const header = 'email,first_name,last_name,phone,tier'
    await drop(
      page,
      'october.csv',
      `${header}\nada@example.com,Ada,Byron,,Silver\nbob@example.com,Bob,Stone,,Platinum\n`,
    )
    await page.getByText('One row has errors').waitFor()
    expect(await page.locator('td.sheet-bad').allTextContents()).toEqual(['Platinum'])
    await expectAccessible(page)

    await drop(page, 'october.csv', `${header}\nada@example.com,Ada,Byron,,Silver\nbob@example.com,Bob,Stone,,Silver\n`)
    await page.getByRole('button', { name: 'Apply 2 changes' }).waitFor()
    await expectAccessible(page)
    const emails = '/v1/members?emails=ada@example.com'
    expect((await harness.call('GET', emails)).body.total).toBe(0)
    await page.getByRole('button', { name: 'Apply 2 changes' }).click()
    await page.getByRole('cell', { name: 'ada@example.com' }).waitFor()
    await expectAccessible(page)
    await close(page)
  })

  test('of a payroll clerk: the deductions of a cycle are downloaded, and payroll’s report settles the cycle', async () => {
    const { harness, open, close } = pages
    const { id } = await withdraw(harness)
    await harness.call('POST', `/v1/sandbox/withdrawals/${id}/pay`)
    expect((await harness.call('POST', '/v1/sandbox/clock', { body: { next: 'cycle_close' } })).status).toBe(200)
    const page = await open(`cycles/${harness.payCycle.id}`, { roles: ['payroll'] })
    await page.getByText('Payroll has not yet reported').waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Deductions as CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toBe(`deductions-${harness.payCycle.id}.csv`)
    const deductions = await harness.call('GET', `/v1/pay/cycles/${harness.payCycle.id}/deductions`, {
      headers: { accept: 'text/csv' },
    })
    await drop(page, 'payroll.csv', deductions.text.replace(',50.00,GBP', ',45.00,GBP'))
    await page.getByRole('button', { name: 'Settle cycle (final)' }).click()
    await page.getByRole('cell', { name: 'Short' }).waitFor()
    await page.getByText('by Dana Reyes').waitFor()
    await expectAccessible(page)
    const settlement = await harness.call('GET', `/v1/pay/cycles/${harness.payCycle.id}/settlement`)
    expect(settlement.body.lines[0]).toMatchObject({ outcome: 'short', taken: { amount: 4_500 } })
    await close(page)
  })

  test('of support: a withdrawal is cancelled after the time to undo, and the page shows no account number', async () => {
    const { harness, open, close } = pages
    const { id, memberId } = await withdraw(harness)
    const statusOf = async () => (await harness.call('GET', `/v1/pay/withdrawals/${id}`)).body.status
    const page = await open(`withdrawals/${id}`, { roles: ['support'] })
    await page.getByRole('button', { name: 'Cancel withdrawal' }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('button', { name: 'Cancel withdrawal' }).waitFor()
    expect(await statusOf()).toBe('held')
    expect(await page.getByRole('button', { name: 'Pay', exact: true }).count()).toBe(0)
    await page.getByRole('button', { name: 'Cancel withdrawal' }).click()
    await expectAccessible(page)
    await page.getByText('Cancelled: the money is returned to the member').waitFor()
    await page.getByText('Cancelled by Dana Reyes').waitFor()
    expect(await statusOf()).toBe('cancelled')
    const other = await withdraw(harness)
    await page.goto(`${pages.origin}/console/${harness.partner.id}/withdrawals/${other.id}`)
    await page.getByRole('button', { name: 'Cancel withdrawal' }).click()
    // Leaving the page makes a deferred change at once.
    await page.goto(`${pages.origin}/console/${harness.partner.id}/withdrawals/${id}`)
    const statusOfOther = async () => (await harness.call('GET', `/v1/pay/withdrawals/${other.id}`)).body.status
    await expect.poll(statusOfOther, { timeout: 15_000 }).toBe('cancelled')
    await page.getByRole('link', { name: 'Sam Okafor' }).click()
    await page.getByText('•••• 4958').waitFor()
    await waitUntilLoaded(page)
    expect(await page.getByRole('button', { name: 'Show' }).count()).toBe(0)
    expect(await page.content()).not.toContain(goodAccount.accountNumber)
    await expect.poll(() => page.url()).toContain(memberId)
    await close(page)
  })

  test('of a developer: a webhook with its secret, a request as curl, an idempotency key, and the sandbox’s bank', async () => {
    const { harness, open, close } = pages
    const { id } = await withdraw(harness, { idempotencyKey: 'shift-of-monday' })
    await harness.flushRequestLog()
    const page = await open('webhooks', { roles: ['developer'] })
    await page.getByRole('button', { name: 'Add a webhook' }).click()
    await page.getByRole('textbox', { name: 'Address' }).fill('not an address')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.locator('.field-problem').first().waitFor()
    await page.getByRole('textbox', { name: 'Address' }).fill('https://example.com/midmonth')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText(/^whsec_/).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Stored' }).click()
    await page.getByRole('cell', { name: 'https://example.com/midmonth' }).waitFor()

    await page.goto(`${pages.origin}/console/${harness.partner.id}/requests?key=shift-of-monday`)
    await page.getByRole('heading', { name: 'Idempotency key' }).waitFor()
    await page.getByText('completeWithdrawal').waitFor()
    await page.getByRole('row', { name: 'POST /v1/pay/withdrawals/complete' }).first().focus()
    await page.keyboard.press('Enter')
    await page.getByText("-H 'x-idempotency-key: shift-of-monday'").waitFor()
    expect(await page.locator('pre').textContent()).not.toContain('mm_test_')

    await page.goto(`${pages.origin}/console/${harness.partner.id}/withdrawals/${id}`)
    await page.getByRole('button', { name: 'Pay', exact: true }).click()
    await page.getByText('Paid: confirmed by the bank').waitFor()
    await page.getByRole('button', { name: 'Return', exact: true }).click()
    await page.getByText('Returned by the receiving bank').waitFor()
    await page.getByRole('button', { name: /^Sandbox/ }).click()
    await page.getByRole('button', { name: 'The bank does not answer' }).click()
    await page.getByText('Faults set for 1 payment').waitFor()
    await expectAccessible(page)
    await close(page)
  })

  test('of an operator: a tier is changed after a preview, a partner is paused with a reason and resumed, and only operators may', async () => {
    const { harness, open, close, origin } = pages
    const page = await open('/console/operator/partners', { isOperator: true })
    await page.getByRole('row', { name: harness.partner.name }).getByRole('cell').first().click()
    await page.getByRole('heading', { name: 'Tiers' }).waitFor()
    await page.getByRole('cell', { name: 'Bronze' }).waitFor()
    await expectAccessible(page)
    const bronze = page.getByRole('row', { name: 'Bronze' })
    await bronze.getByRole('button', { name: 'Change' }).click()
    await page.getByRole('textbox', { name: 'Fee, GBP', exact: true }).fill('0.75')
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Show the effect' }).click()
    await page.getByText('Open intents, which keep their fees').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Save for new withdrawals' }).click()
    await bronze.getByText('£0.75').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('textbox', { name: 'Reason' }).fill('bank outage')
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
    await page.getByText('bank outage').waitFor()
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await page.goto(`${origin}/console/operator/batches`)
    await page.getByText('No batches').waitFor()
    await expectAccessible(page)
    await page.goto(`${origin}/console/operator/exceptions`)
    await page.getByText('Nothing to decide').waitFor()
    await expectAccessible(page)
    await page.goto(`${origin}/console/operator/float`)
    await page.getByText('No statements yet').waitFor()
    await expectAccessible(page)
    await page.goto(`${origin}/console/operator/health`)
    await page.getByText('Not verified yet').waitFor()
    await page.getByText('Before live mode').waitFor()
    await expectAccessible(page)
    await page.goto(`${origin}/console/operator/audit-log`)
    await page.getByText('partner.pause').waitFor()
    await expectAccessible(page)
    await close(page)

    const other = await open('/console/operator/partners', { roles: ['admin'] })
    await other.getByRole('heading', { name: 'Not found' }).waitFor()
    expect(await other.getByRole('link', { name: 'Exceptions' }).count()).toBe(0)
    await close(other)
  })

  test('of an admin and an invited person: a link, a password, roles, an account shown for a reason, a session ended', async () => {
    const { harness, open, close, browser, origin } = pages
    const memberId = await harness.addMember()
    const page = await open('users', { roles: ['admin'] })
    await page.getByRole('cell', { name: 'Dana Reyes' }).first().waitFor()
    await page
      .getByRole('cell', { name: /@\S+ not verified$/ })
      .first()
      .waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Invite a person' }).click()
    await page.getByRole('textbox', { name: 'E-mail address' }).fill('ada@console.example')
    await page.getByRole('checkbox', { name: /^Payroll/ }).check()
    await page.getByRole('button', { name: 'Create the link' }).click()
    const link = (await page.locator('pre').textContent()) ?? ''
    expect(link).toContain('/console/invitation#')
    await expectAccessible(page)

    const context = await browser.newContext()
    const invited = await context.newPage()
    await invited.goto(link.replace(/^https?:\/\/[^/]+/, origin))
    await invited.getByText(`${harness.partner.name}: Payroll, Viewer`).waitFor()
    await expect.poll(() => invited.url()).toBe(`${origin}/console/invitation`)
    await expectAccessible(invited)
    await invited.getByRole('textbox', { name: 'Your name' }).fill('Ada Byron')
    await invited.getByLabel('Choose a password').fill('short')
    await invited.getByRole('button', { name: 'Accept' }).click()
    await invited.locator('.field-problem').waitFor()
    await invited.getByLabel('Choose a password').fill('a horse that counts wages')
    await invited.getByRole('button', { name: 'Accept' }).click()
    await invited.getByRole('heading', { name: 'Overview' }).waitFor()

    await invited.goto(`${origin}/console/${harness.partner.id}/members/${memberId}`)
    await invited.getByRole('button', { name: 'Show' }).click()
    await invited.getByRole('textbox', { name: 'Reason' }).fill('the bank returned a payment')
    await invited.getByRole('dialog').getByRole('button', { name: 'Show' }).click()
    await invited.getByText(goodAccount.accountNumber).waitFor()

    await invited.getByRole('button', { name: 'Sign out' }).click()
    await invited.getByRole('textbox', { name: 'E-mail address' }).fill('ada@console.example')
    await invited.getByLabel('Password').fill('a horse that guesses')
    await invited.getByRole('button', { name: 'Sign in' }).click()
    await invited.getByText('The e-mail address or the password is wrong.').waitFor()
    await invited.getByLabel('Password').fill('a horse that counts wages')
    await invited.getByRole('button', { name: 'Sign in' }).click()
    await invited.getByRole('link', { name: /Ada Byron/ }).click()
    await invited.getByRole('cell', { name: 'This session' }).waitFor()
    await expectAccessible(invited)
    await context.close()
    await close(page)
  })

  test('of a reader whose session ends while filling in a form: the entries are still there after signing in', async () => {
    const page = await pages.open('members', { roles: ['payroll'] })
    const cookies = await page.context().cookies()
    const invite = page.getByRole('button', { name: 'Invite a member' })
    await invite.click()
    await page.getByRole('textbox', { name: 'First name' }).fill('Ines')
    await page.getByRole('combobox', { name: 'Tier' }).selectOption('Gold')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Invite', exact: true }).click()
    await page.getByText('Your session has ended').waitFor()
    await page.context().addCookies(cookies)
    // Simulates a sign-in in another tab.
    await page.evaluate("new BroadcastChannel('midmonth-session').postMessage('')")
    await invite.click()
    await expect.poll(() => page.getByRole('textbox', { name: 'First name' }).inputValue()).toBe('Ines')
    await expect.poll(() => page.getByRole('combobox', { name: 'Tier' }).inputValue()).toBe('Gold')
    await pages.close(page)
  })

  test('of a reader whose session ends: the sign-in page says so, and another reader’s data is gone', async () => {
    const { open, close } = pages
    const page = await open('members', { roles: ['viewer'] })
    await page.getByRole('row', { name: 'Sam Okafor' }).first().waitFor()
    expect(await page.getByRole('button', { name: 'Invite a member' }).count()).toBe(0)
    await page.context().clearCookies()
    await page.getByRole('link', { name: 'Pay runs' }).click()
    await page.getByRole('heading', { name: 'Sign in to Midmonth' }).waitFor()
    await page.getByText('Your session has ended').waitFor()
    await close(page)
  })
})
