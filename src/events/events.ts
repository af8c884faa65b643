import type { RawBuilder } from 'kysely'
import { cachedSql } from '../database/cached-sql.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { keepOnNode, onPartnersNode } from '../database/one-partner.ts'
import { problem } from '../kernel/errors.ts'
import { firstId, newId } from '../kernel/ids.ts'
import { retentionKinds } from '../kernel/retention.ts'
import type { EventData, EventType } from './catalogue.ts'

/**
 * A state change to be emitted. Its type and data are as declared in the catalogue. `sequence` counts the events of the resource from 1:
 * it follows from the state of the resource, or from a count in a row that the transaction has locked. The events themselves
 * cannot give it, because old ones are dropped.
 */
export type NewEvent<T extends EventType = EventType> = {
  [Type in T]: {
    partnerId: string
    type: Type
    resourceId: string
    sequence: number
    data: EventData<Type>
    now: Date
  }
}[T]

/** Emits an event in the transaction that makes the change; see `emitSql`. */
export async function emit(tx: Tx, event: NewEvent): Promise<void> {
  await keepOnNode(tx, [event])
  await emitSql([event]).execute(tx)
}

/**
 * SQL of an insert of events, for the statement that makes the changes. Their data is one JSON array: in an array of jsonb, each
 * quotation mark would be escaped once more.
 */
export function emitSql(all: NewEvent[]) {
  const of = <T>(value: (event: NewEvent) => T) => all.map(value)
  const { partner, home } = onPartnersNode(all)
  return cachedSql`
    insert into events (partner_id, id, type, resource_id, sequence, created_at, data)
    select ${partner}, id, type, resource_id, sequence, created_at, data from rows from (
      unnest(
        ${of(event => event.partnerId)}::text[], ${of(event => newId('event', event.now))}::text[],
        ${of(event => event.type)}::text[], ${of(event => event.resourceId)}::text[],
        ${of(event => event.sequence)}::integer[], ${of(event => event.now.toISOString())}::timestamptz[]),
      jsonb_array_elements(${JSON.stringify(of(event => event.data))}::jsonb))
      as new (partner_id, id, type, resource_id, sequence, created_at, data) ${home}`
}

type FirstEvents<T extends EventType> = {
  partnerId: string
  type: T
  made: ReturnType<typeof sql>
  resourceId: ReturnType<typeof sql>
  data: { [Field in keyof EventData<T>]: RawBuilder<EventData<T>[Field]> }
  countMax: number
  now: Date
}

/**
 * SQL of the `with` steps `feed` and `emitted`: inserts the first event of each resource that the same statement creates, for
 * thousands of resources. Also numbers the events under the lock of the partner's feed. The lock is held until the commit, so
 * the caller must commit soon. Numbering the events later would write each event and its index entries a second time.
 * @param made a relation with one row per resource, at most `countMax`
 * @param resourceId the column of `made` with the id of the resource
 * @param data SQL of each field of the event's data
 */
export function emitFirstSql<T extends EventType>(first: FirstEvents<T>) {
  const { partnerId, type, made, resourceId, data, countMax, now } = first
  const ids = Array.from({ length: countMax }, () => newId('event', now))
  const fields = Object.entries<RawBuilder<unknown>>(data).map(([name, value]) => sql`${sql.lit(name)}, ${value}`)
  return sql`
    feed as (
      insert into event_feeds (partner_id, last_position) select ${partnerId}, count(*) from ${made}
          on conflict (partner_id) do update set last_position = event_feeds.last_position + excluded.last_position
      returning last_position - (select count(*) from ${made}) as numbered_before
    ), emitted as (
      insert into events (partner_id, id, type, resource_id, sequence, data, created_at, position)
      select ${partnerId}, named.id, ${type}, made.resource_id, 1, made.data, ${now}, feed.numbered_before + place
      from feed cross join (select ${resourceId} as resource_id, jsonb_build_object(${sql.join(fields)}) as data,
                                   row_number() over () as place
                              from ${made}) made
      join unnest(${ids}::text[]) with ordinality as named (id, place) using (place)
    )`
}

/** An event about a resource; `sequence` counts the events of one resource from 1. */
export type Event = {
  id: string
  type: EventType
  sequence: number
  data: EventData<EventType>
  createdAt: Date
}

const limits = {
  // Transactions last seconds, so of two events an hour apart the newer one has the later position.
  skewMsMax: 3_600_000,
}

/** Whether a partner has committed events that are not in the feed yet. */
export async function hasUnnumbered(db: Reader, partnerId: string): Promise<boolean> {
  const { rows } = await sql`
    select from events where partner_id = ${partnerId} and position is null limit 1`.execute(db)
  return rows.length > 0
}

/** The partners with committed events that are not in the feed yet. */
export async function partnersToNumber(db: Reader): Promise<string[]> {
  const { rows } = await sql<{ partnerId: string }>`
    select distinct partner_id from events where position is null order by partner_id`.execute(db)
  return rows.map(({ partnerId }) => partnerId)
}

/**
 * Appends committed events of a partner to its feed: assigns the next positions, under the lock of the partner's feed.
 *
 * An event gets its position after its commit, so a transaction that stays open delays no other event. Positions never
 * change: a feed keeps its order when a dump is restored on another server. The events of one resource are numbered by their
 * sequence. They were written under the resource's lock, so a transaction that sees one event sees all earlier ones.
 * @param countMax how many events, lowest ids first; earlier events of the same resources are numbered with them
 * @param waits whether to wait for another transaction that numbers the same feed; if false, the feed is left to that one
 * @returns how many events were numbered; 0 if the feed is complete, or is being numbered by another transaction
 */
export async function numberFeed(
  tx: Tx,
  { partnerId, countMax, waits }: { partnerId: string; countMax: number; waits: boolean },
): Promise<number> {
  await sql`
    insert into event_feeds (partner_id, last_position) values (${partnerId}, 0) on conflict do nothing`.execute(tx)
  // A separate statement, so that the next one sees what the previous lock holder has numbered.
  const { rows: locked } = await sql<{ metadataInEvents: boolean }>`
    select p.metadata_in_events from event_feeds f join partners p on p.id = f.partner_id
     where f.partner_id = ${partnerId} for update of f ${waits ? sql`` : sql`skip locked`}`.execute(tx)
  const [partner] = locked
  if (partner === undefined) return 0
  const { rows: due } = await sql<{ resourceId: string }>`
    select resource_id from events
     where partner_id = ${partnerId} and position is null
     order by id limit ${countMax}`.execute(tx)
  if (due.length === 0) return 0
  const resourceIds = [...new Set(due.map(({ resourceId }) => resourceId))]
  // The resources as a list, which PostgreSQL hashes. A subquery would be compared with every event without a position.
  const { rows: placed } = await sql<{ id: string }>`
    with unnumbered as (
      -- An event is placed no earlier than those of its resource that come before it, whatever its id.
      select id, sequence, max(id) over (partition by resource_id order by sequence) as latest_id
        from events
       where partner_id = ${partnerId} and position is null and resource_id = any(${resourceIds}::text[])
    )
    select id from unnumbered order by latest_id, sequence, id`.execute(tx)
  // The ids as a list, whose length the planner knows. From a subquery it would expect one row, and scan the table for each.
  await sql`
    with feed as (
      update event_feeds set last_position = last_position + ${placed.length}
       where partner_id = ${partnerId}
      returning last_position - ${placed.length} as numbered_before
    )
    update events e set position = feed.numbered_before + placed.place${partner.metadataInEvents ? metadataOfObject : sql``}
      from feed, unnest(${placed.map(({ id }) => id)}::text[]) with ordinality as placed (id, place)
     where e.partner_id = ${partnerId} and e.id = placed.id`.execute(tx)
  return placed.length
}

// Null for an object without metadata. A withdrawal has the metadata of its intent.
const metadataOfObject = sql`, metadata = (
      select jsonb_object_agg(m.key, m.value) from metadata m
       where m.partner_id = e.partner_id and m.resource_id = coalesce(e.data ->> 'withdrawalIntentId', e.resource_id))`

/** SQL of an event's data as partners receive it. @param row the alias of `events` */
export function dataSql(row: string) {
  const [data, metadata] = [sql.ref(`${row}.data`), sql.ref(`${row}.metadata`)]
  return sql`case when ${metadata} is null then ${data} else ${data} || jsonb_build_object('metadata', ${metadata}) end as data`
}

type FeedQuery = {
  partnerId: string
  after: string | null
  types: EventType[]
  resourceId?: string | null
  countMax: number
  now: Date
}

/**
 * A partner's numbered events of the last 30 days in feed order, oldest first. The events of one resource are in order of their
 * sequence.
 * @param after the last event that the reader has; null for the beginning
 * @param types returns only these types; all types if empty
 * @throws Problem `NotFound` if there is no such event, or it is older than 30 days: events after it may have left the feed,
 * and the reader would silently miss them
 */
export async function read(
  db: Reader,
  { partnerId, after, types, resourceId = null, countMax, now }: FeedQuery,
): Promise<Event[]> {
  const oldest = oldestAt(now)
  const from =
    after === null ? await startOf(db, { partnerId, oldest }) : await positionOf(db, { partnerId, after, oldest })
  const range = (type: ReturnType<typeof sql>) => sql`
    select position, sequence, id, type, ${dataSql('events')}, created_at from events
     where partner_id = ${partnerId} ${type} and ${isRecent(oldest)} and position > ${from}
     order by position limit ${countMax}`
  // A resource has few events. Each type is one index range, so a rare type is found without reading the others.
  const wanted =
    resourceId !== null
      ? range(sql`and resource_id = ${resourceId} and (${types.length === 0} or type = any(${types}::text[]))`)
      : types.length === 0
        ? range(sql``)
        : sql`select e.* from unnest(${[...new Set(types)]}::text[]) as wanted (type)
               cross join lateral (${range(sql`and events.type = wanted.type`)}) e
               order by position limit ${countMax}`
  const { rows } = await sql<Event>`
    select id, type, sequence, data, created_at from (${wanted}) e order by position`.execute(db)
  return rows
}

/** The events of some resources in the last 30 days, newest first, including events that have no position in the feed yet. */
export async function listOfResources(
  db: Reader,
  { partnerId, resourceIds, countMax, now }: { partnerId: string; resourceIds: string[]; countMax: number; now: Date },
): Promise<Event[]> {
  const { rows } = await sql<Event>`
    select id, type, sequence, ${dataSql('events')}, created_at from events
     where partner_id = ${partnerId} and resource_id = any(${resourceIds}::text[]) and ${isRecent(oldestAt(now))}
     order by created_at desc, id desc limit ${countMax}`.execute(db)
  return rows
}

/**
 * The id of the last event in the feed, as the cursor for later events. Null if the feed is empty: the reader then starts from
 * the beginning. The caller has numbered the committed events.
 */
export async function findLastId(
  db: Reader,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<string | null> {
  const { rows } = await sql<{ id: string; createdAt: Date }>`
    select id, created_at from events
     where partner_id = ${partnerId} and position is not null
     order by position desc limit 1`.execute(db)
  const [last] = rows
  return last === undefined || last.createdAt < oldestAt(now) ? null : last.id
}

/** The position of the last event in the feed; 0 if it is empty. */
export async function findLastPosition(db: Reader, partnerId: string): Promise<bigint> {
  const { rows } = await sql<{ lastPosition: bigint }>`
    select last_position from event_feeds where partner_id = ${partnerId}`.execute(db)
  return rows[0]?.lastPosition ?? 0n
}

// Ids begin with the time, so that the condition on them excludes partitions.
function isRecent(oldest: Date) {
  return sql`created_at >= ${oldest} and id >= ${firstId('event', oldest)}`
}

/** Older events have left the feed. */
export function oldestAt(now: Date): Date {
  return new Date(now.getTime() - retentionKinds.events.days * 86_400_000)
}

// Ids sort by time, so this is one lookup in the primary key: recent events come after events that are certainly too old.
async function startOf(db: Reader, { partnerId, oldest }: { partnerId: string; oldest: Date }): Promise<bigint> {
  const tooOld = firstId('event', new Date(oldest.getTime() - limits.skewMsMax))
  const { rows } = await sql<{ position: bigint }>`
    select position from events
     where partner_id = ${partnerId} and id < ${tooOld} and position is not null
     order by id desc limit 1`.execute(db)
  return rows[0]?.position ?? 0n
}

async function positionOf(
  db: Reader,
  { partnerId, after, oldest }: { partnerId: string; after: string; oldest: Date },
): Promise<bigint> {
  const { rows } = await sql<{ position: bigint }>`
    select position from events
     where partner_id = ${partnerId} and id = ${after} and created_at >= ${oldest} and position is not null`.execute(db)
  const [found] = rows
  if (found === undefined)
    throw problem(
      'NotFound',
      `There is no such event in the last ${retentionKinds.events.days} days; read from the beginning, without after`,
    )
  return found.position
}

/** Has a trigger on the partner's node delete what the node has of a partner of a sandbox; see `node-forms.ts`. The feed stays. */
export async function resetPartner(tx: Tx, partnerId: string): Promise<void> {
  await sql`
    insert into event_feeds (partner_id, last_position) values (${partnerId}, 0) on conflict do nothing`.execute(tx)
  await sql`update event_feeds set last_position = -1 where partner_id = ${partnerId}`.execute(tx)
}
