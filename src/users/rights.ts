import type * as auditLog from '../audit-log/audit-log.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import { endSessions } from './sessions.ts'
import { findUser, rolesWith } from './users.ts'

/**
 * Requires that the author of a change may still manage users: the right may have been taken away since the request was admitted,
 * and a change that is committed after that would be a way back. Locks the author and the changed user in the order of their ids,
 * so that two users who change each other take turns. A command has the rights of the database.
 * @param partnerId null for the users of the installation
 * @throws Problem `Forbidden`
 */
export async function requireStillAllowed(
  tx: Tx,
  { actor, partnerId, userId }: { actor: auditLog.Actor; partnerId: string | null; userId?: string },
): Promise<void> {
  const ids = [...(actor.kind === 'user' ? [actor.name] : []), ...(userId === undefined ? [] : [userId])]
  await sql`select from users where id = any(${ids}::text[]) order by id for update`.execute(tx)
  if (actor.kind !== 'user') return
  const author = await findUser(tx, actor.name)
  if (author?.isOperator) return
  const roles = partnerId === null ? [] : await rolesWith(tx, { userId: actor.name, partnerId })
  if (author === undefined || !roles.includes('admin')) throw problem('Forbidden', 'You may no longer manage users')
}

/**
 * Ends everything that a user could come back with after a change of rights: sessions, the invitations that the user has made,
 * and the links for new passwords of anyone, which an operator could have made.
 */
export async function endPowers(
  tx: Reader,
  { userId, wasOperator }: { userId: string; wasOperator: boolean },
): Promise<void> {
  await endSessions(tx, { userId })
  await sql`delete from user_invitations where invited_by = ${userId}`.execute(tx)
  // The author of a link is not stored, so links for all users end. Their users can ask for another one.
  if (wasOperator) await sql`delete from user_links where purpose = 'password'`.execute(tx)
}

/** Ends every way back into an account that may have another owner now: `endPowers`, known browsers, and the user's links. */
export async function endAccess(tx: Reader, user: { userId: string; wasOperator: boolean }): Promise<void> {
  await sql`delete from user_browsers where user_id = ${user.userId}`.execute(tx)
  await sql`delete from user_links where user_id = ${user.userId}`.execute(tx)
  await endPowers(tx, user)
}
