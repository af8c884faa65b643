import { type Static, Type } from 'typebox'
import { AccountDetails } from '../bank-accounts/schema.ts'
import { pageFields, pageQuery, totalField } from '../http/list.ts'
import { exampleId, Id } from '../ids.ts'
import { SignedMoney, WireMoney } from '../money.ts'
import { termFields } from '../tiers/schema.ts'
import { GivenDayOrInstant, Instant } from '../time.ts'
import { ruleNames } from './explanation.ts'
import { intentStatuses, statuses } from './lifecycle.ts'

const strict = { additionalProperties: false }

export const NewWithdrawalIntent = Type.Object(
  {
    memberId: Id('member', 'Member who will receive the money.'),
    // Zero and less are refused as `AmountBelowLowerLimit`, which tells the limit.
    amount: Type.Unsafe<Static<typeof SignedMoney>>({
      ...SignedMoney,
      title: 'RequestedMoney',
      examples: [{ amount: 5000, currency: 'GBP' }],
    }),
  },
  { title: 'NewWithdrawalIntent', ...strict },
)

const LastFour = Type.Object({ lastFour: Type.String({ minLength: 4, maxLength: 4, examples: ['4958'] }) }, strict)

export const WithdrawalIntentCreated = Type.Object(
  {
    withdrawalIntentId: Id('withdrawalIntent'),
    netAmount: WireMoney,
    fee: WireMoney,
    accountDetails: AccountDetails,
    bankAccount: Type.Unsafe({ ...LastFour, deprecated: true, description: 'Deprecated in favour of accountDetails.' }),
  },
  {
    title: 'WithdrawalIntentCreated',
    ...strict,
    examples: [
      {
        withdrawalIntentId: exampleId('withdrawalIntent'),
        netAmount: { amount: 4900, currency: 'GBP' },
        fee: { amount: 100, currency: 'GBP' },
        accountDetails: { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' },
        bankAccount: { lastFour: '4958' },
      },
    ],
  },
)

export const WithdrawalIntent = Type.Object(
  {
    withdrawalIntentId: Id('withdrawalIntent'),
    memberId: Id('member'),
    payCycleId: Id('payCycle'),
    status: Type.Enum([...intentStatuses], { type: 'string' }),
    amount: WireMoney,
    netAmount: WireMoney,
    fee: WireMoney,
    tier: Type.String(),
    tierVersion: Type.Integer({ minimum: 1, description: 'Version of the tier that the fee was decided by.' }),
    accountDetails: AccountDetails,
    createdAt: Instant,
    expiresAt: Instant,
    withdrawalId: Type.Union([Id('withdrawal'), Type.Null()], {
      description: 'The withdrawal that it became; null unless it is completed.',
    }),
  },
  { title: 'WithdrawalIntent', ...strict },
)

const AppliedRuleName = Type.Enum([...ruleNames], { type: 'string' })
export const IntentExplanation = Type.Object(
  {
    withdrawalIntentId: Id('withdrawalIntent'),
    inputs: Type.Object(
      { memberId: Id('member'), payCycleId: Id('payCycle'), amount: WireMoney, createdAt: Instant },
      strict,
    ),
    tier: Type.Object(
      {
        name: Type.String({ examples: ['Bronze'] }),
        version: Type.Integer({ minimum: 1 }),
        since: Type.Unsafe({ ...Instant, description: 'When this version was made.' }),
        ...termFields,
      },
      { description: 'The version of the tier that held when the intent was created.', ...strict },
    ),
    rules: Type.Array(Type.Object({ rule: AppliedRuleName, amount: WireMoney, because: Type.String() }, strict), {
      description: 'In the order in which they were applied, with what each gave.',
    }),
    result: Type.Object(
      {
        fee: Type.Unsafe({ ...WireMoney, description: 'What the member pays.' }),
        employerFee: Type.Unsafe({ ...WireMoney, description: 'What the employer pays instead.' }),
        netAmount: WireMoney,
      },
      strict,
    ),
  },
  { title: 'WithdrawalIntentExplanation', ...strict },
)

export const CompleteWithdrawal = Type.Object(
  { withdrawalIntentId: Id('withdrawalIntent') },
  { title: 'CompleteWithdrawal', ...strict },
)
export const WithdrawalCompleted = Type.Object(
  { message: Type.String({ examples: ['The withdrawal is on its way'] }) },
  { title: 'WithdrawalCompleted', ...strict },
)

const itemFields = {
  id: Id('withdrawal'),
  netAmount: WireMoney,
  fee: WireMoney,
  payCycleId: Id('payCycle'),
  memberId: Id('member'),
  createdAt: Instant,
}
const WithdrawalItem = Type.Object(itemFields, { title: 'Withdrawal', ...strict })

const WithdrawalStatus = Type.Enum([...statuses], { type: 'string' })
const Reason = Type.Union([Type.String(), Type.Null()], {
  description: 'Why, where there is a reason: what the bank said, or who cancelled.',
})

const WithdrawalItemWithStatus = Type.Object(
  {
    ...itemFields,
    amount: Type.Unsafe({ ...WireMoney, description: 'Gross: what left the member’s pay, the fee included.' }),
    status: WithdrawalStatus,
    changedAt: Type.Unsafe({ ...Instant, description: 'Since when it has this status.' }),
    reason: Reason,
  },
  { title: 'WithdrawalWithStatus', ...strict },
)

export const WithdrawalDetails = Type.Object(
  {
    id: Id('withdrawal'),
    withdrawalIntentId: Id('withdrawalIntent'),
    memberId: Id('member'),
    payCycleId: Id('payCycle'),
    status: WithdrawalStatus,
    amount: WireMoney,
    netAmount: WireMoney,
    fee: WireMoney,
    bankAccount: LastFour,
    balanceAfter: Type.Unsafe({
      ...WireMoney,
      description: 'What the member had available when this withdrawal had been booked.',
    }),
    timeline: Type.Array(Type.Object({ status: WithdrawalStatus, at: Instant, reason: Reason }, strict), {
      description: 'Every state that it has been in, oldest first.',
    }),
    createdAt: Instant,
    expectedAt: Type.Union([Instant, Type.Null()], {
      description:
        'When the money is expected in the account: while a sandbox holds it, the end of the hold. Null where that is not known: once it is submitted, and on a live installation, until a bank says how long it takes.',
    }),
  },
  { title: 'WithdrawalDetails', ...strict },
)

const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })

export const MemberBalance = Type.Object(
  {
    available: WireMoney,
    lowerLimit: Type.Unsafe({
      ...WireMoney,
      description: 'The least that can be withdrawn, so that something is left after the fee.',
    }),
    upperLimit: Type.Unsafe({ ...WireMoney, description: 'The most that can be withdrawn at once.' }),
    payCycle: Type.Object(
      {
        id: Id('payCycle'),
        startDate: Day,
        endDate: Day,
        lastPayDate: Type.Union([Instant, Type.Null()], {
          description: 'Instant at which money last became available in this cycle.',
        }),
      },
      strict,
    ),
    isTemporarilyUnavailable: Type.Boolean({
      description: 'On-demand pay is paused, or its float is low; withdrawals are refused for now.',
    }),
  },
  {
    title: 'MemberBalance',
    ...strict,
    examples: [
      {
        available: { amount: 12000, currency: 'GBP' },
        lowerLimit: { amount: 1000, currency: 'GBP' },
        upperLimit: { amount: 20000, currency: 'GBP' },
        payCycle: {
          id: exampleId('payCycle'),
          startDate: '2026-03-01',
          endDate: '2026-03-31',
          lastPayDate: '2026-03-10T09:00:00.000Z',
        },
        isTemporarilyUnavailable: false,
      },
    ],
  },
)

const dayOrInstant = 'An instant, or a day, which stands for its start in UTC.'

export const WithdrawalQuery = Type.Object(
  {
    memberId: Type.Optional(Id('member')),
    payCycleId: Type.Optional(Id('payCycle')),
    fromDate: Type.Optional(
      Type.Unsafe<string>({ ...GivenDayOrInstant, description: `Created at or after this. ${dayOrInstant}` }),
    ),
    toDate: Type.Optional(
      Type.Unsafe<string>({ ...GivenDayOrInstant, description: `Created before this. ${dayOrInstant}` }),
    ),
    statuses: Type.Optional(
      Type.Array(WithdrawalStatus, {
        maxItems: statuses.length,
        description: 'Only these; without it those that stand: `held`, `submitted` and `paid`.',
      }),
    ),
    ...pageQuery,
  },
  strict,
)

export const Withdrawals = Type.Object(
  { withdrawals: Type.Array(WithdrawalItem), hasMore: Type.Boolean(), ...pageFields },
  { title: 'Withdrawals', ...strict },
)

export const WithdrawalsWithStatus = Type.Object(
  { withdrawals: Type.Array(WithdrawalItemWithStatus), hasMore: Type.Boolean(), ...pageFields },
  { title: 'WithdrawalsWithStatus', ...strict },
)

export const MemberWithdrawals = Type.Object(
  {
    withdrawals: Type.Array(
      Type.Object({ amount: WireMoney, fee: WireMoney, payCycleId: Id('payCycle'), createdAt: Instant }, strict),
    ),
    ...pageFields,
    ...totalField,
  },
  { title: 'MemberWithdrawals', ...strict },
)
