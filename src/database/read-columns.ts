import type { DB } from './tables.ts'

// What the read role may read, by table: an allow-list, so that a new column is unreadable until it is named here. The
// compiler refuses a column that is in neither list.

/** Columns that the read role may select. */
const readable = {
  apiKeys: 'partnerId id mode hint scopes createdAt expiresAt revokedAt lastUsedAt',
  auditLog: 'partnerId id at actorKind actor action resourceKind resourceId details address requestId',
  bankArchiveKeys: 'rail day',
  bankFiles:
    'id rail sha256 name messageId status recordCount problem receivedAt rejectedBatches skippedAccounts appliedCount',
  bankReconciliations: 'rail at',
  bankRecords:
    'sequence rail bankFileId messageId entryKey line reference outcome reason createdAt movementId account bookedOn amount bankReference recoveryId message',
  bankStatements:
    'sequence rail account day coversFrom electronicNumber legalNumber opening closing currency bankFileId',
  databasePlaces: 'one systemIdentifier databaseOid tableOid timeline seenAt',
  detachedMemberSums:
    'year partnerId memberId currency transfers sequence payCycleId earnedPay memberAvailable memberOwed carried writtenOff payoutsPending float fees partnerFees payrollReceivable',
  detachedMonths: 'month transfers detachedAt',
  detachedPaymentSums: 'year partnerId payCycleId currency amount',
  disclosures: 'partnerId id at actorKind actor action resourceKind resourceId details address requestId',
  eventFeeds: 'partnerId lastPosition',
  events: 'partnerId id type resourceId sequence data createdAt position metadata',
  feeCollections: 'partnerId payCycleId currency covered collected',
  floatCosts: 'partnerId movementId exceptionId amount currency createdAt',
  floatLimits: 'partnerId currency floor lowSince',
  floatReferences: 'partnerId reference direction currency amount movementId createdAt',
  idempotencyKeys: 'partnerId key operation status resourceId createdAt expiresAt',
  installation: 'one mode createdAt',
  installationAuditLog: 'id at actorKind actor action resourceKind resourceId details address requestId',
  installationKeyUses: 'number purpose stage',
  installationKeys: 'number provider createdAt',
  invoiceLines: 'partnerId invoiceId day tier withdrawals fees givenBack feesGivenBack',
  invoices: 'partnerId id number currency status firstDay lastDay sum issuedAt paidReference paidOn',
  ledgerBalances: 'partnerId memberId currency available payCycleId owed transferCount',
  ledgerCycleChanges: 'partnerId payCycleId currency id availableChange deductionsChange',
  ledgerCycleTotals: 'partnerId payCycleId currency available deductions',
  ledgerDeductions: 'partnerId payCycleId memberId currency amount',
  ledgerFloatChanges: 'partnerId currency id floatChange pendingChange',
  ledgerFloatTotals: 'partnerId currency floatBalance pendingBalance',
  ledgerMemberSeals:
    'partnerId memberId currency sequence payCycleId earnedPay memberAvailable memberOwed carried writtenOff payoutsPending float fees partnerFees payrollReceivable',
  ledgerSealSums: 'partnerId payCycleId part currency account debits credits',
  ledgerSeals:
    'partnerId payCycleId startedAt unfinishedWithdrawals unsealedFrom membersAfter paidUntil refusedAt sealedAt',
  ledgerTransfers:
    'partnerId id movementId reason debit credit amount currency memberId payCycleId createdAt memberSequence',
  ledgerVerifications: 'id requestedBy requestedAt startedAt endedAt checksDone checksTotal checks problem',
  memberCountChanges: 'partnerId id tier status change',
  memberCounts: 'partnerId tier status count',
  memberFingerprintKey: 'one number',
  memberFormerNames: 'partnerId memberId changedAt',
  memberImportKeys: 'partnerId importId fingerprintKey',
  memberImportProgress: 'partnerId importId stepsDone',
  memberErasures: 'partnerId memberId erasedAt lastPaidAt paymentKeyDestroyedAt',
  memberImportRows: 'partnerId importId row newMemberId firstName lastName tier enablePayroll faults',
  memberImportSteps: 'partnerId importId step action memberId fault',
  memberImports:
    'partnerId id kind columns removesAccounts rowTo status invite update reinstate offboard unchanged stepsDone appliedThrough createdAt reviewedAt endedAt forgottenAt offboardMax reviewSince restAction eventCount',
  memberKeys: 'partnerId memberId',
  memberSessions: 'partnerId id memberId keyId scope origin createdAt expiresAt',
  members:
    'partnerId id status firstName lastName tier enablePayroll createdAt updatedAt instructedAt accountRefused reviewReason eventCount erasedAt',
  metadata: 'partnerId kind resourceId key value position memberId withdrawalIntentId payRunId webhookId',
  migrationSteps: 'migration number phase passedKey rowCount finishedAt',
  migrations: 'name checksum compatibleWith begunAt',
  operatorNotices: 'channel reported reportedAt message attempts nextAttemptAt checkedAt fault',
  operatorKeys: 'id name hint createdBy createdAt expiresAt revokedBy revokedAt lastUsedAt',
  partnerLogos: 'partnerId mediaType bytes changedAt',
  partners:
    'id name country timeZone autoActivate graceMinutes intentMinutes requestsPerSecond requestsBurst paused suspendedAt createdAt holdSeconds cycleSchedule cycleAnchor shortfallPolicy offboardReviewPercent reviewDays remittanceText metadataInEvents eventCount',
  payCycles: 'partnerId id startDate endDate status createdAt closedAt releasedAt settledAt',
  payRunLines: 'partnerId payRunId line memberId amount currency',
  payRuns:
    'partnerId id payCycleId status scheduledFor availableAt createdAt revertedAt lineCount memberCount totals fileName',
  payoutBatchApprovals: 'batchId person at login',
  payoutBatchCopies: 'batchId number kind person at day',
  payoutBatchEndings: 'batchId rail outcome reasonCode messageId keyPrefix bankFileId line decidedAt',
  payoutBatches:
    'id messageId rail currency debtor valueDate isInstant cutOffAt status held paymentCount controlTotal fileName fileSha256 nameCheck createdAt closedAt approvedAt approvedAutomatically sendingAt sentAt acknowledgedAt endedAt answeredAt exportedTo copyTakenAt givenBackAt brakeReleasedAt isFull',
  payoutExceptions:
    'id rail kind bankFileId line fingerprint reference partnerId withdrawalId outcome amount currency reasonCode reason openedAt closedAt closedBy decision note restriction bookedOn recoveryId namesOurs account closedByText ruleId',
  payoutProposals:
    'sequence subject decision note person login proposedAt confirmedBy confirmedLogin confirmedIn endedAt endedBecause',
  payoutRailHolds: 'sequence rail heldAt heldBy releasedAt releasedBy',
  payoutReferences: 'reference partnerId',
  payoutRules: 'id rail text note status proposedBy proposedAt confirmedBy confirmedAt endedAt',
  payouts:
    'partnerId withdrawalId reference rail netAmount currency createdAt batchId expectedAt outcome reasonCode reason removedAt restriction sentAt transferId transferSequence requestOpenAt refusedTransfers retryAt remittanceText',
  railCursors: 'rail cursor readAt',
  removals: 'kind day count at',
  requestLog:
    'partnerId id requestId createdAt method route path status durationMs keyId idempotencyKey isReplayed errorCodes resourceId',
  restores: 'sequence detectedAt how recoveredUntil comparedAt comparedBy',
  sandboxClockMoves: 'partnerId id idempotencyKey startsAt target ran leasedBy leasedUntil endedAt offsetMs',
  sandboxClocks: 'partnerId offsetMs',
  settlementDues: 'partnerId payCycleId currency amount received settledAt receivedAt receivedByHand',
  settlementFees:
    'partnerId withdrawalId part payCycleId currency fee due covered writtenOff carried carriedTo releasedAt',
  settlementLines: 'partnerId payCycleId memberId currency deducted taken outcome carried writtenOff',
  signInFailures: 'failures failedAt refusedUntil',
  simulatedBankFaults: 'partnerId sequence fault remaining',
  simulatedBankInstructions: 'partnerId withdrawalId outcome reason restriction',
  simulatedBankPayments: 'reference behaviour amount currency submissions receivedAt partnerId',
  simulatedBankReports: 'sequence reference outcome reason reportedAt partnerId restriction',
  stagedBankRecords: 'bankFileId step partnerId place head recordCount',
  stateTransitions: 'entity fromState toState',
  tierVersions:
    'partnerId tier version feeFixed feeBps feeMin feeMax feePayer lowerLimit upperLimit withdrawalsPerDay withdrawalsPerCycle createdAt payoutSpeed',
  tiers: 'partnerId name currency version createdAt',
  unpaidWithdrawals: 'partnerId withdrawalId status dueAt',
  userBrowsers: 'userId lastUsedAt',
  userIdentities: 'issuer subject userId linkedAt',
  userInvitations: 'id email partnerId roles invitedBy createdAt expiresAt',
  userLinks: 'purpose userId createdAt expiresAt',
  userRecoveryCodes: 'userId',
  userRoles: 'partnerId userId role',
  userSessions: 'id userId method address userAgent createdAt lastUsedAt expiresAt',
  users: 'id email name isOperator totpConfirmedAt totpLastStep createdAt disabledAt',
  webhookAttempts: 'partnerId endpointId eventId number reason at durationMs status error response',
  webhookDeliveries:
    'partnerId endpointId eventId type state sample createdAt attemptCount scheduledCount lastAttemptAt dueAt replayAt',
  webhookEndpoints:
    'partnerId id description types enabled disabledReason createdAt deletedAt sincePosition failureCount blockedUntil failingSince failingDays lastFailingDay isRecovering dueAt leasedUntil eventCount',
  webhookFeeds: 'partnerId position',
  webhookSecrets: 'partnerId endpointId createdAt expiresAt',
  withdrawalIntentExpiry: 'one expiredUntil removedUntil',
  withdrawalIntents:
    'partnerId id memberId payCycleId status currency grossAmount netAmount fee employerFee tier tierVersion createdAt expiresAt',
  withdrawalRecoveries:
    'partnerId withdrawalId exceptionId fromStatus givenBackInCycleId payCycleId takenAmount recoveredAt',
  withdrawalTotalFeeds: 'partnerId position',
  withdrawalTotals:
    'partnerId currency kind period withdrawals grossAmount fees employerFees givenBack givenBackGrossAmount',
  withdrawals:
    'partnerId id withdrawalIntentId memberId payCycleId status currency grossAmount netAmount fee employerFee createdAt dueAt attempts reason earlierReasons adjustedInCycleId balanceAfter recoveredBy',
  workerHeartbeats: 'workerId host processId startedAt beatAt',
} as const satisfies { readonly [Table in keyof DB]: string }

/**
 * Columns that the read role may not select: secrets that could be used, sealed or hashed values that mean nothing to a reader,
 * and the addresses of webhooks, which often contain a token.
 */
const withheld = {
  apiKeys: 'hash',
  bankArchiveKeys: 'key',
  idempotencyKeys: 'fingerprint answer',
  installationKeys: 'wrapped',
  memberErasures: 'receipt',
  memberFormerNames: 'fingerprint',
  memberImportKeys: 'wrapped',
  memberImportRows:
    'sealed emailFingerprint workerIdFingerprint accountDetailsFingerprint phoneFingerprint dobFingerprint genderFingerprint',
  memberImportSteps: 'command',
  memberKeys: 'profileKey paymentKey',
  memberSessions: 'hash',
  members:
    'profile account emailFingerprint workerIdFingerprint accountDetailsFingerprint phoneFingerprint dobFingerprint genderFingerprint emailFingerprintNext workerIdFingerprintNext accountDetailsFingerprintNext phoneFingerprintNext dobFingerprintNext genderFingerprintNext',
  operatorKeys: 'hash',
  payoutExceptions: 'bankText bankTextAboutMember',
  sandboxClockMoves: 'fingerprint',
  signInFailures: 'counter',
  stagedBankRecords: 'records',
  userBrowsers: 'tokenHash',
  userInvitations: 'hash',
  userLinks: 'hash',
  userRecoveryCodes: 'hash',
  userSessions: 'hash',
  users: 'passwordHash totpSecret',
  webhookEndpoints: 'url headers',
  webhookSecrets: 'secret',
  withdrawalIntents: 'account',
} as const satisfies { readonly [Table in keyof DB]?: string }

/** The columns of the queue’s view that show its health. Payloads, keys and errors name members and partners. */
export const readableQueueColumns = ['task_identifier', 'run_at', 'attempts', 'max_attempts', 'locked_at']

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text
type Withheld<Table> = Table extends keyof typeof withheld ? Words<(typeof withheld)[Table]> : never
type Unlisted = {
  [Table in keyof DB]: Exclude<keyof DB[Table], Words<(typeof readable)[Table]> | Withheld<Table>>
}[keyof DB]

/** The columns that the read role may select. A type error here names the column of a new migration: add it to a list. */
export const readColumns: [Unlisted] extends [never] ? Columns : Unlisted = columnsOf(readable)

/** The columns that are withheld from the read role. */
export const withheldColumns: Columns = columnsOf(withheld)

type Columns = readonly (readonly [table: string, columns: string[]])[]

function columnsOf(lists: Record<string, string>): Columns {
  return Object.entries(lists).map(([table, words]) => [table, words.split(' ')])
}
