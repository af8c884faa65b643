import { Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import { lastFour } from '../bank-accounts/rules.ts'
import { actorOf } from '../http/admission/actor.ts'
import { requireRole } from '../http/admission/user-admission.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { hiddenOperation } from '../http/users/hidden-operation.ts'
import { withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { auditOf } from './audit.ts'
import * as members from './members.ts'
import { release } from './restrictions.ts'

const Reason = Type.String({ pattern: '^(?=.*\\S)[^\\x00-\\x1f\\x7f]*$', minLength: 3, maxLength: 200 })

const params = Type.Object({ memberId: Id('member') })

/** Operations on one member for users of the console. No partner's server needs them. */
export function memberConsoleRoutes(app: App, { db }: ApiContext): void {
  // Reveals the bank account, which every other response to a user masks.
  app.post(
    '/console/v1/members/:memberId/account',
    {
      config: { console: 'user' },
      schema: hiddenOperation({
        id: 'revealAccount',
        params,
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

  // `PUT /v1/members/{id}` takes the whole profile, but users see only a masked bank account. Idempotent.
  app.post(
    '/console/v1/members/:memberId/reinstate',
    { config: { scope: 'members:write' }, schema: hiddenOperation({ id: 'reinstateMember', params }) },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now } = request
        const { memberId } = request.params
        const command = { type: 'List', memberId, update: {} } as const
        const reinstated = await members.change(tx, { partner, command, now })
        const audit = auditOf('member.reinstate', reinstated)
        return { status: 200, body: { status: reinstated.after.status }, resourceId: memberId, audit }
      }),
  )

  // Like `midmonth member release`, for operators only. Idempotent.
  app.post(
    '/console/v1/members/:memberId/release',
    {
      config: { console: 'user' },
      schema: hiddenOperation({
        id: 'releaseMember',
        params,
        body: Type.Object({ reason: Type.Optional(Reason) }, { additionalProperties: false }),
      }),
    },
    async request => {
      const partnerId = await requireRole(db, request, [])
      const { memberId } = request.params
      await db.transaction().execute(async tx => {
        const before = await release(tx, { partnerId, memberId })
        if (before.accountRefused === null && before.reviewReason === null) return
        const after = { accountRefused: null, reviewReason: null }
        const details = { before, after, reason: request.body.reason ?? null }
        const change = { action: 'member.release', resourceId: memberId, details } as const
        await auditLog.record(tx, { partnerId, actor: actorOf(request), change, now: request.receivedAt })
      })
      return { released: true }
    },
  )
}
