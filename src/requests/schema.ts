import { Type } from 'typebox'
import { cursorQuery, pageFields, pageQuery } from '../contract/list.ts'
import { partnerProblems, problems } from '../kernel/errors.ts'
import { CallerId, Id } from '../kernel/ids.ts'
import { described, namedObject, strictObject, wordOf } from '../kernel/schemas.ts'
import { GivenDayOrInstant, Instant } from '../kernel/time.ts'
import type * as requests from './requests.ts'

const orNull = (description: string, examples: string[]) =>
  Type.Union([Type.String(), Type.Null()], { description, examples })

export const LoggedRequest = namedObject('LoggedRequest', {
  id: Id('request'),
  requestId: Type.String({
    description: 'The `x-request-id` of the response: yours if you sent one, otherwise the same as `id`.',
    examples: ['req_01kah4pzc5e4r8v2m6t0x9y3bd'],
  }),
  createdAt: described(Instant, 'When the request arrived, by the real clock.'),
  method: Type.String({ examples: ['POST'] }),
  route: orNull('The path as in this document; null if no operation has it.', ['/v1/members/{memberId}']),
  path: Type.String({
    description:
      'The path without its query. Only ids are filled in: a parameter that is not an id stays a name, and a part of an unknown path that no operation has is `…`.',
    examples: ['/v1/members/mem_01kah4pzc5e4r8v2m6t0x9y3bd'],
  }),
  status: Type.Integer({ examples: [201] }),
  durationMs: Type.Integer({
    minimum: 0,
    description: 'From the arrival of the request to the end of its response, in milliseconds.',
  }),
  keyId: CallerId('The API key that the request was made with, or the user of the console.'),
  idempotencyKey: orNull('The `x-idempotency-key` of the request.', ['3f0c1f6e-8f5d-4c1e-9a53-0a8f0f0a7f11']),
  replayed: Type.Boolean({
    description: 'Whether the response was the stored response of an earlier request with the same key.',
  }),
  errorCodes: Type.Array(Type.String(), {
    description: 'The codes of the issues in the response, each once.',
    examples: [['MemberInsufficientFunds']],
  }),
  resourceId: orNull(
    'The resource that the request created or changed, or else the resource in its path, or else the member named in the error or the request.',
    ['w_01kah4pzc5e4r8v2m6t0x9y3bd'],
  ),
})

export const LoggedRequests = namedObject('LoggedRequests', {
  requests: Type.Array(LoggedRequest),
  hasMore: Type.Boolean({ description: 'Whether there are more entries in the direction of the cursor.' }),
  take: pageFields.take,
})

export const RequestErrors = namedObject('RequestErrors', {
  counts: Type.Array(
    namedObject('RequestErrorCount', { from: Instant, errorCode: Type.String(), count: Type.Integer({ minimum: 1 }) }),
  ),
  isComplete: Type.Boolean({ description: 'False if only the newest 100,000 errors were counted.' }),
})

const dayOrInstant = 'A date without a time means midnight UTC.'

export const RequestQuery = strictObject({
  status: Type.Optional(
    Type.String({
      pattern: '^[1-5]([0-9]{2}|xx)$',
      description: 'Only requests with this status, or this class of status: `4xx`.',
      examples: ['4xx', '409'],
    }),
  ),
  errorCode: Type.Optional(
    wordOf([...new Set(partnerProblems.map(name => problems[name].code))], {
      description: 'Only requests that were refused with this code.',
    }),
  ),
  method: Type.Optional(wordOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])),
  route: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Only requests of this path, as in this document.',
      examples: ['/v1/members/{memberId}'],
    }),
  ),
  keyId: Type.Optional(CallerId('Only requests that were made with this API key, or by this user of the console.')),
  requestId: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9._:-]{1,128}$',
      description: 'Only requests with this `x-request-id` in their response.',
      examples: ['req_01kah4pzc5e4r8v2m6t0x9y3bd'],
    }),
  ),
  idempotencyKey: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_024, description: 'Only requests with this idempotency key.' }),
  ),
  resourceId: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Only requests about this resource; see `resourceId` in the response.',
      examples: ['w_01kah4pzc5e4r8v2m6t0x9y3bd'],
    }),
  ),
  fromDate: Type.Optional(described(GivenDayOrInstant, `Arrived at or after this instant. ${dayOrInstant}`)),
  toDate: Type.Optional(described(GivenDayOrInstant, `Arrived before this instant. ${dayOrInstant}`)),
  take: pageQuery.take,
  ...cursorQuery('request'),
})

export function requestBody({ isReplayed, requestId, ...logged }: requests.LoggedRequest) {
  return { ...logged, requestId: requestId ?? logged.id, replayed: isReplayed }
}
