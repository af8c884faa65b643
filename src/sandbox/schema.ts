import { type Static, Type } from 'typebox'
import { strict } from '../contract/strict.ts'
import { Id } from '../kernel/ids.ts'
import { amountMax, SignedMoney, WireMoney } from '../kernel/money.ts'
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
    next: Type.Optional(
      Type.Enum([...nextKinds], {
        type: 'string',
        description: 'Moves the clock to the next time that this falls due.',
      }),
    ),
  },
  { ...strict, minProperties: 1, maxProperties: 1, examples: [{ by: 'P3D' }, { next: 'cycle_close' }] },
)
export type ClockMove = Static<typeof ClockMove>

const DueSummary = Type.Object(
  {
    due: Type.Enum(Object.keys(dueKinds) as (keyof typeof dueKinds)[], {
      type: 'string',
      description: 'The kind of work that fell due.',
    }),
    from: Instant,
    to: Instant,
    count: Type.Integer({ minimum: 1 }),
  },
  { title: 'SandboxWork', ...strict },
)

export const SandboxClock = Type.Object(
  {
    now: Instant,
    aheadSeconds: Type.Integer({ minimum: 0, description: 'How far the clock is ahead of real time.' }),
    status: Type.Enum(['Still', 'Moving'], { type: 'string' }),
    lastMove: Type.Union([
      Type.Null(),
      Type.Object(
        {
          from: Instant,
          to: Instant,
          ran: Type.Array(DueSummary, {
            description:
              'The work that fell due on the way and was done, in order. Consecutive work of one kind is one entry with the first and the last time; at most 1,000 entries.',
          }),
        },
        { title: 'SandboxClockMove', ...strict },
      ),
    ]),
  },
  { title: 'SandboxClock', ...strict },
)

const codes = Object.keys(reasons) as ReasonCode[]

/** The body of an instruction with a reason; it may be left out. */
export const BankReason = Type.Optional(
  Type.Object(
    {
      reason: Type.Optional(
        Type.Enum(codes, {
          title: 'BankReason',
          type: 'string',
          description: `Why, as the ISO 20022 code of the bank: ${codes.map(code => `\`${code}\` ${reasons[code]}`).join(', ')}.`,
        }),
      ),
    },
    { title: 'SandboxBankInstruction', ...strict, examples: [{ reason: 'AC04' }] },
  ),
)
export type BankReason = Static<typeof BankReason>

export const SandboxWithdrawal = Type.Object(
  {
    id: Id('withdrawal'),
    status: WithdrawalStatus,
    timeline: Type.Array(
      Type.Object(
        {
          status: WithdrawalStatus,
          at: Instant,
          reason: Type.Union([Type.String(), Type.Null()]),
        },
        strict,
      ),
    ),
  },
  { title: 'SandboxWithdrawal', ...strict },
)

const count = Type.Integer({ minimum: 1, maximum: 1_000, description: 'Number of payments.' })

export const NewBankFault = Type.Object(
  {
    next: Type.Enum([...faults], {
      title: 'SandboxBankFault',
      type: 'string',
      description:
        'What happens to the next payments. `timeout`: paid, but the call is not answered. `error`: the call fails and the payment is lost. `duplicate`: the report comes twice. `late`: the report comes after 3 minutes. `contradiction`: reported as paid, and after a minute as failed. `unknown_reference`: paid, with a second report about a payment that was never made.',
    }),
    count: Type.Optional(count),
  },
  { ...strict, examples: [{ next: 'timeout', count: 2 }] },
)
export type NewBankFault = Static<typeof NewBankFault>

export const BankFaults = Type.Object(
  {
    faults: Type.Array(
      Type.Object(
        { fault: Type.Enum([...faults], { title: 'SandboxBankFault', type: 'string' }), remaining: count },
        strict,
      ),
      {
        description: 'The faults in the order in which payments will meet them.',
      },
    ),
  },
  { title: 'SandboxBankFaults', ...strict },
)

const someMoney = {
  ...WireMoney.properties,
  amount: Type.Integer({ minimum: 1, maximum: amountMax, description: 'In minor units.' }),
}

export const MoneyToAdd = Type.Object({ amount: Type.Object(someMoney, strict) }, strict)

export const MemberFunded = Type.Object(
  { payRunId: Id('payRun'), status: Type.Enum(['Available'], { type: 'string' }), available: WireMoney },
  { title: 'SandboxMemberFunded', ...strict },
)

export const MemberActivated = Type.Object(
  { memberId: Id('member'), status: Type.Enum(['active'], { type: 'string' }) },
  { title: 'SandboxMemberActivated', ...strict },
)

export const FloatFunded = Type.Object({ float: SignedMoney, free: SignedMoney }, { title: 'SandboxFloat', ...strict })

export const Paused = Type.Object({ paused: Type.Boolean() }, { title: 'SandboxPaused', ...strict })

const Code = Type.Object(
  { code: Type.String(), status: Type.Integer() },
  { ...strict, description: 'An error code, and its HTTP status.' },
)
const Transition = Type.Object(
  {
    transition: Type.Object(
      {
        entity: Type.Enum(['member', 'member_job', 'pay_cycle', 'pay_run', 'withdrawal_intent', 'withdrawal'], {
          type: 'string',
        }),
        from: Type.String({ description: '`new`: it did not exist before.' }),
        to: Type.String(),
      },
      strict,
    ),
  },
  { ...strict, description: 'A transition of a state.' },
)

export const TestValues = Type.Object(
  {
    accounts: Type.Array(
      Type.Object(
        {
          sortCode: Type.String(),
          accountNumber: Type.String({ description: 'Any other file will do.' }),
          iban: Type.String(),
          behaviour: Type.String({ description: 'See docs/reference/simulated-bank.md.' }),
        },
        strict,
      ),
    ),
    values: Type.Array(
      Type.Object(
        {
          reaches: Type.Union([Code, Transition]),
          request: Type.Object(
            {
              method: Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { type: 'string' }),
              path: Type.String(),
              headers: Type.Optional(
                Type.Record(Type.String(), Type.String(), {
                  description: 'The headers besides your `x-api-key`, unless it is listed here.',
                }),
              ),
              body: Type.Optional(Type.Unknown({ description: 'A text is sent unchanged, anything else as JSON.' })),
            },
            strict,
          ),
          note: Type.String(),
        },
        { title: 'SandboxTestValue', ...strict },
      ),
    ),
  },
  { title: 'SandboxTestValues', ...strict },
)

const jobStates = ['new', 'NotReady', 'AwaitingReview', 'Processing', 'Completed', 'Rejected'] as const
export const ImportTransition = Type.Object(
  {
    from: Type.Enum(jobStates.slice(0, 4), { type: 'string', description: '`new`: it did not exist before.' }),
    to: Type.Enum(jobStates.slice(1), { type: 'string' }),
  },
  { ...strict, examples: [{ from: 'NotReady', to: 'AwaitingReview' }] },
)
export const JobProvoked = Type.Object(
  { jobId: Id('memberJob'), status: Type.Enum(jobStates.slice(1), { type: 'string' }) },
  { title: 'SandboxMemberJob', ...strict },
)

const ScenarioName = Type.Enum(Object.keys(scenarios) as Scenario[], { title: 'SandboxScenario', type: 'string' })
export const Seed = Type.Object({ scenario: ScenarioName }, strict)
export const Seeded = Type.Object(
  { scenario: ScenarioName, members: Type.Integer({ minimum: 0 }) },
  { title: 'SandboxSeeded', ...strict },
)
