import { isIP } from 'node:net'
import { problem } from '../../kernel/errors.ts'

/** The quota of one partner: a sustained rate, and a burst after a quiet period. */
export type RateLimit = { perSecond: number; burst: number }

type Bucket = { tokens: number; at: number }

/** @param retryAfterSeconds whole seconds until the next request is allowed; 0 if this request was allowed */
type RateDecision = { allowed: boolean; remaining: number; retryAfterSeconds: number }

// Partners and addresses together. Beyond this, the least recently used bucket is dropped.
const bucketsMax = 10_000

/**
 * A token bucket per partner, or per address, in this process: n processes together allow up to n times as much. The limit
 * protects the service from runaway loops. No promise about money depends on the limit, so it need not be exact across processes.
 */
export class RateLimiter {
  readonly #buckets = new Map<string, Bucket>()

  take(name: string, limit: RateLimit, now: Date): RateDecision {
    const tokens = this.#tokensOf(name, limit, now)
    const allowed = tokens >= 1
    const left = allowed ? tokens - 1 : tokens
    // Deleted first, so that insertion order is order of use: the first bucket is the least recently used.
    this.#buckets.delete(name)
    this.#buckets.set(name, { tokens: left, at: now.getTime() })
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= bucketsMax) break
      this.#buckets.delete(oldest)
    }
    return {
      allowed,
      remaining: Math.floor(left),
      retryAfterSeconds: allowed ? 0 : Math.ceil((1 - tokens) / limit.perSecond),
    }
  }

  /** Whether `take` would allow a request, without taking a token. `remaining` includes that request. */
  peek(name: string, limit: RateLimit, now: Date): RateDecision {
    const tokens = this.#tokensOf(name, limit, now)
    const allowed = tokens >= 1
    return {
      allowed,
      remaining: Math.floor(tokens),
      retryAfterSeconds: allowed ? 0 : Math.ceil((1 - tokens) / limit.perSecond),
    }
  }

  #tokensOf(name: string, limit: RateLimit, now: Date): number {
    const bucket = this.#buckets.get(name) ?? { tokens: limit.burst, at: now.getTime() }
    // Setting the clock back must not take tokens away.
    const elapsedSeconds = Math.max(0, now.getTime() - bucket.at) / 1000
    return Math.min(limit.burst, bucket.tokens + elapsedSeconds * limit.perSecond)
  }
}

/** @throws Problem `RateLimitExceeded` if the request is not allowed */
export function requireAllowed(
  { allowed, retryAfterSeconds }: RateDecision,
  message = 'Too many requests; slow down',
): void {
  if (!allowed) throw problem('RateLimitExceeded', message, {}, { 'retry-after': String(retryAfterSeconds) })
}

/**
 * The bucket name of an address: the address itself, or the /64 of an IPv6 address, because a subscriber gets a whole /64.
 * Text that is not an address, as a misconfigured proxy may send, shares one bucket.
 */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/, '').toLowerCase()
  const mapped = /^::ffff:([0-9.]+)$/.exec(bare)?.[1]
  if (mapped !== undefined && isIP(mapped) === 4) return mapped
  if (isIP(bare) === 4) return bare
  if (isIP(bare) !== 6) return 'unknown'
  const [head = '', tail] = bare.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    // An IPv4 address at the end stands for two groups.
    const tailGroups = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0)
    const zeros = 8 - groups.length - tailGroups
    groups.push(...Array(zeros).fill('0'), ...tail.split(':'))
  }
  return `${groups
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}

/**
 * The two headers of every response: the quota, and the rest of it.
 * Source: draft-ietf-httpapi-ratelimit-headers, "RateLimit-Policy" and "RateLimit"; a burst of b refilled at r a second is
 * a quota of b in a window of b/r seconds.
 */
export function rateLimitHeaders(limit: RateLimit, remaining: number, name = 'partner'): Record<string, string> {
  const windowSeconds = Math.ceil(limit.burst / limit.perSecond)
  const resetSeconds = Math.ceil((limit.burst - remaining) / limit.perSecond)
  return {
    'ratelimit-policy': `"${name}";q=${limit.burst};w=${windowSeconds}`,
    ratelimit: `"${name}";r=${remaining};t=${resetSeconds}`,
  }
}
