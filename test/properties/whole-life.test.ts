import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../harness/harness.ts'
import { bronze, gold, silver } from '../harness/samples.ts'
import { extent } from '../runner/extent.ts'
import { checkRuns, type Generated, is, often, Run, rarely } from './checked.ts'
import {
  type BankAnswer,
  type Currency,
  type Line,
  Model,
  min,
  type Settings,
  type Step,
  type TierName,
} from './model.ts'
import { Program } from './program.ts'

// PROPERTY_RUNS=20000 for a long search; PROPERTY_SEED and PROPERTY_PATH, printed by a failure, to reproduce it.
const { PROPERTY_RUNS, PROPERTY_SEED, PROPERTY_PATH } = process.env
const runs = Number(PROPERTY_RUNS ?? extent({ short: 20, long: 450 }))
const seed = Number(PROPERTY_SEED ?? Math.floor(Math.random() * 2 ** 31))
// Ten times the usual duration of a run, plus time to shrink a failure.
const timeoutMs = 120_000 + runs * 600

// Each step that takes time is a request, so there are fewer of these.
const clockRuns = Number(PROPERTY_RUNS ?? extent({ short: 6, long: 100 }))

const startAt = new Date('2026-03-10T09:00:00.000Z')

const partners = {
  plain: {
    ...{ graceMinutes: 0, intentMinutes: 15, holdSeconds: 30, autoActivate: true, shortfallPolicy: 'carry' },
    ...{ timeZone: { name: 'UTC', offsetMinutes: 0 }, cycleDays: 7, reportsArrivals: false },
  },
  patient: {
    ...{ graceMinutes: 10, intentMinutes: 60, holdSeconds: 3_600, autoActivate: false, shortfallPolicy: 'write_off' },
    ...{ timeZone: { name: 'Asia/Kolkata', offsetMinutes: 330 }, cycleDays: 7, reportsArrivals: true },
  },
  slow: {
    // Grace periods and quotes that reach into the next cycle, and no hold.
    ...{ graceMinutes: 5 * 1_440, intentMinutes: 1_440, holdSeconds: 0, autoActivate: true, shortfallPolicy: 'carry' },
    ...{ timeZone: { name: 'America/Phoenix', offsetMinutes: -420 }, cycleDays: 14, reportsArrivals: true },
  },
} as const satisfies Record<string, Settings>

const daily = { ...silver, withdrawalsPerDay: 1, withdrawalsPerCycle: 2 }
const tierTerms = { Bronze: bronze, Gold: gold, Daily: daily, 'Silver EU': silver }
const otherTerms = [
  ...[bronze, silver, gold, daily],
  // The fee, not the lower limit, determines the smallest amount.
  { ...bronze, feeFixed: 99n, feeBps: 9_000, feeMin: null, feeMax: null, lowerLimit: 1n },
  { ...bronze, feeFixed: 0n, feeBps: 0, feeMin: null, feeMax: null, lowerLimit: 1n, upperLimit: 10_000_000_000n },
  { ...gold, feeBps: 333, feeMax: 700n, withdrawalsPerCycle: 1 },
]
const tiers: TierName[] = ['Bronze', 'Gold', 'Daily']

let harness: Harness
let program: Program
let runCount = 0

beforeAll(async () => {
  harness = await startHarness({ startAt })
  program = await Program.start(harness, { all: partners, terms: tierTerms, tiers, now: startAt })
})
afterAll(async () => {
  await program.stop()
  await harness.stop()
})

test(
  `the program and the model agree after every step of ${runs} random command sequences, and the ledger verifies`,
  async () => await check(property(partners), { numRuns: runs, name: 'after every step' }),
  timeoutMs,
)

test(
  `the program and the model agree when time passes only by the sandbox clock of the public API, in ${clockRuns} runs`,
  async () => await check(property(partners, { time: 'sandbox' }), { numRuns: clockRuns, name: 'the sandbox clock' }),
  timeoutMs,
)

async function check(
  checked: ReturnType<typeof property>,
  { numRuns, name }: { numRuns: number; name: string },
): Promise<void> {
  await checkRuns(checked, {
    ...{ runs: numRuns, seed, path: PROPERTY_PATH, file: `test/properties -t '${name}'`, timeoutMs },
  })
}

describe('a wrong rule in the model', () => {
  const { plain } = partners
  const wrong = () => property({ plain }, { assumed: { ...plain, shortfallPolicy: 'write_off' } })

  test('is detected whatever the seed', async () => {
    const details = await fc.check(wrong(), { numRuns: 500, seed, endOnFailure: true })
    expect(details.failed).toBe(true)
    expect(String(details.errorInstance)).toMatch(/settlement c\d m\d [A-Z]{3}: the model says/)
  }, 300_000)

  // How far and how fast a sequence shrinks depends on what is found, so these seeds are fixed.
  test.for(extent({ short: [2896], long: [2896, 1, 2, 3, 7, 8] }))(
    'has a counterexample that is shrunk to a few commands (seed %i)',
    { timeout: 300_000 },
    async seed => {
      const details = await fc.check(wrong(), { numRuns: 500, seed })
      expect(details.failed).toBe(true)
      expect(String(details.errorInstance)).toMatch(/settlement c\d m\d GBP: the model says/)
      // A pay run, a withdrawal and a payday that takes too little; two commands if the withdrawal includes its pay run.
      expect(details.counterexample?.[1].length).toBeLessThanOrEqual(4)
    },
  )
})

// How time passes: a test sets it and runs a task when a command says so, or the public API moves the sandbox clock, which
// runs the tasks.
type Time = 'commands' | 'sandbox'

function property(
  known: Partial<typeof partners>,
  { assumed, time = 'commands' }: { assumed?: Settings; time?: Time } = {},
) {
  return fc.asyncProperty(
    fc.constantFrom(...(Object.keys(known) as (keyof typeof partners)[])),
    // Without a bias to small values: a sequence of tiny amounts is refused from start to end.
    fc.noBias(fc.oneof({ weight: 3, arbitrary: commands(10) }, { weight: 1, arbitrary: commands(25) })),
    async (name, commands) => {
      if (++runCount % 50 === 0) await program.tidy()
      await runCommands(name, commands, { settings: assumed ?? partners[name], time })
    },
  )
}

function commands(countMax: number) {
  return fc.array(command, { minLength: 1, maxLength: countMax, size: 'max' })
}

async function runCommands(
  name: keyof typeof partners,
  commands: Command[],
  { settings, time }: { settings: Settings; time: Time },
): Promise<void> {
  const model = new Model({ settings, terms: tierTerms, tiers, now: startAt.getTime() })
  await program.reset(name)
  program.now = startAt
  harness.clock.set(startAt)
  const run = new Run(model, program)
  await run.compare()
  for (const command of commands) {
    for (const step of stepsOf(command, model)) {
      // Each step has a separate instant, so that due work has one order.
      model.now += 1
      if (time === 'sandbox') {
        run.log.push(`the clock moves to ${new Date(model.now).toISOString()}`)
        await letTimePass(model)
        await run.compare()
        // The clock has done the work that falls due.
        if (isWork(step)) continue
      }
      await run.perform(step)
    }
  }
  await run.end()
}

/** Moves the sandbox clock to where the model wants to be, and makes the model do what falls due on the way. */
async function letTimePass(model: Model): Promise<void> {
  const target = model.now
  const passedMs = target - program.now.getTime()
  if (passedMs <= 1) {
    harness.clock.advance({ seconds: passedMs / 1_000 })
    program.now = new Date(target)
    return
  }
  // The simulated bank fails payments of certain amounts on purpose.
  fc.pre(![...model.intents.values()].some(({ net }) => net >= 6_601n && net <= 6_606n))
  model.now = program.now.getTime()
  for (;;) {
    for (const step of workOnTheWay) model.apply(step)
    if (model.now === target) break
    const ahead = instantsAhead(model).filter(at => at > model.now && at < target)
    model.now = Math.min(target, ...ahead)
  }
  model.apply({ do: 'watch floats' })
  await program.moveClock(new Date(target))
}

// In the order in which a move of the clock does work that falls due at one instant. The bank pays at once.
const workOnTheWay: Step[] = [
  { do: 'make pay runs available' },
  { do: 'expire intents' },
  { do: 'submit withdrawals', answer: 'paid' },
  { do: 'close cycles' },
]

function isWork(step: Step): boolean {
  return ['poll withdrawals', 'watch floats', 'begin to close', ...workOnTheWay.map(work => work.do)].includes(step.do)
}

function instantsAhead(model: Model): number[] {
  return [
    ...[...model.runs.values()].filter(run => run.status === 'Scheduled').map(run => run.scheduledFor),
    ...[...model.withdrawals.values()].filter(each => each.status === 'held').map(each => each.dueAt),
    ...[...model.intents.values()].filter(each => each.status === 'pending').map(each => each.expiresAt),
    model.endOf(model.openCycle()),
  ]
}

// Commands are generated before any entity exists, so they refer to entities and amounts relatively: the newest intent, the
// one before it, the whole available balance plus a penny.

type Amount = { of: 'fitting' | 'available' | 'lower' | 'upper' | 'number'; plus: bigint }
type Instant = 'pay run' | 'submission' | 'expiry' | 'cycle' | 'three cycles' | 'day' | 'minute'
type Taken = 'all' | 'less' | 'a little' | 'more' | 'nothing' | 'not mentioned' | 'the opposite'
type Fault = 'none' | 'unknown member' | 'duplicate' | 'negative' | 'wrong currency'
type AtEnd = (typeof afterEnd)[number]
type Settlement = { taken: Taken[]; unknown: bigint; fault: Fault }

const afterEnd = ['nothing', 'pay', 'correct', 'withdraw', 'change currency', 'read'] as const
const plainSteps = [
  ...(['make pay runs available', 'expire intents', 'close cycles', 'watch floats', 'fold float changes'] as const),
  ...(['pause', 'resume', 'resume'] as const),
]

const which = fc.nat({ max: 7 })
const member = fc.nat({ max: 2 })
const pay = fc.oneof(
  { weight: 6, arbitrary: fc.bigInt({ min: 1n, max: 60_000n }) },
  { weight: 3, arbitrary: fc.bigInt({ min: -60_000n, max: -1n }) },
  { weight: 1, arbitrary: is(0n, 1_000n, 20_000n, 900_000_000_000n) },
)
const plus = is(0n, 1n, -1n)
const amount = fc.oneof(
  { weight: 7, arbitrary: fc.record({ of: is('fitting'), plus: fc.bigInt({ min: 0n, max: 20_000n }) }) },
  { weight: 2, arbitrary: fc.record({ of: is('available', 'lower', 'upper'), plus }) },
  { weight: 1, arbitrary: fc.record({ of: is('number'), plus: fc.bigInt({ min: -1_000n, max: 30_000n }) }) },
)
const currency = is<Currency>('GBP', 'GBP', 'GBP', 'EUR')
const answer = is<BankAnswer>('pending', 'pending', 'pending', 'paid', 'failed', 'returned', 'silent', 'unknown')
const settlement = {
  taken: fc.array(is<Taken>('all', 'less', 'a little', 'more', 'nothing', 'not mentioned', 'the opposite'), {
    maxLength: 4,
  }),
  unknown: is(0n, 0n, 0n, 700n),
  fault: rarely(4).chain(isFaulty =>
    isFaulty ? is<Fault>('unknown member', 'duplicate', 'negative', 'wrong currency') : fc.constant<Fault>('none'),
  ),
}
const tier = is<TierName>('Bronze', 'Gold', 'Daily', 'Silver EU')
const line = fc.record({ member, amount: pay, isForeign: rarely(30) })
const command = fc.oneof(
  often(11, { do: is('pay'), lines: fc.array(line, { maxLength: 3 }), isAwaited: fc.boolean() }),
  often(14, { do: is('withdraw'), member, amount }),
  often(5, { do: is('ask for'), member, amount, isForeign: rarely(10) }),
  often(6, { do: is('complete', 'complete', 'cancel intent'), intent: which }),
  often(4, { do: is('cancel'), withdrawal: which }),
  often(8, { do: is('submit'), answer, isAwaited: fc.boolean() }),
  often(3, { do: is('ask'), answer }),
  often(9, { do: is('bank'), withdrawal: which, outcome: is('paid', 'failed', 'returned') }),
  often(8, {
    do: is('wait'),
    until: is<Instant>('pay run', 'pay run', 'submission', 'expiry', 'cycle', 'cycle', 'three cycles', 'day', 'minute'),
    plusMs: is(0, 0, -1, 1),
  }),
  often(6, { do: is('begin to close'), members: fc.nat({ max: 3 }), member, next: is<AtEnd>(...afterEnd) }),
  often(7, { do: is('payday'), ...settlement }),
  often(4, { do: is('settle'), cycle: which, ...settlement }),
  often(5, { do: is('arrive'), due: which, part: is('all', 'all', 'half', 'a little', 'too much') }),
  often(6, { do: is('invoice'), act: is('issue', 'issue', 'pay', 'reopen', 'void'), invoice: which, currency }),
  often(4, { do: is('take revenue'), part: is('all', 'half', 'too much'), currency }),
  often(5, { do: is('revert'), run: which }),
  often(2, { do: is('tier'), member, tier }),
  often(2, { do: is('account'), member, account: is('A', 'A', 'B', 'failing', 'none') }),
  often(2, { do: is('offboard member', 'reinstate member', 'activate member'), member }),
  often(2, { do: is('terms'), tier, terms: fc.nat({ max: otherTerms.length - 1 }) }),
  often(3, { do: is('float'), by: is(90_000n, 10_000n, -10_000n, -1_000n), currency }),
  often(1, { do: is('floor'), floor: is(null, 0n, 5_000n), currency }),
  often(7, { do: is(...plainSteps) }),
  often(4, { do: is('read'), member, cycle: which, instant: fc.nat({ max: 30 }) }),
)
type Command = Generated<typeof command>

/** Expands a command into steps; each step is performed before the next is generated. */
function* stepsOf(command: Command, model: Model): Generator<Step> {
  switch (command.do) {
    case 'pay': {
      const lines = command.lines.map(({ member, amount, isForeign }) => ({
        ...{ member: `m${member}`, amount, currency: currencyFor(model, `m${member}`, isForeign) },
      }))
      yield { do: 'upload pay run', lines }
      if (command.isAwaited) yield* graceOf(model)
      break
    }
    case 'withdraw':
      yield* withdrawing(model, command)
      break
    case 'ask for':
      yield intentOf(model, command)
      break
    case 'complete': {
      const isPending = ([, intent]: [string, { status: string }]) => intent.status === 'pending'
      yield { do: 'complete intent', intent: choose(model.intents, isPending, command.intent, 'i') }
      break
    }
    case 'cancel intent':
      yield { do: 'cancel intent', intent: choose(model.intents, () => true, command.intent, 'i') }
      break
    case 'cancel': {
      if (model.withdrawals.size === 0) yield* withdrawing(model)
      yield { do: 'cancel withdrawal', withdrawal: choose(model.withdrawals, isIn('held'), command.withdrawal, 'w') }
      break
    }
    case 'submit':
      if (model.withdrawals.size === 0) yield* withdrawing(model)
      if (command.isAwaited) model.now = Math.max(model.now, instantOf('submission', model))
      yield { do: 'submit withdrawals', answer: command.answer }
      break
    case 'ask':
      // No withdrawal waits longer than an hour for its next poll.
      model.now += 61 * 60_000
      yield { do: 'poll withdrawals', answer: command.answer }
      break
    case 'bank': {
      if (![...model.withdrawals].some(isIn('submitted', 'paid'))) {
        if (![...model.withdrawals].some(isIn('held'))) yield* withdrawing(model)
        model.now = Math.max(model.now, instantOf('submission', model))
        yield { do: 'submit withdrawals', answer: 'pending' }
      }
      const withdrawal = choose(model.withdrawals, isIn('submitted', 'paid'), command.withdrawal, 'w')
      yield { do: 'report payout', withdrawal, outcome: command.outcome }
      break
    }
    case 'wait':
      model.now = Math.max(model.now, instantOf(command.until, model) + command.plusMs - 1)
      break
    case 'begin to close':
      yield* closing(model, command)
      break
    case 'payday': {
      model.now = Math.max(model.now, instantOf('cycle', model))
      yield { do: 'close cycles' }
      yield settlementOf(model, { ...command, cycle: 0 })
      break
    }
    case 'settle':
      yield settlementOf(model, command)
      break
    case 'arrive': {
      const dues = model.dues()
      const due = dues[command.due % Math.max(1, dues.length)] ?? { cycle: 'c0', currency: 'GBP', amount: 500n }
      const { amount } = due
      const sign = amount < 0n ? -1n : 1n
      const parts = { all: amount, half: amount / 2n, 'a little': 40n * sign, 'too much': amount + sign }
      yield { ...due, do: 'receive settlement', amount: parts[command.part] }
      break
    }
    case 'invoice': {
      const invoice = choose(model.invoices, isIn(command.act === 'reopen' ? 'paid' : 'open'), command.invoice, 'v')
      if (command.act === 'issue') yield { do: 'issue invoice', currency: command.currency }
      else yield { do: `${command.act} invoice`, invoice }
      break
    }
    case 'take revenue': {
      const { currency, part } = command
      const all = model.revenueInFloat(currency)
      yield { do: 'withdraw revenue', amount: { all, half: all / 2n, 'too much': all + 1n }[part], currency }
      break
    }
    case 'revert': {
      const isOpen = ([, { status, cycle }]: [string, { status: string; cycle: string }]) =>
        status !== 'Reverted' && cycle === model.openCycle()
      yield { do: 'revert pay run', run: choose(model.runs, isOpen, command.run, 'r') }
      break
    }
    case 'tier':
      yield { do: 'change tier', member: `m${command.member}`, tier: command.tier }
      break
    case 'account':
      yield { do: 'change account', member: `m${command.member}`, account: command.account }
      break
    case 'offboard member':
    case 'reinstate member':
    case 'activate member':
      yield { do: command.do, member: `m${command.member}` }
      break
    case 'terms': {
      const terms = otherTerms[command.terms]
      if (terms !== undefined) yield { do: 'set terms', tier: command.tier, terms }
      break
    }
    case 'float': {
      const { by, currency } = command
      yield by > 0n ? { do: 'fund float', amount: by, currency } : { do: 'withdraw from float', amount: -by, currency }
      break
    }
    case 'floor':
      yield { do: 'set floor', floor: command.floor, currency: command.currency }
      break
    case 'read': {
      const member = `m${command.member}`
      yield { do: 'read balance', member }
      yield { do: 'read deductions', cycle: choose(model.cycles, () => true, command.cycle % 7, 'c') }
      const asOf = model.instants().at(-1 - command.instant) ?? model.now
      yield { do: 'read statement', member, currency: model.currencyOf(member), asOf }
      break
    }
    default:
      yield command
  }
}

// Withdraws for a member with a sufficient balance, after a pay run if there is none.
function* withdrawing(
  model: Model,
  { member: at, amount }: { member: number; amount: Amount } = { member: 0, amount: { of: 'fitting', plus: 5_000n } },
): Generator<Step> {
  const able = [0, 1, 2].filter(each => model.available(`m${each}`) >= model.lowerLimit(`m${each}`))
  if (able.length === 0) {
    const member = `m${at}`
    yield { do: 'upload pay run', lines: [{ member, amount: 30_000n, currency: model.currencyOf(member) }] }
    yield* graceOf(model)
  }
  yield intentOf(model, { member: able[at % able.length] ?? at, amount })
  yield { do: 'complete intent', intent: choose(model.intents, () => true, 0, 'i') }
}

// Ends a cycle with unused pay, and does something about a member of it before the pay is released.
function* closing(
  model: Model,
  { members, member: at, next }: { members: number; member: number; next: AtEnd },
): Generator<Step> {
  const member = `m${at}`
  const currency = model.currencyOf(member)
  if (model.available(member) === 0n) {
    yield { do: 'upload pay run', lines: [{ member, amount: 30_000n, currency }] }
    yield* graceOf(model)
  }
  const ending = model.openCycle()
  model.now = Math.max(model.now, instantOf('cycle', model))
  yield { do: 'begin to close', members }
  switch (next) {
    case 'nothing':
      break
    case 'pay':
    case 'correct':
      yield { do: 'upload pay run', lines: [{ member, amount: next === 'pay' ? 20_000n : -700n, currency }] }
      yield* graceOf(model)
      yield { do: 'read statement', member, currency, asOf: model.now }
      break
    case 'withdraw':
      yield { do: 'create intent', member, amount: model.lowerLimit(member), currency }
      break
    case 'change currency':
      yield { do: 'change tier', member, tier: currency === 'GBP' ? 'Silver EU' : 'Gold' }
      break
    case 'read':
      yield { do: 'read balance', member }
      yield { do: 'read deductions', cycle: model.openCycle() }
      yield { do: 'read deductions', cycle: ending }
      break
    default:
      next satisfies never
  }
}

function* graceOf(model: Model): Generator<Step> {
  if (![...model.runs].some(isIn('Scheduled'))) return
  model.now = Math.max(model.now, instantOf('pay run', model))
  yield { do: 'make pay runs available' }
}

function intentOf(
  model: Model,
  { member: at, amount: { of, plus }, isForeign = false }: { member: number; amount: Amount; isForeign?: boolean },
): Step {
  const member = `m${at}`
  const [available, lower, upper] = [model.available(member), model.lowerLimit(member), model.upperLimit(member)]
  const spread = min(available, upper) - lower
  const fitting = spread > 0n ? lower + (plus % (spread + 1n)) : lower
  const amount = { fitting, available: available + plus, lower: lower + plus, upper: upper + plus, number: plus }[of]
  return { do: 'create intent', member, amount, currency: currencyFor(model, member, isForeign) }
}

function settlementOf(model: Model, { cycle: which, taken, unknown, fault }: Settlement & { cycle: number }): Step {
  const isUnsettled = ([, { status, settled }]: [string, { status: string; settled: boolean }]) =>
    status === 'Closed' && !settled
  const cycle = choose(model.cycles, isUnsettled, which, 'c')
  const deductions = model.cycles.has(cycle) ? model.deductions(cycle) : []
  const lines = deductions.flatMap((line, at) => takenOf(line, taken[at] ?? 'all'))
  const without = ['m0', 'm1', 'm2'].find(member => !deductions.some(line => line.member === member))
  if (unknown > 0n && without !== undefined) {
    lines.push({ member: without, currency: model.currencyOf(without), amount: unknown })
  }
  const [first] = lines
  if (fault === 'unknown member') lines.push({ member: 'm9', currency: 'GBP', amount: 100n })
  if (fault === 'duplicate' && first !== undefined) lines.push(first)
  if (fault === 'negative') lines.push({ member: without ?? 'm0', currency: 'GBP', amount: -1n })
  if (fault === 'wrong currency') lines.push({ member: 'm1', currency: 'EUR', amount: 100n })
  return { do: 'settle', cycle, lines }
}

function takenOf({ amount, ...line }: Line, taken: Taken): Line[] {
  switch (taken) {
    case 'all':
      return [{ ...line, amount }]
    case 'less':
      return [{ ...line, amount: amount / 2n }]
    case 'a little':
      // Less than a fee.
      return [{ ...line, amount: amount > 30n ? 30n : amount }]
    case 'more':
      return [{ ...line, amount: amount + 250n }]
    case 'nothing':
      return [{ ...line, amount: 0n }]
    case 'not mentioned':
      return []
    case 'the opposite':
      return [{ ...line, amount: -amount }]
    default:
      return taken satisfies never
  }
}

function instantOf(until: Instant, model: Model): number {
  const soonest = (instants: number[]) => (instants.length === 0 ? model.now : Math.min(...instants))
  const end = model.endOf(model.openCycle())
  switch (until) {
    case 'pay run':
      return soonest([...model.runs.values()].filter(run => run.status === 'Scheduled').map(run => run.scheduledFor))
    case 'submission':
      return soonest([...model.withdrawals.values()].filter(each => each.status === 'held').map(each => each.dueAt))
    case 'expiry':
      return soonest([...model.intents.values()].filter(each => each.status === 'pending').map(each => each.expiresAt))
    case 'cycle':
      return end
    case 'three cycles':
      return end + 2 * model.settings.cycleDays * 86_400_000
    case 'day':
      return model.now + 86_400_000
    case 'minute':
      return model.now + 60_000
    default:
      return until satisfies never
  }
}

function currencyFor(model: Model, member: string, isForeign: boolean): Currency {
  const own = model.currencyOf(member)
  if (!isForeign) return own
  return own === 'GBP' ? 'EUR' : 'GBP'
}

function isIn(...statuses: string[]) {
  return ([, { status }]: [string, { status: string }]) => statuses.includes(status)
}

/**
 * Chooses the newest matching entity, the one before it and so on; sometimes any entity, or the name of none. Returns the
 * name of none if there is no entity.
 */
function choose<T>(
  named: ReadonlyMap<string, T>,
  isWanted: (entry: [string, T]) => boolean,
  which: number,
  kind: string,
) {
  const all = [...named]
  const wanted = all.filter(isWanted)
  const from = which < 6 && wanted.length > 0 ? wanted : which < 7 ? all : []
  return from.at(-1 - (which % Math.max(1, from.length)))?.[0] ?? `${kind}999`
}
