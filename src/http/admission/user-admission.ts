import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../../database/database.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import { hashOf } from '../../kernel/secrets.ts'
import type { Scope } from '../../partners/api-keys.ts'
import { readOffsetMs } from '../../partners/clocks.ts'
import { findPartner, type Mode, type Partner } from '../../partners/partners.ts'
import { hasOperator } from '../../users/accounts.ts'
import { isBrowserOfAnyone, isBrowserToken } from '../../users/browsers.ts'
import { mayCall, type Rights, type Role } from '../../users/roles.ts'
import { findSession, type SignedIn } from '../../users/sessions.ts'
import { rolesWith } from '../../users/users.ts'
import { networkOf, RateLimiter, rateLimitHeaders, requireAllowed } from '../server/rate-limit.ts'
import { type AdmissionContext, followClock } from './admission.ts'
import { browserCookie, readCookie, sessionCookie } from './cookies.ts'
import { ownOrigin } from './session-admission.ts'

const limits = {
  // A page of the console sends a dozen requests when it opens, and a user opens a few pages a second.
  perSession: { perSecond: 20, burst: 200 },
  // Lookups of unknown tokens from one network. A whole office may share it, and each of its expired sessions asks once or twice.
  unknownTokens: { perSecond: 5, burst: 50 },
  // Requests without a session from one network: an office whose people all sign in at nine.
  strangers: { perSecond: 5, burst: 100 },
  // The same from one browser that a user has signed in with before. A sign-in through a provider takes two.
  perKnownBrowser: { perSecond: 1, burst: 30 },
  // Recently used sessions of all users.
  knownMax: 10_000,
}

/**
 * Admits requests of the console: checks that they are from a page of this server, identifies the user by the cookie, then
 * checks the rate limit and what the user may do.
 */
export class UserAdmission {
  readonly #context: AdmissionContext
  readonly #rateLimiter = new RateLimiter()
  // Hashes of tokens, least recently used first. They admit no request: they only exempt signed-in users from a limit that others in
  // their network, or behind the same proxy, have used up.
  readonly #known = new Set<string>()
  #isClaimed = false

  constructor(context: AdmissionContext) {
    this.#context = context
  }

  /** Whether the request was made with the cookie of a user instead of an API key. */
  hasUserSession(request: FastifyRequest): boolean {
    const token = readCookie(request, sessionCookie, this.#context.publicUrl)
    return request.headers['x-api-key'] === undefined && token !== undefined
  }

  /** @throws Problem `Forbidden`, `SessionRefused`, `RateLimitExceeded` */
  async admitUser(request: FastifyRequest, reply: FastifyReply, who: 'user' | 'operator'): Promise<void> {
    const { db, mode, now, publicUrl } = this.#context
    requireOwnPage(request, publicUrl)
    const network = `unknown tokens of ${networkOf(request.ip)}`
    const token = readCookie(request, sessionCookie, publicUrl)
    const name = token === undefined ? '' : hashOf(token).toString('hex')
    if (!this.#known.has(name) && !(await this.#isAdmittedAsBrowser(request)))
      requireAllowed(this.#rateLimiter.peek(network, limits.unknownTokens, now()))
    const found = await findUserOfBrowser(db, request, { mode, publicUrl, now: request.receivedAt })
    this.#known.delete(name)
    if (found === undefined) {
      if (token !== undefined) this.#rateLimiter.take(network, limits.unknownTokens, now())
      throw refused()
    }
    this.#known.add(name)
    for (const oldest of this.#known) {
      if (this.#known.size <= limits.knownMax) break
      this.#known.delete(oldest)
    }
    const decision = this.#rateLimiter.take(found.session.id, limits.perSession, now())
    reply.headers(rateLimitHeaders(limits.perSession, decision.remaining, 'session'))
    requireAllowed(decision)
    if (who === 'operator' && !found.user.isOperator)
      throw problem('Forbidden', 'Only an operator of this installation may do this')
    request.user = found
  }

  /**
   * Admits a request about the partner that the header `midmonth-partner` names, if the user is an operator or has one of these
   * roles with it.
   * @throws like `admitUser`, and Problem `NotFound` if the user has no role with that partner
   */
  async admitUserWithRole(request: FastifyRequest, reply: FastifyReply, allowed: readonly Role[]): Promise<void> {
    const { db } = this.#context
    await this.admitUser(request, reply, 'user')
    request.partner = await requireRole(db, request, allowed)
  }

  /**
   * Admits a user's request to the operators' API, if the user is an operator or has a role that the route allows for the partner
   * in the path.
   * @throws like `admitUser`, and Problem `NotFound` if the user has no role with that partner
   */
  async admitUserAsOperator(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { db } = this.#context
    const { partnerRoles } = request.route.config
    await this.admitUser(request, reply, partnerRoles === undefined ? 'operator' : 'user')
    const { user } = request
    if (user === undefined) throw refused()
    const { id, isOperator } = user.user
    if (!isOperator) {
      const { partnerId } = request.params as { partnerId: string }
      requireOneOf(partnerRoles ?? [], await standingOf(db, user, partnerId))
    }
    request.operator = { kind: 'user', id, person: id, ...(isOperator ? {} : { isOfPartner: true }) }
  }

  /**
   * Admits a request to sign in, or with a one-time link. A `visitor` navigates here from another site, so the route itself checks
   * that the browser started the sign-in. The limit is per network, but a known browser first uses its own limit, so that others in
   * its network cannot lock it out.
   * @throws Problem `Forbidden`, `RateLimitExceeded`, `ServiceUnavailable`
   */
  async admitStranger(request: FastifyRequest, who: 'stranger' | 'founder' | 'visitor'): Promise<void> {
    const { now, publicUrl } = this.#context
    if (who !== 'visitor') requireOwnPage(request, publicUrl)
    const network = `strangers of ${networkOf(request.ip)}`
    if (!(await this.#isAdmittedAsBrowser(request)))
      requireAllowed(this.#rateLimiter.take(network, limits.strangers, now()))
    if (who === 'stranger') await this.#requireClaimed()
  }

  /**
   * Whether the request is from a known browser within its own limit. A forged token costs no lookup, and a genuine token at most as
   * many as the limit allows, known or not. The limit is also per network, so that a thief elsewhere cannot use up the owner's.
   */
  async #isAdmittedAsBrowser(request: FastifyRequest): Promise<boolean> {
    const { db, now, publicUrl } = this.#context
    const token = readCookie(request, browserCookie, publicUrl)
    if (token === undefined) return false
    if (!isBrowserToken(token, request.server.sealer.browserKey)) return false
    const name = `browser ${hashOf(token).toString('hex')} of ${networkOf(request.ip)}`
    const { allowed } = this.#rateLimiter.take(name, limits.perKnownBrowser, now())
    return allowed && (await isBrowserOfAnyone(db, { token, now: request.receivedAt }))
  }

  /** @throws Problem `ServiceUnavailable` on a live installation without an operator */
  async #requireClaimed(): Promise<void> {
    const { db, mode } = this.#context
    this.#isClaimed ||= mode === 'sandbox' || (await hasOperator(db))
    if (!this.#isClaimed)
      throw problem(
        'ServiceUnavailable',
        'The console has no operator yet: open the set-up link in the log of the service, or run midmonth operator create',
      )
  }

  /**
   * Admits the request to the partner API, for the partner that the header `midmonth-partner` names.
   * @throws also Problem `NotFound` if the user has no role with that partner
   */
  async admitUserTo(request: FastifyRequest, reply: FastifyReply, scope: Scope | 'any' | undefined): Promise<void> {
    const { db, mode, now } = this.#context
    await this.admitUser(request, reply, 'user')
    const { user } = request
    if (user === undefined) throw refused()
    const partnerId = partnerIdOf(request)
    const [standing, clockOffsetMs] = await Promise.all([standingOf(db, user, partnerId), readOffsetMs(db, partnerId)])
    const { partner, isOperator } = standing
    // All users of a partner together get as much as its servers, without using up the servers' quota.
    const shared = { perSecond: partner.requestsPerSecond, burst: partner.requestsBurst }
    requireAllowed(this.#rateLimiter.take(`users of ${partner.id}`, shared, now()))
    request.partner = partner
    if (!isOperator) requireServed(partner)
    followClock(request, clockOffsetMs)
    // An unknown path has no scope, and gets its 404.
    if (scope !== undefined && !mayCall(request.route.config.roles, standing, mode)) throw notAllowed()
  }
}

/**
 * Refuses requests that another site caused. Browsers do not send a `SameSite=Strict` cookie with those anyway, but this also refuses
 * another port of this machine, which counts as the same site.
 * Sources: W3C Fetch Metadata; OWASP "Cross-Site Request Forgery Prevention", "Verifying Origin With Standard Headers"
 * @throws Problem `Forbidden`
 */
function requireOwnPage(request: FastifyRequest, publicUrl: string | undefined): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isOwn =
    (site === undefined || site === 'same-origin') && (origin === undefined || origin === ownOrigin(request, publicUrl))
  if (isOwn && (request.method === 'GET' || origin !== undefined)) return
  throw problem(
    'Forbidden',
    'The request is not from a page of this server; set MIDMONTH_PUBLIC_URL if it is behind a proxy',
  )
}

/**
 * The partner of a request to one of the console's own operations.
 * @throws Problem `NotFound` if the user has no role with the partner; `Forbidden` if the user has none of the allowed roles
 */
export async function requireRole(
  db: Db,
  request: Pick<FastifyRequest, 'user' | 'headers'>,
  allowed: readonly Role[],
): Promise<Partner> {
  const { user } = request
  if (user === undefined) throw refused()
  const standing = await standingOf(db, user, partnerIdOf(request))
  requireOneOf(allowed, standing)
  return standing.partner
}

/**
 * Finds the rights of a user with a partner.
 * @throws Problem `NotFound` if the user is not an operator and has no role with the partner
 */
async function standingOf(
  db: Db,
  { user: { id: userId, isOperator } }: SignedIn,
  partnerId: string,
): Promise<Rights & { partner: Partner }> {
  const [partner, roles] = await Promise.all([findPartner(db, partnerId), rolesWith(db, { userId, partnerId })])
  // The same refusal for an unknown partner and for one with which the user has no role.
  if (partner === undefined || (!isOperator && roles.length === 0))
    throw problem('NotFound', 'There is no such partner, or you have no role with it')
  return { partner, isOperator, roles }
}

/** @throws Problem `Forbidden` if the user is not an operator, and has none of these roles or the partner is suspended */
function requireOneOf(allowed: readonly Role[], { partner, isOperator, roles }: Rights & { partner: Partner }): void {
  if (isOperator) return
  requireServed(partner)
  if (!roles.some(role => allowed.includes(role))) throw notAllowed()
}

/** @throws Problem `HeaderValidation` */
function partnerIdOf({ headers }: Pick<FastifyRequest, 'headers'>): string {
  const partnerId = headers['midmonth-partner']
  if (typeof partnerId === 'string' && /^par_[0-9a-z]{1,100}$/.test(partnerId)) return partnerId
  throw problem('HeaderValidation', 'The midmonth-partner header must hold the id of a partner', {
    path: 'midmonth-partner',
  })
}

/** The user whose session the browser has; undefined without a session. */
export async function findUserOfBrowser(
  db: Db,
  browser: Pick<FastifyRequest, 'protocol' | 'headers'>,
  { mode, publicUrl, now }: { mode: Mode; publicUrl: string | undefined; now: Date },
): Promise<SignedIn | undefined> {
  const token = readCookie(browser, sessionCookie, publicUrl)
  return token === undefined ? undefined : await findSession(db, { token, mode, now })
}

/** @throws Problem `Forbidden` if the partner is suspended */
function requireServed({ suspendedAt }: Partner): void {
  if (suspendedAt !== null) throw problem('Forbidden', 'The partner is suspended; contact the operator of this service')
}

function notAllowed(): Problem {
  return problem('Forbidden', 'Your roles with this partner do not allow this')
}

function refused(): Problem {
  return problem('SessionRefused', 'You are not signed in, or your session has ended; sign in again', {
    path: 'cookie',
  })
}
