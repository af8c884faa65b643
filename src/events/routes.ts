import { Type } from 'typebox'
import type { Db } from '../db.ts'
import { read } from '../http/once.ts'
import { operation } from '../http/operation.ts'
import type { App, Edge } from '../http/server.ts'
import { Id } from '../ids.ts'
import * as events from './events.ts'

const strict = { additionalProperties: false }

const Event = Type.Object(
  {
    id: Id('event'),
    type: Type.String({ examples: ['withdrawal.paid'] }),
    createdAt: Type.String({ format: 'date-time', examples: ['2026-03-31T09:30:00.000Z'] }),
    sequence: Type.Integer({ minimum: 1, description: 'Grows by one with each event of the same resource.' }),
    data: Type.Object(
      {},
      { additionalProperties: true, description: 'Ids, amounts and states. Never bank details or names.' },
    ),
  },
  { title: 'Event', ...strict },
)

export function eventRoutes(app: App, { db }: Edge): void {
  app.get(
    '/v1/events',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getEvents',
        tag: 'Events',
        summary: 'Read the events',
        description:
          'Every state change of the last 30 days, oldest first. Remember the id of the last event that you have dealt with and pass it as `after`: no event is ever missed, however many requests run at once. The events of one resource are in the order of their `sequence`. An `after` that is unknown, or older than 30 days, is `NotFound`: events may have been missed, so read from the beginning.',
        query: Type.Object(
          {
            after: Type.Optional(Id('event', 'The last event that you have.')),
            types: Type.Optional(
              Type.Array(Type.String({ pattern: '^[a-z_]{1,40}\\.[a-z_]{1,40}$', examples: ['withdrawal.paid'] }), {
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
      const isBehind = await numberWhatIsDue(db, request.partner.id)
      return await read(db, request, reply, async reader => {
        const { partner, now, query } = request
        const { after = null, types = [], take = 50 } = query
        // One more than asked for tells whether there is more.
        const found = await events.read(reader, { partnerId: partner.id, after, types, countMax: take + 1, now })
        const hasMore = found.length > take || isBehind
        return { status: 200, body: { events: found.slice(0, take).map(eventBody), hasMore, take } }
      })
    },
  )
}

// A reader waits for some tens of milliseconds at most; what is left is for its next request, or the worker.
const numberedAtOnceMax = 2_000

/** @returns whether the feed is still incomplete */
async function numberWhatIsDue(db: Db, partnerId: string): Promise<boolean> {
  if (!(await events.hasUnnumbered(db, partnerId))) return false
  const numbered = await db
    .transaction()
    .execute(tx => events.numberFeed(tx, { partnerId, countMax: numberedAtOnceMax }))
  return numbered >= numberedAtOnceMax
}

function eventBody({ createdAt, ...event }: events.Event) {
  return { ...event, createdAt: createdAt.toISOString() }
}
