import { type Reader, sql } from './database.ts'

/**
 * Rejects a server that could lose committed transactions.
 * @throws with a sentence for the operator if a durability setting is off, or the server is older than 15
 */
export async function requireDurability(db: Reader): Promise<void> {
  const { rows } = await sql<{ name: string; setting: string }>`
    select name, setting from pg_settings
     where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'server_version_num')`.execute(db)
  const setting = new Map(rows.map(row => [row.name, row.setting]))
  if (Number(setting.get('server_version_num')) < 150_000) {
    throw new Error('PostgreSQL is too old: Midmonth needs version 15 or later')
  }
  for (const name of ['fsync', 'full_page_writes', 'synchronous_commit']) {
    const value = setting.get(name)
    // local acknowledges what a synchronous standby, which may become the primary, does not have yet.
    if (value === 'off' || value === 'local') {
      throw new Error(
        `PostgreSQL runs with ${name} = ${value}, so confirmed withdrawals could be lost: turn ${name} on and start again`,
      )
    }
  }
}

/** How the server archives its write-ahead log, which point-in-time recovery needs. Dumps leave no trace here. */
export type Archiving = { isOn: boolean; archivedAt: Date | null; failedAt: Date | null }

export async function readArchiving(db: Reader): Promise<Archiving> {
  const { rows } = await sql<Archiving>`
    select current_setting('archive_mode') <> 'off' as is_on, last_archived_time as archived_at,
           last_failed_time as failed_at
      from pg_stat_archiver`.execute(db)
  return rows[0] ?? { isOn: false, archivedAt: null, failedAt: null }
}

/** The replicas that stream from the server, and whether commits wait for one of them. */
export type Replication = {
  isSynchronous: boolean
  replicas: readonly { name: string; state: string | null; lagSeconds: number | null }[]
}

/** Neither backups, archives of WAL nor logical subscribers are replicas. State and lag are hidden from a role without the rights of `pg_read_all_stats`. */
export async function readReplication(db: Reader): Promise<Replication> {
  const { rows } = await sql<{ isSynchronous: boolean }>`
    select current_setting('synchronous_standby_names') <> '' as is_synchronous`.execute(db)
  const { rows: replicas } = await sql<Replication['replicas'][number]>`
    select application_name as name, sync_state as state, extract(epoch from replay_lag)::float8 as lag_seconds
      from pg_stat_replication
     where application_name <> 'pg_basebackup' and application_name !~ 'receive_?wal$' and state is distinct from 'backup'
       and pid not in (select active_pid from pg_replication_slots where slot_type = 'logical' and active_pid is not null)
     order by replay_lag nulls first`.execute(db)
  return { isSynchronous: rows[0]?.isSynchronous === true, replicas }
}

/** Whether archiving has failed since it last succeeded. */
export function isArchivingFailing({ isOn, archivedAt, failedAt }: Archiving): boolean {
  return isOn && failedAt !== null && (archivedAt === null || failedAt > archivedAt)
}
