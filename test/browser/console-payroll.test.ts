import { readFileSync } from 'node:fs'
import pino from 'pino'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import writeExcelFile from 'write-excel-file/node'
import * as float from '../../src/float/float.ts'
import { memberImportTasks } from '../../src/member-imports/tasks.ts'
import { pausePartner, resumePartner } from '../../src/partners/partners.ts'
import { setUncheckedAccount } from '../../src/sandbox/unchecked-account.ts'
import { bronze, euAccount, goodAccount } from '../harness/samples.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import { type ConsolePages, desk, expectRed, expectToFit, phone, startConsole, withdraw } from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

let pages: ConsolePages

const csv = (name: string, text: string) => ({ name, mimeType: 'text/csv', buffer: Buffer.from(text) })
const drop = (page: Page, file: { name: string; mimeType: string; buffer: Buffer }) =>
  page.locator('input[type=file]').setInputFiles(file)

async function workbook(name: string, rows: (string | number)[][]) {
  const cells = rows.map(row => row.map(value => ({ type: typeof value === 'number' ? Number : String, value })))
  const mimeType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
  return { name, mimeType, buffer: await writeExcelFile(cells as never).toBuffer() }
}

async function addMembers(count: number): Promise<{ memberId: string; email: string }[]> {
  const { harness } = pages
  return await Promise.all(
    Array.from({ length: count }, async () => {
      const memberId = await harness.addMember()
      return { memberId, email: (await harness.call('GET', `/v1/members/${memberId}`)).body.email }
    }),
  )
}

describe.skipIf(executablePath === undefined)('a payroll clerk at the console', () => {
  beforeAll(async () => {
    pages = await startConsole()
  })
  afterAll(() => pages?.stop())

  test('adds pay with a file: errors are marked in the sheet, totals are shown, and nothing is added before confirmation', async () => {
    const { harness, open, close } = pages
    const [ann, ben] = await addMembers(2)
    const page = await open('pay-runs', { roles: ['payroll'] })
    const before = (await harness.call('GET', '/v1/pay/runs')).body.total
    await drop(
      page,
      await workbook('shifts.xlsx', [
        ['email', 'amount', 'name'],
        [ann?.email ?? '', 120, 'Ann'],
        ['unknown@example.com', 95.5, 'Eve'],
        [ben?.email ?? '', '£80', 'Ben'],
      ]),
    )
    await page.getByText('2 rows have errors').waitFor()
    expect(await page.locator('td.sheet-bad').allTextContents()).toEqual(['unknown@example.com', '£80'])
    await expectAccessible(page)
    await page.getByRole('button', { name: 'amount 1' }).click()
    await expect.poll(() => page.locator('td.sheet-bad').allTextContents()).toEqual(['£80'])

    await drop(page, csv('shifts.csv', `email,amount\n${ann?.email},120.00\n${ben?.email},80.50\n`))
    await page.getByRole('button', { name: 'Add £200.50 of pay for 2 members' }).waitFor()
    await expectAccessible(page)
    expect((await harness.call('GET', '/v1/pay/runs')).body.total).toBe(before)
    await page.getByRole('button', { name: 'Add £200.50 of pay for 2 members' }).click()
    await page.getByRole('heading', { name: 'The pay run was uploaded' }).waitFor()
    await page.getByRole('region', { name: 'Uploaded pay runs' }).getByText('Available').waitFor()
    await expectAccessible(page)
    const [payRun] = (await harness.call('GET', '/v1/pay/runs?take=1')).body.payRuns
    const { body } = await harness.call('GET', `/v1/pay/runs/${payRun.id}`)
    expect(body).toMatchObject({ lineCount: 2, totals: [{ amount: 20_050, currency: 'GBP' }] })

    const row = page.getByRole('table', { name: 'Pay runs' }).getByRole('row', { name: 'shifts.csv' })
    await row.waitFor()
    expect(await row.getByRole('cell').allInnerTexts()).toEqual(
      expect.arrayContaining([expect.stringContaining('Dana Reyes'), '2', '£200.50']),
    )
    await row.click()
    for (const text of ['shifts.csv', 'Dana Reyes', '£200.50']) await page.getByText(text).first().waitFor()
    await close(page)
  })

  test('sees on a phone the complete amounts that a button will add', async () => {
    const { harness, open, close } = pages
    const ann = await harness.addMember()
    const mia = await harness.addMember({ tier: 'Silver EU', account: euAccount })
    const page = await open('pay-runs', { roles: ['payroll'] }, phone)
    await drop(page, csv('two.csv', `member_id,amount\n${ann},1250.00\n${mia},1380.00\n`))
    const add = page.getByRole('button', { name: 'Add €1,380.00 and £1,250.00 of pay for 2 members' })
    await add.focus()
    const widths = 'document.activeElement.scrollWidth - document.activeElement.clientWidth'
    expect(await page.evaluate<number>(widths)).toBe(0)
    await expectToFit(page)
    await close(page)
  })

  test('is warned about a file that has already been sent, adds the pay again only explicitly, and can undo a revert', async () => {
    const { harness, open, close } = pages
    const [ann] = await addMembers(1)
    const total = async () => (await harness.call('GET', '/v1/pay/runs')).body.total
    const page = await open('pay-runs', { roles: ['payroll'] })
    const file = csv('monday.csv', `member_id,amount\n${ann?.memberId},31.00\n`)
    await drop(page, file)
    await page.getByRole('button', { name: 'Add £31.00 of pay for 1 member' }).click()
    await page.getByRole('heading', { name: 'The pay run was uploaded' }).waitFor()
    const once = await total()
    await drop(page, file)
    await page.getByText('These lines have already been sent').waitFor()
    expect(await page.getByRole('button', { name: /^Add £31.00 of pay for/ }).count()).toBe(0)
    await expectAccessible(page)
    expect(await total()).toBe(once)
    await page.getByRole('button', { name: 'Add £31.00 of pay again' }).click()
    await page.getByRole('heading', { name: 'The pay run was uploaded' }).waitFor()
    expect(await total()).toBe(once + 1)

    const sent = page.getByRole('region', { name: 'Uploaded pay runs' })
    await sent.getByRole('button', { name: 'Revert' }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await sent.getByRole('button', { name: 'Revert' }).click()
    await sent.getByText('Reverted').waitFor()
    const [payRun] = (await harness.call('GET', '/v1/pay/runs?take=1')).body.payRuns
    expect(payRun.status).toBe('Reverted')
    await close(page)
  })

  test('settles a cycle after seeing the short, over and unknown lines and how each is resolved', async () => {
    const { harness, open, close } = pages
    const [short, over] = [await withdraw(harness), await withdraw(harness, { amount: 6_000 })]
    const unknown = await harness.addMember({ available: 1_000 })
    for (const { id } of [short, over]) await harness.call('POST', `/v1/sandbox/withdrawals/${id}/pay`)
    expect((await harness.call('POST', '/v1/sandbox/clock', { body: { next: 'cycle_close' } })).status).toBe(200)
    const page = await open(`cycles/${harness.payCycle.id}`, { roles: ['payroll'] })
    const lines = [`${short.memberId},45.00`, `${over.memberId},61.00`, `${unknown},0.70`].map(line => `${line},GBP\n`)
    await drop(page, csv('payroll.csv', `member_id,amount_decimal,currency\n${lines.join('')}`))
    const side = (name: string) => page.getByRole('region', { name, exact: true })
    await side('Short').getByText('-£5.00').waitFor()
    await side('Short').getByText('it is deducted in the open cycle').waitFor()
    await side('Over').getByText('+£1.00').waitFor()
    await side('Unknown').getByText('+£0.70').waitFor()
    await expectAccessible(page)
    expect((await harness.call('GET', `/v1/pay/cycles/${harness.payCycle.id}/settlement`)).status).toBe(404)
    const settle = page.getByRole('button', { name: 'Settle cycle (final)' })
    await expectRed(settle)
    await settle.click()
    await page.getByText('Cycle settled').waitFor()
    await side('Over').getByText('returned', { exact: true }).waitFor()
    await side('Short').getByText('carried', { exact: true }).waitFor()
    await expectAccessible(page)
    await page.getByText(/, by Dana Reyes$/).waitFor()
    await page.getByRole('link', { name: 'Pay cycles' }).first().click()
    await page.getByRole('row', { name: /Closed Settled .* Dana Reyes/ }).waitFor()
    await close(page)
  })

  test('must type the total of a settlement below 90 % or above 110 % of the deductions, and ambiguous amounts are rejected', async () => {
    const { harness, open, close } = pages
    const other = await harness.addPartner('Unusual Couriers')
    const member = await harness.addMember({ key: other.key, available: 20_000 })
    await harness.withdraw({ key: other.key, memberId: member, amount: 10_000 })
    await harness.call('POST', '/v1/sandbox/clock', { key: other.key, body: { next: 'cycle_close' } })
    const { id } = other.payCycle
    const page = await open(`/console/${other.partner.id}/cycles/${id}`, { isOperator: true })
    await page.getByText('Payroll has not yet reported').waitFor()
    await drop(page, csv('pounds.csv', `member_id,amount,currency\n${member},10000,GBP\n`))
    await page.getByText('name it amount_decimal for amounts such as 120.00, or amount_minor').waitFor()
    await drop(page, csv('two.csv', `member_id,amount_decimal,amount_minor,currency\n${member},40.00,10000,GBP\n`))
    await page.getByText('amount_decimal is 40.00 and amount_minor is 10000, which is not the same amount').waitFor()
    const settle = page.getByRole('button', { name: 'Settle cycle (final)' })
    const asksForTotal = async (taken: string) => {
      await drop(page, csv(`${taken}.csv`, `member_id,amount_decimal,currency\n${member},${taken},GBP\n`))
      await page.getByRole('heading', { name: `${taken}.csv` }).waitFor()
      await settle.waitFor()
      return (await page.getByLabel('Total taken, GBP').count()) === 1
    }
    expect([await asksForTotal('90.00'), await asksForTotal('110.00')]).toEqual([false, false])
    expect([await asksForTotal('110.01'), await asksForTotal('89.99')]).toEqual([true, true])
    await drop(page, csv('payroll.csv', `member_id,amount_decimal,currency\n${member},40.00,GBP\n`))
    await page.getByText('The file takes £40.00 of £100.00.').waitFor()
    await expectAccessible(page)
    await settle.click()
    await page.getByText('is not an amount').waitFor()
    await page.getByLabel('Total taken, GBP').fill('400')
    await settle.click()
    await page.getByText('Does not match the total of the file, £40.00').waitFor()
    const path = `/v1/pay/cycles/${id}/settlement`
    expect((await harness.call('GET', path, { key: other.key })).status).toBe(404)
    await page.getByLabel('Total taken, GBP').fill('£40.00')
    await settle.click()
    await page.getByText('Cycle settled').waitFor()
    expect((await harness.call('GET', path, { key: other.key })).body.lines).toMatchObject([{ outcome: 'short' }])
    await close(page)
  })

  test('sees the cycles in a calendar with a linkable address, and can use it with the keyboard and on a phone', async () => {
    const { harness, open, close, origin } = pages
    const page = await open('cycles?month=2026-03', { roles: ['payroll'] })
    await page.getByRole('heading', { name: 'March 2026' }).waitFor()
    const march = page.getByRole('link', { name: '1 Mar 2026 to 31 Mar 2026, Closed' }).first()
    await march.waitFor()
    await page.getByText('ends 31 Mar').waitFor()
    await expectAccessible(page)
    await march.focus()
    await page.keyboard.press('PageDown')
    await page.getByRole('heading', { name: 'April 2026' }).waitFor()
    await expect.poll(() => page.url()).toContain('month=2026-04')
    await page.getByRole('link', { name: '1 Apr 2026 to 30 Apr 2026, Open' }).first().waitFor()
    await page.getByRole('link', { name: 'Earlier month' }).click()
    await march.focus()
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: '1 Mar 2026 – 31 Mar 2026' }).waitFor()
    await page.setViewportSize(phone.viewport)
    await page.goto(`${origin}/console/${harness.partner.id}/cycles?month=2026-03`)
    await march.waitFor()
    await expectToFit(page)
    await expectAccessible(page)
    await close(page)
  })

  test('can work through three hundred errors in a file of ten thousand members', async () => {
    const { open, close } = pages
    const header = ['email', 'first_name', 'last_name', 'phone', 'tier']
    const rows = Array.from({ length: 10_000 }, (_, index) => [
      index % 100 === 0 ? 'no address' : `person-${index}@example.com`,
      ...['Ada', 'Byron', index % 100 === 1 ? '12' : ''],
      index % 100 === 2 ? 'Platinum' : 'Silver',
    ])
    const page = await open('lists', { roles: ['payroll'] })
    await drop(page, csv('all.csv', [header, ...rows].map(row => row.join()).join('\n')))
    await page.getByText('300 rows have errors').waitFor()
    await expectAccessible(page)
    const rowCount = () => page.locator('.sheet tbody tr').count()
    expect(await rowCount()).toBe(100)
    await page.getByRole('button', { name: 'Show more of 300 rows' }).click()
    await expect.poll(rowCount).toBe(200)
    await page.getByRole('button', { name: 'tier 100' }).click()
    await expect.poll(rowCount).toBe(100)
    expect(new Set(await page.locator('td.sheet-bad').allTextContents())).toEqual(new Set(['Platinum']))
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Errors as CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('errors-of-all.csv')
    await close(page)
  })

  test('finds members while typing, can search for any text, and a click hits the row it was aimed at', async () => {
    const { harness, open, close } = pages
    const partner = await harness.addPartner('Search Couriers')
    for (const [index, lastName] of ['Zabala', 'Zacharias', 'Zebrowska', 'Quigley'].entries()) {
      const body = { email: `search-${index}@example.com`, firstName: 'Ann', lastName, tier: 'Silver' }
      expect((await harness.call('POST', '/v1/members', { key: partner.key, body })).status).toBe(201)
    }
    const page = await open(`/console/${partner.partner.id}/members`, { isOperator: true })
    await page.getByRole('cell', { name: 'Ann Quigley' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('z')
    await page.getByText('Type one more letter').waitFor()
    expect(await page.getByRole('row').count()).toBe(5)
    await page.keyboard.type('a')
    await page.getByText('2 found').waitFor()
    await page.getByPlaceholder(/full e-mail/).fill('%😀')
    await page.getByText('No members match').waitFor()
    await page.getByPlaceholder(/full e-mail/).fill('')
    await page.getByText('4 found').waitFor()
    const aimed = await page.getByRole('cell', { name: 'Ann Zebrowska' }).boundingBox()
    // The response arrives between press and release.
    const { promise: pressed, resolve: press } = Promise.withResolvers<void>()
    await page.route(/search=zac/, async route => {
      await pressed
      await route.continue()
    })
    await page.keyboard.type('zac')
    await page.mouse.move((aimed?.x ?? 0) + 20, (aimed?.y ?? 0) + 10)
    await page.mouse.down()
    press()
    await page.getByText('1 found').waitFor()
    await page.mouse.up()
    await page.getByRole('heading', { name: 'Ann Zebrowska' }).waitFor()
    await close(page)
  })

  test('sees that a search found at least a thousand members', async () => {
    const { harness, open, close } = pages
    const { partner, key } = await harness.addPartner('Many Couriers')
    const rows = Array.from({ length: 1_001 }, (_, index) => `many-${index}@example.com,Many,Member,,Silver`)
    const raw = ['email,first_name,last_name,phone,tier', ...rows].join('\n')
    await harness.call('PUT', '/v2/members/jobs/csv', { key, raw, headers: { 'content-type': 'text/csv' } })
    const log = pino({ level: 'silent' })
    await memberImportTasks['apply-member-imports']({ db: harness.db, log, now: harness.clock.now })
    const page = await open(`/console/${partner.id}/members?search=many`, { isOperator: true })
    await page.getByText('1,000+ found').waitFor()
    await page.goto(`${pages.origin}/console/${partner.id}/members`)
    await page.getByText('1,001 found').waitFor()
    await close(page)
  })

  test('sees first why a member cannot withdraw and which attempts were refused, and fixes the cause with one button', async () => {
    const { harness, open, close } = pages
    const invited = await harness.call('POST', '/v1/members', {
      body: { email: 'fay@example.com', firstName: 'Fay', lastName: 'Marsh', tier: 'Silver' },
    })
    const { memberId } = invited.body
    await harness.call('POST', `/v1/members/${memberId}/activate`)
    const payDetails = [{ memberId, money: { amount: 9_000, currency: 'GBP' } }]
    await harness.call('POST', '/v1/pay/run', { body: { payDetails } })
    await harness.requestIntent({ memberId, amount: 2_000 })
    await harness.flushRequestLog()
    const page = await open(`members/${memberId}`, { roles: ['payroll', 'support'] })
    const reason = page.getByRole('region', { name: 'Cannot withdraw' })
    await reason.getByText('The member has no bank account').waitFor()
    await page.getByRole('cell', { name: 'No bank account, or the account fails its check' }).waitFor()
    await expectAccessible(page)
    await page.setViewportSize(phone.viewport)
    await expectToFit(page)
    await page.setViewportSize(desk.viewport)
    await reason.getByRole('button', { name: 'Add a bank account' }).click()
    await expect.poll(() => page.evaluate<string>('document.activeElement.name')).toBe('accountHolder')
    await page.keyboard.type('Fay Marsh')
    await page.getByLabel('Sort code').fill('089999')
    await page.getByLabel('Account number').fill('66374958')
    await page.getByRole('button', { name: 'Save' }).click()
    await reason.waitFor({ state: 'detached' })
    await page.getByText('Can be withdrawn').waitFor()
    await harness.withdraw({ memberId, amount: 2_000 })
    await page.reload()
    const line = page.getByRole('table', { name: 'Statement' }).getByRole('row', { name: 'Withdrawal' })
    await line.getByText('Held').waitFor()
    await line.getByText('fee £0.50').waitFor()
    expect(await line.count()).toBe(1)
    await page.getByRole('cell', { name: 'withdrawal.held' }).waitFor()
    await close(page)
  })

  test('an offboarded member is reinstated, and a member held for review released, by the button next to the reason', async () => {
    const { harness, open, close } = pages
    const memberId = await harness.addMember({ available: 9_000 })
    await harness.call('DELETE', `/v1/members/${memberId}`)
    const page = await open(`members/${memberId}`, { roles: ['payroll'] })
    const reason = page.getByRole('region', { name: 'Cannot withdraw' })
    await reason.getByRole('button', { name: 'Reinstate' }).click()
    await page.getByText('Sam is reinstated').waitFor()
    await harness.call('POST', `/v1/members/${memberId}/activate`)
    await harness.db.updateTable('members').set({ reviewReason: 'MD07' }).where('id', '=', memberId).execute()
    await page.reload()
    await reason.getByText('Ask the operator', { exact: true }).waitFor()
    await close(page)

    const operator = await open(`members/${memberId}`, { isOperator: true })
    const shown = operator.getByRole('region', { name: 'Cannot withdraw' })
    await shown.getByRole('button', { name: 'Release' }).click()
    await operator.getByRole('textbox', { name: 'Reason' }).fill('The bank confirmed the account')
    await expectAccessible(operator)
    await operator.getByRole('dialog').getByRole('button', { name: 'Release' }).click()
    await shown.waitFor({ state: 'detached' })
    await close(operator)
  })

  test('each reason why a member cannot withdraw has a button with the remedy', async () => {
    const { harness, open, close, origin } = pages
    const { db, clock } = harness
    const add = (options: Parameters<typeof harness.addMember>[0]) =>
      harness.addMember({ key: other.key, available: 9_000, ...options })
    const other = await harness.addPartner('Reason Couriers')
    const of = { partnerId: other.partner.id }
    await harness.addTier('Once', { ...bronze, withdrawalsPerDay: 1 }, of)
    const [mistyped, limited, poor, fine] = [
      await add({}),
      await add({ tier: 'Once' }),
      await add({ available: 0 }),
      await add({}),
    ]
    const account = { ...goodAccount, accountNumber: '66374959' }
    await db
      .transaction()
      .execute(tx => setUncheckedAccount(tx, { ...of, memberId: mistyped, account, now: clock.now() }))
    await harness.withdraw({ key: other.key, memberId: limited, amount: 2_000 })

    const page = await open(`/console/${of.partnerId}/members/${mistyped}`, { isOperator: true })
    const reason = page.getByRole('region', { name: 'Cannot withdraw' })
    const look = async (memberId: string, text: string) => {
      await page.goto(`${origin}/console/${of.partnerId}/members/${memberId}`)
      await reason.getByText(text).waitFor()
    }
    const focused = async (name: string) => {
      await expect.poll(() => page.evaluate<string>('document.activeElement.name')).toBe(name)
      await page.keyboard.press('Escape')
    }
    await look(mistyped, 'bank account fails its check')
    await reason.getByRole('button', { name: 'Change the bank account' }).click()
    await focused('accountHolder')
    await look(limited, 'The tier allows 1 withdrawal a day')
    await reason.getByRole('button', { name: 'Change the tier' }).click()
    await focused('tier')
    await look(poor, 'Less than the minimum withdrawal is available')
    await reason.getByRole('link', { name: 'Add pay' }).waitFor()
    // Sandbox tools come after payroll's actions.
    expect(await page.locator('.actions').first().getByRole('button').allInnerTexts()).toEqual([
      'Data',
      'Change',
      'Offboard',
    ])

    await db.transaction().execute(tx => pausePartner(tx, of.partnerId))
    await look(fine, 'The operator has paused withdrawals')
    await reason.getByRole('link', { name: 'Resume the partner' }).waitFor()
    await db.transaction().execute(tx => resumePartner(tx, of.partnerId))
    await db
      .transaction()
      .execute(tx => float.setFloor(tx, { ...of, currency: 'GBP', floor: 9_000_000_000n, now: clock.now() }))
    await look(fine, 'The free float is below its floor')
    await reason.getByRole('link', { name: 'Fund the float' }).click()
    await page.getByRole('heading', { name: 'Reason Couriers' }).waitFor()
    await close(page)
  })

  test('a name of the maximum length wraps on a phone, and every drawer focuses its first field', async () => {
    const { harness, open, close, origin } = pages
    const { memberId } = await withdraw(harness)
    const lastName = 'Wolfeschlegelsteinhausenbergerdorff'.repeat(3).slice(0, 100)
    await harness.call('PATCH', `/v1/members/${memberId}`, { body: { lastName } })
    const page = await open(`members/${memberId}`, { roles: ['payroll', 'support'] }, phone)
    await page.getByRole('heading', { name: lastName }).waitFor()
    for (const path of [`members/${memberId}`, 'members', 'withdrawals', '']) {
      await page.goto(`${origin}/console/${harness.partner.id}/${path}`)
      await page.getByText(lastName).first().waitFor()
      await expectToFit(page, path)
    }
    const focused = "document.activeElement.closest('.drawer-body') && document.activeElement.name"
    await page.goto(`${origin}/console/${harness.partner.id}/members/${memberId}`)
    for (const [button, field] of [
      ['Change', 'firstName'],
      ['Show', 'reason'],
      ['Data', 'reason'],
    ] as const) {
      await page.getByRole('button', { name: button, exact: true }).click()
      await expect.poll(() => page.evaluate<string>(focused)).toBe(field)
      await page.keyboard.press('Escape')
    }
    await close(page)
  })

  test('shows an account and a date of birth for a reason, and saves everything about a member as a page', async () => {
    const { harness, open, close } = pages
    const { memberId } = await withdraw(harness)
    await harness.call('PATCH', `/v1/members/${memberId}`, { body: { dob: '1990-06-24' } })
    const page = await open(`members/${memberId}`, { roles: ['payroll'] })
    await page.getByText('••••-••-••').waitFor()
    expect(await page.content()).not.toContain(goodAccount.accountNumber)
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('She asks which')
    await page.getByRole('dialog').getByRole('button', { name: 'Show' }).click()
    await page.getByText(goodAccount.accountNumber).waitFor()
    await page.locator('time[datetime="1990-06-24"]').waitFor()
    await page.getByRole('button', { name: 'Data', exact: true }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('She asked for it')
    const saving = page.waitForEvent('download')
    await page.getByRole('dialog').getByRole('button', { name: 'Save the page' }).click()
    const saved = await saving
    expect(saved.suggestedFilename()).toBe(`${memberId}.html`)
    expect(readFileSync(await saved.path(), 'utf8')).toContain(goodAccount.accountNumber)
    await close(page)
  })

  test('finds the withdrawals of a member by name', async () => {
    const { harness, open, close } = pages
    const { id, memberId } = await withdraw(harness)
    await withdraw(harness)
    await harness.call('PATCH', `/v1/members/${memberId}`, { body: { lastName: 'Quincey' } })
    const page = await open('withdrawals', { roles: ['payroll'] })
    await page.getByRole('row').nth(1).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('quinc')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Sam Quincey' }).click()
    await expect.poll(() => page.url()).toContain(`member=${memberId}`)
    await expect.poll(() => page.getByRole('row').count()).toBe(2)
    await expectAccessible(page)
    await page.getByRole('row').nth(1).press('Enter')
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    await expect.poll(() => page.url()).toContain(id)
    await close(page)
  })
})
