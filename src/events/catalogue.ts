import { type Static, type TSchema, Type } from 'typebox'
import { Id } from '../kernel/ids.ts'
import { SignedMoney, WireMoney } from '../kernel/money.ts'
import { described, namedObject, strict, wordOf } from '../kernel/schemas.ts'
import { Day } from '../kernel/time.ts'
import { Metadata } from '../metadata/schema.ts'

const Count = Type.Integer({ minimum: 0 })

const metadata = {
  metadata: Type.Optional({
    ...Metadata,
    description: 'The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata.',
  }),
}

/** The position of an event among the events of its resource. */
export const EventSequence = Type.Integer({
  title: 'EventSequence',
  minimum: 1,
  description: 'Increases by one with each event of the same resource.',
})

const amounts = {
  amount: described(WireMoney, 'Gross amount: the net amount plus the fee, which together leave the member’s pay.'),
  fee: described(WireMoney, 'The part of the fee that the member pays.'),
  netAmount: described(WireMoney, 'The amount that the bank transfers to the member’s account.'),
}

const IntentData = namedObject('IntentEventData', {
  withdrawalIntentId: Id('withdrawalIntent'),
  memberId: Id('member'),
  payCycleId: Id('payCycle'),
  ...amounts,
  ...metadata,
})

const WithdrawalData = namedObject('WithdrawalEventData', {
  withdrawalId: Id('withdrawal'),
  withdrawalIntentId: Id('withdrawalIntent'),
  memberId: Id('member'),
  payCycleId: Id('payCycle'),
  ...amounts,
  reason: Type.Optional(
    Type.String({ description: 'The bank’s message, or who cancelled. Absent if no reason was given.' }),
  ),
  paymentReference: Type.Optional(
    Type.String({
      description: 'The end-to-end reference of the payment at the bank. Present only in `withdrawal.submitted`.',
    }),
  ),
  ...metadata,
})

const member = {
  memberId: Id('member'),
  status: wordOf(['invited', 'active', 'inactive'], { title: 'MemberStatus' }),
  ...metadata,
}
const MemberData = namedObject('MemberEventData', member)
const MemberUpdatedData = namedObject('MemberUpdatedEventData', {
  ...member,
  changed: Type.Array(
    wordOf([
      ...(['email', 'firstName', 'lastName', 'phone', 'tier', 'workerId', 'accountDetails'] as const),
      ...(['enablePayroll', 'dob', 'gender'] as const),
    ]),
    { description: 'Names of the changed fields. Read the member to get their values.' },
  ),
})

const PayRunData = namedObject('PayRunEventData', {
  payRunId: Id('payRun'),
  payCycleId: Id('payCycle'),
  status: wordOf(['Scheduled', 'Available', 'Reverted'], { title: 'PayRunStatus' }),
  ...metadata,
})

const cycle = { payCycleId: Id('payCycle'), startDate: Day, endDate: Day }
const PayCycleData = namedObject('PayCycleEventData', cycle)
const PayCycleSettledData = Type.Object(
  { ...cycle, matched: Count, short: Count, over: Count, unknown: Count },
  {
    title: 'PayCycleSettledEventData',
    description: 'The counts are numbers of members, as in the settlement.',
    ...strict,
  },
)

const JobData = namedObject('JobEventData', {
  jobId: Id('memberJob'),
  status: wordOf(['NotReady', 'AwaitingReview', 'Processing', 'Completed', 'Rejected']),
})

const FloatData = namedObject('FloatEventData', {
  free: described(SignedMoney, 'Free float: the money that is neither paid out nor on its way to members.'),
  floor: described(WireMoney, 'Withdrawals are refused while the free float is below this amount.'),
})

const webhook = { webhookId: Id('webhook'), ...metadata }
const WebhookDisabledData = namedObject('WebhookDisabledEventData', {
  ...webhook,
  reason: wordOf(['failing', 'gone'], {
    description: '`failing`: no delivery succeeded for 5 days. `gone`: the endpoint responded with 410.',
  }),
})
const WebhookRecoveredData = namedObject('WebhookRecoveredEventData', webhook)

/**
 * Every type of event: when it is emitted, and the fields of its `data` (ids, states, days and Money, never bank details or
 * names). Emitting an event that does not match does not compile. openapi.json and docs/reference/events.md are generated
 * from this catalogue.
 */
export const catalogue = {
  'intent.created': { when: 'A withdrawal was quoted.', data: IntentData },
  'intent.completed': { when: 'The intent became a withdrawal.', data: IntentData },
  'intent.expired': { when: 'The intent expired before it was completed.', data: IntentData },
  'intent.cancelled': { when: 'The partner cancelled the intent.', data: IntentData },
  'withdrawal.held': {
    when: 'The money has left the member’s pay. The withdrawal can still be cancelled.',
    data: WithdrawalData,
  },
  'withdrawal.submitted': { when: 'The payout was submitted to the bank.', data: WithdrawalData },
  'withdrawal.paid': { when: 'The bank paid the money out. It may still be returned.', data: WithdrawalData },
  'withdrawal.failed': { when: 'The bank could not pay the money out. The member has it back.', data: WithdrawalData },
  'withdrawal.returned': {
    when: 'The receiving bank returned the money. The member has it back.',
    data: WithdrawalData,
  },
  'withdrawal.cancelled': {
    when: 'The withdrawal was cancelled before it was submitted to the bank. The member has the money back.',
    data: WithdrawalData,
  },
  'member.invited': { when: 'The member was added.', data: MemberData },
  'member.activated': { when: 'The member was activated and can withdraw.', data: MemberData },
  'member.updated': { when: 'Fields of the member changed.', data: MemberUpdatedData },
  'member.removed': { when: 'The member was offboarded.', data: MemberData },
  'member.reinstated': { when: 'An offboarded member was reinstated.', data: MemberData },
  'pay_run.scheduled': { when: 'A pay run was uploaded. Its grace period has started.', data: PayRunData },
  'pay_run.available': { when: 'The money of the pay run became available.', data: PayRunData },
  'pay_run.reverted': { when: 'The pay run was reverted.', data: PayRunData },
  'pay_cycle.opened': {
    when: 'A pay cycle opened. The one before it has ended, and closes now or in a moment.',
    data: PayCycleData,
  },
  'pay_cycle.closed': { when: 'A pay cycle closed. Its deductions are final.', data: PayCycleData },
  'pay_cycle.settled': { when: 'Payroll reported what it deducted for the pay cycle.', data: PayCycleSettledData },
  'job.awaiting_review': {
    when: 'A member job needs approval, because it would offboard too many members.',
    data: JobData,
  },
  'job.queued': { when: 'A member job was queued behind other jobs.', data: JobData },
  'job.processing': { when: 'A member job started to be applied.', data: JobData },
  'job.completed': { when: 'A member job was applied.', data: JobData },
  'job.rejected': { when: 'A member job was rejected.', data: JobData },
  'job.expired': { when: 'A member job waited too long for approval and was rejected.', data: JobData },
  'float.low': {
    when: 'The free float fell below its floor. Withdrawals in its currency are refused.',
    data: FloatData,
  },
  'webhook.disabled': { when: 'A webhook endpoint was disabled because it failed.', data: WebhookDisabledData },
  'webhook.recovered': {
    when: 'A delivery succeeded for the first time after a failing webhook endpoint was disabled and enabled again.',
    data: WebhookRecoveredData,
  },
} as const satisfies Record<string, { when: string; data: TSchema }>

export type EventType = keyof typeof catalogue

/** The `data` of an event of this type. */
export type EventData<T extends EventType> = Static<(typeof catalogue)[T]['data']>

export const eventTypes = Object.keys(catalogue) as EventType[]

export const EventType = wordOf(eventTypes, { title: 'EventType' })
