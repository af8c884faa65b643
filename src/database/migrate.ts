import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Db } from './database.ts'
import { type AppRole, applyGrants } from './grants.ts'
import {
  listMigrations,
  type MigrationFile,
  migrationsFolder,
  numberOf,
  type Phase,
  readMigration,
  statementsOf,
} from './migration-file.ts'
import { runStep, type StepLimits, type StepReport, stepLimits } from './migration-steps.ts'
import { describeNewerSchema, listOlderPrograms, readSchemaState, type SchemaState } from './migrations.ts'
import { makePartitions } from './partitions.ts'
import { placeTables } from './placing.ts'
import { releaseWith } from './releases.ts'
import { isSpread } from './spread.ts'

export type Migrated = {
  /** The migrations whose schema this call has finished expanding. */
  applied: string[]
  /** The migrations that this call has contracted. */
  contracted: string[]
  /** The migrations whose last steps wait for `contracts`. */
  toContract: string[]
}

export type Migrating = {
  /** Whether to run the steps too after which no older program can run. An empty database runs them in any case. */
  contracts?: boolean
  onStep?: (report: StepReport) => void
  folder?: string
  limits?: StepLimits
}

/**
 * Brings our schema and the job queue's up to date, and then the grants. Idempotent, and safe to run from several
 * processes at once, which take turns. A run that was killed is continued by the next. A newer schema that this program can serve is left
 * unchanged, grants included; so is an up-to-date schema if the connected role does not own it.
 * @param db connected as the owner, like `pool`
 * @param app the role that the program logs in as, which gets the grants
 * @throws with a sentence for the operator if the role lacks rights, the schema is too new or too old for this program, or programs are
 *   running that the next migration would break
 */
export async function migrate(
  db: Db,
  pool: pg.Pool,
  app: AppRole,
  { contracts = false, onStep = () => undefined, folder = migrationsFolder, limits = stepLimits }: Migrating = {},
): Promise<Migrated> {
  return await inTurn(pool, async client => {
    const state = await readSchemaState(db, { folder })
    const files = listMigrations(folder).map(name => readMigration(name, folder))
    const tooNew = describeNewerSchema(state) ?? describeChange(state, files) ?? describeSkippedStop(state, files)
    if (tooNew !== undefined) throw new Error(tooNew)
    if (state.unknown.length > 0) return { applied: [], contracted: [], toContract: state.toContract }
    const lacking = await describeLackingRights(client)
    if (lacking !== undefined) {
      if (state.pending.length === 0 && !(contracts && state.toContract.length > 0))
        return { applied: [], contracted: [], toContract: state.toContract }
      throw new Error(lacking)
    }
    const isNew = state.begun.length === 0
    const reported = isNew ? () => undefined : onStep
    const contracted = await runMigrations({ db, pool, onStep: reported, limits }, state, {
      files,
      contracts: contracts || isNew,
    })
    // Loaded late: every command loads this module, and few migrate.
    const { runMigrations: migrateJobs } = await import('graphile-worker')
    await migrateJobs({ pgPool: pool })
    const { toContract } = await readSchemaState(db, { folder })
    const isOnNodes = await isSpread(db)
    // New tables are empty, so programs that are running wait for nothing.
    if (isOnNodes) await placeTables(client, db)
    // Older programs keep the rights that they need until then.
    await applyGrants(client, app, { mayRevoke: toContract.length === 0, isSpread: isOnNodes })
    await makePartitions(db)
    return { applied: state.pending, contracted, toContract }
  })
}

type Runner = { db: Db; pool: pg.Pool; onStep: (report: StepReport) => void; limits: StepLimits }

/** Runs the steps that are due, in order. @returns the migrations that were contracted */
async function runMigrations(
  { db, pool, onStep, limits }: Runner,
  { pending, toContract }: SchemaState,
  { files, contracts }: { files: MigrationFile[]; contracts: boolean },
): Promise<string[]> {
  const client = await pool.connect()
  const contracted: string[] = []
  const runSteps = async (file: MigrationFile, phase: Phase) => {
    for (const step of await unfinishedSteps(client, file, phase)) onStep(await runStep(client, file, step, limits))
  }
  const contract = async (file: MigrationFile) => {
    await requireNoOlderProgram(db, file, numberOf(file.name))
    await client.query('update migrations set compatible_with = null where name = $1', [file.name])
    await runSteps(file, 'contract')
    contracted.push(file.name)
  }
  try {
    const open = files.filter(({ name }) => toContract.includes(name))
    for (const file of files.filter(({ name }) => pending.includes(name))) {
      const needed = file.compatibleWith ?? numberOf(file.name)
      await requireNoOlderProgram(db, file, needed)
      // It may rely on the end of those that every program knows by now.
      for (const each of open.filter(({ name }) => name !== file.name && numberOf(name) <= needed)) {
        await contract(each)
        open.splice(open.indexOf(each), 1)
      }
      await begin(client, file)
      await runSteps(file, 'expand')
      if (file.steps.some(({ phase }) => phase === 'contract') && !open.includes(file)) open.push(file)
    }
    if (contracts) for (const file of open) await contract(file)
    return contracted
  } finally {
    // Its session has other time limits now.
    client.release(true)
  }
}

/** Records a migration with its steps. The first migration creates the tables for that, so it is recorded together with its only step. */
async function begin(client: pg.ClientBase, { name, checksum, compatibleWith, steps }: MigrationFile): Promise<void> {
  const { rows } = await client.query<{ isEmpty: boolean }>(
    `select to_regclass('public.migrations') is null as "isEmpty"`,
  )
  const isEmpty = rows[0]?.isEmpty === true
  await client.query('begin')
  try {
    if (isEmpty) {
      await client.query('set local statement_timeout = 0')
      for (const { sql } of steps) for (const statement of statementsOf(sql)) await client.query(statement)
    }
    await client.query(
      `insert into migrations (name, checksum, compatible_with, begun_at) values ($1, $2, $3, now()) on conflict (name) do nothing`,
      [name, checksum, compatibleWith ?? null],
    )
    await client.query(
      `insert into migration_steps (migration, number, phase, finished_at)
       select $1, number, phase, case when $4 then now() end from unnest($2::integer[], $3::text[]) as step (number, phase)
           on conflict (migration, number) do nothing`,
      [name, steps.map(step => step.number), steps.map(step => step.phase), isEmpty],
    )
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

async function unfinishedSteps(client: pg.ClientBase, { name, steps }: MigrationFile, phase: Phase) {
  const { rows } = await client.query<{ number: number }>(
    'select number from migration_steps where migration = $1 and finished_at is null',
    [name],
  )
  return steps.filter(step => step.phase === phase && rows.some(({ number }) => number === step.number))
}

async function requireNoOlderProgram(db: Db, { name }: MigrationFile, needed: string): Promise<void> {
  const [oldest] = await listOlderPrograms(db, needed)
  if (oldest === undefined) return
  throw new Error(
    `${name} cannot be migrated further while programs run that know migrations only up to ${oldest.newest} ` +
      `(${oldest.connections} connections): replace or stop them, then run this command again`,
  )
}

/** Describes an applied migration whose file has changed since; undefined if there is none. */
function describeChange({ begun }: SchemaState, files: MigrationFile[]): string | undefined {
  const changed = begun.find(({ name, checksum }) =>
    files.some(file => file.name === name && file.checksum !== checksum),
  )
  if (changed === undefined) return undefined
  return (
    `The migration ${changed.name} was changed after this database was migrated with it, so the schema is not the one that this ` +
    'program expects: restore the file, or install the program again'
  )
}

/** Describes the version to which the database must be upgraded first; undefined if there is none. */
function describeSkippedStop({ begun, pending }: SchemaState, files: MigrationFile[]): string | undefined {
  const newest = begun.at(-1)?.name
  if (newest === undefined) return undefined
  const stop = files.find(
    ({ name, compatibleWith = '' }) => pending.includes(name) && compatibleWith > numberOf(newest),
  )
  if (stop?.compatibleWith === undefined) return undefined
  return (
    `This version upgrades databases with migration ${stop.compatibleWith}, and this one has migrations up to ${newest}: ` +
    `upgrade to ${releaseWith(stop.compatibleWith)} first`
  )
}

/** Runs work with a connection that holds the lock of `migrate`. The job queue's own migrations take none, and fail if two processes run them at once. */
export async function inTurn<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    // A statement that waited for the lock would have a snapshot, for whose end an index that is built concurrently waits.
    const tryLock = `select pg_try_advisory_lock(hashtext('midmonth migrate')) as locked`
    while ((await client.query<{ locked: boolean }>(tryLock)).rows[0]?.locked !== true) await pause(turnPollMs)
    return await work(client)
  } finally {
    // Closing the connection releases the lock in any case.
    client.release(true)
  }
}

const turnPollMs = 100

/**
 * Names the rights that the connected role lacks for migrations, in a sentence with the statements that grant them.
 * @returns undefined if it lacks none
 */
async function describeLackingRights(client: pg.ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{
    role: string
    database: string
    mayCreateTables: boolean
    mayCreateSchemas: boolean
    otherOwners: string[]
  }>(
    `select current_user as role, current_database() as database,
            has_schema_privilege('public', 'create') as "mayCreateTables",
            (to_regnamespace('graphile_worker') is not null and to_regnamespace('detached') is not null)
              or has_database_privilege(current_database(), 'create') as "mayCreateSchemas",
            array(select distinct relowner::regrole::text
                    from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where relkind in ('r', 'p') and not pg_has_role(relowner, 'usage')
                     and (nspname = 'graphile_worker'
                          or (nspname = 'public' and relname in ('migrations', 'ledger_transfers')))) as "otherOwners"`,
  )
  const [found] = rows
  if (found === undefined) throw new Error('PostgreSQL returned no session details')
  const [role, database] = [pg.escapeIdentifier(found.role), pg.escapeIdentifier(found.database)]
  const lacking = `The role ${found.role} may not change the schema of the database ${found.database}`
  const [owner] = found.otherOwners
  if (owner !== undefined) {
    return (
      `${lacking}, which belongs to ${owner}: set DATABASE_OWNER_URL to an address that logs in as ${owner}; or, if ` +
      `${found.role} is to own it, have a superuser run in that database: reassign owned by ${owner} to ${role};`
    )
  }
  const remedies = [
    ...(found.mayCreateTables ? [] : [`grant create on schema public to ${role};`]),
    ...(found.mayCreateSchemas ? [] : [`grant create on database ${database} to ${role};`]),
  ]
  if (remedies.length === 0) return undefined
  return `${lacking}: set DATABASE_OWNER_URL to a role that owns it, or have its owner run in that database: ${remedies.join(' ')}`
}
