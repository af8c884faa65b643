import { type Static, Type } from 'typebox'
import { cursorOf, cutPage, pageOf } from '../contract/list.ts'
import { named, operationWith } from '../http/operation.ts'
import { defaultRetention } from '../kernel/retention.ts'
import { strictObject, wordOf } from '../kernel/schemas.ts'
import { GivenDayOrInstant, parseInstant } from '../kernel/time.ts'
import { tracing } from '../users/roles.ts'
import * as requests from './requests.ts'
import { LoggedRequest, LoggedRequests, RequestErrors, RequestQuery, requestBody } from './schema.ts'

const keptDays = defaultRetention.requests

const operation = operationWith({ tag: 'Service', scope: 'pay:read', roles: tracing })

const getRequests = operation({
  route: 'GET /v1/requests',
  sdk: 'requests.list',
  summary: 'List your requests',
  description: `Your requests of the last ${keptDays} days and their outcomes, newest first, without bodies and queries; the operator may keep them for a shorter or longer time. All requests are logged, except that only the first 100 requests a second that are refused with 429 are. An entry appears within about a second, and may be missing after a crash or while the database is overloaded. On a busy account, narrow a search by \`method\` or \`route\` with \`fromDate\`. If \`after\` or \`before\` is unknown, the response is \`NotFound\`.`,
  query: RequestQuery,
  success: { description: 'One page of requests.', schema: LoggedRequests },
  problems: ['NotFound'],
  async read(reader, { partner, query }) {
    const { take } = pageOf(query)
    const cursor = cursorOf(query)
    const found = await requests.list(reader, {
      partnerId: partner.id,
      filter: filterOf(query),
      // One more than requested, to know whether there are more.
      take: take + 1,
      cursor,
    })
    const { rows, hasMore } = cutPage(found, { take, cursor })
    return { body: { requests: rows.map(requestBody), hasMore, take } }
  },
})

const getRequestErrors = operation({
  route: 'GET /v1/request-errors',
  sdk: 'requests.countErrors',
  summary: 'Count the errors of your requests',
  description: 'Counts by code and hour or day (UTC), oldest first, for as long as the requests are kept.',
  query: strictObject({
    by: Type.Optional(wordOf(['hour', 'day'], { default: 'hour' })),
    fromDate: Type.Optional(Type.Unsafe<string>(GivenDayOrInstant)),
  }),
  success: { description: 'The counts.', schema: RequestErrors },
  async read(reader, { partner, query }) {
    const { by = 'hour', fromDate } = query
    const from = fromDate === undefined ? new Date(0) : parseInstant(fromDate, { decimals: 'up' })
    return { body: await requests.countErrors(reader, { partnerId: partner.id, by, from }) }
  },
})

const getRequest = operation({
  route: 'GET /v1/requests/:requestId',
  sdk: 'requests.get',
  summary: 'Get a request',
  description:
    'One of your requests in the log, by the `id` that Midmonth assigned. To find a request by your own `x-request-id`, use the filter `requestId` of the list.',
  success: { description: 'The request.', schema: LoggedRequest },
  async read(reader, { partner, params }) {
    return { body: requestBody(await requests.find(reader, { partnerId: partner.id, id: params.requestId })) }
  },
})

export const requestOperations = named({ getRequests, getRequestErrors, getRequest })

function filterOf({ status, fromDate, toDate, ...query }: Static<typeof RequestQuery>): requests.RequestFilter {
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
