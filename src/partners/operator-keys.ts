import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { isReadOnly } from '../database/errors.ts'
import { newId } from '../kernel/ids.ts'
import { generateSecret, hasChecksum, hashOf, secretPattern } from '../kernel/secrets.ts'

/**
 * The caller of an operation for operators. Decisions about payments are recorded under `person`. An operator key decides nothing
 * that takes people.
 */
export type Operator = {
  kind: 'operator_key' | 'user' | 'cli'
  id: string
  person: string
  /** The login of the operating system, for a command; a second person may decide from it only if `mayShareLogin`. */
  login?: string
  mayShareLogin?: boolean
  /** A user with a role for the partner in the path who is not an operator. */
  isOfPartner?: boolean
}

type OperatorKey = {
  id: string
  name: string
  hint: string
  createdBy: string
  createdAt: Date
  expiresAt: Date | null
  revokedBy: string | null
  revokedAt: Date | null
  lastUsedAt: Date | null
}

const prefix = 'mmoperator_'
const keyPattern = new RegExp(`^${prefix}${secretPattern}$`)
// Precise enough to tell whether a key is still in use, without a write per request.
const lastUsePrecisionMs = 60_000

/** Whether a text has the form of an operator key, with a valid checksum. */
export function isOperatorKey(secret: string): boolean {
  return keyPattern.test(secret) && hasChecksum(secret)
}

/**
 * Creates a key for an operator. The secret is returned only here; the database stores its SHA-256.
 * @param expiresAt null for a key that is valid until it is revoked
 */
export async function createOperatorKey(
  tx: Tx,
  { name, createdBy, expiresAt, now }: { name: string; createdBy: string; expiresAt: Date | null; now: Date },
): Promise<{ key: OperatorKey; secret: string }> {
  const secret = generateSecret(prefix)
  const key = {
    id: newId('operatorKey', now),
    name,
    hint: `${secret.slice(0, 12)}…`,
    createdBy,
    createdAt: now,
    expiresAt,
    revokedBy: null,
    revokedAt: null,
    lastUsedAt: null,
  }
  await tx
    .insertInto('operatorKeys')
    .values({ ...key, hash: hashOf(secret) })
    .execute()
  return { key, secret }
}

/** Lists the newest operator keys, including revoked and expired ones. */
export async function listOperatorKeys(db: Reader, { take }: { take: number }): Promise<OperatorKey[]> {
  return await db
    .selectFrom('operatorKeys')
    .select(['id', 'name', 'hint', 'createdBy', 'createdAt', 'expiresAt', 'revokedBy', 'revokedAt', 'lastUsedAt'])
    .orderBy('id', 'desc')
    .limit(take)
    .execute()
}

/**
 * Revokes a key, from the next request on. Idempotent: the first revocation is kept.
 * @returns undefined if the key does not exist; `isRepeated` if it was already revoked
 */
export async function revokeOperatorKey(
  tx: Tx,
  { keyId, revokedBy, now }: { keyId: string; revokedBy: string; now: Date },
): Promise<{ hint: string; revokedAt: Date; isRepeated: boolean } | undefined> {
  const { rows } = await sql<{ hint: string; revokedAt: Date | null }>`
    select hint, revoked_at from operator_keys where id = ${keyId} for no key update`.execute(tx)
  const [key] = rows
  if (key === undefined) return undefined
  if (key.revokedAt !== null) return { ...key, revokedAt: key.revokedAt, isRepeated: true }
  await sql`
    update operator_keys set revoked_at = ${now}, revoked_by = ${revokedBy} where id = ${keyId}`.execute(tx)
  return { ...key, revokedAt: now, isRepeated: false }
}

/** Finds the key of a secret and records its use. Returns undefined if the key is unknown, revoked or expired. */
export async function findOperatorKey(
  db: Db,
  { secret, now }: { secret: string; now: Date },
): Promise<{ id: string } | undefined> {
  const { rows } = await sql<{ id: string; lastUsedAt: Date | null }>`
    select id, last_used_at from operator_keys
     where hash = ${hashOf(secret)} and revoked_at is null and (expires_at is null or expires_at > ${now})`.execute(db)
  const [key] = rows
  if (key === undefined) return undefined
  if (key.lastUsedAt === null || now.getTime() - key.lastUsedAt.getTime() >= lastUsePrecisionMs) {
    await sql`
      update operator_keys set last_used_at = greatest(last_used_at, ${now}) where id = ${key.id}`
      .execute(db)
      // The last use is only informative: a read-only database must still answer reads.
      .catch(error => {
        if (!isReadOnly(error)) throw error
      })
  }
  return { id: key.id }
}
