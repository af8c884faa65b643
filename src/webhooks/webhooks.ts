import { type Cursor, isBeyond, requireKnown } from '../database/cursor.ts'
import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import * as events from '../events/events.ts'
import { conflict, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { hasMetadata, type Metadata, metadataOf } from '../metadata/metadata.ts'

import { healthy } from './rules.ts'
import { openHeaders, sealHeaders, sealSecret } from './sealed.ts'
import { newSecret } from './signing.ts'

export const limits = {
  endpointsMax: 16,
  // The current one and those of rotations that overlap: each adds a signature to every request.
  secretsMax: 5,
  // Events numbered while an endpoint is created. A longer backlog is numbered by the worker, and its events are delivered.
  numberedAtOnceMax: 2_000,
}

/** The settings of an endpoint that a partner chooses. `headers` are sent with each request. */
export type EndpointSettings = {
  url: string
  description: string | null
  types: string[]
  enabled: boolean
  headers: Record<string, string>
}

export type Endpoint = EndpointSettings & {
  id: string
  disabledReason: 'requested' | 'failing' | 'gone' | null
  failingSince: Date | null
  metadata: Metadata
  createdAt: Date
}

type Named = { partnerId: string; webhookId: string }

const columns = ['id', 'url', 'description', 'types', 'enabled', 'headers', 'disabledReason', 'failingSince'] as const

/**
 * Creates an endpoint, which gets the events that follow.
 * @throws Problem `Conflict` if the partner has the maximum number of endpoints
 * @returns the secret, which is shown only here
 */
export async function create(
  tx: Tx,
  { partnerId, settings, now }: { partnerId: string; settings: EndpointSettings; now: Date },
): Promise<{ endpoint: Endpoint; secret: string }> {
  // Before the lock of the webhook feed, as in `replay`: two transactions that take the locks in different orders deadlock.
  await events.numberFeed(tx, { partnerId, countMax: limits.numberedAtOnceMax, waits: true })
  await lockFeed(tx, partnerId)
  const count = await countEndpoints(tx, partnerId)
  if (count >= limits.endpointsMax)
    throw conflict(`There are already ${limits.endpointsMax} webhook endpoints; delete one first`)
  const sincePosition = await events.findLastPosition(tx, partnerId)
  // Without endpoints the feed is not fanned out.
  if (count === 0)
    await sql`update webhook_feeds set position = ${sincePosition} where partner_id = ${partnerId}`.execute(tx)
  const id = newId('webhook', now)
  const { headers, ...rest } = settings
  const row = {
    ...{ partnerId, id, ...rest, createdAt: now, sincePosition },
    headers: sealHeaders(tx, { partnerId, headers }),
    disabledReason: settings.enabled ? null : ('requested' as const),
  }
  await tx.insertInto('webhookEndpoints').values(row).execute()
  const secret = await addSecret(tx, { partnerId, webhookId: id, now })
  return { endpoint: await find(tx, { partnerId, webhookId: id }), secret }
}

type EndpointQuery = {
  partnerId: string
  metadata?: Metadata | undefined
  page: Page
  cursor: Cursor | undefined
}

/** Lists the endpoints of a partner, newest first. */
export async function list(
  db: Reader,
  { partnerId, metadata = {}, page, cursor }: EndpointQuery,
): Promise<{ endpoints: Endpoint[]; total: number }> {
  await requireKnown(db, 'webhook_endpoints', { partnerId, cursor })
  const matches = hasMetadata(metadata, { partnerId, kind: 'webhook', resourceId: sql`webhook_endpoints.id` })
  const all = select(db, partnerId).where(matches)
  const after = cursor === undefined ? all : all.where(isBeyond(cursor))
  const endpoints = await after.orderBy('id', 'desc').offset(page.skip).limit(page.take).execute()
  return {
    endpoints: endpoints.map(row => toEndpoint(db, row)),
    total: await countEndpoints(db, partnerId, matches),
  }
}

/** Lists the health of the endpoints of all partners, for the operator, without the settings of partners. */
export async function listHealth(
  db: Reader,
): Promise<(Pick<Endpoint, 'id' | 'enabled' | 'disabledReason' | 'failingSince'> & { partnerId: string })[]> {
  return await db
    .selectFrom('webhookEndpoints')
    .select(['partnerId', 'id', 'enabled', 'disabledReason', 'failingSince'])
    .orderBy('id', 'desc')
    .execute()
}

/** Counts the endpoints of a partner that fail, or were disabled because they failed. */
export async function countFailing(db: Reader, partnerId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from webhook_endpoints
     where partner_id = ${partnerId} and deleted_at is null
       and (failing_since is not null or disabled_reason in ('failing', 'gone'))`.execute(db)
  return rows[0]?.count ?? 0
}

/** @throws Problem `NotFound` */
export async function find(db: Reader, { partnerId, webhookId }: Named): Promise<Endpoint> {
  const row = await select(db, partnerId).where('id', '=', webhookId).executeTakeFirst()
  if (row === undefined) throw notFound()
  return toEndpoint(db, row)
}

/**
 * Changes an endpoint. Enabling an endpoint, or changing its URL, resets its failures.
 * @throws Problem `NotFound`
 */
export async function update(
  tx: Tx,
  { partnerId, webhookId, changes, now }: Named & { changes: Partial<EndpointSettings>; now: Date },
): Promise<{ before: Endpoint; after: Endpoint }> {
  const before = await lockEndpoint(tx, { partnerId, webhookId })
  const { headers, ...rest } = changes
  const enabled = changes.enabled ?? before.enabled
  const isNewStart = (enabled && !before.enabled) || (changes.url !== undefined && changes.url !== before.url)
  await tx
    .updateTable('webhookEndpoints')
    .set({
      ...rest,
      ...(headers === undefined ? {} : { headers: sealHeaders(tx, { partnerId, headers }) }),
      ...(isNewStart ? healthy : {}),
      disabledReason: enabled ? null : (before.disabledReason ?? 'requested'),
      // Finds out what is due now, or ends the deliveries of an endpoint that is no longer enabled.
      ...(enabled !== before.enabled || isNewStart ? { dueAt: now } : {}),
    })
    .where('partnerId', '=', partnerId)
    .where('id', '=', webhookId)
    .execute()
  return { before, after: await find(tx, { partnerId, webhookId }) }
}

/**
 * Replaces the secret of an endpoint. The previous one stays valid for a while; until then, both sign.
 * @param overlapSeconds how long the previous secret stays valid
 * @throws Problem `NotFound`; `Conflict` if too many previous secrets are still valid
 */
export async function rotate(
  tx: Tx,
  { partnerId, webhookId, overlapSeconds, now }: Named & { overlapSeconds: number; now: Date },
): Promise<{ endpoint: Endpoint; secret: string; previousExpiresAt: Date }> {
  const endpoint = await lockEndpoint(tx, { partnerId, webhookId })
  const previousExpiresAt = new Date(now.getTime() + overlapSeconds * 1_000)
  await sql`
    update webhook_secrets set expires_at = ${previousExpiresAt}
     where partner_id = ${partnerId} and endpoint_id = ${webhookId} and expires_at is null`.execute(tx)
  await sql`
    delete from webhook_secrets
     where partner_id = ${partnerId} and endpoint_id = ${webhookId} and expires_at <= ${now}`.execute(tx)
  const { rows } = await sql<{ expiresAt: Date }>`
    select expires_at from webhook_secrets where partner_id = ${partnerId} and endpoint_id = ${webhookId}
     order by expires_at`.execute(tx)
  const [next] = rows
  if (next !== undefined && rows.length >= limits.secretsMax)
    throw conflict(
      `${rows.length} secrets are valid already; wait until one expires, at ${next.expiresAt.toISOString()}`,
    )
  const secret = await addSecret(tx, { partnerId, webhookId, now })
  return { endpoint, secret, previousExpiresAt }
}

/**
 * Deletes an endpoint and its secrets. A task deletes its deliveries later.
 * @throws Problem `NotFound`
 */
export async function remove(tx: Tx, { partnerId, webhookId, now }: Named & { now: Date }): Promise<Endpoint> {
  const endpoint = await lockEndpoint(tx, { partnerId, webhookId })
  await sql`
    update webhook_endpoints set deleted_at = ${now}, due_at = null
     where partner_id = ${partnerId} and id = ${webhookId}`.execute(tx)
  await sql`delete from webhook_secrets where partner_id = ${partnerId} and endpoint_id = ${webhookId}`.execute(tx)
  return endpoint
}

/**
 * Resets the failures of a partner's endpoints, which stay enabled or disabled. A reset deletes their deliveries and sets the
 * clock back, so a pause by the old clock could last for a year.
 */
export async function startAnew(tx: Tx, { partnerId }: { partnerId: string }): Promise<void> {
  await tx
    .updateTable('webhookEndpoints')
    .set({ ...healthy, dueAt: null })
    .where('partnerId', '=', partnerId)
    .where('deletedAt', 'is', null)
    .execute()
}

/** Locks an endpoint. @throws Problem `NotFound` */
export async function lock(tx: Tx, { partnerId, webhookId }: Named): Promise<EndpointRow> {
  const row = await select(tx, partnerId).where('id', '=', webhookId).forNoKeyUpdate().executeTakeFirst()
  if (row === undefined) throw notFound()
  return row
}

async function lockEndpoint(tx: Tx, named: Named): Promise<Endpoint> {
  return toEndpoint(tx, await lock(tx, named))
}

function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('webhookEndpoints')
    .select(['partnerId', ...columns, 'createdAt'])
    .select(metadataOf({ partnerId, resourceId: sql`webhook_endpoints.id` }).as('metadata'))
    .where('partnerId', '=', partnerId)
    .where('deletedAt', 'is', null)
}

type EndpointRow = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

function toEndpoint(db: Reader, { partnerId, headers, ...row }: EndpointRow): Endpoint {
  return { ...row, headers: openHeaders(db, { partnerId, headers }) }
}

async function countEndpoints(db: Reader, partnerId: string, matches = sql<boolean>`true`): Promise<number> {
  const { rows } = await sql<{ count: bigint }>`
    select count(*) from webhook_endpoints
     where partner_id = ${partnerId} and deleted_at is null and ${matches}`.execute(db)
  return Number(rows[0]?.count)
}

/** Locks the state that a partner's endpoints share: their number, and the position up to which the feed is fanned out. */
async function lockFeed(tx: Tx, partnerId: string): Promise<void> {
  await sql`insert into webhook_feeds (partner_id, position) values (${partnerId}, 0) on conflict do nothing`.execute(
    tx,
  )
  await sql`select from webhook_feeds where partner_id = ${partnerId} for update`.execute(tx)
}

async function addSecret(tx: Tx, { partnerId, webhookId, now }: Named & { now: Date }): Promise<string> {
  const secret = newSecret()
  const sealed = sealSecret(tx, { partnerId, secret })
  const row = { partnerId, endpointId: webhookId, secret: sealed, createdAt: now }
  await tx.insertInto('webhookSecrets').values(row).execute()
  return secret
}

function notFound() {
  return problem('NotFound', 'There is no such webhook endpoint')
}
