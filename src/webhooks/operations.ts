import { Type } from 'typebox'
import { afterQuery, cursorOf, pageOf, pageQuery } from '../contract/list.ts'
import { metadataOperations } from '../http/metadata-operations.ts'
import { named, operationsOn } from '../http/operation.ts'
import { issue, problemOf } from '../kernel/errors.ts'
import { namedObject, strictObject } from '../kernel/schemas.ts'
import { parseInstant } from '../kernel/time.ts'
import { metadataQuery } from '../metadata/schema.ts'
import { building } from '../users/roles.ts'
import * as deliveries from './deliveries.ts'
import { TargetRefused } from './fence.ts'
import type { WebhookContext } from './operation-context.ts'
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
const operation = operationsOn<WebhookContext>().operationWith({ tag, roles: building })
const location = { location: Type.String({ description: 'Path of the resource.' }) }
const secondsPerHour = 3_600
const overlapSecondsDefault = 24 * secondsPerHour

const createWebhook = operation({
  route: 'POST /v1/webhooks',
  scope: 'pay:write',
  sdk: 'webhooks.create',
  summary: 'Create a webhook endpoint',
  description: `Events that happen from now on are sent to it, signed with its secret. At most ${webhooks.limits.endpointsMax} endpoints per partner.`,
  body: NewWebhook,
  success: {
    status: 201,
    description: 'The endpoint, with its secret.',
    schema: WebhookWithSecret,
    headers: location,
  },
  async write(tx, { partner, now, body, context }) {
    judge(body, context)
    const settings = { description: null, types: ['*'], enabled: true, headers: {}, ...body }
    const { endpoint, secret } = await webhooks.create(tx, { partnerId: partner.id, settings, now })
    return {
      body: { ...onWire(endpoint), secret },
      headers: { location: `/v1/webhooks/${endpoint.id}` },
      resourceId: endpoint.id,
      audit: { action: 'webhook.create', details: { after: detailsOf(endpoint) } },
    }
  },
})

const getWebhooks = operation({
  route: 'GET /v1/webhooks',
  scope: 'pay:read',
  sdk: 'webhooks.list',
  summary: 'List webhook endpoints',
  description: 'Newest first.',
  query: strictObject({ ...metadataQuery, ...pageQuery, ...afterQuery('webhook') }),
  success: { description: 'One page of endpoints.', schema: Webhooks },
  problems: ['NotFound'],
  async read(reader, { partner, query }) {
    const page = pageOf(query)
    const { metadata } = query
    const asked = { partnerId: partner.id, metadata, page, cursor: cursorOf(query) }
    const { endpoints, total } = await webhooks.list(reader, asked)
    return { body: { webhooks: endpoints.map(onWire), total, ...page } }
  },
})

const getWebhook = operation({
  route: 'GET /v1/webhooks/:webhookId',
  scope: 'pay:read',
  sdk: 'webhooks.get',
  summary: 'Get a webhook endpoint',
  success: { description: 'The endpoint.', schema: Webhook },
  async read(reader, { partner, params }) {
    const endpoint = await webhooks.find(reader, { partnerId: partner.id, ...params })
    return { body: onWire(endpoint) }
  },
})

const updateWebhook = operation({
  route: 'PATCH /v1/webhooks/:webhookId',
  scope: 'pay:write',
  sdk: 'webhooks.update',
  summary: 'Change a webhook endpoint',
  description:
    'Absent fields are unchanged; `types` and `headers` are replaced as a whole. Send `enabled: true` to enable an endpoint that was disabled because it failed.',
  body: WebhookChanges,
  success: { description: 'The changed endpoint.', schema: Webhook },
  async write(tx, { partner, params, now, body, context }) {
    judge(body, context)
    const named = { partnerId: partner.id, ...params }
    const { before, after } = await webhooks.update(tx, { ...named, changes: body, now })
    const changed = Object.keys(body).filter(
      name => JSON.stringify(before[name as keyof typeof before]) !== JSON.stringify(after[name as keyof typeof after]),
    )
    const details = { changed, before: detailsOf(before), after: detailsOf(after) }
    const audit = changed.length === 0 ? undefined : ({ action: 'webhook.update', details } as const)
    return { body: onWire(after), resourceId: after.id, audit }
  },
})

const deleteWebhook = operation({
  route: 'DELETE /v1/webhooks/:webhookId',
  scope: 'pay:write',
  sdk: 'webhooks.delete',
  summary: 'Delete a webhook endpoint',
  description: 'Also deletes the deliveries of the endpoint. Requests in flight are not cut off.',
  success: {
    description: 'It has been deleted.',
    schema: namedObject('WebhookDeleted', { message: Type.Literal('OK') }),
  },
  async write(tx, { partner, params, now }) {
    const endpoint = await webhooks.remove(tx, { partnerId: partner.id, ...params, now })
    const audit = { action: 'webhook.delete', details: { before: detailsOf(endpoint) } } as const
    return { body: { message: 'OK' }, resourceId: endpoint.id, audit }
  },
})

const rotateWebhookSecret = operation({
  route: 'POST /v1/webhooks/:webhookId/rotate',
  scope: 'pay:write',
  sdk: 'webhooks.rotateSecret',
  summary: 'Rotate the secret of a webhook endpoint',
  description: `Creates a new secret. The previous one stays valid for ${overlapSecondsDefault / secondsPerHour} hours, or as long as \`overlapSeconds\` says; until then, requests carry a signature of each.`,
  body: WebhookRotation,
  success: { description: 'The endpoint, with its new secret.', schema: RotatedWebhook },
  async write(tx, { partner, params, now, body }) {
    const { overlapSeconds = overlapSecondsDefault } = body
    const named = { partnerId: partner.id, ...params }
    const { endpoint, secret, previousExpiresAt } = await webhooks.rotate(tx, { ...named, overlapSeconds, now })
    return {
      body: { ...onWire(endpoint), secret, previousExpiresAt },
      resourceId: endpoint.id,
      audit: { action: 'webhook.rotate', details: { previousExpiresAt: previousExpiresAt.toISOString() } },
    }
  },
})

const testWebhook = operation({
  route: 'POST /v1/webhooks/:webhookId/test',
  scope: 'pay:write',
  sdk: 'webhooks.test',
  summary: 'Send a test to a webhook endpoint',
  description:
    'Sends a made-up event of a type that you choose, with the header `midmonth-test: true`. The test is attempted once, even if the endpoint is disabled. Read the delivery at `location` to see the response.',
  body: WebhookTest,
  success: { status: 202, description: 'The delivery of the test.', schema: WebhookDelivery, headers: location },
  async write(tx, { partner, params, now, body }) {
    const delivery = await deliveries.createTest(tx, {
      ...{ partnerId: partner.id, ...params, type: body.type, now },
      sampleOf: id => sampleEvent(body.type, { id, now }),
    })
    return {
      body: delivery,
      headers: { location: `/v1/webhooks/${params.webhookId}/deliveries/${delivery.id}` },
      resourceId: params.webhookId,
    }
  },
})

const replayWebhook = operation({
  route: 'POST /v1/webhooks/:webhookId/replay',
  scope: 'pay:write',
  sdk: 'webhooks.replay',
  summary: 'Replay events to a webhook endpoint',
  description:
    'Delivers events of the last 30 days again: one event, the events of a time range, or the events whose delivery has failed or was skipped. Each event is attempted once, with the current secret, even if the endpoint is disabled; the health of the endpoint does not change. Receivers see the same `webhook-id` as before.',
  body: WebhookReplay,
  success: { status: 202, description: 'How many events are replayed.', schema: ReplayRequested },
  async write(tx, { partner, params, now, body }) {
    const replayed = await deliveries.replay(tx, { partnerId: partner.id, ...params, replay: replayOf(body), now })
    return { body: replayed, resourceId: params.webhookId }
  },
})

const getWebhookDeliveries = operation({
  route: 'GET /v1/webhooks/:webhookId/deliveries',
  scope: 'pay:read',
  sdk: 'webhooks.listDeliveries',
  summary: 'List the deliveries of a webhook endpoint',
  description: 'Lists the deliveries of the last 30 days, newest event first.',
  query: strictObject({ ...DeliveryFilter, ...pageQuery, ...afterQuery('event') }),
  success: { description: 'One page of deliveries.', schema: WebhookDeliveries },
  async read(reader, { partner, params, query }) {
    const page = pageOf(query)
    const { states = [], types = [], eventId = null } = query
    const ofEndpoint = { partnerId: partner.id, ...params }
    await webhooks.find(reader, { ...ofEndpoint })
    const filter = { states, types, eventId }
    const found = await deliveries.list(reader, { ...ofEndpoint, filter, page, cursor: cursorOf(query) })
    return { body: { ...found, ...page } }
  },
})

const getWebhookDelivery = operation({
  route: 'GET /v1/webhooks/:webhookId/deliveries/:deliveryId',
  scope: 'pay:read',
  sdk: 'webhooks.getDelivery',
  summary: 'Get a delivery with its attempts',
  success: { description: 'The delivery.', schema: WebhookDeliveryDetails },
  async read(reader, { partner, params }) {
    await webhooks.find(reader, { partnerId: partner.id, webhookId: params.webhookId })
    const delivery = await deliveries.find(reader, { partnerId: partner.id, ...params })
    return { body: delivery }
  },
})

const webhookMetadata = metadataOperations({
  kind: 'webhook',
  names: { id: 'Webhook', summary: 'a webhook endpoint', sdk: { resource: 'webhooks', of: '' } },
  tag,
  path: '/v1/webhooks/:webhookId',
  scopes: { read: 'pay:read', write: 'pay:write' },
  roles: { read: building, write: building },
  requireKnown: (reader, { partnerId, resourceId: webhookId }) => webhooks.find(reader, { partnerId, webhookId }),
})

export const webhookOperations = [
  ...webhookMetadata,
  ...named({
    createWebhook,
    getWebhooks,
    getWebhook,
    updateWebhook,
    deleteWebhook,
    rotateWebhookSecret,
    testWebhook,
    replayWebhook,
    getWebhookDeliveries,
    getWebhookDelivery,
  }),
]

/** @throws Problem `BodyValidation` for faults that the schema cannot find */
function judge(
  { url, headers = {} }: { url?: string; headers?: Record<string, string> },
  { fence }: WebhookContext,
): void {
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

function onWire(endpoint: webhooks.Endpoint) {
  const isFailing = endpoint.failingSince !== null
  return { ...endpoint, status: endpoint.enabled ? (isFailing ? 'failing' : 'active') : 'disabled' }
}

/**
 * For the audit log, whose rows are kept forever: without header values, and without the parts of a URL that may hold secrets.
 */
function detailsOf({ url, types, enabled, headers }: webhooks.Endpoint) {
  return { origin: new URL(url).origin, types, enabled, headers: Object.keys(headers) }
}

function replayOf(body: WebhookReplay): deliveries.Replay {
  if ('eventId' in body) return body
  const { after = null } = body
  if ('failedSince' in body) return { failedSince: parseInstant(body.failedSince, { decimals: 'up' }), after }
  const until = body.until === undefined ? null : parseInstant(body.until, { decimals: 'up' })
  return { since: parseInstant(body.since, { decimals: 'up' }), until, after }
}
