import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem } from '../../kernel/errors.ts'
import { hashOf } from '../../kernel/secrets.ts'
import { findSession, type MemberSession, type SessionScope } from '../../partners/member-sessions.ts'
import { networkOf, RateLimiter, rateLimitHeaders, requireAllowed } from '../server/rate-limit.ts'
import type { App } from '../server/server.ts'
import { type AdmissionContext, followClock } from './admission.ts'

const limits = {
  // A member who withdraws and then watches the timeline sends one request every few seconds.
  perSession: { perSecond: 2, burst: 30 },
  // Lookups of unknown tokens from one address. The pages of a whole office may share it, but their tokens are known: an
  // expired one is kept for an hour.
  unknownTokens: { perSecond: 5, burst: 20 },
  // How long a browser may remember the response to a preflight.
  preflightSeconds: 600,
}

const tooMany = 'Too many requests with session tokens; slow down'

type AdmitSession = (request: FastifyRequest, reply: FastifyReply, scope: SessionScope) => Promise<void>

/**
 * Admits a request of a member session: identifies the session by the token in `authorization`, compares its origin with the
 * page's, then checks the rate limit and the scope. Only the page to which the session is bound can read the response.
 * @throws Problem `SessionRefused`, `RateLimitExceeded`, `Forbidden`
 */
export function sessionAdmission({ db, mode, now, publicUrl }: AdmissionContext): AdmitSession {
  const rateLimiter = new RateLimiter()
  return async (request, reply, scope) => {
    reply.header('vary', 'Origin')
    const { origin } = request.headers
    const token = tokenOf(request)
    // Before the lookup, so that a page that keeps sending an expired token, or another page's, costs no query.
    const ofSession = rateLimiter.take(hashOf(token).toString('hex'), limits.perSession, now())
    reply.headers(rateLimitHeaders(limits.perSession, ofSession.remaining, 'session'))
    // Any page may read this refusal, which reveals nothing about the session: it has not been looked up.
    if (!ofSession.allowed && origin !== undefined) reply.headers(readableBy(origin))
    requireAllowed(ofSession, tooMany)
    const holder = await find(request, token)
    const { session, partner, clockOffsetMs } = holder
    const isBound = isBoundTo(session, request, publicUrl)
    // Also before a refusal, so that the page can tell an expired session from a failed connection.
    if (isBound && origin !== undefined) reply.headers(readableBy(origin))
    if (holder.hasEnded) throw refused('The session has expired or was revoked; create a new one')
    if (!isBound) throw problem('Forbidden', 'The session is bound to another origin')
    request.partner = partner
    request.keyId = holder.keyId
    request.memberSession = session
    // All sessions together get as much as the partner's servers, without using up the servers' quota.
    const shared = { perSecond: partner.requestsPerSecond, burst: partner.requestsBurst }
    requireAllowed(rateLimiter.take(`sessions of ${partner.id}`, shared, now()), tooMany)
    if (partner.suspendedAt !== null) throw problem('Forbidden', 'The partner is suspended')
    if (scope === 'withdraw' && session.scope !== 'withdraw')
      throw problem('Forbidden', 'The session lacks the scope withdraw')
    followClock(request, clockOffsetMs)
  }

  async function find(request: FastifyRequest, token: string) {
    // Concurrent lookups can exceed the limit by the number of connections.
    const network = `unknown tokens of ${networkOf(request.ip)}`
    requireAllowed(rateLimiter.peek(network, limits.unknownTokens, now()), tooMany)
    const holder = await findSession(db, { token, mode, now: request.receivedAt })
    if (holder !== undefined) return holder
    rateLimiter.take(network, limits.unknownTokens, now())
    throw refused('The session is unknown or has expired; create a new one')
  }
}

/** @throws Problem `SessionRefused` */
function tokenOf(request: FastifyRequest): string {
  const [, token] = /^bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  if (token === undefined) throw refused('The authorization header must be "Bearer" and the token of a member session')
  return token
}

/**
 * Whether the request is from the page that the session is bound to. Browsers send no `origin` with a GET to the page's own
 * server, but always send it with a request to another server.
 */
function isBoundTo({ origin: bound }: MemberSession, request: FastifyRequest, publicUrl: string | undefined): boolean {
  const { origin } = request.headers
  if (bound !== null) return origin === bound
  return origin === undefined || origin === ownOrigin(request, publicUrl)
}

/** The address at which browsers reach this server, without a trailing slash. */
export function ownOrigin(request: FastifyRequest, publicUrl: string | undefined): string {
  const address = publicUrl ?? `${request.protocol}://${request.host}`
  return URL.canParse(address) ? new URL(address).origin : ''
}

function readableBy(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': 'x-request-id, retry-after, x-should-retry, idempotency-replayed',
  }
}

/**
 * Registers the response to the preflight of a route for member sessions. A preflight has no token, so any page may send one: only
 * the session's page can read the response to the request itself. `x-api-key` is not among the headers that a page may send.
 */
export function answerPreflight(app: App, url: string, method: string): void {
  app.options(url, async (request, reply) => {
    const { origin } = request.headers
    reply.headers({ allow: `${method}, OPTIONS`, vary: 'Origin' })
    if (origin !== undefined && URL.canParse(origin))
      reply.headers({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': method,
        'access-control-allow-headers': 'authorization, content-type, x-idempotency-key',
        'access-control-max-age': String(limits.preflightSeconds),
      })
    return reply.code(204).send()
  })
}

function refused(message: string): Problem {
  return problem('SessionRefused', message, { path: 'authorization' })
}
