import fc from 'fast-check'
import { expect, test } from 'vitest'
import { badAccount, bronze, euAccount, gold, goodAccount } from '../../test/harness/samples.ts'
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
  suspensionReason,
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

const limitedTier = { ...tier, withdrawalsPerDay: 1, withdrawalsPerCycle: 3 }
const of = (changes: Partial<MemberFacts>): Facts => ({ ...facts, member: { ...member, ...changes } })

test('each refusal says what is wrong', () => {
  const refused = (...asked: Parameters<typeof decide>) => {
    const refusal = decide(...asked)
    if (!(refusal instanceof Problem)) throw new Error('The withdrawal was accepted')
    expect([refusal.issues.length, refusal.headers]).toEqual([1, {}])
    return [refusal.name, { ...refusal.issues[0], code: undefined }]
  }
  expect(refused({ ...facts, member: null })).toEqual([
    'MemberNotFound',
    { message: 'There is no such member', memberId },
  ])
  expect(refused(facts, 5_000n, 'EUR')).toEqual([
    'BodyValidation',
    { message: "amount.currency must be GBP, the currency of the member's pay", path: 'amount.currency' },
  ])
  expect(refused({ ...facts, payCycleId: null })).toEqual([
    'UnprocessableEntity',
    { message: 'No pay cycle is open; try again when the next one has opened' },
  ])
  const ineligible = (message: string) => ['MemberNotEligible', { message, memberId }]
  for (const status of ['invited', 'inactive'] as const)
    expect(refused(of({ status }))).toEqual(ineligible(`The member is ${status}; only active members can withdraw`))
  expect(refused(of({ reviewReason: 'MS03' }))).toEqual(
    ineligible(
      'The bank did not make a payment to the member (MS03); ask the operator to review and release the member',
    ),
  )
  expect(refused(of({ tier: limitedTier, withdrawalsToday: 1 }))).toEqual(
    ineligible('The tier allows 1 withdrawal a day; try again tomorrow'),
  )
  expect(refused(of({ tier: limitedTier, withdrawalsThisCycle: 3 }))).toEqual(
    ineligible('The tier allows 3 withdrawals in a pay cycle; try again in the next'),
  )
  const badly = (message: string) => ['BankAccountInvalid', { message }]
  expect(refused(of({ account: null }))).toEqual(badly('The member has no bank account; add one to the member first'))
  expect(refused(of({ account: badAccount }))).toEqual(
    badly('The member’s bank account fails its check; correct it first'),
  )
  expect(refused(of({ accountRefusal: 'The name is too long' }))).toEqual(
    badly('The name is too long; change the member’s bank account first'),
  )
  expect(refused(of({ accountRefused: 'AC04' }))).toEqual(
    badly('The bank refused the member’s bank account (AC04); change the account first'),
  )
  expect(refused(facts, 999n)).toEqual([
    'AmountBelowLowerLimit',
    {
      message: 'The lowest amount that can be withdrawn is 10.00 GBP',
      lowerLimit: { amount: 1_000, currency: 'GBP' },
    },
  ])
  expect(refused(facts, 20_001n)).toEqual([
    'AmountAboveUpperLimit',
    {
      message: 'The highest amount that can be withdrawn at once is 200.00 GBP',
      upperLimit: { amount: 20_000, currency: 'GBP' },
    },
  ])
  expect(refused(facts, 12_001n)).toEqual([
    'MemberInsufficientFunds',
    { message: 'The amount exceeds the member’s available balance', memberId },
  ])
})

test('a suspended partner has a reason; a retry is worthwhile unless no bank is connected', () => {
  const low = { free: 999n, floor: 1_000n, isAlerted: true }
  const suspended = (changes: Partial<Facts>) => {
    const about = { ...facts, ...changes }
    const refusal = decide(about)
    const { message, headers } = refusal instanceof Problem ? refusal : { message: null, headers: null }
    return [suspensionReason(about), message, headers]
  }
  const retry = { 'retry-after': '300' }
  expect(suspended({})).toEqual([null, null, null])
  expect(suspended({ float: { ...low, free: 1_000n } })).toEqual([null, null, null])
  expect(suspended({ hasRail: false, paused: true, float: low })).toEqual([
    'no rail',
    'On-demand pay is unavailable: no bank is connected to this installation; ask its operator to connect one',
    {},
  ])
  const paused = 'On-demand pay is temporarily unavailable; try again later'
  expect(suspended({ paused: true, float: low })).toEqual(['paused', paused, retry])
  const unfunded = 'On-demand pay is temporarily unavailable until its float is funded again; try again later'
  expect(suspended({ float: low })).toEqual(['float low', unfunded, retry])
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
  expect(decide(of({ tier: limitedTier, withdrawalsToday: 0, withdrawalsThisCycle: 2 }))).toMatchObject({
    grossAmount: 5_000n,
  })
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

test('an outdated intent is a conflict that says why, whatever else is wrong', () => {
  const refused = (about: Facts, change: Partial<Intent> = {}, at = now) => {
    const refusal = refuseCompletion({ ...about, paused: true }, { ...intent, ...change }, at)
    return [refusal?.name, refusal?.message]
  }
  const conflict = (why: string, remedy = 'create a new one') => ['Conflict', `${why}; ${remedy}`]
  expect(refused(facts, { status: 'cancelled' })).toEqual(conflict('The withdrawal intent was cancelled'))
  expect(refused(facts, {}, intent.expiresAt)).toEqual(conflict('The withdrawal intent has expired'))
  const otherCycle = conflict('The pay cycle of the withdrawal intent has closed')
  expect(refused({ ...facts, payCycleId: 'pc_other' })).toEqual(otherCycle)
  const since = (what: string) => conflict(`${what} has changed since the quote`, 'create a new withdrawal intent')
  for (const account of [euAccount, null, { ...goodAccount, accountHolder: 'S Okafor' }])
    expect(refused({ ...facts, member: { ...member, account } })).toEqual(since('The member’s bank account'))
  const inEuros = { ...member, tier: { ...tier, currency: 'EUR' as const } }
  expect(refused({ ...facts, member: inEuros })).toEqual(since('The currency of the member’s pay'))
  expect(() => refuseCompletion(facts, { ...intent, status: 'completed' }, now)).toThrow(`${intent.id} is already`)
})

test('completing checks state, cycle, limits and funds again', () => {
  const refused = (about: Facts) => codeOf(refuseCompletion(about, intent, now))
  expect(refused(facts)).toBeUndefined()
  expect(refused({ ...facts, member: null })).toBe('MemberNotFound')
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
        intent: {
          ...{ ...intent, id: `wi_${index}`, memberId: `mem_${who}` },
          ...{ grossAmount: amount, netAmount: amount - 50n, fee: 50n },
        },
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

test('a float is shared by the members of one partner and currency, and alerted once', () => {
  const asked = (partnerId: string, memberId: string, floor: bigint | null, isAlerted = false) => ({
    ...{ partnerId, now, intent: { ...intent, id: `wi_${memberId}`, memberId } },
    facts: {
      ...{ ...facts, member: { ...member, id: memberId } },
      float: floor === null ? null : { free: 10_000n, floor, isAlerted },
    },
  })
  const outcome = (each: ReturnType<typeof decideCompletions>[number]) =>
    each instanceof Problem ? each.message : each.crossesFloor
  // Each takes 49.00: the first leaves the floor exactly, the second crosses it, and the third finds it crossed.
  const mine = ['mem_1', 'mem_2', 'mem_3'].map(memberId => asked('par_1', memberId, 5_100n))
  const alerted = ['mem_4', 'mem_5'].map(memberId => asked('par_2', memberId, 5_100n, true))
  const others = [asked('par_3', 'mem_6', 5_101n), asked('par_4', 'mem_7', null)]
  const refused = expect.stringContaining('until its float is funded again')
  expect(decideCompletions([...mine, ...alerted, ...others]).map(outcome)).toEqual([
    ...[false, true, refused],
    ...[false, false],
    ...[true, false],
  ])
})

test('a limit of a cycle holds within one batch', () => {
  const about = of({ tier: { ...tier, withdrawalsPerCycle: 2 }, available: 20_000n })
  const asked = ['wi_1', 'wi_2', 'wi_3'].map(id => ({
    partnerId: 'par_1',
    now,
    intent: { ...intent, id },
    facts: about,
  }))
  expect(decideCompletions(asked).map(each => (each instanceof Problem ? each.name : 'accepted'))).toEqual([
    'accepted',
    'accepted',
    'MemberNotEligible',
  ])
})
