import { Batches } from '../batch/batch.ts'
import { type Db, type Reader, sql } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'
import type { Old } from '../worker/task.ts'
import type { Actor, Change } from './audit-log.ts'

/**
 * A response that showed bank accounts, dates of birth or a bank's words about people: to whom, by which filter, and how many.
 * Disclosures are in the audit log like changes, but in a separate table, because readers are many and rows are kept for a time
 * only. The response to a change is not a disclosure: the change is recorded.
 */
export type Disclosure = { partnerId: string | null; actor: Actor; disclosed: Change; now: Date }

/**
 * Records disclosures one by one or, under load, together. Each is recorded before its response is sent. A crash of PostgreSQL, but
 * not of the program, can lose those of the last second: a reader does not wait for the disk.
 */
export class DisclosureLog {
  readonly #batches: Batches<Disclosure, true>

  constructor(db: Db) {
    this.#batches = new Batches(async disclosures => {
      await recordDisclosures(db, disclosures, { isDurable: false })
      return disclosures.map(() => true as const)
    })
  }

  async record(disclosure: Disclosure): Promise<void> {
    await this.#batches.submit(disclosure.partnerId ?? '', disclosure)
  }
}

/** @param options.isDurable whether the commit waits for the disk; false only outside a transaction */
export async function recordDisclosures(
  db: Reader,
  all: readonly Disclosure[],
  { isDurable }: { isDurable: boolean },
): Promise<void> {
  const of = <T>(value: (disclosure: Disclosure) => T) => all.map(value)
  const commit = isDurable ? sql`select` : sql`select set_config('synchronous_commit', 'off', true)`
  await sql`
    with setting as (${commit})
    insert into disclosures (partner_id, id, at, actor_kind, actor, action, resource_id, details, address, request_id)
    select shown.* from setting, unnest(
      ${of(each => each.partnerId)}::text[], ${of(({ now }) => newId('auditEntry', now))}::text[],
      ${of(({ now }) => now.toISOString())}::timestamptz[], ${of(({ actor }) => actor.kind)}::text[],
      ${of(({ actor }) => actor.name)}::text[], ${of(({ disclosed }) => disclosed.action)}::text[],
      ${of(({ disclosed }) => disclosed.resourceId)}::text[],
      ${of(({ disclosed }) => JSON.stringify(disclosed.details))}::jsonb[],
      ${of(({ actor }) => actor.address)}::text[], ${of(({ actor }) => actor.requestId)}::text[]) as shown`.execute(db)
}

/** SQL that finds disclosures from before an instant. */
export const oldDisclosures = ({ before, countMax }: Old) => sql`
  select id from disclosures where at < ${before} order by at limit ${countMax}`

/** Removes old disclosures. The database always keeps those of the last 30 days. @returns how many were removed */
export async function removeOldDisclosures(db: Reader, { before, countMax }: Old): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select forget_disclosures(${before}, ${countMax}) as count`.execute(db)
  return rows[0]?.count ?? 0
}
