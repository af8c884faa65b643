import type { FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../../kernel/errors.ts'
import type { KeyHolder, Scope } from '../../partners/api-keys.ts'
import { RateLimiter, rateLimitHeaders, requireAllowed } from '../server/rate-limit.ts'
import type { ApiContext } from '../server/server.ts'
import { authenticator } from './auth.ts'

/** What identifying callers needs. */
export type AdmissionContext = Pick<ApiContext, 'db' | 'mode' | 'now' | 'publicUrl'>

export type Admit = (request: FastifyRequest, reply: FastifyReply, scope: Scope | 'any' | undefined) => Promise<void>

/**
 * Admits a request: identifies the partner by the API key, then checks the rate limit, then the permission.
 * @throws Problem `ApiKeyRefused`, `RateLimitExceeded`, `Forbidden`
 */
export function admission({ db, mode, now }: AdmissionContext): {
  admit: Admit
  /** Like `admit`, if no query is needed. @returns false if one is */
  admitCached(request: FastifyRequest, reply: FastifyReply, scope: Scope | 'any'): boolean
  /** Whose key the request has, by the latest lookup, which may be outdated. */
  lastKnownPartner(request: FastifyRequest): string | undefined
  forgetKeys(partnerId: string): void
} {
  const { authenticate, cachedHolderOf, lastKnownPartner, forget } = authenticator(db, { mode, now })
  const rateLimiter = new RateLimiter()
  const admit: Admit = async (request, reply, scope) => {
    const holder = await authenticate(request.headers['x-api-key'], () => request.ip)
    admitHolder(holder, { request, reply, scope })
  }
  return {
    ...{ admit, admitCached, forgetKeys: forget },
    lastKnownPartner: request => lastKnownPartner(request.headers['x-api-key']),
  }

  function admitCached(request: FastifyRequest, reply: FastifyReply, scope: Scope | 'any'): boolean {
    const holder = cachedHolderOf(request.headers['x-api-key'])
    if (holder === undefined) return false
    admitHolder(holder, { request, reply, scope })
    return true
  }

  function admitHolder(
    holder: KeyHolder,
    { request, reply, scope }: { request: FastifyRequest; reply: FastifyReply; scope: Scope | 'any' | undefined },
  ): void {
    const { partner, clockOffsetMs } = holder
    request.partner = partner
    request.keyId = holder.keyId
    const limit = { perSecond: partner.requestsPerSecond, burst: partner.requestsBurst }
    const decision = rateLimiter.take(partner.id, limit, now())
    reply.headers(rateLimitHeaders(limit, decision.remaining))
    requireAllowed(decision, `More than ${limit.perSecond} requests a second; slow down`)
    requirePermission(holder, scope)
    followClock(request, clockOffsetMs)
  }
}

/** Applies the partner's clock to the rest of the request. Rate limits use real time. */
export function followClock(request: FastifyRequest, clockOffsetMs: number): void {
  if (clockOffsetMs === 0) return
  request.clockOffsetMs = clockOffsetMs
  request.now = new Date(request.now.getTime() + clockOffsetMs)
}

function requirePermission({ partner, scopes }: KeyHolder, scope: Scope | 'any' | undefined): void {
  if (partner.suspendedAt !== null)
    throw problem('Forbidden', 'The partner is suspended; contact the operator of this service')
  if (scope !== undefined && scope !== 'any' && !scopes.has(scope))
    throw problem('Forbidden', `The API key lacks the scope ${scope}`)
}

/** Whether the request needs a key: its route needs one, or it is a 404 below a version, which must not reveal the routes. */
export function needsKey(request: FastifyRequest, scope: Scope | 'any' | undefined): boolean {
  return scope !== undefined || (request.is404 && isVersioned(request.url))
}

export function isVersioned(url: string): boolean {
  return /^\/v[0-9]+(\/|\?|$)/.test(url)
}
