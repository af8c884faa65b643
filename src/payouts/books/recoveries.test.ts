import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { breaking } from '../../../test/harness/refusal.ts'
import { FileRailScene, type SentPayment } from '../../../test/payouts/file-rail-scene.ts'
import { closeException } from '../../../test/payouts/two-person-decisions.ts'
import { closeIfOver } from '../../closing/closing.ts'
import * as float from '../../float/float.ts'
import { listBalances } from './balances.ts'
import type { Decision } from './decisions.ts'

let scene: FileRailScene
beforeAll(async () => {
  scene = await FileRailScene.start()
})
afterAll(() => scene.harness.stop())
beforeEach(() => scene.nextWeek())
afterEach(async () => {
  expect(await scene.disagreements()).toEqual([])
  await scene.harness.pool.query(`
    update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`)
})

let messages = 0
const message = () => `head;M${++messages}`

async function decide(decided: Decision, index = 0): Promise<void> {
  const exception = (await scene.open())[index]
  const now = scene.harness.clock.now()
  await scene.inTx(tx =>
    closeException(tx, { exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked the bank', now, ...decided }),
  )
  await scene.run('read-rail-reports')
}

/** A batch that was given back, and that the bank debits all the same. */
async function paidAfterGiveBack(...nets: number[]) {
  const sent = await scene.sent(...nets)
  await scene.answer(message(), `batch;${sent.messageId};rejected;FF01`)
  expect(await scene.statusesOf(sent.payments)).toEqual(nets.map(() => 'failed'))
  await scene.answer(message(), `entry;-${nets.reduce((sum, net) => sum + net, 0)}EUR;${sent.messageId};E1;2026-03-11`)
  expect((await scene.open()).map(({ kind }) => kind)).toEqual(['paid_after_give_back'])
  return sent
}

const memberOf = ({ payments }: { payments: SentPayment[] }, index = 0) => payments[index]?.memberId ?? ''
const eventsOf = async (id = '') =>
  (await scene.harness.call('GET', `/v1/events?resourceId=${id}`)).body.events.map(
    ({ type, data }: { type: string; data: { reason?: string } }) => [type, data.reason].filter(Boolean).join(': '),
  )
const timelineOf = async (id = '') =>
  (await scene.harness.call('GET', `/v1/pay/withdrawals/${id}`)).body.timeline.map(
    ({ status, reason }: { status: string; reason: string | null }) =>
      reason === null ? `withdrawal.${status}` : `withdrawal.${status}: ${reason}`,
  )
const payRun = async (memberId: string, amount: number) =>
  await scene.harness.call('POST', '/v1/pay/run', {
    body: { payDetails: [{ memberId, money: { amount, currency: 'EUR' } }] },
  })

describe('A batch that the bank paid after its money was given back', () => {
  test('is recovered: net and fee from what is available, and what is spent is owed and repaid by the next pay run', async () => {
    const sent = await paidAfterGiveBack(5_000, 6_000)
    // The first member withdraws a part again, the second still has the money.
    await scene.withdrawAgain(memberOf(sent), 2_000)
    const before = await scene.books()
    await decide({ decision: 'recover' })
    expect(await scene.open()).toEqual([])
    expect(await scene.statusesOf(sent.payments)).toEqual(['paid', 'paid'])
    expect(await scene.balanceOf(memberOf(sent))).toEqual({ available: 0, owed: 2_050 })
    expect(await scene.balanceOf(memberOf(sent, 1))).toEqual({ available: 0, owed: 0 })
    const after = await scene.books()
    expect((after.float ?? 0) - (before.float ?? 0)).toBe(-11_000)
    expect((after.fees ?? 0) - (before.fees ?? 0)).toBe(-100)
    expect(await eventsOf(sent.payments[0]?.id)).toEqual([
      ...['withdrawal.held', 'withdrawal.submitted'],
      'withdrawal.failed: FF01 The file or payment is malformed',
      'withdrawal.paid: The bank has paid after all',
    ])
    expect(await timelineOf(sent.payments[0]?.id)).toEqual(await eventsOf(sent.payments[0]?.id))
    await payRun(memberOf(sent), 3_000)
    expect(await scene.balanceOf(memberOf(sent))).toEqual({ available: 950, owed: 0 })
  })

  test('is recovered in the open cycle if its cycle is closed, and deducted there', async () => {
    const sent = await paidAfterGiveBack(5_000)
    const { partner, clock, call } = scene.harness
    clock.set(new Date('2026-05-05T10:00:00.000Z'))
    while (await scene.inTx(tx => closeIfOver(tx, { partnerId: partner.id, now: clock.now() })));
    await decide({ decision: 'recover' })
    expect(await scene.statusesOf(sent.payments)).toEqual(['paid'])
    expect(await scene.balanceOf(memberOf(sent))).toEqual({ available: 0, owed: 5_050 })
    await payRun(memberOf(sent), 6_000)
    const [open] = (await call('GET', '/v1/pay/cycles?statuses=Open')).body.payCycles
    const { deductions } = (await call('GET', `/v1/pay/cycles/${open.id}/deductions?take=1000`)).body
    expect(deductions).toContainEqual({ memberId: memberOf(sent), total: { amount: 5_050, currency: 'EUR' } })
  })

  test('pays its fee with the settlement of the cycle that it is recovered in, and with no other', async () => {
    const sent = await paidAfterGiveBack(5_000)
    const { partner, clock, call } = scene.harness
    const turn = async (at: string) => {
      const [cycle] = (await call('GET', '/v1/pay/cycles?statuses=Open')).body.payCycles
      clock.set(new Date(at))
      while (await scene.inTx(tx => closeIfOver(tx, { partnerId: partner.id, now: clock.now() })));
      return cycle.id
    }
    const settle = async (payCycleId: string) => {
      const { deductions } = (await call('GET', `/v1/pay/cycles/${payCycleId}/deductions?take=1000`)).body
      const body = {
        deductions: deductions.map(({ memberId, total }: { memberId: string; total: object }) => ({
          memberId,
          taken: total,
        })),
      }
      expect((await call('POST', `/v1/pay/cycles/${payCycleId}/settlement`, { body })).status).toBe(201)
    }
    const coveredIn = async () => {
      const { rows } = await scene.harness.pool.query<{ pay_cycle_id: string; covered: string }>(
        'select pay_cycle_id, covered::text from settlement_fees where withdrawal_id = $1 and released_at is null',
        [sent.payments[0]?.id],
      )
      return rows
    }
    const first = await turn('2026-08-05T10:00:00.000Z')
    await decide({ decision: 'recover' })
    await settle(first)
    expect(await coveredIn()).toEqual([])
    await payRun(memberOf(sent), 6_000)
    const second = await turn('2026-10-05T10:00:00.000Z')
    await settle(second)
    expect(await coveredIn()).toEqual([{ pay_cycle_id: second, covered: '50' }])
  })

  test('is recovered payment by payment if the bank made some, which must explain the debit', async () => {
    const sent = await scene.sent(5_000, 6_000, 7_000)
    const [first = '', second = '', third = ''] = sent.payments.map(({ reference }) => reference)
    await scene.answer(message(), `batch;${sent.messageId};rejected;FF01`)
    await scene.answer(message(), `entry;-12000EUR;${sent.messageId};E1;2026-03-11`)
    await expect(decide({ decision: 'recover' })).rejects.toThrow(
      'The payments add up to 180.00 EUR, but the debit of 120.00 EUR holds 120.00 EUR that were given back; name the payments',
    )
    await expect(decide({ decision: 'recover', references: [first, second] })).rejects.toThrow('add up to 110.00 EUR')
    await expect(decide({ decision: 'recover', references: ['MMAAAAAAAAAAAAAA'] })).rejects.toThrow(
      'MMAAAAAAAAAAAAAA is not a payment of the batch',
    )
    await decide({ decision: 'recover', references: [third, first] })
    expect(await scene.statusesOf(sent.payments)).toEqual(['paid', 'failed', 'paid'])
    expect(await scene.open()).toEqual([])
  })

  test('pays the payments that wait for an answer, if a part of it was given back', async () => {
    const sent = await scene.sent(5_000, 6_000)
    await scene.answer(message(), `failed;${sent.payments[0]?.reference};5000EUR;AC04`)
    await scene.answer(message(), `entry;-11000EUR;${sent.messageId};E1;2026-03-11`)
    await decide({ decision: 'recover' })
    expect(await scene.statusesOf(sent.payments)).toEqual(['paid', 'paid'])
    expect(await scene.open()).toEqual([])
  })

  test('closes the exceptions that announced it, and the debit that an acceptance had announced; a second debit stays', async () => {
    const sent = await scene.sent(5_000)
    await scene.answer(message(), `batch;${sent.messageId};rejected;FF01`)
    await scene.answer(message(), `batch;${sent.messageId};acknowledged`)
    await scene.answer(message(), `paid;${sent.payments[0]?.reference};5000EUR`)
    for (const bank of ['E1', 'E2'])
      await scene.answer(message(), `entry;-5000EUR;${sent.messageId};${bank};2026-03-11`)
    expect(await scene.open()).toHaveLength(4)
    await expect(decide({ decision: 'recover' }, 3)).rejects.toThrow('An earlier debit')
    await decide({ decision: 'recover' })
    expect(await scene.open()).toMatchObject([
      {
        kind: 'money_out',
        amount: -5_000n,
        reason: 'The bank debited the batch a second time; ask the bank to refund the second debit',
      },
    ])
    expect(await scene.statusesOf(sent.payments)).toEqual(['paid'])
  })
})

describe('A payment', () => {
  test('whose return the bank takes back is recovered, is not refunded by an old report, and can be returned again', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '', memberId = '' } = payments[0] ?? {}
    await scene.answer(message(), `paid;${reference};5000EUR;;E1;2026-03-10`)
    await scene.answer(message(), `returned;${reference};5000EUR;AC04;E2;2026-03-11`)
    await scene.answer(message(), `paid;${reference};5000EUR;;E3;2026-03-12`)
    await decide({ decision: 'recover' })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    expect(await scene.balanceOf(memberId)).toEqual({ available: 0, owed: 0 })
    // A reader that was killed before it saved its position reads everything again.
    await scene.harness.pool.query(`update rail_cursors set cursor = '0'`)
    await scene.run('read-rail-reports')
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    expect(await scene.open()).toEqual([])
    await scene.answer(message(), `returned;${reference};5000EUR;AC04;E4;2026-03-13`)
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
    expect(await scene.balanceOf(memberId)).toEqual({ available: 5_050, owed: 0 })
  })

  test('that was not given back cannot be recovered, and the database refuses the transition without a decision', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '', id = '' } = payments[0] ?? {}
    await scene.answer(message(), `paid;${reference};4900EUR`)
    await expect(decide({ decision: 'recover' })).rejects.toThrow(
      'Only payments that the bank made after their money was given back',
    )
    await decide({ decision: 'ignore' })
    await scene.answer(message(), `failed;${reference};5000EUR;AC04`)
    await expect(
      scene.harness.pool.query(`update withdrawals set status = 'paid' where id = $1`, [id]),
    ).rejects.toMatchObject(breaking('recovered_by_a_decision'))
  })

  test('is recovered once by two concurrent operators, while the member withdraws', async () => {
    const sent = await paidAfterGiveBack(5_000)
    const [exception] = await scene.open()
    const now = scene.harness.clock.now()
    const close = () =>
      scene.inTx(tx =>
        closeException(tx, {
          ...{ exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked the bank', now, decision: 'recover' },
        }),
      )
    const [one, other] = await Promise.allSettled([close(), close(), scene.withdrawAgain(memberOf(sent), 4_000)])
    expect([one?.status, other?.status].sort()).toEqual(['fulfilled', 'rejected'])
    await Promise.all([scene.run('read-rail-reports'), scene.run('read-rail-reports')])
    expect(await scene.balanceOf(memberOf(sent))).toEqual({ available: 0, owed: 4_050 })
  })
})

describe('At the operator’s cost', () => {
  test('a payment that was made after all is written off: the member keeps the money, and the float lacks it until it is covered', async () => {
    const sent = await paidAfterGiveBack(5_000)
    const { db, partner, clock } = scene.harness
    const before = await scene.books()
    await decide({ decision: 'write_off' })
    expect(await scene.statusesOf(sent.payments)).toEqual(['failed'])
    expect(await scene.balanceOf(memberOf(sent))).toEqual({ available: 5_050, owed: 0 })
    const after = await scene.books()
    expect(after).toEqual({ ...before, float: (before.float ?? 0) - 5_000, operator_costs: 5_000 })
    const floatOf = async () => (await float.read(db, partner.id)).find(({ currency }) => currency === 'EUR')
    expect(await floatOf()).toMatchObject({ uncovered: 5_000n })
    const cover = (amount: bigint) =>
      scene.inTx(tx =>
        float.cover(tx, {
          ...{
            partnerId: partner.id,
            amount: { amount, currency: 'EUR' },
            reference: `cover ${amount}`,
            now: clock.now(),
          },
        }),
      )
    await scene.answer(message(), 'balance;2026-12-31;1EUR')
    const [day] = await listBalances(db, scene.settings, { daysMax: 1 })
    expect(day).toMatchObject({ uncovered: 5_000n })
    await expect(cover(5_001n)).rejects.toThrow('The float lacks only 50.00 EUR')
    // The operator's transfer arrives under its reference, and needs no decision.
    await cover(5_000n)
    await scene.answer(message(), 'entry;5000EUR;cover 5000;C1;2026-03-12')
    expect(await scene.open()).toEqual([])
    expect(await floatOf()).toMatchObject({ uncovered: 0n })
    expect(await scene.books()).toEqual({ ...before })
  })

  test('a written-off debit is not also recovered by an answer without money, and its return covers it', async () => {
    const sent = await scene.sent(5_000)
    const { reference = '' } = sent.payments[0] ?? {}
    const { partner, other } = scene.harness
    const before = await scene.books()
    await scene.answer(message(), `batch;${sent.messageId};rejected;FF01`)
    await scene.answer(message(), `batch;${sent.messageId};acknowledged`)
    await scene.answer(message(), `paid;${reference};5000EUR`)
    await scene.answer(message(), `entry;-5000EUR;${sent.messageId};E1;2026-03-11`)
    await decide({ decision: 'write_off' }, 2)
    for (const index of [0, 1])
      await expect(decide({ decision: 'recover' }, index)).rejects.toThrow(`The debit of ${reference} is written off`)
    for (const _ of [0, 1]) await decide({ decision: 'ignore' })
    await scene.answer(message(), `returned;${reference};5000EUR;AC04;E2;2026-03-12`)
    expect(await scene.open()).toMatchObject([{ kind: 'contradiction', outcome: 'returned', amount: 5_000n }])
    await expect(decide({ decision: 'book', partnerId: other.partner.id })).rejects.toThrow(partner.id)
    await decide({ decision: 'book', partnerId: partner.id })
    expect(await scene.statusesOf(sent.payments)).toEqual(['failed'])
    const after = await scene.books()
    for (const account of ['float', 'operator_costs', 'funding']) expect(after[account]).toBe(before[account])
    expect(await scene.open()).toEqual([])
  })

  test('money that left without a payment is written off for a partner, once', async () => {
    await scene.sent(5_000)
    await scene.answer(message(), 'entry;-300EUR;charge;E1;2026-03-11')
    await expect(decide({ decision: 'write_off' })).rejects.toThrow('Name the partner')
    const before = await scene.books()
    await decide({ decision: 'write_off', partnerId: scene.harness.partner.id })
    expect((await scene.books()).operator_costs).toBe((before.operator_costs ?? 0) + 300)
    await scene.answer(message(), 'entry;300EUR;gift;E2;2026-03-11')
    await expect(decide({ decision: 'write_off' })).rejects.toThrow('Only money that left the account is written off')
  })

  test('a debit beyond the recovered one is money that left, and the operator can bear it', async () => {
    const { payments, messageId } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await scene.answer(message(), `failed;${reference};5000EUR;AC04`)
    for (const [bank, day] of [
      ['E1', '2026-03-11'],
      ['E2', '2026-03-12'],
    ])
      await scene.answer(message(), `paid;${reference};5000EUR;;${bank};${day}`)
    await scene.answer(message(), `entry;-5000EUR;${messageId};E3;2026-03-12`)
    const before = await scene.books()
    await decide({ decision: 'recover' })
    expect(await scene.open()).toMatchObject([
      { kind: 'money_out', reference, amount: -5_000n },
      { kind: 'money_out', reference: messageId, amount: -5_000n },
    ])
    await decide({ decision: 'write_off', partnerId: scene.harness.partner.id })
    await decide({ decision: 'write_off', partnerId: scene.harness.partner.id })
    const after = await scene.books()
    expect((after.float ?? 0) - (before.float ?? 0)).toBe(-15_000)
    expect((after.operator_costs ?? 0) - (before.operator_costs ?? 0)).toBe(10_000)
  })
})
