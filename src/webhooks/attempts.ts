import { cachedSql } from '../database/cached-sql.ts'
import { type Db, lanesOf, sql, type Tx } from '../database/database.ts'
import { onOnePartner } from '../database/one-partner.ts'
import * as events from '../events/events.ts'
import { offsetMsOf, readOffsetMs } from '../partners/clocks.ts'
import { applyAttempt, flowLimits, type Health, nextAttemptAt } from './rules.ts'
import type { AttemptOutcome } from './send.ts'

const limits = {
  // Candidates of a round: enough that the slots of a process are shared among partners that each have 16 endpoints.
  candidatesMax: 512,
  // Pending deliveries of a disabled endpoint that are ended in one statement of some ten milliseconds.
  endedAtOnceMax: 5_000,
}

/** An endpoint whose deliveries this process makes until its lease expires. */
export type Claimed = {
  partnerId: string
  id: string
  url: string
  /** Sealed, as are the secrets. */
  headers: Buffer
  enabled: boolean
  failureCount: number
  /** Whether there have been failures, so that a success changes the health of the endpoint. */
  isImpaired: boolean
  secrets: Buffer[]
  /** How far the clock of the partner is ahead. */
  offsetMs: number
}

/** SQL for how far the clock of an endpoint's partner is ahead, and for the maximum over all partners. */
const clocks = {
  offsetMs: offsetMsOf('w.partner_id'),
  offsetMsMax: sql`(select coalesce(max(offset_ms), 0)::float8 from sandbox_clocks)`,
}
const noClocks = { offsetMs: sql`0::float8`, offsetMsMax: sql`0::float8` }

type ClaimOptions = {
  countMax: number
  busy: ReadonlyMap<string, number>
  now: Date
  realNow: Date
  leaseMs: number
  hasClocks: boolean
}

/**
 * Claims endpoints that have something due: first those of partners with few claims, then those that have waited longest. A
 * killed process keeps its claims until their leases expire.
 * @param now the real time of due times; each partner's clock is ahead of it by the partner's offset
 * @param busy how many endpoints of each partner this process has claimed already
 * @param hasClocks whether partners have clocks. A live installation does not read them
 */
export async function claim(
  db: Db,
  { countMax, busy, now, realNow, leaseMs, hasClocks }: ClaimOptions,
): Promise<Claimed[]> {
  const { offsetMs, offsetMsMax } = hasClocks ? clocks : noClocks
  const isFree = sql`(leased_until is null or leased_until <= ${realNow})`
  const choose = sql`
    with candidate as (
      select w.partner_id, w.id, w.due_at from webhook_endpoints w
       where w.due_at <= ${now}::timestamptz + ${offsetMs} * interval '1 ms' and ${isFree}
         -- Bounds the index range: the offset of each partner is known only once its endpoint has been read.
         and w.due_at <= ${now}::timestamptz + ${offsetMsMax} * interval '1 ms'
       order by w.due_at limit ${limits.candidatesMax}
    ), ranked as (
      select c.partner_id, c.id, c.due_at,
             coalesce(b.count, 0) + row_number() over (partition by c.partner_id order by c.due_at) as rank
        from candidate c left join unnest(${[...busy.keys()]}::text[], ${[...busy.values()]}::int[])
             as b (partner_id, count) on b.partner_id = c.partner_id
    ), chosen as (
      select partner_id, id from ranked order by rank, due_at limit ${countMax}
    )`
  // The endpoint may have been deleted, or claimed by another process, since it became a candidate.
  const isStillDue = sql`${isFree} and w.due_at is not null`
  const leasedUntil = new Date(realNow.getTime() + leaseMs)
  const columnsOf = (partnerId: ReturnType<typeof sql>, ahead: ReturnType<typeof sql>) => sql`
    w.partner_id, w.id, w.url, w.headers, w.enabled, w.failure_count,
    (w.failure_count > 0 or w.failing_since is not null or w.is_recovering) as is_impaired,
    (select array_agg(s.secret order by s.created_at desc) from webhook_secrets s
      where s.partner_id = ${partnerId} and s.endpoint_id = w.id
        and (s.expires_at is null or s.expires_at > ${now}::timestamptz + ${ahead} * interval '1 ms')) as secrets,
    ${ahead} as offset_ms`
  if (lanesOf(db) === 'partner') {
    const { rows } = await sql<{ partnerId: string; ids: string[] }>`
      ${choose} select partner_id, array_agg(id) as ids from chosen group by partner_id`.execute(db)
    // Rows of several nodes cannot be locked together.
    const claimOne = ({ partnerId, ids }: { partnerId: string; ids: string[] }) =>
      db.transaction().execute(async tx => {
        const ahead = hasClocks ? await readOffsetMs(tx, partnerId) : 0
        const { rows: claimed } = await sql<Claimed>`
          select ${columnsOf(sql`${partnerId}`, sql`${ahead}::float8`)} from webhook_endpoints w
           where w.partner_id = ${partnerId} and w.id = any(${ids}::text[]) and ${isStillDue}
             for no key update of w skip locked`.execute(tx)
        await sql`
          update webhook_endpoints set leased_until = ${leasedUntil}
           where partner_id = ${partnerId} and id = any(${claimed.map(({ id }) => id)}::text[])`.execute(tx)
        return claimed
      })
    const perPartner: Claimed[][] = []
    for (const chosen of rows) perPartner.push(await claimOne(chosen))
    return perPartner.flat()
  }
  const { rows } = await sql<Claimed>`
    ${choose}, locked as (
      select w.partner_id, w.id from webhook_endpoints w
       where (w.partner_id, w.id) in (select partner_id, id from chosen) and ${isStillDue}
         for no key update skip locked
    )
    update webhook_endpoints w set leased_until = ${leasedUntil}
      from locked where w.partner_id = locked.partner_id and w.id = locked.id
    returning ${columnsOf(sql`w.partner_id`, offsetMs)}`.execute(db)
  return rows
}

/** A delivery that is due, with the body to send. */
export type Due = { eventId: string; reason: 'schedule' | 'replay' | 'test'; scheduledCount: number; body: string }

type DueQuery = { endpoint: Pick<Claimed, 'partnerId' | 'id'>; except: string[]; countMax: number; now: Date }

/**
 * Reads what is due at a claimed endpoint, oldest first; nothing once it is deleted.
 * @param except ids of events that the caller has taken already
 */
export async function readDue(
  db: Db,
  { endpoint: { partnerId, id }, except, countMax, now }: DueQuery,
): Promise<Due[]> {
  const ofEndpoint = sql`partner_id = ${partnerId} and endpoint_id = ${id}`
  const isNotTaken = sql`event_id <> all(${except}::text[])`
  const endpointIs = (condition: ReturnType<typeof sql>) => sql`
    exists (select from webhook_endpoints where partner_id = ${partnerId} and id = ${id} and ${condition})`
  const { rows } = await sql<{
    eventId: string
    type: string
    reason: Due['reason']
    scheduledCount: number
    sample: object | null
    sequence: number
    data: object
    createdAt: Date
  }>`
    select d.event_id, d.type, d.reason, d.scheduled_count, d.sample, e.sequence, ${events.dataSql('e')}, e.created_at
      from (
        (select event_id, type, scheduled_count, sample, replay_at as at,
                case when sample is null then 'replay' else 'test' end as reason
           from webhook_deliveries where ${ofEndpoint} and replay_at <= ${now} and ${isNotTaken}
            and ${endpointIs(sql`deleted_at is null`)}
          order by replay_at, event_id limit ${countMax})
        union all
        (select event_id, type, scheduled_count, sample, due_at, 'schedule'
           from webhook_deliveries where ${ofEndpoint} and due_at <= ${now} and replay_at is null and ${isNotTaken}
            and ${endpointIs(sql`enabled and deleted_at is null`)}
          order by due_at, event_id limit ${countMax})
      ) d
      left join events e on e.partner_id = ${partnerId} and e.id = d.event_id
     order by d.at, d.event_id limit ${countMax}`.execute(db)
  return rows.map(({ eventId: id, type, sample, sequence, data, createdAt, reason, scheduledCount }) => {
    const body = sample ?? { id, type, timestamp: createdAt.toISOString(), sequence, data }
    return { eventId: id, reason, scheduledCount, body: JSON.stringify(body) }
  })
}

/** An attempt that has ended. */
export type Attempt = AttemptOutcome & {
  partnerId: string
  endpointId: string
  eventId: string
  reason: Due['reason']
  scheduledCount: number
  at: Date
  /** Whether it may change the health of the endpoint. */
  affectsHealth: boolean
}

/** An endpoint that an attempt has disabled, or that has recovered. */
export type HealthChange = {
  partnerId: string
  webhookId: string
  event: 'webhook.disabled' | 'webhook.recovered'
  reason: Health['disabledReason']
}

/**
 * Records attempts: what each means for its delivery and for the health of its endpoint. At most one attempt per delivery. Safe
 * to run twice, except for a second row in the list of attempts.
 */
export async function record(tx: Tx, attempts: Attempt[]): Promise<HealthChange[]> {
  const changes = await recordHealth(tx, attempts)
  const rows = attempts.map(each => {
    const failures = each.scheduledCount + 1
    const isRetry = each.reason === 'schedule' && each.error !== null
    return { ...each, retryAt: isRetry ? nextAttemptAt({ failures, now: each.at, random: Math.random() }) : null }
  })
  const column = <T>(value: (row: (typeof rows)[number]) => T) => rows.map(value)
  await cachedSql`
    with attempted as (
      select * from unnest(
        ${column(row => row.partnerId)}::text[], ${column(row => row.endpointId)}::text[], ${column(row => row.eventId)}::text[],
        ${column(row => row.reason)}::text[], ${column(row => row.at.toISOString())}::timestamptz[],
        ${column(row => row.durationMs)}::int[], ${column(row => row.status)}::int[], ${column(row => row.error)}::text[],
        ${column(row => row.response)}::text[], ${column(row => row.retryAt?.toISOString() ?? null)}::timestamptz[])
        as a (partner_id, endpoint_id, event_id, reason, at, duration_ms, status, error, response, retry_at)
    ), recorded as (
      update webhook_deliveries d
         set attempt_count = d.attempt_count + 1, last_attempt_at = a.at,
             scheduled_count = d.scheduled_count + (a.reason = 'schedule')::int,
             replay_at = case when a.error is null or a.reason <> 'schedule' then null else d.replay_at end,
             due_at = case when a.error is null then null when a.reason = 'schedule' and d.due_at is not null then a.retry_at
                           else d.due_at end,
             state = case when a.error is null then 'delivered' when d.state <> 'pending' then d.state
                          when case when a.reason = 'schedule' then a.retry_at else d.due_at end is null then 'failed'
                          else 'pending' end
        from attempted a
       where d.partner_id = a.partner_id and d.endpoint_id = a.endpoint_id and d.event_id = a.event_id
             ${onOnePartner('d', attempts)}
      returning a.*, d.attempt_count as number
    )
    insert into webhook_attempts
           (partner_id, endpoint_id, event_id, number, reason, at, duration_ms, status, error, response)
    select partner_id, endpoint_id, event_id, number, reason, at, duration_ms, status, error, response
      from recorded`.execute(tx)
  return changes
}

type HealthRow = Health & { partnerId: string; id: string; deletedAt: Date | null }

/** Locks the endpoints of the attempts, including healthy ones: deliveries are written under the lock of their endpoint. */
async function recordHealth(tx: Tx, attempts: Attempt[]): Promise<HealthChange[]> {
  const ids = [...new Map(attempts.map(each => [`${each.partnerId} ${each.endpointId}`, each])).values()]
  const { rows } = await cachedSql<HealthRow>`
    select partner_id, id, enabled, disabled_reason, failure_count, blocked_until, failing_since, failing_days,
           last_failing_day, is_recovering, deleted_at
      from webhook_endpoints
     where (partner_id, id) in (select * from unnest(${ids.map(each => each.partnerId)}::text[],
                                                     ${ids.map(each => each.endpointId)}::text[]))
           ${onOnePartner('webhook_endpoints', attempts)}
     order by partner_id, id for no key update`.execute(tx)
  const changes: HealthChange[] = []
  for (const { partnerId, id, deletedAt, ...before } of rows) {
    if (deletedAt !== null) continue
    let health: Health = before
    const relevant = attempts.filter(
      each => each.affectsHealth && each.partnerId === partnerId && each.endpointId === id,
    )
    if (relevant.length === 0) continue
    for (const each of relevant) {
      const applied = applyAttempt(health, { ...each, isSuccess: each.error === null }, Math.random())
      health = applied.health
      if (applied.event === null) continue
      changes.push({ partnerId, webhookId: id, event: applied.event, reason: health.disabledReason })
      await emit(tx, { partnerId, webhookId: id, event: applied.event, reason: health.disabledReason, now: each.at })
    }
    await tx
      .updateTable('webhookEndpoints')
      .set(health)
      .where('partnerId', '=', partnerId)
      .where('id', '=', id)
      .execute()
  }
  return changes
}

async function emit(tx: Tx, { partnerId, webhookId, event, reason, now }: HealthChange & { now: Date }): Promise<void> {
  const { sequence } = await tx
    .updateTable('webhookEndpoints')
    .set({ eventCount: sql`event_count + 1` })
    .where('partnerId', '=', partnerId)
    .where('id', '=', webhookId)
    .returning('eventCount as sequence')
    .executeTakeFirstOrThrow()
  const common = { partnerId, resourceId: webhookId, sequence, now }
  if (event === 'webhook.recovered') await events.emit(tx, { ...common, type: event, data: { webhookId } })
  else {
    const data = { webhookId, reason: reason === 'gone' ? ('gone' as const) : ('failing' as const) }
    await events.emit(tx, { ...common, type: event, data })
  }
}

/**
 * Ends the pending deliveries of a disabled endpoint: failed if they have been attempted, otherwise skipped. Both can be
 * replayed.
 */
export async function endPending(db: Db, { partnerId, id }: Pick<Claimed, 'partnerId' | 'id'>): Promise<void> {
  await sql`
    with disabled as (
      select from webhook_endpoints
       where partner_id = ${partnerId} and id = ${id} and not enabled for no key update
    )
    update webhook_deliveries
       set state = case when scheduled_count > 0 then 'failed' when replay_at is not null then 'pending' else 'skipped' end,
           due_at = null
     where partner_id = ${partnerId} and endpoint_id = ${id}
       and exists (select from disabled) and due_at is not null
       and event_id in (select event_id from webhook_deliveries
                         where partner_id = ${partnerId} and endpoint_id = ${id} and due_at is not null
                         limit ${limits.endedAtOnceMax})`.execute(db)
}

/** Ends the claim of an endpoint, and decides when the endpoint is due next: behind the endpoints that are already waiting. */
export async function release(
  tx: Tx,
  { partnerId, id, now }: { partnerId: string; id: string; now: Date },
): Promise<void> {
  await sql`
    select from webhook_endpoints where partner_id = ${partnerId} and id = ${id} for no key update`.execute(tx)
  // A separate statement: it sees the deliveries that a concurrent fan-out has written while this one waited for the lock.
  await sql`
    update webhook_endpoints w
       set leased_until = null,
           due_at = case when w.deleted_at is not null or coalesce(next.replay_at, next.due_at) is null then null
                         -- Due at once, so that the next turn ends the pending deliveries.
                         when not w.enabled and next.due_at is not null then ${now}
                         else greatest(least(next.replay_at, next.due_at), w.blocked_until, ${now}) end
      from (select
              (select min(replay_at) from webhook_deliveries
                where partner_id = ${partnerId} and endpoint_id = ${id}) as replay_at,
              (select min(due_at) from webhook_deliveries
                where partner_id = ${partnerId} and endpoint_id = ${id}) as due_at) next
     where w.partner_id = ${partnerId} and w.id = ${id}`.execute(tx)
}

/** Whether an endpoint gets only one attempt at a time. */
export function isThrottled(failureCount: number): boolean {
  return failureCount >= flowLimits.failuresMax
}
