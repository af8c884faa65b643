import { tableRules } from './table-rules.ts'
import type { DB } from './tables.ts'

/**
 * Where the rows of a table are on a distributed PostgreSQL. `distributed`: those of one partner on one node, beside its rows in all
 * other such tables. `reference`: all rows on every node, written by two-phase commit. `local`: on the coordinator.
 */
export type TablePlace = 'distributed' | 'reference' | 'local'

type Table = keyof DB

// What rows of partners refer to, what triggers on such rows read, and what is unique over all partners.
const reference: ReadonlySet<Table> = new Set([
  'apiKeys',
  'installation',
  'partners',
  'payoutReferences',
  'sandboxClocks',
  'stateTransitions',
])

// What belongs to the installation, its users and its banks.
const local: ReadonlySet<Table> = new Set([
  'bankArchiveKeys',
  'bankFiles',
  'bankReconciliations',
  'bankRecords',
  'bankStatements',
  'databasePlaces',
  'detachedMemberSums',
  'detachedMonths',
  'detachedPaymentSums',
  'disclosures',
  'floatCosts',
  'installationAuditLog',
  'installationKeyUses',
  'installationKeys',
  'ledgerVerifications',
  'memberFingerprintKey',
  'migrationSteps',
  'migrations',
  'operatorKeys',
  'operatorNotices',
  'payoutBatchApprovals',
  'payoutBatchCopies',
  'payoutBatchEndings',
  'payoutBatches',
  'payoutExceptions',
  'payoutProposals',
  'payoutRailHolds',
  'payoutRules',
  'railCursors',
  'removals',
  'restores',
  'signInFailures',
  'simulatedBankFaults',
  'simulatedBankInstructions',
  'simulatedBankPayments',
  'simulatedBankReports',
  'stagedBankRecords',
  'userBrowsers',
  'userIdentities',
  'userInvitations',
  'userLinks',
  'userRecoveryCodes',
  'userRoles',
  'userSessions',
  'users',
  'withdrawalIntentExpiry',
  'workerHeartbeats',
])

/** The table whose shards those of all other distributed tables are beside. */
export const anchor = 'tiers'

/** The place of each table. */
export const tablePlaces = Object.fromEntries(
  (Object.keys(tableRules) as Table[]).map((table): [Table, TablePlace] => [
    table,
    reference.has(table) ? 'reference' : local.has(table) ? 'local' : 'distributed',
  ]),
) as { readonly [Name in Table]: TablePlace }
