import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import type { Reader } from '../../database/database.ts'
import { brokenConstraint } from '../../database/errors.ts'
import { lockByName } from '../../database/named-locks.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import { strictObject } from '../../kernel/schemas.ts'
import { listPartners, type Mode } from '../../partners/partners.ts'
import { hasOperator } from '../../users/accounts.ts'
import { deleteLinks, isLink, useLink } from '../../users/links.ts'
import { hashPassword, requireGoodPassword } from '../../users/passwords.ts'
import { endSession, idleExpiryOf, listSessions, type SignedIn } from '../../users/sessions.ts'
import { actorOfUser, type NewSession, openSession, signInByPassword } from '../../users/sign-in.ts'
import { createUser, rolesByPartner } from '../../users/users.ts'
import { type Call, consoleOperation, named, type OperationResponse } from '../operation.ts'
import { endedSessionCookie, isLoopback, originOf, requirePrivateConnection, sessionCookies } from './browser.ts'
import { Code, Email, Password, PersonName, Token } from './schema.ts'

const getConsoleSession = consoleOperation({
  route: 'GET /console/v1/session',
  console: 'user',
  async read(reader, { signedIn, context: { mode } }) {
    return { body: await describeSession(reader, { signedIn, mode }) }
  },
})

const signIn = consoleOperation({
  route: 'POST /console/v1/sign-in',
  console: 'stranger',
  body: strictObject({ email: Email, password: Password, totp: Type.Optional(Code) }),
  async run(call, { read }) {
    requirePrivateConnection(call)
    const { db, mode } = call.context
    const { email, password, totp: code } = call.body
    const from = originOf(call)
    const created = await signInByPassword(db, { email, password, code, from, mode, now: call.receivedAt })
    return await read(reader => signedInResponse(reader, call, created))
  },
})

const signInByLink = consoleOperation({
  route: 'POST /console/v1/sign-in/link',
  console: 'stranger',
  body: strictObject({ token: Token }),
  async run(call, { write }) {
    requirePrivateConnection(call)
    const { mode } = call.context
    const { receivedAt: now } = call
    // The terminal or the log of a sandbox may be visible elsewhere.
    if (mode === 'live' || !isLoopback(call.browser.ip)) throw linkRefused()
    return await write(async tx => {
      const link = await useLink(tx, { token: call.body.token, purpose: 'sign_in', now })
      if (link?.userId == null) throw linkRefused()
      const created = await openSession(tx, { userId: link.userId, method: 'link', mode, from: originOf(call), now })
      return await signedInResponse(tx, call, created)
    })
  },
})

const setUpConsole = consoleOperation({
  route: 'POST /console/v1/set-up',
  console: 'founder',
  body: strictObject({ token: Token, email: Email, name: PersonName, password: Password }),
  async run(call, { write }) {
    requirePrivateConnection(call)
    const { db, mode } = call.context
    const { token, email, name, password } = call.body
    const { receivedAt: now } = call
    if (!(await isLink(db, { token, purpose: 'set_up', now }))) throw linkRefused()
    requireGoodPassword(password, { email, name })
    const passwordHash = await hashPassword(password)
    const from = originOf(call)
    return await write(async tx => {
      await lockByName(tx, 'user', 'set-up')
      if ((await useLink(tx, { token, purpose: 'set_up', now })) === undefined) throw linkRefused()
      await deleteLinks(tx, 'set_up')
      if (await hasOperator(tx)) throw problem('Conflict', 'The console already has an operator; sign in')
      const user = await createUser(tx, { email, name, isOperator: true, passwordHash, now }).catch(error => {
        throw brokenConstraint(error) === 'one_user_per_email'
          ? problem('Conflict', `${email} already has a user here; set the console up with another address`)
          : error
      })
      // Not in the response's `audit`: the author is the new user, not the caller.
      const change = {
        action: 'user.create',
        resourceId: user.id,
        details: { by: 'set-up', isOperator: true },
      } as const
      await auditLog.record(tx, { partnerId: null, actor: actorOfUser(user.id, from), change, now })
      const created = await openSession(tx, { userId: user.id, method: 'link', mode, from, now })
      return await signedInResponse(tx, call, created)
    })
  },
})

const signOut = consoleOperation({
  route: 'POST /console/v1/sign-out',
  console: 'user',
  async write(tx, call) {
    const { user, session } = call.signedIn
    await endSession(tx, { userId: user.id, sessionId: session.id })
    return {
      body: { message: 'OK' },
      headers: { 'set-cookie': endedSessionCookie(call) },
      resourceId: user.id,
      audit: { action: 'user.sign_out', details: {} },
    }
  },
})

const getConsoleSessions = consoleOperation({
  route: 'GET /console/v1/sessions',
  console: 'user',
  async read(reader, { signedIn: { user, session: current }, receivedAt: now }) {
    const sessions = await listSessions(reader, { userId: user.id, now })
    return { body: { sessions: sessions.map(each => ({ ...each, isCurrent: each.id === current.id })) } }
  },
})

const endConsoleSession = consoleOperation({
  route: 'DELETE /console/v1/sessions/:sessionId',
  console: 'user',
  async write(tx, { signedIn: { user }, params: { sessionId } }) {
    if (!(await endSession(tx, { userId: user.id, sessionId }))) throw problem('NotFound', 'There is no such session')
    const audit = { action: 'user.end_session', details: { session: sessionId } } as const
    return { body: { message: 'OK' }, resourceId: user.id, audit }
  },
})

/** Signing in and out, and the sessions of a user. */
export const sessionOperations = named({
  getConsoleSession,
  signIn,
  signInByLink,
  setUpConsole,
  signOut,
  getConsoleSessions,
  endConsoleSession,
})

/** Describes a new session, and sends its cookies. */
export async function signedInResponse(
  reader: Reader,
  call: Pick<Call, 'browser' | 'context'>,
  { signedIn, ...tokens }: NewSession,
): Promise<OperationResponse> {
  const body = await describeSession(reader, { signedIn, mode: call.context.mode })
  return { body, headers: { 'set-cookie': sessionCookies(call, tokens) } }
}

// The maximum for a menu. Operators find other partners by searching.
const partnersMax = 1_000

/** Returns the facts about its user that a page of the console needs. */
async function describeSession(
  reader: Reader,
  { signedIn: { user, session }, mode }: { signedIn: SignedIn; mode: Mode },
) {
  const { id, name, email, hasTotp, isOperator } = user
  const roles = await rolesByPartner(reader, id)
  const partners = (await listPartners(reader)).filter(partner => isOperator || roles.has(partner.id))
  return {
    user: { id, name, email, hasTotp },
    mode,
    isOperator,
    partners: partners
      .slice(0, partnersMax)
      .map(({ id, name, timeZone }) => ({ id, name, timeZone, roles: roles.get(id) ?? [] })),
    idleExpiresAt: idleExpiryOf(session),
    expiresAt: session.expiresAt,
  }
}

export function linkRefused(): Problem {
  return problem('SessionRefused', 'The link is unknown, was already used or has expired; ask for a new one', {
    path: 'token',
  })
}
