import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import stringify from 'safe-stable-stringify'
import { type Disclosure, type DisclosureLog, recordDisclosures } from '../audit-log/disclosures.ts'
import type { Db, Reader, Tx } from '../database/database.ts'
import { shareByName } from '../database/named-locks.ts'
import {
  type BatchClaim,
  type Claim,
  claim,
  complete,
  findAll,
  hold,
  isWaitForKey,
  Replay,
  type StoredResponse,
  stillRunning,
} from '../idempotency/idempotency.ts'
import { Problem } from '../kernel/errors.ts'
import { within } from '../kernel/within.ts'
import type { Partner } from '../partners/partners.ts'
import { actorOf } from './admission/actor.ts'
import type { Disclosed, OperationResponse } from './operation.ts'
import { recordAudit } from './record-audit.ts'

/** The response of an operation, complete. */
export type CompleteResponse = OperationResponse & { status: number }

/**
 * Runs a writing operation in one transaction, at most once per idempotency key.
 *
 * The key is claimed before the work and its record completed after it, in the same transaction, so that the effect and the
 * record are committed together. A refusal is thrown, rolls both back, and leaves the key unused.
 * @throws Problem `IdempotencyKeyReused` if the key belongs to another request, `Conflict` if the first request
 * with this key is still running after two seconds
 */
export async function withIdempotency(
  db: Db,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (tx: Tx) => Promise<CompleteResponse>,
): Promise<FastifyReply> {
  const claimed = claimOf(request)
  const respond = () => respondOnce(db, request, { claimed, work })
  return send(reply, claimed === undefined ? await respond() : await inTurn(claimed, respond))
}

async function respondOnce(
  db: Db,
  request: FastifyRequest,
  { claimed, work }: { claimed: Claim | undefined; work: (tx: Tx) => Promise<CompleteResponse> },
): Promise<StoredResponse | Replay> {
  return await db.transaction().execute(async tx => {
    if (claimed === undefined) return stored(await audited(tx, request, work))
    const replay = await claim(tx, claimed)
    if (replay !== undefined) return replay
    const response = await audited(tx, request, work)
    const { storedBody } = response
    const sent = stored(response)
    await complete(tx, claimed, storedBody === undefined ? sent : stored({ ...response, body: storedBody }))
    return sent
  })
}

// A replayed request never gets here, so each change is recorded once.
async function audited(
  tx: Tx,
  request: FastifyRequest,
  work: (tx: Tx) => Promise<CompleteResponse>,
): Promise<CompleteResponse> {
  const response = await work(tx)
  if (response.audit !== undefined) {
    const { partner, now } = request as { partner?: Partner; now: Date }
    await recordAudit(tx, response, { actor: actorOf(request), partnerId: partner?.id ?? null, now })
  }
  if (response.disclosed !== undefined)
    await recordDisclosures(tx, [disclosureOf(request, response.disclosed)], { isDurable: true })
  return response
}

/** The trace of what a response to a request shows. */
export function disclosureOf(request: FastifyRequest, { partnerId, ...disclosed }: Disclosed): Disclosure {
  const { partner, now } = request as { partner?: Partner; now: Date }
  return {
    partnerId: partnerId === undefined ? (partner?.id ?? null) : partnerId,
    actor: actorOf(request),
    disclosed,
    now,
  }
}

/**
 * Like `withIdempotency`, for an operation whose commands run in batches with those of other requests: the statement that has
 * the effect also records the key.
 * @param submit submits the command to its batch; `once` is set if the request has a key
 */
export async function withBatchIdempotency<Result extends object>(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    submit,
    responseOf,
  }: {
    submit: (once?: BatchClaim<Result>) => Promise<Result | Replay>
    responseOf: (result: Result) => CompleteResponse
  },
): Promise<FastifyReply> {
  const claimed = claimOf(request)
  // Not cached: a batch that fails is retried, and the retry may have another result.
  const responded = (result: Result) => stored(responseOf(result))
  const result =
    claimed === undefined
      ? await submit()
      : await inTurn(claimed, () => submit({ ...claimed, responseOf: responded })).catch(error => {
          throw isWaitForKey(error) ? stillRunning() : error
        })
  return send(reply, result instanceof Replay ? result : responded(result))
}

/**
 * Like `withIdempotency`, for an operation that starts work, waits for it and then responds: `start` is committed before
 * `respond` is called, and the key is recorded with the response. The key is held from before `start` until then, so a second
 * request with it starts nothing. If the process stops in between, a retry starts again, so `start` must be idempotent.
 * @param work.start returns what to wait for, and `respond` gets its result; `claimed` is undefined if the request has no key
 */
export async function withStartedWork<Result>(
  db: Db,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    start,
    respond,
  }: {
    start: (tx: Tx, claimed: Claim | undefined) => Promise<() => Promise<Result>>
    respond: (tx: Tx, result: Result) => Promise<CompleteResponse>
  },
): Promise<FastifyReply> {
  const claimed = claimOf(request)
  const run = async (): Promise<StoredResponse | Replay> => {
    const started = await db.transaction().execute(async tx => {
      const [known] = await findAll(tx, [claimed])
      if (known instanceof Problem) throw known
      return known ?? (await start(tx, claimed))
    })
    if (started instanceof Replay) return started
    const result = await started()
    return await respondOnce(db, request, {
      // The work may have moved the clock of the request.
      claimed: claimed && { ...claimed, now: request.now },
      work: tx => respond(tx, result),
    })
  }
  return send(reply, claimed === undefined ? await run() : await inTurn(claimed, () => hold(db, claimed, run)))
}

/** Gives work what it reads with. */
export type ReadFrom = <T>(work: (reader: Reader) => Promise<T>) => Promise<T>

/**
 * Runs a reading operation. It needs no transaction, unless it has an idempotency key to record.
 * @param readFrom what it reads with, if it has no key: the claim of a key waits longer for a lock than the connections of batches do
 */
export async function read(
  { db, readFrom, disclosures }: { db: Db; readFrom: ReadFrom; disclosures: DisclosureLog },
  request: FastifyRequest,
  reply: FastifyReply,
  work: (reader: Reader) => Promise<CompleteResponse>,
): Promise<FastifyReply> {
  if (request.idempotencyKey !== undefined)
    return await withIdempotency(db, request, reply, async tx => {
      // An erasure deletes this response once it is stored, or comes first.
      await shareByName(tx, 'erasure of stored reads', '')
      return await work(tx)
    })
  const response = await readFrom(work)
  if (response.disclosed !== undefined) await disclosures.record(disclosureOf(request, response.disclosed))
  return send(reply, stored(response))
}

const turns = new Map<string, Promise<void>>()

/**
 * Serialises requests with the same key within this process, so that waiting ones hold no connection. Requests in other
 * processes wait for the row lock of the key.
 */
async function inTurn<T>({ partnerId, key }: Claim, work: () => Promise<T>): Promise<T> {
  const name = `${partnerId} ${key}`
  const before = turns.get(name)
  const mine = Promise.withResolvers<void>()
  const after = before === undefined ? mine.promise : before.then(() => mine.promise)
  turns.set(name, after)
  // Only after all earlier requests: one that timed out must not let the next run concurrently with them.
  void after.then(() => {
    if (turns.get(name) === after) turns.delete(name)
  })
  try {
    if (before !== undefined) await within(waitMsMax, before, stillRunning)
    return await work()
  } finally {
    mine.resolve()
  }
}

// The same as the database's lock timeout.
const waitMsMax = 2_000

function claimOf(request: FastifyRequest): Claim | undefined {
  const { idempotencyKey, partner, operator, memberSession, user, now } = request
  if (idempotencyKey === undefined) return undefined
  const ownerId = memberSession?.memberId ?? (operator === undefined ? user?.user.id : undefined)
  const key = ownerId === undefined ? idempotencyKey : keyOf(ownerId, idempotencyKey)
  // The keys of operators are kept like those of partners: an operator's id is never that of a partner.
  const partnerId = operator?.id ?? partner.id
  return {
    partnerId,
    key,
    fingerprint: fingerprintOf(request),
    operation: operationOf(request),
    now,
  }
}

/**
 * The key of a browser, of a member or of a user, as it is stored. It begins with a space, which no key in a header does, so that
 * it is never equal to one of the partner, nor to one of another person. Hashed, because the column is as long as a key may be.
 */
function keyOf(ownerId: string, key: string): string {
  return ` ${ownerId} ${createHash('sha256').update(key, 'latin1').digest('base64url')}`
}

// Two requests are the same if method, route, path parameters, query and parsed body are equal, in any order of keys.
function fingerprintOf(request: FastifyRequest): Buffer {
  const { query, body, fingerprint } = request
  if (fingerprint !== undefined) return fingerprint
  return createHash('sha256')
    .update(`${fingerprintStart(request, query)}${stringify(body) ?? 'null'}]`)
    .digest()
}

/** The part of the fingerprint's input that precedes the body. */
export function fingerprintStart({ method, route, params }: FastifyRequest, query: unknown): string {
  return `${stringify([method, route.url, params, query])?.slice(0, -1)},`
}

function operationOf(request: FastifyRequest): string {
  return (request.route.schema as { operationId?: string } | undefined)?.operationId ?? request.method
}

function stored({ status, body, headers = {}, resourceId = null }: CompleteResponse): StoredResponse {
  return { status, text: 'content-type' in headers ? String(body) : JSON.stringify(body), headers, resourceId }
}

function send(reply: FastifyReply, response: StoredResponse | Replay): FastifyReply {
  if (response instanceof Replay) return send(reply.header('idempotency-replayed', 'true'), response.response)
  const { status, text, headers, resourceId } = response
  reply.request.resourceId = resourceId
  // A redirect has no body.
  if (text !== undefined) reply.type('application/json; charset=utf-8')
  return reply.code(status).headers(headers).send(text)
}
