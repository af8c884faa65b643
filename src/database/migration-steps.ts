import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { isDeadlock, isLockTimeout } from './errors.ts'
import { type MigrationFile, type Step, statementsOf } from './migration-file.ts'

export const stepLimits = {
  // All other statements on a table queue behind one that waits for its exclusive lock, so it waits only for a moment. The last wait is
  // longer than deadlock_timeout, after which autovacuum gives way.
  lockMs: [100, 100, 200, 400, 1_100],
  // The pause after a wait, as a multiple of it: others are delayed for a small part of the time.
  pausesPerLockMs: 20,
  attemptsMax: 60,
  // A statement that takes longer under its lock is an outage. It is rolled back instead.
  atOnceMsMax: 5_000,
  // How long the rows of a chunk stay locked.
  chunkMs: 100,
  chunkRows: { first: 200, min: 50, max: 10_000 },
  // After each chunk, as a share of its time, so that the service has most of the machine.
  pausePerChunk: 1,
}

export type StepLimits = typeof stepLimits

/** What a step has done. @property locks the strongest lock on each table, like `events: AccessExclusiveLock`; empty if it runs concurrently */
export type StepReport = {
  migration: string
  step: Step
  ms: number
  rows: number
  locks: string[]
  /** How often the step gave up waiting for a lock. */
  lockTimeouts: number
}

type Running = {
  client: pg.ClientBase
  limits: StepLimits
  report: StepReport
}

/**
 * Runs one step, and records it as finished in the same transaction, if it has one. A step that is run again after an interruption has
 * the same result as one that was not interrupted.
 * @param client a connection of the owner, for nothing else
 * @throws Error with a message for the operator
 */
export async function runStep(
  client: pg.ClientBase,
  { name }: Pick<MigrationFile, 'name'>,
  step: Step,
  limits: StepLimits,
): Promise<StepReport> {
  const report: StepReport = { migration: name, step, ms: 0, rows: 0, locks: [], lockTimeouts: 0 }
  const running = { client, limits, report }
  const began = performance.now()
  try {
    const statements = await perPartition(client, step)
    if (step.way.kind === 'concurrently') await runConcurrently(running, statements)
    else if (step.way.kind === 'back-fill') await backFill(running, step.way)
    else await runAtOnce(running, statements)
  } catch (error) {
    throw new Error(`${name}, step ${step.number} (${step.phase}) failed: ${describe(error)}`, { cause: error })
  }
  return { ...report, ms: performance.now() - began }
}

async function runAtOnce(running: Running, statements: readonly string[]): Promise<void> {
  await withRetries(running, async () => {
    await running.client.query(`set local statement_timeout = ${running.limits.atOnceMsMax}`)
    for (const statement of statements.flatMap(statementsOf)) await running.client.query(statement)
    await finish(running)
  })
}

async function runConcurrently(running: Running, statements: readonly string[]): Promise<void> {
  const { client } = running
  // It waits for old transactions, and nothing waits behind it.
  await client.query('set statement_timeout = 0; set lock_timeout = 0')
  for (const statement of statements) {
    const index = /^create (?:unique )?index concurrently (\w+)/m.exec(statement)?.[1]
    const state = index === undefined ? undefined : await stateOfIndex(client, index)
    // An interrupted run had built the index, or a part of it.
    if (state === 'valid') continue
    if (state === 'invalid') await client.query(`drop index concurrently ${index}`)
    await client.query(statement)
  }
  await withRetries(running, () => finish(running))
}

/** Runs the statement for one chunk of rows after the other, each in its own transaction, in which it records how far it is. */
async function backFill(running: Running, { table, key }: { table: string; key: readonly string[] }): Promise<void> {
  const { client, limits, report } = running
  const { step, migration } = report
  const keyOf = (values: readonly string[]) =>
    `(${values.map((value, index) => `${pg.escapeLiteral(value)}::${types[index]}`).join(', ')})`
  const types = await typesOf(client, table, key)
  const columns = `(${key.map(column => `${table}.${column}`).join(', ')})`
  let size = limits.chunkRows.first
  for (let isLast = false; !isLast; ) {
    const began = performance.now()
    await withRetries(running, async () => {
      // In the order of the key, as the program locks rows, and without reading the whole table for each chunk.
      await client.query(
        'set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off',
      )
      const passed = await passedKey(client, migration, step)
      const after = passed === null ? 'true' : `${columns} > ${keyOf(passed)}`
      const until = await client.query<{ key: string[] }>(
        `select array[${key.map(column => `${column}::text`).join(', ')}] as key
           from ${table} where ${after} order by ${key.join(', ')} offset ${size - 1} limit 1`,
      )
      const last = until.rows[0]?.key
      isLast = last === undefined
      const chunk = `(${after}${last === undefined ? '' : ` and ${columns} <= ${keyOf(last)}`})`
      const { rowCount } = await client.query(step.sql.replaceAll(/\bCHUNK\b/g, () => chunk))
      await client.query(
        `update migration_steps set passed_key = coalesce($3, passed_key), row_count = row_count + $4
          where migration = $1 and number = $2`,
        [migration, step.number, last ?? null, rowCount ?? 0],
      )
      if (isLast) await finish(running)
    })
    const ms = performance.now() - began
    size = sizeAfter(size, ms, limits)
    if (!isLast) await pause(ms * limits.pausePerChunk)
  }
}

/** The next chunk takes about as long as it should, and is at most twice as large. */
function sizeAfter(size: number, ms: number, { chunkMs, chunkRows: { min, max } }: StepLimits): number {
  const factor = Math.min(2, chunkMs / ms)
  return Math.round(Math.min(max, Math.max(min, size * factor)))
}

/** Runs work in a transaction that waits only shortly for locks, and again after a pause if it did not get them. */
async function withRetries(running: Running, work: () => Promise<void>): Promise<void> {
  const { client, limits, report } = running
  for (let attempt = 1; ; attempt++) {
    const lockMs = limits.lockMs[Math.min(attempt, limits.lockMs.length) - 1] ?? 0
    await client.query(`begin; set local statement_timeout = 0; set local lock_timeout = ${lockMs}`)
    try {
      await work()
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback')
      if ((!isLockTimeout(error) && !isDeadlock(error)) || attempt === limits.attemptsMax) throw error
      report.lockTimeouts += 1
      await pause(lockMs * limits.pausesPerLockMs * (0.5 + Math.random()))
    }
  }
}

async function finish({ client, report }: Running): Promise<void> {
  const { migration, step } = report
  // Before the update below, which locks a table of ours.
  if (step.way.kind !== 'concurrently') report.locks = await locksHeld(client)
  const { rows } = await client.query<{ count: string }>(
    `update migration_steps set finished_at = clock_timestamp() where migration = $1 and number = $2 returning row_count::text as count`,
    [migration, step.number],
  )
  report.rows = Number(rows[0]?.count ?? 0)
}

async function locksHeld(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ lock: string }>(
    `select relname || ': ' || mode as lock
       from (select distinct on (relname) relname, mode
               from pg_locks l join pg_class c on c.oid = l.relation
              where l.pid = pg_backend_pid() and l.granted and relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
                and mode <> 'AccessShareLock' and relname not in ('migrations', 'migration_steps')
              order by relname, array_position(array['AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock',
                                                     'ShareUpdateExclusiveLock', 'RowExclusiveLock', 'RowShareLock'], mode)) strongest
      order by relname`,
  )
  return rows.map(({ lock }) => lock)
}

/** The statement of a step, once for each partition if it asks for that: `events_PARTITION` is `events_2026_11`. */
async function perPartition(client: pg.ClientBase, { partitionsOf, sql }: Step): Promise<string[]> {
  if (partitionsOf === undefined) return [sql]
  const { rows } = await client.query<{ suffix: string }>(
    `select substr(inhrelid::regclass::text, length($1) + 2) as suffix
       from pg_inherits where inhparent = to_regclass('public.' || $1) order by 1`,
    [partitionsOf],
  )
  if (rows.length === 0) throw new Error(`${partitionsOf} has no partitions`)
  return rows.map(({ suffix }) => sql.replaceAll('_PARTITION', () => `_${suffix}`))
}

async function passedKey(client: pg.ClientBase, migration: string, { number }: Step): Promise<string[] | null> {
  const { rows } = await client.query<{ passed: string[] | null }>(
    'select passed_key as passed from migration_steps where migration = $1 and number = $2',
    [migration, number],
  )
  return rows[0]?.passed ?? null
}

async function typesOf(client: pg.ClientBase, table: string, key: readonly string[]): Promise<string[]> {
  const { rows } = await client.query<{ column: string; type: string }>(
    `select attname as column, format_type(atttypid, atttypmod) as type
       from pg_attribute where attrelid = to_regclass('public.' || $1) and attnum > 0 and not attisdropped`,
    [table],
  )
  return key.map(column => {
    const found = rows.find(row => row.column === column)
    if (found === undefined) throw new Error(`${table} has no column ${column}`)
    return found.type
  })
}

async function stateOfIndex(client: pg.ClientBase, name: string): Promise<'valid' | 'invalid' | undefined> {
  const { rows } = await client.query<{ isValid: boolean }>(
    `select indisvalid as "isValid" from pg_index where indexrelid = to_regclass('public.' || $1)`,
    [name],
  )
  return rows[0] === undefined ? undefined : rows[0].isValid ? 'valid' : 'invalid'
}

function describe(error: unknown): string {
  if (isLockTimeout(error))
    return 'a table stayed locked; end the transactions that have been open for long, then run midmonth migrate again'
  // 57014: the statement reached its time limit, or was cancelled.
  if (error instanceof pg.DatabaseError && error.code === '57014')
    return 'a statement that locks a table took too long and was rolled back, so that requests do not wait for it'
  return error instanceof Error ? error.message : String(error)
}
