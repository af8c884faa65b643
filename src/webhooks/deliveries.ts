import { type Cursor, unknownCursor } from '../database/cursor.ts'
import { type Columns, type Db, type Page, type Reader, sql, type Tx } from '../database/database.ts'
import type { EventType } from '../events/catalogue.ts'
import * as events from '../events/events.ts'
import { problem } from '../kernel/errors.ts'
import { firstId, newId } from '../kernel/ids.ts'
import { retentionKinds } from '../kernel/retention.ts'
import { constantOf, inScope, type Old } from '../worker/task.ts'
import { fanOut, takes } from './fan-out.ts'
import { lock } from './webhooks.ts'

export const limits = {
  // Per request: one statement of some hundred milliseconds. `hasMore` says that there are more.
  replayedMax: 10_000,
  // Events that a replay fans out first. Further ones are left to the worker, and to a later replay.
  fannedOutMax: 500,
  // Attempts of a delivery that are listed: at most 1.6 MB of responses.
  attemptsMax: 100,
}

export const deliveryStates = ['pending', 'delivered', 'failed', 'skipped'] as const
type DeliveryState = (typeof deliveryStates)[number]

type OfEndpoint = { partnerId: string; webhookId: string }

/** The delivery of an event to an endpoint. Within the endpoint, the id of the event is the id of the delivery. */
export type Delivery = {
  id: string
  type: EventType
  state: DeliveryState
  isTest: boolean
  attemptCount: number
  createdAt: Date
  lastAttemptAt: Date | null
  /** The HTTP status of the last attempt; null if there was no attempt or no response. */
  lastStatus: number | null
  /** The earliest time of the next attempt; null if none is planned. */
  nextAttemptAt: Date | null
}

// A disabled endpoint gets no scheduled attempts, and a paused one none until the pause ends.
const deliveryColumns = (partnerId: string) => sql`
  d.event_id as id, d.type, d.state, d.sample is not null as is_test, d.attempt_count, d.created_at, d.last_attempt_at,
  (select a.status from webhook_attempts a
    where a.partner_id = ${partnerId} and a.endpoint_id = d.endpoint_id and a.event_id = d.event_id
    order by a.number desc limit 1) as last_status,
  case when d.replay_at is not null or (d.due_at is not null and w.enabled)
       then greatest(least(d.replay_at, case when w.enabled then d.due_at end), w.blocked_until) end as next_attempt_at`

const endpointOfDelivery = sql`webhook_endpoints w on w.partner_id = d.partner_id and w.id = d.endpoint_id`

type DeliveryFilter = { states: DeliveryState[]; types: EventType[]; eventId: string | null }

type DeliveryQuery = OfEndpoint & { filter: DeliveryFilter; page: Page; cursor: Cursor | undefined }

/** Lists the deliveries of an endpoint, newest events first. */
export async function list(
  db: Reader,
  { partnerId, webhookId, filter, page, cursor }: DeliveryQuery,
): Promise<{ deliveries: Delivery[]; hasMore: boolean }> {
  if (cursor !== undefined && !(await exists(db, { partnerId, webhookId, eventId: cursor.id })))
    throw unknownCursor(cursor)
  // One more than asked for, to tell whether there is more.
  const end = page.skip + page.take + 1
  const range = (condition: ReturnType<typeof sql>) => sql`
    select * from webhook_deliveries
     where partner_id = ${partnerId} and endpoint_id = ${webhookId}
       ${filter.eventId === null ? sql`` : sql`and event_id = ${filter.eventId}`}
       ${cursor === undefined ? sql`` : sql`and event_id < ${cursor.id}`} ${condition}
     order by event_id desc limit ${end}`
  const { rows } = await sql<Delivery>`
    select ${deliveryColumns(partnerId)} from (${rangesOf(filter, range)}) d join ${endpointOfDelivery}
     where w.partner_id = ${partnerId}
     order by d.event_id desc offset ${page.skip} limit ${page.take + 1}`.execute(db)
  return { deliveries: rows.slice(0, page.take), hasMore: rows.length > page.take }
}

/** Lists the deliveries of the events about some resources, to all endpoints, oldest first. */
export async function listOfResources(
  db: Reader,
  { partnerId, resourceIds, countMax }: { partnerId: string; resourceIds: string[]; countMax: number },
): Promise<(Delivery & { webhookId: string; url: string })[]> {
  const { rows } = await sql<Delivery & { webhookId: string; url: string }>`
    select w.id as webhook_id, w.url, ${deliveryColumns(partnerId)}
      from events e
      join webhook_endpoints w on w.partner_id = e.partner_id and w.deleted_at is null
      join webhook_deliveries d on d.partner_id = e.partner_id and d.endpoint_id = w.id and d.event_id = e.id
     where e.partner_id = ${partnerId} and e.resource_id = any(${resourceIds}::text[])
     order by e.created_at, e.id, w.id limit ${countMax}`.execute(db)
  return rows
}

async function exists(
  db: Reader,
  { partnerId, webhookId, eventId }: OfEndpoint & { eventId: string },
): Promise<boolean> {
  const { rows } = await sql`
    select from webhook_deliveries
     where partner_id = ${partnerId} and endpoint_id = ${webhookId} and event_id = ${eventId}`.execute(db)
  return rows.length > 0
}

// Each state, or else each type, is one index range, so that rare ones are found without reading the others.
function rangesOf(
  { states, types }: DeliveryFilter,
  range: (condition: ReturnType<typeof sql>) => ReturnType<typeof sql>,
) {
  const ofTypes = types.length === 0 ? sql`` : sql`and type = any(${types}::text[])`
  const wanted =
    states.length > 0
      ? [...new Set(states)].map(state => sql`and state = ${state} ${ofTypes}`)
      : [...new Set(types)].map(type => sql`and type = ${type}`)
  if (wanted.length === 0) return range(sql``)
  return sql.join(
    wanted.map(condition => sql`(${range(condition)})`),
    sql` union all `,
  )
}

export type Attempt = Omit<Columns<'webhookAttempts'>, 'partnerId' | 'endpointId' | 'eventId'>

/** Returns a delivery with its last attempts, oldest first. @throws Problem `NotFound` */
export async function find(
  db: Reader,
  { partnerId, webhookId, deliveryId }: OfEndpoint & { deliveryId: string },
): Promise<Delivery & { attempts: Attempt[] }> {
  const { rows } = await sql<Delivery>`
    select ${deliveryColumns(partnerId)} from webhook_deliveries d join ${endpointOfDelivery}
     where d.partner_id = ${partnerId} and d.endpoint_id = ${webhookId} and d.event_id = ${deliveryId}`.execute(db)
  const [delivery] = rows
  if (delivery === undefined) throw problem('NotFound', 'There is no such delivery at this webhook endpoint')
  const { rows: attempts } = await sql<Attempt>`
    select number, reason, at, duration_ms, status, error, response from webhook_attempts
     where partner_id = ${partnerId} and endpoint_id = ${webhookId} and event_id = ${deliveryId}
     order by number desc limit ${limits.attemptsMax}`.execute(db)
  return { ...delivery, attempts: attempts.reverse() }
}

type NewTest = OfEndpoint & { type: EventType; sampleOf: (id: string) => object; now: Date }

/** Requests one attempt to deliver a sample. @returns the delivery */
export async function createTest(tx: Tx, { partnerId, webhookId, sampleOf, type, now }: NewTest): Promise<Delivery> {
  await lock(tx, { partnerId, webhookId })
  const eventId = newId('event', now)
  await sql`
    insert into webhook_deliveries (partner_id, endpoint_id, event_id, type, state, sample, created_at, replay_at)
    values (${partnerId}, ${webhookId}, ${eventId}, ${type}, 'pending', ${JSON.stringify(sampleOf(eventId))}, ${now}, ${now})`.execute(
    tx,
  )
  await wake(tx, { partnerId, webhookId, now })
  const { attempts: _, ...delivery } = await find(tx, { partnerId, webhookId, deliveryId: eventId })
  return delivery
}

/**
 * The events to replay: one event; the events of a time range that the endpoint takes or has deliveries of; or the events since
 * an instant whose deliveries have failed or were skipped. `after` continues a replay that had more.
 */
export type Replay =
  | { eventId: string }
  | { since: Date; until: Date | null; after: string | null }
  | { failedSince: Date; after: string | null }

/**
 * Requests one attempt for each event, oldest first.
 * @throws Problem `NotFound` if there is no such endpoint, or no such event in the last 30 days
 * @returns the number of events, and the id of the last one; null if there were none
 */
export async function replay(
  tx: Tx,
  { partnerId, webhookId, replay, now }: OfEndpoint & { replay: Replay; now: Date },
): Promise<{ count: number; lastEventId: string | null; hasMore: boolean }> {
  // An event must not be replayed before it is fanned out: its delivery would have no retries.
  await events.numberFeed(tx, { partnerId, countMax: limits.fannedOutMax, waits: true })
  await fanOut(tx, { partnerId, countMax: limits.fannedOutMax, waits: true, now })
  await lock(tx, { partnerId, webhookId })
  const chosen = chosenEvents({ partnerId, webhookId, replay, now })
  // One more than is replayed, to tell whether there is more.
  const { rows } = await sql<{ id: string }>`${chosen} order by id limit ${limits.replayedMax + 1}`.execute(tx)
  const ids = rows.slice(0, limits.replayedMax).map(({ id }) => id)
  if (ids.length === 0 && 'eventId' in replay)
    throw problem('NotFound', `There is no such event in the last ${retentionKinds.events.days} days`)
  if (ids.length > 0) {
    await sql`
      insert into webhook_deliveries as d (partner_id, endpoint_id, event_id, type, state, created_at, replay_at)
      select e.partner_id, ${webhookId}, e.id, e.type, 'pending', ${now}, ${now}
        from events e where e.partner_id = ${partnerId} and e.id = any(${ids}::text[])
          on conflict (partner_id, endpoint_id, event_id) do update
         set replay_at = excluded.replay_at,
             state = case when d.state = 'delivered' then d.state else 'pending' end`.execute(tx)
    await wake(tx, { partnerId, webhookId, now })
  }
  return { count: ids.length, lastEventId: ids.at(-1) ?? null, hasMore: rows.length > limits.replayedMax }
}

function chosenEvents({ partnerId, webhookId, replay, now }: OfEndpoint & { replay: Replay; now: Date }) {
  const oldest = firstId('event', events.oldestAt(now))
  const numbered = sql`
    select e.id from events e
     where e.partner_id = ${partnerId} and e.id >= ${oldest}
       and e.position <= (select f.position from webhook_feeds f where f.partner_id = ${partnerId})`
  if ('eventId' in replay) return sql`${numbered} and e.id = ${replay.eventId}`
  const after = sql`(${replay.after}::text is null or id > ${replay.after})`
  if ('failedSince' in replay) {
    return sql`
      select event_id as id from (
        select event_id, event_id as id from webhook_deliveries
         where partner_id = ${partnerId} and endpoint_id = ${webhookId} and state = any('{failed,skipped}')
           and sample is null and event_id >= ${later(oldest, firstId('event', replay.failedSince))}
      ) failed where ${after}`
  }
  const until = replay.until === null ? sql`` : sql`and e.id < ${firstId('event', replay.until)}`
  return sql`
    select id from (
      ${numbered} and e.id >= ${firstId('event', replay.since)} ${until}
          and exists (select from webhook_endpoints w
                       where w.partner_id = ${partnerId} and w.id = ${webhookId} and ${takes('w', 'e')})
    ) chosen where ${after}`
}

function later(a: string, b: string): string {
  return a > b ? a : b
}

// The partner has requested an attempt now, whatever the health of the endpoint.
async function wake(tx: Tx, { partnerId, webhookId, now }: OfEndpoint & { now: Date }): Promise<void> {
  await sql`
    update webhook_endpoints set due_at = least(due_at, ${now}), blocked_until = null
     where partner_id = ${partnerId} and id = ${webhookId}`.execute(tx)
}

/** The instants at which retries of a partner's deliveries fell due. */
export const dueRetries = ({ partnerId, after, now }: { partnerId: string; after: Date; now: Date }) => sql<{
  at: Date
}>`
  select d.due_at as at
    from webhook_deliveries d join ${endpointOfDelivery} and w.enabled
   where d.partner_id = ${partnerId} and d.scheduled_count > 0 and d.due_at > ${after} and d.due_at <= ${now}`

/** SQL that finds the deliveries of events from before an instant, unless one is being replayed. */
export const oldDeliveries = (old: Old) => deliveriesWhere(isOld(old), old)

const isOld = ({ before }: Old) => sql`(d.event_id < ${firstId('event', before)} and d.replay_at is null)`

const deliveriesWhere = (
  condition: ReturnType<typeof sql>,
  { countMax, scope, lock = sql`` }: Pick<Old, 'countMax' | 'scope'> & { lock?: ReturnType<typeof sql> },
) => sql`
  select d.partner_id, d.endpoint_id, d.event_id
    from webhook_endpoints w
   cross join lateral (
     select d.partner_id, d.endpoint_id, d.event_id from webhook_deliveries d
      where d.partner_id = ${constantOf(scope) ?? sql`w.partner_id`} and d.endpoint_id = w.id and ${condition}
      order by d.event_id limit ${countMax} ${lock}
   ) d
   where true ${inScope(scope, sql`w.partner_id`)}
   limit ${countMax}`

/**
 * Deletes old deliveries and those of deleted endpoints with their attempts, and then deleted endpoints without deliveries.
 * @returns how many deliveries were deleted
 */
export async function removeOld(db: Db, { now, ...old }: Old & { now: Date }): Promise<number> {
  // Deliveries that are being recorded or replayed are left to the next run.
  const lock = sql`for update skip locked`
  const due = deliveriesWhere(sql`(w.deleted_at is not null or ${isOld(old)})`, { ...old, lock })
  const { rows } = await sql<{ count: number }>`
    with due as (${due}), attempts as (
      delete from webhook_attempts a using due
       where a.partner_id = due.partner_id and a.endpoint_id = due.endpoint_id and a.event_id = due.event_id
             ${inScope(old.scope, sql`a.partner_id`)}
    ), deliveries as (
      delete from webhook_deliveries d using due
       where d.partner_id = due.partner_id and d.endpoint_id = due.endpoint_id and d.event_id = due.event_id
             ${inScope(old.scope, sql`d.partner_id`)}
    )
    select count(*)::integer as count from due`.execute(db)
  const count = rows[0]?.count ?? 0
  if (count === 0) {
    await sql`
      delete from webhook_endpoints w
       -- A deleted endpoint can be the cursor of the list for another day.
       where w.deleted_at < ${now}::timestamptz - interval '1 day' ${inScope(old.scope, sql`w.partner_id`)}
         and not exists (select from webhook_deliveries d
                          where d.partner_id = ${constantOf(old.scope) ?? sql`w.partner_id`} and d.endpoint_id = w.id)`.execute(
      db,
    )
  }
  return count
}
