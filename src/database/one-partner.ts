import type { RawBuilder } from 'kysely'
import { type CachedSql, cachedSql } from './cached-sql.ts'
import { lanesOf, type Reader, sql } from './database.ts'
import { answeredWithNext } from './prepared.ts'

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
    const partnerId = onlyPartner(db, rows)
    return partnerId === undefined ? cachedSql`` : cachedSql`${conditionOn(table)} ${partnerId}`
  }
}

/** The partner of all rows, if lanes are per partner. */
function onlyPartner(db: Reader, rows: { partnerId: string }[]): string | undefined {
  const partnerId = rows[0]?.partnerId
  return lanesOf(db) === 'partner' && rows.every(row => row.partnerId === partnerId) ? partnerId : undefined
}

/**
 * SQL that has rows made from values, or by other steps of the statement, inserted on the partner's node: `partner` is the partner's id in
 * the select list, and `home` the end of the `from` clause. Otherwise a distributed PostgreSQL makes the rows on the coordinator and
 * copies them; such a step inside `with` needs a connection to every node, and a broken constraint is an error without its code.
 *
 * With shared lanes, or rows of several partners, `partner` is the column `partner_id` of the relation `new`, and `home` is empty.
 */
export function onPartnersNode(rows: { partnerId: string }[]): Record<'partner' | 'home', (db: Reader) => CachedSql> {
  return {
    partner: db => (onlyPartner(db, rows) === undefined ? cachedSql`new.partner_id` : cachedSql`home.partner_id`),
    home: db => {
      const partnerId = onlyPartner(db, rows)
      return partnerId === undefined ? cachedSql`` : homeOf(partnerId)
    },
  }
}

/**
 * Keeps the partner of all rows on its node until the transaction ends: a write takes the lock for which moves wait. Before a statement
 * that uses `onPartnersNode`: Citus looks up one table after the other, and if a shard is divided in between, finds the new rows in one shard
 * and the partner in another, and inserts nothing, without an error. A drill lost an acknowledged intent so.
 */
export async function keepOnNode(tx: Reader, rows: { partnerId: string }[]): Promise<void> {
  const partnerId = onlyPartner(tx, rows)
  if (partnerId === undefined) return
  // No key is empty, so this deletes nothing and only takes the lock of the shard. Repeated in a transaction: a rollback to a savepoint
  // releases the lock.
  await cachedSql`${answeredWithNext} delete from idempotency_keys where partner_id = ${partnerId} and key = ''`.execute(
    tx,
  )
}

/** Like `onPartnersNode`, for ordinary SQL about one partner. */
export function onNodeOf(db: Reader, partnerId: string): Record<'partner' | 'home', RawBuilder<unknown>> {
  if (lanesOf(db) === 'shared') return { partner: sql`${partnerId}`, home: sql`` }
  return { partner: sql`home.partner_id`, home: sql`${homeOf(partnerId)}` }
}

// A partner always has pay cycles.
function homeOf(partnerId: string): CachedSql {
  return cachedSql`cross join (select partner_id from pay_cycles where partner_id = ${partnerId} limit 1) home`
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
