import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import type { Tx } from '../../database/database.ts'
import { brokenConstraint } from '../../database/errors.ts'
import { problem } from '../../kernel/errors.ts'
import { strictObject } from '../../kernel/schemas.ts'
import { findPartner } from '../../partners/partners.ts'
import * as invitations from '../../users/invitations.ts'
import { linkTo } from '../../users/links.ts'
import { hashPassword, requireGoodPassword } from '../../users/passwords.ts'
import { actorOfUser, type Origin, openSession } from '../../users/sign-in.ts'
import { createUser, findByEmail } from '../../users/users.ts'
import { findUserOfBrowser } from '../admission/user-admission.ts'
import { consoleOperation, named } from '../operation.ts'
import { originOf, requirePrivateConnection } from './browser.ts'
import { managedPartner } from './managed-partner.ts'
import { Email, Password, PersonName, Roles, Token } from './schema.ts'
import { linkRefused, signedInResponse } from './session-operations.ts'

const getInvitations = consoleOperation({
  route: 'GET /console/v1/invitations',
  console: 'user',
  async read(reader, call) {
    const partnerId = await managedPartner(call)
    return {
      body: { invitations: await invitations.listInvitations(reader, { partnerId, now: call.receivedAt }) },
    }
  },
})

const inviteUser = consoleOperation({
  route: 'POST /console/v1/invitations',
  console: 'user',
  body: strictObject({ email: Email, roles: Type.Optional(Roles) }),
  async run(call, { write }) {
    const partnerId = await managedPartner(call)
    const { actor, ownOrigin, receivedAt: now } = call
    const { email, roles } = call.body
    if ((partnerId === null) !== (roles === undefined))
      throw problem(
        'BodyValidation',
        partnerId === null
          ? 'An invitation as an operator has no roles; send the header midmonth-partner to invite to a partner'
          : 'An invitation to a partner needs roles',
        { path: 'roles' },
      )
    return await write(async tx => {
      const created = await invitations.invite(tx, { email, partnerId, roles: roles ?? [], actor, now })
      const url = linkTo('invitation', created.token, ownOrigin)
      return { status: 201, body: { ...created.invitation, url } }
    })
  },
})

const deleteInvitation = consoleOperation({
  route: 'DELETE /console/v1/invitations/:invitationId',
  console: 'user',
  async run(call, { write }) {
    const partnerId = await managedPartner(call)
    const { actor, receivedAt: now } = call
    return await write(async tx => {
      await invitations.deleteInvitation(tx, { id: call.params.invitationId, partnerId, actor, now })
      return { body: { message: 'OK' } }
    })
  },
})

/** For the person who has the link. */
const findInvitation = consoleOperation({
  route: 'POST /console/v1/invitations/find',
  console: 'founder',
  body: strictObject({ token: Token }),
  async read(reader, { body: { token }, receivedAt: now }) {
    const invitation = await invitations.findInvitation(reader, { token, now })
    if (invitation === undefined) throw linkRefused()
    const { email, roles, partnerId, expiresAt } = invitation
    const partner = partnerId === null ? undefined : await findPartner(reader, partnerId)
    const hasUser = (await findByEmail(reader, email)) !== undefined
    return {
      body: { email, roles, partner: partner && { id: partner.id, name: partner.name }, hasUser, expiresAt },
    }
  },
})

/**
 * A new user chooses a name and a password. An existing user signs in first, so that the link is not enough to take over an account.
 */
const acceptInvitation = consoleOperation({
  route: 'POST /console/v1/invitations/accept',
  console: 'founder',
  body: strictObject({ token: Token, name: Type.Optional(PersonName), password: Type.Optional(Password) }),
  async run(call, { write }) {
    requirePrivateConnection(call)
    const { db, mode, publicUrl } = call.context
    const { receivedAt: now } = call
    const { token, name = '', password = '' } = call.body
    const from = originOf(call)
    const invitation = await invitations.findInvitation(db, { token, now })
    if (invitation === undefined) throw linkRefused()
    const { email } = invitation
    const current = await findUserOfBrowser(db, call.browser, { mode, publicUrl, now })
    const known = await findByEmail(db, email)
    if (known !== undefined && known.id !== current?.user.id)
      throw problem('Conflict', `${email} already has a user here; sign in as that user, then open the link again`)
    if (known === undefined) requireNameAndPassword({ email, name, password })
    const passwordHash = known === undefined ? await hashPassword(password) : null
    return await write(async tx => {
      const userId = known?.id ?? (await createInvited(tx, { email, name, passwordHash, from, now }))
      const actor = actorOfUser(userId, from)
      if (!(await invitations.accept(tx, { invitation, userId, actor, now }))) throw linkRefused()
      const method = current?.session.method ?? 'password'
      return await signedInResponse(tx, call, await openSession(tx, { userId, method, mode, from, now }))
    })
  },
})

/** Invitations to a partner, by its admins and by operators; without the header `midmonth-partner`, invitations of operators. */
export const invitationOperations = named({
  getInvitations,
  inviteUser,
  deleteInvitation,
  findInvitation,
  acceptInvitation,
})

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
