import type { RawBuilder } from 'kysely'
import { type CachedSql, cachedSql } from './cached-sql.ts'
import { lanesOf, type Reader, sql } from './database.ts'

/**
 * SQL condition that repeats the partner of a batch as a constant, for each table that the batch's statement reads or updates.
 * A distributed PostgreSQL needs the constant to route the statement to the partner's node. Empty if the batch has commands of
 * several partners: the statement also joins on each row's partner.
 *
 * Also empty with shared lanes. On a single database the constant does harm: with outdated statistics, the planner reads all
 * balances of the partner for each row of a batch instead of looking up one.
 * @param table the name or alias whose `partner_id` is meant
 */
export function onOnePartner(table: string, rows: { partnerId: string }[]): (db: Reader) => CachedSql {
  return db => {
    const partnerId = rows[0]?.partnerId
    const isRouted = lanesOf(db) === 'partner' && partnerId !== undefined
    const isOne = isRouted && rows.every(row => row.partnerId === partnerId)
    return isOne ? cachedSql`${conditionOn(table)} ${partnerId}` : cachedSql``
  }
}

/**
 * SQL condition that names the partner of a statement that finds its rows by an index of another expression. Empty with shared lanes,
 * for the same reason.
 */
export function namingPartner(db: Reader, partnerId: string): RawBuilder<unknown> {
  return lanesOf(db) === 'partner' ? sql`and partner_id = ${partnerId}` : sql``
}

// One object per table: the text of a cached statement is found by the identity of its parts.
const conditions = new Map<string, RawBuilder<unknown>>()

function conditionOn(table: string): RawBuilder<unknown> {
  const known = conditions.get(table) ?? sql`and ${sql.ref(`${table}.partner_id`)} =`
  conditions.set(table, known)
  return known
}
