import * as auditLog from '../audit-log/audit-log.ts'
import { sql, type Tx } from '../database/database.ts'
import { requireUser } from './accounts.ts'
import { endAccess, requireStillAllowed } from './rights.ts'

/** The person who has signed in, according to the provider. `email` is null unless the provider has verified it. */
export type Identity = { issuer: string; subject: string; email: string | null; name: string; groups: string[] }

/**
 * Finds the id of the user who is linked to an identity, disabled or not. Locks the user, so that a concurrent unlinking either
 * ends the session of this sign-in or is seen here.
 */
export async function findByIdentity(tx: Tx, identity: Identity): Promise<string | undefined> {
  const userId = await readLink(tx, identity)
  if (userId === undefined) return undefined
  await sql`select from users where id = ${userId} for update`.execute(tx)
  return await readLink(tx, identity)
}

async function readLink(tx: Tx, { issuer, subject }: Identity): Promise<string | undefined> {
  const row = await tx
    .selectFrom('userIdentities')
    .select('userId')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return row?.userId
}

/** Finds the id of the user with this address who is linked to any identity. Disabled users are not found. */
export async function findLinkedByEmail(tx: Tx, email: string): Promise<string | undefined> {
  const row = await tx
    .selectFrom('users')
    .innerJoin('userIdentities', 'userIdentities.userId', 'users.id')
    .select('users.id')
    .where('users.email', '=', email)
    .where('users.disabledAt', 'is', null)
    .executeTakeFirst()
  return row?.id
}

/**
 * Unlinks a user from the OpenID provider, and ends the user's sessions, links and invitations: the person who had the address before
 * may hold them. The next sign-in with the verified address links the user anew.
 * @returns whether the user was linked
 * @throws Problem `NotFound`; `Forbidden` if the author is no longer an operator
 */
export async function unlink(
  tx: Tx,
  { userId, actor, now }: { userId: string; actor: auditLog.Actor; now: Date },
): Promise<boolean> {
  await requireStillAllowed(tx, { actor, partnerId: null, userId })
  const { isOperator } = await requireUser(tx, userId)
  const { rows } = await sql<{ issuer: string }>`
    delete from user_identities where user_id = ${userId} returning issuer`.execute(tx)
  if (rows.length === 0) return false
  await endAccess(tx, { userId, wasOperator: isOperator })
  const issuers = rows.map(({ issuer }) => issuer)
  const change = { action: 'user.remove_identity', resourceId: userId, details: { issuers } } as const
  await auditLog.record(tx, { partnerId: null, actor, change, now })
  return true
}
