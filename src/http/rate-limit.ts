/** What one partner may send: this many requests a second over time, and this many at once after a quiet while. */
export type RateLimit = { perSecond: number; burst: number }

type Bucket = { tokens: number; at: number }

/** @param retryAfterSeconds whole seconds until the next request is let through; 0 when this one was */
export type RateDecision = { allowed: boolean; remaining: number; retryAfterSeconds: number }

/**
 * A token bucket per partner, in this process: n processes together let through up to n times as much. The limit
 * protects the service from one partner's runaway loop; no promise about money rests on it, so it costs no round trip.
 */
export class RateLimiter {
  readonly #buckets = new Map<string, Bucket>()

  take(partnerId: string, limit: RateLimit, now: Date): RateDecision {
    const bucket = this.#buckets.get(partnerId) ?? { tokens: limit.burst, at: now.getTime() }
    // A clock that was set back must not take tokens away.
    const elapsedSeconds = Math.max(0, now.getTime() - bucket.at) / 1000
    const tokens = Math.min(limit.burst, bucket.tokens + elapsedSeconds * limit.perSecond)
    const allowed = tokens >= 1
    this.#buckets.set(partnerId, { tokens: allowed ? tokens - 1 : tokens, at: now.getTime() })
    return {
      allowed,
      remaining: Math.floor(allowed ? tokens - 1 : tokens),
      retryAfterSeconds: allowed ? 0 : Math.ceil((1 - tokens) / limit.perSecond),
    }
  }
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
