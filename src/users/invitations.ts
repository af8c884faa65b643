import * as auditLog from '../audit-log/audit-log.ts'
import { type Columns, type Reader, sql, type Tx } from '../database/database.ts'
import { conflict, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { generateSecret, hasChecksum, hashOf } from '../kernel/secrets.ts'
import { requireStillAllowed } from './rights.ts'
import type { Role } from './roles.ts'
import { endSessions } from './sessions.ts'
import { addRoles, canonicalEmail } from './users.ts'

/** Lets a person become a user with roles for one partner, or an operator if `partnerId` is null. */
export type Invitation = Omit<Columns<'userInvitations'>, 'hash' | 'roles'> & { roles: Role[] }

// A week with a holiday. A database constraint has the same maximum.
const lifeMs = 7 * 86_400_000
// Per partner, and for the installation.
const pendingMax = 1_000
const prefix = 'mmi_'
const columns = sql.raw('id, email, partner_id, roles, invited_by, created_at, expires_at')

type NewInvitation = {
  email: string
  partnerId: string | null
  roles: readonly Role[]
  actor: auditLog.Actor
  now: Date
}

/**
 * Invites a person. An earlier invitation of the same address to the same partner ends.
 * @returns the token for the fragment of `/console/invitation`, which is shown only here
 */
export async function invite(
  tx: Tx,
  { email, partnerId, roles, actor, now }: NewInvitation,
): Promise<{ invitation: Invitation; token: string }> {
  await requireStillAllowed(tx, { actor, partnerId })
  const token = generateSecret(prefix)
  const invitation = {
    id: newId('invitation', now),
    email: canonicalEmail(email),
    partnerId,
    roles: [...new Set(roles)].sort(),
    invitedBy: actor.name,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifeMs),
  }
  await sql`
    delete from user_invitations
     where partner_id is not distinct from ${partnerId} and email = ${invitation.email}`.execute(tx)
  const pending = await listInvitations(tx, { partnerId, now })
  if (pending.length >= pendingMax) throw conflict(`There are ${pendingMax} open invitations; delete some first`)
  await tx
    .insertInto('userInvitations')
    .values({ ...invitation, hash: hashOf(token) })
    .execute()
  const change = {
    action: 'invitation.create',
    resourceId: invitation.id,
    details: { roles: rolesOf(invitation) },
  } as const
  await auditLog.record(tx, { partnerId, actor, change, now })
  return { invitation, token }
}

/** Lists open invitations, newest first. */
export async function listInvitations(
  db: Reader,
  { partnerId, now }: { partnerId: string | null; now: Date },
): Promise<Invitation[]> {
  const { rows } = await sql<Invitation>`
    select ${columns} from user_invitations
     where partner_id is not distinct from ${partnerId} and expires_at > ${now}
     order by id desc limit ${pendingMax}`.execute(db)
  return rows
}

/** The open invitations of an address. */
export async function invitationsOf(db: Reader, { email, now }: { email: string; now: Date }): Promise<Invitation[]> {
  const { rows } = await sql<Invitation>`
    select ${columns} from user_invitations
     where email = ${canonicalEmail(email)} and expires_at > ${now} order by id`.execute(db)
  return rows
}

/** Deletes an open invitation. @throws Problem `NotFound` */
export async function deleteInvitation(
  tx: Tx,
  { id, partnerId, actor, now }: { id: string; partnerId: string | null; actor: auditLog.Actor; now: Date },
): Promise<void> {
  const { rows } = await sql`
    delete from user_invitations
     where id = ${id} and partner_id is not distinct from ${partnerId} returning 1`.execute(tx)
  if (rows.length === 0) throw problem('NotFound', 'There is no such invitation')
  const change = { action: 'invitation.delete', resourceId: id, details: {} } as const
  await auditLog.record(tx, { partnerId, actor, change, now })
}

/** Looks at an invitation without accepting it. */
export async function findInvitation(
  db: Reader,
  { token, now }: { token: string; now: Date },
): Promise<Invitation | undefined> {
  if (!token.startsWith(prefix) || !hasChecksum(token)) return undefined
  const { rows } = await sql<Invitation>`
    select ${columns} from user_invitations
     where hash = ${hashOf(token)} and expires_at > ${now}`.execute(db)
  return rows[0]
}

/**
 * Uses up an invitation, and gives the user its rights. Ends the user's sessions.
 * @returns false if another request has used the invitation first
 */
export async function accept(
  tx: Tx,
  { invitation, userId, actor, now }: { invitation: Invitation; userId: string; actor: auditLog.Actor; now: Date },
): Promise<boolean> {
  const { id, partnerId, roles, invitedBy } = invitation
  const { rows } = await sql`delete from user_invitations where id = ${id} returning 1`.execute(tx)
  if (rows.length === 0) return false
  if (partnerId === null) await sql`update users set is_operator = true where id = ${userId}`.execute(tx)
  else await addRoles(tx, { userId, partnerId, roles })
  await endSessions(tx, { userId })
  const change = {
    action: 'invitation.accept',
    resourceId: id,
    details: { user: userId, roles: rolesOf(invitation), invitedBy },
  } as const
  await auditLog.record(tx, { partnerId, actor, change, now })
  return true
}

function rolesOf({ partnerId, roles }: Invitation): string[] {
  return partnerId === null ? ['operator'] : roles
}
