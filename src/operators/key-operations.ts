import { nextQuery, readPage } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { named, operationWith } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { strictObject } from '../kernel/schemas.ts'
import * as apiKeys from '../partners/api-keys.ts'
import { partnerNow } from '../partners/clocks.ts'
import { findState } from '../partners/partners.ts'
import { building } from '../users/roles.ts'
import { ApiKey, ApiKeyOfPartner, ApiKeyRotation, ApiKeys, ApiKeyWithSecret, NewApiKey } from './partner-schema.ts'

const operation = operationWith({ tag: 'Partners' })
const msPerDay = 86_400_000

// The partner's admins and developers may call them, but not its keys: a stolen key must not be able to create another.
const access = { isForOperators: true, partnerRoles: building } as const

const shownOnce =
  'Only this response has the secret: the database stores its hash, and a replay by an idempotency key has null.'

export const listApiKeys = operation({
  route: 'GET /operator/v1/partners/:partnerId/keys',
  ...access,
  summary: 'List the API keys of a partner',
  description: 'Newest first, including expired and revoked ones.',
  query: strictObject(nextQuery('apiKey', 'key')),
  success: { description: 'One page of keys.', schema: ApiKeys },
  async read(reader, call) {
    const { partnerId } = call.params
    await findState(reader, partnerId)
    const now = await partnerNow(reader, call, partnerId)
    const { after: before } = call.query
    const { rows, hasMore } = await readPage(call.query, take => apiKeys.listKeys(reader, { partnerId, before, take }))
    return { body: { keys: rows.map(key => onWire(key, now)), hasMore } }
  },
})

export const getApiKey = operation({
  route: 'GET /operator/v1/keys/:keyId',
  isForOperators: true,
  summary: 'Get an API key',
  description: 'With its partner, for a key of which only the id is known.',
  success: { description: 'The key.', schema: ApiKeyOfPartner },
  async read(reader, call) {
    const { keyId } = call.params
    const partnerId = await apiKeys.findOwner(reader, keyId)
    if (partnerId === undefined)
      throw problem('NotFound', `There is no key ${keyId}; run midmonth key list to see the ids`)
    const now = await partnerNow(reader, call, partnerId)
    return { body: { ...onWire(await requireKey(reader, { partnerId, keyId }), now), partnerId } }
  },
})

export const createApiKey = operation({
  route: 'POST /operator/v1/partners/:partnerId/keys',
  ...access,
  summary: 'Create an API key',
  description: shownOnce,
  body: NewApiKey,
  success: { status: 201, description: 'The key, with its secret.', schema: ApiKeyWithSecret },
  async write(tx, call) {
    const { partnerId } = call.params
    const { scopes = apiKeys.scopes, expiresInDays } = call.body
    const { mode } = call.context
    await findState(tx, partnerId)
    const now = await partnerNow(tx, call, partnerId)
    const expiresAt = expiresInDays === undefined ? null : new Date(now.getTime() + expiresInDays * msPerDay)
    const { key, secret } = await apiKeys.createKey(tx, { partnerId, mode, scopes, expiresAt, now })
    return {
      ...withSecret(key, secret, now),
      resourceId: key.id,
      audit: { action: 'key.create', details: detailsOf(key), partnerId, now },
    }
  },
})

export const rotateApiKey = operation({
  route: 'POST /operator/v1/partners/:partnerId/keys/:keyId/rotate',
  ...access,
  summary: 'Rotate an API key',
  description: `Creates a key with the same scopes and the same lifetime as the old key. The old key stays valid for \`overlapSeconds\`, or until you revoke it; switch to the new key in that time. ${shownOnce}`,
  body: ApiKeyRotation,
  success: { status: 201, description: 'The new key, with its secret.', schema: ApiKeyWithSecret },
  async write(tx, call) {
    const { partnerId, keyId } = call.params
    const { overlapSeconds } = call.body
    const { mode } = call.context
    const old = await requireKey(tx, { partnerId, keyId })
    if (old.revokedAt !== null) throw problem('Conflict', 'The key is revoked; create another one')
    const now = await partnerNow(tx, call, partnerId)
    const expiresAt = old.expiresAt && new Date(now.getTime() + old.expiresAt.getTime() - old.createdAt.getTime())
    const { key, secret } = await apiKeys.createKey(tx, { partnerId, mode, scopes: old.scopes, expiresAt, now })
    const oldExpiresAt =
      overlapSeconds === undefined
        ? old.expiresAt
        : await apiKeys.expireKey(tx, { partnerId, keyId, at: new Date(now.getTime() + overlapSeconds * 1_000) })
    const details = { ...detailsOf(key), rotates: keyId, oldExpiresAt: oldExpiresAt?.toISOString() ?? null }
    return {
      ...withSecret(key, secret, now),
      resourceId: key.id,
      audit: { action: 'key.create', details, partnerId, now },
    }
  },
})

export const revokeApiKey = operation({
  route: 'POST /operator/v1/partners/:partnerId/keys/:keyId/revoke',
  ...access,
  summary: 'Revoke an API key',
  description: 'The key stops working within a second. Idempotent.',
  success: { description: 'The revoked key.', schema: ApiKey },
  async write(tx, call) {
    const { partnerId, keyId } = call.params
    const { hint } = await requireKey(tx, { partnerId, keyId })
    const revoked = await apiKeys.revokeKey(tx, { keyId, now: call.receivedAt })
    const now = await partnerNow(tx, call, partnerId)
    const audit = { action: 'key.revoke', details: { key: hint }, partnerId, now } as const
    return {
      body: onWire(await requireKey(tx, { partnerId, keyId }), now),
      resourceId: keyId,
      audit: revoked?.isRepeated === false ? audit : undefined,
    }
  },
})

export const keyOperations = named({ listApiKeys, getApiKey, createApiKey, rotateApiKey, revokeApiKey })

/** @throws Problem `NotFound`, including for another partner's key */
async function requireKey(
  db: Reader,
  { partnerId, keyId }: { partnerId: string; keyId: string },
): Promise<apiKeys.ApiKey> {
  const key = await apiKeys.findKey(db, { partnerId, keyId })
  if (key === undefined) throw problem('NotFound', `The partner has no key ${keyId}`)
  return key
}

function detailsOf({ hint, scopes, expiresAt }: apiKeys.ApiKey) {
  return { key: hint, scopes, expiresAt: expiresAt?.toISOString() ?? null }
}

function withSecret(key: apiKeys.ApiKey, secret: string, now: Date) {
  const shown = onWire(key, now)
  return { body: { ...shown, secret }, storedBody: { ...shown, secret: null } }
}

function onWire(key: apiKeys.ApiKey, now: Date) {
  const { id, hint, scopes, createdAt, expiresAt, revokedAt, lastUsedAt } = key
  return { id, hint, scopes, state: apiKeys.stateOf(key, now), createdAt, expiresAt, revokedAt, lastUsedAt }
}
