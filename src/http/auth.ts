import type { Db } from '../database/database.ts'
import { type Problem, problem } from '../errors.ts'
import { findHolder, type KeyHolder, modeOf } from '../partners/api-keys.ts'
import type { Mode } from '../partners/partners.ts'
import type { Clock } from '../time.ts'
import { networkOf, RateLimiter } from './rate-limit.ts'

const limits = {
  // A revoked key, a suspended partner and a changed setting take effect within a second.
  cacheMs: 500,
  // Keys in use at once; beyond it the cache starts anew rather than grow.
  cachedMax: 10_000,
  // Unknown keys that are refused again without a look-up. A flood of them must not push out the keys in use.
  refusedMax: 1_000,
  // Look-ups of unknown keys from one address. A client that has lost its key repeats one, which is looked up twice a second;
  // only a client that makes keys up gets here. What is left of the burst is also how many look-ups of keys that are not in use
  // run at once for one address: the others wait for one of them to end, so that many connections get no more than one.
  unknownKeys: { perSecond: 5, burst: 20 },
}

type Entry = { holder: Promise<KeyHolder | undefined>; readAtMs: number }

/** The look-ups of one address that run, of keys that are not in use; `ended` resolves when the next of them ends. */
type Running = { count: number; ended: PromiseWithResolvers<void> }

/**
 * Tells who is calling by the `x-api-key` header, from a short-lived memory of what the database said. An address that sends
 * too many unknown keys is refused before the database is asked.
 * @param mode of this server: the other mode's keys are refused
 */
export function authenticator(
  db: Db,
  { mode, now }: { mode: Mode; now: Clock },
): (secret: unknown, addressOf: () => string) => Promise<KeyHolder> {
  const cache = new Map<string, Entry>()
  const refusedAtMs = new Map<string, number>()
  const limiter = new RateLimiter()
  const runningOf = new Map<string, Running>()

  return async (secret, addressOf) => {
    if (typeof secret !== 'string' || secret === '') throw refused('The x-api-key header is missing')
    const keyMode = modeOf(secret)
    if (keyMode === undefined)
      throw refused('The x-api-key header holds no valid API key; check that it was copied whole')
    if (keyMode !== mode)
      throw refused(`This is a ${keyMode} key and this is the ${mode} server; use a ${mode} key here`)
    const holder = await read(secret, addressOf)
    if (holder === undefined || (holder.expiresAt !== null && holder.expiresAt <= now())) {
      throw refused('The API key is unknown, revoked or expired; use a current one')
    }
    return holder
  }

  async function read(secret: string, addressOf: () => string): Promise<KeyHolder | undefined> {
    const readAtMs = now().getTime()
    const isRecent = (ms: number) => Math.abs(readAtMs - ms) < limits.cacheMs
    const cached = cache.get(secret)
    if (cached !== undefined && isRecent(cached.readAtMs)) return await cached.holder
    const refusedBefore = refusedAtMs.get(secret)
    if (refusedBefore !== undefined && isRecent(refusedBefore)) return undefined
    // A key in use is let through whatever else comes from its address, which may be that of a proxy.
    if (cached !== undefined) return await lookUp(secret, { readAtMs, cached, addressOf })
    const network = networkOf(addressOf())
    const left = unknownKeysLeft(network)
    const running = runningOf.get(network) ?? { count: 0, ended: Promise.withResolvers() }
    if (running.count >= left) {
      await running.ended.promise
      return await read(secret, addressOf)
    }
    running.count += 1
    runningOf.set(network, running)
    try {
      return await lookUp(secret, { readAtMs, addressOf })
    } finally {
      running.count -= 1
      if (running.count === 0) runningOf.delete(network)
      running.ended.resolve()
      running.ended = Promise.withResolvers()
    }
  }

  async function lookUp(
    secret: string,
    { readAtMs, cached, addressOf }: { readAtMs: number; cached?: Entry; addressOf: () => string },
  ): Promise<KeyHolder | undefined> {
    if (cache.size >= limits.cachedMax) cache.clear()
    const lookup = { holder: findHolder(db, { secret, mode, now: now() }), readAtMs }
    cache.set(secret, lookup)
    try {
      const holder = await lookup.holder
      if (holder === undefined) {
        cache.delete(secret)
        if (refusedAtMs.size >= limits.refusedMax) refusedAtMs.clear()
        refusedAtMs.set(secret, readAtMs)
        limiter.take(networkOf(addressOf()), limits.unknownKeys, now())
      }
      return holder
    } catch (error) {
      // A failed look-up must not be remembered as the answer.
      if (cached === undefined) cache.delete(secret)
      else cache.set(secret, cached)
      throw error
    }
  }

  /** @throws Problem `RateLimitExceeded` when none is left */
  function unknownKeysLeft(network: string): number {
    const { allowed, remaining, retryAfterSeconds } = limiter.peek(network, limits.unknownKeys, now())
    if (allowed) return remaining
    throw problem(
      'RateLimitExceeded',
      'Too many unknown API keys from this address; wait and try again',
      {},
      { 'retry-after': String(retryAfterSeconds) },
    )
  }
}

function refused(message: string): Problem {
  return problem('ApiKeyRefused', message, { path: 'x-api-key' })
}
