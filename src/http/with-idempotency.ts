import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import stringify from 'safe-stable-stringify'
import * as auditLog from '../audit-log/audit-log.ts'
import type { BatchDb, Db, Reader, Tx } from '../database/database.ts'
import {
  type BatchClaim,
  type Claim,
  claim,
  complete,
  isWaitForKey,
  Replay,
  type Answer as Stored,
  stillRunning,
} from '../idempotency/idempotency.ts'

/**
 * What an operation answers with: JSON, unless the headers name another `content-type`, which `body` is then the text of.
 * `resourceId` lets the look-up of an idempotency key say what the request made. `audit` is recorded with the effect: what
 * was done to that resource; left out where nothing changed.
 */
export type Answer = {
  status: number
  body: unknown
  headers?: Record<string, string>
  resourceId?: string | null
  audit?: Omit<auditLog.Change, 'resourceId'> | undefined
}

/**
 * Runs an operation that writes: in one transaction, and at most once per idempotency key.
 *
 * The key's record is claimed before the work and completed after it, in the same transaction, so that neither the
 * effect nor the record ever exists without the other. A refusal is thrown, rolls both back, and leaves the key free.
 * @throws Problem `IdempotencyKeyReused` when the key belongs to another request, `Conflict` when the first request
 * with this key is still running after two seconds
 */
export async function withIdempotency(
  db: Db,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (tx: Tx) => Promise<Answer>,
): Promise<FastifyReply> {
  const claimed = claimOf(request)
  if (claimed === undefined) return send(reply, await db.transaction().execute(tx => audited(tx, request, work)))
  const answer = await inTurn(claimed, () =>
    db.transaction().execute(async tx => {
      const replay = await claim(tx, claimed)
      if (replay !== undefined) return replay
      const answer = await audited(tx, request, work)
      await complete(tx, claimed, answer)
      return answer
    }),
  )
  return send(reply, answer)
}

// A repeated request is replayed and never gets here, so that one change has one row.
async function audited(tx: Tx, request: FastifyRequest, work: (tx: Tx) => Promise<Answer>): Promise<Stored> {
  const answer = await work(tx)
  const { audit, resourceId } = answer
  if (audit !== undefined) {
    assert(typeof resourceId === 'string')
    const { partner, now, keyId, ip, id } = request
    const actor: auditLog.Actor = { kind: 'api_key', name: keyId, address: ip, requestId: id }
    await auditLog.record(tx, { partnerId: partner.id, actor, change: { ...audit, resourceId }, now })
  }
  return stored(answer)
}

/**
 * Like `once`, for an operation whose commands are decided and written together with those of other requests: the record of
 * the key is written by the statement that has the effect.
 * @param submit hands the command over; `once` goes with it when the request has a key
 */
export async function withBatchIdempotency<Result extends object>(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    submit,
    answerOf,
  }: { submit: (once?: BatchClaim<Result>) => Promise<Result | Replay>; answerOf: (result: Result) => Answer },
): Promise<FastifyReply> {
  const claimed = claimOf(request)
  // Not kept from one call to the next: a batch that fails is run again, and then has another result.
  const answered = (result: Result) => stored(answerOf(result))
  const result =
    claimed === undefined
      ? await submit()
      : await inTurn(claimed, () => submit({ ...claimed, answerOf: answered })).catch(error => {
          throw isWaitForKey(error) ? stillRunning() : error
        })
  return send(reply, result instanceof Replay ? result : answered(result))
}

/** Runs an operation that only reads. It needs no transaction, unless an idempotency key has to be recorded. */
export async function read(
  db: Db,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (reader: Reader) => Promise<Answer>,
): Promise<FastifyReply> {
  if (request.idempotencyKey !== undefined) return await withIdempotency(db, request, reply, work)
  return send(reply, stored(await work(db)))
}

/** Like `read`, for a read that is as frequent as the commands of batches: its statement is prepared, as theirs are. */
export async function readPrepared(
  { db, batchDb }: { db: Db; batchDb: BatchDb },
  request: FastifyRequest,
  reply: FastifyReply,
  work: (reader: Reader) => Promise<Answer>,
): Promise<FastifyReply> {
  // The claim of an idempotency key waits longer for a lock than a batch does.
  if (request.idempotencyKey !== undefined) return await withIdempotency(db, request, reply, work)
  return send(reply, stored(await work(batchDb)))
}

const turns = new Map<string, Promise<void>>()

/**
 * Lets copies of one request in this process go one after the other, so that they wait here and not each with a
 * connection of its own. Copies in other processes wait for the row of the key.
 */
async function inTurn<T>({ partnerId, key }: Claim, work: () => Promise<T>): Promise<T> {
  const name = `${partnerId} ${key}`
  const before = turns.get(name)
  const mine = Promise.withResolvers<void>()
  const after = before === undefined ? mine.promise : before.then(() => mine.promise)
  turns.set(name, after)
  // Not before those in front have ended: a copy that gave up would let the next one in beside them.
  void after.then(() => {
    if (turns.get(name) === after) turns.delete(name)
  })
  try {
    if (before !== undefined) await within(waitMsMax, before)
    return await work()
  } finally {
    mine.resolve()
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

function claimOf(request: FastifyRequest): Claim | undefined {
  const { idempotencyKey: key, partner, now } = request
  if (key === undefined) return undefined
  return { partnerId: partner.id, key, fingerprint: fingerprintOf(request), operation: operationOf(request), now }
}

// "The same request": method, route, path parameters, query and the parsed body, keys sorted.
function fingerprintOf(request: FastifyRequest): Buffer {
  const { query, body, fingerprint } = request
  if (fingerprint !== undefined) return fingerprint
  return createHash('sha256')
    .update(`${fingerprintStart(request, query)}${stringify(body) ?? 'null'}]`)
    .digest()
}

/** What stands before the body in the text that the fingerprint of a request is made of. */
export function fingerprintStart({ method, routeOptions, params }: FastifyRequest, query: unknown): string {
  return `${stringify([method, routeOptions.url, params, query])?.slice(0, -1)},`
}

function operationOf(request: FastifyRequest): string {
  return (request.routeOptions.schema as { operationId?: string } | undefined)?.operationId ?? request.method
}

function stored({ status, body, headers = {}, resourceId = null }: Answer): Stored {
  return { status, text: 'content-type' in headers ? String(body) : JSON.stringify(body), headers, resourceId }
}

function send(reply: FastifyReply, answer: Stored | Replay): FastifyReply {
  if (answer instanceof Replay) return send(reply.header('idempotency-replayed', 'true'), answer.answer)
  const { status, text, headers } = answer
  return reply.code(status).type('application/json; charset=utf-8').headers(headers).send(text)
}
