import { type Static, Type } from 'typebox'
import { named, operation } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { namedObject, nullable, wordOf } from '../kernel/schemas.ts'
import { Instant } from '../kernel/time.ts'
import { createSession, sessionLimits, sessionScopes } from '../partners/member-sessions.ts'
import type { Mode } from '../partners/partners.ts'
import { lockMembers } from './locks.ts'
import { memberNotFound } from './rules.ts'

const NewMemberSession = namedObject('NewMemberSession', {
  memberId: Id('member', 'The only member whom the session can see.'),
  scope: wordOf(sessionScopes, {
    description: '`read` shows the balance and withdrawals; `withdraw` can also make a withdrawal.',
  }),
  origin: Type.Optional(
    Type.String({
      pattern: '^https?://[a-z0-9.:[\\]-]+$',
      maxLength: 255,
      description:
        'The origin of the page that may use the session; `http` only on a sandbox. Without it, the session is for the hosted page at `url`.',
      examples: ['https://app.partner.example'],
    }),
  ),
  expiresInSeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: sessionLimits.secondsMax,
      default: sessionLimits.secondsMax,
    }),
  ),
})

const MemberSession = namedObject('MemberSession', {
  id: Id('memberSession'),
  token: Type.String({
    description: 'Sent as `authorization: Bearer …`. Shown only here; give it to the member’s page.',
  }),
  expiresAt: Instant,
  url: nullable(
    Type.String(),
    'Address of the hosted page, with the token. Give it only to the member. Null for a session with an `origin`.',
  ),
})

const createMemberSession = operation({
  route: 'POST /v1/member-sessions',
  scope: 'pay:write',
  roles: 'keysOnly',
  sdk: 'memberSessions.create',
  tag: 'Member sessions',
  summary: 'Create a member session',
  description: `Creates a token for the page of one member, valid for up to ${sessionLimits.secondsMax / 60} minutes. It ends earlier if the API key is revoked or the member is offboarded. A member has at most ${sessionLimits.perMemberMax} sessions; another one ends the oldest.`,
  body: NewMemberSession,
  success: { status: 201, description: 'The session, with its token.', schema: MemberSession },
  problems: ['MemberNotFound'],
  async run({ partner, keyId, receivedAt, body, ownOrigin, context: { mode } }, { write }) {
    requireOrigin(body, mode)
    const { memberId, scope, origin = null, expiresInSeconds: seconds = sessionLimits.secondsMax } = body
    return await write(async tx => {
      const [member] = await lockMembers(tx, { partnerId: partner.id, memberIds: [memberId] })
      if (member === undefined || member.isErased) throw memberNotFound(memberId)
      if (member.status === 'inactive')
        throw problem('Conflict', 'The member was offboarded; reinstate the member first')
      const asked = { partnerId: partner.id, keyId, mode, memberId, scope, origin, seconds, now: receivedAt }
      const { session, token } = await createSession(tx, asked)
      const { id } = session
      const expiresAt = session.expiresAt.toISOString()
      const url = origin === null ? `${ownOrigin}/m#${token}` : null
      return {
        body: { id, token, expiresAt, url },
        resourceId: id,
        audit: { action: 'member_session.create', details: { memberId, scope, origin, expiresAt } },
      }
    })
  },
})

export const memberSessionOperations = named({ createMemberSession })

/** @throws Problem `BodyValidation` */
function requireOrigin({ origin }: Static<typeof NewMemberSession>, mode: Mode): void {
  if (origin === undefined) return
  const { protocol, origin: normalised } = URL.canParse(origin) ? new URL(origin) : { protocol: '', origin: '' }
  if (normalised !== origin) {
    const message = 'origin must be the origin of a page as browsers send it: https://app.partner.example'
    throw problem('BodyValidation', message, { path: 'origin' })
  }
  if (protocol !== 'https:' && mode === 'live')
    throw problem('BodyValidation', 'origin must begin with https:// on a live installation', { path: 'origin' })
}
