import type { FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../../kernel/errors.ts'
import type { Clock } from '../../kernel/time.ts'
import type { KeyHolder, Scope } from '../../partners/api-keys.ts'
import { RateLimiter, rateLimitHeaders, requireAllowed } from '../server/rate-limit.ts'
import type { ApiContext } from '../server/server.ts'
import { Authenticator } from './auth.ts'

/** What identifying callers needs. */
export type AdmissionContext = Pick<ApiContext, 'db' | 'mode' | 'now' | 'publicUrl'>

/** The scope that a key must have, if any. */
type KeyScope = Scope | 'any' | undefined

/** Admits a request: identifies the partner by the API key, then checks the rate limit, then the permission. */
export class KeyAdmission {
  readonly #keys: Authenticator
  readonly #now: Clock
  readonly #rateLimiter = new RateLimiter()

  constructor({ db, mode, now }: AdmissionContext) {
    this.#keys = new Authenticator(db, { mode, now })
    this.#now = now
  }

  /** @throws Problem `ApiKeyRefused`, `RateLimitExceeded`, `Forbidden` */
  async admit(request: FastifyRequest, reply: FastifyReply, scope: KeyScope): Promise<void> {
    const holder = await this.#keys.authenticate(request.headers['x-api-key'], () => request.ip)
    this.#admitHolder(holder, { request, reply, scope })
  }

  /** Like `admit`, if no query is needed. @returns false if one is */
  admitCached(request: FastifyRequest, reply: FastifyReply, scope: KeyScope): boolean {
    const holder = this.#keys.cachedHolderOf(request.headers['x-api-key'])
    if (holder === undefined) return false
    this.#admitHolder(holder, { request, reply, scope })
    return true
  }

  /** Whose key the request has, by the latest lookup, which may be outdated. */
  lastKnownPartner(request: FastifyRequest): string | undefined {
    return this.#keys.lastKnownPartner(request.headers['x-api-key'])
  }

  /** Drops the partner's cached keys. */
  forgetKeys(partnerId: string): void {
    this.#keys.forget(partnerId)
  }

  #admitHolder(
    holder: KeyHolder,
    { request, reply, scope }: { request: FastifyRequest; reply: FastifyReply; scope: KeyScope },
  ): void {
    const { partner, clockOffsetMs } = holder
    request.partner = partner
    request.keyId = holder.keyId
    const limit = { perSecond: partner.requestsPerSecond, burst: partner.requestsBurst }
    const decision = this.#rateLimiter.take(partner.id, limit, this.#now())
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

function requirePermission({ partner, scopes }: KeyHolder, scope: KeyScope): void {
  if (partner.suspendedAt !== null)
    throw problem('Forbidden', 'The partner is suspended; contact the operator of this service')
  if (scope !== undefined && scope !== 'any' && !scopes.has(scope))
    throw problem('Forbidden', `The API key lacks the scope ${scope}`)
}

/** Whether the request needs a key: its route needs one, or it is a 404 below a version, which must not reveal the routes. */
export function needsKey(request: FastifyRequest, scope: KeyScope): boolean {
  return scope !== undefined || (request.is404 && isVersioned(request.url))
}

export function isVersioned(url: string): boolean {
  return /^\/v[0-9]+(\/|\?|$)/.test(url)
}
