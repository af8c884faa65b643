import { type Cursor, isBeyond, newestFirst, readingOrder, requireKnown } from '../database/cursor.ts'
import { type Db, type Reader, sql } from '../database/database.ts'
import type { DB } from '../database/tables.ts'
import { problem } from '../kernel/errors.ts'
import { firstId } from '../kernel/ids.ts'
import { constantOf, inScope, type Old } from '../worker/task.ts'

/** One logged request of a partner. `requestId` is the caller's own; null if the caller sent none. */
export type LoggedRequest = Omit<DB['requestLog'], 'partnerId'>

const columns = [
  ...(['id', 'requestId', 'createdAt', 'method', 'route', 'path', 'status', 'durationMs', 'keyId'] as const),
  ...(['idempotencyKey', 'isReplayed', 'errorCodes', 'resourceId'] as const),
] as const

/** `status` is inclusive, and so is `from`; `to` is exclusive. `requestId` may also be the id of the entry. */
export type RequestFilter = {
  status?: { from: number; to: number }
  method?: string
  route?: string
  keyId?: string
  requestId?: string
  idempotencyKey?: string
  resourceId?: string
  errorCode?: string
  from?: Date
  to?: Date
}

type RequestPage = { partnerId: string; filter: RequestFilter; take: number; cursor: Cursor | undefined }

/**
 * The requests of a partner in the log, newest first.
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function list(db: Reader, { partnerId, filter, take, cursor }: RequestPage): Promise<LoggedRequest[]> {
  await requireKnown(db, 'request_log', { partnerId, cursor })
  const { status, requestId, errorCode, from, to, ...equal } = filter
  const conditions = [
    ...Object.entries(equal).map(([column, value]) => sql<boolean>`${sql.ref(column)} = ${value}`),
    // The condition of the index on errors.
    ...(errorCode !== undefined || (status?.from ?? 0) >= 400 ? [sql<boolean>`status >= 400`] : []),
    ...(errorCode === undefined ? [] : [sql<boolean>`error_codes @> array[${errorCode}]`]),
    ...(status === undefined ? [] : [sql<boolean>`status between ${sql.lit(status.from)} and ${sql.lit(status.to)}`]),
    ...(requestId === undefined ? [] : [sql<boolean>`(id = ${requestId} or request_id = ${requestId})`]),
    ...(from === undefined ? [] : [sql<boolean>`created_at >= ${from} and id >= ${boundAt(from, -clockDriftMs)}`]),
    ...(to === undefined ? [] : [sql<boolean>`created_at < ${to} and id < ${boundAt(to, clockDriftMs)}`]),
    ...(cursor === undefined ? [] : [isBeyond(cursor)]),
  ]
  const rows = await ofPartner(db, partnerId)
    .where(sql<boolean>`${sql.join([sql`true`, ...conditions], sql` and `)}`)
    .orderBy('id', readingOrder(cursor))
    .limit(take)
    .execute()
  return newestFirst(rows, cursor)
}

// Read in a few tenths of a second. If there are more errors than this, only the newest are counted.
const countedMax = 100_000

/** How often requests were refused with a code in a period. */
export type ErrorCount = { from: Date; errorCode: string; count: number }

/** Counts the refusals of a partner's requests by code and hour or day in UTC, oldest first. */
export async function countErrors(
  db: Reader,
  { partnerId, by, from }: { partnerId: string; by: 'hour' | 'day'; from: Date },
): Promise<{ counts: ErrorCount[]; isComplete: boolean }> {
  const { rows } = await sql<ErrorCount & { read: number }>`
    with refused as (
      select created_at, error_codes from request_log
       where partner_id = ${partnerId} and status >= 400 and id >= ${boundAt(from, -clockDriftMs)}
         and created_at >= ${from}
       order by id desc limit ${countedMax}
    )
    select date_trunc(${by}, created_at, 'UTC') as from, error_code, count(*)::integer as count,
           (select count(*) from refused)::integer as read
      from refused cross join unnest(error_codes) as error_code
     group by 1, 2 order by 1, 2`.execute(db)
  const counts = rows.map(({ read: _, ...each }) => each)
  return { counts, isComplete: (rows[0]?.read ?? 0) < countedMax }
}

/** @throws Problem `NotFound`, also for another partner's request */
export async function find(db: Reader, { partnerId, id }: { partnerId: string; id: string }): Promise<LoggedRequest> {
  const found = await ofPartner(db, partnerId).where('id', '=', id).executeTakeFirst()
  if (found === undefined)
    throw problem('NotFound', 'There is no such request in the log, which keeps the last days only')
  return found
}

/** SQL that finds requests from before an instant. */
export const oldRequests = ({ before, countMax, scope }: Old) => sql`
  select old.partner_id, old.id
    from partners p
   cross join lateral (select partner_id, id from request_log
                        where partner_id = ${constantOf(scope) ?? sql`p.id`} and id < ${boundAt(before, -clockDriftMs)}
                        order by id limit ${countMax}) old
   where true ${inScope(scope, sql`p.id`)}
   limit ${countMax}`

/** @returns how many requests were deleted */
export async function removeOld(db: Db, old: Old): Promise<number> {
  const { rows } = await sql`
    delete from request_log r using (${oldRequests(old)}) old
     where r.partner_id = old.partner_id and r.id = old.id ${inScope(old.scope, sql`r.partner_id`)}
    returning 1`.execute(db)
  return rows.length
}

// Ids sort by time, but an id that was generated just before its request was received is a few milliseconds off.
const clockDriftMs = 60_000

const boundAt = (instant: Date, shiftMs: number) =>
  firstId('request', new Date(Math.max(0, instant.getTime() + shiftMs)))

function ofPartner(db: Reader, partnerId: string) {
  return db.selectFrom('requestLog').select(columns).where('partnerId', '=', partnerId)
}
