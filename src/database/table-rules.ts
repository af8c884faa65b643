import type { DB } from './tables.ts'

/** What the program may do to the rows of a table, besides reading them. */
export type TableRule<Column extends string = string> =
  /** Nothing; only migrations and triggers write the table. */
  | 'read-only'
  /** Insert. Rows that are never updated cannot be locked with `select … for update` either. */
  | 'append-only'
  /** Insert and delete. */
  | 'disposable'
  /** Insert, and update every column except the primary key. */
  | 'permanent'
  /** Insert, update every column except the primary key, and delete. */
  | 'free'
  /** Insert, and update every column except the primary key and these. */
  | { protects: readonly Column[]; deletable?: true }
  /** Insert, and update these columns only: the rule where a row keeps its terms. */
  | { changes: readonly Column[]; deletable?: true }

/** The rule of each table. The app role's grants derive from it, and tests compare it with the triggers that bind the owner too. */
export const tableRules: { readonly [Table in keyof DB]: TableRule<keyof DB[Table] & string> } = {
  apiKeys: { changes: ['expiresAt', 'revokedAt', 'lastUsedAt'] },
  auditLog: 'append-only',
  bankArchiveKeys: 'disposable',
  bankFiles: { protects: ['rail', 'sha256'] },
  bankReconciliations: 'permanent',
  bankRecords: 'append-only',
  bankStatements: { changes: ['opening', 'closing', 'coversFrom', 'bankFileId'] },
  databasePlaces: 'permanent',
  // Written by the owner, who detaches and attaches.
  detachedMemberSums: 'read-only',
  detachedMonths: 'read-only',
  detachedPaymentSums: 'read-only',
  disclosures: 'append-only',
  eventFeeds: 'permanent',
  events: { changes: ['position', 'metadata'] },
  feeCollections: 'permanent',
  floatCosts: 'append-only',
  floatLimits: 'free',
  floatReferences: 'append-only',
  // Claiming an expired record again rewrites it.
  idempotencyKeys: 'free',
  installation: 'append-only',
  installationAuditLog: 'append-only',
  installationKeyUses: 'read-only',
  installationKeys: 'read-only',
  invoiceLines: 'append-only',
  invoices: { changes: ['status', 'paidReference', 'paidOn'] },
  ledgerBalances: 'permanent',
  // The statement that adds a change to the total deletes the change.
  ledgerCycleChanges: 'disposable',
  ledgerCycleTotals: 'permanent',
  ledgerDeductions: 'permanent',
  ledgerFloatChanges: 'disposable',
  ledgerFloatTotals: 'permanent',
  ledgerMemberSeals: 'permanent',
  ledgerSealSums: { changes: ['debits', 'credits'] },
  ledgerSeals: { changes: ['membersAfter', 'paidUntil', 'refusedAt', 'sealedAt'] },
  ledgerTransfers: 'append-only',
  ledgerVerifications: { protects: ['requestedBy', 'requestedAt', 'checksTotal'] },
  memberErasures: { changes: ['paymentKeyDestroyedAt'] },
  // The statement that adds a change to its count deletes the change.
  memberCountChanges: 'disposable',
  memberCounts: 'free',
  // Written with the keys, by the owner.
  memberFingerprintKey: 'read-only',
  memberFormerNames: 'free',
  memberImportKeys: { changes: ['wrapped', 'fingerprintKey'], deletable: true },
  memberImportProgress: 'free',
  memberImportRows: {
    changes: [
      'emailFingerprint',
      'workerIdFingerprint',
      'accountDetailsFingerprint',
      'phoneFingerprint',
      'dobFingerprint',
      'genderFingerprint',
    ],
    deletable: true,
  },
  memberImportSteps: { changes: ['action', 'command', 'fault'], deletable: true },
  memberImports: { protects: ['kind', 'columns', 'removesAccounts', 'rowTo', 'createdAt', 'offboardMax'] },
  memberKeys: 'permanent',
  memberSessions: 'disposable',
  members: { protects: ['createdAt'] },
  // Replacing metadata deletes the old rows.
  metadata: 'disposable',
  migrationSteps: 'read-only',
  migrations: 'read-only',
  operatorNotices: 'free',
  operatorKeys: { changes: ['revokedAt', 'revokedBy', 'lastUsedAt'] },
  partnerLogos: 'free',
  partners: { protects: ['name', 'createdAt'] },
  payCycles: { changes: ['status', 'closedAt', 'releasedAt', 'settledAt'] },
  payRunLines: 'append-only',
  payRuns: { changes: ['payCycleId', 'status', 'availableAt', 'revertedAt'] },
  payoutBatchApprovals: 'append-only',
  payoutBatchCopies: 'disposable',
  payoutBatchEndings: 'disposable',
  payoutBatches: { protects: ['messageId', 'rail', 'currency', 'debtor', 'isInstant', 'createdAt'] },
  payoutExceptions: {
    changes: [
      'kind',
      'reason',
      'amount',
      'bankText',
      'bankTextAboutMember',
      'bookedOn',
      'closedAt',
      'closedBy',
      'decision',
      'note',
      'closedByText',
      'ruleId',
    ],
  },
  payoutProposals: { changes: ['confirmedBy', 'confirmedLogin', 'confirmedIn', 'endedAt', 'endedBecause'] },
  payoutRailHolds: { changes: ['releasedAt', 'releasedBy'] },
  payoutReferences: 'append-only',
  payoutRules: { changes: ['status', 'confirmedBy', 'confirmedAt', 'endedAt'] },
  payouts: { protects: ['reference', 'rail', 'netAmount', 'currency', 'createdAt'] },
  railCursors: 'permanent',
  removals: { changes: ['count', 'at'] },
  requestLog: 'disposable',
  restores: { changes: ['comparedAt', 'comparedBy'] },
  sandboxClockMoves: { changes: ['ran', 'leasedBy', 'leasedUntil', 'endedAt'] },
  sandboxClocks: 'permanent',
  settlementDues: { changes: ['received', 'receivedByHand', 'receivedAt'] },
  settlementFees: { changes: ['releasedAt'] },
  settlementLines: 'append-only',
  signInFailures: 'free',
  simulatedBankFaults: { changes: ['remaining'] },
  simulatedBankInstructions: 'permanent',
  simulatedBankPayments: { changes: ['submissions'] },
  // A report that is not due yet is dropped when the partner instructs the bank otherwise.
  simulatedBankReports: 'disposable',
  stagedBankRecords: 'disposable',
  stateTransitions: 'read-only',
  tierVersions: 'append-only',
  tiers: { changes: ['version'] },
  // Follows the withdrawals.
  unpaidWithdrawals: 'read-only',
  userBrowsers: 'free',
  userIdentities: 'disposable',
  userInvitations: 'disposable',
  userLinks: 'disposable',
  userRecoveryCodes: 'disposable',
  userRoles: 'disposable',
  userSessions: { changes: ['lastUsedAt'], deletable: true },
  users: { protects: ['email', 'createdAt'] },
  webhookAttempts: 'disposable',
  webhookDeliveries: { protects: ['type', 'sample', 'createdAt'], deletable: true },
  webhookEndpoints: { protects: ['createdAt', 'sincePosition'], deletable: true },
  webhookFeeds: 'free',
  webhookSecrets: { changes: ['expiresAt'], deletable: true },
  withdrawalIntentExpiry: { changes: ['expiredUntil', 'removedUntil'] },
  // Old ones that never became a withdrawal are deleted. The foreign key of the withdrawal keeps the others.
  withdrawalIntents: { changes: ['status'], deletable: true },
  withdrawalRecoveries: 'append-only',
  withdrawalTotalFeeds: 'permanent',
  withdrawalTotals: 'permanent',
  withdrawals: {
    changes: ['status', 'dueAt', 'attempts', 'reason', 'earlierReasons', 'adjustedInCycleId', 'recoveredBy'],
  },
  workerHeartbeats: { changes: ['beatAt'], deletable: true },
}
