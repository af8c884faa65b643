import * as auditLog from '../audit-log/audit-log.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import { conflict, type Problem, problem } from '../kernel/errors.ts'
import { endPowers, requireStillAllowed } from './rights.ts'
import type { Role } from './roles.ts'
import { endSessions } from './sessions.ts'
import { addRoles, findUser, rolesWith, type User } from './users.ts'

/** A user as shown to users of the same partner, and to operators, who see all users. */
export type UserState = User & {
  hasTotp: boolean
  hasPassword: boolean
  /** Whether the user signs in through the OpenID provider. */
  hasIdentity: boolean
  /** Whether the OpenID provider has vouched for the address. A link may have been passed on, so it does not prove an address. */
  isEmailVerified: boolean
  isDisabled: boolean
  /** The roles with the requested partner; empty if no partner was requested. */
  roles: Role[]
  createdAt: Date
  lastSignInAt: Date | null
}

/**
 * Lists users, newest first.
 * @param partnerId null for all users of the installation
 */
export async function listUsers(
  db: Reader,
  { partnerId, skip, take }: { partnerId: string | null; skip: number; take: number },
): Promise<UserState[]> {
  const { rows } = await sql<UserState>`
    select u.id, u.email, u.name, u.is_operator, u.created_at, u.disabled_at is not null as is_disabled,
           u.totp_confirmed_at is not null as has_totp, u.password_hash is not null as has_password,
           i.is_linked as has_identity, i.is_linked as is_email_verified,
           coalesce(r.roles, '{}') as roles,
           (select max(s.created_at) from user_sessions s where s.user_id = u.id) as last_sign_in_at
      from users u
     cross join lateral (select exists (select from user_identities where user_id = u.id) as is_linked) i
      left join lateral (select array_agg(role order by role) as roles from user_roles
                          where partner_id = ${partnerId} and user_id = u.id) r on true
     where ${partnerId}::text is null or r.roles is not null
     order by u.id desc offset ${skip} limit ${take}`.execute(db)
  return rows
}

type RoleChange = { userId: string; partnerId: string; roles: readonly Role[]; actor: auditLog.Actor; now: Date }

/**
 * Replaces the roles of a user with a partner, and ends the user's sessions: the new rights apply at once, with a new token.
 * @param roles empty to remove the user from the partner
 * @throws Problem `NotFound` if the user has no role with the partner, `Forbidden` if the user is the author
 */
export async function setRoles(tx: Tx, { userId, partnerId, roles, actor, now }: RoleChange): Promise<void> {
  await requireStillAllowed(tx, { actor, partnerId, userId })
  const before = await rolesWith(tx, { userId, partnerId })
  if (before.length === 0) throw noSuchUser()
  // Leaving a partner is allowed, because it gains no rights.
  if (actor.name === userId && roles.length > 0)
    throw problem('Forbidden', 'You cannot change your own roles; ask another admin')
  const after = [...new Set(roles)].sort()
  if (after.join() === before.join()) return
  await tx.deleteFrom('userRoles').where('partnerId', '=', partnerId).where('userId', '=', userId).execute()
  await addRoles(tx, { userId, partnerId, roles: after })
  // Invitations that the user has made end as well: one of them might be the way back.
  await sql`delete from user_invitations where partner_id = ${partnerId} and invited_by = ${userId}`.execute(tx)
  await endSessions(tx, { userId })
  const change = {
    action: 'user.set_roles',
    resourceId: userId,
    details: { before: { roles: before }, after: { roles: after } },
  } as const
  await auditLog.record(tx, { partnerId, actor, change, now })
}

type UserChange = {
  userId: string
  isOperator?: boolean | undefined
  isDisabled?: boolean | undefined
  actor: auditLog.Actor
  now: Date
}

/**
 * Grants or revokes the rights of an operator, or disables or enables a user. Ends the user's sessions.
 * @throws Problem `NotFound`; `Forbidden` if the user is the author; `Conflict` if no operator would remain
 */
export async function setUser(tx: Tx, { userId, isOperator, isDisabled, actor, now }: UserChange): Promise<void> {
  if (actor.name === userId) throw problem('Forbidden', 'You cannot change your own rights; ask another operator')
  await requireStillAllowed(tx, { actor, partnerId: null, userId })
  const { rows } = await sql<{ isOperator: boolean; isDisabled: boolean }>`
    select is_operator, disabled_at is not null as is_disabled from users where id = ${userId}`.execute(tx)
  const [before] = rows
  if (before === undefined) throw noSuchUser()
  const after = { isOperator: isOperator ?? before.isOperator, isDisabled: isDisabled ?? before.isDisabled }
  const changed = auditLog.differences(before, after)
  if (changed === null) return
  await sql`
    update users set is_operator = ${after.isOperator},
           disabled_at = case when ${after.isDisabled} then coalesce(disabled_at, ${now}) end
     where id = ${userId}`
    .execute(tx)
    .catch(error => {
      throw brokenConstraint(error) === 'an_operator_remains' ? lastOperator() : error
    })
  const isOperatorNow = after.isOperator && !after.isDisabled
  await endPowers(tx, { userId, wasOperator: before.isOperator && !before.isDisabled && !isOperatorNow })
  if (after.isDisabled) await sql`delete from user_links where user_id = ${userId}`.execute(tx)
  const action = after.isDisabled && !before.isDisabled ? 'user.disable' : 'user.set'
  await auditLog.record(tx, { partnerId: null, actor, change: { action, resourceId: userId, details: changed }, now })
}

type PasswordChange = {
  userId: string
  passwordHash: string
  replacedHash?: string | null
  exceptSessionId?: string
  actor: auditLog.Actor
  now: Date
}

/**
 * Sets a password, and ends the user's one-time links and all but one of the user's sessions.
 * @param replacedHash the hash of the password that the user has given; without it, any password is replaced
 * @param exceptSessionId the session of the browser in which the user changes it
 * @throws Problem `SignInRefused` if the given password was replaced in the meantime
 */
export async function setPassword(
  tx: Tx,
  { userId, passwordHash, replacedHash = null, exceptSessionId, actor, now }: PasswordChange,
): Promise<void> {
  const { rows } = await sql`
    update users set password_hash = ${passwordHash}
     where id = ${userId} and password_hash is not distinct from coalesce(${replacedHash}, password_hash)
    returning 1`.execute(tx)
  if (rows.length === 0) throw problem('SignInRefused', 'The password was changed in the meantime; sign in again')
  await endSessions(tx, { userId, exceptSessionId })
  await sql`delete from user_links where user_id = ${userId}`.execute(tx)
  const change = { action: 'user.set_password', resourceId: userId, details: {} } as const
  await auditLog.record(tx, { partnerId: null, actor, change, now })
}

/** Whether the installation has an operator who can sign in. Until then, the console of a live installation is closed. */
export async function hasOperator(db: Reader): Promise<boolean> {
  const row = await db
    .selectFrom('users')
    .select('id')
    .where('isOperator', '=', true)
    .where('disabledAt', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** @throws Problem `NotFound` */
export async function requireUser(db: Reader, userId: string): Promise<User & { hasTotp: boolean }> {
  const user = await findUser(db, userId)
  if (user === undefined) throw noSuchUser()
  return user
}

function noSuchUser(): Problem {
  return problem('NotFound', 'There is no such user')
}

function lastOperator(): Problem {
  return conflict('This is the last operator; make another user an operator first')
}
