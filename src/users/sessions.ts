import { type Columns, type Reader, sql, type Tx } from '../database/database.ts'
import { isReadOnly } from '../database/errors.ts'
import { newId } from '../kernel/ids.ts'
import { generateSecret, hasChecksum, hashOf, secretPattern } from '../kernel/secrets.ts'
import type { Mode } from '../partners/partners.ts'
import type { User } from './users.ts'

export const sessionLimits = {
  // A clerk who is called away for a meeting signs in again.
  idleMs: 30 * 60_000,
  // A working day. A database constraint has the same maximum.
  absoluteMs: 12 * 3_600_000,
  // Enough for the browsers and machines of one person. Another session ends the oldest.
  perUserMax: 20,
  // How precisely the last use is known, so that not every request writes.
  usePrecisionMs: 60_000,
}

/** How a user signed in. */
export type SignInMethod = 'link' | 'password' | 'oidc'

/** @property lastUsedAt to the minute */
export type UserSession = Omit<Columns<'userSessions'>, 'userId' | 'hash'>

/** A user who is signed in. */
export type SignedIn = { user: User & { hasTotp: boolean }; session: UserSession }

const prefixes = { sandbox: 'mmc_test_', live: 'mmc_live_' } as const
const tokenPattern = new RegExp(`^mmc_(test|live)_${secretPattern}$`)

type SessionOptions = {
  userId: string
  mode: Mode
  method: SignInMethod
  address: string | null
  userAgent: string | undefined
  now: Date
}

/**
 * Creates a session with a new token. A token is never taken from a request, so a token that an
 * attacker knows never becomes valid for another person.
 * @returns the token, which is known only here
 */
export async function createSession(
  tx: Tx,
  { userId, mode, method, address, userAgent, now }: SessionOptions,
): Promise<{ session: UserSession; token: string }> {
  const token = generateSecret(prefixes[mode])
  const session = {
    id: newId('userSession', now),
    method,
    address,
    userAgent: userAgent?.slice(0, 200) ?? null,
    createdAt: now,
    lastUsedAt: now,
    expiresAt: new Date(now.getTime() + sessionLimits.absoluteMs),
  }
  await tx
    .insertInto('userSessions')
    .values({ ...session, userId, hash: hashOf(token) })
    .execute()
  await sql`
    delete from user_sessions
     where user_id = ${userId}
       and id <= (select id from user_sessions where user_id = ${userId}
                   order by id desc offset ${sessionLimits.perUserMax} limit 1)`.execute(tx)
  return { session, token }
}

/** When a session ends unless it is used. */
export function idleExpiryOf({ lastUsedAt, expiresAt }: UserSession): Date {
  return new Date(Math.min(lastUsedAt.getTime() + sessionLimits.idleMs, expiresAt.getTime()))
}

/**
 * Finds the session of a token, and records its use. The result is never cached, so that a session ends at once.
 * @returns undefined if the token is malformed, unknown or of the other mode, or the session or the user has ended
 */
export async function findSession(
  db: Reader,
  { token, mode, now }: { token: string; mode: Mode; now: Date },
): Promise<SignedIn | undefined> {
  if (!tokenPattern.test(token) || !token.startsWith(prefixes[mode]) || !hasChecksum(token)) return undefined
  const { rows } = await sql<UserSession & { userId: string; email: string; name: string } & Flags>`
    select s.id, s.method, s.address, s.user_agent, s.created_at, s.last_used_at, s.expires_at,
           u.id as user_id, u.email, u.name, u.is_operator, u.totp_confirmed_at is not null as has_totp
      from user_sessions s join users u on u.id = s.user_id
     where s.hash = ${hashOf(token)} and u.disabled_at is null
       and s.expires_at > ${now} and s.last_used_at > ${new Date(now.getTime() - sessionLimits.idleMs)}`.execute(db)
  const [row] = rows
  if (row === undefined) return undefined
  const { userId, email, name, isOperator, hasTotp, ...session } = row
  const user = { id: userId, email, name, isOperator, hasTotp }
  if (now.getTime() - session.lastUsedAt.getTime() < sessionLimits.usePrecisionMs) return { user, session }
  await sql`
    update user_sessions set last_used_at = greatest(last_used_at, ${now}) where id = ${session.id}`
    .execute(db)
    // A read-only database must still answer reads.
    .catch(error => {
      if (!isReadOnly(error)) throw error
    })
  return { user, session: { ...session, lastUsedAt: now } }
}

type Flags = { isOperator: boolean; hasTotp: boolean }

/** Ends one session of a user. Returns whether there was one. */
export async function endSession(
  tx: Reader,
  { userId, sessionId }: { userId: string; sessionId: string },
): Promise<boolean> {
  const { rows } = await sql`
    delete from user_sessions where user_id = ${userId} and id = ${sessionId} returning 1`.execute(tx)
  return rows.length > 0
}

/** Ends all sessions of a user, or all but one. Returns the number of ended sessions. */
export async function endSessions(
  tx: Reader,
  { userId, exceptSessionId = '' }: { userId: string; exceptSessionId?: string | undefined },
): Promise<number> {
  const { rows } = await sql`
    delete from user_sessions where user_id = ${userId} and id <> ${exceptSessionId} returning 1`.execute(tx)
  return rows.length
}

/** Lists the sessions of a user that have not ended, newest first: as many as a sign-in leaves. */
export async function listSessions(db: Reader, { userId, now }: { userId: string; now: Date }): Promise<UserSession[]> {
  const { rows } = await sql<UserSession>`
    select id, method, address, user_agent, created_at, last_used_at, expires_at from user_sessions
     where user_id = ${userId} and expires_at > ${now}
       and last_used_at > ${new Date(now.getTime() - sessionLimits.idleMs)}
     order by id desc limit ${sessionLimits.perUserMax}`.execute(db)
  return rows
}
