import { type Static, Type } from 'typebox'
import { actorKinds } from '../audit-log/audit-log.ts'
import { AccountDetails } from '../bank-accounts/schema.ts'
import { cursorQuery, pageFields, pageQuery, totalField } from '../contract/list.ts'
import type { ProblemName } from '../kernel/errors.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { SignedMoney, WireMoney } from '../kernel/money.ts'
import { described, namedObject, nullable, strict, strictObject, wordOf } from '../kernel/schemas.ts'
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

export const NewWithdrawalIntent = namedObject('NewWithdrawalIntent', {
  memberId: Id('member', 'The member who receives the money.'),
  // Zero and less are refused as `AmountBelowLowerLimit`, whose message has the limit.
  amount: Type.Unsafe<Static<typeof SignedMoney>>({
    ...SignedMoney,
    title: 'RequestedMoney',
    examples: [{ amount: 5000, currency: 'GBP' }],
  }),
})

const LastFour = namedObject('LastFour', { lastFour: Type.String({ minLength: 4, maxLength: 4, examples: ['4958'] }) })

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

export const WithdrawalIntent = namedObject('WithdrawalIntent', {
  withdrawalIntentId: Id('withdrawalIntent'),
  memberId: Id('member'),
  payCycleId: Id('payCycle'),
  status: wordOf(intentStatuses, { title: 'WithdrawalIntentStatus' }),
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
  withdrawalId: nullable(Id('withdrawal'), 'The resulting withdrawal; null unless the intent is completed.'),
  metadata: Metadata,
})

const AppliedRuleName = wordOf(ruleNames, { title: 'WithdrawalRule' })
export const IntentExplanation = namedObject('WithdrawalIntentExplanation', {
  withdrawalIntentId: Id('withdrawalIntent'),
  inputs: strictObject({ memberId: Id('member'), payCycleId: Id('payCycle'), amount: WireMoney, createdAt: Instant }),
  tier: Type.Object(
    {
      name: Type.String({ examples: ['Bronze'] }),
      version: Type.Integer({ minimum: 1 }),
      since: described(Instant, 'When this version was created.'),
      ...termFields,
    },
    { description: 'The version of the tier in force when the intent was created.', ...strict },
  ),
  rules: Type.Array(strictObject({ rule: AppliedRuleName, amount: WireMoney, because: Type.String() }), {
    description: 'The rules in the order in which they were applied, each with its result.',
  }),
  result: strictObject({
    fee: described(WireMoney, 'The part of the fee that the member pays.'),
    employerFee: described(WireMoney, 'The part of the fee that the employer pays.'),
    netAmount: WireMoney,
  }),
})

// The bodies for a member's own page. They do not name the member, and have only the last four characters of an account.

export const MemberPage = namedObject('MemberPage', {
  scope: wordOf(sessionScopes),
  expiresInSeconds: Type.Integer({
    minimum: 0,
    description: 'A duration, because the clock of a page may be wrong.',
  }),
  status: MemberStatus,
  employer: Type.String({ description: 'The partner’s name.', examples: ['Acme Couriers'] }),
  bankAccount: nullable(LastFour, 'Where withdrawals go; null if the member has no bank account.'),
})

export const NewOwnWithdrawalIntent = namedObject('NewOwnWithdrawalIntent', {
  amount: NewWithdrawalIntent.properties.amount,
})

export const OwnWithdrawalIntent = namedObject('OwnWithdrawalIntent', {
  withdrawalIntentId: Id('withdrawalIntent'),
  amount: WireMoney,
  netAmount: WireMoney,
  fee: WireMoney,
  bankAccount: LastFour,
  expiresAt: Instant,
  expectedAt: nullable(
    Instant,
    'When the money is expected in the account if the intent is completed at once. Null if that is known only once the withdrawal is submitted.',
  ),
})

export const CompleteWithdrawal = namedObject('CompleteWithdrawal', { withdrawalIntentId: Id('withdrawalIntent') })
export const WithdrawalCompleted = namedObject('WithdrawalCompleted', {
  message: Type.String({ examples: ['The withdrawal is on its way'] }),
})

const itemFields = {
  id: Id('withdrawal'),
  netAmount: WireMoney,
  fee: WireMoney,
  payCycleId: Id('payCycle'),
  memberId: Id('member'),
  createdAt: Instant,
}
const WithdrawalItem = namedObject('Withdrawal', itemFields)

export const WithdrawalStatus = wordOf(statuses, { title: 'WithdrawalStatus' })
const Reason = Type.Union([Type.String(), Type.Null()], {
  title: 'WithdrawalReason',
  description: 'Why the status changed: the bank’s message, or who cancelled. Null if no reason was given.',
})

const ofIntent = described(Metadata, 'The metadata of its intent.')

const WithdrawalItemWithStatus = namedObject('WithdrawalWithStatus', {
  ...itemFields,
  amount: described(WireMoney, 'Gross amount: what left the member’s pay, including the fee.'),
  status: WithdrawalStatus,
  changedAt: described(
    Instant,
    'When the withdrawal entered this status. If its transfers are of a year that the operator has detached: when it was submitted or, if it never was, created.',
  ),
  reason: Reason,
  metadata: ofIntent,
})

const timelineEntry = { status: WithdrawalStatus, at: Instant, reason: Reason }
const TimelineEntry = namedObject('WithdrawalTimelineEntry', timelineEntry)

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
  balanceAfter: described(WireMoney, 'The member’s available balance right after this withdrawal was booked.'),
  timeline: Type.Array(TimelineEntry, {
    description:
      'Every status of the withdrawal so far, oldest first. The statuses after `submitted` that were entered in a year whose transfers the operator has detached are missing.',
  }),
  createdAt: Instant,
  expectedAt: nullable(
    Instant,
    'When the money is expected in the account. With a bank that takes files: once the withdrawal is submitted, the end of the day on which the money should arrive. With the simulated bank: the end of the hold while the withdrawal is `held`. Otherwise null.',
  ),
  paymentReference: nullable(
    Type.String({ examples: ['MMK7Q2MZ4TB5XJ3A'] }),
    'The end-to-end reference of the payment at the bank, which the member’s bank statement may show. Null until the withdrawal is submitted.',
  ),
}
export const WithdrawalDetails = namedObject('WithdrawalDetails', { ...details, metadata: ofIntent })

/** The body for the member's page, without the partner's metadata. */
export const OwnWithdrawal = namedObject('OwnWithdrawal', details)

const TimelineStep = namedObject('WithdrawalTimelineStep', {
  ...timelineEntry,
  actor: nullable(
    strictObject({ kind: wordOf(actorKinds), name: nullable(Type.String()) }),
    'Who caused it, if it was a decision: who cancelled the withdrawal, or removed its payment from a batch. Only users have names; users of a partner do not see those of operators.',
  ),
  paymentReference: nullable(Type.String(), 'For `submitted`: the end-to-end reference of the payment at the bank.'),
  lines: Type.Array(MemberStatementLine, {
    description:
      'The lines of the member’s statement that it was booked by, oldest first. Empty for users who may not read statements.',
  }),
})

const Delivery = namedObject('WithdrawalDelivery', {
  webhookId: Id('webhook'),
  url: Type.String(),
  ...WebhookDelivery.properties,
})

export const WithdrawalTimeline = namedObject('WithdrawalTimeline', {
  withdrawalId: Id('withdrawal'),
  steps: Type.Array(TimelineStep, { description: 'Every status of the withdrawal so far, oldest first.' }),
  explanation: described(IntentExplanation, 'How its intent was decided.'),
  requests: nullable(
    Type.Array(LoggedRequest),
    'The requests of the last 7 days that created or changed its intent or itself, oldest first. Null for users who may not read the request log.',
  ),
  deliveries: nullable(
    Type.Array(Delivery),
    'The deliveries of its events and those of its intent to your webhook endpoints in the last 30 days, oldest event first. Null for users who may not read webhooks.',
  ),
})

export const MemberBalance = Type.Object(
  {
    available: WireMoney,
    lowerLimit: described(WireMoney, 'The smallest amount that can be withdrawn. It leaves something after the fee.'),
    upperLimit: described(WireMoney, 'The largest amount that can be withdrawn at once.'),
    payCycle: strictObject({
      id: Id('payCycle'),
      startDate: Day,
      endDate: Day,
      lastPayDate: nullable(Instant, 'When pay last became available in this cycle; null if none has.'),
    }),
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

export const WithdrawalQuery = strictObject({
  memberId: Type.Optional(Id('member')),
  payCycleId: Type.Optional(Id('payCycle')),
  fromDate: Type.Optional(described(GivenDayOrInstant, `Created at or after this instant. ${dayOrInstant}`)),
  toDate: Type.Optional(described(GivenDayOrInstant, `Created before this instant. ${dayOrInstant}`)),
  statuses: Type.Optional(
    Type.Array(WithdrawalStatus, {
      maxItems: statuses.length,
      description: 'Only withdrawals with one of these statuses. Default: `held`, `submitted` and `paid`.',
    }),
  ),
  ...metadataQuery,
  ...pageQuery,
  ...cursorQuery('withdrawal'),
})

export const Withdrawals = namedObject('Withdrawals', {
  withdrawals: Type.Array(WithdrawalItem),
  hasMore: Type.Boolean(),
  ...pageFields,
})

export const WithdrawalsWithStatus = namedObject('WithdrawalsWithStatus', {
  withdrawals: Type.Array(WithdrawalItemWithStatus),
  hasMore: Type.Boolean(),
  ...pageFields,
})

export const MemberWithdrawals = namedObject('MemberWithdrawals', {
  withdrawals: Type.Array(
    strictObject({ amount: WireMoney, fee: WireMoney, payCycleId: Id('payCycle'), createdAt: Instant }),
  ),
  ...pageFields,
  ...totalField,
})
