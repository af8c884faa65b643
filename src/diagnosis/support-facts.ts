import { type Reader, sql } from '../database/database.ts'
import { readSchemaState } from '../database/migrations.ts'
import { tableRules } from '../database/table-rules.ts'
import { snakeCase } from '../kernel/text.ts'
import { listFailed, readTasks } from '../worker/queue.ts'
import type { Finding } from './finding.ts'
import { bankOf, type Status } from './status.ts'

// What a supporter of the program may know about an installation: each field is listed here, and none names a person, a company, an
// account or an address, or has words that a person wrote.

const serverSettings = [
  ...['archive_mode', 'autovacuum', 'autovacuum_max_workers', 'checkpoint_timeout', 'effective_cache_size', 'fsync'],
  ...[
    'full_page_writes',
    'jit',
    'max_connections',
    'max_wal_size',
    'min_wal_size',
    'random_page_cost',
    'server_encoding',
  ],
  ...['shared_buffers', 'synchronous_commit', 'TimeZone', 'wal_compression', 'wal_level', 'work_mem'],
]

/** The server: its version and settings, its connections, and the size and upkeep of each of the program's tables. */
export async function readServer(db: Reader) {
  const { rows: settings } = await sql<{ name: string; value: string; unit: string | null; source: string }>`
    select name, setting as value, unit, source from pg_settings where name = any(${serverSettings}) order by name`.execute(
    db,
  )
  const { rows: extensions } = await sql<{ name: string; version: string }>`
    select extname as name, extversion as version from pg_extension order by extname`.execute(db)
  const { rows: connections } = await sql<{ state: string | null; isWaitingForLock: boolean; count: number }>`
    select state, coalesce(wait_event_type = 'Lock', false) as is_waiting_for_lock, count(*)::integer as count
      from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
     group by 1, 2 order by 1, 2`.execute(db)
  const { rows: server } = await sql<{
    version: string
    bytes: bigint
    isReplica: boolean
    startedAt: Date
    oldestTransactionAt: Date | null
  }>`
    select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
           pg_is_in_recovery() as is_replica, pg_postmaster_start_time() as started_at,
           (select min(xact_start) from pg_stat_activity where datname = current_database()) as oldest_transaction_at`.execute(
    db,
  )
  return {
    ...server[0],
    settings,
    extensions,
    connections,
    schema: await readSchemaState(db),
    tables: await readTables(db),
  }
}

async function readTables(db: Reader) {
  const names = [...Object.keys(tableRules).map(snakeCase), '_private_jobs']
  const { rows } = await sql<{
    name: string
    partitions: number
    rows: bigint
    deadRows: bigint
    bytes: bigint
    indexBytes: bigint
    vacuumedAt: Date | null
    analyzedAt: Date | null
  }>`
    with parts as (
      select c.relname as name, coalesce(p.relid, c.oid) as part
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        left join lateral pg_partition_tree(c.oid) p on c.relkind = 'p' and p.isleaf
       where n.nspname in ('public', 'graphile_worker') and c.relkind in ('r', 'p') and c.relname = any(${names})
    )
    select name, count(*)::integer as partitions, coalesce(sum(n_live_tup), 0)::bigint as rows,
           coalesce(sum(n_dead_tup), 0)::bigint as dead_rows, sum(pg_table_size(part))::bigint as bytes,
           sum(pg_indexes_size(part))::bigint as index_bytes,
           max(greatest(last_vacuum, last_autovacuum)) as vacuumed_at, max(greatest(last_analyze, last_autoanalyze)) as analyzed_at
      from parts left join pg_stat_all_tables s on s.relid = part
     group by name order by bytes desc, name`.execute(db)
  return rows
}

/** The background tasks: those that are due, and those that have failed. What the errors say is only in the worker's log. */
export async function readTaskFacts(db: Reader, now: Date) {
  return { ...(await readTasks(db, now)), failed: await listFailed(db) }
}

/** The status without the names and words of people and companies. */
export function statusForSupport(status: Status) {
  const { postgres, mode, rails, now, workers, queue, batchesToApprove, openExceptions, lastBackupAt, removals } =
    status
  const { payouts, attention, importing, differences, lowFloats, uncovered, partners, stopped } = status
  return {
    at: now,
    ...{
      postgres,
      mode,
      bank: bankOf({ mode, rails }),
      rails: rails.map(({ name, currency }) => ({ name, currency })),
    },
    attention: attention.map(({ kind, subject, redacted }) => ({ kind, subject, notice: redacted })),
    workers: workers.map(({ startedAt, beatAt, isAlive }) => ({ startedAt, beatAt, isAlive })),
    ...{ queue, batchesToApprove, openExceptions, lastBackupAt, removals, payouts },
    partners: partners.length,
    importing: importing.map(({ rail, records, applied }) => ({ rail, records, applied })),
    ...{ differences: differences.length, lowFloats: lowFloats.length, uncoveredFloats: uncovered.length },
    paused: stopped.filter(({ paused }) => paused !== null).map(({ id }) => id),
    suspended: stopped.filter(({ suspended }) => suspended !== null).map(({ id }) => id),
  }
}

/** The findings without their sentences, which name partners, people, files and addresses. */
export function findingsForSupport(findings: readonly Finding[]) {
  const counts = Map.groupBy(findings, ({ check, level }) => `${level} ${check}`)
  return [...counts.values()].flatMap(([first, ...more]) =>
    first === undefined ? [] : [{ check: first.check, level: first.level, count: 1 + more.length }],
  )
}
