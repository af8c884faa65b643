import type { FastifyRequest } from 'fastify'
import type { Db } from '../../database/database.ts'
import { problem } from '../../kernel/errors.ts'
import { requireRole } from '../admission/user-admission.ts'
import { userOf } from './hidden-operation.ts'

/**
 * The partner whose users the request is about; null for the users of the installation.
 * @throws Problem `NotFound` if the user has no role with the partner, `Forbidden` if the user is not an admin of it
 */
export async function managedPartner(db: Db, request: FastifyRequest): Promise<string | null> {
  const { user } = userOf(request)
  if (request.headers['midmonth-partner'] === undefined) {
    if (user.isOperator) return null
    throw problem('Forbidden', 'Only an operator of this installation may do this; send the header midmonth-partner')
  }
  return (await requireRole(db, request, ['admin'])).id
}
