import type { RawBuilder } from 'kysely'
import { firstOpenTransaction, type Reader, sql, type Tx } from '../db.ts'
import { problem } from '../errors.ts'
import { fixedSql } from '../fixed-sql.ts'
import { firstId, newId } from '../ids.ts'
import type { EventData, EventType } from './catalogue.ts'

/**
 * A state change to be emitted; its type and data are one row of the catalogue.
 * `isFirst`: the resource is made by the same statement, so that there is no earlier event to look for.
 */
export type NewEvent<T extends EventType = EventType> = {
  [Type in T]: {
    partnerId: string
    type: Type
    resourceId: string
    isFirst?: true
    data: EventData<Type>
    now: Date
  }
}[T]

/** Appends an event, in the transaction that makes the change; see `appending`. */
export async function append(tx: Tx, event: NewEvent): Promise<void> {
  await appending([event]).execute(tx)
}

/**
 * SQL of an insert of events, at most one for each resource, for the statement that makes the changes. `sequence` grows by
 * one per resource; the caller holds the resources' rows, so nobody else can be appending to them.
 */
export function appending(all: NewEvent[]) {
  const of = <T>(value: (event: NewEvent) => T) => all.map(value)
  return fixedSql`
    insert into events (partner_id, id, type, resource_id, sequence, data, created_at, transaction_id)
    select e.partner_id, e.id, e.type, e.resource_id, coalesce(earlier.sequence, 0) + 1, e.data, e.created_at,
           -- Its place in the feed: never before an earlier event of the resource, whose transaction may have begun later.
           greatest(pg_current_xact_id(), earlier.transaction_id)
      from unnest(
             ${of(event => event.partnerId)}::text[], ${of(event => newId('event', event.now))}::text[],
             ${of(event => event.type)}::text[], ${of(event => event.resourceId)}::text[],
             ${of(event => event.isFirst ?? false)}::boolean[], ${of(event => JSON.stringify(event.data))}::jsonb[],
             ${of(event => event.now.toISOString())}::timestamptz[])
        as e (partner_id, id, type, resource_id, is_first, data, created_at)
     cross join lateral (
       select max(sequence) as sequence, max(transaction_id) as transaction_id from events
        where not e.is_first and partner_id = e.partner_id and resource_id = e.resource_id
     ) earlier`
}

/**
 * SQL of an insert of the first event of each resource that the same statement makes, for resources by the thousand.
 * @param made a relation with one row per resource, at most `countMax` of them
 * @param resourceId its column with the id of the resource
 * @param data SQL of each field of the event's data
 */
export function appendingFirst<T extends EventType>({
  partnerId,
  type,
  made,
  resourceId,
  data,
  countMax,
  now,
}: {
  partnerId: string
  type: T
  made: ReturnType<typeof sql>
  resourceId: ReturnType<typeof sql>
  data: { [Field in keyof EventData<T>]: RawBuilder<EventData<T>[Field]> }
  countMax: number
  now: Date
}) {
  const ids = Array.from({ length: countMax }, () => newId('event', now))
  const fields = Object.entries<RawBuilder<unknown>>(data).map(([name, value]) => sql`${sql.lit(name)}, ${value}`)
  return sql`
    insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
    select ${partnerId}, named.id, ${type}, made.resource_id, 1, made.data, ${now}
      from (select ${resourceId} as resource_id, jsonb_build_object(${sql.join(fields)}) as data,
                   row_number() over () as place
              from ${made}) made
      join unnest(${ids}::text[]) with ordinality as named (id, place) using (place)`
}

/** Something that happened to a resource; `sequence` counts the steps of one resource from 1. */
export type Event = {
  id: string
  type: EventType
  sequence: number
  data: EventData<EventType>
  createdAt: Date
}

// A reader that was away for a long holiday still finds everything.
const feedDays = 30

// Transactions last for seconds, so that of two events an hour apart the younger is of the later one.
const skewMsMax = 3_600_000

/**
 * A partner's events of the last 30 days in the order of the feed, oldest first.
 *
 * Transactions do not end in the order in which they began. So the feed is in the order of transactions, and stops before
 * the oldest that is still open: what has been read is never followed by something that belongs before it. The events of
 * one resource are in the order of their sequence.
 * @param after the last event that the reader has; null for the beginning
 * @param types only these, unless empty
 * @throws Problem `NotFound` when there is no such event, or it is older than 30 days: events after it may be gone from
 * the feed, and the reader would never know
 */
export async function read(
  db: Reader,
  {
    partnerId,
    after,
    types,
    countMax,
    now,
  }: { partnerId: string; after: string | null; types: EventType[]; countMax: number; now: Date },
): Promise<Event[]> {
  const oldest = oldestAt(now)
  const from =
    after === null ? await startOf(db, { partnerId, oldest }) : await placeOf(db, { partnerId, after, oldest })
  const range = (type: ReturnType<typeof sql>) => sql`
    select transaction_id, sequence, id, type, data, created_at from events
     where partner_id = ${partnerId} ${type} and created_at >= ${oldest}
       and (transaction_id, sequence, id) > (${from.transactionId}::xid8, ${from.sequence}::integer, ${from.id}::id)
       and transaction_id < ${firstOpenTransaction}
     order by transaction_id, sequence, id limit ${countMax}`
  // Each type is a range of its own index, so that a rare one is found without reading all the others.
  const wanted =
    types.length === 0
      ? range(sql``)
      : sql`select e.* from unnest(${[...new Set(types)]}::text[]) as wanted (type)
             cross join lateral (${range(sql`and events.type = wanted.type`)}) e
             order by transaction_id, sequence, id limit ${countMax}`
  const { rows } = await sql<Event>`
    select id, type, sequence, data, created_at from (${wanted}) e
     order by transaction_id, sequence, id`.execute(db)
  return rows
}

/**
 * Where the feed ends now: the id of its last event, to read on after. Null when it has none; then everything that comes is
 * new, and reading on is reading from the beginning.
 */
export async function findLastId(
  db: Reader,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<string | null> {
  const { rows } = await sql<{ id: string; createdAt: Date }>`
    select id, created_at from events
     where partner_id = ${partnerId} and transaction_id < ${firstOpenTransaction}
     order by transaction_id desc, sequence desc, id desc limit 1`.execute(db)
  const [last] = rows
  return last === undefined || last.createdAt < oldestAt(now) ? null : last.id
}

function oldestAt(now: Date): Date {
  return new Date(now.getTime() - feedDays * 86_400_000)
}

type Place = { transactionId: string; sequence: number; id: string }

// Ids sort by time, so this is one step in the primary key: all that is young enough comes after what is surely too old.
async function startOf(db: Reader, { partnerId, oldest }: { partnerId: string; oldest: Date }): Promise<Place> {
  const tooOld = firstId('event', new Date(oldest.getTime() - skewMsMax))
  const { rows } = await sql<Place>`
    select transaction_id, 0 as sequence, '' as id from events
     where partner_id = ${partnerId} and id < ${tooOld} order by events.id desc limit 1`.execute(db)
  return rows[0] ?? { transactionId: '0', sequence: 0, id: '' }
}

async function placeOf(
  db: Reader,
  { partnerId, after, oldest }: { partnerId: string; after: string; oldest: Date },
): Promise<Place> {
  const { rows } = await sql<Place>`
    select transaction_id, sequence, id from events
     where partner_id = ${partnerId} and id = ${after} and created_at >= ${oldest}`.execute(db)
  const place = rows[0]
  if (place === undefined) {
    throw problem(
      'NotFound',
      `There is no such event in the last ${feedDays} days; read from the beginning, without after`,
    )
  }
  return place
}
