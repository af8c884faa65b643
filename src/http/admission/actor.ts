import type { FastifyRequest } from 'fastify'
import type { Actor } from '../../audit-log/audit-log.ts'

/** The author of a request's changes, for the audit log. */
export function actorOf({ operator, user, keyId, ip, id }: FastifyRequest): Actor {
  const from = { address: ip, requestId: id }
  if (operator !== undefined) return { kind: operator.kind, name: operator.id, ...from }
  if (user !== undefined) return { kind: 'user', name: user.user.id, ...from }
  return { kind: 'api_key', name: keyId, ...from }
}
