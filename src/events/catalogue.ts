import { type Static, type TSchema, Type } from 'typebox'
import { Id } from '../ids.ts'
import { SignedMoney, WireMoney } from '../money.ts'

const strict = { additionalProperties: false }
const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })
const Count = Type.Integer({ minimum: 0 })

const amounts = {
  amount: Type.Unsafe<WireMoney>({ ...WireMoney, description: 'What leaves the member’s pay: net amount plus fee.' }),
  fee: Type.Unsafe<WireMoney>({ ...WireMoney, description: 'What the member pays of the fee.' }),
  netAmount: Type.Unsafe<WireMoney>({ ...WireMoney, description: 'What reaches the member’s account.' }),
}

const IntentData = Type.Object(
  { withdrawalIntentId: Id('withdrawalIntent'), memberId: Id('member'), payCycleId: Id('payCycle'), ...amounts },
  { title: 'IntentEventData', ...strict },
)

const WithdrawalData = Type.Object(
  {
    withdrawalId: Id('withdrawal'),
    withdrawalIntentId: Id('withdrawalIntent'),
    memberId: Id('member'),
    payCycleId: Id('payCycle'),
    ...amounts,
    reason: Type.Optional(
      Type.String({ description: 'What the bank said, or who cancelled; absent where no reason was given.' }),
    ),
  },
  { title: 'WithdrawalEventData', ...strict },
)

const member = { memberId: Id('member'), status: Type.Enum(['invited', 'active', 'inactive'], { type: 'string' }) }
const MemberData = Type.Object(member, { title: 'MemberEventData', ...strict })
const MemberUpdatedData = Type.Object(
  {
    ...member,
    changed: Type.Array(
      Type.Enum(
        [
          ...(['email', 'firstName', 'lastName', 'phone', 'tier', 'workerId', 'accountDetails'] as const),
          ...(['enablePayroll', 'dob', 'gender'] as const),
        ],
        { type: 'string' },
      ),
      { description: 'Names of the fields that changed; their values are in the member.' },
    ),
  },
  { title: 'MemberUpdatedEventData', ...strict },
)

const PayRunData = Type.Object(
  {
    payRunId: Id('payRun'),
    payCycleId: Id('payCycle'),
    status: Type.Enum(['Scheduled', 'Available', 'Reverted'], { type: 'string' }),
  },
  { title: 'PayRunEventData', ...strict },
)

const cycle = { payCycleId: Id('payCycle'), startDate: Day, endDate: Day }
const PayCycleData = Type.Object(cycle, { title: 'PayCycleEventData', ...strict })
const PayCycleSettledData = Type.Object(
  { ...cycle, matched: Count, short: Count, over: Count, unknown: Count },
  { title: 'PayCycleSettledEventData', description: 'The counts are members, as in the settlement.', ...strict },
)

const JobData = Type.Object(
  {
    jobId: Id('memberJob'),
    status: Type.Enum(['NotReady', 'AwaitingReview', 'Processing', 'Completed', 'Rejected'], { type: 'string' }),
  },
  { title: 'JobEventData', ...strict },
)

const FloatData = Type.Object(
  {
    free: Type.Unsafe<Static<typeof SignedMoney>>({
      ...SignedMoney,
      description: 'What of the float is neither paid out nor on its way.',
    }),
    floor: Type.Unsafe<WireMoney>({ ...WireMoney, description: 'Withdrawals are refused while less is free.' }),
  },
  { title: 'FloatEventData', ...strict },
)

/**
 * Every type of event: when it is emitted, and what its `data` holds (ids, states, days and Money, never bank details or
 * names). Emitting an event that does not match does not compile; openapi.json and docs/events.md come from here.
 */
export const catalogue = {
  'intent.created': { when: 'A withdrawal was quoted.', data: IntentData },
  'intent.completed': { when: 'The intent became a withdrawal.', data: IntentData },
  'intent.expired': { when: 'The intent was not completed in time.', data: IntentData },
  'intent.cancelled': { when: 'The partner cancelled the intent.', data: IntentData },
  'withdrawal.held': {
    when: 'The money has left the member’s pay; the payout can still be cancelled.',
    data: WithdrawalData,
  },
  'withdrawal.submitted': { when: 'The payout went to the bank.', data: WithdrawalData },
  'withdrawal.paid': { when: 'The bank has paid it. A bank may still return it.', data: WithdrawalData },
  'withdrawal.failed': { when: 'The bank could not pay it; the member has the money back.', data: WithdrawalData },
  'withdrawal.returned': { when: 'A paid withdrawal came back; the member has the money back.', data: WithdrawalData },
  'withdrawal.cancelled': {
    when: 'It was cancelled before it went to the bank; the member has the money back.',
    data: WithdrawalData,
  },
  'member.invited': { when: 'The member was added.', data: MemberData },
  'member.activated': { when: 'The member may withdraw.', data: MemberData },
  'member.updated': { when: 'Fields of the member changed.', data: MemberUpdatedData },
  'member.removed': { when: 'The member was offboarded.', data: MemberData },
  'member.reinstated': { when: 'An offboarded member was invited again.', data: MemberData },
  'pay_run.scheduled': { when: 'A pay run was uploaded; its grace period runs.', data: PayRunData },
  'pay_run.available': { when: 'The money of the pay run became available.', data: PayRunData },
  'pay_run.reverted': { when: 'The pay run was taken back.', data: PayRunData },
  'pay_cycle.opened': { when: 'A pay cycle began.', data: PayCycleData },
  'pay_cycle.closed': { when: 'A pay cycle ended; its deductions are final.', data: PayCycleData },
  'pay_cycle.settled': { when: 'Payroll reported what it deducted for the cycle.', data: PayCycleSettledData },
  'job.awaiting_review': { when: 'A member job needs approval, because it would offboard many.', data: JobData },
  'job.queued': { when: 'A member job waits for the jobs ahead of it.', data: JobData },
  'job.processing': { when: 'A member job is being applied.', data: JobData },
  'job.completed': { when: 'A member job was applied.', data: JobData },
  'job.rejected': { when: 'A member job was rejected.', data: JobData },
  'job.expired': { when: 'A member job waited for approval for too long; it was rejected.', data: JobData },
  'float.low': {
    when: 'The free float fell below its floor; withdrawals in its currency are refused.',
    data: FloatData,
  },
} as const satisfies Record<string, { when: string; data: TSchema }>

export type EventType = keyof typeof catalogue

/** What the `data` of an event of this type holds. */
export type EventData<T extends EventType> = Static<(typeof catalogue)[T]['data']>

export const eventTypes = Object.keys(catalogue) as EventType[]
