import * as auditLog from '../audit-log/audit-log.ts'
import { sql, type Tx } from '../database/database.ts'
import { requireUser } from './accounts.ts'
import { endAccess, requireStillAllowed } from './rights.ts'

/** Who the provider says has signed in. `email` is null unless the provider has verified it. */
export type Identity = { issuer: string; subject: string; email: string | null; name: string; groups: string[] }

/**
 * The id of the user who is linked to an identity. Locks the user, so that unlinking at the same time ends the session of this
 * sign-in too, or is seen here.
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

/** The id of the user who has a verified address and is linked to any identity. */
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
 * Unlinks a user from the OpenID provider, and ends sessions and links, which may be those of the person who had the address before.
 * The next sign-in with the verified address links the user anew.
 * @returns whether there was an identity
 * @throws Problem `NotFound`; `Forbidden` if the author is no operator any longer
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
  const issuers = [...new Set(rows.map(({ issuer }) => issuer))].sort()
  const change = { action: 'user.remove_identity', resourceId: userId, details: { issuers } } as const
  await auditLog.record(tx, { partnerId: null, actor, change, now })
  return true
}
