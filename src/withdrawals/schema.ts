import { type Static, Type } from 'typebox'
import { actorKinds } from '../audit-log/audit-log.ts'
import { AccountDetails } from '../bank-accounts/schema.ts'
import { cursorQuery, pageFields, pageQuery, totalField } from '../contract/list.ts'
import { strict } from '../contract/strict.ts'
import type { ProblemName } from '../kernel/errors.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { SignedMoney, WireMoney } from '../kernel/money.ts'
import { Day, GivenDayOrInstant, Instant } from '../kernel/time.ts'
import { MemberStatus } from '../members/schema.ts'
import { Metadata, metadataQuery } from '../metadata/schema.ts'
import { sessionScopes } from '../partners/member-sessions.ts'
import { LoggedRequest } from '../requests/schema.ts'
import { MemberStatementLine } from '../statements/schema.ts'
import { termFields } from '../tiers/terms.ts'
import { WebhookDelivery } from '../webhooks/schema.ts'
import { ruleNames } from './explanation.ts'
import { intentStatuses, statuses } from './lifecycle.ts'

// The refusals of a withdrawal, in the order of the table of errors.
export const refusals: ProblemName[] = [
  'MemberNotFound',
  'UnprocessableEntity',
  'MemberNotEligible',
  'BankAccountInvalid',
  'AmountBelowLowerLimit',
  'AmountAboveUpperLimit',
  'MemberInsufficientFunds',
]

export const NewWithdrawalIntent = Type.Object(
  {
    memberId: Id('member', 'The member who receives the money.'),
    // Zero and less are refused as `AmountBelowLowerLimit`, whose message has the limit.
    amount: Type.Unsafe<Static<typeof SignedMoney>>({
      ...SignedMoney,
      title: 'RequestedMoney',
      examples: [{ amount: 5000, currency: 'GBP' }],
    }),
  },
  { title: 'NewWithdrawalIntent', ...strict },
)

const LastFour = Type.Object(
  { lastFour: Type.String({ minLength: 4, maxLength: 4, examples: ['4958'] }) },
  { title: 'LastFour', ...strict },
)

export const WithdrawalIntentCreated = Type.Object(
  {
    withdrawalIntentId: Id('withdrawalIntent'),
    netAmount: WireMoney,
    fee: WireMoney,
    accountDetails: AccountDetails,
    bankAccount: Type.Unsafe({ ...LastFour, deprecated: true, description: 'Deprecated: use `accountDetails`.' }),
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
    status: Type.Enum([...intentStatuses], { title: 'WithdrawalIntentStatus', type: 'string' }),
    amount: WireMoney,
    netAmount: WireMoney,
    fee: WireMoney,
    tier: Type.String(),
    tierVersion: Type.Integer({ minimum: 1, description: 'The version of the tier that set the fee.' }),
    accountDetails: AccountDetails,
    payeeName: Type.String({
      minLength: 1,
      maxLength: 140,
      description:
        'The account holder as the payment names them: in the characters that the bank takes, and cut to its length.',
      examples: ['Sam Okafor'],
    }),
    createdAt: Instant,
    expiresAt: Instant,
    withdrawalId: Type.Union([Id('withdrawal'), Type.Null()], {
      description: 'The resulting withdrawal; null unless the intent is completed.',
    }),
    metadata: Metadata,
  },
  { title: 'WithdrawalIntent', ...strict },
)

const AppliedRuleName = Type.Enum([...ruleNames], { title: 'WithdrawalRule', type: 'string' })
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
        since: Type.Unsafe({ ...Instant, description: 'When this version was created.' }),
        ...termFields,
      },
      { description: 'The version of the tier in force when the intent was created.', ...strict },
    ),
    rules: Type.Array(Type.Object({ rule: AppliedRuleName, amount: WireMoney, because: Type.String() }, strict), {
      description: 'The rules in the order in which they were applied, each with its result.',
    }),
    result: Type.Object(
      {
        fee: Type.Unsafe({ ...WireMoney, description: 'The part of the fee that the member pays.' }),
        employerFee: Type.Unsafe({ ...WireMoney, description: 'The part of the fee that the employer pays.' }),
        netAmount: WireMoney,
      },
      strict,
    ),
  },
  { title: 'WithdrawalIntentExplanation', ...strict },
)

// The bodies for a member's own page. They do not name the member, and have only the last four characters of an account.

export const MemberPage = Type.Object(
  {
    scope: Type.Enum([...sessionScopes], { type: 'string' }),
    expiresInSeconds: Type.Integer({
      minimum: 0,
      description: 'A duration, because the clock of a page may be wrong.',
    }),
    status: MemberStatus,
    employer: Type.String({ description: 'The partner’s name.', examples: ['Acme Couriers'] }),
    bankAccount: Type.Union([LastFour, Type.Null()], {
      description: 'Where withdrawals go; null if the member has no bank account.',
    }),
  },
  { title: 'MemberPage', ...strict },
)

export const NewOwnWithdrawalIntent = Type.Object(
  { amount: NewWithdrawalIntent.properties.amount },
  { title: 'NewOwnWithdrawalIntent', ...strict },
)

export const OwnWithdrawalIntent = Type.Object(
  {
    withdrawalIntentId: Id('withdrawalIntent'),
    amount: WireMoney,
    netAmount: WireMoney,
    fee: WireMoney,
    bankAccount: LastFour,
    expiresAt: Instant,
    expectedAt: Type.Union([Instant, Type.Null()], {
      description:
        'When the money is expected in the account if the intent is completed at once. Null if that is known only once the withdrawal is submitted.',
    }),
  },
  { title: 'OwnWithdrawalIntent', ...strict },
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

export const WithdrawalStatus = Type.Enum([...statuses], { title: 'WithdrawalStatus', type: 'string' })
const Reason = Type.Union([Type.String(), Type.Null()], {
  title: 'WithdrawalReason',
  description: 'Why the status changed: the bank’s message, or who cancelled. Null if no reason was given.',
})

const ofIntent = Type.Unsafe<Metadata>({ ...Metadata, description: 'The metadata of its intent.' })

const WithdrawalItemWithStatus = Type.Object(
  {
    ...itemFields,
    amount: Type.Unsafe({ ...WireMoney, description: 'Gross amount: what left the member’s pay, including the fee.' }),
    status: WithdrawalStatus,
    changedAt: Type.Unsafe({ ...Instant, description: 'When the withdrawal entered this status.' }),
    reason: Reason,
    metadata: ofIntent,
  },
  { title: 'WithdrawalWithStatus', ...strict },
)

const timelineEntry = { status: WithdrawalStatus, at: Instant, reason: Reason }
const TimelineEntry = Type.Object(timelineEntry, { title: 'WithdrawalTimelineEntry', ...strict })

const details = {
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
    description: 'The member’s available balance right after this withdrawal was booked.',
  }),
  timeline: Type.Array(TimelineEntry, { description: 'Every status of the withdrawal so far, oldest first.' }),
  createdAt: Instant,
  expectedAt: Type.Union([Instant, Type.Null()], {
    description:
      'When the money is expected in the account. With a bank that takes files: once the withdrawal is submitted, the end of the day on which the money should arrive. With the simulated bank: the end of the hold while the withdrawal is `held`. Otherwise null.',
  }),
  paymentReference: Type.Union([Type.String({ examples: ['MMK7Q2MZ4TB5XJ3A'] }), Type.Null()], {
    description:
      'The end-to-end reference of the payment at the bank, which the member’s bank statement may show. Null until the withdrawal is submitted.',
  }),
}
export const WithdrawalDetails = Type.Object(
  { ...details, metadata: ofIntent },
  { title: 'WithdrawalDetails', ...strict },
)

/** The body for the member's page, without the partner's metadata. */
export const OwnWithdrawal = Type.Object(details, { title: 'OwnWithdrawal', ...strict })

const TimelineStep = Type.Object(
  {
    ...timelineEntry,
    actor: Type.Union(
      [
        Type.Object(
          { kind: Type.Enum([...actorKinds], { type: 'string' }), name: Type.Union([Type.String(), Type.Null()]) },
          strict,
        ),
        Type.Null(),
      ],
      {
        description:
          'Who caused it, if it was a decision: who cancelled the withdrawal, or removed its payment from a batch. Only users have names; users of a partner do not see those of operators.',
      },
    ),
    paymentReference: Type.Union([Type.String(), Type.Null()], {
      description: 'For `submitted`: the end-to-end reference of the payment at the bank.',
    }),
    lines: Type.Array(MemberStatementLine, {
      description:
        'The lines of the member’s statement that it was booked by, oldest first. Empty for users who may not read statements.',
    }),
  },
  { title: 'WithdrawalTimelineStep', ...strict },
)

const Delivery = Type.Object(
  { webhookId: Id('webhook'), url: Type.String(), ...WebhookDelivery.properties },
  { title: 'WithdrawalDelivery', ...strict },
)

export const WithdrawalTimeline = Type.Object(
  {
    withdrawalId: Id('withdrawal'),
    steps: Type.Array(TimelineStep, { description: 'Every status of the withdrawal so far, oldest first.' }),
    explanation: Type.Unsafe<Static<typeof IntentExplanation>>({
      ...IntentExplanation,
      description: 'How its intent was decided.',
    }),
    requests: Type.Union([Type.Array(LoggedRequest), Type.Null()], {
      description:
        'The requests of the last 7 days that created or changed its intent or itself, oldest first. Null for users who may not read the request log.',
    }),
    deliveries: Type.Union([Type.Array(Delivery), Type.Null()], {
      description:
        'The deliveries of its events and those of its intent to your webhook endpoints in the last 30 days, oldest event first. Null for users who may not read webhooks.',
    }),
  },
  { title: 'WithdrawalTimeline', ...strict },
)

export const MemberBalance = Type.Object(
  {
    available: WireMoney,
    lowerLimit: Type.Unsafe({
      ...WireMoney,
      description: 'The smallest amount that can be withdrawn. It leaves something after the fee.',
    }),
    upperLimit: Type.Unsafe({ ...WireMoney, description: 'The largest amount that can be withdrawn at once.' }),
    payCycle: Type.Object(
      {
        id: Id('payCycle'),
        startDate: Day,
        endDate: Day,
        lastPayDate: Type.Union([Instant, Type.Null()], {
          description: 'When pay last became available in this cycle; null if none has.',
        }),
      },
      strict,
    ),
    isTemporarilyUnavailable: Type.Boolean({
      description:
        'Whether withdrawals are refused for now, for example because on-demand pay is paused or the float is below its floor.',
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

const dayOrInstant = 'A date without a time means midnight UTC.'

export const WithdrawalQuery = Type.Object(
  {
    memberId: Type.Optional(Id('member')),
    payCycleId: Type.Optional(Id('payCycle')),
    fromDate: Type.Optional(
      Type.Unsafe<string>({ ...GivenDayOrInstant, description: `Created at or after this instant. ${dayOrInstant}` }),
    ),
    toDate: Type.Optional(
      Type.Unsafe<string>({ ...GivenDayOrInstant, description: `Created before this instant. ${dayOrInstant}` }),
    ),
    statuses: Type.Optional(
      Type.Array(WithdrawalStatus, {
        maxItems: statuses.length,
        description: 'Only withdrawals with one of these statuses. Default: `held`, `submitted` and `paid`.',
      }),
    ),
    ...metadataQuery,
    ...pageQuery,
    ...cursorQuery('withdrawal'),
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
