import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import type { Tx } from '../../database/database.ts'
import { brokenConstraint } from '../../database/errors.ts'
import { problem } from '../../kernel/errors.ts'
import { Id } from '../../kernel/ids.ts'
import { findPartner } from '../../partners/partners.ts'
import * as invitations from '../../users/invitations.ts'
import { linkTo } from '../../users/links.ts'
import { hashPassword, requireGoodPassword } from '../../users/passwords.ts'
import { actorOfUser, type NewSession, type Origin, openSession } from '../../users/sign-in.ts'
import { createUser, findByEmail } from '../../users/users.ts'
import { actorOf } from '../admission/actor.ts'
import { ownOrigin } from '../admission/session-admission.ts'
import { findUserOfRequest } from '../admission/user-admission.ts'
import type { ApiContext, App } from '../server/server.ts'
import { originOf, requirePrivateConnection, setSessionCookie } from './browser.ts'
import { hiddenOperation } from './hidden-operation.ts'
import { managedPartner } from './managed-partner.ts'
import { Email, Password, PersonName, Roles, strict, Token } from './schema.ts'
import { describeSession, linkRefused } from './session-routes.ts'

/** Invitations to a partner, by its admins and by operators; without the header `midmonth-partner`, invitations of operators. */
export function invitationRoutes(app: App, context: ApiContext): void {
  managedInvitationRoutes(app, context)
  openInvitationRoutes(app, context)
}

function managedInvitationRoutes(app: App, { db, publicUrl }: ApiContext): void {
  const config = { console: 'user' } as const

  app.get('/console/v1/invitations', { config, schema: hiddenOperation({ id: 'getInvitations' }) }, async request => {
    const partnerId = await managedPartner(db, request)
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
      const partnerId = await managedPartner(db, request)
      const { email, roles } = request.body
      if ((partnerId === null) !== (roles === undefined))
        throw problem(
          'BodyValidation',
          partnerId === null
            ? 'An invitation as an operator has no roles; send the header midmonth-partner to invite to a partner'
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
      const partnerId = await managedPartner(db, request)
      const { invitationId: id } = request.params
      const by = { actor: actorOf(request), now: request.receivedAt }
      await db.transaction().execute(tx => invitations.deleteInvitation(tx, { id, partnerId, ...by }))
      return { message: 'OK' }
    },
  )
}

/** For the person who has the link. */
function openInvitationRoutes(app: App, { db, mode, publicUrl }: ApiContext): void {
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

  // A new user chooses a name and a password. An existing user signs in first, so that the link is not enough to take over an
  // account.
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
        throw problem('Conflict', `${email} already has a user here; sign in as that user, then open the link again`)
      const { name = '', password = '' } = body
      if (known === undefined) requireNameAndPassword({ email, name, password })
      const passwordHash = known === undefined ? await hashPassword(password) : null
      const created = await db.transaction().execute(async (tx): Promise<NewSession> => {
        const userId = known?.id ?? (await createInvited(tx, { email, name, passwordHash, from, now }))
        const actor = actorOfUser(userId, from)
        if (!(await invitations.accept(tx, { invitation, userId, actor, now }))) throw linkRefused()
        return await openSession(tx, { userId, method: current?.session.method ?? 'password', mode, from, now })
      })
      setSessionCookie(request, reply, { ...created, publicUrl })
      return await describeSession(db, { signedIn: created.signedIn, mode })
    },
  )
}

/** @throws Problem `BodyValidation` */
function requireNameAndPassword(chosen: { email: string; name: string; password: string }): void {
  const missing = (['name', 'password'] as const).find(each => chosen[each] === '')
  if (missing !== undefined)
    throw problem('BodyValidation', 'A new user needs a name and a password', { path: missing })
  requireGoodPassword(chosen.password, chosen)
}

/** @throws Problem `Conflict` */
async function createInvited(
  tx: Tx,
  { from, now, ...person }: { email: string; name: string; passwordHash: string | null; from: Origin; now: Date },
): Promise<string> {
  const { id } = await createUser(tx, { ...person, isOperator: false, now }).catch(error => {
    throw brokenConstraint(error) === 'one_user_per_email'
      ? problem('Conflict', `${person.email} already has a user here, which is disabled; ask an operator`)
      : error
  })
  const change = { action: 'user.create', resourceId: id, details: { by: 'invitation' } } as const
  await auditLog.record(tx, { partnerId: null, actor: actorOfUser(id, from), change, now })
  return id
}
