import { Type } from 'typebox'
import { idempotencyKeyPattern } from '../contract/headers.ts'
import { erased } from '../idempotency/idempotency.ts'
import { partnerProblems, problem, problems } from '../kernel/errors.ts'
import { namedObject, nullable, wordOf } from '../kernel/schemas.ts'
import { tracing } from '../users/roles.ts'
import { named, operationWith } from './operation.ts'

const operation = operationWith({ tag: 'Service' })

const ErrorRow = namedObject('ErrorRow', {
  order: Type.Integer({
    description: 'Precedence: if several rows apply, the answer is the one with the lowest order.',
  }),
  code: Type.String(),
  status: Type.Integer(),
  retry: wordOf(['yes', 'no', 'if-retry-after', 'if-repeatable'], {
    description:
      'When `x-should-retry` is `true`: always, never, if the answer has `retry-after`, or if a repeat is safe because the request is a GET or has an idempotency key.',
  }),
  extra: Type.Array(Type.String(), { description: 'Additional fields of the issue.' }),
  when: Type.String(),
})

const IdempotencyKey = namedObject('IdempotencyKey', {
  key: Type.String(),
  operation: Type.String({ description: 'The `operationId` of the request.', examples: ['createWithdrawalIntent'] }),
  status: Type.Integer({ examples: [201] }),
  resourceId: nullable(Type.String(), 'The resource that the request created or changed.'),
  createdAt: Type.String({ format: 'date-time' }),
  expiresAt: Type.String({ format: 'date-time' }),
})

const errorRows = partnerProblems.map(name => {
  const { order, code, status, retry, extra, when } = problems[name]
  return { order, code, status, retry, extra, when }
})

const getErrors = operation({
  route: 'GET /v1/errors',
  isPublic: true,
  sdk: 'service.getErrors',
  summary: 'List all error codes',
  description: 'A machine-readable table of all error codes. Needs no API key.',
  success: { description: 'The table, in order of precedence.', schema: Type.Array(ErrorRow) },
  read: async () => ({ body: errorRows }),
})

const getIdempotencyKey = operation({
  route: 'GET /v1/idempotency-keys/:key',
  scope: 'any',
  roles: tracing,
  sdk: 'idempotencyKeys.get',
  summary: 'Look up an idempotency key',
  description:
    'Returns the outcome of the request that was sent with this key. Never includes the body of its answer. `Conflict` if the member whom the request was about was erased: it had succeeded, and is not run again.',
  params: Type.Object({
    key: Type.String({ pattern: idempotencyKeyPattern, examples: ['3f0c1f6e-8f5d-4c1e-9a53-0a8f0f0a7f11'] }),
  }),
  success: { description: 'The request that succeeded with this key.', schema: IdempotencyKey },
  problems: ['Conflict'],
  async read(reader, { partner, now, params }) {
    const found = await reader
      .selectFrom('idempotencyKeys')
      .select(['key', 'operation', 'status', 'resourceId', 'createdAt', 'expiresAt'])
      .where('partnerId', '=', partner.id)
      .where('key', '=', params.key)
      .where('expiresAt', '>', now)
      // A lookup that sends an idempotency key itself must not find its own record.
      .where(row => row.or([row('status', 'is not', null), row('operation', '<>', 'getIdempotencyKey')]))
      .executeTakeFirst()
    if (found === undefined) throw problem('NotFound', 'No request has succeeded with this key in the last 7 days')
    const { status, ...rest } = found
    if (status === null) throw erased()
    return { body: { ...rest, status } }
  },
})

/** The table of errors, and the lookup of idempotency keys. */
export const serviceOperations = named({ getErrors, getIdempotencyKey })
