import { Type } from 'typebox'
import { pageOf, pageQuery, readPage } from '../../contract/list.ts'
import type { Tx } from '../../database/database.ts'
import { problem } from '../../kernel/errors.ts'
import { strict, strictObject } from '../../kernel/schemas.ts'
import { listUsers, requireUser, setRoles, setUser } from '../../users/accounts.ts'
import * as identities from '../../users/identities.ts'
import { createPasswordLink, linkTo } from '../../users/links.ts'
import { requireStillAllowed } from '../../users/rights.ts'
import * as totp from '../../users/totp.ts'
import { type Call, consoleOperation, named } from '../operation.ts'
import { managedPartner } from './managed-partner.ts'
import { Roles } from './schema.ts'

const getUsers = consoleOperation({
  route: 'GET /console/v1/users',
  console: 'user',
  query: strictObject(pageQuery),
  async read(reader, call) {
    const partnerId = await managedPartner(call)
    const { skip, take } = pageOf(call.query)
    const read = (count: number) => listUsers(reader, { partnerId, skip, take: count })
    const { rows: users, hasMore } = await readPage(call.query, read)
    return { body: { users, hasMore, skip, take } }
  },
})

const updateUser = consoleOperation({
  route: 'PATCH /console/v1/users/:userId',
  console: 'user',
  body: Type.Object(
    {
      roles: Type.Optional(Roles),
      isOperator: Type.Optional(Type.Boolean()),
      isDisabled: Type.Optional(Type.Boolean()),
    },
    { minProperties: 1, ...strict },
  ),
  async run(call, { write }) {
    const partnerId = await managedPartner(call)
    const { roles, ...rights } = call.body
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
    const by = { userId: call.params.userId, actor: call.actor, now: call.receivedAt }
    return await write(async tx => {
      if (partnerId === null) await setUser(tx, { ...by, ...rights })
      else await setRoles(tx, { ...by, partnerId, roles: roles ?? [] })
      return { body: { message: 'OK' } }
    })
  },
})

/** Removes a user from the partner, or disables one. Rows stay: the audit log names their ids. */
const removeUser = consoleOperation({
  route: 'DELETE /console/v1/users/:userId',
  console: 'user',
  async run(call, { write }) {
    const partnerId = await managedPartner(call)
    const by = { userId: call.params.userId, actor: call.actor, now: call.receivedAt }
    return await write(async tx => {
      if (partnerId === null) await setUser(tx, { ...by, isDisabled: true })
      else await setRoles(tx, { ...by, partnerId, roles: [] })
      return { body: { message: 'OK' } }
    })
  },
})

const removeTotpOfUser = consoleOperation({
  route: 'DELETE /console/v1/users/:userId/totp',
  console: 'operator',
  async write(tx, call) {
    const by = await requireOtherUser(tx, call)
    await totp.remove(tx, by)
    return { body: { message: 'OK' } }
  },
})

const unlinkUser = consoleOperation({
  route: 'DELETE /console/v1/users/:userId/identity',
  console: 'operator',
  async write(tx, call) {
    const { userId } = call.params
    requireOther(call, userId, 'Ask another operator to unlink you')
    await identities.unlink(tx, { userId, actor: call.actor, now: call.receivedAt })
    return { body: { message: 'OK' } }
  },
})

const createLinkForPassword = consoleOperation({
  route: 'POST /console/v1/users/:userId/password-link',
  console: 'operator',
  async write(tx, call) {
    const by = await requireOtherUser(tx, call)
    const { token, expiresAt } = await createPasswordLink(tx, by)
    return { body: { url: linkTo('password', token, call.ownOrigin), expiresAt } }
  },
})

/**
 * The users of a partner, for its admins and for operators; without the header `midmonth-partner`, the users of the installation, for
 * operators.
 */
export const userManagementOperations = named({
  getUsers,
  updateUser,
  removeUser,
  removeTotpOfUser,
  unlinkUser,
  createLinkForPassword,
})

/**
 * Requires that the call is about another user, who exists, and that its user may still change others.
 * @throws Problem `Forbidden` or `NotFound`
 */
async function requireOtherUser(
  tx: Tx,
  call: Pick<Call<{ userId: string }>, 'params' | 'actor' | 'receivedAt' | 'signedIn'>,
) {
  const { userId } = call.params
  requireOther(call, userId)
  const { actor, receivedAt: now } = call
  await requireStillAllowed(tx, { actor, partnerId: null, userId })
  await requireUser(tx, userId)
  return { userId, actor, now }
}

/**
 * Requires that the call is about another user: changing one's own password or second factor takes the current password, and
 * unlinking oneself takes another operator.
 * @param instead what the user can do instead for their own account
 * @throws Problem `Forbidden`
 */
function requireOther(
  { signedIn }: Pick<Call, 'signedIn'>,
  userId: string,
  instead = 'Change your own in your account',
): void {
  if (signedIn.user.id === userId) throw problem('Forbidden', instead)
}
