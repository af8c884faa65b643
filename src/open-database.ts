import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EmbeddedPostgres, Restoring, WalCommands } from '@midmonth/embedded-postgres'
import pg from 'pg'
import type { Logger } from 'pino'
import type { RestorePlan } from './backups/restore.ts'
import type { BackupTarget } from './backups/sealed.ts'
import { backupTargetOf } from './backups/target.ts'
import { systemClock } from './clock.ts'
import { type Settings, SettingsProblem } from './config.ts'
import { type Connection, connect, connectFirst, type Databases } from './database/connect.ts'
import type { Db } from './database/database.ts'
import { requireDurability } from './database/durability.ts'
import { beginRestore, startEmbeddedPostgres } from './database/embedded.ts'
import type { AppRole } from './database/grants.ts'
import { addressesOf, NoPrimary } from './database/hosts.ts'
import { type Migrated, type Migrating, migrate } from './database/migrate.ts'
import { describeNewerSchema, readSchemaState } from './database/migrations.ts'
import { requireOwnSessions } from './database/own-session.ts'
import { isSpread, misplacedIn, readPlaces } from './database/spread.ts'
import { withoutLimit } from './database/wait-limits.ts'
import { completeJournal, eraseAgain } from './erasure/erasure.ts'
import { type ErasureSettings, erasureSettingsOf } from './erasure/journal.ts'
import type { Lanes } from './kernel/lanes.ts'
import { reasonOf } from './kernel/text.ts'
import { findMembersWithoutKeys, withoutKeysInWords } from './members/key-checks.ts'
import { detectRestore, findRestore, restoreInWords } from './payouts/books/restores.ts'
import { ensureInstallationKey, openSealer, refuseUsed, requireRestoredKeys } from './sealing/installation-keys.ts'
import { type KeySource, keySourceOf } from './sealing/key-providers.ts'
import { rotationOf, unfinishedRotations } from './sealing/rotation.ts'
import type { Sealer } from './sealing/sealer.ts'

const checkoutDir = fileURLToPath(new URL('..', import.meta.url))

export type Database = Databases & {
  /** Connects as the role that owns the database. Only for migrations. */
  ownerConnection: Connection
  appRole: AppRole
  /** The embedded PostgreSQL; undefined with DATABASE_URL. */
  embedded: EmbeddedPostgres | undefined
  /** The data directory of the embedded PostgreSQL; undefined with DATABASE_URL. */
  dataDir: string | undefined
  /** Where the installation's key is. */
  keySource: KeySource
  erasures: ErasureSettings
  psqlHint: string | undefined
}

type OpenOptions = {
  /** The role to connect as: the app role, or the owner, which works before the app role exists. */
  as?: 'app' | 'owner'
  /** False for a command that only reads and must not create an embedded database. */
  mayCreate?: boolean
  /** The embedded database to recover instead, in a separate folder. */
  restored?: Restored
  /** Whether connecting may take a minute; false for a command that reports whether the database answers. */
  isStarting?: boolean
  /** Whether the process will serve, and so looks longer for a pooler that shares sessions. */
  isServing?: boolean
}

/**
 * Opens the configured database, or the embedded PostgreSQL, which is shared if another process is already running it.
 * @throws Error with a message for the operator
 */
export async function openDatabase(settings: Settings, log: Logger, options: OpenOptions = {}): Promise<Database> {
  const { as = 'app', mayCreate = true, restored, isStarting = true, isServing = false } = options
  if (settings.DATABASE_URL === '' && settings.DATABASE_OWNER_URL !== '')
    throw new SettingsProblem(
      'DATABASE_OWNER_URL requires DATABASE_URL: set it to the address at which the service connects to the same database',
    )
  const target = backupTargetOf(settings)
  const embedded =
    settings.DATABASE_URL === '' ? await openEmbedded(settings, { log, mayCreate, target, restored }) : undefined
  const dataDir = restored?.restoring.configuredDir ?? embedded?.dataDir ?? path.join(checkoutDir, 'data')
  const keySource = keySourceOf(settings, { dataDir })
  const erasures = erasureSettingsOf(settings, { keySource, dataDir })
  const appConnection = embedded?.connection ?? settings.DATABASE_URL
  const ownerConnection = embedded?.ownerConnection ?? (settings.DATABASE_OWNER_URL || settings.DATABASE_URL)
  const databases = connect(as === 'app' ? appConnection : ownerConnection, {
    log,
    connectionsMax: Math.max(settings.MIDMONTH_DATABASE_CONNECTIONS, as === 'owner' ? ownerConnectionsMax : 0),
    isStarting,
  })
  const close = async () => {
    await databases.close()
    await embedded?.stop()
  }
  try {
    await connectFirst(databases.pool, log)
    if (embedded === undefined) await requireOwnSessions(databases.pool, { isThorough: isServing || as === 'owner' })
    await requireDurability(databases.db)
    databases.useLanes(await lanesFor(databases.db, settings, as))
  } catch (error) {
    await close()
    if (embedded !== undefined) throw error
    const setting = as === 'owner' && settings.DATABASE_OWNER_URL !== '' ? 'DATABASE_OWNER_URL' : 'DATABASE_URL'
    // Never shows the address, which contains a password.
    const reason = `Cannot use the database at ${setting}: ${reasonOf(error)}`
    throw new Error(reason + remedyOf(error, as === 'app' ? appConnection : ownerConnection), { cause: error })
  }
  return {
    ...databases,
    ...{ ownerConnection, appRole: appRoleOf(appConnection) },
    ...{ embedded, dataDir: embedded?.dataDir, keySource, erasures, psqlHint: embedded?.psqlHint, close },
  }
}

async function lanesFor(db: Db, { MIDMONTH_LANES: chosen }: Settings, as: 'app' | 'owner'): Promise<Lanes> {
  if (!(await isSpread(db))) return chosen === 'partner' ? 'partner' : 'shared'
  const places = await readPlaces(db)
  if (as === 'app' && misplacedIn(places).some(table => !places.has(table)))
    throw new Error(
      'only some tables are spread over the nodes; run midmonth distribute --yes, which goes on where it was',
    )
  if (chosen === 'shared') throw new Error('MIDMONTH_LANES=shared does not work on Citus; unset it')
  return 'partner'
}

function remedyOf(error: unknown, connection: Connection): string {
  const refusal = error instanceof NoPrimary ? error.refusal : error
  // 42501, insufficient privilege. No query has run yet, so only the right to connect can be missing.
  if (!(refusal instanceof pg.DatabaseError) || refusal.code !== '42501') return ''
  const { database = '', user = '' } = new pg.Client(firstOf(connection))
  return `; as its owner, run: grant connect on database ${pg.escapeIdentifier(database)} to ${pg.escapeIdentifier(user)};`
}

// Resolved by the driver, which also reads PGUSER.
function appRoleOf(connection: Connection): AppRole {
  const { user = '', password } = new pg.Client(firstOf(connection))
  return { name: user, ...(typeof password === 'string' ? { password } : {}) }
}

function firstOf(connection: Connection): Connection | undefined {
  return typeof connection === 'string' ? addressesOf(connection)[0] : connection
}

/** A backup that is being restored. @property isKept false if it is only looked at */
type Restored = { plan: RestorePlan; restoring: Restoring; isKept: boolean }

type Embedding = { log: Logger; mayCreate: boolean; target: BackupTarget | undefined; restored: Restored | undefined }

async function openEmbedded(settings: Settings, embedding: Embedding): Promise<EmbeddedPostgres> {
  const { log, mayCreate, target, restored } = embedding
  // Nothing is archived before a restore has succeeded, and is in use: the archive may be the one of a server that runs.
  const isArchived = target !== undefined && restored === undefined
  const archive: WalCommands = isArchived
    ? {
        async archive(segment, source) {
          // Loaded late: most commands archive nothing.
          const { archiveSegment } = await import('./backups/wal-archive.ts')
          await archiveSegment(target, { segment, source })
        },
      }
    : {}
  const wal = { ...archive, ...restored?.plan.wal }
  const folder = restored?.restoring.dataDir ?? settings.MIDMONTH_DATA_DIR
  return await startEmbeddedPostgres({
    mayCreate,
    onCreate: dataDir => refuseUsed(keySourceOf(settings, { dataDir })),
    checkoutDir,
    ...(folder === '' ? {} : { dataDir: folder }),
    ...(Object.keys(wal).length === 0 ? {} : { wal }),
    settings: {
      ...restored?.plan.settings,
      // Without a command, PostgreSQL keeps the WAL and the history of the new timeline for the archive, until the next start.
      ...(restored?.isKept ? { archive_mode: 'on' } : {}),
    },
    onProgress: step => log.info(step),
    onLost: reason => log.error({ reason }, 'lost PostgreSQL: restarting it'),
    onBack: () => log.info('PostgreSQL is back'),
  })
}

/**
 * Restores the embedded database in a folder inside the configured one, and opens it there.
 * @param options.beside leaves the configured database as it is; otherwise there must be none
 */
export async function openRestored(
  settings: Settings,
  log: Logger,
  { plan, beside }: { plan: RestorePlan; beside: boolean },
): Promise<{ database: Database; restoring: Restoring }> {
  const { MIDMONTH_DATA_DIR: dataDir } = settings
  const where = { checkoutDir, ...(dataDir === '' ? {} : { dataDir }) }
  const restoring = await beginRestore({ ...where, beside, fill: plan.fill })
  try {
    const restored = { plan, restoring, isKept: !beside }
    return { database: await openDatabase(settings, log, { restored }), restoring }
  } catch (error) {
    restoring.remove()
    throw error
  }
}

/**
 * Brings the schema up to date. Binds a new database to the installation's key, and checks that any other has the same key.
 * @param database connected as the owner
 */
export async function migrateDatabase(
  { db, pool, appRole, keySource }: Pick<Database, 'db' | 'pool' | 'appRole' | 'keySource'>,
  options: Migrating = {},
): Promise<Migrated> {
  const migrated = await migrate(db, pool, appRole, options)
  await requireRestoredKeys(db)
  await ensureInstallationKey(db, { source: keySource, now: systemClock() })
  await openSealer(db, keySource)
  return migrated
}

/**
 * Ensures that the schema is up to date, opens the installation's key, and erases the members again that a restored database still has.
 * Holds all rails if the database was restored.
 * @param mayMigrate false if the operator migrates, with `midmonth migrate`
 * @param recoveredUntil the last commit of the backup that was just restored
 * @throws Error with a message for the operator
 */
export async function prepare(
  { db, ownerConnection, appRole, embedded, keySource, erasures }: Database,
  {
    mayMigrate,
    log,
    recoveredUntil = null,
    onProgress = () => undefined,
  }: { mayMigrate: boolean; log: Logger; recoveredUntil?: Date | null; onProgress?: (step: string) => void },
): Promise<Sealer> {
  if (mayMigrate) {
    const owner = connect(ownerConnection, { log, connectionsMax: ownerConnectionsMax, isStarting: true })
    try {
      await connectFirst(owner.pool, log)
      if (embedded === undefined) await requireOwnSessions(owner.pool)
      // As the owner: while another process is migrating, the app role may have no rights yet.
      if ((await readSchemaState(owner.db)).pending.length > 0) onProgress('creating and updating tables')
      await migrateDatabase({ ...owner, appRole, keySource })
    } finally {
      await owner.close()
    }
  }
  await requireSchema(db)
  await warnOfRestore(db, { log, recoveredUntil })
  const sealer = await openSealer(db, keySource, {
    onStale: error =>
      log.error(
        { err: error },
        'nothing is sealed until the installation’s keys can be read again: requests are refused',
      ),
  })
  for (const purpose of await unfinishedRotations(db))
    log.warn(
      { purpose },
      `a rotation of keys is unfinished; unless it is running, continue it with ${rotationOf(purpose)}`,
    )
  const erasedCount = await eraseAgain(db, erasures)
  if (erasedCount > 0) log.warn({ count: erasedCount }, 'erased members again that the database was restored with')
  await mendJournal(db, { erasures, log })
  await requireMemberKeys(db)
  return sealer
}

/** Detects that the database was restored, and warns until the banks are compared: nothing is sent to them meanwhile. */
export async function warnOfRestore(
  db: Db,
  { log, recoveredUntil = null }: { log: Logger; recoveredUntil?: Date | null },
): Promise<void> {
  await detectRestore(db, { recoveredUntil, now: systemClock() })
  const restore = await findRestore(db)
  if (restore !== undefined) log.warn({ detectedAt: restore.detectedAt }, restoreInWords(restore))
}

/**
 * All members are looked at until payouts are resumed after a restore; otherwise, on one PostgreSQL, only the latest.
 * @throws SettingsProblem if members were restored without their keys
 */
export async function requireMemberKeys(db: Db): Promise<void> {
  const missing = await withoutLimit(db, async tx =>
    findMembersWithoutKeys(tx, { isThorough: (await findRestore(tx)) !== undefined }),
  )
  if (missing.count > 0) throw new SettingsProblem(withoutKeysInWords(missing))
}

/** Warns if the journal of erasures has lost some, and writes them again. Best effort: erasing is refused without a writable journal. */
async function mendJournal(db: Db, { erasures, log }: { erasures: ErasureSettings; log: Logger }): Promise<void> {
  const { journal } = erasures
  try {
    const count = await completeJournal(db, erasures)
    if (count === 0) return
    log.warn(
      { count, journal },
      'the journal of erasures lacked erasures that the database knows, which were written again; if it was lost, restore its backup and start again',
    )
  } catch (error) {
    log.warn(
      { err: error, journal },
      'the journal of erasures lacks erasures that the database knows, and cannot be written',
    )
  }
}

/** @throws Error with a message for the operator if the schema is not that of this version */
export async function requireSchema(db: Db): Promise<void> {
  const state = await readSchemaState(db)
  if (state.pending.length > 0)
    throw new Error(`The database schema is out of date; run midmonth migrate (pending: ${state.pending.join(', ')})`)
  const tooNew = describeNewerSchema(state)
  if (tooNew !== undefined) throw new Error(tooNew)
}

// One holds the lock, one migrates our schema, one migrates graphile-worker's.
const ownerConnectionsMax = 3
