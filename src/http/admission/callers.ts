import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOperatorPath } from '../../contract/documents.ts'
import { type AdmissionContext, isVersioned, KeyAdmission, needsKey } from './admission.ts'
import { operatorAdmission } from './operator-admission.ts'
import { sessionAdmission } from './session-admission.ts'
import { UserAdmission } from './user-admission.ts'

/** Identifies callers, each kind by the credentials that the route declares, and checks their rate limits and permissions. */
export class Callers {
  readonly #keys: KeyAdmission
  readonly #admitSession: ReturnType<typeof sessionAdmission>
  readonly #users: UserAdmission
  readonly #admitOperator: ReturnType<typeof operatorAdmission>

  constructor(context: AdmissionContext) {
    this.#keys = new KeyAdmission(context)
    this.#admitSession = sessionAdmission(context)
    this.#users = new UserAdmission(context)
    this.#admitOperator = operatorAdmission(context)
  }

  /** Drops the partner's cached keys. */
  forgetKeys(partnerId: string): void {
    this.#keys.forgetKeys(partnerId)
  }

  /** Whose API key the request has, by the latest lookup, which may be outdated. */
  lastKnownPartner(request: FastifyRequest): string | undefined {
    return this.#keys.lastKnownPartner(request)
  }

  /**
   * Admits a request with an API key that was looked up a moment ago.
   * @returns false if the caller must be looked up
   * @throws Problem like `admit`
   */
  admitCached(request: FastifyRequest, reply: FastifyReply): boolean {
    const { scope } = request.route.config
    if (scope === undefined || this.#users.hasUserSession(request)) return false
    return this.#keys.admitCached(request, reply, scope)
  }

  /** @throws Problem, later: `ApiKeyRefused`, `SessionRefused`, `RateLimitExceeded`, `Forbidden`, `NotFound` */
  admit(request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const { scope, roles, session, console: who, isForOperators } = request.route.config
    const users = this.#users
    if (session !== undefined) return this.#admitSession(request, reply, session)
    if (who === 'stranger' || who === 'founder' || who === 'visitor') return users.admitStranger(request, who)
    if (who === 'user' && typeof roles === 'object') return users.admitUserWithRole(request, reply, roles)
    if (who !== undefined) return users.admitUser(request, reply, who)
    const isUser = users.hasUserSession(request)
    if (isForOperators || (request.is404 && isOperatorPath(request.url)))
      return isUser ? users.admitUserAsOperator(request, reply) : this.#admitOperator(request, reply)
    if (needsKey(request, scope))
      return isUser ? users.admitUserTo(request, reply, scope) : this.#keys.admit(request, reply, scope)
  }

  /** Admits a request whose URL has no route because it is malformed. */
  async admitByPath(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (isOperatorPath(request.url)) await this.#admitOperator(request, reply)
    else if (isVersioned(request.url)) await this.#keys.admit(request, reply, undefined)
  }
}
