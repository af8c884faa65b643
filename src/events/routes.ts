import { Type } from 'typebox'
import type { Db } from '../db.ts'
import { problem } from '../errors.ts'
import { operation } from '../http/operation.ts'
import type { ApiContext, App } from '../http/server.ts'
import { read } from '../http/with-idempotency.ts'
import { Id } from '../ids.ts'
import { catalogue, type EventType, eventTypes } from './catalogue.ts'
import * as events from './events.ts'

const strict = { additionalProperties: false }

const eventFields = {
  id: Id('event'),
  timestamp: Type.String({
    format: 'date-time',
    description: 'When it happened.',
    examples: ['2026-03-31T09:30:00.000Z'],
  }),
  createdAt: Type.String({ format: 'date-time', description: 'The same instant as `timestamp`.' }),
  sequence: Type.Integer({ minimum: 1, description: 'Grows by one with each event of the same resource.' }),
}

const Event = Type.Unsafe({
  title: 'Event',
  type: 'object',
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: eventTypes.map(type => {
    const { when, data } = catalogue[type]
    return Type.Object(
      { type: Type.Literal(type, { type: 'string' }), ...eventFields, data },
      { title: `${inPascalCase(type)}Event`, description: when, ...strict },
    )
  }),
})

function inPascalCase(type: EventType): string {
  return type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function eventRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/v1/events',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getEvents',
        tag: 'Events',
        summary: 'Read the events',
        description:
          'Every state change of the last 30 days, oldest first. Pass the `lastEventId` of an answer as `after` to read on: no event is ever missed, however many requests run at once. With `from=now` the first answer has no events, only the place to go on from. The events of one resource are in the order of their `sequence`. An `after` that is unknown, or older than 30 days, is `NotFound`: events may have been missed, so read from the beginning.',
        query: Type.Object(
          {
            after: Type.Optional(Id('event', 'The last event that you have: `lastEventId` of the previous answer.')),
            from: Type.Optional(
              Type.Enum(['now'], {
                type: 'string',
                description:
                  'Start at the end of the feed: no events, and the `lastEventId` to pass as `after` from then on. Not together with `after`.',
              }),
            ),
            types: Type.Optional(
              Type.Array(Type.Enum(eventTypes, { type: 'string' }), {
                maxItems: 50,
                description: 'Only events of these types.',
              }),
            ),
            take: Type.Optional(
              Type.Integer({ minimum: 1, maximum: 1_000, default: 50, description: 'Events to give, 1 to 1,000.' }),
            ),
          },
          strict,
        ),
        success: {
          status: 200,
          description: 'The next events; none when you have them all.',
          schema: Type.Object(
            {
              events: Type.Array(Event),
              lastEventId: Type.Union([Id('event'), Type.Null()], {
                description:
                  'Where you are in the feed: pass it as `after` to read on. Null while there is no event; then read on without `after`.',
              }),
              hasMore: Type.Boolean(),
              take: Type.Integer({ minimum: 1, description: 'Largest number of events in this answer.' }),
            },
            { title: 'Events', ...strict },
          ),
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      // With from=now, the end of the feed must come after everything that is committed.
      const isBehind = await numberWhatIsDue(db, request.partner.id, { isWhole: request.query.from === 'now' })
      return await read(db, request, reply, async reader => {
        const { partner, now, query } = request
        const { after = null, from, types = [], take = 50 } = query
        if (from === 'now') {
          if (after !== null) {
            throw problem(
              'QueryValidation',
              'from=now starts at the end of the feed; leave it out together with after',
              {
                path: 'from',
              },
            )
          }
          const lastEventId = await events.findLastId(reader, { partnerId: partner.id, now })
          return { status: 200, body: { events: [], lastEventId, hasMore: false, take } }
        }
        // One more than asked for, to tell whether there is more.
        const found = await events.read(reader, { partnerId: partner.id, after, types, countMax: take + 1, now })
        const page = found.slice(0, take)
        const lastEventId = page.at(-1)?.id ?? after
        const hasMore = found.length > take || isBehind
        return { status: 200, body: { events: page.map(eventBody), lastEventId, hasMore, take } }
      })
    },
  )
}

// Takes some tens of milliseconds at most; the rest is left to the next request or the worker.
const numberedAtOnceMax = 2_000

/**
 * @param options.isWhole whether to number everything that is due, within the deadline of the request
 * @returns whether the feed is still incomplete
 */
async function numberWhatIsDue(db: Db, partnerId: string, { isWhole }: { isWhole: boolean }): Promise<boolean> {
  if (!(await events.hasUnnumbered(db, partnerId))) return false
  for (;;) {
    const numbered = await db
      .transaction()
      .execute(tx => events.numberFeed(tx, { partnerId, countMax: numberedAtOnceMax, waits: true }))
    if (numbered < numberedAtOnceMax) return false
    if (!isWhole) return true
  }
}

function eventBody({ createdAt, ...event }: events.Event) {
  const timestamp = createdAt.toISOString()
  return { ...event, timestamp, createdAt: timestamp }
}
