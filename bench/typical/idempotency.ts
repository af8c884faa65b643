import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { problem } from '../../src/kernel/errors.ts'

/** The response of an operation; `resourceId` is the resource it created. */
export type Answer = { status: number; body: unknown; headers: Record<string, string>; resourceId: string }

type Stored = { status: number; headers: Record<string, string>; text: string; isReplayed: boolean }

const keyLifeMs = 7 * 86_400_000

/** Runs an operation at most once per idempotency key, in one transaction with the key's record. */
export async function withIdempotency(
  pool: pg.Pool,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (tx: pg.PoolClient, now: Date) => Promise<Answer>,
): Promise<FastifyReply> {
  const now = new Date()
  const key = request.headers['x-idempotency-key'] as string | undefined
  const { status, headers, text, isReplayed } = await inTransaction(pool, async tx => {
    const earlier = key === undefined ? undefined : await claim(tx, request, { key, now })
    if (earlier !== undefined) return earlier
    const { body, resourceId, ...rest } = await work(tx, now)
    const answer = { ...rest, text: JSON.stringify(body), isReplayed: false }
    if (key !== undefined) await complete(tx, request, { key, answer, resourceId })
    return answer
  })
  if (isReplayed) reply.header('idempotency-replayed', 'true')
  return reply.code(status).type('application/json; charset=utf-8').headers(headers).send(text)
}

async function inTransaction<T>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
  const tx = await pool.connect()
  let isBroken = false
  try {
    await tx.query('begin')
    const result = await work(tx)
    await tx.query('commit')
    return result
  } catch (error) {
    await tx.query('rollback').catch(() => {
      isBroken = true
    })
    throw error
  } finally {
    tx.release(isBroken)
  }
}

// Waits for a concurrent transaction with the same key.
async function claim(
  tx: pg.PoolClient,
  { method, routeOptions, params, query, body, caller }: FastifyRequest,
  { key, now }: { key: string; now: Date },
): Promise<Stored | undefined> {
  const { operationId } = routeOptions.schema as { operationId?: string }
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([method, routeOptions.url, params, query, body]))
    .digest()
  const claimed = await tx.query({
    name: 'claim-key',
    text: `insert into idempotency_keys (partner_id, key, fingerprint, operation, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
    values: [caller.partnerId, key, fingerprint, operationId, now, new Date(now.getTime() + keyLifeMs)],
  })
  if (claimed.rowCount === 1) return undefined
  const { rows } = await tx.query<{ fingerprint: Buffer; status: number; answer: Buffer }>({
    name: 'find-key',
    text: `select fingerprint, status, answer from idempotency_keys where partner_id = $1 and key = $2`,
    values: [caller.partnerId, key],
  })
  const earlier = rows[0]
  if (earlier?.fingerprint.equals(fingerprint)) {
    const [headers = '', text = ''] = earlier.answer.toString().split('\n')
    return { status: earlier.status, headers: JSON.parse(headers), text, isReplayed: true }
  }
  throw problem('IdempotencyKeyReused', 'This idempotency key was used for a different request', {
    path: 'x-idempotency-key',
  })
}

async function complete(
  tx: pg.PoolClient,
  { caller }: FastifyRequest,
  { key, answer, resourceId }: { key: string; answer: Stored; resourceId: string },
): Promise<void> {
  await tx.query({
    name: 'complete-key',
    text: `update idempotency_keys set status = $3, answer = $4, resource_id = $5
            where partner_id = $1 and key = $2`,
    values: [
      caller.partnerId,
      key,
      answer.status,
      Buffer.from(`${JSON.stringify(answer.headers)}\n${answer.text}`),
      resourceId,
    ],
  })
}
