import type { RawBuilder } from 'kysely'
import { cachedSql } from './cached-sql.ts'
import { sql } from './database.ts'

/**
 * SQL of a condition that repeats the partner of a batch as a constant, for each table that a statement of a batch reads or
 * updates; empty if the batch has commands of several partners.
 *
 * On one database it changes nothing, since the statement joins on each row's partner as well. A distributed PostgreSQL
 * needs the constant to route the statement to the partner's node.
 * @param table the name or alias whose `partner_id` is meant
 */
export function onOnePartner(table: string, rows: { partnerId: string }[]) {
  const partnerId = rows[0]?.partnerId
  if (partnerId === undefined || rows.some(row => row.partnerId !== partnerId)) return cachedSql``
  return cachedSql`${conditionOn(table)} ${partnerId}`
}

// One object per table: the text of a cached statement is found by the identity of its parts.
const conditions = new Map<string, RawBuilder<unknown>>()

function conditionOn(table: string): RawBuilder<unknown> {
  const known = conditions.get(table) ?? sql`and ${sql.ref(`${table}.partner_id`)} =`
  conditions.set(table, known)
  return known
}
