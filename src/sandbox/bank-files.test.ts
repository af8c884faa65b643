import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { euroRail, FileBank } from '../../test/banks/file-bank.ts'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { extent } from '../../test/runner/extent.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import { cutOffOf, leadTimes } from '../payouts/calendars/cut-off.ts'
import { uk } from '../payouts/calendars/uk.ts'
import { sepaFormat } from '../payouts/formats/sepa/format.ts'
import { stateWithoutAdvice } from '../payouts/formats/standard18/entry-day.ts'
import { standard18Format } from '../payouts/formats/standard18/format.ts'
import type { TaskName } from '../worker/task.ts'

const startAt = new Date('2026-03-10T09:00:00.000Z')
const euros = new FileBank()
const pounds = new FileBank()
const settings: FileRailSettings[] = [
  euroRail({ name: 'sepa', format: sepaFormat(), delivery: async () => euros }),
  euroRail({
    name: 'bacs',
    currency: 'GBP',
    format: standard18Format(
      { scheme: 'bacs', serviceUserNumber: '123456' },
      { format: 'csv', columns: { reference: 'Reference', amount: 'Amount', reasonCode: 'Code' } },
    ),
    debtors: {
      default: { name: 'Acme', account: { accountHolder: 'Acme', sortCode: '200000', accountNumber: '55779911' } },
    },
    schedule: now => cutOffOf({ now, cutOff: '15:00', timeZone: 'Europe/London', calendar: uk, ...leadTimes.bacs }),
    countsAsPaid: (valueDate, today) => stateWithoutAdvice('bacs', valueDate, { today, calendar: uk }) === 'paid',
    delivery: async () => pounds,
  }),
]

let harness: Harness
beforeAll(async () => {
  harness = await startHarness({ bankOf: () => 'connected', rails: settings })
})
afterAll(() => harness.stop())

let day = startAt
beforeEach(() => {
  // A week later, so that each test has its own batches.
  day = new Date(day.getTime() + 7 * 86_400_000)
  harness.clock.set(day)
})

const run = async (...names: TaskName[]) => {
  for (const name of names) await harness.runTask(name)
}
const statusOf = async (id: string) => (await harness.getWithdrawal(id)).status

type Payment = { id: string; reference: string; net: number }
type Of = { currency?: 'EUR' | 'GBP'; key?: string }

// The withdrawals of one member: more would take longer and longer, because the limits of a tier count them.
const withdrawalsMax = 500

async function withdraw(nets: number[], { currency = 'EUR', key = harness.key }: Of = {}): Promise<string[]> {
  const ids: string[] = []
  for (let first = 0; first < nets.length; first += withdrawalsMax) {
    const memberId = await harness.addMember({ available: 10_000_000, currency, key })
    for (const net of nets.slice(first, first + withdrawalsMax)) {
      // The tier takes a fee of 50 from the member.
      ids.push(await harness.withdraw({ memberId, amount: net + 50, currency, key }))
    }
  }
  return ids
}

/** Withdraws, and sends the file to the bank. */
async function sent(nets: number[], of: Of = {}): Promise<{ batchId: string; payments: Payment[] }> {
  const ids = await withdraw(nets, of)
  await harness.sendBatches({ hours: 6 })
  const payouts = await harness.db.selectFrom('payouts').select(['withdrawalId', 'reference']).execute()
  const referenceOf = new Map(payouts.map(({ withdrawalId, reference }) => [withdrawalId, reference]))
  const payments = ids.map(
    (id, index): Payment => ({ id, reference: referenceOf.get(id) ?? '', net: nets[index] ?? 0 }),
  )
  const [newest] = (await harness.call('GET', '/v1/sandbox/bank-files?take=1')).body.bankFiles
  return { batchId: newest.batchId, payments }
}

function ask(batchId: string, body: object, call: { key?: string; headers?: Record<string, string> } = {}) {
  return harness.call('POST', `/v1/sandbox/bank-files/${batchId}/answers`, { body, ...call })
}

describe('the answers of a sandbox’s bank', () => {
  test('are a file that the rail imports, and the withdrawals follow', async () => {
    const { batchId, payments } = await sent([5_000, 6_000, 7_000])
    const [first, second, third] = payments
    const { bankFiles } = (await harness.call('GET', '/v1/sandbox/bank-files?take=1')).body
    expect(bankFiles).toEqual([
      {
        ...{ batchId, rail: 'sepa', status: 'sent', valueDate: '2026-03-17', paymentCount: 3 },
        ...{ controlTotal: { amount: 18_000, currency: 'EUR' }, messageId: expect.stringMatching(/^MMB/) },
        ...{ sentAt: harness.clock.now().toISOString(), formats: ['pain.002', 'camt.054'] },
      },
    ])
    const outcomes = [
      { outcome: 'paid' },
      { paymentReference: second?.reference, outcome: 'failed', reasonCode: 'AC01' },
      { paymentReference: third?.reference, outcome: 'pending' },
    ]
    const answer = await ask(batchId, { format: 'pain.002', outcomes })
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-type': 'text/xml; charset=utf-8',
      'content-disposition': `attachment; filename="${bankFiles[0].messageId}-pain.002.xml"`,
    })
    expect(await harness.bankAnswers(euros, answer.text)).toBe('imported')
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['paid', 'failed', 'submitted'])
    expect((await harness.getWithdrawal(second?.id ?? '')).timeline.at(-1).reason).toMatch(/^AC01 /)

    const returned = await ask(batchId, {
      format: 'camt.054',
      outcomes: [
        { paymentReference: first?.reference, outcome: 'returned' },
        { paymentReference: third?.reference, outcome: 'paid' },
      ],
    })
    expect(await harness.bankAnswers(euros, returned.text)).toBe('imported')
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['returned', 'failed', 'paid'])
    expect((await harness.getWithdrawal(first?.id ?? '')).timeline.at(-1).reason).toMatch(/^BE01/)
  })

  test('are a CSV of returned credits for Bacs, which the rail imports', async () => {
    const { batchId, payments } = await sent([5_000, 6_000], { currency: 'GBP' })
    harness.clock.advance({ days: 4 })
    await run('send-payout-batches', 'read-rail-reports')
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['paid', 'paid'])
    const outcomes = [{ paymentReference: payments[1]?.reference, outcome: 'returned', reasonCode: '5' }]
    const answer = await ask(batchId, { format: 'arucs-csv', outcomes })
    expect([answer.headers['content-type'], answer.text]).toEqual([
      'text/csv; charset=utf-8',
      `Reference,Amount,Code\r\n${payments[1]?.reference},60.00,5\r\n`,
    ])
    expect(await harness.bankAnswers(pounds, answer.text)).toBe('imported')
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['paid', 'returned'])
  })

  test('have the same bytes for the same request, change nothing until they are imported, and are kept for an idempotency key', async () => {
    const { batchId, payments } = await sent([5_000])
    const body = { format: 'pain.002', outcomes: [{ outcome: 'paid' }] }
    const first = await ask(batchId, body)
    expect((await ask(batchId, body)).text).toBe(first.text)
    const headers = { 'x-idempotency-key': 'answered' }
    expect((await ask(batchId, body, { headers })).text).toBe(first.text)
    const replayed = await ask(batchId, body, { headers })
    expect([replayed.text, replayed.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
    expect(await statusOf(payments[0]?.id ?? '')).toBe('submitted')
  })

  const paid = { outcome: 'paid' }
  const unknown = 'MMAAAAAAAAAAAAAA'
  test.each<[string, object, (string | [string, RegExp])[]]>([
    [
      'pain.002 cannot say returned',
      { format: 'pain.002', outcomes: [{ outcome: 'returned' }] },
      ['outcomes.0.outcome'],
    ],
    [
      'camt.054 says only paid and returned',
      { format: 'camt.054', outcomes: [paid, { paymentReference: unknown, outcome: 'accepted' }] },
      ['outcomes.1.outcome'],
    ],
    ['ARUCS says only returned', { format: 'arucs-csv', outcomes: [paid] }, ['outcomes.0.outcome']],
    [
      'a reason of ARUCS has one character',
      { format: 'arucs-csv', outcomes: [{ outcome: 'returned', reasonCode: 'AC04' }] },
      ['outcomes.0.reasonCode'],
    ],
    [
      'a reason has at most four characters',
      { format: 'pain.002', outcomes: [{ outcome: 'failed', reasonCode: 'AC040' }] },
      ['outcomes.0.reasonCode'],
    ],
    [
      'a paid payment has no reason',
      { format: 'pain.002', outcomes: [{ ...paid, reasonCode: 'AC04' }] },
      ['outcomes.0.reasonCode'],
    ],
    ['a default comes once', { format: 'pain.002', outcomes: [paid, paid] }, ['outcomes.1.paymentReference']],
    [
      'a payment is of the batch',
      { format: 'pain.002', outcomes: [{ ...paid, paymentReference: unknown }] },
      ['outcomes.0.paymentReference'],
    ],
    ['there is an outcome', { format: 'pain.002', outcomes: [] }, ['outcomes']],
  ])('are refused with BodyValidation: %s', async (_, body, paths) => {
    const { batchId } = await batchOfEach()
    const answer = await ask(batchId, body)
    expect(answer.status).toBe(400)
    expect(answer.body.issues.map(({ code, path }: { code: string; path: string }) => [code, path])).toEqual(
      paths.map(path => ['BodyValidation', path]),
    )
  })

  let shared: Promise<{ batchId: string; payments: Payment[] }> | undefined
  function batchOfEach() {
    shared ??= sent([5_000])
    return shared
  }

  const codeOf = ({ status, body }: ApiResponse) => [status, body.issues?.[0].code]

  test('are refused for a kind of file that the rail does not read, and for a batch that is not sent', async () => {
    const { batchId } = await batchOfEach()
    const body = { format: 'arucs-csv', outcomes: [{ outcome: 'returned' }] }
    const refused = await ask(batchId, body)
    expect(codeOf(refused)).toEqual([422, 'UnprocessableEntity'])
    expect(refused.text).toContain('The rail sepa does not read arucs-csv; it reads pain.002, camt.054')

    await withdraw([5_000])
    harness.clock.advance({ minutes: 1 })
    await run('submit-withdrawals')
    const [building] = (await harness.call('GET', '/v1/sandbox/bank-files?take=1')).body.bankFiles
    expect(building).toMatchObject({ status: 'building', sentAt: null })
    expect(codeOf(await ask(building.batchId, { format: 'pain.002', outcomes: [paid] }))).toEqual([409, 'Conflict'])
  })

  test('exist only for batches with payments of only this partner; other batches are not found', async () => {
    const { other } = harness
    await withdraw([5_000], { key: other.key })
    const { batchId, payments } = await sent([6_000])
    const [batch] = await harness.db
      .selectFrom('payouts')
      .select('batchId')
      .where('reference', '=', payments[0]?.reference ?? '')
      .execute()
    // The newest listed batch is an older one.
    expect(batch?.batchId).not.toBe(batchId)
    const body = { format: 'pain.002', outcomes: [paid] }
    for (const key of [harness.key, other.key]) {
      expect(codeOf(await ask(batch?.batchId ?? '', body, { key }))).toEqual([404, 'NotFound'])
    }
    expect(codeOf(await ask(batchId, body, { key: other.key }))).toEqual([404, 'NotFound'])
    expect((await harness.call('GET', '/v1/sandbox/bank-files', { key: other.key })).body.bankFiles).toEqual([])
  })
})

// As many as the bank of a sandbox answers in one file.
const count = extent({ short: 50, long: 10_000 })

test(`${count} payouts go to the bank in a file and end as its answers say; a repeated or broken file changes nothing`, {
  timeout: 60_000 + count * 60,
}, async () => {
  const nets = Array.from({ length: count }, (_, index) => 2_000 + (index % 977))
  const { batchId, payments } = await sent(nets)
  const file = [...euros.outbox.values()].at(-1) ?? ''
  expect(paymentsOf(file)).toEqual(new Map(payments.map(({ reference, net }) => [reference, BigInt(net)])))

  const named = (remainder: number, outcome: object) =>
    payments
      .filter((_, index) => index % 5 === remainder)
      .map(({ reference: paymentReference }) => ({ paymentReference, ...outcome }))
  const [failed, silent, returned] = [
    named(1, { outcome: 'failed', reasonCode: 'AC06' }),
    named(2, { outcome: 'pending' }),
    named(3, { outcome: 'returned' }),
  ]
  const report = await ask(batchId, { format: 'pain.002', outcomes: [{ outcome: 'paid' }, ...failed, ...silent] })
  const returns = await ask(batchId, { format: 'camt.054', outcomes: returned })
  const [before, afterReport, atTheEnd] = [
    (_: number) => 'submitted',
    (index: number) => ['paid', 'failed', 'submitted', 'paid', 'paid'][index % 5] ?? '',
    (index: number) => ['paid', 'failed', 'submitted', 'returned', 'paid'][index % 5] ?? '',
  ]
  const expectStates = async (wanted: (index: number) => string) => {
    const states = await statesOf(harness.partner.id)
    expect(payments.map(({ id }) => states.get(id))).toEqual(payments.map((_, index) => wanted(index)))
    expect(await harness.disagreements()).toEqual([])
  }
  const half = (text: string) => text.slice(0, Math.floor(text.length / 2))
  expect(await harness.bankAnswers(euros, half(report.text))).toMatch(/Nothing of this file was booked/)
  await expectStates(before)
  expect(await harness.bankAnswers(euros, report.text)).toBe('imported')
  await expectStates(afterReport)
  const rows = await everything()
  expect(await harness.bankAnswers(euros, report.text)).toBe('imported')
  expect(await everything()).toEqual(rows)
  expect(await harness.bankAnswers(euros, half(returns.text))).toMatch(/Nothing of this file was booked/)
  await expectStates(afterReport)
  expect(await harness.bankAnswers(euros, returns.text)).toBe('imported')
  await expectStates(atTheEnd)
  const settled = await everything()
  for (const text of [report.text, returns.text]) expect(await harness.bankAnswers(euros, text)).toBe('imported')
  expect(await everything()).toEqual(settled)
  await expectStates(atTheEnd)
})

/** The payments of a pain.001, by reference, in minor units. */
function paymentsOf(file: string): Map<string, bigint> {
  const found = file.matchAll(/<EndToEndId>(\w+)<\/EndToEndId><\/PmtId><Amt><InstdAmt Ccy="EUR">([0-9]+)\.([0-9]{2})</g)
  return new Map([...found].map(([, reference = '', whole = '', cents = '']) => [reference, BigInt(whole + cents)]))
}

async function statesOf(partnerId: TestPartner['partner']['id']): Promise<Map<string, string>> {
  const rows = await harness.db
    .selectFrom('withdrawals')
    .select(['id', 'status'])
    .where('partnerId', '=', partnerId)
    .execute()
  return new Map(rows.map(({ id, status }) => [id, status]))
}

/** What an import could change: how many rows there are of each kind. */
async function everything() {
  const { db } = harness
  const tables = ['bankFiles', 'bankRecords', 'payoutExceptions', 'ledgerTransfers', 'events'] as const
  const counts: Record<string, unknown> = {}
  for (const table of tables) {
    const { total } = await db
      .selectFrom(table)
      .select(({ fn }) => fn.countAll().as('total'))
      .executeTakeFirstOrThrow()
    counts[table] = total
  }
  return counts
}

describe('a batch that a sandbox’s bank answers as a whole', () => {
  const inWords = { reasonCode: 'NARR', reasonText: 'DUPLICATE FILE: message id already processed' }
  const rejected = (reason: object = {}) => ({ outcome: 'rejected', ...reason })
  const accepted = { outcome: 'accepted' }

  /** Imports an answer for the whole batch. @returns the kinds of the open exceptions about the batch */
  async function answerWhole(batchId: string, batch: object): Promise<string[]> {
    const answer = await ask(batchId, { format: 'pain.002', batch })
    expect(answer.status, answer.text).toBe(200)
    expect(await harness.bankAnswers(euros, answer.text)).toBe('imported')
    return await openKinds(batchId)
  }
  async function openKinds(batchId: string): Promise<string[]> {
    const operator = await harness.addOperator()
    const { messageId } = (await operator.call('GET', `/payout-batches/${batchId}`)).body
    const { exceptions } = (await operator.call('GET', '/payout-exceptions?state=open&take=1000')).body
    return exceptions
      .filter(({ reference }: { reference: string }) => reference === messageId)
      .map(({ kind }: { kind: string }) => kind)
  }

  test.each<[string, object[], string[]]>([
    ['accepted', [accepted], []],
    [
      'accepted, and the second copy rejected as a duplicate',
      [accepted, rejected({ reasonCode: 'DU01' })],
      ['duplicate'],
    ],
    ['accepted, and the second copy rejected in words', [accepted, rejected(inWords)], ['duplicate']],
    ['accepted, and the second copy rejected as malformed', [accepted, rejected({ reasonCode: 'FF01' })], ['rejected']],
    ['rejected in words', [rejected(inWords)], ['duplicate']],
    ['rejected without a reason', [rejected()], ['rejected']],
    ['rejected for a reason that a second copy also has', [rejected({ reasonCode: 'TM01' })], ['rejected']],
    ['rejected with AC01 of the file', [rejected({ reasonCode: 'AC01' })], ['rejected']],
    ['rejected for lack of money', [rejected({ reasonCode: 'AM04', level: 'payment-information' })], ['float']],
  ])('gives nothing back: %s', async (_, answers, kinds) => {
    const { batchId, payments } = await sent([5_000, 6_000])
    let open: string[] = []
    for (const each of answers) open = await answerWhole(batchId, each)
    expect(open).toEqual(kinds)
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['submitted', 'submitted'])
  })

  test('is rejected payment by payment with a text about a duplicate', async () => {
    const { batchId, payments } = await sent([5_000, 6_000])
    const answer = await ask(batchId, { format: 'pain.002', outcomes: [{ outcome: 'failed', ...inWords }] })
    expect(await harness.bankAnswers(euros, answer.text)).toBe('imported')
    expect(await openKinds(batchId)).toEqual(['duplicate'])
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['submitted', 'submitted'])
  })

  test('is answered by its message id, with the status of its payments beside it', async () => {
    const { batchId, payments } = await sent([5_000, 6_000])
    const outcomes = [{ paymentReference: payments[0]?.reference, outcome: 'paid' }]
    const answer = await ask(batchId, { format: 'pain.002', batch: { outcome: 'pending' }, outcomes })
    expect(answer.text).toContain('<GrpSts>PDNG</GrpSts></OrgnlGrpInfAndSts>')
    expect(await harness.bankAnswers(euros, answer.text)).toBe('imported')
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['paid', 'submitted'])
  })

  const batch = accepted
  test.each<[string, object, string[]]>([
    ['a notification is not about batches', { format: 'camt.054', batch }, ['batch']],
    ['ARUCS is not about batches', { format: 'arucs-csv', batch, outcomes: [{ outcome: 'returned' }] }, ['batch']],
    [
      'an accepted batch has no reason',
      { format: 'pain.002', batch: { ...batch, ...inWords } },
      ['batch.reasonCode', 'batch.reasonText'],
    ],
    [
      'an accepted payment has no reason in words',
      { format: 'pain.002', outcomes: [{ outcome: 'accepted', reasonText: 'Taken' }] },
      ['outcomes.0.reasonText'],
    ],
    [
      'a text has at most 105 characters',
      { format: 'pain.002', batch: rejected({ reasonText: 'x'.repeat(106) }) },
      ['batch.reasonText'],
    ],
    ['a batch is not paid', { format: 'pain.002', batch: { outcome: 'paid' } }, ['batch.outcome']],
    ['nothing is answered', { format: 'pain.002' }, ['outcomes']],
  ])('is refused with BodyValidation: %s', async (_, body, paths) => {
    const [newest] = (await harness.call('GET', '/v1/sandbox/bank-files?take=1')).body.bankFiles
    const answer = await ask(newest.batchId, body)
    expect(answer.status).toBe(400)
    expect(answer.body.issues.map(({ path }: { path: string }) => path)).toEqual(paths)
  })

  // The last test: after it, the batches of the rail are no longer approved automatically.
  test('is given back if its only copy is malformed, and any later answer about it is an exception', async () => {
    const { batchId, payments } = await sent([5_000, 6_000])
    const reason = { reasonCode: 'AC01', level: 'payment-information' }
    expect(await answerWhole(batchId, rejected(reason))).toEqual([])
    const states = () => Promise.all(payments.map(({ id }) => statusOf(id)))
    expect(await states()).toEqual(['failed', 'failed'])
    expect(await answerWhole(batchId, accepted)).toEqual(['paid_after_give_back'])
    const debits = await ask(batchId, { format: 'camt.054', outcomes: [{ outcome: 'paid' }] })
    expect(await harness.bankAnswers(euros, debits.text)).toBe('imported')
    const operator = await harness.addOperator()
    const { exceptions } = (await operator.call('GET', '/payout-exceptions?state=open&take=1000')).body
    for (const { reference } of payments)
      expect(exceptions).toContainEqual(expect.objectContaining({ kind: 'paid_after_give_back', reference }))
    expect(await states()).toEqual(['failed', 'failed'])
    expect(await harness.disagreements()).toEqual([])
  })
})

test('a withdrawal that goes to a bank in a file accepts no instruction to the simulated bank', async () => {
  const [id = ''] = await withdraw([5_000])
  for (const instruction of ['pay', 'fail', 'return', 'hold']) {
    const answer = await harness.call('POST', `/v1/sandbox/withdrawals/${id}/${instruction}`, { body: {} })
    expect([answer.status, answer.body.issues[0].message]).toEqual([409, expect.stringContaining('sandbox/bank-files')])
  }
  expect(await statusOf(id)).toBe('held')
})
