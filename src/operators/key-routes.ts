import { Type } from 'typebox'
import { cutPage, pageOf, pageQuery } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { operation } from '../http/described-route.ts'
import { partnerNow, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import * as apiKeys from '../partners/api-keys.ts'
import { findState } from '../partners/partners.ts'
import { ApiKey, ApiKeyRotation, ApiKeys, ApiKeyWithSecret, NewApiKey } from './partner-schema.ts'

const tag = 'Partners'
const ofPartner = Type.Object({ partnerId: Id('partner') })
const params = Type.Object({ partnerId: Id('partner'), keyId: Id('apiKey') })

// Also for the partner's admins and developers, as the table of roles says, but not for its keys: a stolen key must not be able to create
// another.
const config = { isForOperators: true } as const

const shownOnce =
  'Only this response has the secret: the database stores its hash, and a replay by an idempotency key has null.'

export function keyRoutes(app: App, { db, mode }: ApiContext): void {
  app.get(
    '/operator/v1/partners/:partnerId/keys',
    {
      config,
      schema: operation({
        id: 'listApiKeys',
        tag,
        summary: 'List the API keys of a partner',
        description: 'Newest first, including expired and revoked ones.',
        params: ofPartner,
        query: Type.Object(
          {
            after: Type.Optional(Id('apiKey', 'The id of the last key of this page, to get the next page.')),
            take: pageQuery.take,
          },
          { additionalProperties: false },
        ),
        success: { status: 200, description: 'One page of keys.', schema: ApiKeys },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partnerId } = request.params
        await findState(reader, partnerId)
        const now = await partnerNow(reader, request, partnerId)
        const { take } = pageOf(request.query)
        const found = await apiKeys.listKeys(reader, { partnerId, before: request.query.after, take: take + 1 })
        const { rows, hasMore } = cutPage(found, { take })
        return { status: 200, body: { keys: rows.map(key => keyOnWire(key, now)), hasMore } }
      }),
  )

  app.post(
    '/operator/v1/partners/:partnerId/keys',
    {
      config,
      schema: operation({
        id: 'createApiKey',
        tag,
        summary: 'Create an API key',
        description: shownOnce,
        params: ofPartner,
        body: NewApiKey,
        success: { status: 201, description: 'The key, with its secret.', schema: ApiKeyWithSecret },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId } = request.params
        const { scopes = apiKeys.scopes, expiresInDays } = request.body
        await findState(tx, partnerId)
        const now = await partnerNow(tx, request, partnerId)
        const expiresAt = expiresInDays === undefined ? null : new Date(now.getTime() + expiresInDays * msPerDay)
        const { key, secret } = await apiKeys.createKey(tx, { partnerId, mode, scopes, expiresAt, now })
        const details = { key: key.hint, scopes: key.scopes, expiresAt: expiresAt?.toISOString() ?? null }
        const change = { action: 'key.create', resourceId: key.id, details } as const
        await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 201, resourceId: key.id, ...withSecret(key, secret, now) }
      }),
  )

  app.post(
    '/operator/v1/partners/:partnerId/keys/:keyId/rotate',
    {
      config,
      schema: operation({
        id: 'rotateApiKey',
        tag,
        summary: 'Rotate an API key',
        description: `Creates a key with the same scopes and the same lifetime as the old key. The old key stays valid for \`overlapSeconds\`, or until you revoke it; switch to the new key in that time. ${shownOnce}`,
        params,
        body: ApiKeyRotation,
        success: { status: 201, description: 'The new key, with its secret.', schema: ApiKeyWithSecret },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId, keyId } = request.params
        const old = await requireKey(tx, { partnerId, keyId })
        if (old.revokedAt !== null) throw problem('Conflict', 'The key is revoked; create another one')
        const now = await partnerNow(tx, request, partnerId)
        const expiresAt = old.expiresAt && new Date(now.getTime() + old.expiresAt.getTime() - old.createdAt.getTime())
        const { key, secret } = await apiKeys.createKey(tx, { partnerId, mode, scopes: old.scopes, expiresAt, now })
        const { overlapSeconds } = request.body
        const oldExpiresAt =
          overlapSeconds === undefined
            ? old.expiresAt
            : await apiKeys.expireKey(tx, { partnerId, keyId, at: new Date(now.getTime() + overlapSeconds * 1_000) })
        const details = {
          key: key.hint,
          scopes: key.scopes,
          expiresAt: expiresAt?.toISOString() ?? null,
          rotates: keyId,
          oldExpiresAt: oldExpiresAt?.toISOString() ?? null,
        }
        const change = { action: 'key.create', resourceId: key.id, details } as const
        await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 201, resourceId: key.id, ...withSecret(key, secret, now) }
      }),
  )

  app.post(
    '/operator/v1/partners/:partnerId/keys/:keyId/revoke',
    {
      config,
      schema: operation({
        id: 'revokeApiKey',
        tag,
        summary: 'Revoke an API key',
        description: 'The key stops working within a second. Idempotent.',
        params,
        success: { status: 200, description: 'The revoked key.', schema: ApiKey },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId, keyId } = request.params
        const { hint } = await requireKey(tx, { partnerId, keyId })
        const revoked = await apiKeys.revokeKey(tx, { keyId, now: request.receivedAt })
        const now = await partnerNow(tx, request, partnerId)
        const change = { action: 'key.revoke', resourceId: keyId, details: { key: hint } } as const
        if (revoked?.isRepeated === false) await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 200, body: keyOnWire(await requireKey(tx, { partnerId, keyId }), now), resourceId: keyId }
      }),
  )
}

const msPerDay = 86_400_000

/** @throws Problem `NotFound`, including for another partner's key */
async function requireKey(
  db: Reader,
  { partnerId, keyId }: { partnerId: string; keyId: string },
): Promise<apiKeys.ApiKey> {
  const key = await apiKeys.findKey(db, { partnerId, keyId })
  if (key === undefined) throw problem('NotFound', `The partner has no key ${keyId}`)
  return key
}

function withSecret(key: apiKeys.ApiKey, secret: string, now: Date) {
  const shown = keyOnWire(key, now)
  return { body: { ...shown, secret }, storedBody: { ...shown, secret: null } }
}

function keyOnWire(key: apiKeys.ApiKey, now: Date) {
  const { id, hint, scopes, createdAt, expiresAt, revokedAt, lastUsedAt } = key
  return {
    id,
    hint,
    scopes,
    state: apiKeys.stateOf(key, now),
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  }
}
