import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import pg from 'pg'
import { type Reader, sql } from './database.ts'
import { readableQueueColumns, readColumns } from './read-columns.ts'
import type { DB } from './tables.ts'

// The rights of each database role. The owner role runs migrations and nothing else, the app role runs the program, and the
// read role is for operators who query the database.

type Rights<Column extends string = string> = {
  insert?: true
  /** The columns that may be updated. A table without any is append-only and cannot be locked with `select … for update`. */
  update?: readonly Column[]
  delete?: true
}

/**
 * The rights of the app role on each table, in addition to reading. PostgreSQL refuses everything that is not listed. Add each
 * table of a new migration, and each column that a new operation updates.
 */
export const appRights: { readonly [Table in keyof DB]: Rights<keyof DB[Table] & string> } = {
  apiKeys: { insert: true, update: ['expiresAt', 'revokedAt', 'lastUsedAt'] },
  auditLog: { insert: true },
  eventFeeds: { insert: true, update: ['lastPosition'] },
  events: { insert: true, update: ['position', 'metadata'] },
  floatLimits: { insert: true, update: ['floor', 'lowSince'], delete: true },
  feeCollections: { insert: true, update: ['covered', 'collected'] },
  floatCosts: { insert: true },
  floatReferences: { insert: true },
  // Claiming an expired record again rewrites it.
  idempotencyKeys: {
    insert: true,
    update: ['fingerprint', 'operation', 'status', 'answer', 'resourceId', 'createdAt', 'expiresAt'],
    delete: true,
  },
  installation: { insert: true },
  installationKeys: {},
  installationAuditLog: { insert: true },
  invoiceLines: { insert: true },
  invoices: { insert: true, update: ['status', 'paidReference', 'paidOn'] },
  ledgerBalances: { insert: true, update: ['available', 'owed', 'transferCount'] },
  // The statement that adds a change to the total deletes the change.
  ledgerFloatChanges: { insert: true, delete: true },
  ledgerFloatTotals: { insert: true, update: ['floatBalance', 'pendingBalance'] },
  ledgerTransfers: { insert: true },
  ledgerVerifications: { insert: true, update: ['startedAt', 'endedAt', 'checksDone', 'checks', 'problem'] },
  memberImportProgress: { insert: true, update: ['stepsDone'], delete: true },
  memberImportRows: { insert: true, delete: true },
  memberImportSteps: { insert: true, update: ['action', 'fault'], delete: true },
  memberImports: {
    insert: true,
    update: [
      'status',
      'invite',
      'update',
      'reinstate',
      'offboard',
      'unchanged',
      'stepsDone',
      'appliedThrough',
      'restAction',
      'reviewedAt',
      'reviewSince',
      'endedAt',
      'forgottenAt',
    ],
  },
  memberSessions: { insert: true, delete: true },
  members: {
    insert: true,
    update: [
      'status',
      'email',
      'firstName',
      'lastName',
      'phone',
      'tier',
      'workerId',
      'accountHolder',
      'sortCode',
      'accountNumber',
      'iban',
      'enablePayroll',
      'dob',
      'gender',
      'updatedAt',
      'instructedAt',
      'accountRefused',
      'reviewReason',
    ],
  },
  bankReconciliations: { insert: true, update: ['at'] },
  bankStatements: { insert: true, update: ['opening', 'closing', 'coversFrom', 'bankFileId'] },
  bankFiles: {
    insert: true,
    update: [
      'status',
      'recordCount',
      'appliedCount',
      'skippedAccounts',
      'problem',
      'messageId',
      'rejectedBatches',
      'name',
      'receivedAt',
    ],
  },
  bankRecords: { insert: true },
  payoutBatchApprovals: { insert: true },
  payoutBatchEndings: { insert: true, delete: true },
  payoutRailHolds: { insert: true, update: ['releasedAt', 'releasedBy'] },
  payoutBatches: {
    insert: true,
    update: [
      'status',
      'held',
      'paymentCount',
      'controlTotal',
      'fileName',
      'fileSha256',
      'nameCheck',
      'closedAt',
      'isFull',
      'approvedAt',
      'approvedAutomatically',
      'sendingAt',
      'exportedTo',
      'cutOffAt',
      'valueDate',
      'sentAt',
      'acknowledgedAt',
      'answeredAt',
      'endedAt',
      'copyTakenAt',
      'givenBackAt',
      'brakeReleasedAt',
    ],
  },
  payoutBatchCopies: { insert: true, delete: true },
  payoutExceptions: {
    insert: true,
    update: [
      'kind',
      'reason',
      'amount',
      'bookedOn',
      'closedAt',
      'closedBy',
      'decision',
      'note',
      'closedByText',
      'ruleId',
    ],
  },
  payoutReferences: { insert: true },
  payoutRules: { insert: true, update: ['status', 'confirmedBy', 'confirmedAt', 'endedAt'] },
  payoutProposals: {
    insert: true,
    update: ['confirmedBy', 'confirmedLogin', 'confirmedIn', 'endedAt', 'endedBecause'],
  },
  payouts: {
    insert: true,
    update: [
      'batchId',
      'expectedAt',
      'remittanceText',
      'outcome',
      'reasonCode',
      'reason',
      'removedAt',
      'restriction',
      'sentAt',
      'requestOpenAt',
      'refusedTransfers',
      'retryAt',
      'transferId',
      'transferSequence',
    ],
  },
  operatorKeys: { insert: true, update: ['revokedAt', 'revokedBy', 'lastUsedAt'] },
  partnerLogos: { insert: true, update: ['mediaType', 'bytes', 'changedAt'], delete: true },
  partners: {
    insert: true,
    update: [
      'country',
      'timeZone',
      'autoActivate',
      'graceMinutes',
      'intentMinutes',
      'holdSeconds',
      'requestsPerSecond',
      'requestsBurst',
      'cycleSchedule',
      'cycleAnchor',
      'shortfallPolicy',
      'offboardReviewPercent',
      'reviewDays',
      'remittanceText',
      'metadataInEvents',
      'paused',
      'suspendedAt',
    ],
  },
  // Replacing metadata deletes the old rows.
  metadata: { insert: true, delete: true },
  payCycles: { insert: true, update: ['status', 'closedAt', 'settledAt'] },
  payRunLines: { insert: true },
  payRuns: { insert: true, update: ['payCycleId', 'status', 'availableAt', 'revertedAt'] },
  railCursors: { insert: true, update: ['cursor', 'readAt'] },
  sandboxClockMoves: { insert: true, update: ['ran', 'leasedBy', 'leasedUntil', 'endedAt'] },
  sandboxClocks: { insert: true, update: ['offsetMs'] },
  requestLog: { insert: true, delete: true },
  schemaCompatibility: {},
  settlementFees: { insert: true, update: ['releasedAt'] },
  settlementDues: { insert: true, update: ['received', 'receivedByHand', 'receivedAt'] },
  settlementLines: { insert: true },
  simulatedBankFaults: { insert: true, update: ['remaining'] },
  simulatedBankInstructions: { insert: true, update: ['outcome', 'reason', 'restriction'] },
  simulatedBankPayments: { insert: true, update: ['submissions'] },
  // A report that is not due yet is dropped when the partner instructs the bank otherwise.
  simulatedBankReports: { insert: true, delete: true },
  signInFailures: { insert: true, update: ['failures', 'failedAt', 'refusedUntil'], delete: true },
  stagedBankRecords: { insert: true, delete: true },
  stateTransitions: {},
  tierVersions: { insert: true },
  tiers: { insert: true, update: ['version'] },
  userBrowsers: { insert: true, update: ['lastUsedAt'], delete: true },
  userIdentities: { insert: true, delete: true },
  userInvitations: { insert: true, delete: true },
  userLinks: { insert: true, delete: true },
  userRecoveryCodes: { insert: true, delete: true },
  userRoles: { insert: true, delete: true },
  userSessions: { insert: true, update: ['lastUsedAt'], delete: true },
  users: {
    insert: true,
    update: ['name', 'isOperator', 'passwordHash', 'totpSecret', 'totpConfirmedAt', 'totpLastStep', 'disabledAt'],
  },
  webhookAttempts: { insert: true, delete: true },
  webhookDeliveries: {
    insert: true,
    update: ['state', 'attemptCount', 'scheduledCount', 'lastAttemptAt', 'dueAt', 'replayAt'],
    delete: true,
  },
  webhookEndpoints: {
    insert: true,
    update: [
      'url',
      'description',
      'types',
      'headers',
      'enabled',
      'disabledReason',
      'deletedAt',
      'failureCount',
      'blockedUntil',
      'failingSince',
      'failingDays',
      'lastFailingDay',
      'isRecovering',
      'dueAt',
      'leasedUntil',
    ],
    delete: true,
  },
  webhookFeeds: { insert: true, update: ['position'], delete: true },
  webhookSecrets: { insert: true, update: ['expiresAt'], delete: true },
  withdrawalTotalFeeds: { insert: true, update: ['position'] },
  withdrawalTotals: {
    insert: true,
    update: ['withdrawals', 'grossAmount', 'fees', 'employerFees', 'givenBack', 'givenBackGrossAmount'],
  },
  withdrawalIntents: { insert: true, update: ['status'] },
  withdrawals: { insert: true, update: ['status', 'dueAt', 'attempts', 'reason', 'adjustedInCycleId', 'recoveredBy'] },
  withdrawalRecoveries: { insert: true },
  workerHeartbeats: { insert: true, update: ['beatAt'], delete: true },
}

/** The database role of the program. */
export type AppRole = {
  name: string
  /** Used only to create the role. */
  password?: string | undefined
}

/**
 * Grants the app role and the read role exactly the rights declared above, and revokes all others.
 * Idempotent. Creates a missing role if the owner may create roles, and otherwise skips it.
 * @param client a connection of the owner, after all migrations, that holds the lock of `migrate`, because PostgreSQL fails
 *   concurrent grants on the same table
 */
export async function applyGrants(client: pg.ClientBase, app: AppRole): Promise<void> {
  const session = await describeSession(client, app)
  const statements = [
    // A database created by PostgreSQL 14 lets every role create tables here.
    ...(session.ownsSchema ? ['revoke create on schema public from public'] : []),
    // The queue's tables have row-level security but no policies, so only the owner could read them. Grants control access instead.
    ...session.securedTables.map(table => `alter table ${table} disable row level security`),
    // An app role with the owner's rights needs no grants, and a revoke would take rights from the owner.
    ...(session.isAppOwner ? [] : [...creation(app, session, session.hasApp), ...appGrants(app, session)]),
    ...creation({ name: readRoleOf(session) }, session, session.hasRead),
    ...readGrants(session),
  ]
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = '5s'`)
    for (const statement of statements) await client.query(statement)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

type Session = {
  database: string
  mayCreateRoles: boolean
  ownsDatabase: boolean
  ownsSchema: boolean
  hasApp: boolean
  isAppOwner: boolean
  hasRead: boolean
  queueTables: string[]
  securedTables: string[]
}

async function describeSession(client: pg.ClientBase, app: AppRole): Promise<Session> {
  const { rows } = await client.query<Session>(
    `select current_database() as database,
            (select rolcreaterole or rolsuper from pg_roles where rolname = current_user) as "mayCreateRoles",
            (select pg_has_role(datdba, 'usage') from pg_database where datname = current_database()) as "ownsDatabase",
            (select pg_has_role(nspowner, 'usage') from pg_namespace where nspname = 'public') as "ownsSchema",
            exists (select from pg_roles where rolname = $1) as "hasApp",
            coalesce((select pg_has_role(oid, current_user, 'usage') from pg_roles where rolname = $1), false) as "isAppOwner",
            exists (select from pg_roles where rolname = current_database() || '_read') as "hasRead",
            coalesce(array_agg(table_name), '{}') as "queueTables",
            coalesce(array_agg(table_name) filter (where is_secured), '{}') as "securedTables"
       from (select format('%I.%I', nspname, relname) as table_name, relrowsecurity as is_secured
               from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where nspname = 'graphile_worker' and relkind in ('r', 'v')) queue`,
    [app.name],
  )
  const [session] = rows
  if (session === undefined) throw new Error('PostgreSQL returned no session details')
  return session
}

const readRoleOf = ({ database }: Session) => `${database}_read`

function creation({ name, password }: AppRole, { mayCreateRoles }: Session, exists: boolean): string[] {
  if (exists || !mayCreateRoles) return []
  const secret = password === undefined ? '' : ` password ${pg.escapeLiteral(scramVerifier(password))}`
  return [`create role ${pg.escapeIdentifier(name)} login${secret}`]
}

// All tables of the program, and the list of migrations.
const ownTables = [...Object.keys(appRights).map(snakeCase), 'kysely_migration'].map(table => `public.${table}`)

function appGrants({ name }: AppRole, session: Session): string[] {
  if (!session.hasApp && !session.mayCreateRoles) return []
  const role = pg.escapeIdentifier(name)
  return [
    ...baseGrants(role, session, 'connect, temporary'),
    `grant select on ${[...ownTables, ...session.queueTables].join(', ')} to ${role}`,
    ...Object.entries<Rights>(appRights).flatMap(([table, rights]) => {
      const columns = rights.update?.map(snakeCase).join(', ')
      const granted = [rights.insert && 'insert', columns && `update (${columns})`, rights.delete && 'delete']
      return granted.filter(Boolean).map(right => `grant ${right} on public.${snakeCase(table)} to ${role}`)
    }),
    `grant execute on function public.analyze_tables(text[]) to ${role}`,
    // Removes old addresses from the audit log, and nothing else.
    `grant execute on function public.forget_audit_addresses(timestamptz, integer) to ${role}`,
    // Refuses to do anything on a live database.
    `grant execute on function public.reset_sandbox_partner(text) to ${role}`,
    // The queue library writes all its own tables except the list of its migrations.
    ...session.queueTables
      .filter(table => table !== 'graphile_worker.migrations')
      .map(table => `grant insert, update, delete on ${table} to ${role}`),
    `grant execute on all functions in schema graphile_worker to ${role}`,
  ]
}

function readGrants(session: Session): string[] {
  if (!session.hasRead && !session.mayCreateRoles) return []
  const role = pg.escapeIdentifier(readRoleOf(session))
  return [
    ...baseGrants(role, session, 'connect'),
    `grant select on public.kysely_migration to ${role}`,
    `grant select (${readableQueueColumns.join(', ')}) on graphile_worker.jobs to ${role}`,
    ...readColumns.map(
      ([table, columns]) =>
        `grant select (${columns.map(snakeCase).join(', ')}) on public.${snakeCase(table)} to ${role}`,
    ),
  ]
}

function baseGrants(role: string, { database, ownsDatabase, queueTables }: Session, onDatabase: string): string[] {
  return [
    ...(ownsDatabase ? [`grant ${onDatabase} on database ${pg.escapeIdentifier(database)} to ${role}`] : []),
    `grant usage on schema public, graphile_worker to ${role}`,
    `revoke all on ${[...ownTables, ...queueTables].join(', ')} from ${role}`,
  ]
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

// A password in a statement could end up in the server's log, so only the verifier that PostgreSQL stores is sent.
// Source: RFC 5803, and "pg_authid" in PostgreSQL's documentation.
function scramVerifier(password: string): string {
  const salt = randomBytes(16)
  const iterations = 4096
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, iterations, 32, 'sha256')
  const keyed = (text: string) => createHmac('sha256', salted).update(text).digest()
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${keyed('Server Key').toString('base64')}`
}

/**
 * Describes, for the operator, what an SQL injection or a leaked DATABASE_URL could do beyond what the program needs.
 * Returns undefined if the program's role has no excess rights.
 */
export async function describeExcess(db: Reader): Promise<string | undefined> {
  const { rows } = await sql<{ role: string; isSuperuser: boolean; isOwner: boolean; reachesOut: boolean }>`
    select rolname::text as role, rolsuper as is_superuser,
           (select pg_has_role(relowner, 'usage') from pg_class where oid = 'public.ledger_transfers'::regclass) as is_owner,
           pg_has_role('pg_execute_server_program', 'usage') or pg_has_role('pg_read_server_files', 'usage')
             or pg_has_role('pg_write_server_files', 'usage') as reaches_out
      from pg_roles where rolname = current_user`.execute(db)
  const [found] = rows
  if (found === undefined) return undefined
  const excess = [
    ...(found.isOwner ? ['change the schema, disable its triggers and rewrite the ledger'] : []),
    ...(found.isSuperuser || found.reachesOut ? ['read files and run programs on the database server'] : []),
  ]
  if (excess.length === 0) return undefined
  return (
    `The program's database role ${found.role} can ${excess.join(', and ')}; ` +
    'give the program its own role, see "Database roles" in docs/operations/running.md'
  )
}
