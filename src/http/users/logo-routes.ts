import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import * as auditLog from '../../audit-log/audit-log.ts'
import { findLogo, type Logo, logoBytesMax, removeLogo, saveLogo } from '../../partners/logos.ts'
import { actorOf } from '../admission/actor.ts'
import { requireRole } from '../admission/user-admission.ts'
import type { ApiContext, App } from '../server/server.ts'
import { hiddenOperation } from './hidden-operation.ts'

// A logo up to twice the limit gets a refusal that names the limit.
const dataLengthMax = Math.ceil((2 * logoBytesMax) / 3) * 4

const data = Type.String({
  pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  minLength: 4,
  maxLength: dataLengthMax,
})

/** The logo of a partner: its admins set it, and its members see it on the hosted page. */
export function logoRoutes(app: App, { db }: ApiContext): void {
  const config = { console: 'user' } as const

  app.get('/console/v1/logo', { config, schema: hiddenOperation({ id: 'getLogo' }) }, async (request, reply) => {
    const { id: partnerId } = await requireRole(db, request, ['admin'])
    return await send(reply, await findLogo(db, partnerId))
  })

  // Idempotent, so the operation needs no idempotency key.
  app.put(
    '/console/v1/logo',
    {
      config,
      bodyLimit: dataLengthMax + 1_024,
      schema: hiddenOperation({ id: 'setLogo', body: Type.Object({ data }, { additionalProperties: false }) }),
    },
    async request => {
      const { id: partnerId } = await requireRole(db, request, ['admin'])
      const bytes = Buffer.from(request.body.data, 'base64')
      return await db.transaction().execute(async tx => {
        const { mediaType } = await saveLogo(tx, { partnerId, bytes, now: request.receivedAt })
        const details = { mediaType, bytes: bytes.length }
        const change = { action: 'partner.set_logo', resourceId: partnerId, details } as const
        await auditLog.record(tx, { partnerId, actor: actorOf(request), change, now: request.receivedAt })
        return { mediaType }
      })
    },
  )

  app.delete('/console/v1/logo', { config, schema: hiddenOperation({ id: 'removeLogo' }) }, async request => {
    const { id: partnerId } = await requireRole(db, request, ['admin'])
    return await db.transaction().execute(async tx => {
      const removed = await removeLogo(tx, partnerId)
      const change = { action: 'partner.remove_logo', resourceId: partnerId, details: {} } as const
      if (removed) await auditLog.record(tx, { partnerId, actor: actorOf(request), change, now: request.receivedAt })
      return { removed }
    })
  })

  // The session names the partner, so no address leads to another partner's logo.
  app.get('/m/logo', { config: { session: 'read' }, schema: { hide: true } }, async (request, reply) =>
    send(reply, await findLogo(db, request.partner.id)),
  )
}

/** Sends the logo so that a browser treats it as a picture, even if opened directly. */
async function send(reply: FastifyReply, logo: Logo | null): Promise<FastifyReply> {
  reply.headers({
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
  })
  return logo === null ? reply.code(204).send() : reply.type(logo.mediaType).send(logo.bytes)
}
