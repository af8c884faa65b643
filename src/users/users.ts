import * as auditLog from '../audit-log/audit-log.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'
import type { Role } from './roles.ts'

/** A person who signs in to the console. */
export type User = {
  id: string
  email: string
  name: string
  /** May do everything, for every partner. */
  isOperator: boolean
}

/**
 * The form of an e-mail address, and its greatest length. Without Unicode's control and format characters, which would make one
 * address look like another.
 */
export const emailPattern = '^[^\\s@\\p{C}]+@[^\\s@\\p{C}]+$'
export const emailLengthMax = 254

/**
 * The form in which an e-mail address is stored and looked up. Only ASCII letters are folded: by Unicode's rules the Kelvin sign
 * becomes a k, and the address of one person would find the user of another.
 */
export function canonicalEmail(email: string): string {
  return email.trim().replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

type NewUser = { email: string; name: string; isOperator: boolean; passwordHash?: string | null; now: Date }

/**
 * Creates a user without roles.
 * @param passwordHash null for a user who does not sign in with a password
 * @throws a unique violation if a user already has the address
 */
export async function createUser(
  tx: Tx,
  { email, name, isOperator, passwordHash = null, now }: NewUser,
): Promise<User> {
  const user = { id: newId('user', now), email: canonicalEmail(email), name, isOperator }
  await tx
    .insertInto('users')
    .values({ ...user, passwordHash, createdAt: now })
    .execute()
  return user
}

/** A user who is not disabled. */
export async function findUser(db: Reader, userId: string): Promise<(User & { hasTotp: boolean }) | undefined> {
  const row = await db
    .selectFrom('users')
    .select(['id', 'email', 'name', 'isOperator', 'totpConfirmedAt'])
    .where('id', '=', userId)
    .where('disabledAt', 'is', null)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { totpConfirmedAt, ...user } = row
  return { ...user, hasTotp: totpConfirmedAt !== null }
}

/** The user with this address, unless it is disabled. */
export async function findByEmail(db: Reader, email: string): Promise<User | undefined> {
  return await db
    .selectFrom('users')
    .select(['id', 'email', 'name', 'isOperator'])
    .where('email', '=', canonicalEmail(email))
    .where('disabledAt', 'is', null)
    .executeTakeFirst()
}

/** Gives a user roles with a partner, in addition to existing ones. */
export async function addRoles(
  tx: Tx,
  { userId, partnerId, roles }: { userId: string; partnerId: string; roles: readonly Role[] },
): Promise<void> {
  if (roles.length === 0) return
  await tx
    .insertInto('userRoles')
    .values(roles.map(role => ({ partnerId, userId, role })))
    .onConflict(conflict => conflict.doNothing())
    .execute()
}

/** The roles of a user with one partner. */
export async function rolesWith(
  db: Reader,
  { userId, partnerId }: { userId: string; partnerId: string },
): Promise<Role[]> {
  const rows = await db
    .selectFrom('userRoles')
    .select('role')
    .where('partnerId', '=', partnerId)
    .where('userId', '=', userId)
    .orderBy('role')
    .execute()
  return rows.map(({ role }) => role)
}

/** The roles of a user, by the id of the partner. */
export async function rolesByPartner(db: Reader, userId: string): Promise<Map<string, Role[]>> {
  const rows = await db
    .selectFrom('userRoles')
    .select(['partnerId', 'role'])
    .where('userId', '=', userId)
    .orderBy('partnerId')
    .orderBy('role')
    .execute()
  const byPartner = new Map<string, Role[]>()
  for (const { partnerId, role } of rows) byPartner.set(partnerId, [...(byPartner.get(partnerId) ?? []), role])
  return byPartner
}

/** The ids of the users who have a role with a partner. */
export async function usersOf(db: Reader, partnerId: string): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom('userRoles').select('userId').distinct().where('partnerId', '=', partnerId).execute()
  return new Set(rows.map(({ userId }) => userId))
}

/** Who changed a resource, as the console names them. */
export type Author = {
  resourceId: string
  at: Date
  kind: auditLog.Entry['actorKind']
  /** Null for a caller without a name: an API key, a command, the worker, and, for users of a partner, an operator. */
  name: string | null
}

type AuthorQuery = { partnerId: string; resourceIds: string[]; actions: auditLog.Action[]; seesOperators: boolean }

/**
 * Finds who did something to resources of a partner, from the audit log.
 * @param seesOperators whether the reader may know which operator it was
 */
export async function listAuthors(
  db: Reader,
  { partnerId, resourceIds, actions, seesOperators }: AuthorQuery,
): Promise<Author[]> {
  const filter = { partnerId, resourceIds, actions }
  const entries = await auditLog.list(db, { filter, take: resourceIds.length })
  const userIds = entries.flatMap(({ actorKind, actor }) => (actorKind === 'user' ? [actor] : []))
  const users =
    userIds.length === 0
      ? []
      : await db.selectFrom('users').select(['id', 'name', 'isOperator']).where('id', 'in', userIds).execute()
  const names = new Map(users.map(({ id, name, isOperator }) => [id, isOperator && !seesOperators ? null : name]))
  return entries.map(({ resourceId, at, actorKind, actor }) => ({
    resourceId,
    at,
    kind: actorKind,
    name: names.get(actor) ?? null,
  }))
}

/** The operators who can sign in. */
export async function countOperators(db: Reader): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from users where is_operator and disabled_at is null`.execute(db)
  return rows[0]?.count ?? 0
}
