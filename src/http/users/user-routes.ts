import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import { brokenConstraint } from '../../database/errors.ts'
import { problem } from '../../errors.ts'
import { Id } from '../../ids.ts'
import { findPartner } from '../../partners/partners.ts'
import { listUsers, requireUser, setRoles, setUser } from '../../users/accounts.ts'
import * as invitations from '../../users/invitations.ts'
import { createPasswordLink, linkTo } from '../../users/links.ts'
import { hashPassword, requireGoodPassword } from '../../users/passwords.ts'
import { requireStillAllowed } from '../../users/rights.ts'
import { actorOfUser, type NewSession, openSession } from '../../users/sign-in.ts'
import * as totp from '../../users/totp.ts'
import { createUser, findByEmail } from '../../users/users.ts'
import { actorOf } from '../actor.ts'
import { cutPage, pageOf, pageQuery } from '../list.ts'
import type { ApiContext, App } from '../server.ts'
import { ownOrigin } from '../session-admission.ts'
import { findUserOfRequest, requireRole } from '../user-admission.ts'
import { originOf, requirePrivateConnection, setSessionCookie } from './browser.ts'
import { hiddenOperation, userOf } from './hidden-operation.ts'
import { Email, Password, PersonName, Roles, strict, Token } from './schema.ts'
import { describeSession, linkRefused } from './session-routes.ts'

/**
 * The users of a partner, for its admins and for operators; without the header `openwage-partner`, the users of the installation, for
 * operators.
 */
export function userManagementRoutes(app: App, { db, mode, publicUrl }: ApiContext): void {
  const config = { console: 'user' } as const
  const params = Type.Object({ userId: Id('user') })

  app.get(
    '/console/v1/users',
    { config, schema: hiddenOperation({ id: 'getUsers', query: Type.Object(pageQuery, strict) }) },
    async request => {
      const partnerId = await managedPartner(request)
      const { skip, take } = pageOf(request.query)
      const found = await listUsers(db, { partnerId, skip, take: take + 1 })
      const { rows: users, hasMore } = cutPage(found, { take })
      return { users, hasMore, skip, take }
    },
  )

  app.patch(
    '/console/v1/users/:userId',
    {
      config,
      schema: hiddenOperation({
        id: 'updateUser',
        params,
        body: Type.Object(
          {
            roles: Type.Optional(Roles),
            isOperator: Type.Optional(Type.Boolean()),
            isDisabled: Type.Optional(Type.Boolean()),
          },
          { minProperties: 1, ...strict },
        ),
      }),
    },
    async request => {
      const partnerId = await managedPartner(request)
      const { roles, ...rights } = request.body
      const { userId } = request.params
      if ((partnerId === null) === (roles !== undefined))
        throw problem(
          'BodyValidation',
          'Roles need the header openwage-partner, and go without isOperator and isDisabled, which need its absence',
          { path: 'roles' },
        )
      if (partnerId !== null && Object.keys(rights).length > 0)
        throw problem('BodyValidation', 'Only operators change this, without the header openwage-partner', {
          path: Object.keys(rights)[0],
        })
      const by = { userId, actor: actorOf(request), now: request.receivedAt }
      await db.transaction().execute(async tx => {
        if (partnerId === null) await setUser(tx, { ...by, ...rights })
        else await setRoles(tx, { ...by, partnerId, roles: roles ?? [] })
      })
      return { message: 'OK' }
    },
  )

  // Removes a user from the partner, or disables one. Rows stay: the audit log names their ids.
  app.delete(
    '/console/v1/users/:userId',
    { config, schema: hiddenOperation({ id: 'removeUser', params }) },
    async request => {
      const partnerId = await managedPartner(request)
      const by = { userId: request.params.userId, actor: actorOf(request), now: request.receivedAt }
      await db.transaction().execute(async tx => {
        if (partnerId === null) await setUser(tx, { ...by, isDisabled: true })
        else await setRoles(tx, { ...by, partnerId, roles: [] })
      })
      return { message: 'OK' }
    },
  )

  app.delete(
    '/console/v1/users/:userId/totp',
    { config: { console: 'operator' }, schema: hiddenOperation({ id: 'removeTotpOfUser', params }) },
    async request => {
      const { userId } = request.params
      requireOther(request, userId)
      const actor = actorOf(request)
      await db.transaction().execute(async tx => {
        await requireStillAllowed(tx, { actor, partnerId: null, userId })
        await requireUser(tx, userId)
        await totp.remove(tx, { userId, actor, now: request.receivedAt })
      })
      return { message: 'OK' }
    },
  )

  app.post(
    '/console/v1/users/:userId/password-link',
    { config: { console: 'operator' }, schema: hiddenOperation({ id: 'createPasswordLink', params }) },
    async request => {
      const { userId } = request.params
      requireOther(request, userId)
      const actor = actorOf(request)
      const { token, expiresAt } = await db.transaction().execute(async tx => {
        await requireStillAllowed(tx, { actor, partnerId: null, userId })
        await requireUser(tx, userId)
        return await createPasswordLink(tx, { userId, actor, now: request.receivedAt })
      })
      return { url: linkTo('password', token, ownOrigin(request, publicUrl)), expiresAt: expiresAt.toISOString() }
    },
  )

  app.get('/console/v1/invitations', { config, schema: hiddenOperation({ id: 'getInvitations' }) }, async request => {
    const partnerId = await managedPartner(request)
    return { invitations: await invitations.listInvitations(db, { partnerId, now: request.receivedAt }) }
  })

  app.post(
    '/console/v1/invitations',
    {
      config,
      schema: hiddenOperation({
        id: 'inviteUser',
        body: Type.Object({ email: Email, roles: Type.Optional(Roles) }, strict),
      }),
    },
    async (request, reply) => {
      const partnerId = await managedPartner(request)
      const { email, roles } = request.body
      if ((partnerId === null) !== (roles === undefined))
        throw problem(
          'BodyValidation',
          partnerId === null
            ? 'An invitation as an operator has no roles; send the header openwage-partner to invite to a partner'
            : 'An invitation to a partner needs roles',
          { path: 'roles' },
        )
      const created = await db.transaction().execute(tx =>
        invitations.invite(tx, {
          email,
          partnerId,
          roles: roles ?? [],
          actor: actorOf(request),
          now: request.receivedAt,
        }),
      )
      const url = linkTo('invitation', created.token, ownOrigin(request, publicUrl))
      return reply.code(201).send({ ...created.invitation, url })
    },
  )

  app.delete(
    '/console/v1/invitations/:invitationId',
    {
      config,
      schema: hiddenOperation({
        id: 'deleteInvitation',
        params: Type.Object({ invitationId: Id('invitation') }),
      }),
    },
    async request => {
      const partnerId = await managedPartner(request)
      const { invitationId: id } = request.params
      const by = { actor: actorOf(request), now: request.receivedAt }
      await db.transaction().execute(tx => invitations.deleteInvitation(tx, { id, partnerId, ...by }))
      return { message: 'OK' }
    },
  )

  app.post(
    '/console/v1/invitations/find',
    {
      config: { console: 'founder' },
      schema: hiddenOperation({ id: 'findInvitation', body: Type.Object({ token: Token }, strict) }),
    },
    async request => {
      const { body, receivedAt: now } = request
      const invitation = await invitations.findInvitation(db, { token: body.token, now })
      if (invitation === undefined) throw linkRefused()
      const { email, roles, partnerId, expiresAt } = invitation
      const partner = partnerId === null ? undefined : await findPartner(db, partnerId)
      const hasUser = (await findByEmail(db, email)) !== undefined
      return { email, roles, partner: partner && { id: partner.id, name: partner.name }, hasUser, expiresAt }
    },
  )

  // A person without a user here chooses a name and a password. A person who has one signs in first, so that the link alone
  // takes over no account.
  app.post(
    '/console/v1/invitations/accept',
    {
      config: { console: 'founder' },
      schema: hiddenOperation({
        id: 'acceptInvitation',
        body: Type.Object({ token: Token, name: Type.Optional(PersonName), password: Type.Optional(Password) }, strict),
      }),
    },
    async (request, reply) => {
      requirePrivateConnection(request, publicUrl)
      const { body, receivedAt: now } = request
      const from = originOf(request, publicUrl)
      const invitation = await invitations.findInvitation(db, { token: body.token, now })
      if (invitation === undefined) throw linkRefused()
      const { email } = invitation
      const current = await findUserOfRequest(db, request, { mode, publicUrl })
      const known = await findByEmail(db, email)
      if (known !== undefined && known.id !== current?.user.id)
        throw problem('Conflict', `${email} has a user here: sign in as that user, then open the link again`)
      const { name = '', password = '' } = body
      if (known === undefined) {
        if (name === '' || password === '')
          throw problem('BodyValidation', 'A new user needs a name and a password', {
            path: name === '' ? 'name' : 'password',
          })
        requireGoodPassword(password, { email, name })
      }
      const passwordHash = known === undefined ? await hashPassword(password) : null
      const created = await db.transaction().execute(async (tx): Promise<NewSession> => {
        let userId = known?.id
        if (userId === undefined) {
          const user = await createUser(tx, { email, name, isOperator: false, passwordHash, now }).catch(error => {
            throw brokenConstraint(error) === 'one_user_per_email'
              ? problem('Conflict', `${email} has a user here that is disabled; ask an operator`)
              : error
          })
          userId = user.id
          const change = { action: 'user.create', resourceId: userId, details: { by: 'invitation' } } as const
          await auditLog.record(tx, { partnerId: null, actor: actorOfUser(userId, from), change, now })
        }
        const actor = actorOfUser(userId, from)
        if (!(await invitations.accept(tx, { invitation, userId, actor, now }))) throw linkRefused()
        return await openSession(tx, { userId, method: current?.session.method ?? 'password', mode, from, now })
      })
      setSessionCookie(request, reply, { ...created, publicUrl })
      return await describeSession(db, { signedIn: created.signedIn, mode })
    },
  )

  /**
   * The partner whose users the request is about; null for those of the installation.
   * @throws Problem `NotFound` if the user has no role with the partner, `Forbidden` if it is no admin of it
   */
  async function managedPartner(request: FastifyRequest): Promise<string | null> {
    const { user } = userOf(request)
    if (request.headers['openwage-partner'] === undefined) {
      if (user.isOperator) return null
      throw problem('Forbidden', 'Only an operator of this installation may do this; send the header openwage-partner')
    }
    return await requireRole(db, request, ['admin'])
  }
}

/** @throws Problem `Forbidden` for one's own second factor or password, which needs the password */
function requireOther(request: FastifyRequest, userId: string): void {
  if (userOf(request).user.id === userId) throw problem('Forbidden', 'Change your own in your account')
}
