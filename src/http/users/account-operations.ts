import { strictObject } from '../../kernel/schemas.ts'
import { requireUser, setPassword } from '../../users/accounts.ts'
import { isLink, useLink } from '../../users/links.ts'
import { hashPassword, requireGoodPassword } from '../../users/passwords.ts'
import { endSessions } from '../../users/sessions.ts'
import { actorOfUser, requirePassword } from '../../users/sign-in.ts'
import * as totp from '../../users/totp.ts'
import { consoleOperation, named } from '../operation.ts'
import { originOf, requirePrivateConnection } from './browser.ts'
import { Code, Password, Token } from './schema.ts'
import { linkRefused } from './session-operations.ts'

const changePassword = consoleOperation({
  route: 'POST /console/v1/password',
  console: 'user',
  body: strictObject({ password: Password, newPassword: Password }),
  async run(call, { write }) {
    const { context, actor, receivedAt: now } = call
    const { user, session } = call.signedIn
    const { password, newPassword } = call.body
    requireGoodPassword(newPassword, user)
    const replacedHash = await requirePassword(context.db, { userId: user.id, password, from: originOf(call), now })
    const passwordHash = await hashPassword(newPassword)
    return await write(async tx => {
      const given = { userId: user.id, passwordHash, replacedHash, exceptSessionId: session.id }
      await setPassword(tx, { ...given, actor, now })
      return { body: { message: 'OK' } }
    })
  },
})

/** For a lost password: the link identifies the user, and the next sign-in asks for the second factor. */
const resetPassword = consoleOperation({
  route: 'POST /console/v1/password/reset',
  console: 'stranger',
  body: strictObject({ token: Token, newPassword: Password }),
  async run(call, { write }) {
    requirePrivateConnection(call)
    const { token, newPassword } = call.body
    const { context, receivedAt: now } = call
    if (!(await isLink(context.db, { token, purpose: 'password', now }))) throw linkRefused()
    const passwordHash = await hashPassword(newPassword)
    return await write(async tx => {
      const link = await useLink(tx, { token, purpose: 'password', now })
      if (link?.userId == null) throw linkRefused()
      // A refused password rolls back the use of the link.
      requireGoodPassword(newPassword, await requireUser(tx, link.userId))
      const actor = actorOfUser(link.userId, originOf(call))
      await setPassword(tx, { userId: link.userId, passwordHash, actor, now })
      return { body: { message: 'OK' } }
    })
  },
})

const beginTotp = consoleOperation({
  route: 'POST /console/v1/totp',
  console: 'user',
  body: strictObject({ password: Password }),
  async run(call, { write }) {
    const { context, receivedAt: now } = call
    const { user } = call.signedIn
    const { password } = call.body
    await requirePassword(context.db, { userId: user.id, password, from: originOf(call), now })
    return await write(async tx => ({ body: await totp.begin(tx, user) }))
  },
})

const confirmTotp = consoleOperation({
  route: 'POST /console/v1/totp/confirm',
  console: 'user',
  body: strictObject({ code: Code }),
  async write(tx, { body: { code }, signedIn: { user, session }, receivedAt: now }) {
    const recoveryCodes = await totp.confirm(tx, { userId: user.id, code, now })
    // Ends the sessions that were opened without the second factor.
    await endSessions(tx, { userId: user.id, exceptSessionId: session.id })
    return { body: { recoveryCodes }, resourceId: user.id, audit: { action: 'user.add_totp', details: {} } }
  },
})

const removeTotp = consoleOperation({
  route: 'DELETE /console/v1/totp',
  console: 'user',
  body: strictObject({ password: Password }),
  async run(call, { write }) {
    const { context, actor, receivedAt: now } = call
    const { user } = call.signedIn
    const { password } = call.body
    await requirePassword(context.db, { userId: user.id, password, from: originOf(call), now })
    return await write(async tx => {
      await totp.remove(tx, { userId: user.id, actor, now })
      return { body: { message: 'OK' } }
    })
  },
})

/** The password and the second factor of a user. */
export const accountOperations = named({ changePassword, resetPassword, beginTotp, confirmTotp, removeTotp })
