import { randomBytes } from 'node:crypto'
import * as auditLog from '../audit-log/audit-log.ts'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { problem } from '../errors.ts'
import type { Mode } from '../partners/partners.ts'
import { hashOf } from '../secrets.ts'
import { hashPassword, isOutdated, isPassword } from './passwords.ts'
import { createSession, type SignedIn, type SignInMethod } from './sessions.ts'
import { admitAttempt, type Counter, counterOf, forgive } from './throttle.ts'
import { acceptCode, type TotpKeys } from './totp.ts'
import { canonicalEmail, findUser } from './users.ts'

/** Where a request of a browser comes from. */
export type Origin = {
  address: string
  /** The address, or for IPv6 the subscriber's network. */
  network: string
  requestId: string
  userAgent: string | undefined
  /** The token of a browser in which a user has signed in before. */
  browserToken: string | undefined
}

/** A new session. `browserToken` marks the browser as known. */
export type NewSession = { signedIn: SignedIn; token: string; browserToken: string }

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
  {
    email,
    password,
    code,
    from,
    mode,
    totpKeys,
    now,
  }: {
    email: string
    password: string
    code: string | undefined
    from: Origin
    mode: Mode
    totpKeys: TotpKeys
    now: Date
  },
): Promise<NewSession> {
  const { id: userId, passwordHash } = (await findAccount(db, email)) ?? { id: noUser, passwordHash: null }
  const isKnown = await isKnownBrowser(db, { userId, from })
  const counters = isKnown ? [browserCounter(userId, from)] : strangerCounters(email, from)
  await admitAttempt(db, counters, now)
  if (!(await isPassword(password, passwordHash))) {
    await recordFailure(db, { userId, reason: 'password', from, now })
    throw refused()
  }
  const rehashed = passwordHash !== null && isOutdated(passwordHash) ? await hashPassword(password) : undefined
  const outcome = await db.transaction().execute(async tx => {
    // Locks the user, so that a concurrent change of the password or of the roles ends this session too, or is seen here.
    const { rows } = await sql`
      select from users where id = ${userId} and password_hash = ${passwordHash} and disabled_at is null for update`.execute(
      tx,
    )
    if (rows.length === 0) return 'refused'
    const second = await acceptCode(tx, { userId, code, keys: totpKeys, now })
    if (second === 'missing') {
      await forgive(tx, { counters, forgotten: [] })
      return 'code-missing'
    }
    if (second === 'wrong') return 'code-wrong'
    if (rehashed !== undefined) await sql`update users set password_hash = ${rehashed} where id = ${userId}`.execute(tx)
    // The failures of this person. Those of the network and of strangers stay, and only time clears them.
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
  const browserToken = await rememberBrowser(tx, { userId, from, now })
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

/** Stands for the user of an address that names none. */
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
      // Not the user: the one who failed is not known.
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

// A person has a handful of browsers.
const browsersMax = 20
/** How long a browser stays known without a sign-in. */
const browserLifeMs = 90 * 86_400_000

async function isKnownBrowser(db: Reader, { userId, from }: { userId: string; from: Origin }): Promise<boolean> {
  if (from.browserToken === undefined) return false
  const row = await db
    .selectFrom('userBrowsers')
    .select('userId')
    .where('hash', '=', browserHash(userId, from.browserToken))
    .where('userId', '=', userId)
    .executeTakeFirst()
  return row !== undefined
}

async function rememberBrowser(
  tx: Tx,
  { userId, from, now }: { userId: string; from: Origin; now: Date },
): Promise<string> {
  const isKnown = await isKnownBrowser(tx, { userId, from })
  // Several people may share a browser, and its token.
  const token = from.browserToken ?? randomBytes(32).toString('base64url')
  const hash = browserHash(userId, token)
  if (isKnown) {
    await sql`update user_browsers set last_used_at = ${now} where hash = ${hash}`.execute(tx)
    return token
  }
  await tx.insertInto('userBrowsers').values({ hash, userId, lastUsedAt: now }).execute()
  await sql`
    delete from user_browsers where user_id = ${userId} and hash in (
      select hash from user_browsers where user_id = ${userId} order by last_used_at desc, hash offset ${browsersMax})`.execute(
    tx,
  )
  return token
}

function browserHash(userId: string, token: string): Buffer {
  return hashOf(`${userId} ${token}`)
}

function refused() {
  return problem('SignInRefused', 'The e-mail address or the password is wrong')
}

/** Deletes browsers that have gone unused for long, at most `countMax`. @returns how many there were */
export async function forgetBrowsers(db: Reader, { now, countMax }: { now: Date; countMax: number }): Promise<number> {
  const { rows } = await sql`
    delete from user_browsers b
     using (select hash from user_browsers where last_used_at <= ${new Date(now.getTime() - browserLifeMs)}
             order by last_used_at limit ${countMax}) old
     where b.hash = old.hash
    returning 1`.execute(db)
  return rows.length
}
