import { once } from 'node:events'
import net from 'node:net'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { exampleIssue } from '../contract/refusals.ts'
import { type Reader, sql } from '../database/database.ts'
import { csvHeaders, sendParts } from './bodies/csv.ts'
import { createServer } from './server/create-server.ts'
import type { App } from './server/server.ts'
import { withIdempotency as withKey } from './with-idempotency.ts'

let harness: Harness
let app: App
let port: number
const sleep = (db: Reader, seconds: number) => sql`select pg_sleep(${seconds})`.execute(db)

beforeAll(async () => {
  harness = await startHarness()
  const { db, batchDb, clock, mode, sealer } = harness
  app = createServer({ db, log: pino({ level: 'silent' }), now: clock.now, mode, sealer })
  const config = { scope: 'any', answerMsMax: 300 } as const
  app.post('/v1/quick', { config }, async () => ({ slept: (await sleep(db, 0.01)).rows.length }))
  app.post('/v1/slow', { config }, async () => await sleep(db, 2))
  app.get('/v1/slow', { config }, async () => await sleep(db, 2))
  app.post('/v1/slow-batch', { config }, async () => await sleep(batchDb, 2))
  app.post('/v1/patient', { config: { ...config, answerMsMax: 5_000 } }, async () => ({
    slept: (await sleep(db, 0.6)).rows.length,
  }))
  app.post('/v1/transaction', { config }, async (request, reply) =>
    withKey(db, request, reply, async tx => {
      await sql`insert into rail_cursors (rail, cursor, read_at) values ('deadline', 'one', now())`.execute(tx)
      await sql`select pg_sleep(2)`.execute(tx)
      return { status: 200, body: {} }
    }),
  )
  app.get('/v1/file', { config }, (request, reply) => {
    const parts = async function* () {
      for (const part of ['a', 'b', 'c']) {
        await sleep(db, 0.2)
        yield `${part}\r\n`
      }
    }
    return sendParts(request, reply, { headers: csvHeaders('file.csv'), parts: parts() })
  })
  port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
})
afterAll(async () => {
  await app.close()
  await harness.stop()
})

async function ask(method: 'GET' | 'POST', url: string) {
  const { statusCode: status, headers, body } = await app.inject({ method, url, headers: { 'x-api-key': harness.key } })
  return { status, shouldRetry: headers['x-should-retry'], body }
}

test.each([
  ['POST', '/v1/slow', 'is not known'],
  ['POST', '/v1/slow-batch', 'is not known'],
  // Its commit was never sent.
  ['POST', '/v1/transaction', 'nothing was done'],
  ['GET', '/v1/slow', 'nothing was done'],
] as const)('%s %s that takes too long is answered by the deadline, and says whether %s', async (method, url, says) => {
  const { status, shouldRetry, body } = await ask(method, url)
  // Without an idempotency key, repeating what may have taken effect could do it twice.
  expect([status, shouldRetry]).toEqual([503, String(says === 'nothing was done')])
  const name = says === 'nothing was done' ? 'ServiceUnavailable' : 'OutcomeUnknown'
  expect(JSON.parse(body)).toEqual({ issues: [exampleIssue(name)] })
})

test('a transaction that was cut off before its commit is rolled back, and its locks are released', async () => {
  await ask('POST', '/v1/transaction')
  await sql`insert into rail_cursors (rail, cursor, read_at) values ('deadline', 'two', now())`.execute(harness.ownerDb)
  const { rows } = await sql`delete from rail_cursors where rail = 'deadline' returning cursor`.execute(harness.ownerDb)
  expect(rows).toEqual([{ cursor: 'two' }])
})

test('an operation may declare a longer deadline', async () => {
  expect(await ask('POST', '/v1/patient')).toMatchObject({ status: 200, body: '{"slept":1}' })
})

test('a file is sent whole, however long all its parts take', async () => {
  expect(await ask('GET', '/v1/file')).toMatchObject({ status: 200, body: 'a\r\nb\r\nc\r\n' })
})

test('the arrival of the body does not count towards the deadline', async () => {
  const socket = net.connect({ host: '127.0.0.1', port })
  let answer = ''
  socket.setEncoding('utf8').on('data', chunk => {
    answer += chunk
  })
  socket.write(
    `POST /v1/quick HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{`,
  )
  // Longer than the deadline of the operation.
  await sleep(harness.db, 0.6)
  socket.write('}')
  await once(socket, 'close')
  expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*{"slept":1}$/)
})
