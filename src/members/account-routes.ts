import { Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import { lastFour } from '../bank-accounts/rules.ts'
import { problem } from '../errors.ts'
import { actorOf } from '../http/actor.ts'
import type { ApiContext, App } from '../http/server.ts'
import { requireRole } from '../http/user-admission.ts'
import { hiddenOperation } from '../http/users/hidden-operation.ts'
import { Id } from '../ids.ts'
import * as members from './members.ts'

const Reason = Type.String({ pattern: '^(?=.*\\S)[^\\x00-\\x1f\\x7f]*$', minLength: 3, maxLength: 200 })

/** Reveals the bank account of one member, which every other answer to a user masks. */
export function memberAccountRoutes(app: App, { db }: ApiContext): void {
  app.post(
    '/console/v1/members/:memberId/account',
    {
      config: { console: 'user' },
      schema: hiddenOperation({
        id: 'revealAccount',
        params: Type.Object({ memberId: Id('member') }),
        body: Type.Object({ reason: Reason }, { additionalProperties: false }),
      }),
    },
    async request => {
      const partnerId = await requireRole(db, request, ['admin', 'payroll'])
      const { memberId } = request.params
      return await db.transaction().execute(async tx => {
        const member = await members.find(tx, { partnerId, memberId })
        if (member.accountDetails === null) throw problem('NotFound', 'The member has no bank account')
        const details = { reason: request.body.reason, lastFour: lastFour(member.accountDetails) }
        const change = { action: 'member.reveal', resourceId: memberId, details } as const
        await auditLog.record(tx, { partnerId, actor: actorOf(request), change, now: request.receivedAt })
        return { accountDetails: member.accountDetails }
      })
    },
  )
}
