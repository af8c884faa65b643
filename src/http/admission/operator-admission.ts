import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem } from '../../kernel/errors.ts'
import { findOperatorKey, isOperatorKey } from '../../partners/operator-keys.ts'
import { networkOf, RateLimiter, rateLimitHeaders, requireAllowed } from '../server/rate-limit.ts'
import type { AdmissionContext } from './admission.ts'

const limits = {
  // A page of the console sends about ten requests at once.
  perOperator: { perSecond: 20, burst: 100 },
  // Lookups of unknown keys from one address. A mistyped key is refused by its checksum, without a lookup.
  unknownKeys: { perSecond: 1, burst: 10 },
}

export type AdmitOperator = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/**
 * Admits a request of an operator, by an operator key in `x-api-key`. The key is looked up for each request, so a revoked key is
 * refused immediately.
 * @throws Problem `ApiKeyRefused`, `RateLimitExceeded`
 */
export function operatorAdmission({ db, now }: AdmissionContext): AdmitOperator {
  const rateLimiter = new RateLimiter()
  return async (request, reply) => {
    const keyId = await identify(request)
    request.operator = { kind: 'operator_key', id: keyId, person: keyId }
    const { perOperator } = limits
    const decision = rateLimiter.take(keyId, perOperator, now())
    reply.headers(rateLimitHeaders(perOperator, decision.remaining, 'operator'))
    requireAllowed(decision)
  }

  async function identify(request: FastifyRequest): Promise<string> {
    const secret = request.headers['x-api-key']
    if (typeof secret !== 'string' || secret === '') throw refused('The x-api-key header is missing')
    if (!isOperatorKey(secret)) throw refused('The x-api-key header holds no operator key (mmoperator_…)')
    // Concurrent lookups can exceed the limit by the number of connections.
    const network = `unknown operator keys of ${networkOf(request.ip)}`
    requireAllowed(rateLimiter.peek(network, limits.unknownKeys, now()))
    const key = await findOperatorKey(db, { secret, now: request.receivedAt })
    if (key !== undefined) return key.id
    rateLimiter.take(network, limits.unknownKeys, now())
    throw refused('The operator key is unknown, revoked or expired; use a current one')
  }
}

function refused(message: string): Problem {
  return problem('ApiKeyRefused', message, { path: 'x-api-key' })
}
