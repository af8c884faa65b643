import { isIP } from 'node:net'

/** What one partner may send: this many requests a second over time, and this many at once after a quiet while. */
export type RateLimit = { perSecond: number; burst: number }

type Bucket = { tokens: number; at: number }

/** @param retryAfterSeconds whole seconds until the next request is let through; 0 when this one was */
export type RateDecision = { allowed: boolean; remaining: number; retryAfterSeconds: number }

// Partners and addresses at once. Beyond it the one that was quiet for longest starts anew.
const bucketsMax = 10_000

/**
 * A token bucket per partner, or per address, in this process: n processes together let through up to n times as much. The
 * limit protects the service from one partner's runaway loop; no promise about money rests on it, so it costs no round trip.
 */
export class RateLimiter {
  readonly #buckets = new Map<string, Bucket>()

  take(name: string, limit: RateLimit, now: Date): RateDecision {
    const tokens = this.#tokensOf(name, limit, now)
    const allowed = tokens >= 1
    const left = allowed ? tokens - 1 : tokens
    // Deleted first: a map keeps its order of insertion, so that the first bucket is the one that was quiet for longest.
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

  /** Whether `take` would let this one through, without taking anything: `remaining` are those that it would, this one included. */
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
    // A clock that was set back must not take tokens away.
    const elapsedSeconds = Math.max(0, now.getTime() - bucket.at) / 1000
    return Math.min(limit.burst, bucket.tokens + elapsedSeconds * limit.perSecond)
  }
}

/**
 * What an address is counted under: itself, or for IPv6 its /64, all of which one subscriber has. A text that is no address,
 * which an odd proxy may send, is counted with all others.
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
 * The two headers of every answer. They name the quota and what is left of it.
 * Source: draft-ietf-httpapi-ratelimit-headers, "RateLimit-Policy" and "RateLimit"; a burst of b refilled at r a second is
 * a quota of b in a window of b/r seconds.
 */
export function rateLimitHeaders(limit: RateLimit, remaining: number): Record<string, string> {
  const windowSeconds = Math.ceil(limit.burst / limit.perSecond)
  const resetSeconds = Math.ceil((limit.burst - remaining) / limit.perSecond)
  return {
    'ratelimit-policy': `"partner";q=${limit.burst};w=${windowSeconds}`,
    ratelimit: `"partner";r=${remaining};t=${resetSeconds}`,
  }
}
