import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { hashOf } from '../kernel/secrets.ts'

// A person has a handful of browsers.
const browsersMax = 20
/** How long a browser stays known without a sign-in. */
export const browserLifeMs = 90 * 86_400_000

/** Whether `rememberBrowser` has signed the token. The browser may have been forgotten since. */
export function isBrowserToken(token: string, key: Buffer): boolean {
  const [, random = '', signature = ''] = /^([\w-]{43})([\w-]{22})$/.exec(token) ?? []
  return timingSafeEqual(hashOf(signature), hashOf(signatureOf(random, key)))
}

/** Whether a user has signed in within 90 days in the browser that has the token. */
export async function isBrowserOfAnyone(db: Reader, { token, now }: { token: string; now: Date }): Promise<boolean> {
  const { rows } = await sql`
    select from user_browsers b join users u on u.id = b.user_id
     where b.token_hash = ${hashOf(token)} and b.last_used_at > ${knownSince(now)} and u.disabled_at is null
     limit 1`.execute(db)
  return rows.length > 0
}

/** Whether the user has signed in within 90 days in the browser that has the token. */
export async function isBrowserOf(
  db: Reader,
  { userId, token, now }: { userId: string; token: string | undefined; now: Date },
): Promise<boolean> {
  if (token === undefined) return false
  const row = await db
    .selectFrom('userBrowsers')
    .select('userId')
    .where('tokenHash', '=', hashOf(token))
    .where('userId', '=', userId)
    .where('lastUsedAt', '>', knownSince(now))
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Records the browser of a sign-in as known.
 * @param token the token that the browser has sent; kept if it is signed, because several people may share a browser
 * @returns the token that the browser is to keep
 */
export async function rememberBrowser(
  tx: Tx,
  { userId, token, key, now }: { userId: string; token: string | undefined; key: Buffer; now: Date },
): Promise<string> {
  const kept = token !== undefined && isBrowserToken(token, key) ? token : newToken(key)
  await sql`
    insert into user_browsers (token_hash, user_id, last_used_at) values (${hashOf(kept)}, ${userId}, ${now})
    on conflict (token_hash, user_id) do update set last_used_at = excluded.last_used_at`.execute(tx)
  await sql`
    delete from user_browsers where user_id = ${userId} and token_hash in (
      select token_hash from user_browsers where user_id = ${userId}
       order by last_used_at desc, token_hash offset ${browsersMax})`.execute(tx)
  return kept
}

/** Deletes at most `countMax` browsers that have not been used for long. @returns the number of deleted browsers */
export async function forgetBrowsers(db: Reader, { now, countMax }: { now: Date; countMax: number }): Promise<number> {
  const { rows } = await sql`
    delete from user_browsers b
     using (select token_hash, user_id from user_browsers where last_used_at <= ${knownSince(now)}
             order by last_used_at limit ${countMax}) old
     where b.token_hash = old.token_hash and b.user_id = old.user_id
    returning 1`.execute(db)
  return rows.length
}

function newToken(key: Buffer): string {
  const random = randomBytes(32).toString('base64url')
  return random + signatureOf(random, key)
}

function signatureOf(random: string, key: Buffer): string {
  // 128 bits.
  return createHmac('sha256', key).update(random).digest().subarray(0, 16).toString('base64url')
}

function knownSince(now: Date): Date {
  return new Date(now.getTime() - browserLifeMs)
}
