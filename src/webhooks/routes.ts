import { type Static, Type } from 'typebox'
import { afterQuery, cursorOf, pageOf, pageQuery } from '../contract/list.ts'
import { operation } from '../http/described-route.ts'
import { metadataRoutes } from '../http/metadata.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { issue, problemOf } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { parseInstant } from '../kernel/time.ts'
import { metadataQuery } from '../metadata/schema.ts'
import * as deliveries from './deliveries.ts'
import { Fence, TargetRefused } from './fence.ts'
import { reservedHeaders } from './rules.ts'
import { sampleEvent } from './samples.ts'
import {
  DeliveryFilter,
  NewWebhook,
  ReplayRequested,
  RotatedWebhook,
  Webhook,
  WebhookChanges,
  WebhookDeliveries,
  WebhookDelivery,
  WebhookDeliveryDetails,
  WebhookReplay,
  WebhookRotation,
  Webhooks,
  WebhookTest,
  WebhookWithSecret,
} from './schema.ts'
import * as webhooks from './webhooks.ts'

const tag = 'Webhooks'
const strict = { additionalProperties: false }
const params = Type.Object({ webhookId: Id('webhook') })
const location = { location: Type.String({ description: 'Path of the resource.' }) }
const secondsPerHour = 3_600
const overlapSecondsDefault = 24 * secondsPerHour

export function webhookRoutes(app: App, context: ApiContext, fence = defaultFence(context.mode)): void {
  const { db, sealer } = context
  metadataRoutes(app, context, {
    kind: 'webhook',
    names: { id: 'Webhook', summary: 'a webhook endpoint' },
    ...{ tag, params, path: '/v1/webhooks/:webhookId', problem: 'NotFound' },
    scopes: { read: 'pay:read', write: 'pay:write' },
    idOf: ({ webhookId }) => webhookId,
    requireKnown: (reader, { partnerId, params: { webhookId } }) =>
      webhooks.find(reader, { partnerId, webhookId, sealer }),
  })

  app.post(
    '/v1/webhooks',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'createWebhook',
        tag,
        summary: 'Create a webhook endpoint',
        description: `Events that happen from now on are sent to it, signed with its secret. At most ${webhooks.limits.endpointsMax} endpoints per partner.`,
        body: NewWebhook,
        success: {
          status: 201,
          description: 'The endpoint, with its secret.',
          schema: WebhookWithSecret,
          headers: location,
        },
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now, body } = request
        judge(body)
        const settings = { description: null, types: ['*'], enabled: true, headers: {}, ...body }
        const { endpoint, secret } = await webhooks.create(tx, { partnerId: partner.id, settings, sealer, now })
        return {
          status: 201,
          body: { ...onWire(endpoint), secret },
          headers: { location: `/v1/webhooks/${endpoint.id}` },
          resourceId: endpoint.id,
          audit: { action: 'webhook.create', details: { after: detailsOf(endpoint) } },
        }
      }),
  )

  app.get(
    '/v1/webhooks',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWebhooks',
        tag,
        summary: 'List webhook endpoints',
        description: 'Newest first.',
        query: Type.Object({ ...metadataQuery, ...pageQuery, ...afterQuery('webhook') }, strict),
        success: { status: 200, description: 'One page of endpoints.', schema: Webhooks },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const page = pageOf(request.query)
        const { endpoints, total } = await webhooks.list(reader, {
          ...{ partnerId: request.partner.id, metadata: request.query.metadata, page },
          cursor: cursorOf(request.query),
          sealer,
        })
        return { status: 200, body: { webhooks: endpoints.map(onWire), total, ...page } }
      }),
  )

  app.get(
    '/v1/webhooks/:webhookId',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWebhook',
        tag,
        summary: 'Get a webhook endpoint',
        params,
        success: { status: 200, description: 'The endpoint.', schema: Webhook },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params } = request
        return { status: 200, body: onWire(await webhooks.find(reader, { partnerId: partner.id, ...params, sealer })) }
      }),
  )

  app.patch(
    '/v1/webhooks/:webhookId',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'updateWebhook',
        tag,
        summary: 'Change a webhook endpoint',
        description:
          'Absent fields are unchanged; `types` and `headers` are replaced as a whole. Send `enabled: true` to enable an endpoint that was disabled because it failed.',
        params,
        body: WebhookChanges,
        success: { status: 200, description: 'The changed endpoint.', schema: Webhook },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, params, now, body } = request
        judge(body)
        const { before, after } = await webhooks.update(tx, {
          ...{ partnerId: partner.id, ...params, sealer },
          ...{ changes: body, now },
        })
        const changed = Object.keys(body).filter(
          name =>
            JSON.stringify(before[name as keyof typeof before]) !== JSON.stringify(after[name as keyof typeof after]),
        )
        return {
          status: 200,
          body: onWire(after),
          resourceId: after.id,
          audit:
            changed.length === 0
              ? undefined
              : {
                  action: 'webhook.update',
                  details: { changed, before: detailsOf(before), after: detailsOf(after) },
                },
        }
      }),
  )

  app.delete(
    '/v1/webhooks/:webhookId',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'deleteWebhook',
        tag,
        summary: 'Delete a webhook endpoint',
        description: 'Also deletes the deliveries of the endpoint. Requests in flight are not cut off.',
        params,
        success: {
          status: 200,
          description: 'It has been deleted.',
          schema: Type.Object({ message: Type.Literal('OK') }, { title: 'WebhookDeleted', ...strict }),
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, params, now } = request
        const endpoint = await webhooks.remove(tx, { partnerId: partner.id, ...params, sealer, now })
        const audit = { action: 'webhook.delete', details: { before: detailsOf(endpoint) } } as const
        return { status: 200, body: { message: 'OK' }, resourceId: endpoint.id, audit }
      }),
  )

  app.post(
    '/v1/webhooks/:webhookId/rotate',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'rotateWebhookSecret',
        tag,
        summary: 'Rotate the secret of a webhook endpoint',
        description: `Creates a new secret. The previous one stays valid for ${overlapSecondsDefault / secondsPerHour} hours, or as long as \`overlapSeconds\` says; until then, requests carry a signature of each.`,
        params,
        body: WebhookRotation,
        success: { status: 200, description: 'The endpoint, with its new secret.', schema: RotatedWebhook },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, params, now, body } = request
        const { overlapSeconds = overlapSecondsDefault } = body
        const rotated = await webhooks.rotate(tx, { partnerId: partner.id, ...params, overlapSeconds, sealer, now })
        const { endpoint, secret } = rotated
        const previousExpiresAt = rotated.previousExpiresAt.toISOString()
        return {
          status: 200,
          body: { ...onWire(endpoint), secret, previousExpiresAt },
          resourceId: endpoint.id,
          audit: { action: 'webhook.rotate', details: { previousExpiresAt } },
        }
      }),
  )

  app.post(
    '/v1/webhooks/:webhookId/test',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'testWebhook',
        tag,
        summary: 'Send a test to a webhook endpoint',
        description:
          'Sends a made-up event of a type that you choose, with the header `midmonth-test: true`. The test is attempted once, even if the endpoint is disabled. Read the delivery at `location` to see the response.',
        params,
        body: WebhookTest,
        success: { status: 202, description: 'The delivery of the test.', schema: WebhookDelivery, headers: location },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, params, now, body } = request
        const delivery = await deliveries.createTest(tx, {
          ...{ partnerId: partner.id, ...params, type: body.type, now },
          sampleOf: id => sampleEvent(body.type, { id, now }),
        })
        return {
          status: 202,
          body: deliveryOnWire(delivery),
          headers: { location: `/v1/webhooks/${params.webhookId}/deliveries/${delivery.id}` },
          resourceId: params.webhookId,
        }
      }),
  )

  app.post(
    '/v1/webhooks/:webhookId/replay',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'replayWebhook',
        tag,
        summary: 'Replay events to a webhook endpoint',
        description:
          'Delivers events of the last 30 days again: one event, the events of a time range, or the events whose delivery has failed or was skipped. Each event is attempted once, with the current secret, even if the endpoint is disabled; the health of the endpoint does not change. Receivers see the same `webhook-id` as before.',
        params,
        body: WebhookReplay,
        success: { status: 202, description: 'How many events are replayed.', schema: ReplayRequested },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, params, now, body } = request
        const replayed = await deliveries.replay(tx, { partnerId: partner.id, ...params, replay: replayOf(body), now })
        return { status: 202, body: replayed, resourceId: params.webhookId }
      }),
  )

  app.get(
    '/v1/webhooks/:webhookId/deliveries',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWebhookDeliveries',
        tag,
        summary: 'List the deliveries of a webhook endpoint',
        description: 'Lists the deliveries of the last 30 days, newest event first.',
        params,
        query: Type.Object({ ...DeliveryFilter, ...pageQuery, ...afterQuery('event') }, strict),
        success: { status: 200, description: 'One page of deliveries.', schema: WebhookDeliveries },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params, query } = request
        const page = pageOf(query)
        const { states = [], types = [], eventId = null } = query
        const ofEndpoint = { partnerId: partner.id, ...params }
        await webhooks.find(reader, { ...ofEndpoint, sealer })
        const found = await deliveries.list(reader, {
          ...ofEndpoint,
          filter: { states, types, eventId },
          page,
          cursor: cursorOf(query),
        })
        return {
          status: 200,
          body: { deliveries: found.deliveries.map(deliveryOnWire), hasMore: found.hasMore, ...page },
        }
      }),
  )

  app.get(
    '/v1/webhooks/:webhookId/deliveries/:deliveryId',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWebhookDelivery',
        tag,
        summary: 'Get a delivery with its attempts',
        params: Type.Object({ webhookId: Id('webhook'), deliveryId: Id('event') }),
        success: { status: 200, description: 'The delivery.', schema: WebhookDeliveryDetails },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params } = request
        await webhooks.find(reader, { partnerId: partner.id, webhookId: params.webhookId, sealer })
        const { attempts, ...delivery } = await deliveries.find(reader, { partnerId: partner.id, ...params })
        const listed = attempts.map(attempt => ({ ...attempt, at: attempt.at.toISOString() }))
        return { status: 200, body: { ...deliveryOnWire(delivery), attempts: listed } }
      }),
  )

  /** @throws Problem `BodyValidation` for faults that the schema cannot find */
  function judge({ url, headers = {} }: { url?: string; headers?: Record<string, string> }): void {
    const messages: { path: string; message: string }[] = []
    try {
      if (url !== undefined) fence.judgeUrl(url)
    } catch (error) {
      if (!(error instanceof TargetRefused)) throw error
      messages.push({ path: 'url', message: `url ${error.message}` })
    }
    for (const name of Object.keys(headers).filter(name => reservedHeaders.test(name))) {
      messages.push({ path: `headers.${name}`, message: `headers.${name} is a header that the service sets itself` })
    }
    if (messages.length === 0) return
    const name = 'BodyValidation'
    throw problemOf(messages.map(({ path, message }) => ({ name, issue: issue(name, message, { path }) })))
  }
}

// Without the settings of the program: as strict as in production.
function defaultFence(mode: ApiContext['mode']): Fence {
  return new Fence({ allowsHttp: mode === 'sandbox', allowsLoopback: false, refusedPorts: [] })
}

function onWire({ failingSince, createdAt, ...endpoint }: webhooks.Endpoint): Static<typeof Webhook> {
  return {
    ...endpoint,
    types: endpoint.types as Static<typeof Webhook>['types'],
    status: endpoint.enabled ? (failingSince === null ? 'active' : 'failing') : 'disabled',
    failingSince: failingSince?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
  }
}

/**
 * For the audit log, whose rows are kept forever: without header values, and without the parts of a URL that may hold secrets.
 */
function detailsOf({ url, types, enabled, headers }: webhooks.Endpoint) {
  return { origin: new URL(url).origin, types, enabled, headers: Object.keys(headers) }
}

function deliveryOnWire(delivery: deliveries.Delivery): Static<typeof WebhookDelivery> {
  return {
    ...delivery,
    createdAt: delivery.createdAt.toISOString(),
    lastAttemptAt: delivery.lastAttemptAt?.toISOString() ?? null,
    nextAttemptAt: delivery.nextAttemptAt?.toISOString() ?? null,
  }
}

function replayOf(body: WebhookReplay): deliveries.Replay {
  if ('eventId' in body) return body
  const { after = null } = body
  if ('failedSince' in body) return { failedSince: parseInstant(body.failedSince, { decimals: 'up' }), after }
  const until = body.until === undefined ? null : parseInstant(body.until, { decimals: 'up' })
  return { since: parseInstant(body.since, { decimals: 'up' }), until, after }
}
