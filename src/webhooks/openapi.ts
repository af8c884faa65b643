import { Type } from 'typebox'
import { catalogue, EventSequence, type EventType, eventTypes } from '../events/catalogue.ts'
import { Id } from '../kernel/ids.ts'
import { namedObject, wordOf } from '../kernel/schemas.ts'
import { Instant } from '../kernel/time.ts'

const parameters = [
  {
    name: 'webhook-id',
    description:
      'The event’s id, the same for every attempt and replay. Ignore a delivery whose id you have processed.',
    schema: Id('event'),
  },
  {
    name: 'webhook-timestamp',
    description: 'When this attempt was made, in seconds since 1970. Refuse attempts that are more than 5 minutes old.',
    schema: Type.String({ examples: ['1774949400'] }),
  },
  {
    name: 'webhook-signature',
    description:
      '`v1,` and the base64 of the HMAC-SHA256 of `webhook-id.webhook-timestamp.body`. During a rotation there are several, separated by spaces; one of them must match.',
    schema: Type.String({ examples: ['v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4='] }),
  },
].map(parameter => ({ ...parameter, in: 'header', required: true }))

/** The section `webhooks` of the OpenAPI document: one request per type of event. */
export function webhooksSection(): Record<string, object> {
  return Object.fromEntries(eventTypes.map(type => [type, { post: deliveryOf(type) }]))
}

function deliveryOf(type: EventType): object {
  const { when, data } = catalogue[type]
  const name = type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const body = namedObject(`${name}Delivery`, {
    id: Id('event'),
    type: wordOf([type]),
    timestamp: { ...Instant, title: 'DeliveryTimestamp', description: 'When the event happened.' },
    sequence: EventSequence,
    data,
  })
  return {
    operationId: `on${name}`,
    summary: when,
    tags: ['Webhooks'],
    security: [],
    parameters,
    requestBody: { required: true, content: { 'application/json': { schema: body } } },
    responses: {
      '2XX': { description: 'Delivered.' },
      '410': { description: 'Disables the endpoint.' },
      default: { description: 'Retried.' },
    },
  }
}
