import { createHash, randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Fastify, { LogController } from 'fastify'
import pg from 'pg'
import pino from 'pino'
import { issue, Problem, problem } from '../../src/kernel/errors.ts'
import { withIdempotency } from './idempotency.ts'
import { completeIntent, createIntent, readBalance } from './withdrawals.ts'

// The baseline: the same three operations, on the same tables and with the same responses, as a good team would first
// write them with Fastify and pg. A pool, named statements, one transaction of separate statements per request, the API
// key cached for a second. It has no rate limiter, no float limits and no limits on the number of
// withdrawals, which only makes it faster.

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
  }
}

/** The facts about an API key's partner that these operations need. */
type Caller = { partnerId: string; intentMinutes: number; holdSeconds: number }

const { builtins } = pg.types
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: Number(process.env.DATABASE_CONNECTIONS ?? 20),
  types: {
    getTypeParser: (oid, format) => {
      if (oid === builtins.INT8) return BigInt
      if (oid === builtins.DATE) return (text: string) => text
      return pg.types.getTypeParser(oid, format)
    },
  },
})
// Without a listener, a lost connection would crash the process.
pool.on('error', error => app.log.warn({ err: error }, 'lost a database connection'))

const app = Fastify({
  loggerInstance: pino(pino.destination(2)),
  logController: new LogController({ disableRequestLogging: true }),
  genReqId: () => randomUUID(),
  ajv: {
    customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true },
  },
})
app.decorateRequest('caller')

app.addHook('onRequest', async (request, reply) => {
  reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store' })
  if (request.routeOptions.url?.startsWith('/v1/')) request.caller = await authenticate(request.headers['x-api-key'])
})

app.addHook('onResponse', async (request, reply) => {
  request.log.info(
    {
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      ms: reply.elapsedTime,
      partnerId: request.caller?.partnerId,
    },
    'request',
  )
})

app.setErrorHandler((error, request, reply) => {
  const refusal = refusalOf(error)
  if (refusal.status >= 500) request.log.error({ err: error }, 'request failed')
  return reply.code(refusal.status).headers(refusal.headers).send({ issues: refusal.issues })
})

app.get('/readyz', async () => {
  await pool.query('select 1')
  return {}
})

const id = (prefix: string) => ({ type: 'string', pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$` })
const money = {
  type: 'object',
  properties: {
    amount: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    currency: { type: 'string', pattern: '^[A-Z]{3}$' },
  },
  required: ['amount', 'currency'],
  additionalProperties: false,
}
const idempotencyHeaders = {
  type: 'object',
  properties: { 'x-idempotency-key': { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' } },
}

app.post<{ Body: { memberId: string; amount: { amount: number; currency: string } } }>(
  '/v1/pay/withdrawals/intent',
  {
    schema: {
      operationId: 'createWithdrawalIntent',
      headers: idempotencyHeaders,
      body: {
        type: 'object',
        properties: { memberId: id('mem'), amount: money },
        required: ['memberId', 'amount'],
        additionalProperties: false,
      },
    },
  },
  async (request, reply) =>
    withIdempotency(pool, request, reply, (tx, now) => createIntent(tx, { ...request.caller, ...request.body, now })),
)

app.post<{ Body: { withdrawalIntentId: string } }>(
  '/v1/pay/withdrawals/complete',
  {
    schema: {
      operationId: 'completeWithdrawal',
      headers: idempotencyHeaders,
      body: {
        type: 'object',
        properties: { withdrawalIntentId: id('wi') },
        required: ['withdrawalIntentId'],
        additionalProperties: false,
      },
    },
  },
  async (request, reply) =>
    withIdempotency(pool, request, reply, (tx, now) =>
      completeIntent(tx, { ...request.caller, intentId: request.body.withdrawalIntentId, now }),
    ),
)

app.get<{ Params: { memberId: string } }>(
  '/v1/pay/members/:memberId/balance',
  { schema: { params: { type: 'object', properties: { memberId: id('mem') }, required: ['memberId'] } } },
  async request => readBalance(pool, { ...request.caller, memberId: request.params.memberId }),
)

const keysInUse = new Map<string, { caller: Promise<Caller | undefined>; readAt: number }>()
const rememberedMs = 1_000

async function authenticate(secret: unknown): Promise<Caller> {
  if (typeof secret !== 'string') throw refused('The x-api-key header is missing')
  let known = keysInUse.get(secret)
  if (known === undefined || Date.now() - known.readAt > rememberedMs) {
    known = { caller: findCaller(secret), readAt: Date.now() }
    known.caller.catch(() => keysInUse.delete(secret))
    keysInUse.set(secret, known)
  }
  const caller = await known.caller
  if (caller === undefined) throw refused('The API key is unknown, revoked or expired; use a current one')
  return caller
}

async function findCaller(secret: string): Promise<Caller | undefined> {
  const { rows } = await pool.query<Caller>({
    name: 'find-caller',
    text: `select p.id as "partnerId", p.intent_minutes as "intentMinutes",
                  p.hold_seconds as "holdSeconds"
             from api_keys k join partners p on p.id = k.partner_id
            where k.hash = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
              and p.suspended_at is null`,
    values: [createHash('sha256').update(secret).digest()],
  })
  return rows[0]
}

function refused(message: string): Problem {
  return problem('ApiKeyRefused', message, { path: 'x-api-key' })
}

function refusalOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  const { validation = [] } = error as { validation?: { instancePath: string; message?: string }[] }
  if (validation.length === 0) return problem('InternalServerError', 'An unexpected fault')
  return new Problem(
    'BodyValidation',
    validation.map(({ instancePath, message = '' }) => issue('BodyValidation', message, { path: instancePath })),
  )
}

// The parent process has exited.
process.stdin.resume().on('end', () => process.exit())
process.on('SIGTERM', async () => {
  await app.close()
  await pool.end()
  process.exit()
})

await app.listen({ host: '127.0.0.1', port: 0 })
console.log(`API http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
