import { cachedSql } from '../database/cached-sql.ts'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { isLockTimeout } from '../database/errors.ts'
import { lockByName } from '../database/named-locks.ts'
import { onOnePartner, onPartnersNode } from '../database/one-partner.ts'
import { conflict, Problem, problem } from '../kernel/errors.ts'
import { retentionKinds } from '../kernel/retention.ts'
import { sealerOf } from '../sealing/held.ts'
import type { SealedTable } from '../sealing/rewrap.ts'
import { inScope, type Old } from '../worker/task.ts'

/** A request with an idempotency key, and the fingerprint that identifies it. `partnerId` may also be the id of an operator. */
export type Claim = {
  partnerId: string
  key: string
  fingerprint: Buffer
  operation: string
  now: Date
}

/** A response as it is replayed, byte for byte. `resourceId` lets the lookup of a key name the resource that the request created. */
export type StoredResponse = {
  status: number
  text: string
  headers: Record<string, string | string[]>
  resourceId: string | null
}

/** The earlier response to a request with this key. */
export class Replay {
  readonly response: StoredResponse
  constructor(response: StoredResponse) {
    this.response = response
  }
}

/** A claim, with the function that turns the operation's result into a response. */
export type BatchClaim<Result> = Claim & { responseOf(result: Result): StoredResponse }

/** A response to record under its claim. */
export type KeyRecord = { claim: Claim; response: StoredResponse }

/** The table with the stored responses. */
export const replaysTable: SealedTable = {
  table: 'idempotency_keys',
  key: [
    ['partner_id', 'text'],
    ['key', 'text'],
  ],
  columns: [{ name: 'answer', kind: 'replay' }],
  owner: 'partner_id',
}

/** A retry after that is a new request. */
const keyLifeMs = retentionKinds.replays.days * 86_400_000

/**
 * Claims the key for the work that follows in this transaction, before `complete`. Waits for an uncommitted record of the
 * same key; if that is rolled back, the claim succeeds.
 * @returns the replay if the request already has a response
 * @throws Problem `IdempotencyKeyReused` if the key belongs to another request, `Conflict` if the first request with this
 * key is still running after two seconds
 */
export async function claim(tx: Tx, claimed: Claim): Promise<Replay | undefined> {
  const { partnerId, key, fingerprint, operation, now } = claimed
  const { rows } = await sql`
    insert into idempotency_keys (partner_id, key, fingerprint, operation, created_at, expires_at)
    values (${partnerId}, ${key}, ${fingerprint}, ${operation}, ${now}, ${expiryOf(claimed)})
    on conflict (partner_id, key) do update
       set fingerprint = excluded.fingerprint, operation = excluded.operation, status = null, answer = null,
           resource_id = null, created_at = excluded.created_at, expires_at = excluded.expires_at
     where idempotency_keys.expires_at <= ${now}
    returning key`
    .execute(tx)
    .catch(error => {
      throw isWaitForKey(error) ? stillRunning() : error
    })
  if (rows.length === 1) return undefined
  const [earlier] = await findAll(tx, [claimed])
  if (earlier === undefined) throw new Error('An idempotency key was neither free nor taken')
  if (earlier instanceof Problem) throw earlier
  return earlier
}

const holdLimits = {
  // A quarter of the pool: each holds one connection while its work runs, and the work needs others.
  heldMax: 5,
}
let heldCount = 0

/**
 * Holds the key while work runs in separate transactions, which `claim` cannot cover. Another request with the key waits, in
 * any process. The transaction that holds the lock writes nothing, so it delays no reader of the feed. The lock ends with the
 * process.
 * @throws Problem `Conflict` if the first request with this key is still running after two seconds; `ServiceUnavailable` if
 * this process holds too many keys
 */
export async function hold<T>(db: Db, { partnerId, key }: Claim, work: () => Promise<T>): Promise<T> {
  if (heldCount >= holdLimits.heldMax) {
    const message = 'Too many long requests with an idempotency key are running; try again in a second'
    throw problem('ServiceUnavailable', message, {}, { 'retry-after': '1' })
  }
  heldCount += 1
  try {
    return await db.transaction().execute(async tx => {
      // Idle while the work runs. The deadline of the request ends it.
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
      await lockByName(tx, 'idempotency key', `${key} of ${partnerId}`).catch(error => {
        throw isLockTimeout(error) ? stillRunning() : error
      })
      return await work()
    })
  } finally {
    heldCount -= 1
  }
}

/** Records the response under the key that this transaction has claimed. */
export async function complete(tx: Tx, claimed: Claim, response: StoredResponse): Promise<void> {
  const { partnerId, key } = claimed
  const { status, resourceId } = response
  await tx
    .updateTable('idempotencyKeys')
    .set({ status, answer: sealed(tx, { partnerId, response }), resourceId })
    .where('partnerId', '=', partnerId)
    .where('key', '=', key)
    .execute()
}

type Earlier = {
  place: number
  isExpired: boolean
  fingerprint: Buffer
  status: number | null
  answer: Buffer | null
  resourceId: string | null
}

/**
 * Finds the earlier outcome of each request: undefined, its response, or a refusal: `IdempotencyKeyReused`, or `Conflict` if the
 * response was erased. Deletes expired records, so that `recordSql` can insert their keys.
 */
export async function findAll(db: Reader, claims: (Claim | undefined)[]): Promise<(Replay | Problem | undefined)[]> {
  const asked = claims.filter(each => each !== undefined)
  if (asked.length === 0) return claims.map(() => undefined)
  const { rows } = await cachedSql<Earlier>`
    select c.place::integer, k.expires_at <= c.now as is_expired, k.fingerprint, k.status, k.answer, k.resource_id
      from unnest(${asked.map(each => each.partnerId)}::text[], ${asked.map(each => each.key)}::text[],
                  ${asked.map(each => each.now.toISOString())}::timestamptz[])
             with ordinality as c (partner_id, key, now, place)
      join idempotency_keys k on k.partner_id = c.partner_id and k.key = c.key ${onOnePartner('k', asked)}`.execute(db)
  const earlier = new Map(rows.map(row => [asked[row.place - 1], row]))
  const expired = asked.filter(each => earlier.get(each)?.isExpired)
  if (expired.length > 0) await forget(db, expired)
  return claims.map(each => {
    const found = each === undefined || expired.includes(each) ? undefined : earlier.get(each)
    if (found === undefined || each === undefined) return undefined
    const { fingerprint, status, answer, resourceId } = found
    if (!fingerprint.equals(each.fingerprint)) return reused()
    // Only an erasure commits a record without a response.
    if (status === null || answer === null) return erased()
    return new Replay({ status, resourceId, ...opened(db, { partnerId: each.partnerId, answer }) })
  })
}

/**
 * Opens the latest stored responses, as a repeated request would.
 * @returns how many there were
 * @throws Error if one cannot be opened
 */
export async function openLatestReplays(db: Reader, { take }: { take: number }): Promise<number> {
  const { rows } = await sql<{ partnerId: string; answer: Buffer }>`
    select partner_id, answer from idempotency_keys
     where answer is not null order by expires_at desc limit ${take}`.execute(db)
  for (const { partnerId, answer } of rows) opened(db, { partnerId, answer })
  return rows.length
}

/**
 * SQL of an additional `with` step that records responses, for the statement that makes the changes; empty without responses,
 * because inserting no rows also has a cost. If another transaction has recorded the key in the meantime, the unique violation
 * rolls the statement back, so nothing is done twice.
 */
export function recordSql(db: Reader, records: KeyRecord[]) {
  if (records.length === 0) return cachedSql``
  // In key order, so that two statements with the same keys cannot deadlock.
  const sorted = records.toSorted((a, b) => (nameOf(a.claim) < nameOf(b.claim) ? -1 : 1))
  const of = <T>(value: (record: KeyRecord) => T) => sorted.map(value)
  const { partner, home } = onPartnersNode(of(({ claim }) => claim))
  return cachedSql`, key_records as (
    insert into idempotency_keys
           (partner_id, key, fingerprint, operation, status, answer, resource_id, created_at, expires_at)
    select ${partner}, key, fingerprint, operation, status, answer, resource_id, created_at, expires_at from unnest(
      ${of(({ claim }) => claim.partnerId)}::text[], ${of(({ claim }) => claim.key)}::text[],
      ${of(({ claim }) => claim.fingerprint)}::bytea[], ${of(({ claim }) => claim.operation)}::text[],
      ${of(({ response }) => response.status)}::integer[],
      ${of(({ claim, response }) => sealed(db, { partnerId: claim.partnerId, response }))}::bytea[],
      ${of(({ response }) => response.resourceId)}::text[],
      ${of(({ claim }) => claim.now.toISOString())}::timestamptz[],
      ${of(({ claim }) => expiryOf(claim).toISOString())}::timestamptz[])
      as new (partner_id, key, fingerprint, operation, status, answer, resource_id, created_at, expires_at) ${home})`
}

/** Seals headers and body together: sealing them separately would cost twice as much. No header has a line feed. */
function sealed(
  db: Reader,
  { partnerId, response: { headers, text } }: { partnerId: string; response: StoredResponse },
): Buffer {
  return sealerOf(db).seal(`${JSON.stringify(headers)}\n${text}`, { kind: 'replay', owner: partnerId })
}

function opened(
  db: Reader,
  { partnerId, answer }: { partnerId: string; answer: Buffer },
): Pick<StoredResponse, 'headers' | 'text'> {
  const text = sealerOf(db).open(answer, { kind: 'replay', owner: partnerId }).toString()
  const end = text.indexOf('\n')
  // Written by `sealed` only.
  return { headers: JSON.parse(text.slice(0, end)), text: text.slice(end + 1) }
}

/** The responses of a batch to record: the results of commands with a key, without refusals. */
export function recordsOf<Result extends object>(
  commands: { claim?: BatchClaim<Result> | undefined }[],
  outcomes: (Result | Replay | Problem | symbol)[],
): KeyRecord[] {
  return commands.flatMap(({ claim }, index) => {
    const outcome = outcomes[index]
    if (claim === undefined || typeof outcome !== 'object') return []
    if (outcome instanceof Replay || outcome instanceof Problem) return []
    return [{ claim, response: claim.responseOf(outcome) }]
  })
}

/**
 * Erases the stored responses of requests about a member. Their keys stay taken, so that a repeated request never runs again. Forgets
 * the reads of this partner and of operators, such as lists: they show other members too, and reading again is harmless.
 * @param resourceIds the member's intents and withdrawals
 */
export async function eraseResponses(
  tx: Tx,
  { partnerId, memberId, resourceIds }: { partnerId: string; memberId: string; resourceIds: string[] },
): Promise<void> {
  await sql`
    update idempotency_keys set status = null, answer = null
     where partner_id = ${partnerId} and resource_id = ${memberId} and resource_id like 'mem\\_%'`.execute(tx)
  // Operators read members of every partner.
  await sql`
    delete from idempotency_keys
     where (partner_id = ${partnerId} or partner_id not like 'par\\_%') and answer is not null
       and (operation like 'get%' or operation like 'list%' or operation like 'inspect%')`.execute(tx)
  if (resourceIds.length === 0) return
  await sql`
    update idempotency_keys set status = null, answer = null
     where partner_id = ${partnerId} and resource_id = any(${resourceIds}::text[])`.execute(tx)
}

/** SQL that finds the records of keys that were first used before an instant. */
export const oldKeys = ({ before, countMax, scope }: Old) => sql`
  select partner_id, key from idempotency_keys
   where expires_at <= ${expiryOf({ now: before })} ${inScope(scope)}
   order by expires_at limit ${countMax}`

/** @returns how many records were deleted */
export async function removeOld(db: Db, old: Old): Promise<number> {
  const { rows } = await sql`
    delete from idempotency_keys k using (${oldKeys(old)} for update skip locked) expired
     where k.partner_id = expired.partner_id and k.key = expired.key ${inScope(old.scope, sql`k.partner_id`)}
    returning 1`.execute(db)
  return rows.length
}

function nameOf({ partnerId, key }: Claim): string {
  return `${partnerId} ${key}`
}

async function forget(db: Reader, claims: Claim[]): Promise<void> {
  await cachedSql`
    delete from idempotency_keys k
     using unnest(${claims.map(each => each.partnerId)}::text[], ${claims.map(each => each.key)}::text[],
                  ${claims.map(each => each.now.toISOString())}::timestamptz[]) as c (partner_id, key, now)
     where k.partner_id = c.partner_id and k.key = c.key and k.expires_at <= c.now ${onOnePartner('k', claims)}`.execute(
    db,
  )
}

function expiryOf({ now }: Pick<Claim, 'now'>): Date {
  return new Date(now.getTime() + keyLifeMs)
}

/** Whether the lock timeout was on the record of a key: the first request with the key is still running. */
export function isWaitForKey(error: unknown): boolean {
  // The error's context says where the wait was: 'while inserting index tuple (0,1) in relation "idempotency_keys"'.
  return isLockTimeout(error) && /idempotency_keys/.test((error as { where?: string }).where ?? '')
}

export function stillRunning(): Problem {
  return problem(
    'Conflict',
    'A request with this idempotency key is still being processed; try again in a second',
    {},
    { 'retry-after': '1' },
  )
}

/** The refusal of a repeated request whose response was erased with the member that it was about. */
export function erased(): Problem {
  return conflict(
    'The member of this request was erased, and with them the response; the request is not run again. Use a new key for a new request',
  )
}

/** The refusal of a key that another request has used. */
export function reused(): Problem {
  return problem(
    'IdempotencyKeyReused',
    'This idempotency key was used for a different request; use a new key for a new request',
    { path: 'x-idempotency-key' },
  )
}
