import type { Reader } from '../database/database.ts'
import { type Call, operationsOn } from '../http/operation.ts'
import { building, mayCall, readers, staff, tracing } from '../users/roles.ts'
import { rolesWith } from '../users/users.ts'
import type { WithdrawalContext } from './operation-context.ts'
import { WithdrawalTimeline } from './schema.ts'
import { readTimeline, type Sight } from './timeline.ts'

const { operation } = operationsOn<WithdrawalContext>()

export const getWithdrawalTimeline = operation({
  route: 'GET /v1/pay/withdrawals/:withdrawalId/timeline',
  scope: 'pay:read',
  roles: readers,
  sdk: 'withdrawals.getTimeline',
  tag: 'Withdrawals',
  summary: 'Get the timeline of a withdrawal',
  description:
    'Everything that happened to a withdrawal: its statuses with what was booked for each, the decision on its intent, the requests, and the deliveries of its events to webhooks.',
  success: { description: 'The timeline.', schema: WithdrawalTimeline },
  async read(reader, call) {
    const { partner, params, now, receivedAt } = call
    const { withdrawalId } = params
    const sees = await sightOf(reader, call)
    return { body: await readTimeline(reader, { partnerId: partner.id, withdrawalId, now, receivedAt, sees }) }
  },
})

/** An API key sees everything; a user sees what the roles allow to read separately. */
async function sightOf(
  db: Reader,
  { user, partner, context }: Pick<Call, 'user' | 'partner' | 'context'>,
): Promise<Sight> {
  if (user === undefined) return { requests: true, deliveries: true, lines: true, operators: false }
  const { id: userId, isOperator } = user.user
  const rights = { isOperator, roles: await rolesWith(db, { userId, partnerId: partner.id }) }
  return {
    requests: mayCall(tracing, rights, context.mode),
    deliveries: mayCall(building, rights, context.mode),
    lines: mayCall(staff, rights, context.mode),
    operators: isOperator,
  }
}
