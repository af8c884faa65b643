import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '../../../../test/harness/harness.ts'
import { type ChannelUnderTest, channelConformance } from '../../../../test/payouts/channel-conformance.ts'
import { check } from '../../../bank-accounts/rules.ts'
import { sql } from '../../../database/database.ts'
import { referenceOf } from '../../payments/reference.ts'
import { within } from '../channel.ts'
import { addFault, behaviourFor, instruct, simulatedBank } from './simulated-bank.ts'

const holder = { accountHolder: 'Sam Okafor' }
const goodAccount = { ...holder, sortCode: '089999', accountNumber: '66374958' }
const goodAmount = { amount: 5_000n, currency: 'GBP' as const }

const documented = [
  ['000001', 'DE09000000000000000001', 6_601n, 'failed'],
  ['000002', 'DE79000000000000000002', 6_602n, 'returned'],
  ['000003', 'DE52000000000000000003', 6_603n, 'slow'],
  ['000004', 'DE25000000000000000004', 6_604n, 'silent'],
  ['000005', 'DE95000000000000000005', 6_605n, 'twice'],
  ['000006', 'DE68000000000000000006', 6_606n, 'lost'],
] as const

channelConformance('simulated-bank', async (): Promise<ChannelUnderTest> => {
  const { db, clock, partner, stop } = await startHarness()
  const amounts = { paid: 5_000n, failed: 6_601n, returned: 6_602n }
  return {
    rail: simulatedBank({ db, now: clock.now }),
    payment(destiny) {
      const of = { partnerId: partner.id, withdrawalId: `w_${randomBytes(13).toString('hex')}` }
      const netAmount = { amount: amounts[destiny], currency: 'GBP' as const }
      return { ...of, reference: referenceOf(of), netAmount, account: goodAccount }
    },
    async letTimeGoBy() {
      clock.advance({ minutes: 10 })
    },
    async executed(reference) {
      const reports = await db
        .selectFrom('simulatedBankReports')
        .select('outcome')
        .where('reference', '=', reference)
        .execute()
      return reports.filter(({ outcome }) => outcome === 'paid').length
    },
    stop,
  }
})

test.each(documented)(
  '%s, %s and the net amount %s mean %s, and the accounts pass their checks',
  (sortCode, iban, amount, behaviour) => {
    const uk = { ...holder, sortCode, accountNumber: '12345678' }
    const eu = { ...holder, iban }
    expect([check(uk), check(eu)]).toEqual(['unknown', 'valid'])
    expect(behaviourFor({ account: uk, netAmount: goodAmount })).toBe(behaviour)
    expect(behaviourFor({ account: eu, netAmount: goodAmount })).toBe(behaviour)
    expect(behaviourFor({ account: goodAccount, netAmount: { amount, currency: 'JPY' } })).toBe(behaviour)
  },
)

test('everything else is paid, and a special account takes precedence over a special amount', () => {
  expect(behaviourFor({ account: goodAccount, netAmount: goodAmount })).toBe('paid')
  const failing = { ...holder, sortCode: '000001', accountNumber: '12345678' }
  expect(behaviourFor({ account: failing, netAmount: { amount: 6_603n, currency: 'GBP' } })).toBe('failed')
})

test('a call is abandoned after its timeout, even if it ignores its abort signal', async () => {
  await expect(within(1, () => new Promise(() => undefined))).rejects.toThrow('No answer within 1 ms')
  await expect(within(10_000, async () => 'an answer')).resolves.toBe('an answer')
  await expect(within(10_000, async () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
})

test('a payment that is instructed while the bank is receiving it is treated as instructed', async () => {
  const { db, clock, partner, stop } = await startHarness()
  try {
    const partnerId = partner.id
    const withdrawalId = `w_${randomBytes(13).toString('hex')}`
    const reference = referenceOf({ partnerId, withdrawalId })
    const bank = simulatedBank({ db, now: clock.now })
    await db.transaction().execute(tx => addFault(tx, { partnerId, fault: 'late', count: 1 }))
    let submitting: ReturnType<typeof bank.submit> | undefined
    await db.transaction().execute(async tx => {
      await sql`select from simulated_bank_faults where partner_id = ${partnerId} for update`.execute(tx)
      const payment = { partnerId, withdrawalId, reference, netAmount: goodAmount, account: goodAccount }
      submitting = bank.submit([payment], new AbortController().signal)
      for (;;) {
        const { rows } = await sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
        if (rows.length > 0) break
      }
      const instruction = {
        partnerId,
        withdrawalId,
        now: clock.now(),
        outcome: 'hold',
        reason: null,
        restriction: null,
      } as const
      await db.transaction().execute(other => instruct(other, instruction))
    })
    await submitting
    clock.advance({ minutes: 10 })
    expect(await bank.ask([reference], new AbortController().signal)).toMatchObject([{ reference, outcome: 'pending' }])
  } finally {
    await stop()
  }
})
