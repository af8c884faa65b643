import { problem } from '../../kernel/errors.ts'
import { requireRole } from '../admission/user-admission.ts'
import type { Call } from '../operation.ts'

/**
 * The partner whose users the call is about; null for the users of the installation.
 * @throws Problem `NotFound` if the user has no role with the partner, `Forbidden` if the user is not an admin of it
 */
export async function managedPartner(
  call: Pick<Call, 'context' | 'signedIn' | 'user' | 'headers'>,
): Promise<string | null> {
  if (call.headers['midmonth-partner'] === undefined) {
    if (call.signedIn.user.isOperator) return null
    throw problem('Forbidden', 'Only an operator of this installation may do this; send the header midmonth-partner')
  }
  return (await requireRole(call.context.db, call, ['admin'])).id
}
