// Generated from openapi-operator.json by `npm run generate`. Do not edit.

import type { Call, CallOptions, List } from '../../../sdk/src/call.ts'
import type { Operation } from '../../../sdk/src/client.ts'
import type { FileSource } from '../../../sdk/src/files.ts'
import type { Day, DayOrInstant, EventType, GivenInstant, Instant, IssueMessage, KeptAfterErasure, LastFour, ListTotal, MemberCounts, MemberErasure, MemberId, MemberJobId, MemberJobPlan, MemberJobStatus, MemberStatus, PageSkip, PageTake, PayCycleId, PayoutBatchId, ReceiptKey, RequestId, TransferId, WebhookDeliveryState, WebhookId, WithdrawalId, WithdrawalIntentId, WithdrawalReason, WithdrawalRule, WithdrawalStatus, WithdrawalTimelineEntry } from '../../../sdk/src/generated/schemas.ts'

export type { Day, DayOrInstant, EventType, GivenInstant, Instant, IssueMessage, KeptAfterErasure, LastFour, ListTotal, MemberCounts, MemberErasure, MemberId, MemberJobId, MemberJobPlan, MemberJobStatus, MemberStatus, PageSkip, PageTake, PayCycleId, PayoutBatchId, ReceiptKey, RequestId, TransferId, WebhookDeliveryState, WebhookId, WithdrawalId, WithdrawalIntentId, WithdrawalReason, WithdrawalRule, WithdrawalStatus, WithdrawalTimelineEntry }

export type AccountDay = {
  rail: string
  /** The account as the bank names it. */
  account: string
  /** The ids of the partners whose floats are on the account, and `default` for all partners without a separate account. */
  debtors: string[]
  day: string
  /** The balance that the bank states for the end of the day. */
  bank: SignedMoney
  /** The sum of the floats on the account. */
  book: SignedMoney
  /** The part that these floats lack because the operator bears a cost that was not covered yet. */
  uncovered: SignedMoney
  /** The balance that the bank states, less the balance in the books. */
  difference: SignedMoney
}

export type AccountDays = {
  /** By account, newest day first. */
  accountDays: AccountDay[]
  /** The open exceptions about differences between the bank’s statements and the books, oldest first. */
  differences: AccountDifference[]
}

export type AccountDifference = {
  id: PayoutExceptionId
  rail: string
  kind: 'statement_gap' | 'opening_balance' | 'bank_balance'
  reason: string
}

export type AffectedMembers = { members: number; total: Money }

export type ApiKey = {
  id: ApiKeyId
  /** The first characters of the key. */
  hint: string
  state: 'valid' | 'expired' | 'revoked'
  scopes: Scope[]
  createdAt: Instant
  expiresAt: Instant | null
  revokedAt: Instant | null
  /** To the minute. */
  lastUsedAt: Instant | null
}

export type ApiKeyId = `key_${string}`

export type ApiKeyOfPartner = {
  id: ApiKeyId
  /** The first characters of the key. */
  hint: string
  state: 'valid' | 'expired' | 'revoked'
  scopes: Scope[]
  createdAt: Instant
  expiresAt: Instant | null
  revokedAt: Instant | null
  /** To the minute. */
  lastUsedAt: Instant | null
  partnerId: PartnerId
}

export type ApiKeyRotation = {
  /** How many seconds the old key stays valid, 0 to 2,592,000 (30 days), unless it expires earlier. By default, until it expires or is revoked. */
  overlapSeconds?: number | undefined
}

export type ApiKeyWithSecret = {
  id: ApiKeyId
  /** The first characters of the key. */
  hint: string
  state: 'valid' | 'expired' | 'revoked'
  scopes: Scope[]
  createdAt: Instant
  expiresAt: Instant | null
  revokedAt: Instant | null
  /** To the minute. */
  lastUsedAt: Instant | null
  /** The whole key; null in a replay. */
  secret: string | null
}

export type ApiKeys = {
  keys: ApiKey[]
  /** Whether there are more keys after the last of these. */
  hasMore: boolean
}

export type AuditEntries = {
  entries: AuditEntry[]
  /** Whether there are more after the last of these. */
  hasMore: boolean
}

export type AuditEntry = {
  id: AuditEntryId
  at: Instant
  /** Null if it concerns no partner. */
  partnerId: PartnerId | null
  /** `operator`: users of a partner see no more than this of an operator. */
  actorKind: 'api_key' | 'operator_key' | 'user' | 'cli' | 'worker' | 'operator'
  /** The id of a key or user, or user@host of a command. */
  actor: string
  action: string
  resourceKind: string
  resourceId: string
  details: object
  address: string | null
  requestId: string | null
}

export type AuditEntryId = `aud_${string}`
export type Backup = { at: Instant }

/** With `attach` and `give_back`: the amount that the bank kept from a return, took beside a payment, or deducted from it. The money and the charge must add up to exactly the payment. If the operator bears it, the decision takes two people. */
export type BankCharge = {
  amount: Money
  /** Who bears the charge. */
  borneBy: 'operator' | 'partner'
}

/** The file as the bank gave it, up to 1 GiB, or a ZIP archive of such files, up to 64 MiB. */
export type BankFile = string
export type BankFileId = `bf_${string}`

export type BatchPayment = {
  reference: string
  partnerId: PartnerId
  partnerName: string
  memberId: MemberId
  withdrawalId: WithdrawalId
  /** The holder of the paid account. Null if it was erased. */
  payee: Payee | null
  amount: Money
  outcome: 'paid' | 'failed' | 'returned' | null
  reason: string | null
  /** When an operator removed the payment from its batch. */
  removedAt: Instant | null
}

export type BatchPayments = {
  payments: BatchPayment[]
  /** Whether there are more after the last of these. */
  hasMore: boolean
}

/** The API key that the request was made with, or the user of the console. */
export type CallerId = string

export type CheckedAccount = {
  lastFour: string
  /** Whether the number can exist. */
  check: 'valid' | 'invalid' | 'unknown'
}

export type ClosingByText = {
  rail: string
  /** A text that the bank’s words contain, in any letter case and with any blanks. */
  text: string
  /** Why the entries are not ours. Must not contain personal data. */
  note: string
  /** The fingerprint of the preview. */
  fingerprint: string
}

/** ISO 4217 code. */
export type Currency = 'AED' | 'AFN' | 'ALL' | 'AMD' | 'ANG' | 'AOA' | 'ARS' | 'AUD' | 'AWG' | 'AZN' | 'BAM' | 'BBD' | 'BDT' | 'BGN' | 'BHD' | 'BIF' | 'BMD' | 'BND' | 'BOB' | 'BOV' | 'BRL' | 'BSD' | 'BTN' | 'BWP' | 'BYN' | 'BZD' | 'CAD' | 'CDF' | 'CHE' | 'CHF' | 'CHW' | 'CLF' | 'CLP' | 'CNY' | 'COP' | 'COU' | 'CRC' | 'CUC' | 'CUP' | 'CVE' | 'CZK' | 'DJF' | 'DKK' | 'DOP' | 'DZD' | 'EGP' | 'ERN' | 'ETB' | 'EUR' | 'FJD' | 'FKP' | 'GBP' | 'GEL' | 'GHS' | 'GIP' | 'GMD' | 'GNF' | 'GTQ' | 'GYD' | 'HKD' | 'HNL' | 'HRK' | 'HTG' | 'HUF' | 'IDR' | 'ILS' | 'INR' | 'IQD' | 'IRR' | 'ISK' | 'JMD' | 'JOD' | 'JPY' | 'KES' | 'KGS' | 'KHR' | 'KMF' | 'KPW' | 'KRW' | 'KWD' | 'KYD' | 'KZT' | 'LAK' | 'LBP' | 'LKR' | 'LRD' | 'LSL' | 'LYD' | 'MAD' | 'MDL' | 'MGA' | 'MKD' | 'MMK' | 'MNT' | 'MOP' | 'MRU' | 'MUR' | 'MVR' | 'MWK' | 'MXN' | 'MXV' | 'MYR' | 'MZN' | 'NAD' | 'NGN' | 'NIO' | 'NOK' | 'NPR' | 'NZD' | 'OMR' | 'PAB' | 'PEN' | 'PGK' | 'PHP' | 'PKR' | 'PLN' | 'PYG' | 'QAR' | 'RON' | 'RSD' | 'RUB' | 'RWF' | 'SAR' | 'SBD' | 'SCR' | 'SDG' | 'SEK' | 'SGD' | 'SHP' | 'SLL' | 'SOS' | 'SRD' | 'SSP' | 'STN' | 'SVC' | 'SYP' | 'SZL' | 'THB' | 'TJS' | 'TMT' | 'TND' | 'TOP' | 'TRY' | 'TTD' | 'TWD' | 'TZS' | 'UAH' | 'UGX' | 'USD' | 'USN' | 'UYI' | 'UYU' | 'UYW' | 'UZS' | 'VES' | 'VND' | 'VUV' | 'WST' | 'XAF' | 'XAG' | 'XAU' | 'XBA' | 'XBB' | 'XBC' | 'XBD' | 'XCD' | 'XDR' | 'XOF' | 'XPD' | 'XPF' | 'XPT' | 'XSU' | 'XTS' | 'XUA' | 'XXX' | 'YER' | 'ZAR' | 'ZMW' | 'ZWL'

/** The first row that breaks the rule. */
export type Disagreement = { partnerId: string; subject: string; expected: string; found: string }

export type EarlyClosing = {
  /** Why. */
  note: string
}

/** The id of the event, which is also the `webhook-id` of each request. */
export type EventId = `evt_${string}`

export type ExceptionClosing = {
  decision: 'ignore' | 'attach' | 'give_back' | 'book' | 'recover' | 'write_off'
  /** Why. */
  note: string
  /** With `attach`: the payment reference or the withdrawal’s id. With `book`: the reference of the movement, by default the one recorded for the entry. */
  reference?: string | undefined
  /** With `book`, and with `write_off` of money that left without a payment: the partner whose float the money is in. */
  partnerId?: PartnerId | undefined
  /** With `book`: the pay cycle whose settlement the money pays. */
  payCycleId?: PayCycleId | undefined
  charge?: BankCharge | undefined
  /** With `give_back`, if the bank debited too little for a batch: the payments that it did not make. They must add up to the shortfall; the others are then paid. With `recover` and `write_off` of a batch: the payments that the bank made; by default, all payments that were given back. With `recover` of money that left without a reference: the payments that the bank made, which must add up to the money. With `attach` of money that the bank describes only in words, in place of `reference`: several payments, which must add up to the money. */
  references?: string[] | undefined
}

export type ExceptionSum = {
  /** Whether the money arrived or left. */
  direction: 'in' | 'out'
  count: number
  sum: Money
}

export type ExceptionsByText = {
  /** Sums of the closed entries, by currency and direction. */
  sums: ExceptionSum[]
  /** How many are closed. */
  count: number
  /** How many more entries have the text but stay open, because they may be about something of ours. */
  keptCount: number
  /** Identifies the set of entries that would be closed; send it to close them. */
  fingerprint: string
}

export type ExceptionsClosed = {
  /** Sums of the closed entries, by currency and direction. */
  sums: ExceptionSum[]
  /** How many are closed. */
  count: number
  /** How many more entries have the text but stay open, because they may be about something of ours. */
  keptCount: number
}

export type ExportedFile = { name: string; sha256: string; valueDate: string }

export type FeeLine = {
  day: string
  tier: string
  /** Withdrawals that were charged a fee. */
  withdrawals: number
  /** Their fees that members pay. */
  memberFees: SignedMoney
  /** Their fees that the employer pays. */
  employerFees: SignedMoney
  /** Withdrawals whose fee was given back. */
  givenBack: number
  /** Their fees that members had paid. */
  memberFeesGivenBack: SignedMoney
  /** Their fees that the employer had to pay. */
  employerFeesGivenBack: SignedMoney
}

export type FeeStatement = {
  /** By the partner’s time zone. */
  month: string
  /** By day and tier. */
  lines: FeeLine[]
  /** Per currency. */
  sums: FeeSums[]
}

export type FeeSums = {
  currency: Currency
  /** Withdrawals that were charged a fee. */
  withdrawals: number
  /** Their fees that members pay. */
  memberFees: SignedMoney
  /** Their fees that the employer pays. */
  employerFees: SignedMoney
  /** Withdrawals whose fee was given back. */
  givenBack: number
  /** Their fees that members had paid. */
  memberFeesGivenBack: SignedMoney
  /** Their fees that the employer had to pay. */
  employerFeesGivenBack: SignedMoney
  /** Fees of members that became revenue in the month, less those booked back. */
  collected: SignedMoney
}

export type Finding = {
  check: string
  /** `missing`: live mode cannot pay until it is done. `hint`: the program cannot check it. */
  level: 'missing' | 'warning' | 'hint' | 'ok'
  sentence: string
  /** The command that does it or says more. */
  command: string | null
}

export type Findings = {
  /** `ready`: nothing is missing. */
  state: 'ready' | 'notReady'
  at: Instant
  /** Most urgent first. */
  findings: Finding[]
}

export type Float = {
  currency: Currency
  /** Funded or repaid by payroll, less what banks have paid out. Negative if it is underfunded. */
  float: SignedMoney
  /** Pending payouts. */
  pending: SignedMoney
  /** The float less the pending payouts. */
  free: SignedMoney
  /** Costs that the operator bears and has not covered, so that the float lacks them. */
  uncovered: SignedMoney
  /** While less than this is free, members cannot withdraw. Null disables the floor. */
  floor: Money | null
  lowSince: Instant | null
}

export type FloatFloor = {
  currency: Currency
  /** Null disables the floor. */
  floor: Money | null
}

export type FloatMovement = {
  amount: Money
  /** Your reference, for example the bank’s. A second movement with it does nothing. */
  reference?: string | undefined
}

export type FloatMovementId = `fm_${string}`

export type Floats = {
  floats: Float[]
  /** The settlements whose money has not arrived, oldest first. */
  settlements: SettlementDue[]
  /** By account, newest day first. */
  accountDays: AccountDay[]
}

export type FloatsAfterMovement = {
  movement: RecordedMovement
  floats: Float[]
  /** The settlements whose money has not arrived, oldest first. */
  settlements: SettlementDue[]
  /** By account, newest day first. */
  accountDays: AccountDay[]
}

export type GivenUpTask = { task: string; count: number }

export type ImportedFile = {
  fileId: BankFileId
  /** `repeated`: a file with the same bytes was imported before; nothing changed. */
  result: 'imported' | 'repeated'
  records: number
  /** Accounts of the file that are not of this rail. Nothing about them was booked. */
  skippedAccounts: number
}

export type ImportingFile = {
  fileId: BankFileId
  rail: string
  name: string
  status: 'importing'
  /** How many records the file has. */
  records: number
  /** How many records are imported. */
  applied: number
  receivedAt: Instant
}

export type InspectedMember = {
  id: MemberId
  partnerId: PartnerId
  status: MemberStatus
  email: string
  firstName: string
  lastName: string
  workerId: string | null
  enablePayroll: boolean
  tier: string
  tierVersion: number
  bankAccount: CheckedAccount | null
  available: Money
  /** Whether the member could withdraw the lowest amount now. */
  canWithdraw: boolean
  /** Why the member could not. */
  refusal: string | null
  /** Why the bank refused a payment to the account; null once the account is changed. */
  accountRefused: string | null
  /** Why the member cannot withdraw until an operator releases them. */
  reviewReason: string | null
  withdrawalsToday: number
  withdrawalsThisCycle: number
  /** The latest 5. */
  withdrawals: InspectedWithdrawal[]
}

export type InspectedWithdrawal = {
  id: WithdrawalId
  partnerId: PartnerId
  memberId: MemberId
  withdrawalIntentId: WithdrawalIntentId
  payCycleId: PayCycleId
  status: WithdrawalStatus
  amount: Money
  netAmount: Money
  fee: Money
  employerFee: Money
  createdAt: Instant
  /** When its next step with the bank is due; null if there is none. */
  dueAt: Instant | null
  /** Calls to the bank so far. */
  attempts: number
  /** Why it entered its status, in the words of the bank or of the caller. */
  reason: string | null
  /** The pay cycle that its refund was booked in, if its own had closed by then. */
  adjustedInCycleId: PayCycleId | null
  /** Why it needs attention; null if it does not. */
  stuck: 'no worker submits it' | 'no worker polls the bank' | 'the bank gives no final report' | null
}

export type InspectedWithdrawalDetails = {
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
  metadata: Metadata
  partnerId: PartnerId
  employerFee: Money
  /** When its next step with the bank is due; null if there is none. */
  dueAt: Instant | null
  /** Calls to the bank so far. */
  attempts: number
  /** Why it entered its status, in the words of the bank or of the caller. */
  reason: string | null
  /** The pay cycle that its refund was booked in, if its own had closed by then. */
  adjustedInCycleId: PayCycleId | null
  /** Why it needs attention; null if it does not. */
  stuck: 'no worker submits it' | 'no worker polls the bank' | 'the bank gives no final report' | null
}

export type InspectedWithdrawals = {
  withdrawals: InspectedWithdrawal[]
  /** Whether there are more after the last of these. */
  hasMore: boolean
}

export type Invoice = {
  id: InvoiceId
  partnerId: PartnerId
  /** The partner’s invoices are numbered without gaps. */
  number: string
  status: InvoiceStatus
  /** The first day with a fee. */
  firstDay: string
  /** The last day that the invoice covers. */
  lastDay: string
  /** The amount that the partner has to pay. */
  sum: SignedMoney
  issuedAt: Instant
  /** How the invoice was paid; null until then. */
  paid: InvoicePaid | null
  /** By day and tier. */
  lines: InvoiceLine[]
}

export type InvoiceId = `ivc_${string}`

export type InvoiceLine = {
  day: string
  tier: string
  /** Withdrawals that were charged a fee on the day. */
  withdrawals: number
  /** Their fees. */
  fees: SignedMoney
  /** Withdrawals whose fee was given back on the day. */
  givenBack: number
  /** Their fees. */
  feesGivenBack: SignedMoney
}

export type InvoiceNote = {
  /** The reason in the audit log. Must not contain personal data. */
  note: string
}

export type InvoicePaid = { reference: string; on: string }

export type InvoicePayment = {
  /** The reference of the transfer. */
  reference: string
  /** When the money arrived. */
  on: string
}

/** The fees of a `void` invoice are billed by the next one. */
export type InvoiceStatus = 'open' | 'paid' | 'void'

export type InvoiceSummary = {
  id: InvoiceId
  partnerId: PartnerId
  /** The partner’s invoices are numbered without gaps. */
  number: string
  status: InvoiceStatus
  /** The first day with a fee. */
  firstDay: string
  /** The last day that the invoice covers. */
  lastDay: string
  /** The amount that the partner has to pay. */
  sum: SignedMoney
  issuedAt: Instant
  /** How the invoice was paid; null until then. */
  paid: InvoicePaid | null
}

export type Invoices = { invoices: InvoiceSummary[]; total: ListTotal; skip: PageSkip; take: PageTake }
export type KeyCounts = { valid: number; expired: number; revoked: number }
export type LedgerCheck = { name: string; rule: string; disagreement: Disagreement | null }

export type LedgerVerification = {
  id: LedgerVerificationId
  /** `interrupted`: the verification could not end; `problem` says why. Request another. */
  state: 'waiting' | 'running' | 'agrees' | 'disagrees' | 'interrupted'
  requestedBy: string
  requestedAt: Instant
  startedAt: Instant | null
  endedAt: Instant | null
  checksDone: number
  checksTotal: number
  checks: LedgerCheck[] | null
  problem: string | null
}

export type LedgerVerificationId = `lv_${string}`
export type LedgerVerifications = { verifications: LedgerVerification[] }

export type ListedMemberJob = {
  id: MemberJobId
  partnerId: PartnerId
  kind: 'actions' | 'file'
  status: MemberJobStatus
  plan: MemberJobPlan
  /** How many changes of the plan are made. */
  stepsDone: number
  createdAt: Instant
  reviewedAt: Instant | null
  endedAt: Instant | null
}

export type ListedMemberJobs = {
  jobs: ListedMemberJob[]
  /** Whether there are more after the last of these. */
  hasMore: boolean
}

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

export type LowFloat = { partnerId: PartnerId; lowSince: Instant | null; free: SignedMoney; floor: Money }
export type MemberEffect = { memberId: MemberId; before: Money; after: Money }

export type MemberStanding = {
  /** The available balance. */
  available: SignedMoney
  /** What the member owes: the part of a correction that exceeded the available balance. The next pay run repays it first. */
  owed: SignedMoney
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

/** The metadata of its intent. */
export type Metadata = Record<string, string>

export type Money = {
  /** In minor units, for example pence. */
  amount: number
  currency: Currency
}

export type NewApiKey = {
  /** By default, all scopes. */
  scopes?: Scope[] | undefined
  /** By default, the key is valid until it is revoked. */
  expiresInDays?: number | undefined
}

/** `at` is when the backup began, by default now. */
export type NewBackup = { at?: GivenInstant | undefined }

export type NewInvoice = {
  currency: Currency
  /** A month that is over. By default, all fees until now. */
  month?: string | undefined
}

export type NewPartner = { name: string; settings?: PartnerSettingsChange | undefined }

export type NewPayoutRule = {
  rail: string
  /** A text that the bank’s words contain, in any letter case and with any blanks. */
  text: string
  /** Why the entries are not ours. Must not contain personal data. */
  note: string
}

/** `recoveredUntil` is the last commit that the backup has. */
export type NewRestore = { recoveredUntil?: GivenInstant | undefined }

export type NewTierTerms = {
  currency: Currency
  /** The version that the new terms follow, so that no change of another operator is lost. Null creates the tier. */
  version: number | null
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

export type OpenPayCycle = { id: PayCycleId; startDate: string; endDate: string }

export type OperatorTier = {
  name: string
  currency: Currency
  members: TierMembers
  version: number
  /** When this version took effect. */
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

export type OperatorTiers = { tiers: OperatorTier[] }

export type Partner = {
  id: PartnerId
  name: string
  /** `paused`: members cannot withdraw. `suspended`: every request of the partner is refused, whether it is paused or not. */
  state: PartnerState
  createdAt: Instant
  paused: PartnerStop | null
  suspended: PartnerStop | null
  settings: PartnerSettings
  openCycle: OpenPayCycle | null
  floats: Float[]
  keys: KeyCounts
  members: MemberCounts
}

export type PartnerId = `par_${string}`

export type PartnerSettings = {
  /** Country of phone numbers without a country code. */
  country: string
  /** IANA time zone of the partner’s calendar days. */
  timeZone: string
  /** Whether new members are active as soon as they are invited. */
  autoActivate: boolean
  /** How long a pay run can be reverted, in minutes. */
  graceMinutes: number
  /** How long an intent is valid, in minutes. */
  intentMinutes: number
  /** How long a withdrawal can be cancelled, in seconds. */
  holdSeconds: number
  /** Sustained rate limit. */
  requestsPerSecond: number
  /** Requests allowed in a burst. */
  requestsBurst: number
  /** Length of a pay cycle. */
  cycleSchedule: 'weekly' | 'two_weekly' | 'four_weekly' | 'semi_monthly' | 'monthly'
  /** A day on which a pay cycle starts; for monthly cycles, from the 1st to the 28th. */
  cycleAnchor: string
  /** Whether an amount that payroll could not deduct is carried to the next cycle or written off. */
  shortfallPolicy: 'carry' | 'write_off'
  /** A file that would offboard more than this share of the members waits for approval. */
  offboardReviewPercent: number
  /** Days after which a job awaiting approval is rejected. */
  reviewDays: number
  /** The text beside a SEPA payment on a member’s bank statement; leave empty for none. Letters without accents, digits, spaces and `/ - ? : ( ) . , ' +`. Bacs and Faster Payments have no room for it. */
  remittanceText: string
  /** Whether events include the metadata of their member, intent, pay run or webhook endpoint. */
  metadataInEvents: boolean
}

export type PartnerSettingsChange = {
  /** Country of phone numbers without a country code. */
  country?: string | undefined
  /** IANA time zone of the partner’s calendar days. */
  timeZone?: string | undefined
  /** Whether new members are active as soon as they are invited. */
  autoActivate?: boolean | undefined
  /** How long a pay run can be reverted, in minutes. */
  graceMinutes?: number | undefined
  /** How long an intent is valid, in minutes. */
  intentMinutes?: number | undefined
  /** How long a withdrawal can be cancelled, in seconds. */
  holdSeconds?: number | undefined
  /** Sustained rate limit. */
  requestsPerSecond?: number | undefined
  /** Requests allowed in a burst. */
  requestsBurst?: number | undefined
  /** Length of a pay cycle. */
  cycleSchedule?: 'weekly' | 'two_weekly' | 'four_weekly' | 'semi_monthly' | 'monthly' | undefined
  /** A day on which a pay cycle starts; for monthly cycles, from the 1st to the 28th. */
  cycleAnchor?: string | undefined
  /** Whether an amount that payroll could not deduct is carried to the next cycle or written off. */
  shortfallPolicy?: 'carry' | 'write_off' | undefined
  /** A file that would offboard more than this share of the members waits for approval. */
  offboardReviewPercent?: number | undefined
  /** Days after which a job awaiting approval is rejected. */
  reviewDays?: number | undefined
  /** The text beside a SEPA payment on a member’s bank statement; leave empty for none. Letters without accents, digits, spaces and `/ - ? : ( ) . , ' +`. Bacs and Faster Payments have no room for it. */
  remittanceText?: string | undefined
  /** Whether events include the metadata of their member, intent, pay run or webhook endpoint. */
  metadataInEvents?: boolean | undefined
}

export type PartnerState = 'open' | 'paused' | 'suspended'

/** Null where the audit log has no record. */
export type PartnerStop = {
  since: Instant | null
  /** The actor as in the audit log. */
  by: string | null
  reason: string | null
}

export type PartnerSummary = {
  id: PartnerId
  name: string
  /** `paused`: members cannot withdraw. `suspended`: every request of the partner is refused, whether it is paused or not. */
  state: PartnerState
  createdAt: Instant
  /** Country of phone numbers without a country code. */
  country: string
  /** IANA time zone of the partner’s calendar days. */
  timeZone: string
}

export type Partners = { partners: PartnerSummary[]; total: number; skip: number; take: number }

export type Payee = {
  accountHolder: string
  /** The end of the account number or IBAN. */
  lastFour: string
}

export type PaymentAnswer = {
  /** When the answer was read or decided. */
  at: Instant
  /** `operator`: an operator decided. `midmonth`: the rail cannot carry the payment, or the bank does not confirm payments. */
  by: 'bank' | 'operator' | 'midmonth'
  /** Whether the answer is about the whole batch. */
  isAboutBatch: boolean
  /** The outcome that the answer gave the payment. Null if it changed nothing. */
  outcome: 'paid' | 'failed' | 'returned' | null
  reason: string | null
  /** The day on which the bank booked the money, if the answer names it. */
  bookedOn: string | null
  /** The file of the bank. Null if the answer did not come in a file. */
  fileName: string | null
  line: number | null
}

export type PaymentOutcome = {
  outcome: 'paid' | 'failed' | 'returned'
  /** How you know the outcome. */
  note: string
  credit?: ReturnCredit | undefined
  /** With `returned`, if less arrived than was paid: who bears the difference. */
  borneBy?: 'operator' | 'partner' | undefined
}

export type PaymentRemoval = {
  /** The reason; the partner and the member read it. */
  reason: string
}

export type Payout = {
  reference: string
  rail: string
  partnerId: PartnerId
  withdrawalId: WithdrawalId
  amount: Money
  createdAt: Instant
  expectedAt: Instant | null
  outcome: 'paid' | 'failed' | 'returned' | null
  /** The code of the bank. */
  reasonCode: string | null
  reason: string | null
  /** When an operator removed the payment from its batch. */
  removedAt: Instant | null
  /** Null if the payment is not in a batch. */
  batch: PayoutBatchSummary | null
  /** The bank’s answers about the payment, oldest first; at most 100. */
  answers: PaymentAnswer[]
  /** The answers about the payment or its batch that did not fit, oldest first; at most 100. */
  exceptions: PayoutException[]
  /** A decision that takes two people and that one person has made. */
  proposal: ProposedDecision | null
}

export type PayoutApproval = {
  person: string
  /** The login of the operating system, for an approval by command. Null for a user of the console. */
  login: string | null
  at: Instant
}

export type PayoutBatch = {
  id: PayoutBatchId
  /** The batch’s name in its file and in the bank’s answers. */
  messageId: string
  rail: string
  /** `default`, or the partner whose own account pays. */
  debtor: string
  valueDate: string
  isInstant: boolean
  /** Until then payments join the batch. */
  cutOffAt: Instant
  /** The time zone of the bank, in which the cut-off is set. Null if the rail is not configured. */
  cutOffTimeZone: string | null
  status: PayoutBatchStatus
  /** Whether the batch is complete and awaits approval by people. */
  needsApproval: boolean
  /** Whether an operator holds the batch. */
  held: boolean
  paymentCount: number
  total: Money
  fileName: string | null
  fileSha256: string | null
  /** The worst result of the bank’s check of the payees’ names. */
  nameCheck: string | null
  closedAt: Instant | null
  approvedAt: Instant | null
  approvedAutomatically: boolean
  sentAt: Instant | null
  /** When the bank acknowledged the batch. */
  acknowledgedAt: Instant | null
  /** When the last payment of the batch was answered, the bank rejected the batch, or the batch was cancelled. */
  endedAt: Instant | null
  /** The approvals of the batch, oldest first. */
  approvals: PayoutApproval[]
  /** How many people must approve the batch. */
  approvalsNeeded: number
  /** Each time that the batch’s file left, or may have left, oldest first. */
  copies: PayoutBatchCopy[]
  /** A decision that takes two people and that one person has made. */
  proposal: ProposedDecision | null
  /** Null unless an operator holds the batch. */
  hold: PayoutBatchHold | null
  /** Null unless a whole batch was given back and no statement shows yet that the bank did not pay it. Until then people approve every batch of the rail. */
  brake: RailBrake | null
}

export type PayoutBatchCopy = {
  kind: 'delivery' | 'export' | 'download'
  /** Null for the worker. */
  person: string | null
  at: Instant
}

export type PayoutBatchHold = {
  since: Instant | null
  /** The actor as in the audit log. */
  by: string | null
  /** Null if none was given. */
  reason: string | null
}

export type PayoutBatchStatus = 'building' | 'approved' | 'sent' | 'acknowledged' | 'settled' | 'rejected' | 'cancelled'

export type PayoutBatchSummary = {
  id: PayoutBatchId
  /** The batch’s name in its file and in the bank’s answers. */
  messageId: string
  rail: string
  /** `default`, or the partner whose own account pays. */
  debtor: string
  valueDate: string
  isInstant: boolean
  /** Until then payments join the batch. */
  cutOffAt: Instant
  /** The time zone of the bank, in which the cut-off is set. Null if the rail is not configured. */
  cutOffTimeZone: string | null
  status: PayoutBatchStatus
  /** Whether the batch is complete and awaits approval by people. */
  needsApproval: boolean
  /** Whether an operator holds the batch. */
  held: boolean
  paymentCount: number
  total: Money
  fileName: string | null
  fileSha256: string | null
  /** The worst result of the bank’s check of the payees’ names. */
  nameCheck: string | null
  closedAt: Instant | null
  approvedAt: Instant | null
  approvedAutomatically: boolean
  sentAt: Instant | null
  /** When the bank acknowledged the batch. */
  acknowledgedAt: Instant | null
  /** When the last payment of the batch was answered, the bank rejected the batch, or the batch was cancelled. */
  endedAt: Instant | null
}

export type PayoutBatches = {
  batches: PayoutBatchSummary[]
  /** Whether there are more after the last of these. */
  hasMore: boolean
}

export type PayoutException = {
  id: PayoutExceptionId
  rail: string
  /** Why the answer of the bank did not fit. */
  kind: 'unmatched' | 'amount' | 'contradiction' | 'duplicate' | 'rejected' | 'refused' | 'money_in' | 'money_out' | 'float' | 'blocked' | 'unreadable' | 'paid_after_give_back' | 'statement_gap' | 'opening_balance' | 'bank_balance'
  reference: string | null
  /** The batch that the answer is about, or that has its payment. */
  batchId: PayoutBatchId | null
  partnerId: PartnerId | null
  withdrawalId: WithdrawalId | null
  /** The outcome of the payment that the bank reports. */
  outcome: 'paid' | 'failed' | 'returned' | null
  /** Negative if money left the account. */
  amount: SignedMoney | null
  /** When the bank booked the money, if it moved any. */
  bookedOn: string | null
  /** The bank’s words about the money. */
  bankText: string | null
  reasonCode: string | null
  reason: string
  fileName: string | null
  /** The name of the bank’s file. */
  line: number | null
  openedAt: Instant
  closedAt: Instant | null
  closedBy: string | null
  decision: string | null
  note: string | null
  /** Who has proposed a decision that awaits a second person. Null if no decision is proposed. */
  proposedBy: string | null
}

export type PayoutExceptionDetails = {
  id: PayoutExceptionId
  rail: string
  /** Why the answer of the bank did not fit. */
  kind: 'unmatched' | 'amount' | 'contradiction' | 'duplicate' | 'rejected' | 'refused' | 'money_in' | 'money_out' | 'float' | 'blocked' | 'unreadable' | 'paid_after_give_back' | 'statement_gap' | 'opening_balance' | 'bank_balance'
  reference: string | null
  /** The batch that the answer is about, or that has its payment. */
  batchId: PayoutBatchId | null
  partnerId: PartnerId | null
  withdrawalId: WithdrawalId | null
  /** The outcome of the payment that the bank reports. */
  outcome: 'paid' | 'failed' | 'returned' | null
  /** Negative if money left the account. */
  amount: SignedMoney | null
  /** When the bank booked the money, if it moved any. */
  bookedOn: string | null
  /** The bank’s words about the money. */
  bankText: string | null
  reasonCode: string | null
  reason: string
  fileName: string | null
  /** The name of the bank’s file. */
  line: number | null
  openedAt: Instant
  closedAt: Instant | null
  closedBy: string | null
  decision: string | null
  note: string | null
  /** Who has proposed a decision that awaits a second person. Null if no decision is proposed. */
  proposedBy: string | null
  /** A decision that takes two people and that one person has made. */
  proposal: ProposedDecision | null
  /** The payments whose references the bank’s words contain. No payment is attached automatically. */
  proposals: ProposedPayment[]
  /** Whether another message has booked the same amount on the same day: it may be the same money. */
  isBookedElsewhere: boolean
}

export type PayoutExceptionId = `pex_${string}`

export type PayoutExceptions = {
  exceptions: PayoutException[]
  /** Whether there are more after the last of these. */
  hasMore: boolean
}

export type PayoutProposal = {
  /** The exception, or the reference of the payment. */
  subject: string
  rail: string
  exceptionId: PayoutExceptionId | null
  /** The payment whose outcome is proposed. Null for a decision about an exception. */
  reference: string | null
  partnerId: PartnerId | null
  withdrawalId: WithdrawalId | null
  /** The decision and its fields, as JSON. */
  decision: string
  note: string
  /** Who proposed the decision. */
  person: string
  proposedAt: Instant
}

export type PayoutProposals = {
  proposals: PayoutProposal[]
  /** Whether there are more after the last of these. */
  hasMore: boolean
}

export type PayoutRule = {
  id: PayoutRuleId
  rail: string
  /** The text in lower case, with single blanks. */
  text: string
  note: string
  /** `proposed`: the rule closes nothing until another person makes the same rule. */
  status: 'proposed' | 'active' | 'paused' | 'ended'
  proposedBy: string
  proposedAt: Instant
  confirmedBy: string | null
  confirmedAt: Instant | null
  endedAt: Instant | null
  /** How many exceptions the rule has closed. */
  closedCount: number
}

export type PayoutRuleId = `pxr_${string}`

export type PayoutRules = {
  rules: PayoutRule[]
  /** Whether there are older rules. */
  hasMore: boolean
}

export type ProposedDecision = {
  /** The decision and its fields, as JSON. */
  decision: string
  note: string
  /** Who proposed the decision. Another person confirms it with the same request. */
  person: string
  proposedAt: Instant
}

export type ProposedPayment = {
  reference: string
  partnerId: PartnerId
  withdrawalId: WithdrawalId
  amount: Money
  outcome: 'paid' | 'failed' | 'returned' | null
}

export type Rail = {
  name: string
  /** Whether the rail is in `MIDMONTH_RAILS`. A rail that was removed from the settings is listed while it is held. */
  isConfigured: boolean
  /** Null if the rail is not configured. */
  currency: Currency | null
  /** How payments reach the bank. Null if the rail is not configured. */
  kind: 'files' | 'api' | null
  /** Whether operators carry its files to the bank and back. */
  isByHand: boolean
  /** Bank files that are partly imported. If the importing process is killed, the worker continues the import, or importing the same file again does. */
  importing: ImportingFile[]
  /** Null unless the rail is held. Nothing is sent through a held rail. */
  hold: RailHold | null
  /** Null unless a whole batch was given back and no statement shows yet that the bank did not pay it. Until then people approve every batch of the rail. */
  brake: RailBrake | null
}

export type RailBrake = {
  /** The batch that was given back. */
  batchId: PayoutBatchId
  since: Instant
  /** The day whose statement shows that the batch was not paid. */
  awaits: string
  /** Why batches of the rail await approval by people, in words. */
  reason: string
}

export type RailHold = {
  since: Instant
  /** The operator who holds it. */
  by: string
  /** Null if none was given. */
  reason: string | null
}

export type Rails = { rails: Rail[] }

export type ReasonGiven = {
  /** For the audit log. Must not contain personal data. */
  reason?: string | undefined
}

export type RecordedMovement = {
  id: FloatMovementId
  /** Negative if the employer was paid. */
  amount: SignedMoney
  reference: string | null
  at: Instant
  /** False if the reference was recorded before, at `at`: nothing moved now. */
  hasMoved: boolean
}

export type ReleasedMember = {
  id: MemberId
  /** False if there was nothing to release the member from. */
  released: boolean
}

export type Removal = {
  kind: 'unusedIntents' | 'memberImports' | 'replays' | 'requests' | 'webhookDeliveries' | 'auditAddresses' | 'disclosures' | 'bankTexts' | 'archivedBankFiles' | 'paymentEvidence'
  at: Instant
  count: number
}

export type RemovedPayment = { partnerId: PartnerId; withdrawalId: WithdrawalId; batchId: PayoutBatchId }

export type Restore = {
  detectedAt: Instant
  /** What was detected. */
  how: string
  /** The last commit that the backup has, if it is known. */
  recoveredUntil: Instant | null
}

export type Resumption = {
  /** How the banks were compared. */
  note: string
  withoutStatements?: boolean | undefined
}

/** With `returned`: the entry by which the money arrived. */
export type ReturnCredit = { bookedOn: string; amount: Money }

export type Revenue = {
  currency: Currency
  /** Collected fees that are still in the float. Less than zero if fees were booked back after they were taken out. */
  inFloat: SignedMoney
  /** Fees of members that have become revenue, less those booked back. */
  collected: SignedMoney
  /** The part that was taken out of the float. */
  withdrawn: SignedMoney
  /** Fees of members that settlements cover, and whose money has not arrived. */
  arriving: SignedMoney
  /** Employers’ fees that open invoices bill. */
  invoiced: SignedMoney
  /** Employers’ fees whose invoices are paid. */
  paid: SignedMoney
}

export type RevenueAfterMovement = { movement: RecordedMovement; revenue: Revenue[] }

export type RevenueMovement = {
  amount: Money
  /** Your reference, for example the bank’s. A second movement with it does nothing. */
  reference: string
}

export type Revenues = { revenue: Revenue[] }
export type Scope = 'members:read' | 'members:write' | 'pay:read' | 'pay:write'
export type SettledProposal = { subject: string }

export type SettlementDue = {
  payCycleId: PayCycleId
  /** The reference that the transfer must bear. */
  reference: string
  /** Negative if the employer is owed money. */
  amount: SignedMoney
  /** The amount that has not arrived. */
  due: SignedMoney
  settledAt: Instant
}

export type SettlementReceived = {
  payCycleId: PayCycleId
  currency: Currency
  /** By default, the whole amount due; negative if it was paid to the employer. */
  amount?: SignedMoney | undefined
}

export type SignedMoney = {
  /** In minor units, for example pence. */
  amount: number
  currency: Currency
}

export type Status = {
  state: 'fine' | 'needsAttention'
  /** Everything that needs attention, one sentence each. */
  attention: string[]
  at: Instant
  database: StatusDatabase
  mode: 'sandbox' | 'live'
  bank: 'simulated' | 'connected' | null
  rails: StatusRail[]
  /** Counts of the last 7 days. */
  workers: StatusWorker[]
  queue: StatusQueue
  batchesToApprove: number
  openExceptions: number
  /** When the last recorded backup was taken. */
  lastBackupAt: Instant | null
  /** The last day on which the worker removed data at the end of its retention: how much until when, by kind. */
  removals: Removal[]
  /** Bank files that are partly imported. */
  importing: ImportingFile[]
  /** The open exceptions about differences between the bank’s statements and the books, oldest first. */
  differences: AccountDifference[]
  payouts: StatusPayouts
  lowFloats: LowFloat[]
  partners: number
  stopped: StoppedPartner[]
}

export type StatusDatabase = {
  postgres: string
  /** Names migrations whose last steps wait for `midmonth migrate --contract`. */
  schema: string
}

export type StatusPayouts = { held: UnfinishedWithdrawals; submitted: UnfinishedWithdrawals }
export type StatusQueue = { due: number; oldestDueAt: Instant | null; givenUp: GivenUpTask[] }
export type StatusRail = { name: string; currency: Currency }

export type StatusWorker = {
  id: string
  host: string
  processId: number
  startedAt: Instant
  lastSeenAt: Instant
  isAlive: boolean
}

export type StoppedPartner = { id: PartnerId; name: string; paused: PartnerStop | null; suspended: PartnerStop | null }

export type TierHistory = {
  name: string
  currency: Currency
  members: TierMembers
  /** Intents that keep their quoted fee; the limits of new terms apply when they are completed. */
  openIntents: number
  /** Newest first. */
  versions: TierVersion[]
}

export type TierMembers = { active: number; invited: number }

export type TierPreview = {
  /** Whether the terms differ from those in force. */
  hasChanged: boolean
  members: TierMembers
  openIntents: number
  /** Members who could receive more, and how much more together. */
  gain: AffectedMembers
  /** Members who could receive less, and how much less together. */
  lose: AffectedMembers
  unchanged: number
  /** The members with the largest differences, at most 20. */
  most: MemberEffect[]
  /** False if only the first 100,000 members of the tier were compared. */
  isComplete: boolean
}

export type TierVersion = {
  version: number
  /** When this version took effect. */
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
  /** Null for the version in force. */
  until: Instant | null
}

export type UnfinishedWithdrawals = { count: number; oldest: Instant | null; stuck: number }

export type WithdrawalDelivery = {
  webhookId: WebhookId
  url: string
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

export type WithdrawalHistory = {
  withdrawalId: WithdrawalId
  /** Every status of the withdrawal so far, oldest first. */
  steps: WithdrawalTimelineStep[]
  explanation: WithdrawalIntentExplanation
  /** The requests of the last 7 days that created or changed its intent or itself, oldest first. Null for users who may not read the request log. */
  requests: LoggedRequest[] | null
  /** The deliveries of its events and those of its intent to your webhook endpoints in the last 30 days, oldest event first. Null for users who may not read webhooks. */
  deliveries: WithdrawalDelivery[] | null
  partnerId: PartnerId
  /** Null until the withdrawal is submitted. */
  payout: Payout | null
}

/** How its intent was decided. */
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

export const operations: Record<string, Operation> = {
  'listPartners': { method: 'GET', path: '/operator/v1/partners', hasQuery: true, entries: 'partners', cursor: 'id' },
  'createPartner': { method: 'POST', path: '/operator/v1/partners', hasBody: true },
  'getPartner': { method: 'GET', path: '/operator/v1/partners/{partnerId}' },
  'updatePartner': { method: 'PATCH', path: '/operator/v1/partners/{partnerId}', hasBody: true },
  'pausePartner': { method: 'POST', path: '/operator/v1/partners/{partnerId}/pause', hasBody: true },
  'resumePartner': { method: 'POST', path: '/operator/v1/partners/{partnerId}/resume', hasBody: true },
  'suspendPartner': { method: 'POST', path: '/operator/v1/partners/{partnerId}/suspend', hasBody: true },
  'restorePartner': { method: 'POST', path: '/operator/v1/partners/{partnerId}/restore', hasBody: true },
  'listTiers': { method: 'GET', path: '/operator/v1/partners/{partnerId}/tiers' },
  'getTier': { method: 'GET', path: '/operator/v1/partners/{partnerId}/tiers/{tier}' },
  'saveTier': { method: 'PUT', path: '/operator/v1/partners/{partnerId}/tiers/{tier}', hasBody: true },
  'previewTier': { method: 'POST', path: '/operator/v1/partners/{partnerId}/tiers/{tier}/preview', hasBody: true },
  'getFloat': { method: 'GET', path: '/operator/v1/partners/{partnerId}/float', hasQuery: true },
  'fundFloat': { method: 'POST', path: '/operator/v1/partners/{partnerId}/float/fund', hasBody: true },
  'withdrawFloat': { method: 'POST', path: '/operator/v1/partners/{partnerId}/float/withdraw', hasBody: true },
  'coverFloat': { method: 'POST', path: '/operator/v1/partners/{partnerId}/float/cover', hasBody: true },
  'receiveFloat': { method: 'POST', path: '/operator/v1/partners/{partnerId}/float/receive', hasBody: true },
  'setFloatFloor': { method: 'PUT', path: '/operator/v1/partners/{partnerId}/float/floor', hasBody: true },
  'listAccountDays': { method: 'GET', path: '/operator/v1/account-days', hasQuery: true },
  'listApiKeys': { method: 'GET', path: '/operator/v1/partners/{partnerId}/keys', hasQuery: true, entries: 'keys', cursor: 'id' },
  'createApiKey': { method: 'POST', path: '/operator/v1/partners/{partnerId}/keys', hasBody: true },
  'getApiKey': { method: 'GET', path: '/operator/v1/keys/{keyId}' },
  'rotateApiKey': { method: 'POST', path: '/operator/v1/partners/{partnerId}/keys/{keyId}/rotate', hasBody: true },
  'revokeApiKey': { method: 'POST', path: '/operator/v1/partners/{partnerId}/keys/{keyId}/revoke' },
  'listRails': { method: 'GET', path: '/operator/v1/rails' },
  'holdRail': { method: 'POST', path: '/operator/v1/rails/{rail}/hold', hasBody: true },
  'releaseRail': { method: 'POST', path: '/operator/v1/rails/{rail}/release', hasBody: true },
  'declareRestore': { method: 'POST', path: '/operator/v1/restores', hasBody: true },
  'resumePayouts': { method: 'POST', path: '/operator/v1/payouts/resume', hasBody: true },
  'getRevenue': { method: 'GET', path: '/operator/v1/partners/{partnerId}/revenue' },
  'withdrawRevenue': { method: 'POST', path: '/operator/v1/partners/{partnerId}/revenue/withdraw', hasBody: true },
  'getFeeStatement': { method: 'GET', path: '/operator/v1/partners/{partnerId}/fee-statement', hasQuery: true },
  'getFeeStatementFile': { method: 'GET', path: '/operator/v1/partners/{partnerId}/fee-statement', hasQuery: true, accepts: 'text/csv' },
  'listInvoices': { method: 'GET', path: '/operator/v1/invoices', hasQuery: true, entries: 'invoices' },
  'issueInvoice': { method: 'POST', path: '/operator/v1/partners/{partnerId}/invoices', hasBody: true },
  'getInvoice': { method: 'GET', path: '/operator/v1/partners/{partnerId}/invoices/{invoiceId}' },
  'payInvoice': { method: 'POST', path: '/operator/v1/partners/{partnerId}/invoices/{invoiceId}/pay', hasBody: true },
  'reopenInvoice': { method: 'POST', path: '/operator/v1/partners/{partnerId}/invoices/{invoiceId}/reopen', hasBody: true },
  'voidInvoice': { method: 'POST', path: '/operator/v1/partners/{partnerId}/invoices/{invoiceId}/void', hasBody: true },
  'exportJournal': { method: 'GET', path: '/operator/v1/journal', hasQuery: true, accepts: '*/*' },
  'listPayoutBatches': { method: 'GET', path: '/operator/v1/payout-batches', hasQuery: true, entries: 'batches', cursor: 'id' },
  'getPayoutBatch': { method: 'GET', path: '/operator/v1/payout-batches/{batchId}' },
  'listBatchPayments': { method: 'GET', path: '/operator/v1/payout-batches/{batchId}/payments', hasQuery: true, entries: 'payments', cursor: 'reference' },
  'approvePayoutBatch': { method: 'POST', path: '/operator/v1/payout-batches/{batchId}/approve' },
  'closePayoutBatch': { method: 'POST', path: '/operator/v1/payout-batches/{batchId}/close', hasBody: true },
  'withdrawPayoutBatchClosing': { method: 'POST', path: '/operator/v1/payout-batches/{batchId}/withdraw' },
  'holdPayoutBatch': { method: 'POST', path: '/operator/v1/payout-batches/{batchId}/hold', hasBody: true },
  'releasePayoutBatch': { method: 'POST', path: '/operator/v1/payout-batches/{batchId}/release', hasBody: true },
  'getPayout': { method: 'GET', path: '/operator/v1/payouts/{payment}' },
  'removePayment': { method: 'POST', path: '/operator/v1/payouts/{payment}/remove', hasBody: true },
  'decidePaymentOutcome': { method: 'POST', path: '/operator/v1/payouts/{payment}/outcome', hasBody: true },
  'exportPayoutBatch': { method: 'POST', path: '/operator/v1/payout-batches/{batchId}/export' },
  'downloadPayoutBatch': { method: 'GET', path: '/operator/v1/payout-batches/{batchId}/file', hasQuery: true, accepts: '*/*' },
  'listPayoutExceptions': { method: 'GET', path: '/operator/v1/payout-exceptions', hasQuery: true, entries: 'exceptions', cursor: 'id' },
  'getPayoutException': { method: 'GET', path: '/operator/v1/payout-exceptions/{exceptionId}' },
  'closePayoutException': { method: 'POST', path: '/operator/v1/payout-exceptions/{exceptionId}/close', hasBody: true },
  'withdrawPayoutDecision': { method: 'POST', path: '/operator/v1/payout-exceptions/{exceptionId}/withdraw' },
  'listPayoutProposals': { method: 'GET', path: '/operator/v1/payout-proposals', hasQuery: true, entries: 'proposals', cursor: 'subject' },
  'confirmPayoutProposal': { method: 'POST', path: '/operator/v1/payout-proposals/{subject}/confirm' },
  'withdrawPayoutProposal': { method: 'POST', path: '/operator/v1/payout-proposals/{subject}/withdraw' },
  'previewPayoutExceptions': { method: 'GET', path: '/operator/v1/payout-exceptions/by-text', hasQuery: true },
  'closePayoutExceptionsByText': { method: 'POST', path: '/operator/v1/payout-exceptions/by-text/close', hasBody: true },
  'listPayoutRules': { method: 'GET', path: '/operator/v1/payout-rules', hasQuery: true, entries: 'rules', cursor: 'id' },
  'createPayoutRule': { method: 'POST', path: '/operator/v1/payout-rules', hasBody: true },
  'pausePayoutRule': { method: 'POST', path: '/operator/v1/payout-rules/{ruleId}/pause' },
  'resumePayoutRule': { method: 'POST', path: '/operator/v1/payout-rules/{ruleId}/resume' },
  'endPayoutRule': { method: 'POST', path: '/operator/v1/payout-rules/{ruleId}/end' },
  'getStatus': { method: 'GET', path: '/operator/v1/status' },
  'getFindings': { method: 'GET', path: '/operator/v1/findings' },
  'recordBackup': { method: 'POST', path: '/operator/v1/backups', hasBody: true },
  'verifyLedger': { method: 'POST', path: '/operator/v1/ledger-verifications' },
  'listLedgerVerifications': { method: 'GET', path: '/operator/v1/ledger-verifications' },
  'getLedgerVerification': { method: 'GET', path: '/operator/v1/ledger-verifications/{verificationId}' },
  'listAuditEntries': { method: 'GET', path: '/operator/v1/audit-log', hasQuery: true, entries: 'entries', cursor: 'id' },
  'listAuditEntriesFile': { method: 'GET', path: '/operator/v1/audit-log', hasQuery: true, accepts: 'text/csv' },
  'listPartnerAuditEntries': { method: 'GET', path: '/operator/v1/partners/{partnerId}/audit-log', hasQuery: true, entries: 'entries', cursor: 'id' },
  'listPartnerAuditEntriesFile': { method: 'GET', path: '/operator/v1/partners/{partnerId}/audit-log', hasQuery: true, accepts: 'text/csv' },
  'listMemberJobs': { method: 'GET', path: '/operator/v1/member-jobs', hasQuery: true, entries: 'jobs', cursor: 'id' },
  'inspectMember': { method: 'GET', path: '/operator/v1/members/{memberId}' },
  'releaseMember': { method: 'POST', path: '/operator/v1/members/{memberId}/release', hasBody: true },
  'eraseMemberOfPartner': { method: 'POST', path: '/operator/v1/members/{memberId}/erase', hasQuery: true },
  'listWithdrawals': { method: 'GET', path: '/operator/v1/withdrawals', hasQuery: true, entries: 'withdrawals', cursor: 'id' },
  'inspectWithdrawal': { method: 'GET', path: '/operator/v1/withdrawals/{withdrawalId}' },
  'getWithdrawalHistory': { method: 'GET', path: '/operator/v1/withdrawals/{withdrawalId}/timeline' },
  'importBankFile': { method: 'POST', path: '/operator/v1/rails/{rail}/files', hasBody: true, takesFile: 'application/octet-stream', hasQuery: true },
}

export interface OperatorOperations {
  /** List partners. */
  listPartners(query?: {
    /** Only partners whose name contains this text, in any letter case, or with this id. */
    search?: string | undefined
    /** `paused`: members cannot withdraw. `suspended`: every request of the partner is refused, whether it is paused or not. */
    state?: PartnerState | undefined
    /** Number of entries to skip. */
    skip?: number | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
    /** The id of the last entry of this page, to get the next page. Not together with `skip`. */
    after?: PartnerId | undefined
  }, options?: CallOptions): List<Partners, PartnerSummary>
  /** Create a partner. */
  createPartner(body: NewPartner, options?: CallOptions): Call<Partner>
  /** Get a partner. */
  getPartner(partnerId: PartnerId, options?: CallOptions): Call<Partner>
  /** Change the settings of a partner. */
  updatePartner(partnerId: PartnerId, body: PartnerSettingsChange, options?: CallOptions): Call<Partner>
  /** Pause a partner. */
  pausePartner(partnerId: PartnerId, body: ReasonGiven, options?: CallOptions): Call<Partner>
  /** Resume a paused partner. */
  resumePartner(partnerId: PartnerId, body: ReasonGiven, options?: CallOptions): Call<Partner>
  /** Suspend a partner. */
  suspendPartner(partnerId: PartnerId, body: ReasonGiven, options?: CallOptions): Call<Partner>
  /** Restore a suspended partner. */
  restorePartner(partnerId: PartnerId, body: ReasonGiven, options?: CallOptions): Call<Partner>
  /** List the tiers of a partner. */
  listTiers(partnerId: PartnerId, options?: CallOptions): Call<OperatorTiers>
  /** Get a tier with all of its versions. */
  getTier(partnerId: PartnerId, tier: string, options?: CallOptions): Call<TierHistory>
  /** Create a tier, or change its terms. */
  saveTier(partnerId: PartnerId, tier: string, body: NewTierTerms, options?: CallOptions): Call<TierHistory>
  /** Preview new terms of a tier. */
  previewTier(partnerId: PartnerId, tier: string, body: NewTierTerms, options?: CallOptions): Call<TierPreview>
  /** Get the float of a partner. */
  getFloat(partnerId: PartnerId, query?: {
    /** How many days to list per account. */
    days?: number | undefined
  }, options?: CallOptions): Call<Floats>
  /** Fund a float. */
  fundFloat(partnerId: PartnerId, body: FloatMovement, options?: CallOptions): Call<FloatsAfterMovement>
  /** Withdraw from a float. */
  withdrawFloat(partnerId: PartnerId, body: FloatMovement, options?: CallOptions): Call<FloatsAfterMovement>
  /** Cover the operator’s costs. */
  coverFloat(partnerId: PartnerId, body: FloatMovement, options?: CallOptions): Call<FloatsAfterMovement>
  /** Receive the money of a settlement. */
  receiveFloat(partnerId: PartnerId, body: SettlementReceived, options?: CallOptions): Call<FloatsAfterMovement>
  /** Set the floor of a float. */
  setFloatFloor(partnerId: PartnerId, body: FloatFloor, options?: CallOptions): Call<Floats>
  /** Compare the accounts that pay with the books. */
  listAccountDays(query?: {
    /** Only accounts of this rail. */
    rail?: string | undefined
    /** How many days to list per account. */
    days?: number | undefined
  }, options?: CallOptions): Call<AccountDays>
  /** List the API keys of a partner. */
  listApiKeys(partnerId: PartnerId, query?: {
    /** The id of the last key of this page, to get the next page. */
    after?: ApiKeyId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<ApiKeys, ApiKey>
  /** Create an API key. */
  createApiKey(partnerId: PartnerId, body: NewApiKey, options?: CallOptions): Call<ApiKeyWithSecret>
  /** Get an API key. */
  getApiKey(keyId: ApiKeyId, options?: CallOptions): Call<ApiKeyOfPartner>
  /** Rotate an API key. */
  rotateApiKey(partnerId: PartnerId, keyId: ApiKeyId, body?: ApiKeyRotation, options?: CallOptions): Call<ApiKeyWithSecret>
  /** Revoke an API key. */
  revokeApiKey(partnerId: PartnerId, keyId: ApiKeyId, options?: CallOptions): Call<ApiKey>
  /** List the rails. */
  listRails(options?: CallOptions): Call<Rails>
  /** Hold a rail. */
  holdRail(rail: string, body?: ReasonGiven, options?: CallOptions): Call<Rail>
  /** Release a held rail. */
  releaseRail(rail: string, body?: ReasonGiven, options?: CallOptions): Call<Rail>
  /** Declare that the database was restored. */
  declareRestore(body: NewRestore, options?: CallOptions): Call<Restore>
  /** Resume payouts after a restore. */
  resumePayouts(body: Resumption, options?: CallOptions): Call<Restore>
  /** Get the revenue of a partner. */
  getRevenue(partnerId: PartnerId, options?: CallOptions): Call<Revenues>
  /** Withdraw revenue from a float. */
  withdrawRevenue(partnerId: PartnerId, body: RevenueMovement, options?: CallOptions): Call<RevenueAfterMovement>
  /** Get the fee statement of a month. */
  getFeeStatement(partnerId: PartnerId, query: {
    /** By the partner’s time zone. */
    month: string
  }, options?: CallOptions): Call<FeeStatement>
  /** Get the fee statement of a month. */
  getFeeStatementFile(partnerId: PartnerId, query: {
    /** By the partner’s time zone. */
    month: string
  }, options?: CallOptions): Call<Response>
  /** List invoices. */
  listInvoices(query?: {
    /** Number of entries to skip. */
    skip?: number | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
    /** Only invoices of this partner. */
    partnerId?: PartnerId | undefined
    /** Only invoices in these states. */
    statuses?: InvoiceStatus[] | undefined
  }, options?: CallOptions): List<Invoices, InvoiceSummary>
  /** Issue an invoice. */
  issueInvoice(partnerId: PartnerId, body: NewInvoice, options?: CallOptions): Call<Invoice>
  /** Get an invoice. */
  getInvoice(partnerId: PartnerId, invoiceId: InvoiceId, options?: CallOptions): Call<Invoice>
  /** Mark an invoice as paid. */
  payInvoice(partnerId: PartnerId, invoiceId: InvoiceId, body: InvoicePayment, options?: CallOptions): Call<Invoice>
  /** Reopen a paid invoice. */
  reopenInvoice(partnerId: PartnerId, invoiceId: InvoiceId, body: InvoiceNote, options?: CallOptions): Call<Invoice>
  /** Make an invoice void. */
  voidInvoice(partnerId: PartnerId, invoiceId: InvoiceId, body: InvoiceNote, options?: CallOptions): Call<Invoice>
  /** Export the journal. */
  exportJournal(query: {
    /** The first day, by each partner’s time zone. */
    from: string
    /** The last day, at most 366 days in all. */
    to: string
    /** Only this partner; by default, all partners. */
    partnerId?: PartnerId | undefined
  }, options?: CallOptions): Call<Response>
  /** List the batches of payments. */
  listPayoutBatches(query?: {
    /** Only batches of this rail. */
    rail?: string | undefined
    /** Only batches with these statuses. */
    statuses?: PayoutBatchStatus[] | undefined
    /** The id of the last batch of this page, to get the next page. */
    after?: PayoutBatchId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<PayoutBatches, PayoutBatchSummary>
  /** Get a batch of payments. */
  getPayoutBatch(batchId: PayoutBatchId, options?: CallOptions): Call<PayoutBatch>
  /** List the payments of a batch. */
  listBatchPayments(batchId: PayoutBatchId, query?: {
    /** The reference of the last payment of this page, to get the next page. */
    after?: string | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<BatchPayments, BatchPayment>
  /** Approve a batch. */
  approvePayoutBatch(batchId: PayoutBatchId, options?: CallOptions): Call<PayoutBatch>
  /** Close a batch before its cut-off. */
  closePayoutBatch(batchId: PayoutBatchId, body: EarlyClosing, options?: CallOptions): Call<PayoutBatch>
  /** Withdraw the proposal to close a batch early. */
  withdrawPayoutBatchClosing(batchId: PayoutBatchId, options?: CallOptions): Call<PayoutBatch>
  /** Hold an unsent batch. */
  holdPayoutBatch(batchId: PayoutBatchId, body?: ReasonGiven, options?: CallOptions): Call<PayoutBatch>
  /** Release a held batch. */
  releasePayoutBatch(batchId: PayoutBatchId, body?: ReasonGiven, options?: CallOptions): Call<PayoutBatch>
  /** Get the payment of a withdrawal. */
  getPayout(payment: string, options?: CallOptions): Call<Payout>
  /** Take a payment out of an unsent batch. */
  removePayment(payment: string, body: PaymentRemoval, options?: CallOptions): Call<RemovedPayment>
  /** Record the outcome of a payment. */
  decidePaymentOutcome(payment: string, body: PaymentOutcome, options?: CallOptions): Call<Payout>
  /** Export an approved batch. */
  exportPayoutBatch(batchId: PayoutBatchId, options?: CallOptions): Call<ExportedFile>
  /** Download the file of a batch. */
  downloadPayoutBatch(batchId: PayoutBatchId, query?: {
    /** Download the file even though it has left before: you know that the bank does not have it. */
    again?: boolean | undefined
  }, options?: CallOptions): Call<Response>
  /** List bank answers that did not fit. */
  listPayoutExceptions(query?: {
    state?: 'open' | 'closed' | 'all' | undefined
    /** The id of the last exception of this page, to get the next page. */
    after?: PayoutExceptionId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<PayoutExceptions, PayoutException>
  /** Get a bank answer that did not fit. */
  getPayoutException(exceptionId: PayoutExceptionId, options?: CallOptions): Call<PayoutExceptionDetails>
  /** Close a bank answer that did not fit. */
  closePayoutException(exceptionId: PayoutExceptionId, body: ExceptionClosing, options?: CallOptions): Call<PayoutException>
  /** Withdraw a proposed decision. */
  withdrawPayoutDecision(exceptionId: PayoutExceptionId, options?: CallOptions): Call<PayoutException>
  /** List decisions that wait for a second person. */
  listPayoutProposals(query?: {
    /** The subject of the last proposal of this page, to get the next page. */
    after?: string | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<PayoutProposals, PayoutProposal>
  /** Confirm a proposed decision. */
  confirmPayoutProposal(subject: string, options?: CallOptions): Call<SettledProposal>
  /** Withdraw a proposed decision or outcome. */
  withdrawPayoutProposal(subject: string, options?: CallOptions): Call<SettledProposal>
  /** Preview closing all exceptions with a text. */
  previewPayoutExceptions(query: {
    rail: string
    /** A text that the bank’s words contain, in any letter case and with any blanks. */
    text: string
  }, options?: CallOptions): Call<ExceptionsByText>
  /** Close all exceptions with a text. */
  closePayoutExceptionsByText(body: ClosingByText, options?: CallOptions): Call<ExceptionsClosed>
  /** List the rules that close exceptions. */
  listPayoutRules(query?: {
    /** The id of the last rule of this page, to get the next page. */
    after?: PayoutRuleId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<PayoutRules, PayoutRule>
  /** Make a rule that closes exceptions. */
  createPayoutRule(body: NewPayoutRule, options?: CallOptions): Call<PayoutRule>
  /** Pause a rule. */
  pausePayoutRule(ruleId: PayoutRuleId, options?: CallOptions): Call<PayoutRule>
  /** Resume a paused rule. */
  resumePayoutRule(ruleId: PayoutRuleId, options?: CallOptions): Call<PayoutRule>
  /** End a rule. */
  endPayoutRule(ruleId: PayoutRuleId, options?: CallOptions): Call<PayoutRule>
  /** Get the health of the service. */
  getStatus(options?: CallOptions): Call<Status>
  /** Check what is missing before this installation can pay. */
  getFindings(options?: CallOptions): Call<Findings>
  /** Record a backup. */
  recordBackup(body: NewBackup, options?: CallOptions): Call<Backup>
  /** Verify the books. */
  verifyLedger(options?: CallOptions): Call<LedgerVerification>
  /** List verifications of the books. */
  listLedgerVerifications(options?: CallOptions): Call<LedgerVerifications>
  /** Get a verification of the books. */
  getLedgerVerification(verificationId: LedgerVerificationId, options?: CallOptions): Call<LedgerVerification>
  /** Search the audit log. */
  listAuditEntries(query?: {
    /** Only changes that concern this partner. */
    partnerId?: PartnerId | undefined
    /** Only changes by this actor: the id of a key or user, or user@host. */
    actor?: string | undefined
    /** Only changes by these actions. */
    actions?: ('partner.create' | 'partner.set' | 'partner.pause' | 'partner.resume' | 'partner.suspend' | 'partner.restore' | 'partner.set_logo' | 'partner.remove_logo' | 'partner.reset' | 'partner.test_values' | 'key.create' | 'key.revoke' | 'tier.set' | 'float.fund' | 'float.withdraw' | 'float.cover' | 'float.floor' | 'float.receive' | 'revenue.withdraw' | 'invoice.issue' | 'invoice.pay' | 'invoice.reopen' | 'invoice.void' | 'member.invite' | 'member.update' | 'member.replace' | 'member.offboard' | 'member.activate' | 'member.reinstate' | 'member.release' | 'member.read' | 'member.export' | 'member.data_export' | 'member.erase' | 'member.lose_keys' | 'member_session.create' | 'metadata.set' | 'member_job.create' | 'member_job.approve' | 'member_job.reject' | 'member_job.expire' | 'member_job.export' | 'pay_run.create' | 'pay_run.revert' | 'pay_cycle.settle' | 'withdrawal.cancel' | 'withdrawal_intent.read' | 'rail.hold' | 'rail.release' | 'rail.resume' | 'payout.remove' | 'payout.outcome' | 'payout.withdraw_outcome' | 'payout_batch.approve' | 'payout_batch.close' | 'payout_batch.withdraw' | 'payout_batch.hold' | 'payout_batch.release' | 'payout_batch.export' | 'payout_batch.download' | 'payout_batch.read' | 'bank_file.import' | 'bank_file.read' | 'payout_exception.read' | 'payout_exception.close' | 'payout_exception.withdraw' | 'payout_exception.close_all' | 'payout_rule.create' | 'payout_rule.pause' | 'payout_rule.resume' | 'payout_rule.end' | 'webhook.create' | 'webhook.update' | 'webhook.rotate' | 'webhook.delete' | 'operator_key.create' | 'operator_key.revoke' | 'installation_key.copy' | 'installation_key.remove' | 'installation_key.rotate' | 'ledger.verify' | 'ledger.detach' | 'ledger.attach' | 'backup.record' | 'backup.restore' | 'user.create' | 'user.sign_in' | 'user.sign_in_failed' | 'user.sign_out' | 'user.end_session' | 'user.set_password' | 'user.link' | 'user.add_totp' | 'user.remove_totp' | 'user.set_roles' | 'user.set' | 'user.disable' | 'user.add_identity' | 'user.remove_identity' | 'invitation.create' | 'invitation.accept' | 'invitation.delete' | 'member.reveal')[] | undefined
    /** Only changes of this resource: an id, or the name of a tier. */
    resourceId?: string | undefined
    /** Only changes at or after this instant. */
    fromDate?: DayOrInstant | undefined
    /** Only changes before this instant. */
    toDate?: DayOrInstant | undefined
    /** The id of the last entry of this page, to get the next page. */
    after?: AuditEntryId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<AuditEntries, AuditEntry>
  /** Search the audit log. */
  listAuditEntriesFile(query?: {
    /** Only changes that concern this partner. */
    partnerId?: PartnerId | undefined
    /** Only changes by this actor: the id of a key or user, or user@host. */
    actor?: string | undefined
    /** Only changes by these actions. */
    actions?: ('partner.create' | 'partner.set' | 'partner.pause' | 'partner.resume' | 'partner.suspend' | 'partner.restore' | 'partner.set_logo' | 'partner.remove_logo' | 'partner.reset' | 'partner.test_values' | 'key.create' | 'key.revoke' | 'tier.set' | 'float.fund' | 'float.withdraw' | 'float.cover' | 'float.floor' | 'float.receive' | 'revenue.withdraw' | 'invoice.issue' | 'invoice.pay' | 'invoice.reopen' | 'invoice.void' | 'member.invite' | 'member.update' | 'member.replace' | 'member.offboard' | 'member.activate' | 'member.reinstate' | 'member.release' | 'member.read' | 'member.export' | 'member.data_export' | 'member.erase' | 'member.lose_keys' | 'member_session.create' | 'metadata.set' | 'member_job.create' | 'member_job.approve' | 'member_job.reject' | 'member_job.expire' | 'member_job.export' | 'pay_run.create' | 'pay_run.revert' | 'pay_cycle.settle' | 'withdrawal.cancel' | 'withdrawal_intent.read' | 'rail.hold' | 'rail.release' | 'rail.resume' | 'payout.remove' | 'payout.outcome' | 'payout.withdraw_outcome' | 'payout_batch.approve' | 'payout_batch.close' | 'payout_batch.withdraw' | 'payout_batch.hold' | 'payout_batch.release' | 'payout_batch.export' | 'payout_batch.download' | 'payout_batch.read' | 'bank_file.import' | 'bank_file.read' | 'payout_exception.read' | 'payout_exception.close' | 'payout_exception.withdraw' | 'payout_exception.close_all' | 'payout_rule.create' | 'payout_rule.pause' | 'payout_rule.resume' | 'payout_rule.end' | 'webhook.create' | 'webhook.update' | 'webhook.rotate' | 'webhook.delete' | 'operator_key.create' | 'operator_key.revoke' | 'installation_key.copy' | 'installation_key.remove' | 'installation_key.rotate' | 'ledger.verify' | 'ledger.detach' | 'ledger.attach' | 'backup.record' | 'backup.restore' | 'user.create' | 'user.sign_in' | 'user.sign_in_failed' | 'user.sign_out' | 'user.end_session' | 'user.set_password' | 'user.link' | 'user.add_totp' | 'user.remove_totp' | 'user.set_roles' | 'user.set' | 'user.disable' | 'user.add_identity' | 'user.remove_identity' | 'invitation.create' | 'invitation.accept' | 'invitation.delete' | 'member.reveal')[] | undefined
    /** Only changes of this resource: an id, or the name of a tier. */
    resourceId?: string | undefined
    /** Only changes at or after this instant. */
    fromDate?: DayOrInstant | undefined
    /** Only changes before this instant. */
    toDate?: DayOrInstant | undefined
    /** The id of the last entry of this page, to get the next page. */
    after?: AuditEntryId | undefined
  }, options?: CallOptions): Call<Response>
  /** Search the audit log of a partner. */
  listPartnerAuditEntries(partnerId: PartnerId, query?: {
    /** Only changes by this actor: the id of a key or user, or user@host. */
    actor?: string | undefined
    /** Only changes by these actions. */
    actions?: ('partner.create' | 'partner.set' | 'partner.pause' | 'partner.resume' | 'partner.suspend' | 'partner.restore' | 'partner.set_logo' | 'partner.remove_logo' | 'partner.reset' | 'partner.test_values' | 'key.create' | 'key.revoke' | 'tier.set' | 'float.fund' | 'float.withdraw' | 'float.cover' | 'float.floor' | 'float.receive' | 'revenue.withdraw' | 'invoice.issue' | 'invoice.pay' | 'invoice.reopen' | 'invoice.void' | 'member.invite' | 'member.update' | 'member.replace' | 'member.offboard' | 'member.activate' | 'member.reinstate' | 'member.release' | 'member.read' | 'member.export' | 'member.data_export' | 'member.erase' | 'member.lose_keys' | 'member_session.create' | 'metadata.set' | 'member_job.create' | 'member_job.approve' | 'member_job.reject' | 'member_job.expire' | 'member_job.export' | 'pay_run.create' | 'pay_run.revert' | 'pay_cycle.settle' | 'withdrawal.cancel' | 'withdrawal_intent.read' | 'rail.hold' | 'rail.release' | 'rail.resume' | 'payout.remove' | 'payout.outcome' | 'payout.withdraw_outcome' | 'payout_batch.approve' | 'payout_batch.close' | 'payout_batch.withdraw' | 'payout_batch.hold' | 'payout_batch.release' | 'payout_batch.export' | 'payout_batch.download' | 'payout_batch.read' | 'bank_file.import' | 'bank_file.read' | 'payout_exception.read' | 'payout_exception.close' | 'payout_exception.withdraw' | 'payout_exception.close_all' | 'payout_rule.create' | 'payout_rule.pause' | 'payout_rule.resume' | 'payout_rule.end' | 'webhook.create' | 'webhook.update' | 'webhook.rotate' | 'webhook.delete' | 'operator_key.create' | 'operator_key.revoke' | 'installation_key.copy' | 'installation_key.remove' | 'installation_key.rotate' | 'ledger.verify' | 'ledger.detach' | 'ledger.attach' | 'backup.record' | 'backup.restore' | 'user.create' | 'user.sign_in' | 'user.sign_in_failed' | 'user.sign_out' | 'user.end_session' | 'user.set_password' | 'user.link' | 'user.add_totp' | 'user.remove_totp' | 'user.set_roles' | 'user.set' | 'user.disable' | 'user.add_identity' | 'user.remove_identity' | 'invitation.create' | 'invitation.accept' | 'invitation.delete' | 'member.reveal')[] | undefined
    /** Only changes of this resource: an id, or the name of a tier. */
    resourceId?: string | undefined
    /** Only changes at or after this instant. */
    fromDate?: DayOrInstant | undefined
    /** Only changes before this instant. */
    toDate?: DayOrInstant | undefined
    /** The id of the last entry of this page, to get the next page. */
    after?: AuditEntryId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<AuditEntries, AuditEntry>
  /** Search the audit log of a partner. */
  listPartnerAuditEntriesFile(partnerId: PartnerId, query?: {
    /** Only changes by this actor: the id of a key or user, or user@host. */
    actor?: string | undefined
    /** Only changes by these actions. */
    actions?: ('partner.create' | 'partner.set' | 'partner.pause' | 'partner.resume' | 'partner.suspend' | 'partner.restore' | 'partner.set_logo' | 'partner.remove_logo' | 'partner.reset' | 'partner.test_values' | 'key.create' | 'key.revoke' | 'tier.set' | 'float.fund' | 'float.withdraw' | 'float.cover' | 'float.floor' | 'float.receive' | 'revenue.withdraw' | 'invoice.issue' | 'invoice.pay' | 'invoice.reopen' | 'invoice.void' | 'member.invite' | 'member.update' | 'member.replace' | 'member.offboard' | 'member.activate' | 'member.reinstate' | 'member.release' | 'member.read' | 'member.export' | 'member.data_export' | 'member.erase' | 'member.lose_keys' | 'member_session.create' | 'metadata.set' | 'member_job.create' | 'member_job.approve' | 'member_job.reject' | 'member_job.expire' | 'member_job.export' | 'pay_run.create' | 'pay_run.revert' | 'pay_cycle.settle' | 'withdrawal.cancel' | 'withdrawal_intent.read' | 'rail.hold' | 'rail.release' | 'rail.resume' | 'payout.remove' | 'payout.outcome' | 'payout.withdraw_outcome' | 'payout_batch.approve' | 'payout_batch.close' | 'payout_batch.withdraw' | 'payout_batch.hold' | 'payout_batch.release' | 'payout_batch.export' | 'payout_batch.download' | 'payout_batch.read' | 'bank_file.import' | 'bank_file.read' | 'payout_exception.read' | 'payout_exception.close' | 'payout_exception.withdraw' | 'payout_exception.close_all' | 'payout_rule.create' | 'payout_rule.pause' | 'payout_rule.resume' | 'payout_rule.end' | 'webhook.create' | 'webhook.update' | 'webhook.rotate' | 'webhook.delete' | 'operator_key.create' | 'operator_key.revoke' | 'installation_key.copy' | 'installation_key.remove' | 'installation_key.rotate' | 'ledger.verify' | 'ledger.detach' | 'ledger.attach' | 'backup.record' | 'backup.restore' | 'user.create' | 'user.sign_in' | 'user.sign_in_failed' | 'user.sign_out' | 'user.end_session' | 'user.set_password' | 'user.link' | 'user.add_totp' | 'user.remove_totp' | 'user.set_roles' | 'user.set' | 'user.disable' | 'user.add_identity' | 'user.remove_identity' | 'invitation.create' | 'invitation.accept' | 'invitation.delete' | 'member.reveal')[] | undefined
    /** Only changes of this resource: an id, or the name of a tier. */
    resourceId?: string | undefined
    /** Only changes at or after this instant. */
    fromDate?: DayOrInstant | undefined
    /** Only changes before this instant. */
    toDate?: DayOrInstant | undefined
    /** The id of the last entry of this page, to get the next page. */
    after?: AuditEntryId | undefined
  }, options?: CallOptions): Call<Response>
  /** List member jobs. */
  listMemberJobs(query?: {
    /** Only jobs of this partner. */
    partnerId?: PartnerId | undefined
    /** Only jobs in these states. */
    statuses?: MemberJobStatus[] | undefined
    /** The id of the last job of this page, to get the next page. */
    after?: MemberJobId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<ListedMemberJobs, ListedMemberJob>
  /** Get a member of any partner. */
  inspectMember(memberId: MemberId, options?: CallOptions): Call<InspectedMember>
  /** Release a member. */
  releaseMember(memberId: MemberId, body: ReasonGiven, options?: CallOptions): Call<ReleasedMember>
  /** Erase a member of any partner. */
  eraseMemberOfPartner(memberId: MemberId, query?: {
    /** Return what would be destroyed and kept, without erasing anything. */
    dryRun?: boolean | undefined
  }, options?: CallOptions): Call<MemberErasure>
  /** List withdrawals. */
  listWithdrawals(query?: {
    /** Only withdrawals of this partner. */
    partnerId?: PartnerId | undefined
    /** Only withdrawals of this member. */
    memberId?: MemberId | undefined
    /** Only with one of these statuses. */
    statuses?: WithdrawalStatus[] | undefined
    /** If true, only withdrawals that need attention: by the partner’s clock with `partnerId` or `memberId`, otherwise by real time. */
    isStuck?: boolean | undefined
    /** The id of the last withdrawal of this page, to get the next page. */
    after?: WithdrawalId | undefined
    /** Maximum number of entries to return, 1 to 1,000. */
    take?: number | undefined
  }, options?: CallOptions): List<InspectedWithdrawals, InspectedWithdrawal>
  /** Get a withdrawal of any partner. */
  inspectWithdrawal(withdrawalId: WithdrawalId, options?: CallOptions): Call<InspectedWithdrawalDetails>
  /** Get the timeline of a withdrawal. */
  getWithdrawalHistory(withdrawalId: WithdrawalId, options?: CallOptions): Call<WithdrawalHistory>
  /** Import a file of a bank. */
  importBankFile(rail: string, file: FileSource, query: {
    /** The name of the file. */
    name: string
  }, options?: CallOptions): Call<ImportedFile>
}

export const partnerStates = ["open","paused","suspended"] as const satisfies PartnerState[]

export const payoutBatchStatuses = ["building","approved","sent","acknowledged","settled","rejected","cancelled"] as const satisfies PayoutBatchStatus[]

export const invoiceStatuses = ["open","paid","void"] as const satisfies InvoiceStatus[]

export type PartnerSettingField = {
  name: keyof PartnerSettings
  group: string
  kind: 'country' | 'zone' | 'choice' | 'day' | 'number' | 'text' | 'switch'
  label: string
  note?: string
  unit?: string
  choices?: Record<string, string>
  /** What a new partner has, unless another value is chosen. */
  byDefault: PartnerSettings[keyof PartnerSettings]
}

export const partnerSettingFields: PartnerSettingField[] = [
  {"name":"country","group":"Place","kind":"country","label":"Country","note":"Two letters; used for phone numbers without a country code","byDefault":"GB"},
  {"name":"timeZone","group":"Place","kind":"zone","label":"Time zone","note":"Used for calendar days, for example Europe/London","byDefault":"Europe/London"},
  {"name":"cycleSchedule","group":"Pay cycles","kind":"choice","label":"Cycle length","choices":{"weekly":"One week","two_weekly":"Two weeks","four_weekly":"Four weeks","semi_monthly":"Half a month","monthly":"One month"},"byDefault":"monthly"},
  {"name":"cycleAnchor","group":"Pay cycles","kind":"day","label":"Cycle start date","note":"For a monthly cycle, from the 1st to the 28th","byDefault":"2024-01-01"},
  {"name":"shortfallPolicy","group":"Pay cycles","kind":"choice","label":"Shortfalls in deductions","choices":{"carry":"Shortfall: carry over","write_off":"Shortfall: write off"},"byDefault":"carry"},
  {"name":"graceMinutes","group":"Withdrawals","kind":"number","label":"Grace period of pay runs","unit":"minutes","byDefault":10},
  {"name":"intentMinutes","group":"Withdrawals","kind":"number","label":"Intent validity","unit":"minutes","byDefault":15},
  {"name":"holdSeconds","group":"Withdrawals","kind":"number","label":"Cancellation period of withdrawals","unit":"seconds","byDefault":30},
  {"name":"remittanceText","group":"Withdrawals","kind":"text","label":"Text on bank statements","note":"On SEPA payments: letters without accents, digits, spaces and / - ? : ( ) . , ' +","byDefault":""},
  {"name":"autoActivate","group":"Members","kind":"switch","label":"Activate members when invited","byDefault":false},
  {"name":"offboardReviewPercent","group":"Members","kind":"number","label":"Offboarding per import without approval","note":"An import that would offboard more needs approval","unit":"% of the members","byDefault":10},
  {"name":"reviewDays","group":"Members","kind":"number","label":"Reject imports awaiting approval after","unit":"days","byDefault":14},
  {"name":"metadataInEvents","group":"Events","kind":"switch","label":"Include metadata in events","byDefault":false},
  {"name":"requestsPerSecond","group":"Requests","kind":"number","label":"Sustained rate","unit":"requests per second","byDefault":100},
  {"name":"requestsBurst","group":"Requests","kind":"number","label":"Burst","unit":"requests","byDefault":200},
]

export type TierTermField = {
  name: Exclude<keyof NewTierTerms, 'currency' | 'version'>
  /** The terms of a line stand side by side. */
  line: string
  kind: 'amount' | 'basisPoints' | 'choice' | 'count'
  label: string
  note?: string
  choices?: Record<string, string>
  /** The value for a new tier. */
  byDefault?: string | number
  /** How null is worded. Other terms are never null. */
  ifNull?: string
}

export const tierTermFields: TierTermField[] = [
  {"name":"feeFixed","line":"fee","kind":"amount","label":"Fee","byDefault":0},
  {"name":"feeBps","line":"fee","kind":"basisPoints","label":"Plus basis points","note":"Of the amount; 100 basis points are 1 %","byDefault":0},
  {"name":"feeMin","line":"bounds of the fee","kind":"amount","label":"Minimum fee","ifNull":"–"},
  {"name":"feeMax","line":"bounds of the fee","kind":"amount","label":"Maximum fee","ifNull":"–"},
  {"name":"feePayer","line":"payer","kind":"choice","label":"Who pays the fee","choices":{"member":"The member","employer":"The employer"},"byDefault":"member"},
  {"name":"lowerLimit","line":"limits","kind":"amount","label":"Minimum withdrawal"},
  {"name":"upperLimit","line":"limits","kind":"amount","label":"Maximum withdrawal"},
  {"name":"withdrawalsPerDay","line":"counts","kind":"count","label":"Withdrawals per day","ifNull":"No limit"},
  {"name":"withdrawalsPerCycle","line":"counts","kind":"count","label":"Withdrawals per cycle","ifNull":"No limit"},
  {"name":"payoutSpeed","line":"speed","kind":"choice","label":"Payout speed","choices":{"standard":"In the next batch","instant":"Instantly"},"ifNull":"Default of the bank"},
]
