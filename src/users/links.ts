import * as auditLog from '../audit-log/audit-log.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { generateSecret, hasChecksum, hashOf } from '../kernel/secrets.ts'

/** The purpose of a one-time link. */
export type LinkPurpose = 'sign_in' | 'password' | 'set_up'

const prefix = 'mml_'

/**
 * Creates a one-time link.
 * @param userId null only for a set-up link, which makes the first operator
 * @returns the token that goes into the fragment of the link; only its SHA-256 is stored
 */
export async function createLink(
  tx: Tx,
  { purpose, userId, lifeMs, now }: { purpose: LinkPurpose; userId: string | null; lifeMs: number; now: Date },
): Promise<string> {
  const token = generateSecret(prefix)
  await tx
    .insertInto('userLinks')
    .values({
      hash: hashOf(token),
      purpose,
      userId,
      createdAt: now,
      expiresAt: new Date(now.getTime() + lifeMs),
    })
    .execute()
  return token
}

// Long enough to send the link and to use it.
const passwordLinkLifeMs = 24 * 3_600_000

/** Creates a one-time link with which a user chooses a new password, and records it. @returns its token */
export async function createPasswordLink(
  tx: Tx,
  { userId, actor, now }: { userId: string; actor: auditLog.Actor; now: Date },
): Promise<{ token: string; expiresAt: Date }> {
  const token = await createLink(tx, { purpose: 'password', userId, lifeMs: passwordLinkLifeMs, now })
  const change = { action: 'user.link', resourceId: userId, details: { purpose: 'password' } } as const
  await auditLog.record(tx, { partnerId: null, actor, change, now })
  return { token, expiresAt: new Date(now.getTime() + passwordLinkLifeMs) }
}

/** The address of a one-time link. Browsers never send the fragment to a server, so that no proxy logs the token. */
export function linkTo(page: 'set-up' | 'sign-in' | 'invitation' | 'password', token: string, address: string): string {
  return `${address.replace(/\/$/, '')}/console/${page}#${token}`
}

/** Whether a link would work, without using it. Checked first, because hashing a password for strangers would cost too much. */
export async function isLink(
  db: Reader,
  { token, purpose, now }: { token: string; purpose: LinkPurpose; now: Date },
): Promise<boolean> {
  if (!token.startsWith(prefix) || !hasChecksum(token)) return false
  const { rows } = await sql`
    select from user_links where hash = ${hashOf(token)} and purpose = ${purpose} and expires_at > ${now}`.execute(db)
  return rows.length > 0
}

/**
 * Uses up a link: of two concurrent uses, only one succeeds.
 * @returns the user of the link; undefined if the link is unknown, used, expired or for another purpose
 */
export async function useLink(
  tx: Tx,
  { token, purpose, now }: { token: string; purpose: LinkPurpose; now: Date },
): Promise<{ userId: string | null } | undefined> {
  if (!token.startsWith(prefix) || !hasChecksum(token)) return undefined
  const { rows } = await sql<{ userId: string | null; isValid: boolean }>`
    delete from user_links where hash = ${hashOf(token)} and purpose = ${purpose}
    returning user_id, expires_at > ${now} as is_valid`.execute(tx)
  const [link] = rows
  return link?.isValid ? { userId: link.userId } : undefined
}

/** Ends all links for a purpose, of all users. */
export async function deleteLinks(tx: Tx, purpose: LinkPurpose): Promise<void> {
  await tx.deleteFrom('userLinks').where('purpose', '=', purpose).execute()
}
