import pg from 'pg'
import { type Db, sql, type Tx } from './database.ts'

// Where the database is: on which server, and which of the server's databases and histories. A copy of the server's whole disk is in the
// same place.

/** @property tableOid of a table: dropping all tables, as `pg_restore --clean` does, changes it, but not the database's */
export type Place = { systemIdentifier: string; databaseOid: bigint; tableOid: bigint; timeline: string }

/** @property isKnown whether the database remembers this place */
export type PlaceNow = Place & { wasStandby: boolean; isKnown: boolean }

/** The timeline that the primary writes, in hexadecimal, as in the names of WAL files. */
export const timelineNow = sql<string>`left(pg_walfile_name(pg_current_wal_lsn()), 8)`

/** Where the database is now. @returns undefined if the server does not say, as some that are offered as a service */
export async function readPlace(db: Db): Promise<PlaceNow | undefined> {
  try {
    const { rows } = await sql<PlaceNow>`
      with place as (
        select (select system_identifier::text from pg_control_system()) as system_identifier,
               (select oid::bigint from pg_database where datname = current_database()) as database_oid,
               'database_places'::regclass::oid::bigint as table_oid,
               ${timelineNow} as timeline)
      select place.*, pg_last_wal_receive_lsn() is not null as was_standby,
             exists (select from database_places natural join place) as is_known
        from place`.execute(db)
    return rows[0]
  } catch (error) {
    // 42501: insufficient privilege; 42883: no such function.
    if (error instanceof pg.DatabaseError && (error.code === '42501' || error.code === '42883')) return undefined
    throw error
  }
}

/** Remembers where the database is. @returns where it was before */
export async function rememberPlace(
  tx: Tx,
  { place: { systemIdentifier, databaseOid, tableOid, timeline }, now }: { place: Place; now: Date },
): Promise<Place | undefined> {
  await sql`
    insert into database_places (system_identifier, database_oid, table_oid, timeline, seen_at)
    values (${systemIdentifier}, ${databaseOid}, ${tableOid}, ${timeline}, ${now})
        on conflict (one) do nothing`.execute(tx)
  const { rows } = await sql<Place>`
    select system_identifier, database_oid, table_oid, timeline from database_places for update`.execute(tx)
  await sql`
    update database_places set system_identifier = ${systemIdentifier}, database_oid = ${databaseOid}, table_oid = ${tableOid},
           timeline = ${timeline}, seen_at = ${now}`.execute(tx)
  return rows[0]
}

/**
 * Tells in words that the database was restored; undefined if it was not. A failover is not a restore: it promotes a standby, to the next
 * timeline. Two failovers at once look like a restore and a failover, so they count as one.
 */
export function restoreBetween(before: Place, { wasStandby, ...now }: Omit<PlaceNow, 'isKnown'>): string | undefined {
  if (before.systemIdentifier !== now.systemIdentifier) return 'The database is on another server than before'
  if (before.databaseOid !== now.databaseOid) return 'The database was created anew on its server'
  if (before.tableOid !== now.tableOid) return 'The tables of the database were created anew'
  const steps = Number.parseInt(now.timeline, 16) - Number.parseInt(before.timeline, 16)
  if (steps === 0 || (steps === 1 && wasStandby)) return undefined
  return 'The server was recovered from an archive of its WAL, or restarted after a failover (then resume with --without-statements)'
}
