// Generated from the migrations by `npm run generate`. Do not edit.
import type { Generated } from 'kysely'
import type { Currency } from '../kernel/money.ts'

export type DB = {
  apiKeys: {
    partnerId: string
    id: string
    mode: 'live' | 'sandbox'
    hash: Buffer
    hint: string
    scopes: string[]
    createdAt: Date
    expiresAt: Date | null
    revokedAt: Date | null
    lastUsedAt: Date | null
  }
  auditLog: {
    partnerId: string
    id: string
    at: Date
    actorKind: 'api_key' | 'cli' | 'operator_key' | 'user' | 'worker'
    actor: string
    action: string
    resourceKind: Generated<string>
    resourceId: string
    details: unknown
    address: string | null
    requestId: string | null
  }
  bankArchiveKeys: {
    rail: string
    day: string
    key: Buffer
  }
  bankFiles: {
    id: string
    rail: string
    sha256: string
    name: string
    messageId: string | null
    status: 'imported' | 'importing' | 'rejected'
    recordCount: Generated<number>
    appliedCount: Generated<number>
    rejectedBatches: Generated<string>
    skippedAccounts: Generated<string[]>
    problem: string | null
    receivedAt: Date
  }
  bankReconciliations: {
    rail: string
    at: Date
  }
  bankRecords: {
    sequence: Generated<bigint>
    rail: string
    bankFileId: string | null
    message: 'ARUCS' | 'camt.052' | 'camt.053' | 'camt.054' | 'pain.002' | null
    messageId: string
    entryKey: string
    line: number | null
    reference: string
    outcome: 'failed' | 'paid' | 'returned' | null
    reason: string | null
    account: string | null
    bookedOn: string | null
    amount: bigint | null
    bankReference: string | null
    movementId: string | null
    recoveryId: string | null
    createdAt: Date
  }
  bankStatements: {
    sequence: Generated<bigint>
    rail: string
    account: string
    day: string
    coversFrom: string | null
    electronicNumber: bigint | null
    legalNumber: bigint | null
    opening: bigint | null
    closing: bigint | null
    currency: Currency
    bankFileId: string
  }
  databasePlaces: {
    one: Generated<boolean>
    systemIdentifier: string
    databaseOid: bigint
    tableOid: bigint
    timeline: string
    seenAt: Date
  }
  detachedMemberSums: {
    year: number
    partnerId: string
    memberId: string
    currency: Currency
    transfers: bigint
    sequence: bigint
    payCycleId: string | null
    earnedPay: bigint
    memberAvailable: bigint
    memberOwed: bigint
    carried: bigint
    writtenOff: bigint
    payoutsPending: bigint
    float: bigint
    fees: bigint
    partnerFees: bigint
    payrollReceivable: bigint
  }
  detachedMonths: {
    month: string
    transfers: bigint
    detachedAt: Date
  }
  detachedPaymentSums: {
    year: number
    partnerId: string
    payCycleId: string
    currency: Currency
    amount: bigint
  }
  disclosures: {
    partnerId: string | null
    id: string
    at: Date
    actorKind: 'api_key' | 'cli' | 'operator_key' | 'user'
    actor: string
    action: string
    resourceKind: Generated<string>
    resourceId: string
    details: unknown
    address: string | null
    requestId: string | null
  }
  eventFeeds: {
    partnerId: string
    lastPosition: bigint
  }
  events: {
    partnerId: string
    id: string
    type: string
    resourceId: string
    sequence: number
    data: unknown
    createdAt: Date
    position: bigint | null
    metadata: unknown
  }
  feeCollections: {
    partnerId: string
    payCycleId: string
    currency: Currency
    covered: bigint
    collected: bigint
  }
  floatCosts: {
    partnerId: string
    movementId: string
    exceptionId: string | null
    amount: bigint
    currency: Currency
    createdAt: Date
  }
  floatLimits: {
    partnerId: string
    currency: Currency
    floor: bigint
    lowSince: Date | null
  }
  floatReferences: {
    partnerId: string
    reference: string
    direction: 'cover' | 'fund' | 'revenue' | 'withdraw'
    currency: Currency
    amount: bigint
    movementId: string
    createdAt: Date
  }
  idempotencyKeys: {
    partnerId: string
    key: string
    fingerprint: Buffer
    operation: string
    status: number | null
    answer: Buffer | null
    resourceId: string | null
    createdAt: Date
    expiresAt: Date
  }
  installation: {
    one: Generated<boolean>
    mode: 'live' | 'sandbox'
    createdAt: Date
  }
  installationAuditLog: {
    id: string
    at: Date
    actorKind: 'cli' | 'operator_key' | 'user' | 'worker'
    actor: string
    action: string
    resourceKind: Generated<string>
    resourceId: string
    details: unknown
    address: string | null
    requestId: string | null
  }
  installationKeyUses: {
    number: number
    purpose: 'browsers' | 'fingerprints' | 'receipts' | 'sealing'
    stage: 'known' | 'retired' | 'used'
  }
  installationKeys: {
    number: number
    provider: string
    wrapped: Buffer
    createdAt: Date
  }
  invoiceLines: {
    partnerId: string
    invoiceId: string
    day: string
    tier: string
    withdrawals: number
    fees: bigint
    givenBack: number
    feesGivenBack: bigint
  }
  invoices: {
    partnerId: string
    id: string
    number: number
    currency: Currency
    status: 'open' | 'paid' | 'void'
    firstDay: string
    lastDay: string
    sum: bigint
    issuedAt: Date
    paidReference: string | null
    paidOn: string | null
  }
  ledgerBalances: {
    partnerId: string
    memberId: string
    currency: Currency
    available: Generated<bigint>
    payCycleId: string | null
    owed: Generated<bigint>
    transferCount: Generated<bigint>
  }
  ledgerCycleChanges: {
    partnerId: string
    payCycleId: string
    currency: Currency
    id: string
    availableChange: bigint
    deductionsChange: bigint
  }
  ledgerCycleTotals: {
    partnerId: string
    payCycleId: string
    currency: Currency
    available: bigint
    deductions: bigint
  }
  ledgerDeductions: {
    partnerId: string
    payCycleId: string
    memberId: string
    currency: Currency
    amount: bigint
  }
  ledgerFloatChanges: {
    partnerId: string
    currency: Currency
    id: string
    floatChange: bigint
    pendingChange: bigint
  }
  ledgerFloatTotals: {
    partnerId: string
    currency: Currency
    floatBalance: bigint
    pendingBalance: bigint
  }
  ledgerMemberSeals: {
    partnerId: string
    memberId: string
    currency: Currency
    sequence: bigint
    payCycleId: string | null
    earnedPay: bigint
    memberAvailable: bigint
    memberOwed: bigint
    carried: bigint
    writtenOff: bigint
    payoutsPending: bigint
    float: bigint
    fees: bigint
    partnerFees: bigint
    payrollReceivable: bigint
  }
  ledgerSealSums: {
    partnerId: string
    payCycleId: string
    part: 'members' | 'paid'
    currency: Currency
    account: string
    debits: bigint
    credits: bigint
  }
  ledgerSeals: {
    partnerId: string
    payCycleId: string
    startedAt: Date
    unfinishedWithdrawals: string[]
    unsealedFrom: Date
    membersAfter: Generated<string | null>
    paidUntil: Date | null
    refusedAt: Date | null
    sealedAt: Date | null
  }
  ledgerTransfers: {
    partnerId: string
    id: string
    movementId: string
    reason: string
    debit: string
    credit: string
    amount: bigint
    currency: Currency
    memberId: string | null
    payCycleId: string | null
    memberSequence: bigint | null
    createdAt: Date
  }
  ledgerVerifications: {
    id: string
    requestedBy: string
    requestedAt: Date
    startedAt: Date | null
    endedAt: Date | null
    checksDone: Generated<number>
    checksTotal: number
    checks: unknown
    problem: string | null
  }
  memberCountChanges: {
    partnerId: string
    id: Generated<string>
    tier: string
    status: string
    change: number
  }
  memberCounts: {
    partnerId: string
    tier: string
    status: string
    count: bigint
  }
  memberErasures: {
    partnerId: string
    memberId: string
    erasedAt: Date
    receipt: string
    lastPaidAt: Date | null
    paymentKeyDestroyedAt: Date | null
  }
  memberFingerprintKey: {
    one: Generated<boolean>
    number: number
  }
  memberFormerNames: {
    partnerId: string
    memberId: string
    fingerprint: Buffer
    changedAt: Date
  }
  memberImportKeys: {
    partnerId: string
    importId: string
    wrapped: Buffer
    fingerprintKey: number
  }
  memberImportProgress: {
    partnerId: string
    importId: string
    stepsDone: number
  }
  memberImportRows: {
    partnerId: string
    importId: string
    row: number
    newMemberId: string
    firstName: string
    lastName: string
    tier: string
    sealed: Buffer
    emailFingerprint: Buffer | null
    workerIdFingerprint: Buffer | null
    accountDetailsFingerprint: Buffer | null
    phoneFingerprint: Buffer | null
    dobFingerprint: Buffer | null
    genderFingerprint: Buffer | null
    enablePayroll: boolean | null
    faults: string | null
  }
  memberImportSteps: {
    partnerId: string
    importId: string
    step: number
    action: 'Invite' | 'Offboard' | 'Reinstate' | 'Unchanged' | 'Update'
    memberId: string
    command: Buffer | null
    fault: string | null
  }
  memberImports: {
    partnerId: string
    id: string
    kind: 'actions' | 'file'
    columns: string[]
    removesAccounts: boolean
    rowTo: number
    status: 'AwaitingReview' | 'Completed' | 'NotReady' | 'Processing' | 'Rejected'
    invite: number
    update: number
    reinstate: number
    offboard: number
    unchanged: number
    offboardMax: number | null
    restAction: Generated<'Invite' | 'Unchanged'>
    stepsDone: Generated<number>
    appliedThrough: Generated<number>
    createdAt: Date
    reviewSince: Date | null
    reviewedAt: Date | null
    endedAt: Date | null
    forgottenAt: Date | null
    eventCount: Generated<number>
  }
  memberKeys: {
    partnerId: string
    memberId: string
    profileKey: Buffer | null
    paymentKey: Buffer | null
  }
  memberSessions: {
    partnerId: string
    id: string
    memberId: string
    keyId: string
    hash: Buffer
    scope: 'read' | 'withdraw'
    origin: string | null
    createdAt: Date
    expiresAt: Date
  }
  members: {
    partnerId: string
    id: string
    status: 'active' | 'inactive' | 'invited'
    firstName: string
    lastName: string
    tier: string
    profile: Buffer | null
    account: Buffer | null
    emailFingerprint: Buffer | null
    workerIdFingerprint: Buffer | null
    accountDetailsFingerprint: Buffer | null
    phoneFingerprint: Buffer | null
    dobFingerprint: Buffer | null
    genderFingerprint: Buffer | null
    emailFingerprintNext: Buffer | null
    workerIdFingerprintNext: Buffer | null
    accountDetailsFingerprintNext: Buffer | null
    phoneFingerprintNext: Buffer | null
    dobFingerprintNext: Buffer | null
    genderFingerprintNext: Buffer | null
    enablePayroll: boolean
    accountRefused: string | null
    reviewReason: string | null
    createdAt: Date
    updatedAt: Date
    instructedAt: Date
    eventCount: Generated<number>
    erasedAt: Date | null
  }
  metadata: {
    partnerId: string
    kind: 'member' | 'pay_run' | 'webhook' | 'withdrawal_intent'
    resourceId: string
    key: string
    value: string
    position: number
    memberId: Generated<string | null>
    withdrawalIntentId: Generated<string | null>
    payRunId: Generated<string | null>
    webhookId: Generated<string | null>
  }
  migrationSteps: {
    migration: string
    number: number
    phase: 'contract' | 'expand'
    passedKey: string[] | null
    rowCount: Generated<bigint>
    finishedAt: Date | null
  }
  migrations: {
    name: string
    checksum: string
    compatibleWith: string | null
    begunAt: Date
  }
  operatorKeys: {
    id: string
    name: string
    hash: Buffer
    hint: string
    createdBy: string
    createdAt: Date
    expiresAt: Date | null
    revokedBy: string | null
    revokedAt: Date | null
    lastUsedAt: Date | null
  }
  operatorNotices: {
    channel: 'email' | 'webhook'
    reported: unknown
    reportedAt: Date | null
    message: unknown
    attempts: number
    nextAttemptAt: Date | null
    checkedAt: Date
    fault: string | null
  }
  partnerLogos: {
    partnerId: string
    mediaType: 'image/jpeg' | 'image/png' | 'image/webp'
    bytes: Buffer
    changedAt: Date
  }
  partners: {
    id: string
    name: string
    country: string
    timeZone: string
    autoActivate: Generated<boolean>
    graceMinutes: Generated<number>
    intentMinutes: Generated<number>
    holdSeconds: Generated<number>
    requestsPerSecond: Generated<number>
    requestsBurst: Generated<number>
    cycleSchedule: Generated<'four_weekly' | 'monthly' | 'semi_monthly' | 'two_weekly' | 'weekly'>
    cycleAnchor: Generated<string>
    shortfallPolicy: Generated<'carry' | 'write_off'>
    offboardReviewPercent: Generated<number>
    reviewDays: Generated<number>
    remittanceText: Generated<string>
    metadataInEvents: Generated<boolean>
    eventCount: Generated<number>
    paused: Generated<boolean>
    suspendedAt: Date | null
    createdAt: Date
  }
  payCycles: {
    partnerId: string
    id: string
    startDate: string
    endDate: string
    status: 'Closed' | 'Open'
    createdAt: Date
    closedAt: Date | null
    releasedAt: Date | null
    settledAt: Date | null
  }
  payRunLines: {
    partnerId: string
    payRunId: string
    line: number
    memberId: string
    amount: bigint
    currency: Currency
  }
  payRuns: {
    partnerId: string
    id: string
    payCycleId: string
    status: 'Available' | 'Reverted' | 'Scheduled'
    scheduledFor: Date
    availableAt: Date | null
    revertedAt: Date | null
    createdAt: Date
    lineCount: number
    memberCount: number
    totals: unknown
    fileName: string | null
  }
  payoutBatchApprovals: {
    batchId: string
    person: string
    login: string | null
    at: Date
  }
  payoutBatchCopies: {
    batchId: string
    number: number
    kind: 'delivery' | 'download' | 'export'
    person: string | null
    at: Date
    day: string
  }
  payoutBatchEndings: {
    batchId: string
    rail: string
    outcome: 'failed' | 'paid'
    reasonCode: string | null
    messageId: string
    keyPrefix: string
    bankFileId: string | null
    line: number | null
    decidedAt: Date
  }
  payoutBatches: {
    id: string
    messageId: string
    rail: string
    currency: Currency
    debtor: string
    valueDate: string
    isInstant: boolean
    cutOffAt: Date
    status: 'acknowledged' | 'approved' | 'building' | 'cancelled' | 'rejected' | 'sent' | 'settled'
    held: Generated<boolean>
    paymentCount: Generated<number>
    controlTotal: Generated<bigint>
    fileName: string | null
    fileSha256: string | null
    nameCheck: string | null
    createdAt: Date
    closedAt: Date | null
    isFull: Generated<boolean>
    approvedAt: Date | null
    approvedAutomatically: Generated<boolean>
    sendingAt: Date | null
    exportedTo: string | null
    sentAt: Date | null
    acknowledgedAt: Date | null
    answeredAt: Date | null
    endedAt: Date | null
    copyTakenAt: Date | null
    givenBackAt: Date | null
    brakeReleasedAt: Date | null
  }
  payoutExceptions: {
    id: string
    rail: string
    kind:
      | 'amount'
      | 'bank_balance'
      | 'blocked'
      | 'contradiction'
      | 'duplicate'
      | 'float'
      | 'money_in'
      | 'money_out'
      | 'opening_balance'
      | 'paid_after_give_back'
      | 'refused'
      | 'rejected'
      | 'statement_gap'
      | 'unmatched'
      | 'unreadable'
    bankFileId: string | null
    line: number | null
    fingerprint: string
    account: string | null
    reference: string | null
    partnerId: string | null
    withdrawalId: string | null
    outcome: 'failed' | 'paid' | 'returned' | null
    restriction: 'account_refused' | 'review' | null
    amount: bigint | null
    currency: Currency | null
    bookedOn: string | null
    reasonCode: string | null
    reason: string
    bankText: Buffer | null
    bankTextAboutMember: Buffer | null
    namesOurs: Generated<boolean>
    recoveryId: string | null
    openedAt: Date
    closedAt: Date | null
    closedBy: string | null
    decision: 'applied' | 'attach' | 'book' | 'give_back' | 'ignore' | 'recover' | 'write_off' | null
    note: string | null
    closedByText: string | null
    ruleId: string | null
  }
  payoutProposals: {
    sequence: Generated<bigint>
    subject: string
    decision: string
    note: string
    person: string
    login: string | null
    proposedAt: Date
    confirmedBy: string | null
    confirmedLogin: string | null
    confirmedIn: string | null
    endedAt: Date | null
    endedBecause: string | null
  }
  payoutRailHolds: {
    sequence: Generated<bigint>
    rail: string
    heldAt: Date
    heldBy: string
    releasedAt: Date | null
    releasedBy: string | null
  }
  payoutReferences: {
    reference: string
    partnerId: string
  }
  payoutRules: {
    id: string
    rail: string
    text: string
    note: string
    status: 'active' | 'ended' | 'paused' | 'proposed'
    proposedBy: string
    proposedAt: Date
    confirmedBy: string | null
    confirmedAt: Date | null
    endedAt: Date | null
  }
  payouts: {
    partnerId: string
    withdrawalId: string
    reference: string
    rail: string
    netAmount: bigint
    currency: Currency
    createdAt: Date
    batchId: string | null
    remittanceText: Generated<string>
    expectedAt: Date | null
    outcome: 'failed' | 'paid' | 'returned' | null
    reasonCode: string | null
    reason: string | null
    restriction: 'account_refused' | 'review' | null
    removedAt: Date | null
    sentAt: Date | null
    requestOpenAt: Date | null
    refusedTransfers: Generated<string[]>
    retryAt: Date | null
    transferId: string | null
    transferSequence: number | null
  }
  railCursors: {
    rail: string
    cursor: string
    readAt: Date
  }
  removals: {
    kind: string
    day: string
    count: bigint
    at: Date
  }
  requestLog: {
    partnerId: string
    id: string
    requestId: string | null
    createdAt: Date
    method: string
    route: string | null
    path: string
    status: number
    durationMs: number
    keyId: string
    idempotencyKey: string | null
    isReplayed: boolean
    errorCodes: string[]
    resourceId: string | null
  }
  restores: {
    sequence: Generated<bigint>
    detectedAt: Date
    how: string
    recoveredUntil: Date | null
    comparedAt: Date | null
    comparedBy: string | null
  }
  sandboxClockMoves: {
    partnerId: string
    id: string
    idempotencyKey: string | null
    fingerprint: Buffer | null
    startsAt: Date
    target: Date
    offsetMs: bigint | null
    ran: Generated<unknown>
    leasedBy: string | null
    leasedUntil: Date | null
    endedAt: Date | null
  }
  sandboxClocks: {
    partnerId: string
    offsetMs: bigint
  }
  settlementDues: {
    partnerId: string
    payCycleId: string
    currency: Currency
    amount: bigint
    received: Generated<bigint>
    receivedByHand: Generated<bigint>
    settledAt: Date
    receivedAt: Date | null
  }
  settlementFees: {
    partnerId: string
    withdrawalId: string
    part: number
    payCycleId: string
    currency: Currency
    fee: bigint
    due: bigint
    covered: bigint
    writtenOff: bigint
    carried: bigint
    carriedTo: string | null
    releasedAt: Date | null
  }
  settlementLines: {
    partnerId: string
    payCycleId: string
    memberId: string
    currency: Currency
    deducted: bigint
    taken: bigint
    outcome: 'matched' | 'over' | 'short' | 'unknown'
    carried: Generated<bigint>
    writtenOff: Generated<bigint>
  }
  signInFailures: {
    counter: Buffer
    failures: number
    failedAt: Date
    refusedUntil: Date
  }
  simulatedBankFaults: {
    partnerId: string
    sequence: Generated<bigint>
    fault: 'contradiction' | 'duplicate' | 'error' | 'late' | 'timeout' | 'unknown_reference'
    remaining: number
  }
  simulatedBankInstructions: {
    partnerId: string
    withdrawalId: string
    outcome: 'failed' | 'hold' | 'paid' | 'returned'
    reason: string | null
    restriction: 'account_refused' | 'review' | null
  }
  simulatedBankPayments: {
    reference: string
    partnerId: string
    behaviour: string
    amount: bigint
    currency: Currency
    submissions: Generated<number>
    receivedAt: Date
  }
  simulatedBankReports: {
    sequence: Generated<bigint>
    partnerId: string
    reference: string
    outcome: 'failed' | 'paid' | 'returned'
    reason: string | null
    restriction: 'account_refused' | 'review' | null
    reportedAt: Date
  }
  stagedBankRecords: {
    bankFileId: string
    step: number
    partnerId: string
    place: number
    head: string
    recordCount: number
    records: Buffer
  }
  stateTransitions: {
    entity: string
    fromState: string
    toState: string
  }
  tierVersions: {
    partnerId: string
    tier: string
    version: number
    feeFixed: bigint
    feeBps: number
    feeMin: bigint | null
    feeMax: bigint | null
    feePayer: 'employer' | 'member'
    lowerLimit: bigint
    upperLimit: bigint
    withdrawalsPerDay: number | null
    withdrawalsPerCycle: number | null
    payoutSpeed: 'instant' | 'standard' | null
    createdAt: Date
  }
  tiers: {
    partnerId: string
    name: string
    currency: Currency
    version: number
    createdAt: Date
  }
  unpaidWithdrawals: {
    partnerId: string
    withdrawalId: string
    status: string
    dueAt: Date | null
  }
  userBrowsers: {
    tokenHash: Buffer
    userId: string
    lastUsedAt: Date
  }
  userIdentities: {
    issuer: string
    subject: string
    userId: string
    linkedAt: Date
  }
  userInvitations: {
    id: string
    hash: Buffer
    email: string
    partnerId: string | null
    roles: string[]
    invitedBy: string
    createdAt: Date
    expiresAt: Date
  }
  userLinks: {
    hash: Buffer
    purpose: 'password' | 'set_up' | 'sign_in'
    userId: string | null
    createdAt: Date
    expiresAt: Date
  }
  userRecoveryCodes: {
    userId: string
    hash: Buffer
  }
  userRoles: {
    partnerId: string
    userId: string
    role: 'admin' | 'developer' | 'payroll' | 'support' | 'viewer'
  }
  userSessions: {
    id: string
    userId: string
    hash: Buffer
    method: 'link' | 'oidc' | 'password'
    address: string | null
    userAgent: string | null
    createdAt: Date
    lastUsedAt: Date
    expiresAt: Date
  }
  users: {
    id: string
    email: string
    name: string
    isOperator: boolean
    passwordHash: string | null
    totpSecret: Buffer | null
    totpConfirmedAt: Date | null
    totpLastStep: bigint | null
    createdAt: Date
    disabledAt: Date | null
  }
  webhookAttempts: {
    partnerId: string
    endpointId: string
    eventId: string
    number: number
    reason: 'replay' | 'schedule' | 'test'
    at: Date
    durationMs: number
    status: number | null
    error: 'address' | 'connection' | 'dns' | 'gone' | 'protocol' | 'redirect' | 'status' | 'timeout' | 'tls' | null
    response: string | null
  }
  webhookDeliveries: {
    partnerId: string
    endpointId: string
    eventId: string
    type: string
    state: 'delivered' | 'failed' | 'pending' | 'skipped'
    sample: unknown
    createdAt: Date
    attemptCount: Generated<number>
    scheduledCount: Generated<number>
    lastAttemptAt: Date | null
    dueAt: Date | null
    replayAt: Date | null
  }
  webhookEndpoints: {
    partnerId: string
    id: string
    url: string
    description: string | null
    types: string[]
    headers: Buffer
    enabled: Generated<boolean>
    disabledReason: 'failing' | 'gone' | 'requested' | null
    createdAt: Date
    deletedAt: Date | null
    sincePosition: bigint
    failureCount: Generated<number>
    blockedUntil: Date | null
    failingSince: Date | null
    failingDays: Generated<number>
    lastFailingDay: string | null
    isRecovering: Generated<boolean>
    dueAt: Date | null
    leasedUntil: Date | null
    eventCount: Generated<number>
  }
  webhookFeeds: {
    partnerId: string
    position: bigint
  }
  webhookSecrets: {
    partnerId: string
    endpointId: string
    secret: Buffer
    createdAt: Date
    expiresAt: Date | null
  }
  withdrawalIntentExpiry: {
    one: Generated<boolean>
    expiredUntil: Date
    removedUntil: Date
  }
  withdrawalIntents: {
    partnerId: string
    id: string
    memberId: string
    payCycleId: string
    status: 'cancelled' | 'completed' | 'expired' | 'pending'
    currency: Currency
    grossAmount: bigint
    netAmount: bigint
    fee: bigint
    employerFee: bigint
    tier: string
    tierVersion: number
    account: Buffer
    createdAt: Date
    expiresAt: Date
  }
  withdrawalRecoveries: {
    partnerId: string
    withdrawalId: string
    exceptionId: string
    fromStatus: 'failed' | 'paid' | 'returned' | 'submitted'
    givenBackInCycleId: string | null
    payCycleId: string | null
    takenAmount: bigint
    recoveredAt: Date
  }
  withdrawalTotalFeeds: {
    partnerId: string
    position: bigint
  }
  withdrawalTotals: {
    partnerId: string
    currency: Currency
    kind: 'cycle' | 'day'
    period: string
    withdrawals: bigint
    grossAmount: bigint
    fees: bigint
    employerFees: bigint
    givenBack: bigint
    givenBackGrossAmount: bigint
  }
  withdrawals: {
    partnerId: string
    id: string
    withdrawalIntentId: string
    memberId: string
    payCycleId: string
    status: 'cancelled' | 'failed' | 'held' | 'paid' | 'returned' | 'submitted'
    currency: Currency
    grossAmount: bigint
    netAmount: bigint
    fee: bigint
    employerFee: bigint
    balanceAfter: bigint
    createdAt: Date
    dueAt: Date | null
    attempts: Generated<number>
    reason: string | null
    earlierReasons: Generated<string[]>
    adjustedInCycleId: string | null
    recoveredBy: string | null
  }
  workerHeartbeats: {
    workerId: string
    host: string
    processId: number
    startedAt: Date
    beatAt: Date
  }
}
