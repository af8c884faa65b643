import { type Static, Type } from 'typebox'
import { Id } from '../kernel/ids.ts'
import { amountMax, SignedMoney, WireMoney } from '../kernel/money.ts'
import { namedObject, nullable, strict, strictObject, wordOf } from '../kernel/schemas.ts'
import { GivenDuration, GivenInstant, Instant } from '../kernel/time.ts'
import { faults } from '../payouts/channels/simulated/simulated-bank.ts'
import { WithdrawalStatus } from '../withdrawals/schema.ts'
import { type ReasonCode, reasons } from './bank.ts'
import { dueKinds, nextKinds } from './due.ts'
import { type Scenario, scenarios } from './scenarios.ts'

/** Exactly one of the three. */
export const ClockMove = Type.Object(
  {
    to: Type.Optional(GivenInstant),
    by: Type.Optional(GivenDuration),
    next: Type.Optional(wordOf(nextKinds, { description: 'Moves the clock to the next time that this falls due.' })),
  },
  { ...strict, minProperties: 1, maxProperties: 1, examples: [{ by: 'P3D' }, { next: 'cycle_close' }] },
)
export type ClockMove = Static<typeof ClockMove>

const DueSummary = namedObject('SandboxWork', {
  due: wordOf(Object.keys(dueKinds) as (keyof typeof dueKinds)[], { description: 'The kind of work that fell due.' }),
  from: Instant,
  to: Instant,
  count: Type.Integer({ minimum: 1 }),
})

export const SandboxClock = namedObject('SandboxClock', {
  now: Instant,
  aheadSeconds: Type.Integer({ minimum: 0, description: 'How far the clock is ahead of real time.' }),
  status: wordOf(['Still', 'Moving']),
  lastMove: Type.Union([
    Type.Null(),
    namedObject('SandboxClockMove', {
      from: Instant,
      to: Instant,
      ran: Type.Array(DueSummary, {
        description:
          'The work that fell due on the way and was done, in order. Consecutive work of one kind is one entry with the first and the last time; at most 1,000 entries.',
      }),
    }),
  ]),
})

const codes = Object.keys(reasons) as ReasonCode[]

/** The body of an instruction with a reason; it may be left out. */
export const BankReason = Type.Optional(
  Type.Object(
    {
      reason: Type.Optional(
        wordOf(codes, {
          title: 'BankReason',
          description: `Why, as the ISO 20022 code of the bank: ${codes.map(code => `\`${code}\` ${reasons[code]}`).join(', ')}.`,
        }),
      ),
    },
    { title: 'SandboxBankInstruction', ...strict, examples: [{ reason: 'AC04' }] },
  ),
)
export type BankReason = Static<typeof BankReason>

export const SandboxWithdrawal = namedObject('SandboxWithdrawal', {
  id: Id('withdrawal'),
  status: WithdrawalStatus,
  timeline: Type.Array(
    strictObject({
      status: WithdrawalStatus,
      at: Instant,
      reason: nullable(Type.String()),
    }),
  ),
})

const count = Type.Integer({ minimum: 1, maximum: 1_000, description: 'Number of payments.' })

export const NewBankFault = Type.Object(
  {
    next: wordOf(faults, {
      title: 'SandboxBankFault',
      description:
        'What happens to the next payments. `timeout`: paid, but the call is not answered. `error`: the call fails and the payment is lost. `duplicate`: the report comes twice. `late`: the report comes after 3 minutes. `contradiction`: reported as paid, and after a minute as failed. `unknown_reference`: paid, with a second report about a payment that was never made.',
    }),
    count: Type.Optional(count),
  },
  { ...strict, examples: [{ next: 'timeout', count: 2 }] },
)
export type NewBankFault = Static<typeof NewBankFault>

export const BankFaults = namedObject('SandboxBankFaults', {
  faults: Type.Array(strictObject({ fault: wordOf(faults, { title: 'SandboxBankFault' }), remaining: count }), {
    description: 'The faults in the order in which payments will meet them.',
  }),
})

const someMoney = {
  ...WireMoney.properties,
  amount: Type.Integer({ minimum: 1, maximum: amountMax, description: 'In minor units.' }),
}

export const MoneyToAdd = strictObject({ amount: strictObject(someMoney) })

export const MemberFunded = namedObject('SandboxMemberFunded', {
  payRunId: Id('payRun'),
  status: wordOf(['Available']),
  available: WireMoney,
})

export const MemberActivated = namedObject('SandboxMemberActivated', {
  memberId: Id('member'),
  status: wordOf(['active']),
})

export const FloatFunded = namedObject('SandboxFloat', { float: SignedMoney, free: SignedMoney })

export const Paused = namedObject('SandboxPaused', { paused: Type.Boolean() })

const Code = Type.Object(
  { code: Type.String(), status: Type.Integer() },
  { ...strict, description: 'An error code, and its HTTP status.' },
)
const Transition = Type.Object(
  {
    transition: strictObject({
      entity: wordOf(['member', 'member_job', 'pay_cycle', 'pay_run', 'withdrawal_intent', 'withdrawal']),
      from: Type.String({ description: '`new`: it did not exist before.' }),
      to: Type.String(),
    }),
  },
  { ...strict, description: 'A transition of a state.' },
)

export const TestValues = namedObject('SandboxTestValues', {
  accounts: Type.Array(
    strictObject({
      sortCode: Type.String(),
      accountNumber: Type.String({ description: 'Any other file will do.' }),
      iban: Type.String(),
      behaviour: Type.String({ description: 'See docs/reference/simulated-bank.md.' }),
    }),
  ),
  values: Type.Array(
    namedObject('SandboxTestValue', {
      reaches: Type.Union([Code, Transition]),
      request: strictObject({
        method: wordOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
        path: Type.String(),
        headers: Type.Optional(
          Type.Record(Type.String(), Type.String(), {
            description: 'The headers besides your `x-api-key`, unless it is listed here.',
          }),
        ),
        body: Type.Optional(Type.Unknown({ description: 'A text is sent unchanged, anything else as JSON.' })),
      }),
      note: Type.String(),
    }),
  ),
})

const jobStates = ['new', 'NotReady', 'AwaitingReview', 'Processing', 'Completed', 'Rejected'] as const
export const ImportTransition = Type.Object(
  {
    from: wordOf(jobStates.slice(0, 4), { description: '`new`: it did not exist before.' }),
    to: wordOf(jobStates.slice(1)),
  },
  { ...strict, examples: [{ from: 'NotReady', to: 'AwaitingReview' }] },
)
export const JobProvoked = namedObject('SandboxMemberJob', {
  jobId: Id('memberJob'),
  status: wordOf(jobStates.slice(1)),
})

const ScenarioName = wordOf(Object.keys(scenarios) as Scenario[], { title: 'SandboxScenario' })
export const Seed = strictObject({ scenario: ScenarioName })
export const Seeded = namedObject('SandboxSeeded', { scenario: ScenarioName, members: Type.Integer({ minimum: 0 }) })
