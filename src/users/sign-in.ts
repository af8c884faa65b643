import * as auditLog from '../audit-log/audit-log.ts'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import type { Mode } from '../partners/partners.ts'
import { isBrowserOf, rememberBrowser } from './browsers.ts'
import { hashPassword, isOutdated, isPassword } from './passwords.ts'
import { createSession, type SignedIn, type SignInMethod } from './sessions.ts'
import { admitAttempt, type Counter, counterOf, forgive } from './throttle.ts'
import { acceptCode } from './totp.ts'
import { canonicalEmail, findUser } from './users.ts'

/** The origin of a browser's request. */
export type Origin = {
  address: string
  /** The address, or for IPv6 the subscriber's network. */
  network: string
  requestId: string
  userAgent: string | undefined
  /** The token of a browser in which a user has signed in before. */
  browserToken: string | undefined
  /** Signs such tokens. */
  browserKey: Buffer
}

/** A new session. `browserToken` marks the browser as known. */
export type NewSession = { signedIn: SignedIn; token: string; browserToken: string }

type PasswordSignIn = {
  email: string
  password: string
  code: string | undefined
  from: Origin
  mode: Mode
  now: Date
}

/**
 * Signs a user in by e-mail address and password, and by a code if the user has a second factor.
 *
 * Failed attempts are delayed by network and by account, but not in a browser in which the user has signed in before: an
 * attacker who fails on purpose must not lock a person out. An address without a user is treated like a wrong password, with
 * the same work.
 * @throws Problem `SignInRefused`, `TotpRequired`, `RateLimitExceeded`, `ServiceUnavailable`
 */
export async function signInByPassword(
  db: Db,
  { email, password, code, from, mode, now }: PasswordSignIn,
): Promise<NewSession> {
  const { id: userId, passwordHash } = (await findAccount(db, email)) ?? { id: noUser, passwordHash: null }
  const isKnown = await isBrowserOf(db, { userId, token: from.browserToken, now })
  const counters = isKnown ? [browserCounter(userId, from)] : strangerCounters(email, from)
  await admitAttempt(db, counters, now)
  if (!(await isPassword(password, passwordHash))) {
    await recordFailure(db, { userId, reason: 'password', from, now })
    throw refused()
  }
  const rehashed = passwordHash !== null && isOutdated(passwordHash) ? await hashPassword(password) : undefined
  const outcome = await db.transaction().execute(async tx => {
    // Locks the user, so that a concurrent change of the password or of the roles either ends this session or is seen here.
    const { rows } = await sql`
      select from users
       where id = ${userId} and password_hash = ${passwordHash} and disabled_at is null for update`.execute(tx)
    if (rows.length === 0) return 'refused'
    const second = await acceptCode(tx, { userId, code, now })
    if (second === 'missing') {
      await forgive(tx, { counters, forgotten: [] })
      return 'code-missing'
    }
    if (second === 'wrong') return 'code-wrong'
    if (rehashed !== undefined) await sql`update users set password_hash = ${rehashed} where id = ${userId}`.execute(tx)
    // Clears the failures of this person. Only time clears those of the network and of strangers.
    await forgive(tx, { counters, forgotten: counters.slice(0, 1) })
    return await openSession(tx, { userId, method: 'password', mode, from, now })
  })
  switch (outcome) {
    case 'refused':
      throw refused()
    case 'code-missing':
      throw problem('TotpRequired', 'Enter the code from your authenticator app, or a recovery code')
    case 'code-wrong':
      await recordFailure(db, { userId, reason: 'code', from, now })
      throw problem('TotpRequired', 'The code is wrong, has expired or was used; wait for the next one')
    default:
      return outcome
  }
}

/**
 * Opens a session for a user who has proved who they are, and records it. Locks the user first.
 * @throws Problem `SignInRefused` if the user is disabled
 */
export async function openSession(
  tx: Tx,
  { userId, method, mode, from, now }: { userId: string; method: SignInMethod; mode: Mode; from: Origin; now: Date },
): Promise<NewSession> {
  await sql`select from users where id = ${userId} for update`.execute(tx)
  const user = await findUser(tx, userId)
  if (user === undefined) throw refused()
  const { address, userAgent } = from
  const { session, token } = await createSession(tx, { userId, mode, method, address, userAgent, now })
  const browserToken = await rememberBrowser(tx, { userId, token: from.browserToken, key: from.browserKey, now })
  await auditLog.record(tx, {
    partnerId: null,
    actor: actorOfUser(userId, from),
    change: { action: 'user.sign_in', resourceId: userId, details: { method } },
    now,
  })
  return { signedIn: { user, session }, token, browserToken }
}

/**
 * Requires the password of a user who is signed in, before a change that a thief of the session must not make.
 * @returns the hash that it matches
 * @throws Problem `SignInRefused`, `RateLimitExceeded`
 */
export async function requirePassword(
  db: Db,
  { userId, password, from, now }: { userId: string; password: string; from: Origin; now: Date },
): Promise<string> {
  const counters = [counterOf('session', userId)]
  await admitAttempt(db, counters, now)
  const row = await db.selectFrom('users').select('passwordHash').where('id', '=', userId).executeTakeFirst()
  const passwordHash = row?.passwordHash ?? null
  if (!(await isPassword(password, passwordHash)) || passwordHash === null) {
    await recordFailure(db, { userId, reason: 'password', from, now })
    throw problem('SignInRefused', 'The password is wrong')
  }
  await forgive(db, { counters, forgotten: counters })
  return passwordHash
}

/** The author of what a user does, for the audit log. */
export function actorOfUser(userId: string, { address, requestId }: Origin): auditLog.Actor {
  return { kind: 'user', name: userId, address, requestId }
}

async function findAccount(
  db: Reader,
  email: string,
): Promise<{ id: string; passwordHash: string | null } | undefined> {
  return await db
    .selectFrom('users')
    .select(['id', 'passwordHash'])
    .where('email', '=', canonicalEmail(email))
    .where('disabledAt', 'is', null)
    .executeTakeFirst()
}

/** Takes the place of the user for an unknown address. */
const noUser = 'unknown'

// Rows are kept forever, and a flood of attempts must not fill the disk. The log has a line for every refused request.
const recordedPerMinuteMax = 60

/** Records a failed sign-in, unless there have been too many in the last minute. */
export async function recordFailure(
  db: Db,
  { userId, reason, from, now }: { userId: string; reason: 'password' | 'code' | 'identity'; from: Origin; now: Date },
): Promise<void> {
  const { address, requestId } = from
  const recent = await auditLog.countSince(db, {
    action: 'user.sign_in_failed',
    since: new Date(now.getTime() - 60_000),
    countMax: recordedPerMinuteMax,
  })
  if (recent >= recordedPerMinuteMax) return
  await db.transaction().execute(tx =>
    auditLog.record(tx, {
      partnerId: null,
      // The user is not the author: the person who failed is unknown.
      actor: { kind: 'worker', name: 'sign-in', address, requestId },
      change: { action: 'user.sign_in_failed', resourceId: userId, details: { reason } },
      now,
    }),
  )
}

function strangerCounters(email: string, { network }: Origin): Counter[] {
  const account = canonicalEmail(email)
  return [
    counterOf('accountAndNetwork', account, network),
    counterOf('network', network),
    counterOf('account', account),
  ]
}

function browserCounter(userId: string, { browserToken = '' }: Origin): Counter {
  return counterOf('browser', userId, browserToken)
}

function refused() {
  return problem('SignInRefused', 'The e-mail address or the password is wrong')
}
