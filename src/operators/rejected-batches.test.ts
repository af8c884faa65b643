import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { euroRail, ownIban } from '../../test/banks/file-bank.ts'
import { accountReport, type Entry, type Status, statusReport, wholeBatch } from '../../test/banks/iso20022.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { closeException } from '../../test/payouts/two-person-decisions.ts'
import * as approvals from '../payouts/books/approvals.ts'
import { hasSignOfCopy } from '../payouts/books/batches.ts'
import { sepaFormat } from '../payouts/formats/sepa/format.ts'

// A bank that gets the file of a batch twice pays the first copy and rejects the second. Everything goes through the operators' API.

const byHand = euroRail({ name: 'by-hand', currency: 'EUR', format: sepaFormat() })

let harness: Harness
let members: string[]
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness({
    rails: [byHand],
    bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated'),
  })
  operator = await harness.addOperator()
  members = await addMembers()
})
afterAll(() => harness.stop())

let week = 0
beforeEach(() => {
  // 11:00 in Berlin, on the next Tuesday, so that each test has its own batch.
  harness.clock.set(new Date(Date.UTC(2026, 2, 10 + 7 * week++, 10)))
})

afterEach(async () => {
  // The next test has batches of the same rail.
  await harness.pool.query(
    'update payout_batches set brake_released_at = given_back_at where given_back_at is not null and brake_released_at is null',
  )
})

type Batch = {
  id: string
  messageId: string
  withdrawals: string[]
  references: string[]
  /** The available balance of each member after the withdrawals. */
  available: number[]
}

const statusesOf = async ({ withdrawals }: Batch) =>
  await Promise.all(withdrawals.map(async id => (await harness.getWithdrawal(id)).status))

/** A batch of three payments after its cut-off, which is approved automatically unless a brake holds. */
async function closedBatch(): Promise<Batch> {
  const withdrawals: string[] = []
  for (const member of members)
    withdrawals.push(await harness.withdraw({ memberId: member, amount: 10_000, currency: 'EUR' }))
  const available = await availableBalances()
  await harness.sendBatches()
  const { batches } = (await operator.call('GET', '/payout-batches?rail=by-hand&take=1')).body
  const references = await Promise.all(
    withdrawals.map(async id => (await harness.getWithdrawal(id)).paymentReference as string),
  )
  return { ...batches[0], withdrawals, references, available }
}

async function addMembers(): Promise<string[]> {
  const added: string[] = []
  for (let count = 0; count < 3; count++) added.push(await harness.addMember({ available: 1_000_000, currency: 'EUR' }))
  return added
}

const availableBalances = async () => await Promise.all(members.map(id => harness.availableOf(id)))

/** … whose file an operator has carried to the bank, after this many downloads. */
async function sentBatch({ downloads = 1 } = {}): Promise<Batch> {
  const batch = await closedBatch()
  const exported = await operator.call('POST', `/payout-batches/${batch.id}/export`)
  expect(exported.status, exported.text).toBe(200)
  for (let count = 0; count < downloads; count++) await download(batch.id)
  return batch
}

const download = async (id: string) => {
  const file = await operator.call('GET', `/payout-batches/${id}/file?again=true`)
  expect(file.status, file.text).toBe(200)
}

let messages = 0
async function importFile(xml: (message: { id: string; at: Date }) => string): Promise<void> {
  const name = `BANK${++messages}`
  const imported = await operator.call('POST', `/rails/by-hand/files?name=${name}.xml`, {
    raw: xml({ id: name, at: harness.clock.now() }),
    headers: { 'content-type': 'application/octet-stream' },
  })
  expect(imported.status, imported.text).toBe(200)
  await harness.runTask('read-rail-reports')
}

/** Imports a pain.002 about a whole batch, or about each of its payments. */
const reject = (batch: Batch, said: Omit<Status, 'status'> = {}) =>
  importFile(message => statusReport(message, { messageId: batch.messageId, status: 'RJCT', ...said }, []))
const rejectEach = ({ messageId, references }: Batch, said: Omit<Status, 'status'>[]) =>
  importFile(message =>
    statusReport(
      message,
      { messageId },
      references.map((reference, index) => ({ reference, status: 'RJCT', ...said[index % said.length] })),
    ),
  )
const accept = (batch: Batch, status = 'ACSP') =>
  importFile(message => statusReport(message, { messageId: batch.messageId, status }, []))

const exceptionsAbout = async ({ messageId, references }: Batch) =>
  (await operator.call('GET', '/payout-exceptions?state=all&take=200')).body.exceptions.filter(
    ({ reference }: { reference: string }) => [messageId, ...references].includes(reference),
  )

const allOf = (status: string) => Array(3).fill(status)

async function expectOneException(batch: Batch, expected: object): Promise<void> {
  expect(await exceptionsAbout(batch)).toMatchObject([{ reference: batch.messageId, closedAt: null, ...expected }])
  expect(await statusesOf(batch)).toEqual(allOf('submitted'))
  // No member has the money back.
  expect(await availableBalances()).toEqual(batch.available)
}

async function expectGivenBack(batch: Batch): Promise<void> {
  expect(await exceptionsAbout(batch)).toEqual([])
  expect(await statusesOf(batch)).toEqual(allOf('failed'))
  expect((await operator.call('GET', `/payout-batches/${batch.id}`)).body.status).toBe('rejected')
  expect(await availableBalances()).toEqual(batch.available.map(available => available + 10_000))
  expect(await harness.disagreements()).toEqual([])
}

test('a duplicate that the bank rejects pays no member twice: the payments wait for a decision, and the first copy pays them', async () => {
  const batch = await sentBatch({ downloads: 2 })
  await accept(batch)
  await reject(batch, { reason: 'DU01' })
  await expectOneException(batch, { kind: 'duplicate', reasonCode: 'DU01' })
  await importFile(message =>
    accountReport(message, {
      ...{ kind: 'camt.053', iban: ownIban },
      entries: [
        {
          ...{ bank: 'E1', amount: 29_850n, direction: 'DBIT' },
          ...{ bookedOn: '2026-03-10', details: wholeBatch(batch.messageId) },
        },
      ],
    }),
  )
  expect(await statusesOf(batch)).toEqual(allOf('paid'))
  expect(await harness.disagreements()).toEqual([])
})

test.each<[string, Omit<Status, 'status'>, object]>([
  ...['DU01', 'DU02', 'DU03', 'DU04', 'DU05', 'AM05', 'DUPL'].map(
    (reason): [string, Omit<Status, 'status'>, object] => [
      reason,
      { reason },
      { kind: 'duplicate', reasonCode: reason },
    ],
  ),
  [
    'NARR and words about a duplicate',
    { reason: 'NARR', text: 'DUPLICATE FILE: message id already processed' },
    { kind: 'duplicate', reasonCode: 'NARR' },
  ],
  ['only words about a duplicate', { text: 'Doppeleinreichung' }, { kind: 'duplicate', reasonCode: null }],
  ['FF01 and words about a duplicate', { reason: 'FF01', text: 'File already received' }, { kind: 'duplicate' }],
  ['TM01', { reason: 'TM01' }, { kind: 'rejected', reasonCode: 'TM01' }],
  ['DT01', { reason: 'DT01' }, { kind: 'rejected', reasonCode: 'DT01' }],
  ['NARR', { reason: 'NARR', text: 'see contract' }, { kind: 'rejected', reasonCode: 'NARR' }],
  ['an unknown reason', { reason: 'ZZ99' }, { kind: 'rejected', reasonCode: 'ZZ99' }],
  ['only words', { text: 'see contract' }, { kind: 'rejected', reasonCode: null }],
  ['no reason', {}, { kind: 'rejected', reasonCode: null }],
  ['AC01 of the whole message', { reason: 'AC01' }, { kind: 'rejected', reasonCode: 'AC01' }],
])('a batch that is rejected with %s waits for a decision, though its file left once', async (_, said, expected) => {
  const batch = await sentBatch()
  await reject(batch, said)
  await expectOneException(batch, expected)
  // Another message about the same batch asks the same question.
  await reject(batch)
  await expectOneException(batch, expected)
})

test.each<[string, Omit<Status, 'status'>[], object]>([
  ['DU04', [{ reason: 'DU04' }], { kind: 'duplicate', reasonCode: 'DU04' }],
  ['words', [{ reason: 'NARR', text: 'already executed' }], { kind: 'duplicate', reasonCode: 'NARR' }],
  ['no reason', [{}], { kind: 'rejected', reasonCode: null }],
  ['TM01', [{ reason: 'TM01' }], { kind: 'rejected', reasonCode: 'TM01' }],
  ['AM04', [{ reason: 'AM04' }], { kind: 'float', reasonCode: 'AM04' }],
  ['several reasons', [{ reason: 'TM01' }, { reason: 'DU05' }, {}], { kind: 'duplicate', reasonCode: 'DU05' }],
])(
  'a message that rejects every payment of a batch with %s is one exception about the batch',
  async (_, said, expected) => {
    const batch = await sentBatch()
    await rejectEach(batch, said)
    await expectOneException(batch, expected)
  },
)

describe('payments whose payees the bank refuses', () => {
  // Their accounts stay refused.
  afterEach(async () => {
    members = await addMembers()
  })

  test('fail one by one, if all are rejected for such reasons', async () => {
    const batch = await sentBatch()
    await rejectEach(batch, [{ reason: 'AC04' }, { reason: 'MD07' }])
    expect(await exceptionsAbout(batch)).toEqual([])
    expect(await statusesOf(batch)).toEqual(allOf('failed'))
  })

  test('fail alone, and only the others wait for a decision', async () => {
    const batch = await sentBatch()
    await rejectEach(batch, [{ reason: 'AC04' }, {}, {}])
    expect(await statusesOf(batch)).toEqual(['failed', ...allOf('submitted').slice(1)])
    expect(await exceptionsAbout(batch)).toMatchObject([{ kind: 'rejected', reference: batch.messageId }])
  })
})

describe('a batch whose file left once is given back', () => {
  test.each(['FF01', 'AM10'])('if the bank rejects the message with %s', async reason => {
    const batch = await sentBatch()
    await reject(batch, { reason })
    await expectGivenBack(batch)
  })

  test('if the bank rejects the payment information with AC01', async () => {
    const batch = await sentBatch()
    await importFile(message =>
      statusReport(message, { messageId: batch.messageId }, [], { status: 'RJCT', reason: 'AC01' }),
    )
    await expectGivenBack(batch)
  })

  test('if the bank rejects every payment with FF01', async () => {
    const batch = await sentBatch()
    await rejectEach(batch, [{ reason: 'FF01' }])
    await expectGivenBack(batch)
  })

  test('but not if one of its payments gives another reason', async () => {
    const batch = await sentBatch()
    await rejectEach(batch, [{ reason: 'FF01' }, { reason: 'NARR', text: 'see contract' }])
    await expectOneException(batch, { kind: 'rejected' })
  })
})

test('FF01 after two downloads is an exception, which says how often the file may have left', async () => {
  const batch = await sentBatch({ downloads: 2 })
  await reject(batch, { reason: 'FF01' })
  await expectOneException(batch, { kind: 'rejected', reason: expect.stringContaining('may have left 2 times') })
})

describe('FF01 after a sign that the bank took a copy is an exception:', () => {
  const signs: [string, (batch: Batch) => Promise<void>][] = [
    ...['ACTC', 'ACCP', 'ACWC', 'ACFC', 'ACWP', 'PDNG', 'RCVD', 'PART', 'ACSP'].map(
      (status): [string, (batch: Batch) => Promise<void>] => [status, batch => accept(batch, status)],
    ),
    [
      'ACTC of one payment',
      ({ messageId, references: [reference = ''] }) =>
        importFile(message => statusReport(message, { messageId }, [{ reference, status: 'ACTC' }])),
    ],
    [
      'a booking of another sum',
      ({ messageId }) =>
        importFile(message =>
          accountReport(message, {
            ...{ kind: 'camt.054', iban: ownIban },
            entries: [
              {
                bank: `${message.id}E`,
                amount: 1n,
                direction: 'DBIT',
                bookedOn: '2026-03-10',
                details: wholeBatch(messageId),
              },
            ],
          }),
        ),
    ],
  ]

  test.each(signs)('%s', async (_, sign) => {
    const batch = await sentBatch()
    expect(await hasSignOfCopy(harness.db, batch.id)).toBe(false)
    await sign(batch)
    expect(await hasSignOfCopy(harness.db, batch.id)).toBe(true)
    await reject(batch, { reason: 'FF01' })
    const about = await exceptionsAbout(batch)
    expect(about.filter(({ kind }: { kind: string }) => kind === 'rejected')).toMatchObject([
      { reference: batch.messageId, reason: expect.stringContaining('has taken a copy') },
    ])
    expect(await statusesOf(batch)).toEqual(allOf('submitted'))
  })
})

describe('after a batch was given back', () => {
  const today = () => harness.clock.now().toISOString().slice(0, 10)
  const dayBefore = () => new Date(harness.clock.now().getTime() - 86_400_000).toISOString().slice(0, 10)
  const statementOf = (day: string, entries: Entry[] = []) =>
    importFile(message =>
      accountReport(message, {
        ...{ kind: 'camt.053', iban: ownIban, entries },
        statement: { number: week, day, opening: 100_000_000n, closing: 100_000_000n },
      }),
    )
  const batchOf = async (id: string) => (await operator.call('GET', `/payout-batches/${id}`)).body
  const close = async (batchId: string) => {
    await harness.runTask('send-payout-batches')
    return (await batchOf(batchId)).status
  }

  test('batches await approval by people, who see why, until the statement of the day shows that it was not paid', async () => {
    const batch = await sentBatch()
    const executed = today()
    await reject(batch, { reason: 'FF01' })
    await expectGivenBack(batch)
    harness.clock.advance({ minutes: 20 * 60 })
    const waiting = await closedBatch()
    const brake = { batchId: batch.id, awaits: executed, reason: expect.stringContaining(batch.messageId) }
    expect(await batchOf(waiting.id)).toMatchObject({ status: 'building', needsApproval: true, brake })
    expect((await operator.call('GET', '/rails')).body.rails).toMatchObject([{ name: 'by-hand', brake }])
    const { attention } = (await operator.call('GET', '/status')).body
    expect(attention).toContainEqual(expect.stringContaining('No batch of by-hand is approved automatically'))
    expect((await operator.call('GET', '/findings')).body.findings).toContainEqual(
      expect.objectContaining({ sentence: expect.stringContaining('No batch of by-hand is approved automatically') }),
    )
    // Neither a statement of another day nor a notification shows it.
    await statementOf(new Date(Date.parse(executed) - 86_400_000).toISOString().slice(0, 10))
    await importFile(message => accountReport(message, { kind: 'camt.054', iban: ownIban, entries: [] }))
    expect(await close(waiting.id)).toBe('building')
    await statementOf(executed)
    expect(await close(waiting.id)).toBe('approved')
    expect((await operator.call('GET', '/rails')).body.rails).toMatchObject([{ name: 'by-hand', brake: null }])
    expect(dayBefore()).toBe(executed)
  })

  test('people can still approve batches', async () => {
    const batch = await sentBatch()
    await reject(batch, { reason: 'FF01' })
    harness.clock.advance({ minutes: 20 * 60 })
    const waiting = await closedBatch()
    for (const person of ['Ada', 'Bob'])
      await harness.inTx(tx => approvals.approve(tx, { batchId: waiting.id, person, now: harness.clock.now() }))
    expect((await batchOf(waiting.id)).status).toBe('approved')
  })

  test('a statement with its debit releases nothing until the debit is decided', async () => {
    const batch = await sentBatch()
    const executed = today()
    await reject(batch, { reason: 'FF01' })
    harness.clock.advance({ minutes: 20 * 60 })
    const waiting = await closedBatch()
    const details = wholeBatch(batch.messageId)
    await statementOf(executed, [{ bank: 'D1', amount: 29_850n, direction: 'DBIT', bookedOn: executed, details }])
    expect(await close(waiting.id)).toBe('building')
    for (const { id } of await exceptionsAbout(batch))
      await harness.pool.query(
        `update payout_exceptions set closed_at = opened_at, closed_by = 'Ada', decision = 'ignore', note = 'n' where id = $1`,
        [id],
      )
    expect(await close(waiting.id)).toBe('approved')
  })

  test('by a decision, batches also wait for the statement', async () => {
    const batch = await sentBatch()
    await reject(batch, { reason: 'NARR' })
    const [{ id: exceptionId }] = await exceptionsAbout(batch)
    const decided = { exceptionId, person: 'Ada', note: 'the bank has no other copy', now: harness.clock.now() }
    await harness.inTx(tx => closeException(tx, { ...decided, decision: 'give_back' }))
    harness.clock.advance({ minutes: 20 * 60 })
    const waiting = await closedBatch()
    expect((await batchOf(waiting.id)).status).toBe('building')
  })
})

test('the file of a batch is refused with a sentence once an account in it is no longer kept', async () => {
  const { id } = await sentBatch()
  const [memberId = ''] = members
  const keys = harness.db.selectFrom('memberKeys').select('paymentKey').where('memberId', '=', memberId)
  const { paymentKey } = await keys.executeTakeFirstOrThrow()
  const setKey = (key: Buffer | null) =>
    harness.db.updateTable('memberKeys').set({ paymentKey: key }).where('memberId', '=', memberId).execute()
  await setKey(null)
  const refused = await operator.call('GET', `/payout-batches/${id}/file?again=true`)
  await setKey(paymentKey)
  expect([refused.status, refused.body.issues[0].message]).toEqual([
    409,
    expect.stringMatching(/the account of MM\S+ is no longer kept/),
  ])
  await download(id)
})
