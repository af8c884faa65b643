import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import { requireUser, setPassword } from '../../users/accounts.ts'
import { isLink, useLink } from '../../users/links.ts'
import { hashPassword, requireGoodPassword } from '../../users/passwords.ts'
import { endSessions } from '../../users/sessions.ts'
import { actorOfUser, requirePassword } from '../../users/sign-in.ts'
import * as totp from '../../users/totp.ts'
import { actorOf } from '../admission/actor.ts'
import type { ApiContext, App } from '../server/server.ts'
import { originOf, requirePrivateConnection } from './browser.ts'
import { hiddenOperation, userOf } from './hidden-operation.ts'
import { Code, Password, strict, Token } from './schema.ts'
import { linkRefused } from './session-routes.ts'

/** The password and the second factor of a user. */
export function accountRoutes(app: App, { db, publicUrl, sealer }: ApiContext): void {
  const config = { console: 'user' } as const

  app.post(
    '/console/v1/password',
    {
      config,
      schema: hiddenOperation({
        id: 'changePassword',
        body: Type.Object({ password: Password, newPassword: Password }, strict),
      }),
    },
    async request => {
      const { user, session } = userOf(request)
      const { body, receivedAt: now } = request
      const from = originOf(request, publicUrl)
      requireGoodPassword(body.newPassword, user)
      const replacedHash = await requirePassword(db, { userId: user.id, password: body.password, from, now })
      const passwordHash = await hashPassword(body.newPassword)
      await db.transaction().execute(async tx => {
        const by = { actor: actorOf(request), now }
        await setPassword(tx, { userId: user.id, passwordHash, replacedHash, exceptSessionId: session.id, ...by })
      })
      return { message: 'OK' }
    },
  )

  // For a lost password: the link identifies the user, and the next sign-in asks for the second factor.
  app.post(
    '/console/v1/password/reset',
    {
      config: { console: 'stranger' },
      schema: hiddenOperation({
        id: 'resetPassword',
        body: Type.Object({ token: Token, newPassword: Password }, strict),
      }),
    },
    async request => {
      requirePrivateConnection(request, publicUrl)
      const { body, receivedAt: now } = request
      if (!(await isLink(db, { token: body.token, purpose: 'password', now }))) throw linkRefused()
      const passwordHash = await hashPassword(body.newPassword)
      await db.transaction().execute(async tx => {
        const link = await useLink(tx, { token: body.token, purpose: 'password', now })
        if (link?.userId == null) throw linkRefused()
        // A refused password rolls back the use of the link.
        requireGoodPassword(body.newPassword, await requireUser(tx, link.userId))
        const actor = actorOfUser(link.userId, originOf(request, publicUrl))
        await setPassword(tx, { userId: link.userId, passwordHash, actor, now })
      })
      return { message: 'OK' }
    },
  )

  app.post(
    '/console/v1/totp',
    { config, schema: hiddenOperation({ id: 'beginTotp', body: Type.Object({ password: Password }, strict) }) },
    async request => {
      const { user } = userOf(request)
      const { body, receivedAt: now } = request
      await requirePassword(db, { userId: user.id, password: body.password, from: originOf(request, publicUrl), now })
      return await db.transaction().execute(tx => totp.begin(tx, { user, sealer }))
    },
  )

  app.post(
    '/console/v1/totp/confirm',
    { config, schema: hiddenOperation({ id: 'confirmTotp', body: Type.Object({ code: Code }, strict) }) },
    async request => {
      const { user, session } = userOf(request)
      const { body, receivedAt: now } = request
      return await db.transaction().execute(async tx => {
        const recoveryCodes = await totp.confirm(tx, { userId: user.id, code: body.code, sealer, now })
        // Ends the sessions that were opened without the second factor.
        await endSessions(tx, { userId: user.id, exceptSessionId: session.id })
        const change = { action: 'user.add_totp', resourceId: user.id, details: {} } as const
        await auditLog.record(tx, { partnerId: null, actor: actorOf(request), change, now })
        return { recoveryCodes }
      })
    },
  )

  app.delete(
    '/console/v1/totp',
    { config, schema: hiddenOperation({ id: 'removeTotp', body: Type.Object({ password: Password }, strict) }) },
    async request => {
      const { user } = userOf(request)
      const { body, receivedAt: now } = request
      await requirePassword(db, { userId: user.id, password: body.password, from: originOf(request, publicUrl), now })
      await db.transaction().execute(tx => totp.remove(tx, { userId: user.id, actor: actorOf(request), now }))
      return { message: 'OK' }
    },
  )
}
