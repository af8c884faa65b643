import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { cutPage, pageOf, pageQuery } from '../../contract/list.ts'
import { problem } from '../../kernel/errors.ts'
import { Id } from '../../kernel/ids.ts'
import { listUsers, requireUser, setRoles, setUser } from '../../users/accounts.ts'
import * as identities from '../../users/identities.ts'
import { createPasswordLink, linkTo } from '../../users/links.ts'
import { requireStillAllowed } from '../../users/rights.ts'
import * as totp from '../../users/totp.ts'
import { actorOf } from '../admission/actor.ts'
import { ownOrigin } from '../admission/session-admission.ts'
import type { ApiContext, App } from '../server/server.ts'
import { hiddenOperation, userOf } from './hidden-operation.ts'
import { managedPartner } from './managed-partner.ts'
import { Roles, strict } from './schema.ts'

/**
 * The users of a partner, for its admins and for operators; without the header `midmonth-partner`, the users of the installation, for
 * operators.
 */
export function userManagementRoutes(app: App, { db, publicUrl }: ApiContext): void {
  const config = { console: 'user' } as const
  const params = Type.Object({ userId: Id('user') })

  app.get(
    '/console/v1/users',
    { config, schema: hiddenOperation({ id: 'getUsers', query: Type.Object(pageQuery, strict) }) },
    async request => {
      const partnerId = await managedPartner(db, request)
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
      const partnerId = await managedPartner(db, request)
      const { roles, ...rights } = request.body
      const { userId } = request.params
      if ((partnerId === null) === (roles !== undefined))
        throw problem(
          'BodyValidation',
          'Send roles with the header midmonth-partner, and isOperator and isDisabled without it',
          { path: 'roles' },
        )
      if (partnerId !== null && Object.keys(rights).length > 0)
        throw problem('BodyValidation', 'Only operators may change this; send no midmonth-partner header', {
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
      const partnerId = await managedPartner(db, request)
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

  app.delete(
    '/console/v1/users/:userId/identity',
    { config: { console: 'operator' }, schema: hiddenOperation({ id: 'unlinkUser', params }) },
    async request => {
      const { userId } = request.params
      requireOther(request, userId, 'Ask another operator to unlink you')
      const actor = actorOf(request)
      await db.transaction().execute(tx => identities.unlink(tx, { userId, actor, now: request.receivedAt }))
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
}

/**
 * Requires that the request is about another user: changing one's own password or second factor takes the current password, and
 * unlinking oneself takes another operator.
 * @param instead what the user can do instead for their own account
 * @throws Problem `Forbidden`
 */
function requireOther(request: FastifyRequest, userId: string, instead = 'Change your own in your account'): void {
  if (userOf(request).user.id === userId) throw problem('Forbidden', instead)
}
