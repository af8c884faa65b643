import type { Db } from '../../database/database.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import type { Clock } from '../../kernel/time.ts'
import { findHolder, type KeyHolder, modeOf } from '../../partners/api-keys.ts'
import { readOffsetMs } from '../../partners/clocks.ts'
import type { Mode } from '../../partners/partners.ts'
import { networkOf, RateLimiter, requireAllowed } from '../server/rate-limit.ts'

/** How long a process may use a cached key lookup. */
export const keyCacheMs = 500

const limits = {
  // A revoked key, a suspended partner and a changed setting take effect within a second.
  cacheMs: keyCacheMs,
  // Keys in use at once; beyond this the cache is emptied instead of growing.
  cachedMax: 10_000,
  // Unknown keys that are refused without another lookup. A flood of unknown keys must not evict the keys in use.
  refusedMax: 1_000,
  // Lookups of unknown keys from one address. A client with a wrong key repeats that key, which is looked up twice a second;
  // only a client that guesses keys reaches this limit. The remaining burst also limits the concurrent lookups of uncached keys
  // from one address. Further lookups wait, so that many connections cannot guess faster than one.
  unknownKeys: { perSecond: 5, burst: 20 },
}

/**
 * @property known what `holder` resolved to, so that a request need not wait for it
 * @property partnerId whose key it is, also while it is looked up again
 */
type CachedHolder = {
  holder: Promise<KeyHolder | undefined>
  known?: KeyHolder | undefined
  partnerId: string | undefined
  readAtMs: number
}

/** The running lookups of uncached keys from one address; `ended` resolves when the next lookup ends. */
type Running = { count: number; ended: PromiseWithResolvers<void> }

/**
 * Identifies the partner by the `x-api-key` header, with a short-lived cache. An address that sends too many unknown keys is
 * refused without a query.
 *
 * The offset of a partner's clock is not cached once the clock has moved: every process sees the next move at the next request.
 * Until the first move, a partner costs no query; the operation that moves the clock waits until all caches have expired.
 * @param mode the mode of this server; keys of the other mode are refused
 */
export function authenticator(
  db: Db,
  { mode, now }: { mode: Mode; now: Clock },
): {
  authenticate(secret: unknown, addressOf: () => string): Promise<KeyHolder>
  /** The holder of a key whose lookup is recent, and whose clock does not move. */
  cachedHolderOf(secret: unknown): KeyHolder | undefined
  lastKnownPartner(secret: unknown): string | undefined
  forget(partnerId: string): void
} {
  const cache = new Map<string, CachedHolder>()
  const refusedAtMs = new Map<string, number>()
  const limiter = new RateLimiter()
  const runningOf = new Map<string, Running>()

  return { authenticate, cachedHolderOf, lastKnownPartner, forget }

  function lastKnownPartner(secret: unknown): string | undefined {
    return typeof secret === 'string' ? cache.get(secret)?.partnerId : undefined
  }

  function cachedHolderOf(secret: unknown): KeyHolder | undefined {
    const cached = typeof secret === 'string' ? cache.get(secret) : undefined
    const known = cached !== undefined && isRecent(cached.readAtMs) ? cached.known : undefined
    return known === undefined || known.hasClock || isExpired(known, now()) ? undefined : known
  }

  async function authenticate(secret: unknown, addressOf: () => string): Promise<KeyHolder> {
    if (typeof secret !== 'string' || secret === '') throw refused('The x-api-key header is missing')
    const keyMode = modeOf(secret)
    if (keyMode === undefined)
      throw refused('The x-api-key header holds no valid API key; check that it was copied whole')
    if (keyMode !== mode)
      throw refused(`This is a ${keyMode} key and this is the ${mode} server; use a ${mode} key here`)
    const found = await read(secret, addressOf)
    const holder = found?.hasClock ? { ...found, clockOffsetMs: await readOffsetMs(db, found.partner.id) } : found
    if (holder === undefined || isExpired(holder, now())) {
      throw refused('The API key is unknown, revoked or expired; use a current one')
    }
    return holder
  }

  function forget(partnerId: string): void {
    for (const [secret, { partnerId: of }] of cache) if (of === partnerId) cache.delete(secret)
  }

  function isRecent(ms: number): boolean {
    return Math.abs(now().getTime() - ms) < limits.cacheMs
  }

  async function read(secret: string, addressOf: () => string): Promise<KeyHolder | undefined> {
    const readAtMs = now().getTime()
    const cached = cache.get(secret)
    if (cached !== undefined && isRecent(cached.readAtMs)) return await cached.holder
    const refusedBefore = refusedAtMs.get(secret)
    if (refusedBefore !== undefined && isRecent(refusedBefore)) return undefined
    // A key in use is accepted even if its address guesses keys: the address may be a proxy's.
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
    { readAtMs, cached, addressOf }: { readAtMs: number; cached?: CachedHolder; addressOf: () => string },
  ): Promise<KeyHolder | undefined> {
    if (cache.size >= limits.cachedMax) cache.clear()
    const found = findHolder(db, { secret, mode, now: now() })
    const lookup: CachedHolder = { holder: found, readAtMs, partnerId: cached?.partnerId }
    cache.set(secret, lookup)
    try {
      const holder = await lookup.holder
      lookup.known = holder
      lookup.partnerId = holder?.partner.id
      if (holder === undefined) {
        cache.delete(secret)
        if (refusedAtMs.size >= limits.refusedMax) refusedAtMs.clear()
        refusedAtMs.set(secret, readAtMs)
        limiter.take(networkOf(addressOf()), limits.unknownKeys, now())
      }
      return holder
    } catch (error) {
      // A failed lookup must not be cached.
      if (cached === undefined) cache.delete(secret)
      else cache.set(secret, cached)
      throw error
    }
  }

  /** @throws Problem `RateLimitExceeded` if none is left */
  function unknownKeysLeft(network: string): number {
    const decision = limiter.peek(network, limits.unknownKeys, now())
    requireAllowed(decision, 'Too many unknown API keys from this address; wait and try again')
    return decision.remaining
  }
}

function isExpired({ expiresAt, clockOffsetMs }: KeyHolder, now: Date): boolean {
  return expiresAt !== null && expiresAt.getTime() <= now.getTime() + clockOffsetMs
}

function refused(message: string): Problem {
  return problem('ApiKeyRefused', message, { path: 'x-api-key' })
}
