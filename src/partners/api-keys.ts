import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { outageOutcome } from '../database/errors.ts'
import { problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { generateSecret, hasChecksum, hashOf, secretPattern } from '../kernel/secrets.ts'
import { type Mode, type Partner, partnerColumnList } from './partners.ts'

/** The permissions of an API key. A request without the scope of its operation gets `Forbidden`. */
export const scopes = ['members:read', 'members:write', 'pay:read', 'pay:write'] as const
export type Scope = (typeof scopes)[number]

export type ApiKey = {
  id: string
  mode: Mode
  hint: string
  scopes: Scope[]
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
  lastUsedAt: Date | null
}

const prefixes = { sandbox: 'mm_test_', live: 'mm_live_' } as const
const keyPattern = new RegExp(`^mm_(test|live)_${secretPattern}$`)
// Precise enough to tell whether a key is still in use, without a write per request.
const lastUsePrecisionMs = 60_000

// Enough for a key per service and environment. A loop that creates keys must not fill the list.
const validMax = 100

export function newSecret(mode: Mode): string {
  return generateSecret(prefixes[mode])
}

/** Returns the mode of a well-formed key with a valid checksum; undefined for any other text. */
export function modeOf(secret: string): Mode | undefined {
  if (!keyPattern.test(secret) || !hasChecksum(secret)) return undefined
  return secret.startsWith(prefixes.live) ? 'live' : 'sandbox'
}

type NewKey = { partnerId: string; mode: Mode; scopes: readonly Scope[]; expiresAt: Date | null; now: Date }

/**
 * Creates a key for a partner. The secret is returned only here; the database stores its SHA-256.
 * @param expiresAt null for a key that is valid until it is revoked
 * @throws Problem `Conflict` if the partner has too many valid keys
 */
export async function createKey(
  tx: Tx,
  { partnerId, mode, scopes: granted, expiresAt, now }: NewKey,
): Promise<{ key: ApiKey; secret: string }> {
  const { rows } = await sql`
    select from api_keys
     where partner_id = ${partnerId} and revoked_at is null and (expires_at is null or expires_at > ${now})
     limit ${validMax}`.execute(tx)
  if (rows.length >= validMax)
    throw problem('Conflict', `The partner has ${validMax} valid keys; revoke unused keys first`)
  const secret = newSecret(mode)
  const key = {
    id: newId('apiKey', now),
    mode,
    hint: `${secret.slice(0, 12)}…`,
    scopes: [...granted],
    createdAt: now,
    expiresAt,
    revokedAt: null,
    lastUsedAt: null,
  }
  await tx
    .insertInto('apiKeys')
    .values({ ...key, partnerId, hash: hashOf(secret) })
    .execute()
  return { key, secret }
}

/**
 * Lists the keys of a partner, newest first, including revoked and expired ones.
 * @param before only keys older than this one
 */
export async function listKeys(
  db: Reader,
  { partnerId, before, take }: { partnerId: string; before?: string | undefined; take: number },
): Promise<ApiKey[]> {
  const all = keysOf(db, partnerId)
  const rows = await (before === undefined ? all : all.where('id', '<', before))
    .orderBy('id', 'desc')
    .limit(take)
    .execute()
  return rows.map(toKey)
}

/** Finds a key of a partner, in any state. Returns undefined for another partner's key. */
export async function findKey(
  db: Reader,
  { partnerId, keyId }: { partnerId: string; keyId: string },
): Promise<ApiKey | undefined> {
  const row = await keysOf(db, partnerId).where('id', '=', keyId).executeTakeFirst()
  return row && toKey(row)
}

/** The id of the partner that a key belongs to. Returns undefined if the key does not exist. */
export async function findOwner(db: Reader, keyId: string): Promise<string | undefined> {
  const row = await db.selectFrom('apiKeys').select('partnerId').where('id', '=', keyId).executeTakeFirst()
  return row?.partnerId
}

function keysOf(db: Reader, partnerId: string) {
  return db
    .selectFrom('apiKeys')
    .select(['id', 'mode', 'hint', 'scopes', 'createdAt', 'expiresAt', 'revokedAt', 'lastUsedAt'])
    .where('partnerId', '=', partnerId)
}

function toKey(row: Omit<ApiKey, 'scopes'> & { scopes: string[] }): ApiKey {
  return { ...row, scopes: row.scopes as Scope[] }
}

type KeyState = 'valid' | 'expired' | 'revoked'

/** Counts a partner's keys by state. Revoked keys are kept, so there may be many. */
export async function countKeys(
  db: Reader,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<Record<KeyState, number>> {
  const { rows } = await sql<Record<KeyState, number>>`
    select count(*) filter (where revoked_at is null and (expires_at is null or expires_at > ${now}))::integer as valid,
           count(*) filter (where revoked_at is null and expires_at <= ${now})::integer as expired,
           count(revoked_at)::integer as revoked
      from api_keys where partner_id = ${partnerId}`.execute(db)
  return rows[0] ?? { valid: 0, expired: 0, revoked: 0 }
}

/** Returns the state of a partner's or an operator's key. */
export function stateOf({ expiresAt, revokedAt }: Pick<ApiKey, 'expiresAt' | 'revokedAt'>, now: Date): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'valid'
}

/** Lists the valid keys of all partners in this mode, newest first. */
export async function listValidKeys(
  db: Reader,
  { mode, now }: { mode: Mode; now: Date },
): Promise<{ partnerId: string; id: string; hint: string; expiresAt: Date | null }[]> {
  return await db
    .selectFrom('apiKeys')
    .select(['partnerId', 'id', 'hint', 'expiresAt'])
    .where('mode', '=', mode)
    .where('revokedAt', 'is', null)
    .where(or => or.or([or('expiresAt', 'is', null), or('expiresAt', '>', now)]))
    .orderBy('id', 'desc')
    .execute()
}

/**
 * Revokes a key; every process notices within a second. Idempotent: the first revocation time is kept.
 * @returns undefined if the key does not exist; `isRepeated` if it was already revoked
 */
export async function revokeKey(
  tx: Tx,
  { keyId, now }: { keyId: string; now: Date },
): Promise<{ partnerId: string; hint: string; revokedAt: Date; isRepeated: boolean } | undefined> {
  const { rows } = await sql<{ partnerId: string; hint: string; revokedAt: Date | null }>`
    select partner_id, hint, revoked_at from api_keys where id = ${keyId} for no key update`.execute(tx)
  const [key] = rows
  if (key === undefined) return undefined
  if (key.revokedAt !== null) return { ...key, revokedAt: key.revokedAt, isRepeated: true }
  await sql`
    update api_keys set revoked_at = ${now} where partner_id = ${key.partnerId} and id = ${keyId}`.execute(tx)
  return { ...key, revokedAt: now, isRepeated: false }
}

/**
 * Sets a key to expire at an instant, unless it expires earlier. Every process notices within a second.
 * @returns when the key expires
 */
export async function expireKey(
  tx: Tx,
  { partnerId, keyId, at }: { partnerId: string; keyId: string; at: Date },
): Promise<Date> {
  const { rows } = await sql<{ expiresAt: Date }>`
    update api_keys set expires_at = least(expires_at, ${at}::timestamptz)
     where partner_id = ${partnerId} and id = ${keyId}
    returning expires_at`.execute(tx)
  return rows[0]?.expiresAt ?? at
}

/** The instants at which a partner's keys expire. */
export const dueExpiries = ({ partnerId, after }: { partnerId: string; after: Date }) => sql<{ at: Date }>`
  select expires_at as at from api_keys
   where partner_id = ${partnerId} and revoked_at is null and expires_at > ${after}`

export type KeyHolder = {
  partner: Partner
  keyId: string
  scopes: ReadonlySet<Scope>
  expiresAt: Date | null
  /** Only on a sandbox: whether the partner's clock has ever been moved. `clockOffsetMs` says how far it is ahead. */
  hasClock: boolean
  clockOffsetMs: number
}

/** Finds the partner and scopes of a secret, and records its use. Returns undefined if the key is unknown, revoked or expired. */
export async function findHolder(
  db: Db,
  { secret, mode, now }: { secret: string; mode: Mode; now: Date },
): Promise<KeyHolder | undefined> {
  // A live installation has no clocks. Where partners are on several nodes, the look-up then needs none of them.
  const isSandbox = mode === 'sandbox'
  const offset = isSandbox ? sql`c.offset_ms` : sql`null::bigint`
  const clocks = isSandbox ? sql`left join sandbox_clocks c on c.partner_id = k.partner_id` : sql``
  const { rows } = await sql<
    Partner & {
      keyId: string
      scopes: Scope[]
      expiresAt: Date | null
      lastUsedAt: Date | null
      offsetMs: bigint | null
    }
  >`
    select ${partnerColumnList},
           k.id as key_id, k.scopes, k.expires_at, k.last_used_at, ${offset} as offset_ms
      from api_keys k join partners p on p.id = k.partner_id ${clocks}
     where k.hash = ${hashOf(secret)} and k.mode = ${mode}
       and k.revoked_at is null
       and (k.expires_at is null or k.expires_at > ${now}::timestamptz + coalesce(${offset}, 0) * interval '1 ms')`.execute(
    db,
  )
  const row = rows[0]
  if (row === undefined) return undefined
  const { keyId, scopes: granted, expiresAt, lastUsedAt, offsetMs, ...partner } = row
  if (lastUsedAt === null || now.getTime() - lastUsedAt.getTime() >= lastUsePrecisionMs) {
    await sql`
      update api_keys set last_used_at = greatest(last_used_at, ${now})
       where partner_id = ${partner.id} and id = ${keyId}`
      .execute(db)
      // The last use is only informative: a database that is read-only, or has lost another partner's node, must still answer.
      .catch(error => {
        if (outageOutcome(error) === undefined) throw error
      })
  }
  const clock = { hasClock: offsetMs !== null, clockOffsetMs: Number(offsetMs ?? 0) }
  return { partner, keyId, scopes: new Set(granted), expiresAt, ...clock }
}
