import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Download, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import * as railHolds from '../../src/payouts/books/rail-holds.ts'
import { fileChannel } from '../../src/payouts/channels/files/channel.ts'
import { fileRailsOf } from '../../src/payouts/channels/rail.ts'
import { readRails } from '../../src/payouts/read-rails.ts'
import type { TaskName } from '../../src/worker/task.ts'
import {
  accountReport,
  type Entry,
  inDecimals,
  readCreditTransfer,
  statusReport,
  transaction,
} from '../banks/iso20022.ts'
import { signIn } from '../harness/console.ts'
import { euAccount } from '../harness/samples.ts'
import { preparePayments } from '../payouts/prepared-payments.ts'
import { extent } from '../runner/extent.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import { type ConsolePages, expectRed, expectToFit, phone, startConsole, waitUntilLoaded } from './console-pages.ts'

vi.setConfig({ testTimeout: 180_000 })

const ownIban = 'DE75512108001245126199'
const otherIban = 'DE89370400440532013000'
const ownGbp = { name: 'Acme Ltd', sortCode: '089999', accountNumber: '66374958' }

/** Rail settings as an operator writes them: no automatic approval, and files transferred manually. */
const configured = {
  rails: [
    {
      ...{ name: 'sepa', type: 'sepa-file', currency: 'EUR', cutOff: '15:00', timeZone: 'Europe/Berlin' },
      debtors: { default: { name: 'Acme GmbH', iban: ownIban } },
    },
    {
      ...{ name: 'bacs', type: 'standard18-file', currency: 'GBP', cutOff: '15:00', timeZone: 'Europe/London' },
      ...{ scheme: 'bacs', serviceUserNumber: '123456', debtors: { default: ownGbp } },
      returns: {
        format: 'csv',
        columns: { reference: 'Reference', amount: 'Amount', reasonCode: 'Code', reasonText: 'Reason' },
      },
    },
  ],
}

let pages: ConsolePages
let folder: string
let rails: FileRailSettings[]
let operator: Awaited<ReturnType<ConsolePages['harness']['addOperator']>>

/** Runs a task of the worker with the test's clock. */
const run = (task: TaskName) => pages.harness.runTask(task)

type Payment = { reference: string; withdrawalId: string; amount: { amount: number } }

const railOf = { EUR: 'sepa', GBP: 'bacs' } as const

/** Moves the clock to 10:00 UTC on the next Tuesday. */
async function startDay() {
  const { pool, clock } = pages.harness
  const { rows } = await pool.query('select max(created_at) as latest from withdrawals')
  const day = (rows[0].latest ?? new Date('2026-03-03T00:00:00.000Z')).getTime() + 7 * 86_400_000
  clock.set(new Date(`${new Date(day).toISOString().slice(0, 10)}T10:00:00.000Z`))
}

/** Creates a batch before its cut-off, on a new day, with one payment per net amount. */
async function openBatchOf(currency: keyof typeof railOf, ...nets: number[]): Promise<string> {
  const { harness } = pages
  const { clock } = harness
  await startDay()
  for (const net of nets) await harness.addWithdrawal({ currency, net })
  clock.advance({ seconds: 30 })
  await run('submit-withdrawals')
  const query = `rail=${railOf[currency]}&statuses=building&take=1`
  return (await operator.call('GET', `/payout-batches?${query}`)).body.batches[0].id
}

/** Creates a batch past its cut-off. */
async function closedBatch(currency: keyof typeof railOf, ...nets: number[]) {
  await openBatchOf(currency, ...nets)
  pages.harness.clock.advance({ minutes: 6 * 60 })
  await run('send-payout-batches')
  const query = `rail=${railOf[currency]}&statuses=building&take=1`
  const [batch] = (await operator.call('GET', `/payout-batches?${query}`)).body.batches
  expect(batch).toMatchObject({ needsApproval: true, paymentCount: nets.length })
  const { payments } = (await operator.call('GET', `/payout-batches/${batch.id}/payments`)).body
  const { id, messageId } = batch as { id: string; messageId: string }
  return { id, messageId, payments: (payments as Payment[]).sort((a, b) => a.amount.amount - b.amount.amount) }
}

/** Approves a batch as two users, through the API. */
async function approveByTwo(id: string) {
  for (let count = 0; count < 2; count++) {
    const user = await signIn(pages.harness, { isOperator: true })
    const answer = await user.call('POST', `/operator/v1/payout-batches/${id}/approve`, { partner: null })
    expect(answer.status, answer.text).toBe(200)
  }
}

async function sentBatch(currency: keyof typeof railOf, ...nets: number[]) {
  const batch = await closedBatch(currency, ...nets)
  await approveByTwo(batch.id)
  expect((await operator.call('POST', `/payout-batches/${batch.id}/export`)).status).toBe(200)
  return batch
}

const upload = async (rail: string, name: string, raw: string) => {
  const headers = { 'content-type': 'application/octet-stream' }
  const answer = await operator.call('POST', `/rails/${rail}/files?name=${name}`, { raw, headers })
  expect(answer.status, answer.text).toBe(200)
}

const drop = (page: Page, { to, name, text }: { to: string; name: string; text: string | Buffer }) =>
  page
    .getByLabel(`Drop the bank’s files for ${to}`)
    .setInputFiles({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(text) })
const resultOf = (page: Page, name: string) => page.getByRole('list', { name: 'Imported files' }).getByText(name)

/** Drops a file and waits for the page's message about the file. */
async function dropped(page: Page, file: { to: string; name: string; text: string | Buffer }, says: string | RegExp) {
  await drop(page, file)
  await resultOf(page, file.name).first().waitFor()
  await page
    .locator('.file-result')
    .filter({ hasText: file.name })
    .filter({ hasText: says })
    .first()
    .waitFor({ timeout: 20_000 })
}

/** A camt.053 statement with today's closing balance. */
function statementOf(id: string, { entries = [], balance }: { entries?: Entry[]; balance: bigint }): string {
  const stated =
    '<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp>' +
    `<Amt Ccy="EUR">${inDecimals(balance)}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>${day()}</Dt></Dt></Bal>`
  return accountReport(message(id), { kind: 'camt.053', iban: ownIban, entries }).replace('</Stmt>', `${stated}</Stmt>`)
}

const exceptionsAbout = async (about: string) =>
  (await operator.call('GET', '/payout-exceptions?state=open&take=1000')).body.exceptions.filter(
    ({ reference }: { reference: string }) => reference === about,
  )

const bytesOf = async (download: Download) => readFileSync(await download.path())
const statusOf = async (id: string) => (await pages.harness.getWithdrawal(id)).status
async function eurFloat(): Promise<number> {
  const { floats } = (await operator.call('GET', `/partners/${pages.harness.partner.id}/float`)).body
  return floats.find(({ currency }: { currency: string }) => currency === 'EUR')?.float.amount ?? 0
}
const openBatch = (id: string, options = {}) =>
  pages.open(`/console/operator/batches/${id}`, { isOperator: true }, options)
const says = (page: Page, text: string | RegExp) =>
  page.getByText(text).filter({ visible: true }).first().waitFor({ timeout: 20_000 })
const message = (id: string) => ({ id, at: pages.harness.clock.now() })
const day = () => pages.harness.clock.now().toISOString().slice(0, 10)

describe.skipIf(executablePath === undefined)('the pages of payouts', () => {
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'midmonth-console-payouts-'))
    const file = path.join(folder, 'rails.json')
    writeFileSync(file, JSON.stringify(configured))
    rails = fileRailsOf(await readRails(file, 'sandbox'))
    pages = await startConsole({ rails, bankOf: () => 'connected' })
    operator = await pages.harness.addOperator()
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true })
    await pages?.stop()
  })

  test('a batch needs two different approvers, and is then held, released, exported and downloaded', async () => {
    const { close, origin } = pages
    const { id, messageId, payments } = await closedBatch('EUR', 5_000, 6_000, 7_000)
    const [first, second, third] = payments
    const page = await pages.open('/console/operator/batches', { isOperator: true })
    await page.getByRole('cell', { name: 'Awaiting approval' }).first().waitFor()
    await expectAccessible(page)
    await page.getByRole('cell', { name: '€180.00' }).click()
    await says(page, '0 of 2')
    // The same reader's second window.
    const window = await page.context().newPage()
    await window.goto(`${origin}/console/operator/batches/${id}`)
    await window.getByRole('button', { name: 'Approve' }).waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await says(page, 'You have approved this batch. Another person must also approve it.')
    await says(page, '1 of 2')
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    await expectAccessible(page)
    await window.getByRole('button', { name: 'Approve' }).click()
    await says(window, 'You have already approved this batch. Another person must also approve it.')
    expect((await operator.call('GET', `/payout-batches/${id}`)).body).toMatchObject({ status: 'building' })
    await window.close()

    const other = await openBatch(id)
    await says(other, /Approved by Dana Reyes/)
    await other.getByRole('button', { name: 'Hold' }).click()
    await other.getByRole('textbox', { name: 'Reason' }).fill('one payee is unclear')
    await expectAccessible(other)
    await other.getByRole('dialog').getByRole('button', { name: 'Hold' }).click()
    await says(other, /^Held by you since .*: one payee is unclear$/)
    await page.reload()
    await says(page, /^Held by Dana Reyes since .*: one payee is unclear$/)
    await close(page)
    await other.getByRole('button', { name: 'Approve' }).click()
    await says(other, '2 of 2 approvals')
    await says(other, 'Held by you')
    expect(await other.getByRole('button', { name: 'Export the file' }).count()).toBe(0)
    await other.getByRole('button', { name: 'Release' }).click()
    await other.getByRole('textbox', { name: 'Reason' }).fill('the payee answered')
    await other.getByRole('dialog').getByRole('button', { name: 'Release' }).click()
    await other.getByRole('button', { name: 'Export the file' }).waitFor()
    await says(other, /^Released by you$/)
    await says(other, /^the payee answered$/)

    await other.getByRole('button', { name: `Remove ${third?.reference}` }).click()
    await expectRed(other.getByRole('dialog').getByRole('button', { name: 'Remove' }))
    await other.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await other.getByRole('dialog').locator('.field-problem').waitFor()
    await other.getByRole('textbox', { name: 'Reason' }).fill('Stopped on the phone')
    await expectAccessible(other)
    await other.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await other.getByRole('cell', { name: /^Removed/ }).waitFor()
    const remaining = BigInt((first?.amount.amount ?? 0) + (second?.amount.amount ?? 0))
    await says(other, `€${inDecimals(remaining)}`)
    await run('read-rail-reports')
    expect(await statusOf(third?.withdrawalId ?? '')).toBe('failed')

    await other.getByRole('button', { name: 'Export the file' }).click()
    const link = other.getByRole('link', { name: 'Download the file' })
    await link.waitFor()
    await expectAccessible(other)
    const [download] = await Promise.all([other.waitForEvent('download'), link.click()])
    expect(download.suggestedFilename()).toBe(`${messageId}.xml`)
    const bytes = await bytesOf(download)
    expect(bytes.toString()).toBe((await operator.call('GET', `/payout-batches/${id}/file?again=true`)).text)
    // The page asks for confirmation before another download.
    await other.getByRole('button', { name: 'Download the file again' }).click()
    await other.getByText('A bank that receives a file twice may pay all members twice').waitFor()
    await expectAccessible(other)
    const again = other.getByRole('link', { name: 'The bank does not have it: download' })
    const [copy] = await Promise.all([other.waitForEvent('download'), again.click()])
    expect((await bytesOf(copy)).toString()).toBe(bytes.toString())
    const { fileSha256 } = (await operator.call('GET', `/payout-batches/${id}`)).body
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(fileSha256)
    expect(
      readCreditTransfer(bytes.toString(), 'download')
        .orders.map(({ reference }) => reference)
        .sort(),
    ).toEqual([first?.reference, second?.reference].sort())
    await other.reload()
    await says(other, /^File downloaded by you$/)
    await says(other, 'Marked as sent to the bank')
    await waitUntilLoaded(other)
    expect(await other.getByRole('button', { name: 'Hold' }).count()).toBe(0)
    expect(await other.getByRole('button', { name: /^Remove MM/ }).count()).toBe(0)
    await close(other)
  })

  test('in a sandbox, the operator simulates the bank: its answer is imported and updates the withdrawals', async () => {
    const { id, payments } = await sentBatch('EUR', 5_100, 6_100)
    const page = await openBatch(id)
    await page.getByRole('button', { name: 'Simulate the bank' }).click()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Pay all' }).click()
    await says(page, /^2 records imported/)
    await page.getByRole('cell', { name: 'Paid' }).first().waitFor()
    await page.getByRole('button', { name: 'Simulate the bank' }).waitFor({ state: 'detached' })
    await run('read-rail-reports')
    for (const { withdrawalId } of payments) expect(await statusOf(withdrawalId)).toBe('paid')
    await pages.close(page)
  })

  test('two users close a batch before its cut-off; its page names payees, partners and the time zone of the cut-off', async () => {
    const { harness, close } = pages
    const id = await openBatchOf('EUR', 5_200)
    const page = await openBatch(id)
    await says(page, '0 of 2 approvals')
    await says(page, /15:00$|3:00 PM$/)
    await says(page, 'Europe/Berlin. Payments can join the batch until then')
    const row = page.getByRole('row').nth(1)
    await row.waitFor()
    const cells = await row.getByRole('cell').allTextContents()
    expect(cells.slice(0, 3)).toEqual([euAccount.accountHolder, `…${euAccount.iban.slice(-4)}`, harness.partner.name])
    const propose = async (from: Page, submit: string) => {
      await from.getByRole('button', { name: 'Close early' }).click()
      await from.getByRole('dialog').getByRole('button', { name: submit }).click()
      await from.getByRole('dialog').locator('.field-problem').waitFor()
      await from.getByRole('textbox', { name: 'Reason' }).fill('the bank closes early')
      await expectAccessible(from)
      await from.getByRole('dialog').getByRole('button', { name: submit }).click()
    }
    await propose(page, 'Propose closing')
    await says(page, /^you proposed on .* that the batch be closed early: the bank closes early\. Another person/)
    await expectAccessible(page)
    expect(await page.getByRole('button', { name: 'Close early' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Withdraw the proposal' }).click()
    await says(page, /^Proposal to close withdrawn by you/)
    await propose(page, 'Propose closing')

    const other = await openBatch(id)
    await says(other, /Dana Reyes proposed on .* Close the batch early to confirm/)
    await propose(other, 'Close the batch')
    await says(other, /^Closed early by you/)
    await says(other, 'Closed to further payments')
    await other.getByRole('button', { name: 'Approve' }).click()
    await says(other, '1 of 2 approvals')
    await expectAccessible(other)
    await close(page)
    await close(other)
  })

  test('dropped files with the bank’s answers are imported; any other file is rejected completely, with the reason', async () => {
    const { harness, close, origin } = pages
    const { id, messageId, payments } = await sentBatch('EUR', 5_000, 6_000)
    const [first, second] = payments
    const page = await pages.open('/console/operator/batches', { isOperator: true })
    const report = statusReport(message('P002-1'), { messageId, status: 'PART' }, [
      { reference: first?.reference ?? '', status: 'ACSP' },
      { reference: second?.reference ?? '', status: 'RJCT', reason: 'AC04' },
    ])
    await dropped(page, { to: 'sepa', name: 'pain002.xml', text: report }, '3 records imported.')
    await dropped(page, { to: 'sepa', name: 'again.xml', text: report }, 'imported before; nothing changed')
    const entry = {
      ...{ bank: 'B-1', amount: 5_000n, direction: 'DBIT' as const, bookedOn: day() },
      details: transaction({ reference: first?.reference ?? '' }),
    }
    const debit = (iban: string, name: string) =>
      accountReport(message(name), { kind: 'camt.054', iban, entries: [entry] })
    const refused: [string, string | Buffer, string | RegExp][] = [
      ['other-bank.xml', debit(otherIban, 'C054-0'), 'is about the account …3000, which is not one of this rail'],
      ['rubbish.bin', Buffer.from('rubbish '.repeat(131_072)), 'The XML is broken'],
      ['zeros.bin', Buffer.alloc(1_048_576), 'Nothing of the file was booked'],
      ['dtd.xml', report.replace('?>', '?><!DOCTYPE Document [<!ENTITY x "y">]>'), 'A DOCTYPE is not allowed'],
      ['half.xml', report.slice(0, -30), 'The XML is broken'],
      [
        'pain001.xml',
        report.replaceAll('CstmrPmtStsRpt', 'CstmrCdtTrfInitn'),
        'send pain.002, camt.052, camt.053 or camt.054',
      ],
      ['empty.xml', '', 'The file is empty'],
    ]
    for (const [name, text, why] of refused) await dropped(page, { to: 'sepa', name, text }, why)
    await expectAccessible(page)
    expect(await page.locator('.file-result.tone-bad').count()).toBe(refused.length)
    // An empty file is rejected before it is parsed as a bank file.
    for (const text of await page
      .locator('.file-result.tone-bad')
      .filter({ hasNotText: 'empty.xml' })
      .allTextContents())
      expect(text.match(/Nothing of the file was booked/g), text).toHaveLength(1)
    await dropped(page, { to: 'sepa', name: 'camt054.xml', text: debit(ownIban, 'C054-1') }, '1 record imported.')
    await run('read-rail-reports')
    expect([await statusOf(first?.withdrawalId ?? ''), await statusOf(second?.withdrawalId ?? '')]).toEqual([
      ...['paid', 'failed'],
    ])
    await page.goto(`${origin}/console/operator/batches/${id}`)
    await says(page, 'Settled: every payment has an answer')
    await says(page, 'Acknowledged by the bank')
    await page.getByRole('cell', { name: /^Failed AC04 The account is closed$/ }).waitFor()

    await page.goto(`${origin}/console/${harness.partner.id}/withdrawals/${first?.withdrawalId}`)
    await says(page, 'Answer from the bank: paid')
    await says(page, /^File camt054.xml, line 1, booked on/)
    await says(page, 'Answer about the batch')
    await says(page, `File ${messageId}.xml`)
    await expectAccessible(page)
    await page.getByRole('link', { name: /^bat_/ }).first().click()
    await page.getByRole('heading', { name: `Batch ${messageId}` }).waitFor()
    await close(page)

    // Only operators see the batch: a partner's user sees what the public API returns.
    const clerk = await pages.open(`withdrawals/${first?.withdrawalId}`, { roles: ['payroll'] })
    await says(clerk, 'Paid: confirmed by the bank')
    await says(clerk, first?.reference ?? '')
    await waitUntilLoaded(clerk)
    expect(await clerk.getByText('Batch').count()).toBe(0)
    await close(clerk)
  })

  test('a Bacs batch is exported as Standard 18, and returned credits are imported; other Bacs reports are rejected', async () => {
    const { close, origin } = pages
    const { id, payments } = await closedBatch('GBP', 5_000, 6_000)
    await approveByTwo(id)
    const page = await openBatch(id)
    await page.getByRole('button', { name: 'Export the file' }).click()
    const link = page.getByRole('link', { name: 'Download the file' })
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
    const file = (await bytesOf(download)).toString()
    expect(file).toBe((await operator.call('GET', `/payout-batches/${id}/file?again=true`)).text)
    for (const { reference } of payments) expect(file).toContain(reference)

    await page.goto(`${origin}/console/operator/batches`)
    const [first] = payments
    const arudd =
      '<?xml version="1.0"?><BACSDocument><Data><ARUDD><Advice><OriginatingAccountRecords><OriginatingAccountRecord>' +
      `<ReturnedDebitItem ref="${first?.reference}" valueOf="50.00" currency="GBP" returnCode="0"/>` +
      '</OriginatingAccountRecord></OriginatingAccountRecords></Advice></ARUDD></Data></BACSDocument>'
    await dropped(page, { to: 'bacs', name: 'arudd.xml', text: arudd }, 'Nothing of the file was booked')
    await dropped(page, { to: 'bacs', name: 'rubbish.bin', text: Buffer.alloc(1_048_576, 'x') }, 'Nothing of the file')
    const arucs = `Reference,Amount,Code,Reason\r\n${first?.reference},50.00,B,Account closed\r\n`
    await dropped(page, { to: 'bacs', name: 'arucs.csv', text: arucs }, '1 record imported.')
    await dropped(page, { to: 'bacs', name: 'arucs-again.csv', text: arucs }, 'imported before; nothing changed')
    await run('read-rail-reports')
    expect(await statusOf(first?.withdrawalId ?? '')).toBe('returned')
    await page.goto(`${origin}/console/operator/batches/${id}`)
    await page.getByRole('cell', { name: /^Returned/ }).waitFor()
    await close(page)
  })

  test('each exception offers the decisions that apply, and shows the decision taken', async () => {
    const { harness, close, origin } = pages
    const { messageId, payments } = await sentBatch('EUR', 5_000, 6_000, 7_000)
    const [first, second] = payments
    const entry = (bank: string, direction: 'CRDT' | 'DBIT', amount: bigint, details = '') => {
      return { bank, direction, amount, details, bookedOn: day() }
    }
    const entries = [
      entry('X-1', 'CRDT', 250_000n),
      entry('X-2', 'DBIT', 390n),
      // The bank has truncated the reference.
      entry('X-3', 'CRDT', 5_000n, transaction({ reference: 'MMCUTOFF', returned: { reason: 'MS03' } })),
    ]
    const floatBefore = await eurFloat()
    const found = accountReport(message('C053-X'), { kind: 'camt.053', iban: ownIban, entries })
    await upload('sepa', 'statement.xml', found)
    const report = statusReport(message('P002-X'), { messageId }, [
      { reference: first?.reference ?? '', status: 'ACSC' },
      { reference: second?.reference ?? '', status: 'RJCT', reason: 'DUPL' },
    ])
    await upload('sepa', 'duplicate.xml', report)
    const page = await pages.open('/console/operator/exceptions', { isOperator: true })
    await page.getByRole('row').nth(4).waitFor()
    await expectAccessible(page)
    expect(await page.getByRole('row').count()).toBe(5)

    const decide = async (kind: string, choices: string[], fill: () => Promise<void>, ofTwo?: object) => {
      await page.goto(`${origin}/console/operator/exceptions`)
      await page.getByRole('cell', { name: kind, exact: true }).click()
      await page.getByRole('heading', { name: 'Decide' }).waitFor()
      expect(await page.locator('fieldset b').allTextContents(), kind).toEqual(choices)
      await page.getByRole('button', { name: 'Close the exception' }).click()
      await page.locator('.field-problem').first().waitFor()
      await fill()
      await expectAccessible(page)
      await page.getByRole('textbox', { name: 'Reason' }).fill(`decided ${kind}`)
      await page.getByRole('button', { name: 'Close the exception' }).click()
      if (ofTwo !== undefined) {
        await page.getByRole('heading', { name: 'Waiting for a second person' }).waitFor()
        await expectAccessible(page)
        const user = await signIn(harness, { isOperator: true })
        const url = `/operator/v1/payout-exceptions/${page.url().split('/').at(-1)}/close`
        const body = { ...ofTwo, note: `decided ${kind}` }
        expect((await user.call('POST', url, { partner: null, body })).status).toBe(200)
        await page.reload()
      }
      await page.getByRole('heading', { name: 'Decided' }).waitFor()
      await says(page, `decided ${kind}`)
      await expectAccessible(page)
    }
    const choose = (name: string) => page.getByRole('radio', { name }).check()
    await decide('Money out', ['Book', 'Attach', 'Recover', 'Write off', 'Ignore'], () => choose('Ignore'))
    await decide('Money in', ['Book', 'Attach', 'Ignore'], async () => {
      await choose('Book')
      await page
        .getByRole('combobox', { name: 'Partner whose float it is' })
        .selectOption({ label: harness.partner.name })
      await page.getByRole('textbox', { name: 'Movement reference' }).fill('opening transfer')
    })
    const attach = async () => {
      await choose('Attach')
      await page.getByRole('textbox', { name: 'Reason' }).fill('before')
      await page.getByRole('textbox', { name: 'Payment or batch reference' }).fill(second?.reference ?? '')
      await page.getByRole('button', { name: 'Close the exception' }).click()
      await says(page, /The bank returned .*; name the charge of/)
      await page.getByRole('textbox', { name: 'Payment or batch reference' }).fill(first?.reference ?? '')
    }
    const attached = { decision: 'attach', reference: first?.reference }
    await decide('Unmatched', ['Attach', 'Give back', 'Ignore'], attach, attached)
    await decide('Duplicate', ['Attach', 'Give back', 'Ignore'], () => choose('Give back'), { decision: 'give_back' })
    await run('read-rail-reports')
    expect([await statusOf(first?.withdrawalId ?? ''), await statusOf(second?.withdrawalId ?? '')]).toEqual([
      ...['returned', 'failed'],
    ])
    // Neither the returned payment nor the payment that was never made counts.
    expect((await eurFloat()) - floatBefore).toBe(250_000)

    await page.goto(`${origin}/console/operator/exceptions`)
    await says(page, 'Nothing to decide')
    await page.getByRole('button', { name: 'Closed', exact: true }).click()
    await page.getByRole('row').nth(4).waitFor()
    expect(await page.locator('tbody .state').allTextContents()).toEqual(
      expect.arrayContaining(['Ignore', 'Book', 'Attach', 'Give back']),
    )
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ])
    expect((await bytesOf(download)).toString().trim().split('\r\n')).toHaveLength(5)
    await close(page)
  })

  // Runs after the test that counts all exceptions, because this exception stays open.
  test('in a sandbox, the bank accepts one copy of a batch and rejects the second with free text, which opens an exception', async () => {
    const { id, messageId, payments } = await sentBatch('EUR', 5_300, 6_300)
    const page = await openBatch(id)
    for (const answer of ['Accept the batch', 'Reject the batch with free text']) {
      await page.getByRole('button', { name: 'Simulate the bank' }).click()
      await expectAccessible(page)
      await page.getByRole('button', { name: answer }).click()
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
    }
    await expect.poll(async () => (await exceptionsAbout(messageId)).length, { timeout: 20_000 }).toBe(1)
    const [exception] = await exceptionsAbout(messageId)
    expect(exception).toMatchObject({ kind: 'duplicate', reasonCode: 'NARR' })
    await run('read-rail-reports')
    for (const { withdrawalId } of payments) expect(await statusOf(withdrawalId)).toBe('submitted')
    await page.goto(`${pages.origin}/console/operator/exceptions/${exception.id}`)
    await says(page, messageId)
    await pages.close(page)
  })

  test('the outcome of a sent payment without an answer is recorded manually, by two people if two approved the batch', async () => {
    const { harness, close, origin } = pages
    const { id, payments } = await sentBatch('EUR', 5_000, 6_000)
    const [first, second] = payments
    const page = await openBatch(id)
    const record = async (reference = '') => {
      await page.getByRole('button', { name: `Record outcome of ${reference}` }).click()
      const drawer = page.getByRole('dialog', { name: `Outcome of ${reference}` })
      await drawer.getByText('If a later file reports the same outcome, nothing changes').waitFor()
      return drawer
    }
    let drawer = await record(first?.reference)
    await drawer.getByRole('button', { name: 'Record the outcome' }).click()
    await drawer.getByText('Choose an outcome').waitFor()
    await drawer.getByRole('radio', { name: /^Failed/ }).check()
    // Outside the drawer, J and K move from row to row.
    const evidence = drawer.getByRole('textbox', { name: 'Evidence' })
    await evidence.pressSequentially('just spoke with the bank')
    expect(await evidence.inputValue()).toBe('just spoke with the bank')
    await drawer.getByRole('button', { name: 'Record the outcome' }).click()
    await drawer.getByText(/The bank may still pay/).waitFor()
    await drawer.getByRole('radio', { name: /^Returned/ }).check()
    await drawer.getByRole('button', { name: 'Record the outcome' }).click()
    await drawer.getByText('Enter the day on which the bank booked the credit').waitFor()
    await expectAccessible(page)
    await drawer.getByLabel('Booked on').fill(day())
    await drawer.getByRole('textbox', { name: 'Amount that arrived, EUR' }).fill('45.00')
    await drawer.getByRole('button', { name: 'Record the outcome' }).click()
    await says(page, 'Proposed; another person must record the same outcome')
    const user = await signIn(harness, { isOperator: true })
    const outcome = {
      ...{ outcome: 'returned', note: 'seen in the portal', borneBy: 'operator' },
      credit: { bookedOn: day(), amount: { amount: 4_500, currency: 'EUR' } },
    }
    const path = `/operator/v1/payouts/${first?.reference}/outcome`
    const confirmed = await user.call('POST', path, { partner: null, body: outcome })
    expect(confirmed.status, confirmed.text).toBe(200)
    await run('read-rail-reports')
    expect(await statusOf(first?.withdrawalId ?? '')).toBe('returned')
    await page.reload()
    await page.getByRole('cell', { name: /^Returned/ }).waitFor()
    expect(await page.getByRole('button', { name: `Record outcome of ${first?.reference}` }).count()).toBe(0)

    await page.goto(`${origin}/console/${harness.partner.id}/withdrawals/${second?.withdrawalId}`)
    drawer = await record(second?.reference)
    await drawer.getByRole('radio', { name: /^Paid/ }).check()
    await drawer.getByRole('textbox', { name: 'Evidence' }).fill('seen in the portal')
    await drawer.getByRole('button', { name: 'Record the outcome' }).click()
    await says(page, 'Proposed; another person must record the same outcome')
    await page.getByRole('heading', { name: 'Waiting for a second person' }).waitFor()
    await expectAccessible(page)
    // The proposer can only withdraw the proposal; another person confirms.
    expect(await page.getByRole('button', { name: 'Confirm' }).count()).toBe(0)
    const other = await pages.open('/console/operator/exceptions', { isOperator: true })
    const waiting = other.getByRole('table', { name: 'Waiting for a second person' })
    await waiting.getByText('seen in the portal').waitFor()
    await expectAccessible(other)
    await waiting.getByRole('button', { name: 'Confirm' }).click()
    await says(other, 'Confirmed')
    await expect.poll(() => waiting.count(), { timeout: 20_000 }).toBe(0)
    await run('read-rail-reports')
    expect(await statusOf(second?.withdrawalId ?? '')).toBe('paid')
    await close(other)
    await close(page)
  })

  test('a rail is held with a reason and released, even if it is no longer configured', async () => {
    const { harness, close } = pages
    const { db, clock } = harness
    const { id } = await closedBatch('EUR', 5_000)
    await approveByTwo(id)
    await db.transaction().execute(tx => railHolds.hold(tx, { rail: 'left-bank', person: 'Ada', now: clock.now() }))
    const page = await pages.open('/console/operator/rails', { isOperator: true })
    const rail = (name: string) => page.getByRole('row', { name })
    await page.getByRole('row', { name: /left-bank.*no longer in the settings.*by Ada since/ }).waitFor()
    const release = async (name: string) => {
      await rail(name).getByRole('button', { name: 'Release' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click()
    }
    await release('left-bank')
    await expect.poll(() => rail('left-bank').count(), { timeout: 20_000 }).toBe(0)
    await rail('sepa').getByRole('button', { name: 'Hold' }).click()
    await page.getByRole('textbox', { name: 'Reason' }).fill('bank outage')
    await expectAccessible(page)
    await page.getByRole('dialog').getByRole('button', { name: 'Hold' }).click()
    await says(page, /^by you since .*: bank outage$/)
    await expectAccessible(page)
    await page.getByRole('link', { name: 'Payouts' }).click()
    await page.getByRole('cell', { name: '€50.00' }).click()
    await says(page, /^The rail sepa is held by you since .*: bank outage$/)
    expect(await page.getByRole('button', { name: 'Export the file' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Rails' }).click()
    await release('sepa')
    await rail('sepa').getByRole('button', { name: 'Hold' }).waitFor()
    await page.getByRole('link', { name: 'Payouts', exact: true }).first().click()
    await page.getByRole('cell', { name: '€50.00' }).click()
    await page.getByRole('button', { name: 'Export the file' }).waitFor()
    await close(page)
  })

  test('the bank’s statements are compared with the books day by day, and a difference comes with advice', async () => {
    const { harness, close } = pages
    const amount = { amount: 1_000_000, currency: 'EUR' }
    await operator.call('POST', `/partners/${harness.partner.id}/float/fund`, { body: { amount } })
    const eur = await eurFloat()
    const page = await pages.open('/console/operator/batches', { isOperator: true })
    const text = statementOf('C053-F', { balance: BigInt(eur) + 1_234n })
    await dropped(page, { to: 'sepa', name: 'statement.xml', text }, '1 record imported.')
    await page.getByRole('link', { name: 'Float history' }).click()
    await page.getByRole('row', { name: /\+€12\.34/ }).waitFor()
    await says(page, 'A difference is caused by payments')
    await expectAccessible(page)
    const row = await page.getByRole('row', { name: /\+€12\.34/ }).textContent()
    expect(row).toContain(ownIban)
    expect(row).toContain(`€${(eur / 100).toLocaleString('en-GB', { minimumFractionDigits: 2 })}`)
    await page.getByRole('button', { name: '92 days' }).click()
    await waitUntilLoaded(page)
    await page.getByRole('row', { name: /\+€12\.34/ }).waitFor()
    await close(page)
  })

  test.each([
    ['at 1440 px, light', { colorScheme: 'light' }],
    ['at 1440 px, dark', { colorScheme: 'dark' }],
    ['at 360 px, light', { colorScheme: 'light', ...phone }],
    ['at 360 px, dark', { colorScheme: 'dark', ...phone }],
  ] as const)('every page of payouts is accessible and fits its width (%s)', async (look, options) => {
    const { harness, close, origin } = pages
    const { id, payments } = await closedBatch('EUR', 5_000, 6_000)
    const held = { reason: 'one payee is unclear' }
    await operator.call('POST', `/payout-batches/${id}/hold`, { body: held })
    const entry = { bank: `L-${look}`, direction: 'CRDT', amount: 4_200n, bookedOn: day(), details: '' } as const
    const raw = statementOf(`L-${look}`, { entries: [entry], balance: 123_456_789n })
    await upload('sepa', 'look.xml', raw)
    const [exception] = (await operator.call('GET', '/payout-exceptions?take=1')).body.exceptions
    const page = await pages.open('/console/operator/batches', { isOperator: true }, options)
    const content: Record<string, string> = {
      'operator/batches': 'Drop the bank’s files for sepa',
      'operator/rails': 'sepa',
      [`operator/batches/${id}`]: 'one payee is unclear',
      'operator/exceptions': 'Money in',
      [`operator/exceptions/${exception.id}`]: 'Decide',
      'operator/float': 'A difference is caused by',
      [`${harness.partner.id}/withdrawals/${payments[0]?.withdrawalId}`]: 'Payment by sepa',
    }
    for (const [at, text] of Object.entries(content)) {
      await page.goto(`${origin}/console/${at}`)
      await says(page, text)
      await expectToFit(page, at)
      await expectAccessible(page)
    }
    await operator.call('POST', `/payout-batches/${id}/release`)
    await close(page)
  })
  // Runs last: the withdrawals are copies that no task submits.
  test('a batch of thousands and a thousand exceptions are paginated, have correct totals and are exported completely', async () => {
    const { harness, close, origin } = pages
    const count = extent({ short: 2_000, long: 10_000 })
    await startDay()
    const payments = await preparePayments(harness, { rail: 'sepa', count })
    const { db, clock } = harness
    const [settings] = rails
    if (settings === undefined) throw new Error('The rail is missing')
    const rail = fileChannel({ db, now: clock.now, settings })
    for (let first = 0; first < count; first += rail.paymentsMax)
      await rail.submit(payments.slice(first, first + rail.paymentsMax), AbortSignal.timeout(60_000))
    clock.advance({ minutes: 6 * 60 })
    await run('send-payout-batches')
    const [batch] = (await operator.call('GET', '/payout-batches?rail=sepa&take=1')).body.batches
    expect(batch).toMatchObject({ paymentCount: count, total: { amount: 5_000 * count } })
    await approveByTwo(batch.id)

    const page = await openBatch(batch.id)
    const rows = page.getByRole('table', { name: 'Payments' }).locator('tbody tr')
    await expect.poll(() => rows.count(), { timeout: 20_000 }).toBe(50)
    await says(page, `${count.toLocaleString('en-GB')} payments`)
    await says(page, `€${(50 * count).toLocaleString('en-GB')}.00`)
    await page.getByRole('button', { name: 'Show more' }).click()
    await expect.poll(() => rows.count(), { timeout: 20_000 }).toBe(100)
    const [csv] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ])
    const lines = (await bytesOf(csv)).toString().trim().split('\r\n').slice(1)
    expect(new Set(lines.map(line => line.split(',')[0])).size).toBe(count)
    expect(lines.reduce((sum, line) => sum + Number(line.split(',')[6]), 0)).toBe(50 * count)
    await page.getByRole('button', { name: 'Export the file' }).click()
    const link = page.getByRole('link', { name: 'Download the file' })
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
    expect(readCreditTransfer((await bytesOf(download)).toString(), 'download').orders).toHaveLength(count)

    const open = (await operator.call('GET', '/payout-exceptions?take=1000')).body.exceptions.length
    const entries = Array.from({ length: 1_000 }, (_, index) => ({
      ...{ bank: `MANY-${index}`, direction: 'CRDT' as const, amount: BigInt(index + 1), bookedOn: day(), details: '' },
    }))
    await page.goto(`${origin}/console/operator/batches`)
    const statement = accountReport(message('C053-MANY'), { kind: 'camt.053', iban: ownIban, entries })
    await dropped(page, { to: 'sepa', name: 'many.xml', text: statement }, '1,000 records imported.')
    await page.getByRole('link', { name: 'Exceptions' }).click()
    const found = page.getByRole('table', { name: 'Exceptions' }).locator('tbody tr')
    await expect.poll(() => found.count(), { timeout: 20_000 }).toBe(50)
    const [all] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ])
    expect((await bytesOf(all)).toString().trim().split('\r\n')).toHaveLength(1 + open + 1_000)
    await close(page)
  })
})
