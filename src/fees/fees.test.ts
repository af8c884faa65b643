import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { closeIfOver } from '../closing/closing.ts'
import { sql } from '../database/database.ts'
import type { PartnerSettings } from '../partners/partners.ts'
import * as dues from '../settlements/dues.ts'
import * as settlements from '../settlements/settlements.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const march = new Date('2026-03-10T09:00:00.000Z')
const april = new Date('2026-04-02T10:00:00.000Z')
const may = new Date('2026-05-02T10:00:00.000Z')
const gbp = (amount: bigint) => ({ amount, currency: 'GBP' as const })

type Withdrawn = { mine: TestPartner; members: string[]; withdrawals: string[] }

/** Members who have each withdrawn an amount or several, with a fee of 0.50 each, in a pay cycle that has closed. */
async function closedCycle(amounts: (number | number[])[], settings: PartnerSettings = {}): Promise<Withdrawn> {
  harness.clock.set(march)
  const mine = await harness.addPartner('Fees', settings)
  const members: string[] = []
  const ids: string[] = []
  for (const ofMember of amounts) {
    const memberId = await harness.addMember({ key: mine.key, available: 20_000 })
    members.push(memberId)
    for (const amount of [ofMember].flat()) {
      ids.push(await harness.withdraw({ key: mine.key, memberId, amount }))
      harness.clock.advance({ seconds: 1 })
    }
  }
  harness.clock.advance({ minutes: 2 })
  await harness.inTx(tx => withdrawals.submitDue(tx, claimingAt(harness.clock.now(), mine.partner.id)))
  for (const id of ids) await report(mine, id, 'paid')
  await close(mine, april)
  return { mine, members, withdrawals: ids }
}

const report = ({ partner }: TestPartner, withdrawalId: string, outcome: 'paid' | 'returned') =>
  harness.inTx(tx =>
    withdrawals.applyBankReport(tx, {
      ...{ partnerId: partner.id, withdrawalId, outcome, reason: null },
      now: harness.clock.now(),
    }),
  )

async function close({ partner }: TestPartner, at: Date): Promise<void> {
  harness.clock.set(at)
  await harness.inTx(tx => closeIfOver(tx, { partnerId: partner.id, now: at }))
}

/** Settles a cycle whose money the bank will report. */
const settle = (
  { partner }: TestPartner,
  payCycleId: string,
  taken: [memberId: string | undefined, amount: bigint][],
) =>
  harness.inTx(tx =>
    settlements.create(tx, {
      ...{ partnerId: partner.id, payCycleId, reportsArrivals: () => true, now: harness.clock.now() },
      report: {
        taken: taken.map(([memberId = '', amount], at) => ({ memberId, at, ...gbp(amount) })),
        faults: [],
        naming: { problem: 'BodyValidation', placeOf: ({ at }) => ({ path: String(at) }) },
      },
    }),
  )

const receive = ({ partner }: TestPartner, payCycleId: string, amount: bigint) =>
  harness.inTx(tx =>
    dues.receive(tx, {
      ...{ partnerId: partner.id, payCycleId, amount: gbp(amount), isByHand: true, now: harness.clock.now() },
    }),
  )

async function balanceOf({ partner }: TestPartner, account: string): Promise<bigint> {
  const { rows } = await sql<{ balance: bigint }>`
    select coalesce(sum(case when credit = ${account} then amount else -amount end), 0)::bigint as balance
      from ledger_transfers where partner_id = ${partner.id} and (debit = ${account} or credit = ${account})`.execute(
    harness.db,
  )
  return rows[0]?.balance ?? 0n
}

const openCycle = async ({ partner }: TestPartner) =>
  await harness.db
    .selectFrom('payCycles')
    .select('id')
    .where('partnerId', '=', partner.id)
    .where('status', '=', 'Open')
    .executeTakeFirstOrThrow()

describe('fees that members pay', () => {
  test('become revenue as the worked example of docs/internals/ledger.md says', async () => {
    const { mine, members, withdrawals: ids } = await closedCycle([10_000, 4_000, 2_000])
    const [ann, bob, cem] = members
    const balances = async () => [await balanceOf(mine, 'fees'), await balanceOf(mine, 'revenue')]
    const next = await openCycle(mine)
    expect(await balances()).toEqual([150n, 0n])
    await settle(mine, mine.payCycle.id, [
      [ann, 10_000n],
      [bob, 1_000n],
      [cem, 30n],
    ])
    expect(await balances()).toEqual([150n, 0n])
    await receive(mine, mine.payCycle.id, 100n)
    expect(await balances()).toEqual([50n, 100n])
    await receive(mine, mine.payCycle.id, 10_930n)
    expect(await balances()).toEqual([20n, 130n])
    await report(mine, ids[0] ?? '', 'returned')
    expect(await balances()).toEqual([20n, 80n])
    await close(mine, may)
    // Ann has not withdrawn the 100.00 again, so payroll pays her that amount, and is owed 50.30.
    await settle(mine, next.id, [
      [ann, -10_000n],
      [bob, 3_000n],
      [cem, 1_970n],
    ])
    expect(await balances()).toEqual([0n, 100n])
    expect(await harness.disagreements()).toEqual([])
  })

  test('are covered in the order of the withdrawals: a shortfall is taken from the latest fee first', async () => {
    const { mine, members, withdrawals: ids } = await closedCycle([[2_000, 3_000]])
    await settle(mine, mine.payCycle.id, [[members[0], 70n]])
    const covered = await harness.db
      .selectFrom('settlementFees')
      .select(['withdrawalId', 'covered', 'carried'])
      .where('partnerId', '=', mine.partner.id)
      .orderBy('withdrawalId')
      .execute()
    expect(covered).toEqual([
      { withdrawalId: ids[0], covered: 50n, carried: 0n },
      { withdrawalId: ids[1], covered: 20n, carried: 30n },
    ])
  })

  test('are not collected if the partner bears the shortfall, not even from later money', async () => {
    const { mine, members } = await closedCycle([2_000, 3_000], { shortfallPolicy: 'write_off' })
    await settle(mine, mine.payCycle.id, [
      [members[0], 30n],
      [members[1], 3_000n],
    ])
    await receive(mine, mine.payCycle.id, 3_030n)
    expect(await balanceOf(mine, 'revenue')).toBe(80n)
    expect(await balanceOf(mine, 'fees')).toBe(20n)
    const next = await openCycle(mine)
    const payDetails = [{ memberId: members[0], money: { amount: 20_000, currency: 'GBP' } }]
    await harness.call('POST', '/v1/pay/run', { key: mine.key, body: { payDetails } })
    await harness.withdraw({ key: mine.key, memberId: members[0] ?? '', amount: 4_000 })
    await close(mine, may)
    await settle(mine, next.id, [[members[0], 4_000n]])
    await receive(mine, next.id, 4_000n)
    expect(await balanceOf(mine, 'revenue')).toBe(130n)
    expect(await balanceOf(mine, 'fees')).toBe(20n)
    expect(await harness.disagreements()).toEqual([])
  })

  test('are not collected if the payment is returned before the money arrives', async () => {
    const { mine, members, withdrawals: ids } = await closedCycle([2_000, 3_000])
    await settle(mine, mine.payCycle.id, [
      [members[0], 2_000n],
      [members[1], 3_000n],
    ])
    await report(mine, ids[0] ?? '', 'returned')
    await receive(mine, mine.payCycle.id, 5_000n)
    expect(await balanceOf(mine, 'revenue')).toBe(50n)
    expect(await balanceOf(mine, 'fees')).toBe(0n)
    expect(await harness.disagreements()).toEqual([])
  })

  test('are collected if returned money pays for a new withdrawal and payroll deducts nothing', async () => {
    const { mine, members, withdrawals: ids } = await closedCycle([2_000])
    const next = await openCycle(mine)
    await report(mine, ids[0] ?? '', 'returned')
    await harness.withdraw({ key: mine.key, memberId: members[0] ?? '', amount: 2_000 })
    await settle(mine, mine.payCycle.id, [[members[0], 2_000n]])
    await receive(mine, mine.payCycle.id, 2_000n)
    expect(await balanceOf(mine, 'revenue')).toBe(0n)
    await close(mine, may)
    await settle(mine, next.id, [])
    expect(await balanceOf(mine, 'revenue')).toBe(50n)
    expect(await harness.disagreements()).toEqual([])
  })

  test('are booked back once when two returns and the last money arrive at the same time', async () => {
    const { mine, members, withdrawals: ids } = await closedCycle([2_000, 3_000, 4_000])
    await settle(
      mine,
      mine.payCycle.id,
      members.map((memberId, at) => [memberId, [2_000n, 3_000n, 4_000n][at] ?? 0n]),
    )
    await receive(mine, mine.payCycle.id, 120n)
    await Promise.all([
      receive(mine, mine.payCycle.id, 8_880n),
      ...ids.slice(0, 2).map(id => report(mine, id, 'returned')),
    ])
    expect(await balanceOf(mine, 'revenue')).toBe(50n)
    expect(await balanceOf(mine, 'fees')).toBe(0n)
    expect(await harness.disagreements()).toEqual([])
  })

  test.each([
    [
      'collected beyond what is covered',
      'collected_at_most_what_is_covered',
      sql`update fee_collections set collected = covered + 1`,
    ],
    [
      'booked back beyond what was collected',
      'collected_at_most_what_is_covered',
      sql`update fee_collections set collected = -1`,
    ],
    [
      'covered twice',
      'a_fee_is_covered_once',
      sql`
      insert into settlement_fees (partner_id, withdrawal_id, part, pay_cycle_id, currency, fee, due, covered, written_off, carried)
      select partner_id, withdrawal_id, part + 1, pay_cycle_id, currency, fee, fee, fee, 0, 0 from settlement_fees`,
    ],
    [
      'covered beyond the fee',
      'at_most_the_fee_is_due',
      sql`
      insert into settlement_fees (partner_id, withdrawal_id, part, pay_cycle_id, currency, fee, due, covered, written_off, carried)
      select partner_id, withdrawal_id, 1, pay_cycle_id, currency, fee, fee + 1, fee + 1, 0, 0 from settlement_fees`,
    ],
    ['covered again after its release', 'append_only', sql`update settlement_fees set released_at = null`],
  ])('cannot be %s, whatever the program does', async (_, constraint, statement) => {
    const { mine, members, withdrawals: ids } = await closedCycle([2_000, 3_000])
    await settle(mine, mine.payCycle.id, [
      [members[0], 2_000n],
      [members[1], 3_000n],
    ])
    if (constraint === 'append_only') await report(mine, ids[0] ?? '', 'returned')
    await expect(statement.execute(harness.ownerDb)).rejects.toMatchObject({ constraint })
  })
})
