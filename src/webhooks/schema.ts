import { type Static, Type } from 'typebox'
import { pageFields, totalField } from '../contract/list.ts'
import { EventType, eventTypes } from '../events/catalogue.ts'
import { Id } from '../kernel/ids.ts'
import { described, namedObject, nullable, strict, wordOf } from '../kernel/schemas.ts'
import { GivenInstant, Instant } from '../kernel/time.ts'
import { Metadata } from '../metadata/schema.ts'
import { limits as deliveryLimits, deliveryStates } from './deliveries.ts'
import { attemptErrors } from './send.ts'

const groups = [...new Set(eventTypes.map(type => `${type.split('.')[0]}.*`))]

const settings = {
  url: Type.String({
    title: 'WebhookUrl',
    minLength: 1,
    maxLength: 2048,
    description:
      'Where deliveries are sent: an https URL, or http in a sandbox, without user name, password and fragment. It must not lead to a private or reserved address.',
    examples: ['https://example.com/midmonth'],
  }),
  description: nullable(Type.String({ maxLength: 200 }), 'For your own use.'),
  types: Type.Array(wordOf(['*', ...groups, ...eventTypes], { title: 'EventTypePattern' }), {
    title: 'WebhookTypes',
    minItems: 1,
    maxItems: 50,
    description: 'The types of events to deliver: a type, a group such as `withdrawal.*`, or `*` for all.',
    examples: [['withdrawal.*']],
  }),
  enabled: Type.Boolean({
    title: 'WebhookEnabled',
    description: 'Events for a disabled endpoint are recorded as skipped, and can be replayed.',
  }),
  headers: Type.Record(
    Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" }),
    Type.String({ maxLength: 1_000, pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$' }),
    {
      title: 'WebhookHeaders',
      maxProperties: 10,
      additionalProperties: false,
      description:
        'Additional headers of each request, at most 10. Anyone who may read the endpoint can read them. Not allowed: `webhook-…`, `midmonth-…`, `content-…`, and those of the connection.',
      examples: [{ authorization: 'Bearer 0e4f' }],
    },
  ),
}

export const NewWebhook = namedObject('NewWebhook', {
  url: settings.url,
  description: Type.Optional(settings.description),
  types: Type.Optional({ ...settings.types, default: ['*'] }),
  enabled: Type.Optional({ ...settings.enabled, default: true }),
  headers: Type.Optional(settings.headers),
})
export type NewWebhook = Static<typeof NewWebhook>

export const WebhookChanges = Type.Partial(Type.Object(settings), { title: 'WebhookChanges', ...strict })

const webhook = {
  id: Id('webhook'),
  ...settings,
  status: wordOf(['active', 'failing', 'disabled'], {
    description: '`failing`: the last attempt failed, and deliveries are retried.',
  }),
  disabledReason: nullable(
    wordOf(['requested', 'failing', 'gone']),
    '`requested`: by you. `failing`: no delivery succeeded for 5 days. `gone`: the endpoint responded with 410. Null if it is enabled.',
  ),
  failingSince: nullable(Instant, 'The first failed attempt since the last success; null if there is none.'),
  metadata: Metadata,
  createdAt: Instant,
}
export const Webhook = namedObject('Webhook', webhook)
const secret = Type.String({
  description: 'Verifies the signatures. Shown only in this response, so store it.',
  examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='],
})
export const WebhookWithSecret = namedObject('WebhookWithSecret', { ...webhook, secret })
export const RotatedWebhook = namedObject('RotatedWebhook', {
  ...webhook,
  secret,
  previousExpiresAt: { ...Instant, description: 'Until then, the previous secret signs as well.' },
})
export const Webhooks = namedObject('Webhooks', { webhooks: Type.Array(Webhook), ...totalField, ...pageFields })

/** The body may be left out. */
export const WebhookRotation = Type.Optional(
  namedObject('WebhookRotation', {
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 604_800,
        default: 86_400,
        description: 'How long the previous secret stays valid, 0 to 604,800 (7 days).',
      }),
    ),
  }),
)

export const WebhookTest = namedObject('WebhookTest', { type: described(EventType, 'The type of the sample.') })

const after = Type.Optional(
  Id('event', 'Continues a replay that had more: the `lastEventId` of the previous response.'),
)
const ReplayOfEvent = namedObject('ReplayOfEvent', { eventId: Id('event') })
const ReplayOfRange = Type.Object(
  {
    since: { ...GivenInstant, description: 'The first instant of the range. Events older than 30 days are left out.' },
    until: Type.Optional({ ...GivenInstant, description: 'The end of the range, exclusive. Absent: now.' }),
    after,
  },
  {
    title: 'ReplayOfRange',
    description: 'Every event of the range whose type the endpoint takes, delivered or not.',
    ...strict,
  },
)
const ReplayOfFailed = Type.Object(
  { failedSince: { ...GivenInstant, description: 'Events that happened at or after this instant.' }, after },
  { title: 'ReplayOfFailed', description: 'Every event whose delivery has failed or was skipped.', ...strict },
)
export const WebhookReplay = Type.Union([ReplayOfEvent, ReplayOfRange, ReplayOfFailed])
export type WebhookReplay = Static<typeof WebhookReplay>

export const ReplayRequested = namedObject('ReplayRequested', {
  count: Type.Integer({
    minimum: 0,
    description: `Number of events that are replayed, at most ${deliveryLimits.replayedMax.toLocaleString('en')}.`,
  }),
  lastEventId: nullable(Id('event'), 'The id of the last replayed event; null if no event is replayed.'),
  hasMore: Type.Boolean({
    description: 'Whether there are more events. To replay them, repeat the request with `lastEventId` as `after`.',
  }),
})

const State = wordOf(deliveryStates, {
  title: 'WebhookDeliveryState',
  description:
    '`pending`: an attempt is planned. `failed`: the last attempt failed, and none is planned. `skipped`: the endpoint was disabled.',
})
const delivery = {
  id: Id('event', 'The id of the event, which is also the `webhook-id` of each request.'),
  type: EventType,
  state: State,
  isTest: Type.Boolean({ description: 'Whether this delivers the sample of a test, not an event.' }),
  attemptCount: Type.Integer({ minimum: 0 }),
  createdAt: Instant,
  lastAttemptAt: nullable(Instant),
  lastStatus: nullable(Type.Integer(), 'HTTP status of the last attempt; null if there was no response.'),
  nextAttemptAt: nullable(Instant, 'Null if no attempt is planned.'),
}
export const WebhookDelivery = namedObject('WebhookDelivery', delivery)
export const WebhookDeliveries = namedObject('WebhookDeliveries', {
  deliveries: Type.Array(WebhookDelivery),
  hasMore: Type.Boolean(),
  ...pageFields,
})

const WebhookAttempt = namedObject('WebhookAttempt', {
  number: Type.Integer({ minimum: 1 }),
  reason: wordOf(['schedule', 'replay', 'test']),
  at: Instant,
  durationMs: Type.Integer({ minimum: 0 }),
  status: nullable(Type.Integer(), 'HTTP status of the response; null if there was no response.'),
  error: nullable(wordOf(attemptErrors), 'How the attempt failed; null for a success. See the guide to webhooks.'),
  response: nullable(Type.String(), 'The first 16 KiB of the response body; null if there was no response.'),
})
export const WebhookDeliveryDetails = namedObject('WebhookDeliveryDetails', {
  ...delivery,
  attempts: Type.Array(WebhookAttempt, {
    description: `Oldest first; only the last ${deliveryLimits.attemptsMax}, if there are more.`,
  }),
})

export const DeliveryFilter = {
  states: Type.Optional(Type.Array(State, { maxItems: 4 })),
  types: Type.Optional(Type.Array(EventType, { maxItems: 50 })),
  eventId: Type.Optional(Id('event', 'The deliveries of this event.')),
}
