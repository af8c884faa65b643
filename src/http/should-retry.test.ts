import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { createServer } from './server/create-server.ts'
import type { App } from './server/server.ts'

// test/harness/contract.ts requires the header on every error of the whole suite; here are the cases in which it decides.

let harness: Harness
let broken: App
let memberId: string
beforeAll(async () => {
  harness = await startHarness()
  memberId = await harness.addMember({ available: 100_000 })
  const { db, clock, mode, sealer } = harness
  broken = createServer({ db, log: pino({ level: 'silent' }), now: clock.now, mode, sealer })
  for (const method of ['GET', 'POST'] as const) {
    broken.route({
      method,
      url: '/v1/broken',
      config: { scope: 'any' },
      handler: () => Promise.reject(new Error('bug')),
    })
  }
  await broken.ready()
})
afterAll(async () => {
  await broken.close()
  await harness.stop()
})

const hintOf = ({ status, headers }: ApiResponse) => [status, headers['x-should-retry']]
const quote = (amount: number) => harness.requestIntent({ memberId, amount })

test('a 409 of a key in progress says retry, a 409 of an expired intent does not', async () => {
  const { withdrawalIntentId } = (await quote(5_000)).body
  const inProgress = await harness.inTx(async tx => {
    await tx
      .insertInto('idempotencyKeys')
      .values({
        ...{ partnerId: harness.partner.id, key: 'in-progress', fingerprint: Buffer.alloc(32), operation: 'any' },
        ...{ createdAt: harness.clock.now(), expiresAt: harness.clock.now() },
      })
      .execute()
    return await harness.requestCompletion(withdrawalIntentId, { headers: { 'x-idempotency-key': 'in-progress' } })
  })
  expect([...hintOf(inProgress), inProgress.headers['retry-after']]).toEqual([409, 'true', '1'])
  harness.clock.advance({ minutes: 16 })
  const expired = await harness.requestCompletion(withdrawalIntentId)
  expect([...hintOf(expired), expired.headers['retry-after']]).toEqual([409, 'false', undefined])
})

test('a 422 of a paused partner says retry, a 422 of the amount does not', async () => {
  expect(hintOf(await quote(1))).toEqual([422, 'false'])
  const setPaused = (paused: boolean) =>
    harness.db.updateTable('partners').set({ paused }).where('id', '=', harness.partner.id).execute()
  await setPaused(true)
  const paused = await quote(5_000)
  await setPaused(false)
  expect([...hintOf(paused), paused.headers['retry-after']]).toEqual([422, 'true', '300'])
})

test('a 429 says retry; a 401, 404, 405 and a malformed URL do not', async () => {
  const { key } = await harness.addPartner('Hasty', { requestsPerSecond: 1, requestsBurst: 1 })
  const tiers = (method: string, path: string, as: string | null) => harness.call(method, path, { key: as })
  await tiers('GET', '/v1/tiers', key)
  expect(hintOf(await tiers('GET', '/v1/tiers', key))).toEqual([429, 'true'])
  expect(hintOf(await tiers('GET', '/v1/tiers', null))).toEqual([401, 'false'])
  expect(hintOf(await tiers('GET', '/v1/nothing', harness.key))).toEqual([404, 'false'])
  expect(hintOf(await tiers('PATCH', '/v1/tiers', harness.key))).toEqual([405, 'false'])
  expect(hintOf(await tiers('GET', '/v1/%zz', harness.key))).toEqual([400, 'false'])
  expect(hintOf(await tiers('GET', '/nothing', null))).toEqual([404, 'false'])
})

test.each([
  ['GET', {}, 'true'],
  ['POST', { 'x-idempotency-key': 'broken' }, 'true'],
  ['POST', {}, 'false'],
] as const)('a 500 of a %s with %j says retry: %s', async (method, headers, hint) => {
  const answer = await broken.inject({ method, url: '/v1/broken', headers: { 'x-api-key': harness.key, ...headers } })
  expect([answer.statusCode, answer.headers['x-should-retry']]).toEqual([500, hint])
})
