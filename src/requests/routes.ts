import { type Static, Type } from 'typebox'
import { cursorOf, cutPage, pageOf } from '../contract/list.ts'
import { operation } from '../http/described-route.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read } from '../http/with-idempotency.ts'
import { Id } from '../kernel/ids.ts'
import { GivenDayOrInstant, parseInstant } from '../kernel/time.ts'
import * as requests from './requests.ts'
import { LoggedRequest, LoggedRequests, RequestErrors, RequestQuery } from './schema.ts'

const tag = 'Service'

export function requestRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/v1/requests',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getRequests',
        tag,
        summary: 'List your requests',
        description:
          'Your requests of the last 7 days and their outcomes, newest first, without bodies and queries. All requests are logged, except that only the first 100 requests a second that are refused with 429 are. An entry appears within about a second, and may be missing after a crash or while the database is overloaded. On a busy account, narrow a search by `method` or `route` with `fromDate`. If `after` or `before` is unknown, the response is `NotFound`.',
        query: RequestQuery,
        success: { status: 200, description: 'One page of requests.', schema: LoggedRequests },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, query, receivedAt } = request
        const { take } = pageOf(query)
        const cursor = cursorOf(query)
        const found = await requests.list(reader, {
          partnerId: partner.id,
          filter: filterOf(query),
          // One more than requested, to know whether there are more.
          take: take + 1,
          cursor,
          now: receivedAt,
        })
        const { rows, hasMore } = cutPage(found, { take, cursor })
        return { status: 200, body: { requests: rows.map(requestBody), hasMore, take } }
      }),
  )

  app.get(
    '/v1/request-errors',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getRequestErrors',
        tag,
        summary: 'Count the errors of your requests',
        description: 'Counts by code and hour or day (UTC), oldest first, for at most 7 days.',
        query: Type.Object(
          {
            by: Type.Optional(Type.Enum(['hour', 'day'], { type: 'string', default: 'hour' })),
            fromDate: Type.Optional(Type.Unsafe<string>(GivenDayOrInstant)),
          },
          { additionalProperties: false },
        ),
        success: { status: 200, description: 'The counts.', schema: RequestErrors },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, query, receivedAt: now } = request
        const { by = 'hour', fromDate } = query
        const from = fromDate === undefined ? new Date(0) : parseInstant(fromDate, { decimals: 'up' })
        const { counts, isComplete } = await requests.countErrors(reader, { partnerId: partner.id, by, from, now })
        const body = { counts: counts.map(each => ({ ...each, from: each.from.toISOString() })), isComplete }
        return { status: 200, body }
      }),
  )

  app.get(
    '/v1/requests/:requestId',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getRequest',
        tag,
        summary: 'Get a request',
        description:
          'One of your requests of the last 7 days, by the `id` that Midmonth assigned. To find a request by your own `x-request-id`, use the filter `requestId` of the list.',
        params: Type.Object({ requestId: Id('request') }),
        success: { status: 200, description: 'The request.', schema: LoggedRequest },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params, receivedAt } = request
        const asked = { partnerId: partner.id, id: params.requestId, now: receivedAt }
        return { status: 200, body: requestBody(await requests.find(reader, asked)) }
      }),
  )
}

function filterOf({ status, fromDate, toDate, ...query }: Static<typeof RequestQuery>): requests.Filter {
  const { take: _take, after: _after, before: _before, ...equal } = query
  return {
    ...equal,
    ...(status === undefined
      ? {}
      : { status: { from: Number(status.replace('xx', '00')), to: Number(status.replace('xx', '99')) } }),
    ...(fromDate === undefined ? {} : { from: parseInstant(fromDate, { decimals: 'up' }) }),
    ...(toDate === undefined ? {} : { to: parseInstant(toDate, { decimals: 'up' }) }),
  }
}

function requestBody({ isReplayed, createdAt, requestId, ...logged }: requests.LoggedRequest) {
  return {
    ...logged,
    requestId: requestId ?? logged.id,
    createdAt: createdAt.toISOString(),
    replayed: isReplayed,
  }
}
