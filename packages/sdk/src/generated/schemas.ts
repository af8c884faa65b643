// Generated from openapi-representation.json by `npm run generate`. Do not edit.

/** Name of the account holder, 1 to 140 characters. */
export type AccountHolder = string

export type AddMember = {
  type: 'Add'
  email: Email
  firstName: FirstName
  lastName: LastName
  tier: TierName
  phone?: Phone | null | undefined
  workerId?: WorkerId | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  dob?: DateOfBirth | null | undefined
  gender?: Gender | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type AmountAboveUpperLimitIssue = { code: 'AmountAboveUpperLimit'; message: IssueMessage; upperLimit: Money }
export type AmountBelowLowerLimitIssue = { code: 'AmountBelowLowerLimit'; message: IssueMessage; lowerLimit: Money }
export type AvailablePayRun = { id: PayRunId; payCycleId: PayCycleId; status: 'Available' }
export type BadRequestIssue = { code: 'BadRequest'; message: IssueMessage }
export type BankAccount = BankAccountUK | BankAccountEU

export type BankAccountEU = {
  accountHolder: AccountHolder
  /** IBAN, stored in upper case without spaces. */
  iban: string
}

export type BankAccountInvalidIssue = { code: 'BankAccountInvalid'; message: IssueMessage }

export type BankAccountUK = {
  accountHolder: AccountHolder
  /** Six digits. Hyphens and spaces between the pairs are removed. */
  sortCode: string
  /** Eight digits. Six or seven digits are padded with leading zeros. */
  accountNumber: string
}

/** Why, as the ISO 20022 code of the bank: `AC01` The account number is wrong, `AC03` The account of the payee is invalid, `AC04` The account is closed, `AC06` The account is blocked, `AG01` The account does not accept such payments, `AM09` The amount is wrong, `BE01` The account holder does not match, `FOCR` Returned after a request to cancel, `MD07` The payee has died, `MS03` The bank gives no reason, `RC01` The bank code is wrong, `RR04` Returned for a regulatory reason. */
export type BankReason = 'AC01' | 'AC03' | 'AC04' | 'AC06' | 'AG01' | 'AM09' | 'BE01' | 'FOCR' | 'MD07' | 'MS03' | 'RC01' | 'RR04'

export type BodyValidationIssue = {
  code: 'BodyValidation'
  message: IssueMessage
  /** Name of the header or parameter, or path of the field with dots. */
  path: string
}

export type CallerId = string
export type CompleteWithdrawal = { withdrawalIntentId: WithdrawalIntentId }
export type ConflictIssue = { code: 'Conflict'; message: IssueMessage }
export type Currency = 'AED' | 'AFN' | 'ALL' | 'AMD' | 'ANG' | 'AOA' | 'ARS' | 'AUD' | 'AWG' | 'AZN' | 'BAM' | 'BBD' | 'BDT' | 'BGN' | 'BHD' | 'BIF' | 'BMD' | 'BND' | 'BOB' | 'BOV' | 'BRL' | 'BSD' | 'BTN' | 'BWP' | 'BYN' | 'BZD' | 'CAD' | 'CDF' | 'CHE' | 'CHF' | 'CHW' | 'CLF' | 'CLP' | 'CNY' | 'COP' | 'COU' | 'CRC' | 'CUC' | 'CUP' | 'CVE' | 'CZK' | 'DJF' | 'DKK' | 'DOP' | 'DZD' | 'EGP' | 'ERN' | 'ETB' | 'EUR' | 'FJD' | 'FKP' | 'GBP' | 'GEL' | 'GHS' | 'GIP' | 'GMD' | 'GNF' | 'GTQ' | 'GYD' | 'HKD' | 'HNL' | 'HRK' | 'HTG' | 'HUF' | 'IDR' | 'ILS' | 'INR' | 'IQD' | 'IRR' | 'ISK' | 'JMD' | 'JOD' | 'JPY' | 'KES' | 'KGS' | 'KHR' | 'KMF' | 'KPW' | 'KRW' | 'KWD' | 'KYD' | 'KZT' | 'LAK' | 'LBP' | 'LKR' | 'LRD' | 'LSL' | 'LYD' | 'MAD' | 'MDL' | 'MGA' | 'MKD' | 'MMK' | 'MNT' | 'MOP' | 'MRU' | 'MUR' | 'MVR' | 'MWK' | 'MXN' | 'MXV' | 'MYR' | 'MZN' | 'NAD' | 'NGN' | 'NIO' | 'NOK' | 'NPR' | 'NZD' | 'OMR' | 'PAB' | 'PEN' | 'PGK' | 'PHP' | 'PKR' | 'PLN' | 'PYG' | 'QAR' | 'RON' | 'RSD' | 'RUB' | 'RWF' | 'SAR' | 'SBD' | 'SCR' | 'SDG' | 'SEK' | 'SGD' | 'SHP' | 'SLL' | 'SOS' | 'SRD' | 'SSP' | 'STN' | 'SVC' | 'SYP' | 'SZL' | 'THB' | 'TJS' | 'TMT' | 'TND' | 'TOP' | 'TRY' | 'TTD' | 'TWD' | 'TZS' | 'UAH' | 'UGX' | 'USD' | 'USN' | 'UYI' | 'UYU' | 'UYW' | 'UZS' | 'VES' | 'VND' | 'VUV' | 'WST' | 'XAF' | 'XAG' | 'XAU' | 'XBA' | 'XBB' | 'XBC' | 'XBD' | 'XCD' | 'XDR' | 'XOF' | 'XPD' | 'XPF' | 'XPT' | 'XSU' | 'XTS' | 'XUA' | 'XXX' | 'YER' | 'ZAR' | 'ZMW' | 'ZWL'

/** Date of birth. */
export type DateOfBirth = string
export type Day = string
export type DayOrInstant = string

export type Deduction = {
  memberId: MemberId
  /** Amount to deduct from the member’s pay. Negative if payroll is to give money back. */
  total: SignedMoney
}

export type DeductionTaken = {
  memberId: MemberId
  /** Amount that payroll took. Negative if payroll gave money back, which is allowed only for a negative deduction. */
  taken: SignedMoney
}

export type Deductions = { deductions: Deduction[]; total: ListTotal; skip: PageSkip; take: PageTake }

/** When the event happened. */
export type DeliveryTimestamp = string
export type Email = string

export type ErrorRow = {
  /** Precedence: if several rows apply, the answer is the one with the lowest order. */
  order: number
  code: string
  status: number
  /** When `x-should-retry` is `true`: always, never, if the answer has `retry-after`, or if a repeat is safe because the request is a GET or has an idempotency key. */
  retry: 'yes' | 'no' | 'if-retry-after' | 'if-repeatable'
  /** Additional fields of the issue. */
  extra: string[]
  when: string
}

export type Event = IntentCreatedEvent | IntentCompletedEvent | IntentExpiredEvent | IntentCancelledEvent | WithdrawalHeldEvent | WithdrawalSubmittedEvent | WithdrawalPaidEvent | WithdrawalFailedEvent | WithdrawalReturnedEvent | WithdrawalCancelledEvent | MemberInvitedEvent | MemberActivatedEvent | MemberUpdatedEvent | MemberRemovedEvent | MemberReinstatedEvent | PayRunScheduledEvent | PayRunAvailableEvent | PayRunRevertedEvent | PayCycleOpenedEvent | PayCycleClosedEvent | PayCycleSettledEvent | JobAwaitingReviewEvent | JobQueuedEvent | JobProcessingEvent | JobCompletedEvent | JobRejectedEvent | JobExpiredEvent | FloatLowEvent | WebhookDisabledEvent | WebhookRecoveredEvent

/** Same as `timestamp`. */
export type EventCreatedAt = string
export type EventId = `evt_${string}`

/** Increases by one with each event of the same resource. */
export type EventSequence = number

/** When the event happened. */
export type EventTimestamp = string
export type EventType = 'intent.created' | 'intent.completed' | 'intent.expired' | 'intent.cancelled' | 'withdrawal.held' | 'withdrawal.submitted' | 'withdrawal.paid' | 'withdrawal.failed' | 'withdrawal.returned' | 'withdrawal.cancelled' | 'member.invited' | 'member.activated' | 'member.updated' | 'member.removed' | 'member.reinstated' | 'pay_run.scheduled' | 'pay_run.available' | 'pay_run.reverted' | 'pay_cycle.opened' | 'pay_cycle.closed' | 'pay_cycle.settled' | 'job.awaiting_review' | 'job.queued' | 'job.processing' | 'job.completed' | 'job.rejected' | 'job.expired' | 'float.low' | 'webhook.disabled' | 'webhook.recovered'
export type EventTypePattern = '*' | 'intent.*' | 'withdrawal.*' | 'member.*' | 'pay_run.*' | 'pay_cycle.*' | 'job.*' | 'float.*' | 'webhook.*' | 'intent.created' | 'intent.completed' | 'intent.expired' | 'intent.cancelled' | 'withdrawal.held' | 'withdrawal.submitted' | 'withdrawal.paid' | 'withdrawal.failed' | 'withdrawal.returned' | 'withdrawal.cancelled' | 'member.invited' | 'member.activated' | 'member.updated' | 'member.removed' | 'member.reinstated' | 'pay_run.scheduled' | 'pay_run.available' | 'pay_run.reverted' | 'pay_cycle.opened' | 'pay_cycle.closed' | 'pay_cycle.settled' | 'job.awaiting_review' | 'job.queued' | 'job.processing' | 'job.completed' | 'job.rejected' | 'job.expired' | 'float.low' | 'webhook.disabled' | 'webhook.recovered'

export type Events = {
  events: Event[]
  /** Your position in the feed: pass it as `after` to continue. Null while the feed is empty; then continue without `after`. */
  lastEventId: EventId | null
  hasMore: boolean
  /** Maximum number of events in this response. */
  take: number
}

export type ExportedAuditEntry = {
  at: Instant
  action: string
  /** What kind of actor it was. */
  by: 'api_key' | 'operator_key' | 'user' | 'cli' | 'worker'
  details: object
}

export type ExportedImport = { jobId: MemberJobId; createdAt: Instant; action: string; fault: string | null }

export type ExportedIntent = {
  withdrawalIntentId: WithdrawalIntentId
  status: 'pending' | 'completed' | 'expired' | 'cancelled'
  amount: Money
  netAmount: Money
  fee: Money
  tier: string
  /** Null in a member session, which shows only `lastFour`. */
  accountDetails: BankAccount | null
  lastFour: string | null
  createdAt: Instant
  expiresAt: Instant
}

export type ExportedPayCycle = {
  payCycleId: PayCycleId
  startDate: Day
  endDate: Day
  reason: string
  /** How much it changed the available balance in this cycle, in all. */
  available: SignedMoney
  /** How much it changed what the member owes. */
  owed: SignedMoney
}

export type ExportedProfile = {
  memberId: MemberId
  status: MemberStatus
  email: Email
  firstName: FirstName
  lastName: LastName
  tier: TierName
  phone: Phone | null
  workerId: WorkerId | null
  accountDetails: BankAccountUK | BankAccountEU | null
  dob: DateOfBirth | null
  gender: Gender | null
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll: boolean
  lastFour: string | null
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
  createdAt: Instant
  updatedAt: Instant
  /** Why the bank refuses the account; null if it does not. */
  accountRefused: string | null
  /** Why the member’s withdrawals are held for review; null if they are not, and in a member session. */
  reviewReason: string | null
}

export type ExportedSession = {
  id: MemberSessionId
  scope: 'read' | 'withdraw'
  origin: string | null
  createdAt: Instant
  expiresAt: Instant
}

export type ExportedWithdrawal = {
  withdrawal: WithdrawalDetails
  /** Null in a member session, which shows only `lastFour`. */
  accountDetails: BankAccount | null
}

export type FileContentIssue = {
  code: 'FileContent'
  message: IssueMessage
  /** Row of the file. The header is row "1". */
  row: string
}

export type FirstName = string

export type FloatEventData = {
  /** Free float: the money that is neither paid out nor on its way to members. */
  free: SignedMoney
  /** Withdrawals are refused while the free float is below this amount. */
  floor: Money
}

export type FloatLowDelivery = {
  id: EventId
  type: 'float.low'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: FloatEventData
}

/** The free float fell below its floor. Withdrawals in its currency are refused. */
export type FloatLowEvent = {
  type: 'float.low'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: FloatEventData
}

export type ForbiddenIssue = { code: 'Forbidden'; message: IssueMessage }
export type Gender = 'Female' | 'Male' | 'NonBinary'
export type GivenInstant = string

export type HeaderValidationIssue = {
  code: 'HeaderValidation'
  message: IssueMessage
  /** Name of the header or parameter, or path of the field with dots. */
  path: string
}

export type IdempotencyKey = {
  key: string
  /** The `operationId` of the request. */
  operation: string
  status: number
  /** The resource that the request created or changed. */
  resourceId: string | null
  createdAt: string
  expiresAt: string
}

/** Held and submitted withdrawals. */
export type InFlight = { withdrawals: number; netAmount: Money }
export type Instant = string

export type IntentCancelledDelivery = {
  id: EventId
  type: 'intent.cancelled'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: IntentEventData
}

/** The partner cancelled the intent. */
export type IntentCancelledEvent = {
  type: 'intent.cancelled'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: IntentEventData
}

export type IntentCompletedDelivery = {
  id: EventId
  type: 'intent.completed'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: IntentEventData
}

/** The intent became a withdrawal. */
export type IntentCompletedEvent = {
  type: 'intent.completed'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: IntentEventData
}

export type IntentCreatedDelivery = {
  id: EventId
  type: 'intent.created'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: IntentEventData
}

/** A withdrawal was quoted. */
export type IntentCreatedEvent = {
  type: 'intent.created'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: IntentEventData
}

export type IntentEventData = {
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  /** Gross amount: the net amount plus the fee, which together leave the member’s pay. */
  amount: Money
  /** The part of the fee that the member pays. */
  fee: Money
  /** The amount that the bank transfers to the member’s account. */
  netAmount: Money
  /** The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata. */
  metadata?: Metadata | undefined
}

export type IntentExpiredDelivery = {
  id: EventId
  type: 'intent.expired'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: IntentEventData
}

/** The intent expired before it was completed. */
export type IntentExpiredEvent = {
  type: 'intent.expired'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: IntentEventData
}

export type InternalServerErrorIssue = { code: 'InternalServerError'; message: IssueMessage }
export type InvalidAddMemberPayloadIssue = { code: 'InvalidAddMemberPayload'; message: IssueMessage; email: string }
export type InvalidRemoveMemberPayloadIssue = { code: 'InvalidRemoveMemberPayload'; message: IssueMessage; memberId: MemberId }
export type InvalidUpdateMemberPayloadIssue = { code: 'InvalidUpdateMemberPayload'; message: IssueMessage; memberId: MemberId }

/** For developers and logs. It may change, so branch on `code`. */
export type IssueMessage = string

export type JobAwaitingReviewDelivery = {
  id: EventId
  type: 'job.awaiting_review'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: JobEventData
}

/** A member job needs approval, because it would offboard too many members. */
export type JobAwaitingReviewEvent = {
  type: 'job.awaiting_review'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: JobEventData
}

export type JobCompletedDelivery = {
  id: EventId
  type: 'job.completed'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: JobEventData
}

/** A member job was applied. */
export type JobCompletedEvent = {
  type: 'job.completed'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: JobEventData
}

export type JobEventData = {
  jobId: MemberJobId
  status: 'NotReady' | 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'
}

export type JobExpiredDelivery = {
  id: EventId
  type: 'job.expired'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: JobEventData
}

/** A member job waited too long for approval and was rejected. */
export type JobExpiredEvent = {
  type: 'job.expired'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: JobEventData
}

export type JobProcessingDelivery = {
  id: EventId
  type: 'job.processing'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: JobEventData
}

/** A member job started to be applied. */
export type JobProcessingEvent = {
  type: 'job.processing'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: JobEventData
}

export type JobQueuedDelivery = {
  id: EventId
  type: 'job.queued'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: JobEventData
}

/** A member job was queued behind other jobs. */
export type JobQueuedEvent = {
  type: 'job.queued'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: JobEventData
}

export type JobRejectedDelivery = {
  id: EventId
  type: 'job.rejected'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: JobEventData
}

/** A member job was rejected. */
export type JobRejectedEvent = {
  type: 'job.rejected'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: JobEventData
}

export type KeptAfterErasure = {
  what: string
  /** Why it is kept. */
  rule: string
  /** Null is for ever. */
  until: Day | null
}

export type LastFour = { lastFour: string }
export type LastName = string

/** Number of entries in the whole list. */
export type ListTotal = number

export type LoggedRequest = {
  id: RequestId
  /** The `x-request-id` of the response: yours if you sent one, otherwise the same as `id`. */
  requestId: string
  /** When the request arrived, by the real clock. */
  createdAt: Instant
  method: string
  /** The path as in this document; null if no operation has it. */
  route: string | null
  /** The path without its query. Only ids are filled in: a parameter that is not an id stays a name, and a part of an unknown path that no operation has is `…`. */
  path: string
  status: number
  /** From the arrival of the request to the end of its response, in milliseconds. */
  durationMs: number
  /** The API key that the request was made with, or the user of the console. */
  keyId: CallerId
  /** The `x-idempotency-key` of the request. */
  idempotencyKey: string | null
  /** Whether the response was the stored response of an earlier request with the same key. */
  replayed: boolean
  /** The codes of the issues in the response, each once. */
  errorCodes: string[]
  /** The resource that the request created or changed, or else the resource in its path, or else the member named in the error or the request. */
  resourceId: string | null
}

export type LoggedRequests = {
  requests: LoggedRequest[]
  /** Whether there are more entries in the direction of the cursor. */
  hasMore: boolean
  take: PageTake
}

export type Member = {
  memberId: MemberId
  status: MemberStatus
  email: Email
  firstName: FirstName
  lastName: LastName
  tier: TierName
  phone: Phone | null
  workerId: WorkerId | null
  accountDetails: BankAccountUK | BankAccountEU | null
  dob: DateOfBirth | null
  gender: Gender | null
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll: boolean
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
}

export type MemberActivatedDelivery = {
  id: EventId
  type: 'member.activated'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: MemberEventData
}

/** The member was activated and can withdraw. */
export type MemberActivatedEvent = {
  type: 'member.activated'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: MemberEventData
}

export type MemberAlreadyInvitedIssue = { code: 'MemberAlreadyInvited'; message: IssueMessage; memberId: MemberId }

export type MemberBalance = {
  available: Money
  /** The smallest amount that can be withdrawn. It leaves something after the fee. */
  lowerLimit: Money
  /** The largest amount that can be withdrawn at once. */
  upperLimit: Money
  payCycle: {
    id: PayCycleId
    startDate: Day
    endDate: Day
    /** When pay last became available in this cycle; null if none has. */
    lastPayDate: Instant | null
  }
  /** Whether withdrawals are refused for now, for example because on-demand pay is paused or the float is below its floor. */
  isTemporarilyUnavailable: boolean
}

export type MemberCounts = { active: number; invited: number; inactive: number }

export type MemberDataExport = {
  generatedAt: Instant
  /** The name of the partner, who decides why the data is processed. */
  employer: string
  profile: ExportedProfile
  /** Start of the statement and pay cycles, if earlier transfers are detached; null if complete. Pay cycles that began before are left out. */
  statementSince: Instant | null
  /** The balances by pay cycle and reason, oldest first. */
  payCycles: ExportedPayCycle[]
  /** Every change of the balance, newest first: pay, corrections, withdrawals, fees and what was given back. */
  statement: MemberStatementLine[]
  /** Quotes that did not become withdrawals, as long as they are kept; oldest first. */
  intents: ExportedIntent[]
  /** Each with its timeline, and the account and reference of the payment; newest first. */
  withdrawals: ExportedWithdrawal[]
  /** The changes of this person in lists of members, as long as their results are kept. */
  imports: ExportedImport[]
  /** What was done to the profile, and when it was shown; newest first. */
  auditEntries: ExportedAuditEntry[]
  /** The member’s sessions of the last hours. */
  sessions: ExportedSession[]
}

export type MemberErasure = {
  memberId: MemberId
  /** Null if the member was not erased. */
  erasedAt: Instant | null
  /** Every reason why the member cannot be erased yet. Only with `dryRun`; otherwise they are refused as `Conflict`. */
  obstacles: string[]
  destroyed: string[]
  kept: KeptAfterErasure[]
  /** The same, signed: a compact JSON Web Signature (RFC 7515) with the algorithm `EdDSA`. Null if the member was not erased. */
  receipt: string | null
  publicKey: ReceiptKey
}

export type MemberEventData = {
  memberId: MemberId
  status: MemberStatus
  /** The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata. */
  metadata?: Metadata | undefined
}

export type MemberId = `mem_${string}`
export type MemberInsufficientFundsIssue = { code: 'MemberInsufficientFunds'; message: IssueMessage; memberId: MemberId }

export type MemberInvitedDelivery = {
  id: EventId
  type: 'member.invited'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: MemberEventData
}

/** The member was added. */
export type MemberInvitedEvent = {
  type: 'member.invited'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: MemberEventData
}

export type MemberJob = {
  id: MemberJobId
  progress: {
    type: MemberJobStatus
    /** Actions in the job; for a file, planned changes without the unchanged rows. While the job is queued, this is the plan from when it was sent. */
    totalActions: number
    /** Actions that have been processed. */
    totalComplete: number
    /** Actions that remain while the job is being processed. */
    totalProcessing: number
  }
  createdAt: string
}

export type MemberJobCreated = { jobId: MemberJobId }
export type MemberJobId = `maj_${string}`

export type MemberJobPlan = {
  /** New members. */
  invite: number
  /** Members whose data changes. */
  update: number
  /** Inactive members that are reinstated. */
  reinstate: number
  /** Members that become inactive; for a file, those missing from it. */
  offboard: number
  /** Rows or actions that change nothing. */
  unchanged: number
}

export type MemberJobPreview = {
  plan: MemberJobPlan
  /** Whether the job waits for approval because it offboards too many members. */
  needsReview: boolean
  /** Members that would be offboarded (at most the first 1,000). */
  offboard: MemberId[]
}

export type MemberJobResult = {
  /** The position of the result in the job; the cursor of this list. */
  step: number
  /** Row of the file (the header is "1") or position of the action (starting at "1"); null for members missing from the file. */
  row: string | null
  action: MemberJobResultAction
  outcome: MemberJobResultOutcome
  memberId: MemberId | null
  email: string | null
  message: string | null
}

export type MemberJobResultAction = 'Invite' | 'Update' | 'Reinstate' | 'Offboard' | 'Unchanged'

/** `Pending`: not processed yet. `Failed`: no longer possible when it was processed; `message` says why. `NotDone`: the job was rejected. */
export type MemberJobResultOutcome = 'Pending' | 'Done' | 'Failed' | 'NotDone'

export type MemberJobResults = {
  jobId: MemberJobId
  plan: MemberJobPlan
  results: MemberJobResult[]
  total: ListTotal
  skip: PageSkip
  take: PageTake
}

/** `NotReady`: queued behind another job of the partner. `AwaitingReview`: waiting for `approve` or `reject`. */
export type MemberJobStatus = 'Processing' | 'Completed' | 'AwaitingReview' | 'NotReady' | 'Rejected'
export type MemberJobs = { jobs: MemberJob[]; total: ListTotal; skip: PageSkip; take: PageTake }
export type MemberNotEligibleIssue = { code: 'MemberNotEligible'; message: IssueMessage; memberId: MemberId }
export type MemberNotFoundIssue = { code: 'MemberNotFound'; message: IssueMessage; memberId: MemberId }

export type MemberPage = {
  scope: 'read' | 'withdraw'
  /** A duration, because the clock of a page may be wrong. */
  expiresInSeconds: number
  status: MemberStatus
  /** The partner’s name. */
  employer: string
  /** Where withdrawals go; null if the member has no bank account. */
  bankAccount: LastFour | null
}

export type MemberReinstatedDelivery = {
  id: EventId
  type: 'member.reinstated'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: MemberEventData
}

/** An offboarded member was reinstated. */
export type MemberReinstatedEvent = {
  type: 'member.reinstated'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: MemberEventData
}

export type MemberRemoved = { message: 'OK' }

export type MemberRemovedDelivery = {
  id: EventId
  type: 'member.removed'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: MemberEventData
}

/** The member was offboarded. */
export type MemberRemovedEvent = {
  type: 'member.removed'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: MemberEventData
}

export type MemberSession = {
  id: MemberSessionId
  /** Sent as `authorization: Bearer …`. Shown only here; give it to the member’s page. */
  token: string
  expiresAt: Instant
  /** Address of the hosted page, with the token. Give it only to the member. Null for a session with an `origin`. */
  url: string | null
}

export type MemberSessionId = `ses_${string}`

export type MemberStanding = {
  /** The available balance. */
  available: SignedMoney
  /** What the member owes: the part of a correction that exceeded the available balance. The next pay run repays it first. */
  owed: SignedMoney
}

export type MemberStatement = {
  memberId: MemberId
  asOf: Instant
  /** Balance before the oldest line of this page. */
  opening: MemberStanding
  /** Balance after the newest line of this page. On the first page, the balance at `asOf`. */
  closing: MemberStanding
  lines: MemberStatementLine[]
  hasMore: boolean
  skip: PageSkip
  take: PageTake
}

export type MemberStatementLine = {
  id: TransferId
  /** The pay run, withdrawal or pay cycle that the line belongs to. */
  movementId: string
  reason: string
  createdAt: Instant
  change: MemberStanding
  balanceAfter: MemberStanding
}

export type MemberStatus = 'invited' | 'active' | 'inactive'

export type MemberUpdate = {
  email?: Email | undefined
  firstName?: FirstName | undefined
  lastName?: LastName | undefined
  tier?: TierName | undefined
  phone?: Phone | null | undefined
  workerId?: WorkerId | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  dob?: DateOfBirth | null | undefined
  gender?: Gender | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type MemberUpdatedDelivery = {
  id: EventId
  type: 'member.updated'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: MemberUpdatedEventData
}

/** Fields of the member changed. */
export type MemberUpdatedEvent = {
  type: 'member.updated'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: MemberUpdatedEventData
}

export type MemberUpdatedEventData = {
  memberId: MemberId
  status: MemberStatus
  /** The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata. */
  metadata?: Metadata | undefined
  /** Names of the changed fields. Read the member to get their values. */
  changed: ('email' | 'firstName' | 'lastName' | 'phone' | 'tier' | 'workerId' | 'accountDetails' | 'enablePayroll' | 'dob' | 'gender')[]
}

export type MemberWithdrawals = {
  withdrawals: { amount: Money; fee: Money; payCycleId: PayCycleId; createdAt: Instant }[]
  skip: PageSkip
  take: PageTake
  total: ListTotal
}

export type Members = { members: Member[]; total: ListTotal; skip: PageSkip; take: PageTake }

/** CSV (UTF-8; comma, semicolon or tab) or an Excel sheet, with a header. Columns: `email`, `first_name`, `last_name`, `phone`, `tier`, `worker_id`, `sort_code`, `account_number`, `account_holder`, `iban`, `dob`, `gender`, `enable_payroll`; the first five are required. At most 100 MiB and 1,000,000 rows. */
export type MembersFile = string
export type Metadata = Record<string, string>

export type Money = {
  /** In minor units, for example pence. */
  amount: number
  /** ISO 4217 code. */
  currency: Currency
}

export type NeedsDecision = {
  memberJobs: number
  payoutExceptions: number
  failingWebhooks: number
  cyclesToSettle: number
  lowFloats: number
}

export type NewMember = {
  email: Email
  firstName: FirstName
  lastName: LastName
  tier: TierName
  phone?: Phone | null | undefined
  workerId?: WorkerId | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  dob?: DateOfBirth | null | undefined
  gender?: Gender | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type NewMemberJob = { actions: (AddMember | ReplaceMember | UpdateMember | OffboardMember)[] }

export type NewMemberSession = {
  /** The only member whom the session can see. */
  memberId: MemberId
  /** `read` shows the balance and withdrawals; `withdraw` can also make a withdrawal. */
  scope: 'read' | 'withdraw'
  /** The origin of the page that may use the session; `http` only on a sandbox. Without it, the session is for the hosted page at `url`. */
  origin?: string | undefined
  expiresInSeconds?: number | undefined
}

export type NewOwnWithdrawalIntent = { amount: RequestedMoney }

export type NewPayRun = {
  /** Earnings per member. A negative amount corrects an earlier pay run; 0 changes nothing. A member may have several lines. */
  payDetails: PayDetail[]
}

export type NewSettlement = {
  /** Payroll took nothing from a member who is left out. */
  deductions: DeductionTaken[]
}

export type NewWebhook = {
  url: WebhookUrl
  /** For your own use. */
  description?: string | null | undefined
  types?: WebhookTypes | undefined
  enabled?: WebhookEnabled | undefined
  headers?: WebhookHeaders | undefined
}

export type NewWithdrawalIntent = {
  /** The member who receives the money. */
  memberId: MemberId
  amount: RequestedMoney
}

export type NotFoundIssue = { code: 'NotFound'; message: IssueMessage }

export type ObjectMetadata = {
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
}

export type OffboardMember = { type: 'Offboard'; memberId: MemberId }

export type Overview = {
  /** False if the totals lack the latest withdrawals, because there are many. */
  isComplete: boolean
  members: MemberCounts
  openCycle: OverviewPayCycle | null
  currencies: OverviewCurrency[]
  needsDecision: NeedsDecision
}

export type OverviewCurrency = {
  /** ISO 4217 code. */
  currency: Currency
  /** The sum that all members can withdraw. */
  available: Money
  today: WithdrawalTotals
  cycle: WithdrawalTotals
  inFlight: InFlight
  float: SignedMoney
  free: SignedMoney
  floor: Money | null
  lowSince: Instant | null
}

export type OverviewPayCycle = {
  id: PayCycleId
  startDate: Day
  endDate: Day
  /** Including today. */
  daysLeft: number
}

export type OverviewPoint = { from: Day; to: Day; payCycleId: PayCycleId | null; totals: WithdrawalTotals }

export type OverviewSeries = {
  /** ISO 4217 code. */
  currency: Currency
  /** Oldest first. Both days are included. */
  points: OverviewPoint[]
  isComplete: boolean
}

export type OwnWithdrawal = {
  id: WithdrawalId
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  status: WithdrawalStatus
  amount: Money
  netAmount: Money
  fee: Money
  bankAccount: LastFour
  /** The member’s available balance right after this withdrawal was booked. */
  balanceAfter: Money
  /** Every status of the withdrawal so far, oldest first. The statuses after `submitted` that were entered in a year whose transfers the operator has detached are missing. */
  timeline: WithdrawalTimelineEntry[]
  createdAt: Instant
  /** When the money is expected in the account. With a bank that takes files: once the withdrawal is submitted, the end of the day on which the money should arrive. With the simulated bank: the end of the hold while the withdrawal is `held`. Otherwise null. */
  expectedAt: Instant | null
  /** The end-to-end reference of the payment at the bank, which the member’s bank statement may show. Null until the withdrawal is submitted. */
  paymentReference: string | null
}

export type OwnWithdrawalIntent = {
  withdrawalIntentId: WithdrawalIntentId
  amount: Money
  netAmount: Money
  fee: Money
  bankAccount: LastFour
  expiresAt: Instant
  /** When the money is expected in the account if the intent is completed at once. Null if that is known only once the withdrawal is submitted. */
  expectedAt: Instant | null
}

/** Number of skipped entries. */
export type PageSkip = number

/** Maximum number of entries in this answer. */
export type PageTake = number

export type PathValidationIssue = {
  code: 'PathValidation'
  message: IssueMessage
  /** Name of the header or parameter, or path of the field with dots. */
  path: string
}

export type PayCycle = { id: PayCycleId; startDate: Day; endDate: Day; status: PayCycleStatus }

export type PayCycleClosedDelivery = {
  id: EventId
  type: 'pay_cycle.closed'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: PayCycleEventData
}

/** A pay cycle closed. Its deductions are final. */
export type PayCycleClosedEvent = {
  type: 'pay_cycle.closed'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: PayCycleEventData
}

export type PayCycleEventData = { payCycleId: PayCycleId; startDate: Day; endDate: Day }
export type PayCycleId = `pc_${string}`

export type PayCycleOpenedDelivery = {
  id: EventId
  type: 'pay_cycle.opened'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: PayCycleEventData
}

/** A pay cycle opened. The one before it has ended, and closes now or in a moment. */
export type PayCycleOpenedEvent = {
  type: 'pay_cycle.opened'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: PayCycleEventData
}

export type PayCycleSettledDelivery = {
  id: EventId
  type: 'pay_cycle.settled'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: PayCycleSettledEventData
}

/** Payroll reported what it deducted for the pay cycle. */
export type PayCycleSettledEvent = {
  type: 'pay_cycle.settled'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: PayCycleSettledEventData
}

/** The counts are numbers of members, as in the settlement. */
export type PayCycleSettledEventData = {
  payCycleId: PayCycleId
  startDate: Day
  endDate: Day
  matched: number
  short: number
  over: number
  unknown: number
}

export type PayCycleStatus = 'Open' | 'Closed'
export type PayCycles = { payCycles: PayCycle[]; total: ListTotal; skip: PageSkip; take: PageTake }
export type PayDetail = { memberId: MemberId; money: SignedMoney }

export type PayRun = {
  id: PayRunId
  payCycleId: PayCycleId
  status: PayRunStatus
  /** When the grace period ends and the money becomes available (ISO 8601, UTC). */
  scheduledFor: string
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
}

export type PayRunAvailableDelivery = {
  id: EventId
  type: 'pay_run.available'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: PayRunEventData
}

/** The money of the pay run became available. */
export type PayRunAvailableEvent = {
  type: 'pay_run.available'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: PayRunEventData
}

export type PayRunCreated = ScheduledPayRun | AvailablePayRun

export type PayRunDetails = {
  id: PayRunId
  payCycleId: PayCycleId
  status: PayRunStatus
  /** When the grace period ends and the money becomes available (ISO 8601, UTC). */
  scheduledFor: string
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
  createdAt: string
  /** When the money became available; null if it has not. */
  availableAt: string | null
  /** When the pay run was reverted; null if it was not. */
  revertedAt: string | null
  /** Number of lines in the pay run. */
  lineCount: number
  /** Sum of the lines, one entry per currency. */
  totals: SignedMoney[]
}

export type PayRunEventData = {
  payRunId: PayRunId
  payCycleId: PayCycleId
  status: PayRunStatus
  /** The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata. */
  metadata?: Metadata | undefined
}

export type PayRunId = `pr_${string}`

export type PayRunRevertedDelivery = {
  id: EventId
  type: 'pay_run.reverted'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: PayRunEventData
}

/** The pay run was reverted. */
export type PayRunRevertedEvent = {
  type: 'pay_run.reverted'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: PayRunEventData
}

export type PayRunScheduledDelivery = {
  id: EventId
  type: 'pay_run.scheduled'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: PayRunEventData
}

/** A pay run was uploaded. Its grace period has started. */
export type PayRunScheduledEvent = {
  type: 'pay_run.scheduled'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: PayRunEventData
}

export type PayRunStatus = 'Scheduled' | 'Available' | 'Reverted'
export type PayRuns = { payRuns: PayRun[]; total: ListTotal; skip: PageSkip; take: PageTake }
export type PayoutBatchId = `bat_${string}`

/** With or without the country code; stored and returned in E.164. */
export type Phone = string

export type QueryValidationIssue = {
  code: 'QueryValidation'
  message: IssueMessage
  /** Name of the header or parameter, or path of the field with dots. */
  path: string
}

export type RateLimitExceededIssue = { code: 'RateLimitExceeded'; message: IssueMessage }

export type Readiness = {
  /** The worst result of the checks. A warning does not make the process unready. */
  status: 'ok' | 'warning'
  checks: {
    database: {
      status: 'ok'
      /** The problem, and what to do about it. */
      message?: string | undefined
    }
    migrations: {
      status: 'ok'
      /** The problem, and what to do about it. */
      message?: string | undefined
    }
    worker: {
      status: 'ok' | 'warning'
      /** The problem, and what to do about it. */
      message?: string | undefined
    }
  }
}

export type ReceiptKey = {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
  /** The same in the header of each receipt that this key has signed. */
  kid: string
}

export type ReplaceMember = {
  type: 'Replace'
  memberId: MemberId
  email: Email
  firstName: FirstName
  lastName: LastName
  tier: TierName
  phone?: Phone | null | undefined
  workerId?: WorkerId | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  dob?: DateOfBirth | null | undefined
  gender?: Gender | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type ReplayOfEvent = { eventId: EventId }

/** Every event whose delivery has failed or was skipped. */
export type ReplayOfFailed = {
  /** Events that happened at or after this instant. */
  failedSince: GivenInstant
  /** Continues a replay that had more: the `lastEventId` of the previous response. */
  after?: EventId | undefined
}

/** Every event of the range whose type the endpoint takes, delivered or not. */
export type ReplayOfRange = {
  /** The first instant of the range. Events older than 30 days are left out. */
  since: GivenInstant
  /** The end of the range, exclusive. Absent: now. */
  until?: GivenInstant | undefined
  /** Continues a replay that had more: the `lastEventId` of the previous response. */
  after?: EventId | undefined
}

export type ReplayRequested = {
  /** Number of events that are replayed, at most 10,000. */
  count: number
  /** The id of the last replayed event; null if no event is replayed. */
  lastEventId: EventId | null
  /** Whether there are more events. To replay them, repeat the request with `lastEventId` as `after`. */
  hasMore: boolean
}

export type RequestErrorCount = { from: Instant; errorCode: string; count: number }

export type RequestErrors = {
  counts: RequestErrorCount[]
  /** False if only the newest 100,000 errors were counted. */
  isComplete: boolean
}

export type RequestId = `req_${string}`

export type RequestedMoney = {
  /** In minor units, for example pence. */
  amount: number
  /** ISO 4217 code. */
  currency: Currency
}

export type RotatedWebhook = {
  id: WebhookId
  url: WebhookUrl
  /** For your own use. */
  description: string | null
  types: WebhookTypes
  enabled: WebhookEnabled
  headers: WebhookHeaders
  /** `failing`: the last attempt failed, and deliveries are retried. */
  status: 'active' | 'failing' | 'disabled'
  /** `requested`: by you. `failing`: no delivery succeeded for 5 days. `gone`: the endpoint responded with 410. Null if it is enabled. */
  disabledReason: 'requested' | 'failing' | 'gone' | null
  /** The first failed attempt since the last success; null if there is none. */
  failingSince: Instant | null
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
  createdAt: Instant
  /** Verifies the signatures. Shown only in this response, so store it. */
  secret: string
  /** Until then, the previous secret signs as well. */
  previousExpiresAt: Instant
}

export type SandboxBankFault = 'timeout' | 'error' | 'duplicate' | 'late' | 'contradiction' | 'unknown_reference'

export type SandboxBankFaults = {
  /** The faults in the order in which payments will meet them. */
  faults: {
    fault: SandboxBankFault
    /** Number of payments. */
    remaining: number
  }[]
}

export type SandboxBankFile = {
  batchId: PayoutBatchId
  /** The name of the rail in the operator’s configuration. */
  rail: string
  status: 'building' | 'approved' | 'sent' | 'acknowledged' | 'settled' | 'rejected' | 'cancelled'
  /** The day on which the bank executes the batch; for Bacs, the processing day. */
  valueDate: string
  paymentCount: number
  controlTotal: Money
  /** Identifies the batch at the bank. */
  messageId: string
  sentAt: Instant | null
  /** The kinds of files that can answer the batch. */
  formats: ('pain.002' | 'camt.054' | 'arucs-csv')[]
}

export type SandboxBankFiles = { bankFiles: SandboxBankFile[]; skip: PageSkip; take: PageTake }
export type SandboxBankInstruction = { reason?: BankReason | undefined }

export type SandboxClock = {
  now: Instant
  /** How far the clock is ahead of real time. */
  aheadSeconds: number
  status: 'Still' | 'Moving'
  lastMove: null | SandboxClockMove
}

export type SandboxClockMove = {
  from: Instant
  to: Instant
  /** The work that fell due on the way and was done, in order. Consecutive work of one kind is one entry with the first and the last time; at most 1,000 entries. */
  ran: SandboxWork[]
}

export type SandboxFloat = { float: SignedMoney; free: SignedMoney }
export type SandboxMemberActivated = { memberId: MemberId; status: 'active' }
export type SandboxMemberFunded = { payRunId: PayRunId; status: 'Available'; available: Money }

export type SandboxMemberJob = {
  jobId: MemberJobId
  status: 'NotReady' | 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'
}

export type SandboxPaused = { paused: boolean }
export type SandboxScenario = 'fresh' | 'mid_cycle' | 'after_payroll' | 'returned_payments' | 'ten_thousand_members'
export type SandboxSeeded = { scenario: SandboxScenario; members: number }

export type SandboxTestValue = {
  reaches: { code: string; status: number } | {
    transition: {
      entity: 'member' | 'member_job' | 'pay_cycle' | 'pay_run' | 'withdrawal_intent' | 'withdrawal'
      /** `new`: it did not exist before. */
      from: string
      to: string
    }
  }
  request: {
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
    path: string
    /** The headers besides your `x-api-key`, unless it is listed here. */
    headers?: Record<string, string> | undefined
    /** A text is sent unchanged, anything else as JSON. */
    body?: unknown | undefined
  }
  note: string
}

export type SandboxTestValues = {
  accounts: {
    sortCode: string
    /** Any other file will do. */
    accountNumber: string
    iban: string
    /** See docs/reference/simulated-bank.md. */
    behaviour: string
  }[]
  values: SandboxTestValue[]
}

export type SandboxWithdrawal = {
  id: WithdrawalId
  status: WithdrawalStatus
  timeline: { status: WithdrawalStatus; at: Instant; reason: string | null }[]
}

export type SandboxWork = {
  /** The kind of work that fell due. */
  due: 'member_job' | 'pay_run_available' | 'intent_expiry' | 'withdrawal_submission' | 'bank_poll' | 'bank_report' | 'review_expiry' | 'cycle_close' | 'webhook_retry' | 'key_expiry'
  from: Instant
  to: Instant
  count: number
}

export type ScheduledPayRun = {
  id: PayRunId
  payCycleId: PayCycleId
  status: 'Scheduled'
  /** When the money becomes available. Nothing moves until then. */
  scheduledFor: string
}

export type ServiceStatus = { status: 'ok' }

export type Settlement = {
  payCycleId: PayCycleId
  settledAt: string
  /** Members from whom payroll took exactly the deduction. */
  matched: number
  /** Members from whom payroll took less. */
  short: number
  /** Members from whom payroll took more. */
  over: number
  /** Members in the settlement who had no deduction. */
  unknown: number
  /** The reference that the transfer of this money to the float’s account must carry. Null if no transfer is expected, because the money is already in the float. */
  paymentReference: string | null
  /** One entry per currency. In each one, deducted = taken + carried + writtenOff. */
  totals: SettlementTotals[]
  lines: SettlementLine[]
  total: ListTotal
  skip: PageSkip
  take: PageTake
}

export type SettlementLine = {
  memberId: MemberId
  deducted: SignedMoney
  taken: SignedMoney
  outcome: 'matched' | 'short' | 'over' | 'unknown'
  /** Amount carried to the open cycle. Negative if it is to be given back there. */
  carried: SignedMoney
  writtenOff: SignedMoney
}

export type SettlementSummary = {
  payCycleId: PayCycleId
  settledAt: string
  /** Members from whom payroll took exactly the deduction. */
  matched: number
  /** Members from whom payroll took less. */
  short: number
  /** Members from whom payroll took more. */
  over: number
  /** Members in the settlement who had no deduction. */
  unknown: number
  /** The reference that the transfer of this money to the float’s account must carry. Null if no transfer is expected, because the money is already in the float. */
  paymentReference: string | null
  /** One entry per currency. In each one, deducted = taken + carried + writtenOff. */
  totals: SettlementTotals[]
}

export type SettlementTotals = {
  deducted: SignedMoney
  taken: SignedMoney
  carried: SignedMoney
  writtenOff: SignedMoney
  /** The part of `taken` that has not arrived yet. Negative if it is to be paid to the employer. */
  due: SignedMoney
}

export type SignedMoney = {
  /** In minor units, for example pence. */
  amount: number
  /** ISO 4217 code. */
  currency: Currency
}

/** Name of a tier; see `GET /v1/tiers`. */
export type TierName = string

export type TierWithTerms = {
  name: string
  /** Increases whenever the operator changes the terms. */
  version: number
  /** ISO 4217 code. */
  currency: Currency
  feeFixed: Money
  /** The percentage part of the fee, in basis points of the amount. */
  feeBps: number
  feeMin: Money | null
  feeMax: Money | null
  feePayer: 'member' | 'employer'
  lowerLimit: Money
  upperLimit: Money
  withdrawalsPerDay: number | null
  withdrawalsPerCycle: number | null
  /** Whether payouts are sent in the bank’s next batch or instantly. Null for the setting of the bank. */
  payoutSpeed: 'standard' | 'instant' | null
}

export type TransferId = `tr_${string}`
export type UnprocessableEntityIssue = { code: 'UnprocessableEntity'; message: IssueMessage }

export type UpdateMember = {
  type: 'Update'
  memberId: MemberId
  email?: Email | undefined
  firstName?: FirstName | undefined
  lastName?: LastName | undefined
  tier?: TierName | undefined
  phone?: Phone | null | undefined
  workerId?: WorkerId | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  dob?: DateOfBirth | null | undefined
  gender?: Gender | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type Webhook = {
  id: WebhookId
  url: WebhookUrl
  /** For your own use. */
  description: string | null
  types: WebhookTypes
  enabled: WebhookEnabled
  headers: WebhookHeaders
  /** `failing`: the last attempt failed, and deliveries are retried. */
  status: 'active' | 'failing' | 'disabled'
  /** `requested`: by you. `failing`: no delivery succeeded for 5 days. `gone`: the endpoint responded with 410. Null if it is enabled. */
  disabledReason: 'requested' | 'failing' | 'gone' | null
  /** The first failed attempt since the last success; null if there is none. */
  failingSince: Instant | null
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
  createdAt: Instant
}

export type WebhookAttempt = {
  number: number
  reason: 'schedule' | 'replay' | 'test'
  at: Instant
  durationMs: number
  /** HTTP status of the response; null if there was no response. */
  status: number | null
  /** How the attempt failed; null for a success. See the guide to webhooks. */
  error: 'status' | 'redirect' | 'gone' | 'timeout' | 'dns' | 'connection' | 'tls' | 'address' | 'protocol' | null
  /** The first 16 KiB of the response body; null if there was no response. */
  response: string | null
}

export type WebhookChanges = {
  url?: WebhookUrl | undefined
  /** For your own use. */
  description?: string | null | undefined
  types?: WebhookTypes | undefined
  enabled?: WebhookEnabled | undefined
  headers?: WebhookHeaders | undefined
}

export type WebhookDeleted = { message: 'OK' }
export type WebhookDeliveries = { deliveries: WebhookDelivery[]; hasMore: boolean; skip: PageSkip; take: PageTake }

export type WebhookDelivery = {
  /** The id of the event, which is also the `webhook-id` of each request. */
  id: EventId
  type: EventType
  state: WebhookDeliveryState
  /** Whether this delivers the sample of a test, not an event. */
  isTest: boolean
  attemptCount: number
  createdAt: Instant
  lastAttemptAt: Instant | null
  /** HTTP status of the last attempt; null if there was no response. */
  lastStatus: number | null
  /** Null if no attempt is planned. */
  nextAttemptAt: Instant | null
}

export type WebhookDeliveryDetails = {
  /** The id of the event, which is also the `webhook-id` of each request. */
  id: EventId
  type: EventType
  state: WebhookDeliveryState
  /** Whether this delivers the sample of a test, not an event. */
  isTest: boolean
  attemptCount: number
  createdAt: Instant
  lastAttemptAt: Instant | null
  /** HTTP status of the last attempt; null if there was no response. */
  lastStatus: number | null
  /** Null if no attempt is planned. */
  nextAttemptAt: Instant | null
  /** Oldest first; only the last 100, if there are more. */
  attempts: WebhookAttempt[]
}

/** `pending`: an attempt is planned. `failed`: the last attempt failed, and none is planned. `skipped`: the endpoint was disabled. */
export type WebhookDeliveryState = 'pending' | 'delivered' | 'failed' | 'skipped'

export type WebhookDisabledDelivery = {
  id: EventId
  type: 'webhook.disabled'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WebhookDisabledEventData
}

/** A webhook endpoint was disabled because it failed. */
export type WebhookDisabledEvent = {
  type: 'webhook.disabled'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WebhookDisabledEventData
}

export type WebhookDisabledEventData = {
  webhookId: WebhookId
  /** The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata. */
  metadata?: Metadata | undefined
  /** `failing`: no delivery succeeded for 5 days. `gone`: the endpoint responded with 410. */
  reason: 'failing' | 'gone'
}

/** Events for a disabled endpoint are recorded as skipped, and can be replayed. */
export type WebhookEnabled = boolean

/** Additional headers of each request, at most 10. Anyone who may read the endpoint can read them. Not allowed: `webhook-…`, `midmonth-…`, `content-…`, and those of the connection. */
export type WebhookHeaders = Record<string, string>
export type WebhookId = `we_${string}`

export type WebhookRecoveredDelivery = {
  id: EventId
  type: 'webhook.recovered'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WebhookRecoveredEventData
}

/** A delivery succeeded for the first time after a failing webhook endpoint was disabled and enabled again. */
export type WebhookRecoveredEvent = {
  type: 'webhook.recovered'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WebhookRecoveredEventData
}

export type WebhookRecoveredEventData = {
  webhookId: WebhookId
  /** The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata. */
  metadata?: Metadata | undefined
}

export type WebhookRotation = {
  /** How long the previous secret stays valid, 0 to 604,800 (7 days). */
  overlapSeconds?: number | undefined
}

export type WebhookTest = {
  /** The type of the sample. */
  type: EventType
}

/** The types of events to deliver: a type, a group such as `withdrawal.*`, or `*` for all. */
export type WebhookTypes = EventTypePattern[]

/** Where deliveries are sent: an https URL, or http in a sandbox, without user name, password and fragment. It must not lead to a private or reserved address. */
export type WebhookUrl = string

export type WebhookWithSecret = {
  id: WebhookId
  url: WebhookUrl
  /** For your own use. */
  description: string | null
  types: WebhookTypes
  enabled: WebhookEnabled
  headers: WebhookHeaders
  /** `failing`: the last attempt failed, and deliveries are retried. */
  status: 'active' | 'failing' | 'disabled'
  /** `requested`: by you. `failing`: no delivery succeeded for 5 days. `gone`: the endpoint responded with 410. Null if it is enabled. */
  disabledReason: 'requested' | 'failing' | 'gone' | null
  /** The first failed attempt since the last success; null if there is none. */
  failingSince: Instant | null
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
  createdAt: Instant
  /** Verifies the signatures. Shown only in this response, so store it. */
  secret: string
}

export type Webhooks = { webhooks: Webhook[]; total: ListTotal; skip: PageSkip; take: PageTake }

export type WithdrawalCancelledDelivery = {
  id: EventId
  type: 'withdrawal.cancelled'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WithdrawalEventData
}

/** The withdrawal was cancelled before it was submitted to the bank. The member has the money back. */
export type WithdrawalCancelledEvent = {
  type: 'withdrawal.cancelled'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WithdrawalEventData
}

export type WithdrawalDelivery = {
  webhookId: WebhookId
  url: string
  /** The id of the event, which is also the `webhook-id` of each request. */
  id: EventId
  type: EventType
  state: WebhookDeliveryState
  /** Whether this delivers the sample of a test, not an event. */
  isTest: boolean
  attemptCount: number
  createdAt: Instant
  lastAttemptAt: Instant | null
  /** HTTP status of the last attempt; null if there was no response. */
  lastStatus: number | null
  /** Null if no attempt is planned. */
  nextAttemptAt: Instant | null
}

export type WithdrawalDetails = {
  id: WithdrawalId
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  status: WithdrawalStatus
  amount: Money
  netAmount: Money
  fee: Money
  bankAccount: LastFour
  /** The member’s available balance right after this withdrawal was booked. */
  balanceAfter: Money
  /** Every status of the withdrawal so far, oldest first. The statuses after `submitted` that were entered in a year whose transfers the operator has detached are missing. */
  timeline: WithdrawalTimelineEntry[]
  createdAt: Instant
  /** When the money is expected in the account. With a bank that takes files: once the withdrawal is submitted, the end of the day on which the money should arrive. With the simulated bank: the end of the hold while the withdrawal is `held`. Otherwise null. */
  expectedAt: Instant | null
  /** The end-to-end reference of the payment at the bank, which the member’s bank statement may show. Null until the withdrawal is submitted. */
  paymentReference: string | null
  /** The metadata of its intent. */
  metadata: Metadata
}

export type WithdrawalEventData = {
  withdrawalId: WithdrawalId
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  /** Gross amount: the net amount plus the fee, which together leave the member’s pay. */
  amount: Money
  /** The part of the fee that the member pays. */
  fee: Money
  /** The amount that the bank transfers to the member’s account. */
  netAmount: Money
  /** The bank’s message, or who cancelled. Absent if no reason was given. */
  reason?: string | undefined
  /** The end-to-end reference of the payment at the bank. Present only in `withdrawal.submitted`. */
  paymentReference?: string | undefined
  /** The metadata of the object. Present only if `metadataInEvents` is set and the object has metadata. */
  metadata?: Metadata | undefined
}

export type WithdrawalFailedDelivery = {
  id: EventId
  type: 'withdrawal.failed'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WithdrawalEventData
}

/** The bank could not pay the money out. The member has it back. */
export type WithdrawalFailedEvent = {
  type: 'withdrawal.failed'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WithdrawalEventData
}

export type WithdrawalHeldDelivery = {
  id: EventId
  type: 'withdrawal.held'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WithdrawalEventData
}

/** The money has left the member’s pay. The withdrawal can still be cancelled. */
export type WithdrawalHeldEvent = {
  type: 'withdrawal.held'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WithdrawalEventData
}

export type WithdrawalId = `w_${string}`

export type WithdrawalIntent = {
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  status: WithdrawalIntentStatus
  amount: Money
  netAmount: Money
  fee: Money
  tier: string
  /** The version of the tier that set the fee. */
  tierVersion: number
  accountDetails: BankAccount
  /** The account holder as the payment names them: in the characters that the bank takes, and cut to its length. */
  payeeName: string
  createdAt: Instant
  expiresAt: Instant
  /** The resulting withdrawal; null unless the intent is completed. */
  withdrawalId: WithdrawalId | null
  /** Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets. */
  metadata: Metadata
}

export type WithdrawalIntentExplanation = {
  withdrawalIntentId: WithdrawalIntentId
  inputs: { memberId: MemberId; payCycleId: PayCycleId; amount: Money; createdAt: Instant }
  /** The version of the tier in force when the intent was created. */
  tier: {
    name: string
    version: number
    /** When this version was created. */
    since: Instant
    feeFixed: Money
    /** The percentage part of the fee, in basis points of the amount. */
    feeBps: number
    feeMin: Money | null
    feeMax: Money | null
    feePayer: 'member' | 'employer'
    lowerLimit: Money
    upperLimit: Money
    withdrawalsPerDay: number | null
    withdrawalsPerCycle: number | null
    /** Whether payouts are sent in the bank’s next batch or instantly. Null for the setting of the bank. */
    payoutSpeed: 'standard' | 'instant' | null
  }
  /** The rules in the order in which they were applied, each with its result. */
  rules: { rule: WithdrawalRule; amount: Money; because: string }[]
  result: {
    /** The part of the fee that the member pays. */
    fee: Money
    /** The part of the fee that the employer pays. */
    employerFee: Money
    netAmount: Money
  }
}

export type WithdrawalIntentId = `wi_${string}`
export type WithdrawalIntentStatus = 'pending' | 'completed' | 'expired' | 'cancelled'

export type WithdrawalPaidDelivery = {
  id: EventId
  type: 'withdrawal.paid'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WithdrawalEventData
}

/** The bank paid the money out. It may still be returned. */
export type WithdrawalPaidEvent = {
  type: 'withdrawal.paid'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WithdrawalEventData
}

/** Why the status changed: the bank’s message, or who cancelled. Null if no reason was given. */
export type WithdrawalReason = string | null

export type WithdrawalReturnedDelivery = {
  id: EventId
  type: 'withdrawal.returned'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WithdrawalEventData
}

/** The receiving bank returned the money. The member has it back. */
export type WithdrawalReturnedEvent = {
  type: 'withdrawal.returned'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WithdrawalEventData
}

export type WithdrawalRule = 'lower limit' | 'upper limit' | 'fixed part' | 'percentage part' | 'minimum fee' | 'maximum fee' | 'fee payer' | 'net'
export type WithdrawalStatus = 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'

export type WithdrawalSubmittedDelivery = {
  id: EventId
  type: 'withdrawal.submitted'
  timestamp: DeliveryTimestamp
  sequence: EventSequence
  data: WithdrawalEventData
}

/** The payout was submitted to the bank. */
export type WithdrawalSubmittedEvent = {
  type: 'withdrawal.submitted'
  id: EventId
  timestamp: EventTimestamp
  createdAt: EventCreatedAt
  sequence: EventSequence
  data: WithdrawalEventData
}

export type WithdrawalTimeline = {
  withdrawalId: WithdrawalId
  /** Every status of the withdrawal so far, oldest first. */
  steps: WithdrawalTimelineStep[]
  /** How its intent was decided. */
  explanation: WithdrawalIntentExplanation
  /** The requests of the last 7 days that created or changed its intent or itself, oldest first. Null for users who may not read the request log. */
  requests: LoggedRequest[] | null
  /** The deliveries of its events and those of its intent to your webhook endpoints in the last 30 days, oldest event first. Null for users who may not read webhooks. */
  deliveries: WithdrawalDelivery[] | null
}

export type WithdrawalTimelineEntry = { status: WithdrawalStatus; at: Instant; reason: WithdrawalReason }

export type WithdrawalTimelineStep = {
  status: WithdrawalStatus
  at: Instant
  reason: WithdrawalReason
  /** Who caused it, if it was a decision: who cancelled the withdrawal, or removed its payment from a batch. Only users have names; users of a partner do not see those of operators. */
  actor: { kind: 'api_key' | 'operator_key' | 'user' | 'cli' | 'worker'; name: string | null } | null
  /** For `submitted`: the end-to-end reference of the payment at the bank. */
  paymentReference: string | null
  /** The lines of the member’s statement that it was booked by, oldest first. Empty for users who may not read statements. */
  lines: MemberStatementLine[]
}

/** Withdrawals and their gross amount, the part of it that is fees paid by members, the fees paid by the employer, and cancelled, failed and returned withdrawals. These count on the day on which the money was given back, and in the pay cycle of the withdrawal. */
export type WithdrawalTotals = {
  withdrawals: number
  amount: Money
  fees: Money
  employerFees: Money
  givenBack: number
  givenBackAmount: Money
}

export type WithdrawalWithStatus = {
  id: WithdrawalId
  netAmount: Money
  fee: Money
  payCycleId: PayCycleId
  memberId: MemberId
  createdAt: Instant
  /** Gross amount: what left the member’s pay, including the fee. */
  amount: Money
  status: WithdrawalStatus
  /** When the withdrawal entered this status. If its transfers are of a year that the operator has detached: when it was submitted or, if it never was, created. */
  changedAt: Instant
  reason: WithdrawalReason
  /** The metadata of its intent. */
  metadata: Metadata
}

export type WithdrawalsWithStatus = { withdrawals: WithdrawalWithStatus[]; hasMore: boolean; skip: PageSkip; take: PageTake }

/** The partner’s own identifier for the worker: no control characters, no leading or trailing spaces. */
export type WorkerId = string

/** The body of a webhook. Narrow it by `type`; new types may be added. */
export type WebhookEvent =
  | IntentCreatedDelivery
  | IntentCompletedDelivery
  | IntentExpiredDelivery
  | IntentCancelledDelivery
  | WithdrawalHeldDelivery
  | WithdrawalSubmittedDelivery
  | WithdrawalPaidDelivery
  | WithdrawalFailedDelivery
  | WithdrawalReturnedDelivery
  | WithdrawalCancelledDelivery
  | MemberInvitedDelivery
  | MemberActivatedDelivery
  | MemberUpdatedDelivery
  | MemberRemovedDelivery
  | MemberReinstatedDelivery
  | PayRunScheduledDelivery
  | PayRunAvailableDelivery
  | PayRunRevertedDelivery
  | PayCycleOpenedDelivery
  | PayCycleClosedDelivery
  | PayCycleSettledDelivery
  | JobAwaitingReviewDelivery
  | JobQueuedDelivery
  | JobProcessingDelivery
  | JobCompletedDelivery
  | JobRejectedDelivery
  | JobExpiredDelivery
  | FloatLowDelivery
  | WebhookDisabledDelivery
  | WebhookRecoveredDelivery
