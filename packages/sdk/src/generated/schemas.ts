// Generated from openapi.json by `npm run generate`. Do not edit.

export type AddMember = {
  type: 'Add'
  email: string
  firstName: string
  lastName: string
  /** Name of a tier; see `GET /v1/tiers`. */
  tier: string
  /** With or without the country code; stored and returned in E.164. */
  phone?: string | null | undefined
  workerId?: string | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  /** Date of birth. */
  dob?: string | null | undefined
  gender?: 'Female' | 'Male' | 'NonBinary' | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type AmountAboveUpperLimitIssue = {
  code: 'AmountAboveUpperLimit'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  upperLimit: Money
}

export type AmountBelowLowerLimitIssue = {
  code: 'AmountBelowLowerLimit'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  lowerLimit: Money
}

export type ApiKeyId = `key_${string}`

export type AvailablePayRun = {
  status: 'Available'
}

export type BadRequestIssue = {
  code: 'BadRequest'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type BankAccountEU = {
  /** Name of the account holder, 1 to 140 characters. */
  accountHolder: string
  /** IBAN, stored in upper case without spaces. */
  iban: string
}

export type BankAccountInvalidIssue = {
  code: 'BankAccountInvalid'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type BankAccountUK = {
  /** Name of the account holder, 1 to 140 characters. */
  accountHolder: string
  /** Six digits. Hyphens and spaces between the pairs are removed. */
  sortCode: string
  /** Eight digits. Six or seven digits are padded with leading zeros. */
  accountNumber: string
}

export type BankReason = 'AC01' | 'AC03' | 'AC04' | 'AC06' | 'AG01' | 'AM09' | 'BE01' | 'FOCR' | 'MD07' | 'MS03' | 'RC01' | 'RR04'

export type BodyValidationIssue = {
  code: 'BodyValidation'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  /** Name of the header or parameter, or path of the field with dots. */
  path: string
}

export type CompleteWithdrawal = {
  withdrawalIntentId: WithdrawalIntentId
}

export type ConflictIssue = {
  code: 'Conflict'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type Currency = 'AED' | 'AFN' | 'ALL' | 'AMD' | 'ANG' | 'AOA' | 'ARS' | 'AUD' | 'AWG' | 'AZN' | 'BAM' | 'BBD' | 'BDT' | 'BGN' | 'BHD' | 'BIF' | 'BMD' | 'BND' | 'BOB' | 'BOV' | 'BRL' | 'BSD' | 'BTN' | 'BWP' | 'BYN' | 'BZD' | 'CAD' | 'CDF' | 'CHE' | 'CHF' | 'CHW' | 'CLF' | 'CLP' | 'CNY' | 'COP' | 'COU' | 'CRC' | 'CUC' | 'CUP' | 'CVE' | 'CZK' | 'DJF' | 'DKK' | 'DOP' | 'DZD' | 'EGP' | 'ERN' | 'ETB' | 'EUR' | 'FJD' | 'FKP' | 'GBP' | 'GEL' | 'GHS' | 'GIP' | 'GMD' | 'GNF' | 'GTQ' | 'GYD' | 'HKD' | 'HNL' | 'HRK' | 'HTG' | 'HUF' | 'IDR' | 'ILS' | 'INR' | 'IQD' | 'IRR' | 'ISK' | 'JMD' | 'JOD' | 'JPY' | 'KES' | 'KGS' | 'KHR' | 'KMF' | 'KPW' | 'KRW' | 'KWD' | 'KYD' | 'KZT' | 'LAK' | 'LBP' | 'LKR' | 'LRD' | 'LSL' | 'LYD' | 'MAD' | 'MDL' | 'MGA' | 'MKD' | 'MMK' | 'MNT' | 'MOP' | 'MRU' | 'MUR' | 'MVR' | 'MWK' | 'MXN' | 'MXV' | 'MYR' | 'MZN' | 'NAD' | 'NGN' | 'NIO' | 'NOK' | 'NPR' | 'NZD' | 'OMR' | 'PAB' | 'PEN' | 'PGK' | 'PHP' | 'PKR' | 'PLN' | 'PYG' | 'QAR' | 'RON' | 'RSD' | 'RUB' | 'RWF' | 'SAR' | 'SBD' | 'SCR' | 'SDG' | 'SEK' | 'SGD' | 'SHP' | 'SLL' | 'SOS' | 'SRD' | 'SSP' | 'STN' | 'SVC' | 'SYP' | 'SZL' | 'THB' | 'TJS' | 'TMT' | 'TND' | 'TOP' | 'TRY' | 'TTD' | 'TWD' | 'TZS' | 'UAH' | 'UGX' | 'USD' | 'USN' | 'UYI' | 'UYU' | 'UYW' | 'UZS' | 'VES' | 'VND' | 'VUV' | 'WST' | 'XAF' | 'XAG' | 'XAU' | 'XBA' | 'XBB' | 'XBC' | 'XBD' | 'XCD' | 'XDR' | 'XOF' | 'XPD' | 'XPF' | 'XPT' | 'XSU' | 'XTS' | 'XUA' | 'XXX' | 'YER' | 'ZAR' | 'ZMW' | 'ZWL'

export type Deductions = {
  deductions: {
    memberId: MemberId
    /** Amount to deduct from the member’s pay. Negative: amount to give back. */
    total: SignedMoney
  }[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

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

export type EventId = `evt_${string}`

export type EventType = 'intent.created' | 'intent.completed' | 'intent.expired' | 'intent.cancelled' | 'withdrawal.held' | 'withdrawal.submitted' | 'withdrawal.paid' | 'withdrawal.failed' | 'withdrawal.returned' | 'withdrawal.cancelled' | 'member.invited' | 'member.activated' | 'member.updated' | 'member.removed' | 'member.reinstated' | 'pay_run.scheduled' | 'pay_run.available' | 'pay_run.reverted' | 'pay_cycle.opened' | 'pay_cycle.closed' | 'pay_cycle.settled' | 'job.awaiting_review' | 'job.queued' | 'job.processing' | 'job.completed' | 'job.rejected' | 'job.expired' | 'float.low' | 'webhook.disabled' | 'webhook.recovered'

export type EventTypePattern = '*' | 'intent.*' | 'withdrawal.*' | 'member.*' | 'pay_run.*' | 'pay_cycle.*' | 'job.*' | 'float.*' | 'webhook.*' | 'intent.created' | 'intent.completed' | 'intent.expired' | 'intent.cancelled' | 'withdrawal.held' | 'withdrawal.submitted' | 'withdrawal.paid' | 'withdrawal.failed' | 'withdrawal.returned' | 'withdrawal.cancelled' | 'member.invited' | 'member.activated' | 'member.updated' | 'member.removed' | 'member.reinstated' | 'pay_run.scheduled' | 'pay_run.available' | 'pay_run.reverted' | 'pay_cycle.opened' | 'pay_cycle.closed' | 'pay_cycle.settled' | 'job.awaiting_review' | 'job.queued' | 'job.processing' | 'job.completed' | 'job.rejected' | 'job.expired' | 'float.low' | 'webhook.disabled' | 'webhook.recovered'

export type Events = {
  events: Event[]
  /** Your position in the feed: pass it as `after` to read on. Null while the feed is empty; then read on without `after`. */
  lastEventId: EventId | null
  hasMore: boolean
  /** Maximum number of events in this answer. */
  take: number
}

export type FileContentIssue = {
  code: 'FileContent'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  /** Row of the file. The header is row "1". */
  row: string
}

export type FloatEventData = {
  /** Free float: money that is neither paid out nor on its way to members. */
  free: SignedMoney
  /** Withdrawals are refused while the free float is below this amount. */
  floor: Money
}

export type FloatLowDelivery = {
  id: EventId
  type: 'float.low'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: FloatEventData
}

export type FloatLowEvent = {
  type: 'float.low'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: FloatEventData
}

export type ForbiddenIssue = {
  code: 'Forbidden'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type HeaderValidationIssue = {
  code: 'HeaderValidation'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
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

export type Instant = string

export type IntentCancelledDelivery = {
  id: EventId
  type: 'intent.cancelled'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type IntentCancelledEvent = {
  type: 'intent.cancelled'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type IntentCompletedDelivery = {
  id: EventId
  type: 'intent.completed'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type IntentCompletedEvent = {
  type: 'intent.completed'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type IntentCreatedDelivery = {
  id: EventId
  type: 'intent.created'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type IntentCreatedEvent = {
  type: 'intent.created'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type IntentEventData = {
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  /** Gross amount: what leaves the member’s pay, net amount plus fee. */
  amount: Money
  /** The part of the fee that the member pays. */
  fee: Money
  /** What the bank transfers to the member’s account. */
  netAmount: Money
}

export type IntentExpiredDelivery = {
  id: EventId
  type: 'intent.expired'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type IntentExpiredEvent = {
  type: 'intent.expired'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: IntentEventData
}

export type InternalServerErrorIssue = {
  code: 'InternalServerError'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type InvalidAddMemberPayloadIssue = {
  code: 'InvalidAddMemberPayload'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  email: string
}

export type InvalidRemoveMemberPayloadIssue = {
  code: 'InvalidRemoveMemberPayload'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  memberId: MemberId
}

export type InvalidUpdateMemberPayloadIssue = {
  code: 'InvalidUpdateMemberPayload'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  memberId: MemberId
}

export type JobAwaitingReviewDelivery = {
  id: EventId
  type: 'job.awaiting_review'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobAwaitingReviewEvent = {
  type: 'job.awaiting_review'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobCompletedDelivery = {
  id: EventId
  type: 'job.completed'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobCompletedEvent = {
  type: 'job.completed'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobEventData = {
  jobId: MemberJobId
  status: 'NotReady' | 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'
}

export type JobExpiredDelivery = {
  id: EventId
  type: 'job.expired'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobExpiredEvent = {
  type: 'job.expired'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobProcessingDelivery = {
  id: EventId
  type: 'job.processing'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobProcessingEvent = {
  type: 'job.processing'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobQueuedDelivery = {
  id: EventId
  type: 'job.queued'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobQueuedEvent = {
  type: 'job.queued'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobRejectedDelivery = {
  id: EventId
  type: 'job.rejected'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type JobRejectedEvent = {
  type: 'job.rejected'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: JobEventData
}

export type LoggedRequest = {
  id: RequestId
  /** The `x-request-id` of the answer: yours if you sent one, otherwise the same as `id`. */
  requestId: string
  /** When the request arrived, by the real clock. */
  createdAt: Instant
  method: string
  /** The path as in this document; null if no operation has it. */
  route: string | null
  /** The path without its query. Only ids are filled in: a parameter that is no id stays a name, and a part of an unknown path that no operation has is `…`. */
  path: string
  status: number
  /** From the arrival of the request to the end of its answer, in milliseconds. */
  durationMs: number
  /** The API key that the request was made with. */
  keyId: ApiKeyId
  /** The `x-idempotency-key` of the request. */
  idempotencyKey: string | null
  /** The answer was the stored one of an earlier request with the same key. */
  replayed: boolean
  /** The codes of the issues that it was answered with, each once. */
  errorCodes: string[]
  /** What the request created or changed, or else the resource in its path, or else the member that the error names. */
  resourceId: string | null
}

export type LoggedRequests = {
  requests: LoggedRequest[]
  /** Whether there are more in the direction of the cursor. */
  hasMore: boolean
  /** Maximum number of entries in this answer. */
  take: number
}

export type Member = {
  memberId: MemberId
  status: 'invited' | 'active' | 'inactive'
  email: string
  firstName: string
  lastName: string
  /** Name of a tier; see `GET /v1/tiers`. */
  tier: string
  /** With or without the country code; stored and returned in E.164. */
  phone: string | null
  workerId: string | null
  accountDetails: BankAccountUK | BankAccountEU | null
  /** Date of birth. */
  dob: string | null
  gender: 'Female' | 'Male' | 'NonBinary' | null
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll: boolean
}

export type MemberActivatedDelivery = {
  id: EventId
  type: 'member.activated'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

export type MemberActivatedEvent = {
  type: 'member.activated'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

export type MemberAlreadyInvitedIssue = {
  code: 'MemberAlreadyInvited'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  memberId: MemberId
}

export type MemberBalance = {
  available: Money
  /** The smallest amount that can be withdrawn. It leaves something after the fee. */
  lowerLimit: Money
  /** The largest amount that can be withdrawn at once. */
  upperLimit: Money
  payCycle: {
    id: PayCycleId
    startDate: string
    endDate: string
    /** When pay last became available in this cycle; null if none has. */
    lastPayDate: Instant | null
  }
  /** Whether withdrawals are refused for now, for example because on-demand pay is paused or the float is below its floor. */
  isTemporarilyUnavailable: boolean
}

export type MemberEventData = {
  memberId: MemberId
  status: 'invited' | 'active' | 'inactive'
}

export type MemberId = `mem_${string}`

export type MemberInsufficientFundsIssue = {
  code: 'MemberInsufficientFunds'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  memberId: MemberId
}

export type MemberInvitedDelivery = {
  id: EventId
  type: 'member.invited'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

export type MemberInvitedEvent = {
  type: 'member.invited'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

export type MemberJob = {
  id: MemberJobId
  progress: {
    /** `NotReady`: queued behind another job of the partner. `AwaitingReview`: waiting for `approve` or `reject`. */
    type: 'Processing' | 'Completed' | 'AwaitingReview' | 'NotReady' | 'Rejected'
    /** Actions in the job; for a file, planned changes without the unchanged rows. While the job is queued, this is the plan from when it was sent. */
    totalActions: number
    /** Actions that have been processed. */
    totalComplete: number
    /** Actions that remain while the job is being processed. */
    totalProcessing: number
  }
  createdAt: string
}

export type MemberJobCreated = {
  jobId: MemberJobId
}

export type MemberJobId = `maj_${string}`

export type MemberJobPlan = {
  /** New members. */
  invite: number
  /** Members whose data changes. */
  update: number
  /** Inactive members that are reinstated. */
  bringBack: number
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
  /** Row of the file (the header is "1") or position of the action (starting at "1"); null for members missing from the file. */
  row: string | null
  action: 'Invite' | 'Update' | 'BringBack' | 'Offboard' | 'Unchanged'
  /** `Pending`: not processed yet. `Failed`: no longer possible when it was processed; `message` says why. `NotDone`: the job was rejected. */
  outcome: 'Pending' | 'Done' | 'Failed' | 'NotDone'
  memberId: MemberId | null
  email: string | null
  message: string | null
}

export type MemberJobResults = {
  jobId: MemberJobId
  plan: MemberJobPlan
  results: MemberJobResult[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type MemberJobs = {
  jobs: MemberJob[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type MemberNotEligibleIssue = {
  code: 'MemberNotEligible'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  memberId: MemberId
}

export type MemberNotFoundIssue = {
  code: 'MemberNotFound'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  memberId: MemberId
}

export type MemberReinstatedDelivery = {
  id: EventId
  type: 'member.reinstated'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

export type MemberReinstatedEvent = {
  type: 'member.reinstated'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

export type MemberRemoved = {
  message: 'OK'
}

export type MemberRemovedDelivery = {
  id: EventId
  type: 'member.removed'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

export type MemberRemovedEvent = {
  type: 'member.removed'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberEventData
}

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
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
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

export type MemberUpdate = {
  email?: string | undefined
  firstName?: string | undefined
  lastName?: string | undefined
  /** Name of a tier; see `GET /v1/tiers`. */
  tier?: string | undefined
  /** With or without the country code; stored and returned in E.164. */
  phone?: string | null | undefined
  workerId?: string | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  /** Date of birth. */
  dob?: string | null | undefined
  gender?: 'Female' | 'Male' | 'NonBinary' | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type MemberUpdatedDelivery = {
  id: EventId
  type: 'member.updated'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberUpdatedEventData
}

export type MemberUpdatedEvent = {
  type: 'member.updated'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: MemberUpdatedEventData
}

export type MemberUpdatedEventData = {
  memberId: MemberId
  status: 'invited' | 'active' | 'inactive'
  /** Names of the changed fields. Read the member to get their values. */
  changed: ('email' | 'firstName' | 'lastName' | 'phone' | 'tier' | 'workerId' | 'accountDetails' | 'enablePayroll' | 'dob' | 'gender')[]
}

export type MemberWithdrawals = {
  withdrawals: {
    amount: Money
    fee: Money
    payCycleId: PayCycleId
    createdAt: Instant
  }[]
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
  /** Number of entries in the whole list. */
  total: number
}

export type Members = {
  members: Member[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type Money = {
  /** In minor units, for example pence. */
  amount: number
  /** ISO 4217 code. */
  currency: Currency
}

export type NewMember = {
  email: string
  firstName: string
  lastName: string
  /** Name of a tier; see `GET /v1/tiers`. */
  tier: string
  /** With or without the country code; stored and returned in E.164. */
  phone?: string | null | undefined
  workerId?: string | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  /** Date of birth. */
  dob?: string | null | undefined
  gender?: 'Female' | 'Male' | 'NonBinary' | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type NewMemberJob = {
  actions: (AddMember | ReplaceMember | UpdateMember | OffboardMember)[]
}

export type NewPayRun = {
  /** Earnings per member. A negative amount corrects an earlier pay run; 0 changes nothing. A member may have several lines. */
  payDetails: {
    memberId: MemberId
    money: SignedMoney
  }[]
}

export type NewSettlement = {
  /** Payroll took nothing from a member who is left out. */
  deductions: {
    memberId: MemberId
    /** Amount that payroll took. Negative if payroll gave money back, which is allowed only for a negative deduction. */
    taken: SignedMoney
  }[]
}

export type NewWebhook = {
  /** Where deliveries are sent: an https URL, or http in a sandbox, without user name, password and fragment. It must not lead to a private or reserved address. */
  url: string
  /** For your own use. */
  description?: string | null | undefined
  /** The types of events to deliver: a type, a group such as `withdrawal.*`, or `*` for all. */
  types?: EventTypePattern[] | undefined
  /** Events for a disabled endpoint are recorded as skipped, and can be replayed. */
  enabled?: boolean | undefined
  /** Further headers of each request, at most 10. Anyone who may read the endpoint can read them. Not allowed: `webhook-…`, `openwage-…`, `content-…`, and those of the connection. */
  headers?: Record<string, string> | undefined
}

export type NewWithdrawalIntent = {
  /** The member who receives the money. */
  memberId: MemberId
  amount: RequestedMoney
}

export type NotFoundIssue = {
  code: 'NotFound'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type OffboardMember = {
  type: 'Offboard'
  memberId: MemberId
}

export type PathValidationIssue = {
  code: 'PathValidation'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  /** Name of the header or parameter, or path of the field with dots. */
  path: string
}

export type PayCycle = {
  id: PayCycleId
  startDate: string
  endDate: string
  status: 'Open' | 'Closed'
}

export type PayCycleClosedDelivery = {
  id: EventId
  type: 'pay_cycle.closed'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayCycleEventData
}

export type PayCycleClosedEvent = {
  type: 'pay_cycle.closed'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayCycleEventData
}

export type PayCycleEventData = {
  payCycleId: PayCycleId
  startDate: string
  endDate: string
}

export type PayCycleId = `pc_${string}`

export type PayCycleOpenedDelivery = {
  id: EventId
  type: 'pay_cycle.opened'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayCycleEventData
}

export type PayCycleOpenedEvent = {
  type: 'pay_cycle.opened'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayCycleEventData
}

export type PayCycleSettledDelivery = {
  id: EventId
  type: 'pay_cycle.settled'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  /** The counts are numbers of members, as in the settlement. */
  data: PayCycleSettledEventData
}

export type PayCycleSettledEvent = {
  type: 'pay_cycle.settled'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  /** The counts are numbers of members, as in the settlement. */
  data: PayCycleSettledEventData
}

export type PayCycleSettledEventData = {
  payCycleId: PayCycleId
  startDate: string
  endDate: string
  matched: number
  short: number
  over: number
  unknown: number
}

export type PayCycles = {
  payCycles: PayCycle[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type PayRun = {
  id: PayRunId
  payCycleId: PayCycleId
  status: 'Scheduled' | 'Available' | 'Reverted'
  /** When the grace period ends and the money becomes available (ISO 8601, UTC). */
  scheduledFor: string
}

export type PayRunAvailableDelivery = {
  id: EventId
  type: 'pay_run.available'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayRunEventData
}

export type PayRunAvailableEvent = {
  type: 'pay_run.available'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayRunEventData
}

export type PayRunCreated = ScheduledPayRun | AvailablePayRun

export type PayRunDetails = {
  id: PayRunId
  payCycleId: PayCycleId
  status: 'Scheduled' | 'Available' | 'Reverted'
  /** When the grace period ends and the money becomes available (ISO 8601, UTC). */
  scheduledFor: string
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
  status: 'Scheduled' | 'Available' | 'Reverted'
}

export type PayRunId = `pr_${string}`

export type PayRunRevertedDelivery = {
  id: EventId
  type: 'pay_run.reverted'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayRunEventData
}

export type PayRunRevertedEvent = {
  type: 'pay_run.reverted'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayRunEventData
}

export type PayRunScheduledDelivery = {
  id: EventId
  type: 'pay_run.scheduled'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayRunEventData
}

export type PayRunScheduledEvent = {
  type: 'pay_run.scheduled'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: PayRunEventData
}

export type PayRuns = {
  payRuns: PayRun[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type PayoutBatchId = `bat_${string}`

export type QueryValidationIssue = {
  code: 'QueryValidation'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
  /** Name of the header or parameter, or path of the field with dots. */
  path: string
}

export type RateLimitExceededIssue = {
  code: 'RateLimitExceeded'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type Readiness = {
  /** The worst result of the checks. A warning does not make the process unready. */
  status: 'ok' | 'warning'
  checks: {
    database: {
      status: 'ok'
      /** What is wrong, and what to do. */
      message?: string | undefined
    }
    migrations: {
      status: 'ok'
      /** What is wrong, and what to do. */
      message?: string | undefined
    }
    worker: {
      status: 'ok' | 'warning'
      /** What is wrong, and what to do. */
      message?: string | undefined
    }
  }
}

export type ReplaceMember = {
  type: 'Replace'
  memberId: MemberId
  email: string
  firstName: string
  lastName: string
  /** Name of a tier; see `GET /v1/tiers`. */
  tier: string
  /** With or without the country code; stored and returned in E.164. */
  phone?: string | null | undefined
  workerId?: string | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  /** Date of birth. */
  dob?: string | null | undefined
  gender?: 'Female' | 'Male' | 'NonBinary' | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type ReplayOfEvent = {
  eventId: EventId
}

export type ReplayOfFailed = {
  /** Events that happened at or after this instant. */
  failedSince: string
  /** Continues a replay that had more: the `lastEventId` of the previous answer. */
  after?: EventId | undefined
}

export type ReplayOfRange = {
  /** The first instant of the range. Events older than 30 days are left out. */
  since: string
  /** The end of the range, exclusive. Absent: now. */
  until?: string | undefined
  /** Continues a replay that had more: the `lastEventId` of the previous answer. */
  after?: EventId | undefined
}

export type ReplayRequested = {
  /** Number of events that are replayed, at most 10,000. */
  count: number
  /** The last of them; null if there are none. */
  lastEventId: EventId | null
  /** There are more: repeat the request with `lastEventId` as `after`. */
  hasMore: boolean
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
  /** Where deliveries are sent: an https URL, or http in a sandbox, without user name, password and fragment. It must not lead to a private or reserved address. */
  url: string
  /** For your own use. */
  description: string | null
  /** The types of events to deliver: a type, a group such as `withdrawal.*`, or `*` for all. */
  types: EventTypePattern[]
  /** Events for a disabled endpoint are recorded as skipped, and can be replayed. */
  enabled: boolean
  /** Further headers of each request, at most 10. Anyone who may read the endpoint can read them. Not allowed: `webhook-…`, `openwage-…`, `content-…`, and those of the connection. */
  headers: Record<string, string>
  /** `failing`: the last attempt failed, and deliveries are retried. */
  status: 'active' | 'failing' | 'disabled'
  /** `requested`: by you. `failing`: no delivery succeeded for 5 days. `gone`: the endpoint answered 410. Null if it is enabled. */
  disabledReason: 'requested' | 'failing' | 'gone' | null
  /** The first failed attempt since the last success; null if there is none. */
  failingSince: Instant | null
  createdAt: Instant
  /** Verifies the signatures. Shown only in this answer, so store it. */
  secret: string
  /** Until then, the previous secret signs as well. */
  previousExpiresAt: Instant
}

export type SandboxBankFaults = {
  /** In the order in which payments will meet them. */
  faults: {
    fault: 'timeout' | 'error' | 'duplicate' | 'late' | 'contradiction' | 'unknown_reference'
    /** Number of payments. */
    remaining: number
  }[]
}

export type SandboxBankFile = {
  batchId: PayoutBatchId
  /** The name of the rail in the operator’s configuration. */
  rail: string
  status: 'building' | 'approved' | 'sent' | 'acknowledged' | 'settled' | 'rejected' | 'cancelled'
  /** When the bank executes it; for Bacs, the day on which it is processed. */
  valueDate: string
  paymentCount: number
  controlTotal: Money
  /** Identifies the batch at the bank. */
  messageId: string
  sentAt: Instant | null
  /** The kinds of files that can answer it. */
  formats: ('pain.002' | 'camt.054' | 'arucs-csv')[]
}

export type SandboxBankFiles = {
  bankFiles: SandboxBankFile[]
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

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
  /** The work that fell due on the way and was done, in order. Work of one kind in a row is one entry with the first and the last time; at most 1,000 entries. */
  ran: SandboxWork[]
}

export type SandboxFloat = {
  float: SignedMoney
  free: SignedMoney
}

export type SandboxMemberActivated = {
  memberId: MemberId
  status: 'active'
}

export type SandboxMemberFunded = {
  payRunId: PayRunId
  status: 'Available'
  available: Money
}

export type SandboxMemberJob = {
  jobId: MemberJobId
  status: 'NotReady' | 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'
}

export type SandboxPaused = {
  paused: boolean
}

export type SandboxSeeded = {
  scenario: 'fresh' | 'mid_cycle' | 'after_payroll' | 'returned_payments' | 'ten_thousand_members'
  members: number
}

export type SandboxTestValue = {
  reaches: {
    code: string
    status: number
  } | {
    transition: {
      entity: 'member' | 'member_job' | 'pay_cycle' | 'pay_run' | 'withdrawal_intent' | 'withdrawal'
      /** `new`: there was none before. */
      from: string
      to: string
    }
  }
  request: {
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
    path: string
    /** Beside your `x-api-key`, unless it is here. */
    headers?: Record<string, string> | undefined
    /** A text is sent as it is, anything else as JSON. */
    body?: unknown | undefined
  }
  note: string
}

export type SandboxTestValues = {
  accounts: {
    sortCode: string
    /** Any other one will do. */
    accountNumber: string
    iban: string
    /** See docs/reference/simulated-bank.md. */
    behaviour: string
  }[]
  values: SandboxTestValue[]
}

export type SandboxWithdrawal = {
  id: WithdrawalId
  status: 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'
  timeline: {
    status: 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'
    at: Instant
    reason: string | null
  }[]
}

export type SandboxWork = {
  /** What fell due. */
  due: 'member_job' | 'pay_run_available' | 'intent_expiry' | 'withdrawal_submission' | 'bank_poll' | 'bank_report' | 'review_expiry' | 'cycle_close' | 'webhook_retry' | 'key_expiry'
  from: Instant
  to: Instant
  count: number
}

export type ScheduledPayRun = {
  status: 'Scheduled'
  /** When the money becomes available. Nothing moves until then. */
  scheduledFor: string
}

export type ServiceStatus = {
  status: 'ok'
}

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
  /** One entry per currency. In each one, deducted = taken + carried + writtenOff. */
  totals: {
    deducted: SignedMoney
    taken: SignedMoney
    carried: SignedMoney
    writtenOff: SignedMoney
  }[]
  lines: {
    memberId: MemberId
    deducted: SignedMoney
    taken: SignedMoney
    outcome: 'matched' | 'short' | 'over' | 'unknown'
    /** Amount carried to the open cycle. Negative: amount to give back there. */
    carried: SignedMoney
    writtenOff: SignedMoney
  }[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
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
  /** One entry per currency. In each one, deducted = taken + carried + writtenOff. */
  totals: {
    deducted: SignedMoney
    taken: SignedMoney
    carried: SignedMoney
    writtenOff: SignedMoney
  }[]
}

export type SignedMoney = {
  /** In minor units, for example pence. */
  amount: number
  /** ISO 4217 code. */
  currency: Currency
}

export type Tier = {
  name: string
}

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
}

export type TransferId = `tr_${string}`

export type UnprocessableEntityIssue = {
  code: 'UnprocessableEntity'
  /** For developers and logs. It may change, so branch on `code`. */
  message: string
}

export type UpdateMember = {
  type: 'Update'
  memberId: MemberId
  email?: string | undefined
  firstName?: string | undefined
  lastName?: string | undefined
  /** Name of a tier; see `GET /v1/tiers`. */
  tier?: string | undefined
  /** With or without the country code; stored and returned in E.164. */
  phone?: string | null | undefined
  workerId?: string | null | undefined
  accountDetails?: BankAccountUK | BankAccountEU | null | undefined
  /** Date of birth. */
  dob?: string | null | undefined
  gender?: 'Female' | 'Male' | 'NonBinary' | null | undefined
  /** Whether payroll deducts what this member withdraws. */
  enablePayroll?: boolean | undefined
}

export type Webhook = {
  id: WebhookId
  /** Where deliveries are sent: an https URL, or http in a sandbox, without user name, password and fragment. It must not lead to a private or reserved address. */
  url: string
  /** For your own use. */
  description: string | null
  /** The types of events to deliver: a type, a group such as `withdrawal.*`, or `*` for all. */
  types: EventTypePattern[]
  /** Events for a disabled endpoint are recorded as skipped, and can be replayed. */
  enabled: boolean
  /** Further headers of each request, at most 10. Anyone who may read the endpoint can read them. Not allowed: `webhook-…`, `openwage-…`, `content-…`, and those of the connection. */
  headers: Record<string, string>
  /** `failing`: the last attempt failed, and deliveries are retried. */
  status: 'active' | 'failing' | 'disabled'
  /** `requested`: by you. `failing`: no delivery succeeded for 5 days. `gone`: the endpoint answered 410. Null if it is enabled. */
  disabledReason: 'requested' | 'failing' | 'gone' | null
  /** The first failed attempt since the last success; null if there is none. */
  failingSince: Instant | null
  createdAt: Instant
}

export type WebhookAttempt = {
  number: number
  reason: 'schedule' | 'replay' | 'test'
  at: Instant
  durationMs: number
  /** Status of the answer; null if there was none. */
  status: number | null
  /** How the attempt failed; null for a success. See the guide to webhooks. */
  error: 'status' | 'redirect' | 'gone' | 'timeout' | 'dns' | 'connection' | 'tls' | 'address' | 'protocol' | null
  /** The first 16 KiB of the answer’s body; null if there was no answer. */
  response: string | null
}

export type WebhookChanges = {
  /** Where deliveries are sent: an https URL, or http in a sandbox, without user name, password and fragment. It must not lead to a private or reserved address. */
  url?: string | undefined
  /** For your own use. */
  description?: string | null | undefined
  /** The types of events to deliver: a type, a group such as `withdrawal.*`, or `*` for all. */
  types?: EventTypePattern[] | undefined
  /** Events for a disabled endpoint are recorded as skipped, and can be replayed. */
  enabled?: boolean | undefined
  /** Further headers of each request, at most 10. Anyone who may read the endpoint can read them. Not allowed: `webhook-…`, `openwage-…`, `content-…`, and those of the connection. */
  headers?: Record<string, string> | undefined
}

export type WebhookDeleted = {
  message: 'OK'
}

export type WebhookDeliveries = {
  deliveries: WebhookDelivery[]
  hasMore: boolean
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type WebhookDelivery = {
  /** The id of the event, which is also the `webhook-id` of each request. */
  id: EventId
  type: 'intent.created' | 'intent.completed' | 'intent.expired' | 'intent.cancelled' | 'withdrawal.held' | 'withdrawal.submitted' | 'withdrawal.paid' | 'withdrawal.failed' | 'withdrawal.returned' | 'withdrawal.cancelled' | 'member.invited' | 'member.activated' | 'member.updated' | 'member.removed' | 'member.reinstated' | 'pay_run.scheduled' | 'pay_run.available' | 'pay_run.reverted' | 'pay_cycle.opened' | 'pay_cycle.closed' | 'pay_cycle.settled' | 'job.awaiting_review' | 'job.queued' | 'job.processing' | 'job.completed' | 'job.rejected' | 'job.expired' | 'float.low' | 'webhook.disabled' | 'webhook.recovered'
  /** `pending`: an attempt is planned. `failed`: the last attempt failed, and none is planned. `skipped`: the endpoint was disabled. */
  state: 'pending' | 'delivered' | 'failed' | 'skipped'
  /** The sample of a test, not an event. */
  isTest: boolean
  attemptCount: number
  createdAt: Instant
  lastAttemptAt: Instant | null
  /** Null if no attempt is planned. */
  nextAttemptAt: Instant | null
}

export type WebhookDeliveryDetails = {
  /** The id of the event, which is also the `webhook-id` of each request. */
  id: EventId
  type: 'intent.created' | 'intent.completed' | 'intent.expired' | 'intent.cancelled' | 'withdrawal.held' | 'withdrawal.submitted' | 'withdrawal.paid' | 'withdrawal.failed' | 'withdrawal.returned' | 'withdrawal.cancelled' | 'member.invited' | 'member.activated' | 'member.updated' | 'member.removed' | 'member.reinstated' | 'pay_run.scheduled' | 'pay_run.available' | 'pay_run.reverted' | 'pay_cycle.opened' | 'pay_cycle.closed' | 'pay_cycle.settled' | 'job.awaiting_review' | 'job.queued' | 'job.processing' | 'job.completed' | 'job.rejected' | 'job.expired' | 'float.low' | 'webhook.disabled' | 'webhook.recovered'
  /** `pending`: an attempt is planned. `failed`: the last attempt failed, and none is planned. `skipped`: the endpoint was disabled. */
  state: 'pending' | 'delivered' | 'failed' | 'skipped'
  /** The sample of a test, not an event. */
  isTest: boolean
  attemptCount: number
  createdAt: Instant
  lastAttemptAt: Instant | null
  /** Null if no attempt is planned. */
  nextAttemptAt: Instant | null
  /** Oldest first; only the last 100, if there are more. */
  attempts: WebhookAttempt[]
}

export type WebhookDisabledDelivery = {
  id: EventId
  type: 'webhook.disabled'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WebhookDisabledEventData
}

export type WebhookDisabledEvent = {
  type: 'webhook.disabled'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WebhookDisabledEventData
}

export type WebhookDisabledEventData = {
  webhookId: WebhookId
  /** `failing`: no delivery succeeded for 5 days. `gone`: the endpoint answered 410. */
  reason: 'failing' | 'gone'
}

export type WebhookId = `we_${string}`

export type WebhookRecoveredDelivery = {
  id: EventId
  type: 'webhook.recovered'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WebhookRecoveredEventData
}

export type WebhookRecoveredEvent = {
  type: 'webhook.recovered'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WebhookRecoveredEventData
}

export type WebhookRecoveredEventData = {
  webhookId: WebhookId
}

export type WebhookRotation = {
  /** How long the previous secret stays valid, 0 to 604,800 (7 days). */
  overlapSeconds?: number | undefined
}

export type WebhookTest = {
  /** The type of the sample. */
  type: 'intent.created' | 'intent.completed' | 'intent.expired' | 'intent.cancelled' | 'withdrawal.held' | 'withdrawal.submitted' | 'withdrawal.paid' | 'withdrawal.failed' | 'withdrawal.returned' | 'withdrawal.cancelled' | 'member.invited' | 'member.activated' | 'member.updated' | 'member.removed' | 'member.reinstated' | 'pay_run.scheduled' | 'pay_run.available' | 'pay_run.reverted' | 'pay_cycle.opened' | 'pay_cycle.closed' | 'pay_cycle.settled' | 'job.awaiting_review' | 'job.queued' | 'job.processing' | 'job.completed' | 'job.rejected' | 'job.expired' | 'float.low' | 'webhook.disabled' | 'webhook.recovered'
}

export type WebhookWithSecret = {
  id: WebhookId
  /** Where deliveries are sent: an https URL, or http in a sandbox, without user name, password and fragment. It must not lead to a private or reserved address. */
  url: string
  /** For your own use. */
  description: string | null
  /** The types of events to deliver: a type, a group such as `withdrawal.*`, or `*` for all. */
  types: EventTypePattern[]
  /** Events for a disabled endpoint are recorded as skipped, and can be replayed. */
  enabled: boolean
  /** Further headers of each request, at most 10. Anyone who may read the endpoint can read them. Not allowed: `webhook-…`, `openwage-…`, `content-…`, and those of the connection. */
  headers: Record<string, string>
  /** `failing`: the last attempt failed, and deliveries are retried. */
  status: 'active' | 'failing' | 'disabled'
  /** `requested`: by you. `failing`: no delivery succeeded for 5 days. `gone`: the endpoint answered 410. Null if it is enabled. */
  disabledReason: 'requested' | 'failing' | 'gone' | null
  /** The first failed attempt since the last success; null if there is none. */
  failingSince: Instant | null
  createdAt: Instant
  /** Verifies the signatures. Shown only in this answer, so store it. */
  secret: string
}

export type Webhooks = {
  webhooks: Webhook[]
  /** Number of entries in the whole list. */
  total: number
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type Withdrawal = {
  id: WithdrawalId
  netAmount: Money
  fee: Money
  payCycleId: PayCycleId
  memberId: MemberId
  createdAt: Instant
}

export type WithdrawalCancelledDelivery = {
  id: EventId
  type: 'withdrawal.cancelled'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalCancelledEvent = {
  type: 'withdrawal.cancelled'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalCompleted = {
  message: string
}

export type WithdrawalDetails = {
  id: WithdrawalId
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  status: 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'
  amount: Money
  netAmount: Money
  fee: Money
  bankAccount: {
    lastFour: string
  }
  /** The member’s available balance right after this withdrawal was booked. */
  balanceAfter: Money
  /** Every status of the withdrawal so far, oldest first. */
  timeline: {
    status: 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'
    at: Instant
    /** Why the status changed: the bank’s message, or who cancelled. Null if no reason was given. */
    reason: string | null
  }[]
  createdAt: Instant
  /** When the money is expected in the account. With a bank that takes files: once the withdrawal is submitted, the end of the day on which the money should arrive. With the simulated bank: the end of the hold while the withdrawal is `held`. Otherwise null. */
  expectedAt: Instant | null
  /** The end-to-end reference of the payment at the bank, which the member’s bank statement may show. Null until the withdrawal is submitted. */
  paymentReference: string | null
}

export type WithdrawalEventData = {
  withdrawalId: WithdrawalId
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  /** Gross amount: what leaves the member’s pay, net amount plus fee. */
  amount: Money
  /** The part of the fee that the member pays. */
  fee: Money
  /** What the bank transfers to the member’s account. */
  netAmount: Money
  /** The bank’s message, or who cancelled. Absent if no reason was given. */
  reason?: string | undefined
  /** The end-to-end reference of the payment at the bank. Only in `withdrawal.submitted`. */
  paymentReference?: string | undefined
}

export type WithdrawalFailedDelivery = {
  id: EventId
  type: 'withdrawal.failed'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalFailedEvent = {
  type: 'withdrawal.failed'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalHeldDelivery = {
  id: EventId
  type: 'withdrawal.held'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalHeldEvent = {
  type: 'withdrawal.held'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalId = `w_${string}`

export type WithdrawalIntent = {
  withdrawalIntentId: WithdrawalIntentId
  memberId: MemberId
  payCycleId: PayCycleId
  status: 'pending' | 'completed' | 'expired' | 'cancelled'
  amount: Money
  netAmount: Money
  fee: Money
  tier: string
  /** The version of the tier that set the fee. */
  tierVersion: number
  accountDetails: BankAccountUK | BankAccountEU
  createdAt: Instant
  expiresAt: Instant
  /** The resulting withdrawal; null unless the intent is completed. */
  withdrawalId: WithdrawalId | null
}

export type WithdrawalIntentCreated = {
  withdrawalIntentId: WithdrawalIntentId
  netAmount: Money
  fee: Money
  accountDetails: BankAccountUK | BankAccountEU
  /**
   * Deprecated: use `accountDetails`.
   *
   * @deprecated
   */
  bankAccount: {
    lastFour: string
  }
}

export type WithdrawalIntentExplanation = {
  withdrawalIntentId: WithdrawalIntentId
  inputs: {
    memberId: MemberId
    payCycleId: PayCycleId
    amount: Money
    createdAt: Instant
  }
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
  }
  /** The rules in the order in which they were applied, each with its result. */
  rules: {
    rule: 'lower limit' | 'upper limit' | 'fixed part' | 'percentage part' | 'minimum fee' | 'maximum fee' | 'fee payer' | 'net'
    amount: Money
    because: string
  }[]
  result: {
    /** The part of the fee that the member pays. */
    fee: Money
    /** The part of the fee that the employer pays. */
    employerFee: Money
    netAmount: Money
  }
}

export type WithdrawalIntentId = `wi_${string}`

export type WithdrawalPaidDelivery = {
  id: EventId
  type: 'withdrawal.paid'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalPaidEvent = {
  type: 'withdrawal.paid'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalReturnedDelivery = {
  id: EventId
  type: 'withdrawal.returned'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalReturnedEvent = {
  type: 'withdrawal.returned'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalSubmittedDelivery = {
  id: EventId
  type: 'withdrawal.submitted'
  /** When the event happened. */
  timestamp: Instant
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
}

export type WithdrawalSubmittedEvent = {
  type: 'withdrawal.submitted'
  id: EventId
  /** When the event happened. */
  timestamp: string
  /** Same as `timestamp`. */
  createdAt: string
  /** Increases by one with each event of the same resource. */
  sequence: number
  data: WithdrawalEventData
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
  status: 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'
  /** When the withdrawal entered this status. */
  changedAt: Instant
  /** Why the status changed: the bank’s message, or who cancelled. Null if no reason was given. */
  reason: string | null
}

export type Withdrawals = {
  withdrawals: Withdrawal[]
  hasMore: boolean
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

export type WithdrawalsWithStatus = {
  withdrawals: WithdrawalWithStatus[]
  hasMore: boolean
  /** Number of skipped entries. */
  skip: number
  /** Maximum number of entries in this answer. */
  take: number
}

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
