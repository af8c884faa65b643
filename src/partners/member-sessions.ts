import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'
import { generateSecret, hasChecksum, hashOf, secretPattern } from '../kernel/secrets.ts'
import { type Mode, type Partner, partnerColumnList } from './partners.ts'

export const sessionLimits = {
  // Long enough to decide on a withdrawal. A database constraint has the same maximum.
  secondsMax: 900,
  // For a page that is reloaded often. The oldest sessions end, so the member is never locked out.
  perMemberMax: 10,
  // How long an expired session is kept: only its row has the page's origin, without which the page cannot read the refusal.
  keptMs: 3_600_000,
}

/** What a session may do: only read, or also withdraw. */
export const sessionScopes = ['read', 'withdraw'] as const
export type SessionScope = (typeof sessionScopes)[number]

/** @property origin the web page that may use it; null for the hosted page */
export type MemberSession = {
  id: string
  memberId: string
  scope: SessionScope
  origin: string | null
  expiresAt: Date
}

const prefixes = { sandbox: 'mms_test_', live: 'mms_live_' } as const
const tokenPattern = new RegExp(`^mms_(test|live)_([0-9a-z]{26})${secretPattern}$`)

type NewSession = { partnerId: string; keyId: string; mode: Mode; seconds: number; now: Date } & Pick<
  MemberSession,
  'memberId' | 'scope' | 'origin'
>

/**
 * Creates a session, and ends the member's oldest sessions beyond `perMemberMax`. The caller has locked the member.
 * @param now by the real clock, even if the partner's clock is ahead
 * @returns the token, which is shown only here
 */
export async function createSession(
  tx: Tx,
  { partnerId, keyId, mode, seconds, now, ...given }: NewSession,
): Promise<{ session: MemberSession; token: string }> {
  const token = generateSecret(prefixes[mode] + partnerId.slice(partnerId.indexOf('_') + 1))
  const expiresAt = new Date(now.getTime() + seconds * 1_000)
  const session = { ...given, id: newId('memberSession', now), expiresAt }
  await tx
    .insertInto('memberSessions')
    .values({ ...session, partnerId, keyId, hash: hashOf(token), createdAt: now })
    .execute()
  await sql`
    delete from member_sessions
     where partner_id = ${partnerId} and member_id = ${given.memberId}
       and id <= (select id from member_sessions
                   where partner_id = ${partnerId} and member_id = ${given.memberId} and expires_at > ${now}
                   order by id desc offset ${sessionLimits.perMemberMax} limit 1)`.execute(tx)
  return { session, token }
}

/**
 * Reads the partner's id from a well-formed token, so that the lookup names the partner. Returns undefined for any other text,
 * and for a token of the other mode.
 */
function partnerIdOf(token: string, mode: Mode): string | undefined {
  const [, , id] = tokenPattern.exec(token) ?? []
  if (id === undefined || !token.startsWith(prefixes[mode]) || !hasChecksum(token)) return undefined
  return `par_${id}`
}

/**
 * The holder of a session.
 * @property hasEnded whether the session is over: it or its key has expired, the key was revoked, or the member was offboarded
 * @property clockOffsetMs how far the partner's clock is ahead, on a sandbox
 */
export type SessionHolder = {
  partner: Partner
  keyId: string
  session: MemberSession
  hasEnded: boolean
  clockOffsetMs: number
}

/**
 * Finds the session of a token. The result is never cached, so that a session ends at once.
 * @param now by the real clock
 * @returns undefined if the token is not well-formed or unknown
 */
export async function findSession(
  db: Db,
  { token, mode, now }: { token: string; mode: Mode; now: Date },
): Promise<SessionHolder | undefined> {
  const partnerId = partnerIdOf(token, mode)
  if (partnerId === undefined) return undefined
  const { rows } = await sql<
    Partner & {
      sessionId: string
      keyId: string
      memberId: string
      scope: SessionScope
      origin: string | null
      expiresAt: Date
      hasLostItsHolder: boolean
      keyExpiresAt: Date | null
      offsetMs: bigint | null
    }
  >`
    select ${partnerColumnList},
           s.id as session_id, s.key_id, s.member_id, s.scope, s.origin, s.expires_at,
           k.revoked_at is not null or m.status = 'inactive' as has_lost_its_holder, k.expires_at as key_expires_at,
           c.offset_ms
      from member_sessions s
      join partners p on p.id = s.partner_id
      join api_keys k on k.partner_id = s.partner_id and k.id = s.key_id
      join members m on m.partner_id = s.partner_id and m.id = s.member_id
      left join sandbox_clocks c on c.partner_id = s.partner_id
     where s.partner_id = ${partnerId} and s.hash = ${hashOf(token)}`.execute(db)
  const [row] = rows
  if (row === undefined) return undefined
  const { sessionId, keyId, memberId, scope, origin, expiresAt, ...left } = row
  const { hasLostItsHolder, keyExpiresAt, offsetMs, ...partner } = left
  const clockOffsetMs = Number(offsetMs ?? 0)
  // Keys expire by the partner's clock.
  const keyHasExpired = keyExpiresAt !== null && keyExpiresAt.getTime() <= now.getTime() + clockOffsetMs
  return {
    partner,
    keyId,
    session: { id: sessionId, memberId, scope, origin, expiresAt },
    hasEnded: hasLostItsHolder || keyHasExpired || expiresAt <= now,
    clockOffsetMs,
  }
}

type OfMember = { partnerId: string; memberId: string }

/** The sessions of a member that are not forgotten yet, newest first. */
export async function listSessions(
  db: Reader,
  { partnerId, memberId }: OfMember,
): Promise<{ id: string; scope: SessionScope; origin: string | null; createdAt: Date; expiresAt: Date }[]> {
  const { rows } = await sql<{
    id: string
    scope: SessionScope
    origin: string | null
    createdAt: Date
    expiresAt: Date
  }>`
    select id, scope, origin, created_at, expires_at from member_sessions
     where partner_id = ${partnerId} and member_id = ${memberId} order by id desc`.execute(db)
  return rows
}

/** Deletes all sessions of a member. */
export async function deleteSessionsOf(tx: Tx, { partnerId, memberId }: OfMember): Promise<void> {
  await sql`delete from member_sessions where partner_id = ${partnerId} and member_id = ${memberId}`.execute(tx)
}

/**
 * Deletes at most `countMax` sessions that expired some time ago.
 * @returns the number of deleted sessions
 */
export async function forgetSessions(db: Reader, { now, countMax }: { now: Date; countMax: number }): Promise<number> {
  const { rows } = await sql`
    delete from member_sessions s
     using (select partner_id, id from member_sessions
             where expires_at <= ${new Date(now.getTime() - sessionLimits.keptMs)}
             order by expires_at limit ${countMax}) old
     where s.partner_id = old.partner_id and s.id = old.id
    returning 1`.execute(db)
  return rows.length
}
