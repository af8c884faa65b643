import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { readBody } from '../http/bodies/bodies.ts'
import type { App } from '../http/server/server.ts'
import { problem } from '../kernel/errors.ts'
import type { NotificationReceiver } from './channels/notifications.ts'

/**
 * The paths to which banks send notifications. They are outside the partner API: without version, API key or entry in the
 * OpenAPI document.
 */
export function notificationRoutes(app: App, receivers: readonly NotificationReceiver[]): void {
  const byRail = new Map(receivers.map(each => [each.rail, each]))
  if (byRail.size === 0) return
  void app.register(async (scope: App) => {
    // The signature is over the bytes.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (request: FastifyRequest, payload: Readable) => readBody(request, payload))

    scope.post<{ Params: { rail: string } }>('/rails/:rail/notifications', async request => {
      const receiver = byRail.get(request.params.rail)
      if (receiver === undefined) throw problem('UnknownPath', 'No rail of this name receives notifications')
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
      if (!(await receiver.isGenuine(body, request.headers)))
        throw problem('ApiKeyRefused', 'The notification is not signed with a key of this rail', {
          path: 'hmacsignature',
        })
      if ((await receiver.receive(body)) === 'malformed') throw problem('BadRequest', 'The notification cannot be read')
      return receiver.answer
    })
  })
}
