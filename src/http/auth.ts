import type { Db } from '../db.ts'
import { type Problem, problem } from '../errors.ts'
import { findHolder, type KeyHolder, modeOf } from '../partners/api-keys.ts'
import type { Mode } from '../partners/partners.ts'
import type { Clock } from '../time.ts'

// A revoked key, a suspended partner and a changed setting take effect within a second.
const cacheMs = 500
// Keys in use at once; beyond it the cache starts anew rather than grow with whatever strangers send.
const cachedMax = 10_000

type Entry = { holder: Promise<KeyHolder | undefined>; readAtMs: number }

/**
 * Tells who is calling by the `x-api-key` header, from a short-lived memory of what the database said.
 * @param mode of this server: the other mode's keys are refused
 */
export function authenticator(
  db: Db,
  { mode, now }: { mode: Mode; now: Clock },
): (secret: unknown) => Promise<KeyHolder> {
  const cache = new Map<string, Entry>()

  return async secret => {
    if (typeof secret !== 'string' || secret === '') throw refused('The x-api-key header is missing')
    const keyMode = modeOf(secret)
    if (keyMode === undefined)
      throw refused('The x-api-key header holds no valid API key; check that it was copied whole')
    if (keyMode !== mode)
      throw refused(`This is a ${keyMode} key and this is the ${mode} server; use a ${mode} key here`)
    const holder = await read(secret)
    if (holder === undefined || (holder.expiresAt !== null && holder.expiresAt <= now())) {
      throw refused('The API key is unknown, revoked or expired; use a current one')
    }
    return holder
  }

  async function read(secret: string): Promise<KeyHolder | undefined> {
    const readAtMs = now().getTime()
    const cached = cache.get(secret)
    if (cached !== undefined && Math.abs(readAtMs - cached.readAtMs) < cacheMs) return await cached.holder
    if (cache.size >= cachedMax) cache.clear()
    const holder = findHolder(db, { secret, mode, now: now() })
    cache.set(secret, { holder, readAtMs })
    // A failed look-up must not be remembered as the answer.
    holder.catch(() => cache.delete(secret))
    return await holder
  }
}

function refused(message: string): Problem {
  return problem('ApiKeyRefused', message, { path: 'x-api-key' })
}
