import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import { partnersToFold } from '../database/folding.ts'
import { foldCycleChanges, sumCycle } from './ledger.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('what is available and how many deductions there are is right at any time, folded or not', async () => {
  const { partner, key, payCycle } = await harness.addPartner('Sums', { holdSeconds: 600 })
  const partnerId = partner.id
  const fold = () => harness.inTx(tx => foldCycleChanges(tx, { partnerId, countMax: 3 }))
  const sums = () => sumCycle(harness.db, { partnerId, payCycleId: payCycle.id })
  expect(await sums()).toEqual([])
  const withdrawals = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const made = await harness.addWithdrawal({ key, available: 20_000, net: 1_000 * (index + 1) })
      if (index % 3 === 0) await fold()
      return made
    }),
  )
  const spent = 12 * 50 + 1_000 * 78
  expect(await sums()).toEqual([{ currency: 'GBP', available: BigInt(12 * 20_000 - spent), deductions: 12 }])
  await Promise.all([fold(), fold()])
  const [first] = withdrawals
  const cancelled = await harness.call('POST', `/v1/pay/withdrawals/${first?.id}/cancel`, { key })
  expect(cancelled.status, cancelled.text).toBe(200)
  expect(await sums()).toEqual([{ currency: 'GBP', available: BigInt(12 * 20_000 - spent + 1_050), deductions: 11 }])
  await harness.withdraw({ memberId: first?.memberId ?? '', amount: 1_050, key })
  while ((await fold()) > 0);
  expect(await partnersToFold(harness.db, 'ledger_cycle_changes', { countMin: 1 })).not.toContainEqual({ partnerId })
  expect(await sums()).toEqual([{ currency: 'GBP', available: BigInt(12 * 20_000 - spent), deductions: 12 }])
  const path = `/v1/pay/cycles/${payCycle.id}/deductions`
  expect((await harness.call('GET', `${path}?take=2`, { key })).body.total).toBe(12)
  // Recomputed: pay that was earned and is no longer available.
  const { rows } = await sql<{ memberId: string; amount: bigint }>`
    select b.member_id, (sum(case t.debit when 'earned_pay' then t.amount else -t.amount end) - b.available)::bigint as amount
      from ledger_balances b
      join ledger_transfers t on t.partner_id = b.partner_id and t.member_id = b.member_id
     where b.partner_id = ${partnerId} and 'earned_pay' in (t.debit, t.credit)
     group by b.member_id, b.available order by b.member_id`.execute(harness.db)
  const kept = await harness.db
    .selectFrom('ledgerDeductions')
    .select(['memberId', 'amount'])
    .where('partnerId', '=', partnerId)
    .orderBy('memberId')
    .execute()
  expect(kept).toEqual(rows)
})
