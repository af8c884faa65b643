import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ownIban } from '../../../test/banks/file-bank.ts'
import { accountReport, type Entry, transaction } from '../../../test/banks/iso20022.ts'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import { closeException } from '../../../test/payouts/two-person-decisions.ts'
import { sepaFormat } from '../formats/sepa/format.ts'

let scene: FileRailScene
beforeAll(async () => {
  scene = await FileRailScene.start()
})
afterAll(() => scene.harness.stop())
beforeEach(() => scene.nextWeek())

let messages = 0
const message = () => `M${++messages}`
const kinds = async () =>
  (await scene.open()).map(({ kind, reference, outcome, amount }) => ({ kind, reference, outcome, amount }))
const closeAll = () =>
  scene.harness.pool.query(`
  update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`)
afterEach(closeAll)

describe('An answer of the bank about money that was given back', () => {
  test('opens one exception if it accepts the batch, however many messages say so, and the words are true', async () => {
    const { messageId } = await scene.sent(5_000, 6_000)
    await scene.answer(`head;${message()}`, `batch;${messageId};rejected;FF01`)
    expect(await scene.open()).toEqual([])
    for (const state of ['acknowledged', 'partly', 'acknowledged']) {
      await scene.answer(`head;${message()}`, `batch;${messageId};${state}`)
    }
    expect(await scene.open()).toMatchObject([
      {
        ...{ kind: 'paid_after_give_back', reference: messageId, amount: null },
        reason:
          'The bank accepts the batch, but the money of its payments was given back to the members; find out whether the bank pays it, and hold the rail until you know',
      },
    ])
  })

  test('opens one exception for the debit of the whole batch, in notice and statement, and another for a second debit', async () => {
    const { messageId } = await scene.sent(5_000, 6_000)
    await scene.answer(`head;${message()}`, `batch;${messageId};rejected;FF01`)
    await scene.answer(`head;${message()}`, `entry;-11000EUR;${messageId};E1;2026-03-11`)
    await scene.answer(`head;${message()}`, `entry;-11000EUR;${messageId};E1;2026-03-11`)
    const debit = { kind: 'paid_after_give_back', reference: messageId, outcome: null, amount: -11_000n }
    expect(await kinds()).toEqual([debit])
    expect((await scene.open())[0]).toMatchObject({
      bookedOn: '2026-03-11',
      reason:
        'The bank debited the whole batch, but its money was given back to the members; find out which payments the bank made',
    })
    await scene.answer(`head;${message()}`, `entry;-11000EUR;${messageId};E2;2026-03-12`)
    expect(await kinds()).toEqual([debit, debit])
  })

  test('opens one for the debit of a part of the batch, and for the whole debit of a batch of which a part was given back', async () => {
    const first = await scene.sent(5_000, 6_000)
    await scene.answer(`head;${message()}`, `batch;${first.messageId};rejected;FF01`)
    await scene.answer(`head;${message()}`, `entry;-6000EUR;${first.messageId};E1;2026-03-11`)
    expect((await scene.open())[0]).toMatchObject({
      kind: 'paid_after_give_back',
      reason:
        'The bank debited 60.00 EUR of the batch of 110.00 EUR, but its money was given back to the members; find out which payments the bank made',
    })
    await closeAll()
    await scene.nextWeek()
    const second = await scene.sent(5_000, 6_000)
    await scene.answer(`head;${message()}`, `failed;${second.payments[0]?.reference};5000EUR;AC04`)
    await scene.answer(`head;${message()}`, `entry;-11000EUR;${second.messageId};E1;2026-03-11`)
    expect((await scene.open())[0]).toMatchObject({
      kind: 'paid_after_give_back',
      reason:
        'The bank debited the whole batch, but 50.00 EUR of it was given back to the members; find out which payments the bank made',
    })
  })

  test('opens one for the acceptance, the status and the debit of a single payment, and none for their repeats', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await scene.answer(`head;${message()}`, `failed;${reference};5000EUR;AC04`)
    for (const _ of [1, 2]) await scene.answer(`head;${message()}`, `accepted;${reference};5000EUR`)
    for (const _ of [1, 2]) await scene.answer(`head;${message()}`, `paid;${reference};5000EUR`)
    for (const _ of [1, 2]) await scene.answer(`head;${message()}`, `paid;${reference};5000EUR;;E1;2026-03-11`)
    const about = { kind: 'paid_after_give_back', reference }
    expect(await kinds()).toEqual([
      { ...about, outcome: null, amount: 5_000n },
      { ...about, outcome: 'paid', amount: 5_000n },
      { ...about, outcome: 'paid', amount: -5_000n },
    ])
    expect((await scene.open()).map(({ reason }) => reason.split(',')[0])).toEqual([
      'The bank accepts the payment',
      'The bank reports the payment as paid',
      'The bank debited the payment',
    ])
    expect(await scene.statusesOf(payments)).toEqual(['failed'])
  })

  test('opens none if it accepts a batch of which only a single payment was given back', async () => {
    const { payments, messageId } = await scene.sent(5_000, 6_000)
    await scene.answer(`head;${message()}`, `failed;${payments[0]?.reference};5000EUR;AC04`)
    await scene.answer(`head;${message()}`, `batch;${messageId};acknowledged`)
    expect(await scene.open()).toEqual([])
  })
})

describe('A return that the bank reverses', () => {
  const entryOf = (bank: string, bookedOn: string, more: Partial<Entry>): Entry => ({
    ...{ bank, bookedOn, amount: 5_000n, direction: 'DBIT', details: '' },
    ...more,
  })
  const hear = async (entries: Entry[], kind: 'camt.053' | 'camt.054' = 'camt.053') =>
    await xml.hear(accountReport({ id: message(), at: xml.harness.clock.now() }, { kind, iban: ownIban, entries }))
  let xml: FileRailScene
  beforeAll(async () => {
    xml = await FileRailScene.start({ name: 'euro-xml', format: sepaFormat() })
  })
  afterAll(() => xml.harness.stop())

  test('is an exception on any day if it is called a reversal, and on a later day if it is not', async () => {
    for (const { isReversal, day, isException } of [
      { isReversal: true, day: '2026-03-12', isException: true },
      { isReversal: false, day: '2026-03-13', isException: true },
      // The debit of the payment itself, which the bank reports after its return.
      { isReversal: false, day: '2026-03-11', isException: false },
    ]) {
      await xml.nextWeek()
      const { payments } = await xml.sent(5_000)
      const { reference = '' } = payments[0] ?? {}
      const details = transaction({ reference })
      const returned = transaction({ reference, returned: { reason: 'AC04' } })
      await hear([entryOf(`R ${reference}`, '2026-03-12', { direction: 'CRDT', details: returned })])
      expect(await xml.statusesOf(payments)).toEqual(['returned'])
      const debit = entryOf(`D ${reference}`, day, { details, isReversal })
      await hear([debit], 'camt.054')
      await hear([debit])
      const open = await xml.open()
      expect(open.map(({ kind, amount, outcome, bookedOn }) => ({ kind, amount, outcome, bookedOn }))).toEqual(
        isException ? [{ kind: 'paid_after_give_back', amount: -5_000n, outcome: 'paid', bookedOn: day }] : [],
      )
      if (isException)
        expect(open[0]?.reason).toMatch(
          isReversal
            ? /^The bank reversed the return of the payment, but/
            : /^The bank debited the payment after its return, but/,
        )
      expect(await xml.statusesOf(payments)).toEqual(['returned'])
      await xml.harness.pool.query(
        `update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`,
      )
    }
  })
})

test('A batch whose debit arrived in words only is not given back when the bank rejects it', async () => {
  for (const debit of [11_000, 6_000]) {
    await scene.nextWeek()
    const { payments, messageId } = await scene.sent(5_000, 6_000)
    await scene.answer(`head;${message()}`, `entry;-${debit}EUR;;W${debit};2026-03-11;Sammler`)
    await scene.answer(`head;${message()}`, `batch;${messageId};rejected;FF01`)
    expect(await scene.statusesOf(payments)).toEqual(['submitted', 'submitted'])
    expect(await scene.open()).toMatchObject([{ kind: 'money_out' }, { kind: 'rejected', reference: messageId }])
    await scene.harness.pool.query(`
      update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`)
  }
})

test('A debit of which only a part was given back is not written off: the rest is for payments that the bank made', async () => {
  const { payments, messageId } = await scene.sent(5_000, 6_000)
  await scene.answer(`head;${message()}`, `failed;${payments[0]?.reference};5000EUR;AC04`)
  await scene.answer(`head;${message()}`, `entry;-11000EUR;${messageId};E${message()};2026-03-11`)
  const [exception] = await scene.open()
  const now = scene.harness.clock.now()
  const writeOff = {
    exceptionId: exception?.id ?? '',
    person: 'Ada',
    note: 'lost',
    now,
    decision: 'write_off',
  } as const
  await expect(scene.inTx(tx => closeException(tx, writeOff))).rejects.toThrow(
    'The bank debited 110.00 EUR, of which 50.00 EUR were given back',
  )
  expect(await scene.open()).toHaveLength(1)
})
