import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import type { Db } from '../../database/database.ts'
import { brokenConstraint } from '../../database/errors.ts'
import { lockByName } from '../../database/named-locks.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import { Id } from '../../kernel/ids.ts'
import { listPartners, type Mode } from '../../partners/partners.ts'
import { hasOperator } from '../../users/accounts.ts'
import { deleteLinks, isLink, useLink } from '../../users/links.ts'
import { hashPassword, requireGoodPassword } from '../../users/passwords.ts'
import { endSession, idleExpiryOf, listSessions, type SignedIn } from '../../users/sessions.ts'
import { actorOfUser, type NewSession, openSession, signInByPassword } from '../../users/sign-in.ts'
import { createUser, rolesByPartner } from '../../users/users.ts'
import { actorOf } from '../admission/actor.ts'
import type { ApiContext, App } from '../server/server.ts'
import { isLoopback, originOf, removeSessionCookie, requirePrivateConnection, setSessionCookie } from './browser.ts'
import { hiddenOperation, userOf } from './hidden-operation.ts'
import { Code, Email, Password, PersonName, strict, Token } from './schema.ts'

/** Signing in and out, and the sessions of a user. */
export function sessionRoutes(app: App, { db, mode, publicUrl, sealer }: ApiContext): void {
  app.get(
    '/console/v1/session',
    { config: { console: 'user' }, schema: hiddenOperation({ id: 'getConsoleSession' }) },
    async request => await describeSession(db, { signedIn: userOf(request), mode }),
  )

  app.post(
    '/console/v1/sign-in',
    {
      config: { console: 'stranger' },
      schema: hiddenOperation({
        id: 'signIn',
        body: Type.Object({ email: Email, password: Password, totp: Type.Optional(Code) }, strict),
      }),
    },
    async (request, reply) => {
      requirePrivateConnection(request, publicUrl)
      const { body, receivedAt: now } = request
      const created = await signInByPassword(db, {
        email: body.email,
        password: body.password,
        code: body.totp,
        from: originOf(request, publicUrl),
        mode,
        sealer,
        now,
      })
      setSessionCookie(request, reply, { ...created, publicUrl })
      return await describeSession(db, { signedIn: created.signedIn, mode })
    },
  )

  app.post(
    '/console/v1/sign-in/link',
    {
      config: { console: 'stranger' },
      schema: hiddenOperation({ id: 'signInByLink', body: Type.Object({ token: Token }, strict) }),
    },
    async (request, reply) => {
      requirePrivateConnection(request, publicUrl)
      // The terminal or the log of a sandbox may be visible elsewhere.
      if (mode === 'live' || !isLoopback(request.ip)) throw linkRefused()
      const { body, receivedAt: now } = request
      const from = originOf(request, publicUrl)
      const created = await db.transaction().execute(async tx => {
        const link = await useLink(tx, { token: body.token, purpose: 'sign_in', now })
        if (link?.userId == null) throw linkRefused()
        return await openSession(tx, { userId: link.userId, method: 'link', mode, from, now })
      })
      setSessionCookie(request, reply, { ...created, publicUrl })
      return await describeSession(db, { signedIn: created.signedIn, mode })
    },
  )

  app.post(
    '/console/v1/set-up',
    {
      config: { console: 'founder' },
      schema: hiddenOperation({
        id: 'setUpConsole',
        body: Type.Object({ token: Token, email: Email, name: PersonName, password: Password }, strict),
      }),
    },
    async (request, reply) => {
      requirePrivateConnection(request, publicUrl)
      const { body, receivedAt: now } = request
      if (!(await isLink(db, { token: body.token, purpose: 'set_up', now }))) throw linkRefused()
      requireGoodPassword(body.password, body)
      const passwordHash = await hashPassword(body.password)
      const from = originOf(request, publicUrl)
      const created = await db.transaction().execute(async (tx): Promise<NewSession> => {
        await lockByName(tx, 'user', 'set-up')
        if ((await useLink(tx, { token: body.token, purpose: 'set_up', now })) === undefined) throw linkRefused()
        await deleteLinks(tx, 'set_up')
        if (await hasOperator(tx)) throw problem('Conflict', 'The console already has an operator; sign in')
        const { email, name } = body
        const created = { email, name, isOperator: true, passwordHash, now }
        const user = await createUser(tx, created).catch(error => {
          throw brokenConstraint(error) === 'one_user_per_email'
            ? problem('Conflict', `${email} already has a user here; set the console up with another address`)
            : error
        })
        const actor = actorOfUser(user.id, from)
        const change = {
          action: 'user.create',
          resourceId: user.id,
          details: { by: 'set-up', isOperator: true },
        } as const
        await auditLog.record(tx, { partnerId: null, actor, change, now })
        return await openSession(tx, { userId: user.id, method: 'link', mode, from, now })
      })
      setSessionCookie(request, reply, { ...created, publicUrl })
      return await describeSession(db, { signedIn: created.signedIn, mode })
    },
  )

  app.post(
    '/console/v1/sign-out',
    { config: { console: 'user' }, schema: hiddenOperation({ id: 'signOut' }) },
    async (request, reply) => {
      const { user, session } = userOf(request)
      await db.transaction().execute(async tx => {
        await endSession(tx, { userId: user.id, sessionId: session.id })
        const change = { action: 'user.sign_out', resourceId: user.id, details: {} } as const
        await auditLog.record(tx, { partnerId: null, actor: actorOf(request), change, now: request.receivedAt })
      })
      removeSessionCookie(request, reply, publicUrl)
      return { message: 'OK' }
    },
  )

  app.get(
    '/console/v1/sessions',
    { config: { console: 'user' }, schema: hiddenOperation({ id: 'getConsoleSessions' }) },
    async request => {
      const { user, session: current } = userOf(request)
      const sessions = await listSessions(db, { userId: user.id, now: request.receivedAt })
      return { sessions: sessions.map(each => ({ ...each, isCurrent: each.id === current.id })) }
    },
  )

  app.delete(
    '/console/v1/sessions/:sessionId',
    {
      config: { console: 'user' },
      schema: hiddenOperation({ id: 'endConsoleSession', params: Type.Object({ sessionId: Id('userSession') }) }),
    },
    async request => {
      const { user } = userOf(request)
      const { sessionId } = request.params
      await db.transaction().execute(async tx => {
        if (!(await endSession(tx, { userId: user.id, sessionId })))
          throw problem('NotFound', 'There is no such session')
        const change = { action: 'user.end_session', resourceId: user.id, details: { session: sessionId } } as const
        await auditLog.record(tx, { partnerId: null, actor: actorOf(request), change, now: request.receivedAt })
      })
      return { message: 'OK' }
    },
  )
}

// The maximum for a menu. Operators find other partners by searching.
const partnersMax = 1_000

/** Returns the facts about its user that a page of the console needs. */
export async function describeSession(
  db: Db,
  { signedIn: { user, session }, mode }: { signedIn: SignedIn; mode: Mode },
) {
  const { id, name, email, hasTotp, isOperator } = user
  const roles = await rolesByPartner(db, id)
  const partners = (await listPartners(db)).filter(partner => isOperator || roles.has(partner.id))
  return {
    user: { id, name, email, hasTotp },
    mode,
    isOperator,
    partners: partners
      .slice(0, partnersMax)
      .map(({ id, name, timeZone }) => ({ id, name, timeZone, roles: roles.get(id) ?? [] })),
    idleExpiresAt: idleExpiryOf(session).toISOString(),
    expiresAt: session.expiresAt.toISOString(),
  }
}

export function linkRefused(): Problem {
  return problem('SessionRefused', 'The link is unknown, was already used or has expired; ask for a new one', {
    path: 'token',
  })
}
