import type { RawBuilder } from 'kysely'
import type { Lanes } from '../lanes.ts'
import { cachedSql } from './cached-sql.ts'
import { sql } from './database.ts'

let isRouting = false

/**
 * Sets, for the process, whether statements name their partner as a constant. Only a distributed PostgreSQL needs that. On one
 * database the constant harms: with outdated statistics the planner then reads all balances of the partner for each row of a
 * batch instead of looking each one up.
 */
export function setRouting(lanes: Lanes): void {
  isRouting = lanes === 'partner'
}

/**
 * SQL of a condition that repeats the partner of a batch as a constant, for each table that a statement of a batch reads or
 * updates. A distributed PostgreSQL needs it to route the statement to the partner's node. Empty with shared lanes, and if the
 * batch has commands of several partners; the statement joins on each row's partner as well.
 * @param table the name or alias whose `partner_id` is meant
 */
export function onOnePartner(table: string, rows: { partnerId: string }[]) {
  const partnerId = rows[0]?.partnerId
  const isOne = isRouting && partnerId !== undefined && rows.every(row => row.partnerId === partnerId)
  return isOne ? cachedSql`${conditionOn(table)} ${partnerId}` : cachedSql``
}

// One object per table: the text of a cached statement is found by the identity of its parts.
const conditions = new Map<string, RawBuilder<unknown>>()

function conditionOn(table: string): RawBuilder<unknown> {
  const known = conditions.get(table) ?? sql`and ${sql.ref(`${table}.partner_id`)} =`
  conditions.set(table, known)
  return known
}
