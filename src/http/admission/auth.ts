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
 */
export class Authenticator {
  readonly #db: Db
  readonly #mode: Mode
  readonly #now: Clock
  readonly #cache = new Map<string, CachedHolder>()
  readonly #refusedAtMs = new Map<string, number>()
  readonly #limiter = new RateLimiter()
  readonly #runningOf = new Map<string, Running>()

  /** @param options.mode the mode of this server; keys of the other mode are refused */
  constructor(db: Db, { mode, now }: { mode: Mode; now: Clock }) {
    this.#db = db
    this.#mode = mode
    this.#now = now
  }

  lastKnownPartner(secret: unknown): string | undefined {
    return typeof secret === 'string' ? this.#cache.get(secret)?.partnerId : undefined
  }

  /** The holder of a key whose lookup is recent, and whose clock does not move. */
  cachedHolderOf(secret: unknown): KeyHolder | undefined {
    const cached = typeof secret === 'string' ? this.#cache.get(secret) : undefined
    const known = cached !== undefined && this.#isRecent(cached.readAtMs) ? cached.known : undefined
    return known === undefined || known.hasClock || isExpired(known, this.#now()) ? undefined : known
  }

  async authenticate(secret: unknown, addressOf: () => string): Promise<KeyHolder> {
    if (typeof secret !== 'string' || secret === '') throw refused('The x-api-key header is missing')
    const keyMode = modeOf(secret)
    if (keyMode === undefined)
      throw refused('The x-api-key header holds no valid API key; check that it was copied whole')
    if (keyMode !== this.#mode)
      throw refused(`This is a ${keyMode} key and this is the ${this.#mode} server; use a ${this.#mode} key here`)
    const found = await this.#read(secret, addressOf)
    const holder = found?.hasClock ? { ...found, clockOffsetMs: await readOffsetMs(this.#db, found.partner.id) } : found
    if (holder === undefined || isExpired(holder, this.#now())) {
      throw refused('The API key is unknown, revoked or expired; use a current one')
    }
    return holder
  }

  forget(partnerId: string): void {
    for (const [secret, { partnerId: of }] of this.#cache) if (of === partnerId) this.#cache.delete(secret)
  }

  #isRecent(ms: number): boolean {
    return Math.abs(this.#now().getTime() - ms) < limits.cacheMs
  }

  async #read(secret: string, addressOf: () => string): Promise<KeyHolder | undefined> {
    const readAtMs = this.#now().getTime()
    const cached = this.#cache.get(secret)
    if (cached !== undefined && this.#isRecent(cached.readAtMs)) return await cached.holder
    const refusedBefore = this.#refusedAtMs.get(secret)
    if (refusedBefore !== undefined && this.#isRecent(refusedBefore)) return undefined
    // A key in use is accepted even if its address guesses keys: the address may be a proxy's.
    if (cached !== undefined) return await this.#lookUp(secret, { readAtMs, cached, addressOf })
    const network = networkOf(addressOf())
    const left = this.#unknownKeysLeft(network)
    const running = this.#runningOf.get(network) ?? { count: 0, ended: Promise.withResolvers() }
    if (running.count >= left) {
      await running.ended.promise
      return await this.#read(secret, addressOf)
    }
    running.count += 1
    this.#runningOf.set(network, running)
    try {
      return await this.#lookUp(secret, { readAtMs, addressOf })
    } finally {
      running.count -= 1
      if (running.count === 0) this.#runningOf.delete(network)
      running.ended.resolve()
      running.ended = Promise.withResolvers()
    }
  }

  async #lookUp(
    secret: string,
    { readAtMs, cached, addressOf }: { readAtMs: number; cached?: CachedHolder; addressOf: () => string },
  ): Promise<KeyHolder | undefined> {
    if (this.#cache.size >= limits.cachedMax) this.#cache.clear()
    const found = findHolder(this.#db, { secret, mode: this.#mode, now: this.#now() })
    const lookup: CachedHolder = { holder: found, readAtMs, partnerId: cached?.partnerId }
    this.#cache.set(secret, lookup)
    try {
      const holder = await lookup.holder
      lookup.known = holder
      lookup.partnerId = holder?.partner.id
      if (holder === undefined) {
        this.#cache.delete(secret)
        if (this.#refusedAtMs.size >= limits.refusedMax) this.#refusedAtMs.clear()
        this.#refusedAtMs.set(secret, readAtMs)
        this.#limiter.take(networkOf(addressOf()), limits.unknownKeys, this.#now())
      }
      return holder
    } catch (error) {
      // A failed lookup must not be cached.
      if (cached === undefined) this.#cache.delete(secret)
      else this.#cache.set(secret, cached)
      throw error
    }
  }

  /** @throws Problem `RateLimitExceeded` if none is left */
  #unknownKeysLeft(network: string): number {
    const decision = this.#limiter.peek(network, limits.unknownKeys, this.#now())
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
