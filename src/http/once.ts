import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import stringify from 'safe-stable-stringify'
import { type Db, isLockTimeout, type Reader, sql, type Tx } from '../db.ts'
import { type Problem, problem } from '../errors.ts'

/**
 * What an operation answers with: JSON, unless the headers name another `content-type`, which `body` is then the text of.
 * `resourceId` lets the look-up of an idempotency key say what the request made.
 */
export type Answer = { status: number; body: unknown; headers?: Record<string, string>; resourceId?: string }

type Stored = { status: number; text: string; headers: Record<string, string> }

const keyLifeMs = 7 * 86_400_000

/**
 * Runs an operation that writes: in one transaction, and at most once per idempotency key.
 *
 * The key's record is claimed before the work and completed after it, in the same transaction, so that neither the
 * effect nor the record ever exists without the other. A refusal is thrown, rolls both back, and leaves the key free.
 * @throws Problem `IdempotencyKeyReused` when the key belongs to another request, `Conflict` when the first request
 * with this key is still running after two seconds
 */
export async function once(
  db: Db,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (tx: Tx) => Promise<Answer>,
): Promise<FastifyReply> {
  const key = request.idempotencyKey
  if (key === undefined) return send(reply, stored(await db.transaction().execute(work)))
  const { answer, replayed } = await inTurn(`${request.partner.id} ${key}`, () =>
    db.transaction().execute(async tx => {
      const earlier = await claim(tx, request, key)
      if (earlier !== undefined) return { answer: earlier, replayed: true }
      const result = await work(tx)
      const answer = stored(result)
      await complete(tx, request, key, answer, result.resourceId)
      return { answer, replayed: false }
    }),
  )
  if (replayed) reply.header('idempotency-replayed', 'true')
  return send(reply, answer)
}

/** Runs an operation that only reads. Without an idempotency key it needs no transaction; with one it is `once`. */
export async function read(
  db: Db,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (reader: Reader) => Promise<Answer>,
): Promise<FastifyReply> {
  if (request.idempotencyKey !== undefined) return await once(db, request, reply, work)
  return send(reply, stored(await work(db)))
}

const turns = new Map<string, Promise<void>>()

/**
 * Lets copies of one request in this process go one after the other, so that they wait here and not each with a
 * connection of its own. Copies in other processes wait for the row of the key.
 */
async function inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
  const before = turns.get(name) ?? Promise.resolve()
  const mine = Promise.withResolvers<void>()
  const after = before.then(() => mine.promise)
  turns.set(name, after)
  try {
    await within(waitMsMax, before)
    return await work()
  } finally {
    mine.resolve()
    if (turns.get(name) === after) turns.delete(name)
  }
}

// As long as the database waits for a lock.
const waitMsMax = 2_000

async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(stillRunning()), ms)
  })
  await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

function stillRunning(): Problem {
  return problem(
    'Conflict',
    'A request with this idempotency key is being processed right now; try again in a second',
    {},
    { 'retry-after': '1' },
  )
}

// Waits for an unfinished row of the same key; when that one is rolled back, the key is ours.
async function claim(tx: Tx, request: FastifyRequest, key: string): Promise<Stored | undefined> {
  const { partner, now } = request
  const fingerprint = fingerprintOf(request)
  const claimed = await sql`
    insert into idempotency_keys (partner_id, key, fingerprint, operation, created_at, expires_at)
    values (${partner.id}, ${key}, ${fingerprint}, ${operationOf(request)}, ${now}, ${new Date(now.getTime() + keyLifeMs)})
    on conflict (partner_id, key) do update
       set fingerprint = excluded.fingerprint, operation = excluded.operation, status = null, headers = null,
           body = null, resource_id = null, created_at = excluded.created_at, expires_at = excluded.expires_at
     where idempotency_keys.expires_at <= ${now}
    returning key`
    .execute(tx)
    .catch(error => {
      throw isLockTimeout(error) ? stillRunning() : error
    })
  if (claimed.rows.length === 1) return undefined
  const { rows } = await sql<{ fingerprint: Buffer; status: number; body: string; headers: Record<string, string> }>`
    select fingerprint, status, body, headers from idempotency_keys
     where partner_id = ${partner.id} and key = ${key}`.execute(tx)
  const earlier = rows[0]
  if (earlier === undefined) throw new Error('An idempotency key was neither free nor taken')
  if (!earlier.fingerprint.equals(fingerprint)) {
    throw problem(
      'IdempotencyKeyReused',
      'This idempotency key was used for a different request; use a new key for a new request',
      {
        path: 'x-idempotency-key',
      },
    )
  }
  return { status: earlier.status, text: earlier.body, headers: earlier.headers }
}

async function complete(
  tx: Tx,
  request: FastifyRequest,
  key: string,
  answer: Stored,
  resourceId?: string,
): Promise<void> {
  await sql`
    update idempotency_keys
       set status = ${answer.status}, headers = ${JSON.stringify(answer.headers)}, body = ${answer.text},
           resource_id = ${resourceId ?? null}
     where partner_id = ${request.partner.id} and key = ${key}`.execute(tx)
}

// "The same request": method, route, path parameters, query and the parsed body, keys sorted.
function fingerprintOf(request: FastifyRequest): Buffer {
  const { method, routeOptions, params, query, body } = request
  const text = stringify([method, routeOptions.url, params, query, body])
  return createHash('sha256')
    .update(text ?? '')
    .digest()
}

function operationOf(request: FastifyRequest): string {
  return (request.routeOptions.schema as { operationId?: string } | undefined)?.operationId ?? request.method
}

function stored({ status, body, headers = {} }: Answer): Stored {
  return { status, text: 'content-type' in headers ? String(body) : JSON.stringify(body), headers }
}

function send(reply: FastifyReply, { status, text, headers }: Stored): FastifyReply {
  return reply.code(status).type('application/json; charset=utf-8').headers(headers).send(text)
}
