import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import type { Db } from '../../database/database.ts'
import { problem } from '../../errors.ts'
import { listPartners, type Mode } from '../../partners/partners.ts'
import { useLink } from '../../users/links.ts'
import { createSession, endSession, idleExpiryOf, type SignedIn } from '../../users/sessions.ts'
import { findUser, rolesByPartner } from '../../users/users.ts'
import { operation } from '../operation.ts'
import type { ApiContext, App } from '../server.ts'
import { isSecure, loopbackCookieName, requireOwnPage, secureCookieName } from '../user-admission.ts'
import { actorOf } from '../with-idempotency.ts'
import { SessionOfUser, Token } from './schema.ts'

const tag = 'Console'
const done = { status: 200, description: 'Done.', schema: Type.Object({ message: Type.Literal('OK') }) } as const
const signedIn = {
  status: 200,
  description: 'The session. Its token is in the cookie.',
  schema: SessionOfUser,
} as const

/**
 * Signing in to the console. These routes are no part of the partner API and not in its OpenAPI document: they are for a
 * browser, which proves who it is with a cookie.
 */
export function userRoutes(app: App, { db, mode, publicUrl, now }: ApiContext): void {
  app.get(
    '/console/v1/session',
    {
      config: { console: 'user' },
      schema: hidden(operation({ id: 'getConsoleSession', tag, summary: 'Get the session', success: signedIn })),
    },
    async request => await describe(db, { signedIn: userOf(request), mode }),
  )

  app.post(
    '/console/v1/sign-in/link',
    {
      schema: hidden(
        operation({
          id: 'signInByLink',
          tag,
          summary: 'Sign in by a one-time link',
          public: true,
          body: Type.Object({ token: Token }, { additionalProperties: false }),
          success: signedIn,
        }),
      ),
    },
    async (request, reply) => {
      requireOwnPage(request, publicUrl)
      requireCookie(request, publicUrl)
      // The terminal or the log of a sandbox may be seen from elsewhere.
      if (mode === 'live' || !isLoopback(request.ip)) throw linkRefused()
      const { receivedAt: at } = request
      const created = await db.transaction().execute(async tx => {
        const link = await useLink(tx, { token: request.body.token, purpose: 'sign_in', now: at })
        const user = link?.userId == null ? undefined : await findUser(tx, link.userId)
        if (user === undefined) throw linkRefused()
        const { session, token } = await createSession(tx, {
          ...{ userId: user.id, mode, method: 'link', address: request.ip, now: at },
          userAgent: request.headers['user-agent'],
        })
        request.user = { user, session }
        const change = { action: 'user.sign_in', resourceId: user.id, details: { method: 'link' } } as const
        await auditLog.record(tx, { partnerId: null, actor: actorOf(request), change, now: at })
        return { signedIn: { user, session }, token }
      })
      setCookie(request, reply, { token: created.token, publicUrl })
      return await describe(db, { signedIn: created.signedIn, mode })
    },
  )

  app.post(
    '/console/v1/sign-out',
    {
      config: { console: 'user' },
      schema: hidden(operation({ id: 'signOut', tag, summary: 'Sign out', success: done })),
    },
    async (request, reply) => {
      const { user, session } = userOf(request)
      await db.transaction().execute(async tx => {
        await endSession(tx, { userId: user.id, sessionId: session.id })
        const change = { action: 'user.sign_out', resourceId: user.id, details: {} } as const
        await auditLog.record(tx, { partnerId: null, actor: actorOf(request), change, now: now() })
      })
      setCookie(request, reply, { token: '', publicUrl })
      return { message: 'OK' }
    },
  )
}

/** Keeps a route out of the OpenAPI document of the partner API. */
function hidden<Schema extends object>(schema: Schema): Schema & { hide: true } {
  return { ...schema, hide: true }
}

function userOf({ user }: FastifyRequest): SignedIn {
  if (user === undefined) throw new Error('The route does not require a user')
  return user
}

async function describe(db: Db, { signedIn: { user, session }, mode }: { signedIn: SignedIn; mode: Mode }) {
  const { id, name, email, hasTotp, isOperator } = user
  const roles = await rolesByPartner(db, id)
  const partners = (await listPartners(db)).filter(partner => isOperator || roles.has(partner.id))
  return {
    user: { id, name, email, hasTotp },
    mode,
    isOperator,
    partners: partners
      .slice(0, partnersMax)
      .map(partner => ({ id: partner.id, name: partner.name, roles: roles.get(partner.id) ?? [] })),
    idleExpiresAt: idleExpiryOf(session).toISOString(),
    expiresAt: session.expiresAt.toISOString(),
  }
}

// What a menu can show. Operators find the others by searching.
const partnersMax = 1_000

/**
 * Sets the cookie, or removes it if the token is empty. The browser drops it when it closes; the server, at the latest, when the
 * session expires.
 */
function setCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  { token, publicUrl }: { token: string; publicUrl: string | undefined },
): void {
  const secure = isSecure(request, publicUrl)
  reply.header(
    'set-cookie',
    [
      `${secure ? secureCookieName : loopbackCookieName}=${token}`,
      'Path=/',
      'HttpOnly',
      'SameSite=Strict',
      ...(secure ? ['Secure'] : []),
      ...(token === '' ? ['Max-Age=0'] : []),
    ].join('; '),
  )
}

/**
 * Refuses to send a session over a connection that others can read.
 * @throws Problem `Forbidden`
 */
function requireCookie(request: FastifyRequest, publicUrl: string | undefined): void {
  if (isSecure(request, publicUrl)) return
  if (isLoopback(request.ip) && isLoopback(request.hostname.replace(/^\[|\]$/g, ''))) return
  throw problem(
    'Forbidden',
    'Signing in needs https: set OPENWAGE_PUBLIC_URL to the https address of the proxy, or open the console on this machine',
  )
}

function isLoopback(host: string): boolean {
  const bare = host.replace(/^::ffff:/, '')
  return host === 'localhost' || host === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
}

function linkRefused() {
  return problem('SessionRefused', 'The link is unknown, was used or has expired; ask for a new one', { path: 'token' })
}
