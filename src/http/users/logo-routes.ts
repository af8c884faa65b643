import type { FastifyReply } from 'fastify'
import { compileValidation } from '../../contract/validation.ts'
import { findLogo, type Logo } from '../../partners/logos.ts'
import type { ApiContext, App } from '../server/server.ts'

/** The logo of a partner, for its admins and for its members on the hosted page. Not operations: they respond with a picture. */
export function logoRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/console/v1/logo',
    { config: { console: 'user', roles: ['admin'], validate: compileValidation({}) } },
    async (request, reply) => send(reply, await findLogo(db, request.partner.id)),
  )
  // The session names the partner, so no address leads to another partner's logo.
  app.get('/m/logo', { config: { session: 'read' } }, async (request, reply) =>
    send(reply, await findLogo(db, request.partner.id)),
  )
}

/** Sends the logo so that a browser treats it as a picture, even if opened directly. */
function send(reply: FastifyReply, logo: Logo | null): FastifyReply {
  reply.headers({
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
  })
  return logo === null ? reply.code(204).send() : reply.type(logo.mediaType).send(logo.bytes)
}
