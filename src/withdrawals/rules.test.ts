import fc from 'fast-check'
import { expect, test } from 'vitest'
import { badAccount, bronze, euAccount, gold, goodAccount } from '../../test/harness/harness.ts'
import { Problem } from '../kernel/errors.ts'
import type { Tier } from '../tiers/rules.ts'
import {
  decideCompletions,
  decideIntent,
  type Facts,
  type Intent,
  type MemberFacts,
  type Quote,
  refuseCompletion,
  statusAt,
} from './rules.ts'

const memberId = 'mem_01kah4pzc5e4r8v2m6t0x9y3bd'
const payCycleId = 'pc_01kah4pzc5e4r8v2m6t0x9y3bd'
const tier: Tier = { ...bronze, name: 'Bronze', version: 1, currency: 'GBP' }
const member: MemberFacts = {
  ...{ id: memberId, status: 'active', account: goodAccount, tier, available: 12_000n },
  ...{ withdrawalsToday: 0, withdrawalsThisCycle: 0, accountRefused: null, reviewReason: null },
}
const facts: Facts = { hasRail: true, paused: false, float: null, payCycleId, member }
const now = new Date('2026-03-10T09:00:00Z')

const decide = (about: Facts, amount = 5_000n, currency: 'GBP' | 'EUR' = 'GBP') =>
  decideIntent(about, { memberId, amount: { amount, currency } })
const codeOf = (decision: Quote | Problem | undefined) => (decision instanceof Problem ? decision.name : decision)

test('an intent splits the amount into fee and net', () => {
  expect(decide(facts)).toMatchObject({
    grossAmount: 5_000n,
    fee: 100n,
    netAmount: 4_900n,
    employerFee: 0n,
    tier: 'Bronze',
    tierVersion: 1,
  })
})

test('if the employer pays the fee, the member gets the whole amount and the employer owes the fee', () => {
  const about = { ...facts, member: { ...member, tier: { ...tier, ...gold } } }
  expect(decide(about)).toMatchObject({ grossAmount: 5_000n, fee: 0n, netAmount: 5_000n, employerFee: 50n })
})

test('each refusal has its reason', () => {
  expect(codeOf(decide({ ...facts, member: null }))).toBe('MemberNotFound')
  expect(codeOf(decide(facts, 5_000n, 'EUR'))).toBe('BodyValidation')
  expect(codeOf(decide({ ...facts, paused: true }))).toBe('UnprocessableEntity')
  expect(codeOf(decide({ ...facts, payCycleId: null }))).toBe('UnprocessableEntity')
  expect(codeOf(decide({ ...facts, member: { ...member, status: 'invited' } }))).toBe('MemberNotEligible')
  expect(codeOf(decide({ ...facts, member: { ...member, status: 'inactive' } }))).toBe('MemberNotEligible')
  expect(codeOf(decide({ ...facts, member: { ...member, account: null } }))).toBe('BankAccountInvalid')
  expect(codeOf(decide({ ...facts, member: { ...member, account: badAccount } }))).toBe('BankAccountInvalid')
  expect(codeOf(decide({ ...facts, member: { ...member, reviewReason: 'MS03' } }))).toBe('MemberNotEligible')
  expect(codeOf(decide({ ...facts, member: { ...member, accountRefused: 'AC04' } }))).toBe('BankAccountInvalid')
  expect(codeOf(decide(facts, 999n))).toBe('AmountBelowLowerLimit')
  expect(codeOf(decide(facts, 20_001n))).toBe('AmountAboveUpperLimit')
  expect(codeOf(decide(facts, 12_001n))).toBe('MemberInsufficientFunds')
})

test('the exact limits and the exact balance can be withdrawn', () => {
  expect(decide(facts, 1_000n)).toMatchObject({ grossAmount: 1_000n })
  expect(decide(facts, 12_000n)).toMatchObject({ grossAmount: 12_000n })
  expect(decide({ ...facts, member: { ...member, available: 20_000n } }, 20_000n)).toMatchObject({
    grossAmount: 20_000n,
  })
})

test('without a bank a withdrawal is refused before other checks of the member, but after an unknown member', () => {
  const invited = { ...member, status: 'invited' as const }
  expect(codeOf(decide({ ...facts, hasRail: false, paused: true, member: invited }))).toBe('UnprocessableEntity')
  expect(codeOf(decide({ ...facts, hasRail: false, member: null }))).toBe('MemberNotFound')
})

test('when two refusals apply, the first in the error table is returned', () => {
  const hopeless: MemberFacts = { ...member, status: 'inactive', account: null, available: 0n }
  expect(codeOf(decide({ ...facts, paused: true, payCycleId: null, member: hopeless }, 1n))).toBe('UnprocessableEntity')
  expect(codeOf(decide({ ...facts, member: hopeless }, 1n))).toBe('MemberNotEligible')
  expect(codeOf(decide({ ...facts, member: { ...hopeless, status: 'active' } }, 1n))).toBe('BankAccountInvalid')
  expect(codeOf(decide({ ...facts, member: { ...member, available: 0n } }, 1n))).toBe('AmountBelowLowerLimit')
})

test('a tier limits the number of withdrawals', () => {
  const limited = { ...tier, withdrawalsPerDay: 1, withdrawalsPerCycle: 3 }
  const after = (withdrawalsToday: number, withdrawalsThisCycle: number) =>
    codeOf(decide({ ...facts, member: { ...member, tier: limited, withdrawalsToday, withdrawalsThisCycle } }))
  expect(after(0, 2)).toMatchObject({ grossAmount: 5_000n })
  expect(after(1, 1)).toBe('MemberNotEligible')
  expect(after(0, 3)).toBe('MemberNotEligible')
})

const quoted = decide(facts)
if (quoted instanceof Problem) throw quoted
const intent: Intent = {
  ...quoted,
  id: 'wi_01kah4pzc5e4r8v2m6t0x9y3bd',
  status: 'pending',
  createdAt: now,
  expiresAt: new Date('2026-03-10T09:15:00Z'),
}

test('an outdated intent is a conflict, whatever else is wrong', () => {
  const refused = (about: Facts, change: Partial<Intent> = {}, at = now) =>
    codeOf(refuseCompletion(about, { ...intent, ...change }, at))
  expect(refused(facts)).toBeUndefined()
  expect(refused(facts, { status: 'cancelled' })).toBe('Conflict')
  expect(refused(facts, {}, intent.expiresAt)).toBe('Conflict')
  expect(refused({ ...facts, paused: true, payCycleId: 'pc_other' })).toBe('Conflict')
  expect(refused({ ...facts, member: { ...member, account: euAccount } })).toBe('Conflict')
  expect(refused({ ...facts, member: { ...member, account: null } })).toBe('Conflict')
  expect(refused({ ...facts, member: { ...member, account: { ...goodAccount, accountHolder: 'S Okafor' } } })).toBe(
    'Conflict',
  )
})

test('completing checks state, cycle, limits and funds again', () => {
  const refused = (about: Facts) => codeOf(refuseCompletion(about, intent, now))
  expect(refused({ ...facts, paused: true })).toBe('UnprocessableEntity')
  expect(refused({ ...facts, payCycleId: null })).toBe('UnprocessableEntity')
  expect(refused({ ...facts, member: { ...member, status: 'inactive' } })).toBe('MemberNotEligible')
  expect(refused({ ...facts, member: { ...member, tier: { ...tier, upperLimit: 4_000n } } })).toBe(
    'AmountAboveUpperLimit',
  )
  expect(refused({ ...facts, member: { ...member, available: 4_999n } })).toBe('MemberInsufficientFunds')
})

test('an intent keeps its fee: a later fee increase does not make its amount too small', () => {
  const cheap = { ...member, tier: { ...tier, lowerLimit: 1n, feeFixed: 50n, feeBps: 0, feeMin: null, feeMax: null } }
  const small = decide({ ...facts, member: cheap }, 60n)
  if (small instanceof Problem) throw small
  const dear = { ...cheap, tier: { ...cheap.tier, feeFixed: 75n } }
  const since = { ...facts, member: dear }
  expect(codeOf(decide(since, 60n))).toBe('AmountBelowLowerLimit')
  expect(codeOf(refuseCompletion(since, { ...intent, ...small }, now))).toBeUndefined()
})

test('an intent expires to the millisecond, even before its status says so', () => {
  const at = (ms: number) => statusAt(intent, new Date(intent.expiresAt.getTime() + ms))
  expect(at(-1)).toBe('pending')
  expect(at(0)).toBe('expired')
  expect(statusAt({ ...intent, status: 'completed' }, new Date('2030-01-01'))).toBe('completed')
})

test('a batch of completions is decided as if they came one after the other', () => {
  const amounts = fc.bigInt({ min: 900n, max: 7_000n })
  const commands = fc.array(fc.record({ who: fc.nat(2), amount: amounts }), { minLength: 1, maxLength: 12 })
  const limits = fc.record({
    available: fc.bigInt({ min: 0n, max: 20_000n }),
    withdrawalsPerDay: fc.option(fc.integer({ min: 1, max: 3 })),
    free: fc.bigInt({ min: 0n, max: 30_000n }),
    floor: fc.option(fc.bigInt({ min: 0n, max: 20_000n })),
  })
  fc.assert(
    fc.property(commands, limits, (asked, { available, withdrawalsPerDay, free, floor }) => {
      const all = asked.map(({ who, amount }, index) => ({
        partnerId: 'par_1',
        now,
        intent: { ...intent, id: `wi_${index}`, memberId: `mem_${who}`, amount, net: amount - 50n, fee: 50n },
      }))
      // The expected balances, free amounts and alerts, calculated by hand, one completion at a time.
      const left = new Map<string, { available: bigint; count: number }>()
      let isAlerted = false
      const factsOf = (memberId: string, asLoaded: boolean): Facts => {
        const is = (asLoaded ? undefined : left.get(memberId)) ?? { available, count: 0 }
        const watched =
          floor === null ? null : { floor, free: asLoaded ? start : free, isAlerted: !asLoaded && isAlerted }
        const known = { ...member, id: memberId, tier: { ...tier, withdrawalsPerDay }, available: is.available }
        return {
          ...facts,
          float: watched,
          member: { ...known, withdrawalsToday: is.count, withdrawalsThisCycle: is.count },
        }
      }
      const start = free
      const expected = all.map(({ intent }) => {
        const about = factsOf(intent.memberId, false)
        const refusal = refuseCompletion(about, intent, now)
        if (refusal !== undefined) return refusal.name
        const is = left.get(intent.memberId) ?? { available, count: 0 }
        left.set(intent.memberId, { available: is.available - intent.grossAmount, count: is.count + 1 })
        free -= intent.netAmount
        const crossesFloor = floor !== null && !isAlerted && free < floor
        isAlerted ||= crossesFloor
        return { balanceAfter: is.available - intent.grossAmount, crossesFloor }
      })
      const decided = decideCompletions(all.map(each => ({ ...each, facts: factsOf(each.intent.memberId, true) })))
      expect(decided.map(each => (each instanceof Problem ? each.name : each))).toEqual(expected)
    }),
  )
})

test('a daily limit holds for two days in one batch, in either order', () => {
  const limited = { ...member, tier: { ...tier, withdrawalsPerDay: 2 } }
  const asked = (id: string, withdrawalsToday: number) => ({
    ...{ partnerId: 'par_1', now, intent: { ...intent, id } },
    facts: { ...facts, member: { ...limited, withdrawalsToday } },
  })
  const decided = decideCompletions([asked('wi_today', 0), asked('wi_yesterday', 2)])
  expect(decided.map(each => (each instanceof Problem ? each.name : 'accepted'))).toEqual([
    'accepted',
    'MemberNotEligible',
  ])
})
