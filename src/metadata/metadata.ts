import type { RawBuilder } from 'kysely'
import { cachedSql } from '../database/cached-sql.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import { lockByName } from '../database/named-locks.ts'
import { onOnePartner } from '../database/one-partner.ts'
import { problem } from '../kernel/errors.ts'
import type { Metadata } from './schema.ts'

/** The objects that have metadata. A withdrawal has the metadata of its intent. */
export type Kind = 'member' | 'withdrawal_intent' | 'pay_run' | 'webhook'

export type { Metadata }

/** The metadata of some objects by id; empty for an object that has none. */
export async function findAll(
  db: Reader,
  asked: { partnerId: string; resourceId: string }[],
): Promise<Map<string, Metadata>> {
  if (asked.length === 0) return new Map()
  const { rows } = await cachedSql<{ resourceId: string; metadata: Metadata }>`
    select m.resource_id, json_object_agg(m.key, m.value order by m.position) as metadata
      from unnest(${asked.map(({ partnerId }) => partnerId)}::text[], ${asked.map(({ resourceId }) => resourceId)}::text[])
             as asked (partner_id, id)
      join metadata m on m.partner_id = asked.partner_id and m.resource_id = asked.id ${onOnePartner('m', asked)}
     group by m.resource_id`.execute(db)
  const found = new Map(rows.map(({ resourceId, metadata }) => [resourceId, metadata]))
  return new Map(asked.map(({ resourceId }) => [resourceId, found.get(resourceId) ?? {}]))
}

export async function find(db: Reader, asked: { partnerId: string; resourceId: string }): Promise<Metadata> {
  return (await findAll(db, [asked])).get(asked.resourceId) ?? {}
}

type ResourceInSql = { partnerId: string; resourceId: RawBuilder<unknown> }

/**
 * SQL of the metadata of an object, for the statement that reads the object.
 * @param resourceId SQL of the object's id
 */
export function metadataOf({ partnerId, resourceId }: ResourceInSql): RawBuilder<Metadata> {
  return sql<Metadata>`
    coalesce((select json_object_agg(own.key, own.value order by own.position) from metadata own
               where own.partner_id = ${partnerId} and own.resource_id = ${resourceId}), '{}')`
}

/**
 * Replaces the metadata of an object as a whole. Of two concurrent replacements, the later one wins as a whole.
 * @returns the metadata before the change
 * @throws Problem `Conflict` if the object was deleted by a reset of the sandbox
 */
export async function replace(
  tx: Tx,
  { partnerId, kind, resourceId, metadata }: { partnerId: string; kind: Kind; resourceId: string; metadata: Metadata },
): Promise<Metadata> {
  await lockByName(tx, 'metadata of', `${partnerId} ${resourceId}`)
  const before = await find(tx, { partnerId, resourceId })
  await sql`delete from metadata where partner_id = ${partnerId} and resource_id = ${resourceId}`.execute(tx)
  try {
    await sql`
      insert into metadata (partner_id, kind, resource_id, key, value, position)
      select ${partnerId}, ${kind}, ${resourceId}, key, value, position
        from unnest(${Object.keys(metadata)}::text[], ${Object.values(metadata)}::text[])
             with ordinality as given (key, value, position)`.execute(tx)
  } catch (error) {
    if (!/^metadata_\w+_fkey$/.test(brokenConstraint(error) ?? '')) throw error
    throw problem('Conflict', 'The sandbox was reset during this request; try again', {}, { 'retry-after': '1' })
  }
  return before
}

/** Deletes the metadata of some objects. */
export async function eraseAll(
  tx: Tx,
  { partnerId, resourceIds }: { partnerId: string; resourceIds: string[] },
): Promise<void> {
  await sql`
    delete from metadata where partner_id = ${partnerId} and resource_id = any(${resourceIds}::text[])`.execute(tx)
}

/**
 * SQL condition: the object has each of these keys with this value.
 * @param resourceId SQL of the object's id
 */
export function hasMetadata(
  metadata: Metadata,
  { partnerId, kind, resourceId }: { partnerId: string; kind: Kind; resourceId: RawBuilder<unknown> },
): RawBuilder<boolean> {
  const conditions = Object.entries(metadata).map(
    ([key, value]) => sql<boolean>`
      exists (select from metadata given
               where given.partner_id = ${partnerId} and given.kind = ${kind} and given.key = ${key} and given.value = ${value}
                 and given.resource_id = ${resourceId})`,
  )
  return conditions.length === 0 ? sql<boolean>`true` : sql.join<boolean>(conditions, sql` and `)
}
