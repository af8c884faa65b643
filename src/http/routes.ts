import { Type } from 'typebox'
import { type ProblemName, problem, problems } from '../errors.ts'
import { describeNewerSchema, readSchemaState } from '../migrations.ts'
import { read } from './once.ts'
import { operation } from './operation.ts'
import type { App, Edge } from './server.ts'

const tag = 'Service'
const strict = { additionalProperties: false }
const Status = Type.Object({ status: Type.Literal('ok') }, { title: 'ServiceStatus', ...strict })

const ErrorRow = Type.Object(
  {
    order: Type.Integer({ description: 'When two rows apply, the lower order is the answer.' }),
    code: Type.String(),
    status: Type.Integer(),
    extra: Type.Array(Type.String(), { description: 'Further fields of the issue.' }),
    when: Type.String(),
  },
  { title: 'ErrorRow', ...strict },
)

const IdempotencyKey = Type.Object(
  {
    key: Type.String(),
    operation: Type.String({ description: 'The `operationId` of the request.', examples: ['createWithdrawalIntent'] }),
    status: Type.Integer({ examples: [201] }),
    resourceId: Type.Union([Type.String(), Type.Null()], { description: 'What the request made or changed.' }),
    createdAt: Type.String({ format: 'date-time' }),
    expiresAt: Type.String({ format: 'date-time' }),
  },
  { title: 'IdempotencyKey', ...strict },
)

/** What the service says about itself, and about the requests it remembers. */
export function serviceRoutes(app: App, { db }: Edge): void {
  app.get(
    '/livez',
    {
      schema: operation({
        id: 'getLiveness',
        tag,
        summary: 'Is the process alive?',
        public: true,
        success: { status: 200, description: 'It is.', schema: Status },
      }),
    },
    async () => ({ status: 'ok' as const }),
  )

  app.get(
    '/readyz',
    {
      schema: operation({
        id: 'getReadiness',
        tag,
        summary: 'Can the process serve requests?',
        description:
          'Asks the database whether it answers, and whether its schema is one that this version can serve. 503 means: send requests elsewhere, and try again.',
        public: true,
        success: { status: 200, description: 'It can.', schema: Status },
      }),
    },
    async request => {
      let tooNew: string | undefined
      try {
        tooNew = await describeNewerSchema(await readSchemaState(db))
      } catch (error) {
        request.log.warn({ err: error, requestId: request.id }, 'not ready')
        throw problem('ServiceUnavailable', 'The database is out of reach', {}, { 'retry-after': '1' })
      }
      if (tooNew !== undefined) {
        request.log.warn({ reason: tooNew, requestId: request.id }, 'not ready')
        throw problem(
          'ServiceUnavailable',
          'The database is for a newer version of the service',
          {},
          { 'retry-after': '1' },
        )
      }
      return { status: 'ok' as const }
    },
  )

  app.get(
    '/v1/errors',
    {
      schema: operation({
        id: 'getErrors',
        tag,
        summary: 'List everything that can go wrong',
        description: 'The table of codes, for machines. No key needed.',
        public: true,
        success: { status: 200, description: 'The table, in order of precedence.', schema: Type.Array(ErrorRow) },
      }),
    },
    async () => errorRows,
  )

  app.get(
    '/v1/idempotency-keys/:key',
    {
      config: { scope: 'any' },
      schema: operation({
        id: 'getIdempotencyKey',
        tag,
        summary: 'Look up an idempotency key',
        description: 'What became of the request that was sent with this key. Never the answer’s body.',
        params: Type.Object({ key: Type.String({ pattern: '^[\\x21-\\x7e]{1,255}$' }) }),
        success: { status: 200, description: 'The request that succeeded with this key.', schema: IdempotencyKey },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, now, params } = request
        const row = await reader
          .selectFrom('idempotencyKeys')
          .select(['key', 'operation', 'status', 'resourceId', 'createdAt', 'expiresAt'])
          .where('partnerId', '=', partner.id)
          .where('key', '=', params.key)
          .where('expiresAt', '>', now)
          // A look-up with a key of its own must not find itself.
          .where('status', 'is not', null)
          .executeTakeFirst()
        if (row === undefined) throw problem('NotFound', 'No request has succeeded with this key in the last 7 days')
        return {
          status: 200,
          body: { ...row, createdAt: row.createdAt.toISOString(), expiresAt: row.expiresAt.toISOString() },
        }
      }),
  )
}

const errorRows = Object.keys(problems).map(name => {
  const { order, code, status, extra, when } = problems[name as ProblemName]
  return { order, code, status, extra, when }
})
