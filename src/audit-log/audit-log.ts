import assert from 'node:assert/strict'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { firstId, newId } from '../kernel/ids.ts'
import type { Old } from '../worker/task.ts'
import type { Action } from './actions.ts'

export type { Action }

/** A JSON value. Convert amounts to Money objects and instants to text before recording them. */
type Json = string | number | boolean | null | Json[] | { [name: string]: Json | undefined }
export type Details = { [name: string]: Json | undefined }

export const actorKinds = ['api_key', 'operator_key', 'user', 'cli', 'worker'] as const
type ActorKind = (typeof actorKinds)[number]

/**
 * The author of a change. `name` is the id of the API key, operator key or user, user@host for a command, or `system` for the
 * worker.
 */
export type Actor = {
  kind: ActorKind
  name: string
  address: string | null
  requestId: string | null
}

/** The system itself, for a change that follows from a setting. */
export const worker: Actor = { kind: 'worker', name: 'system', address: null, requestId: null }

/** One change. `details` never contains names, e-mails, phone numbers, full account numbers or secrets: rows are kept forever. */
export type Change = { action: Action; resourceId: string; details: Details }

/**
 * Records a change in the transaction that makes it.
 * @param partnerId null for a change that concerns no partner: to users or to the installation
 */
export async function record(
  tx: Tx,
  { partnerId, actor, change, now }: { partnerId: string | null; actor: Actor; change: Change; now: Date },
): Promise<void> {
  const { kind, name, address, requestId } = actor
  const { action, resourceId, details } = change
  const id = newId('auditEntry', now)
  const values = { id, at: now, actor: name, action, resourceId, details: JSON.stringify(details), address, requestId }
  if (partnerId !== null) {
    await tx
      .insertInto('auditLog')
      .values({ ...values, actorKind: kind, partnerId })
      .execute()
    return
  }
  assert(kind !== 'api_key', 'an API key acts for its partner')
  await tx
    .insertInto('installationAuditLog')
    .values({ ...values, actorKind: kind })
    .execute()
}

/** Returns the settings that differ between two states of a resource, as `details` of a change; null if none differs. */
export function differences<State extends Details>(
  before: State,
  after: State,
): { before: Details; after: Details } | null {
  const names = Object.keys(after).filter(name => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  if (names.length === 0) return null
  const pick = (state: State) => Object.fromEntries(names.map(name => [name, state[name] ?? null]))
  return { before: pick(before), after: pick(after) }
}

export type Entry = {
  id: string
  /** Null for a change that concerns no partner. */
  partnerId: string | null
  at: Date
  actorKind: ActorKind
  actor: string
  action: string
  resourceKind: string
  resourceId: string
  details: Details
  address: string | null
  requestId: string | null
}

/** `from` is inclusive, `to` exclusive. */
export type Filter = {
  partnerId?: string | undefined
  resourceId?: string | undefined
  resourceIds?: readonly string[] | undefined
  actor?: string | undefined
  actorKinds?: readonly ActorKind[] | undefined
  actions?: readonly string[] | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/**
 * Lists entries, newest first.
 * @param before an entry id; only older entries are returned, for the next page
 */
export async function list(
  db: Reader,
  { filter, before, take }: { filter: Filter; before?: string | undefined; take: number },
): Promise<Entry[]> {
  const { partnerId, resourceId, resourceIds, actor, actorKinds: kinds, actions: wanted, from, to } = filter
  const conditions = [
    ...(partnerId === undefined ? [] : [sql<boolean>`partner_id = ${partnerId}`]),
    ...(resourceId === undefined ? [] : [sql<boolean>`resource_id = ${resourceId}`]),
    ...(resourceIds === undefined ? [] : [sql<boolean>`resource_id = any(${[...resourceIds]}::text[])`]),
    ...(actor === undefined ? [] : [sql<boolean>`actor = ${actor}`]),
    ...(kinds === undefined ? [] : [sql<boolean>`actor_kind = any(${[...kinds]}::text[])`]),
    ...(wanted === undefined ? [] : [sql<boolean>`action = any(${[...wanted]}::text[])`]),
    // Ids ascend with time, so a range of time is a range of the index.
    ...(from === undefined ? [] : [sql<boolean>`id >= ${firstId('auditEntry', from)}`]),
    ...(to === undefined ? [] : [sql<boolean>`id < ${firstId('auditEntry', to)}`]),
    ...(before === undefined ? [] : [sql<boolean>`id < ${before}`]),
  ]
  const where = conditions.length === 0 ? sql`true` : sql.join(conditions, sql` and `)
  const columns = sql.raw('id, at, actor_kind, actor, action, resource_kind, resource_id, details, address, request_id')
  const ofPartners = sql`select partner_id, ${columns} from audit_log where ${where} order by id desc limit ${take}`
  const ofReaders = sql`select partner_id, ${columns} from disclosures where ${where} order by id desc limit ${take}`
  const ofInstallation = sql`
    select null as partner_id, ${columns} from installation_audit_log where ${where} order by id desc limit ${take}`
  const { rows } =
    partnerId === undefined
      ? await sql<Entry>`
          (${ofPartners}) union all (${ofReaders}) union all (${ofInstallation}) order by id desc limit ${take}`.execute(
          db,
        )
      : await sql<Entry>`(${ofPartners}) union all (${ofReaders}) order by id desc limit ${take}`.execute(db)
  return rows
}

// Entries read per query while streaming a file.
const entriesAtOnce = 1_000

/** Lists all matching entries, newest first, in pages. */
export async function* listAll(db: Reader, filter: Filter): AsyncGenerator<Entry[]> {
  for (let before: string | undefined; ; ) {
    const entries = await list(db, { filter, before, take: entriesAtOnce })
    if (entries.length > 0) yield entries
    before = entries.at(-1)?.id
    if (entries.length < entriesAtOnce) return
  }
}

/** Counts the newest entries of an action that concerns no partner, up to a maximum. */
export async function countSince(
  db: Reader,
  { action, since, countMax }: { action: Action; since: Date; countMax: number },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from (
      select from installation_audit_log
       where id >= ${firstId('auditEntry', since)} and action = ${action} limit ${countMax}) newest`.execute(db)
  return rows[0]?.count ?? 0
}

/** SQL that finds entries from before an instant that have an address. */
export const oldAddresses = ({ before, countMax }: Old) => sql`
  (select id from audit_log where address is not null and at < ${before} order by at limit ${countMax})
   union all
  (select id from installation_audit_log where address is not null and at < ${before} order by at limit ${countMax})`

/**
 * Removes the addresses of old entries, at most `countMax` per log. The database always keeps the addresses of the last seven days.
 * @returns how many addresses were removed
 */
export async function removeOldAddresses(db: Reader, { before, countMax }: Old): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select forget_audit_addresses(${before}, ${countMax}) as count`.execute(db)
  return rows[0]?.count ?? 0
}

/** The instant of the data in the latest recorded backup; null if none was recorded. */
export async function readLastBackup(db: Reader): Promise<Date | null> {
  const { rows } = await sql<{ at: string | null }>`
    select max(resource_id) as at from installation_audit_log where action = 'backup.record'`.execute(db)
  const at = rows[0]?.at
  return at == null ? null : new Date(at)
}
