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
