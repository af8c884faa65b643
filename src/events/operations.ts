import { Type } from 'typebox'
import type { Db } from '../database/database.ts'
import { named, operation } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { namedObject, nullable, strict, strictObject, wordOf } from '../kernel/schemas.ts'
import { tracing } from '../users/roles.ts'
import { catalogue, EventSequence, EventType, eventTypes } from './catalogue.ts'
import * as events from './events.ts'

const eventFields = {
  id: Id('event'),
  timestamp: Type.String({
    title: 'EventTimestamp',
    format: 'date-time',
    description: 'When the event happened.',
    examples: ['2026-03-31T09:30:00.000Z'],
  }),
  createdAt: Type.String({
    title: 'EventCreatedAt',
    format: 'date-time',
    description: 'Same as `timestamp`.',
  }),
  sequence: EventSequence,
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

const getEvents = operation({
  route: 'GET /v1/events',
  mayReadReplica: true,
  scope: 'pay:read',
  roles: tracing,
  sdk: 'events.list',
  tag: 'Events',
  summary: 'Read the event feed',
  description:
    'Returns the state changes of the last 30 days, oldest first. To continue, pass the `lastEventId` of the previous response as `after`; no event is ever skipped, even with concurrent requests. `from=now` returns no events, only the `lastEventId` to continue from. The events of one resource are in the order of their `sequence`. If `after` is unknown or older than 30 days, the response is `NotFound`: events may have been missed, so start again without `after`.',
  query: strictObject({
    after: Type.Optional(
      Id('event', 'The last event that you have processed: the `lastEventId` of the previous response.'),
    ),
    from: Type.Optional(
      wordOf(['now'], {
        description:
          'Starts at the end of the feed: returns no events, only the `lastEventId` to pass as `after` next. Cannot be combined with `after`.',
      }),
    ),
    types: Type.Optional(Type.Array(EventType, { maxItems: 50, description: 'Only events of these types.' })),
    resourceId: Type.Optional(
      Type.String({
        pattern: '^[a-z]+_[0-9a-z]+$',
        maxLength: 60,
        description: 'Only events of this withdrawal, intent, member, pay run, pay cycle, job or webhook.',
        examples: ['w_01m7vcftfbezgsznx89a74yd09'],
      }),
    ),
    take: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        default: 50,
        description: 'Maximum number of events to return, 1 to 1,000.',
      }),
    ),
  }),
  success: {
    description: 'The next events; an empty list if there are no more.',
    schema: namedObject('Events', {
      events: Type.Array(Event),
      lastEventId: nullable(
        Id('event'),
        'Your position in the feed: pass it as `after` to continue. Null while the feed is empty; then continue without `after`.',
      ),
      hasMore: Type.Boolean(),
      take: Type.Integer({ minimum: 1, description: 'Maximum number of events in this response.' }),
    }),
  },
  problems: ['NotFound'],
  async run({ partner, now, query, context }, { read }) {
    // With from=now, the end of the feed must come after everything that is committed.
    const isBehind = await numberWhatIsDue(context.db, partner.id, { isWhole: query.from === 'now' })
    return await read(async reader => {
      const { after = null, from, types = [], resourceId = null, take = 50 } = query
      if (from === 'now') {
        if (after !== null) {
          throw problem('QueryValidation', 'from=now cannot be combined with after; send one of them', {
            path: 'from',
          })
        }
        const lastEventId = await events.findLastId(reader, { partnerId: partner.id, now })
        return { body: { events: [], lastEventId, hasMore: false, take } }
      }
      // One more than requested, to know whether there are more.
      const found = await events.read(reader, {
        partnerId: partner.id,
        after,
        types,
        resourceId,
        countMax: take + 1,
        now,
      })
      const page = found.slice(0, take)
      const lastEventId = page.at(-1)?.id ?? after
      const hasMore = found.length > take || isBehind
      return { body: { events: page.map(eventBody), lastEventId, hasMore, take } }
    })
  },
})

export const eventOperations = named({ getEvents })

// Takes a few tens of milliseconds at most; the next request or the worker does the rest.
const numberedAtOnceMax = 2_000

/**
 * @param options.isWhole whether to number all committed events, within the deadline of the request
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

function eventBody(event: events.Event) {
  return { ...event, timestamp: event.createdAt }
}
