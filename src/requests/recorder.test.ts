import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'
import type { RequestRecord } from '../request-record.ts'
import { RequestLog } from './recorder.ts'

let harness: Harness
let requestLog: RequestLog
const logged: { msg: string; count?: number }[] = []
const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) })

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  logged.length = 0
  await harness.ownerDb.deleteFrom('requestLog').execute()
  requestLog = new RequestLog({ withCopying: harness.withCopying, log })
})
afterEach(() => requestLog.close())

// The harness logs its own requests in the same table.
const keyId = 'key_01kah4pzc5e4r8v2m6t0x9y3bd'

const recordOf = (changes: Partial<RequestRecord> = {}): RequestRecord => ({
  ...{ partnerId: harness.partner.id, keyId },
  ...{ requestId: newId('request', harness.clock.now()), isOwnRequestId: false, receivedAt: harness.clock.now() },
  ...{ method: 'GET', route: '/v1/tiers', path: '/v1/tiers', status: 200, durationMs: 3 },
  ...{ idempotencyKey: null, isReplayed: false, errorCodes: [], resourceId: null, ...changes },
})

async function count(): Promise<number> {
  const { rows } = await harness.pool.query('select count(*)::integer as count from request_log where key_id = $1', [
    keyId,
  ])
  return rows[0].count
}

const dropped = () => logged.filter(({ msg }) => msg === 'request log entries dropped')

test('entries are written about every second, without a flush', async () => {
  for (let entry = 0; entry < 3_000; entry += 1) requestLog.record(recordOf())
  await vi.waitFor(async () => expect(await count()).toBe(3_000), { timeout: 30_000, interval: 50 })
})

test('closing writes the rest', async () => {
  requestLog.record(recordOf())
  await requestLog.close()
  expect(await count()).toBe(1)
})

test('every idempotency key that a request can have is written unchanged', async () => {
  const keys = ['\\N', '\\.', '\\', 'a\tb', '{"a"}', 'é\u00ff', "'", 'x'.repeat(1_024)]
  for (const idempotencyKey of keys) requestLog.record(recordOf({ idempotencyKey }))
  await requestLog.flush()
  const { rows } = await harness.pool.query(
    'select idempotency_key as key from request_log where key_id = $1 order by id',
    [keyId],
  )
  expect(rows.map(({ key }) => key)).toEqual(keys)
})

test('only the first hundred requests a second beyond a partner’s rate limit are logged; all other requests are', async () => {
  for (let entry = 0; entry < 1_000; entry += 1) {
    requestLog.record(recordOf({ status: 429, errorCodes: ['RateLimitExceeded'] }))
    requestLog.record(recordOf())
  }
  requestLog.record(recordOf({ partnerId: harness.other.partner.id, status: 429 }))
  await requestLog.flush()
  expect(await count()).toBe(100 + 1_000 + 1)
  requestLog.record(recordOf({ status: 429 }))
  await requestLog.flush()
  expect(await count()).toBe(100 + 1_000 + 1 + 1)
})

test('a table that cannot be written delays no request; entries beyond the buffer are dropped and counted', async () => {
  const lockHolder = await harness.pool.connect()
  await lockHolder.query('begin')
  await lockHolder.query('lock table request_log in share mode')
  try {
    requestLog.record(recordOf())
    let isWaiting = true
    const flushing = requestLog.flush().then(() => {
      isWaiting = false
    })
    for (let entry = 0; entry < 30_000; entry += 1) requestLog.record(recordOf())
    const { status } = await harness.call('GET', '/v1/tiers')
    expect({ status, isWaiting }).toEqual({ status: 200, isWaiting: true })
    // The lock timeout ends the flush, and its one entry is lost.
    await flushing
    expect(await count()).toBe(0)
  } finally {
    await lockHolder.query('rollback')
    lockHolder.release()
  }
  await requestLog.flush()
  expect(await count()).toBe(20_000)
  await requestLog.close()
  expect(dropped().reduce((sum, line) => sum + (line.count ?? 0), 0)).toBe(10_001)
  expect(dropped().length).toBeLessThanOrEqual(2)
})

test('requests still succeed while the database refuses the log, as with a full disk', async () => {
  const constrain = (change: string) => sql.raw(`alter table request_log ${change}`).execute(harness.ownerDb)
  await constrain('add constraint full_disk check (duration_ms < 0) not valid')
  try {
    requestLog.record(recordOf())
    await requestLog.flush()
    expect((await harness.call('GET', '/v1/tiers')).status).toBe(200)
    expect(dropped()).toMatchObject([{ count: 1 }])
  } finally {
    await constrain('drop constraint full_disk')
  }
  requestLog.record(recordOf())
  await requestLog.flush()
  expect(await count()).toBe(1)
})

test('entries of two processes are one list', async () => {
  const second = new RequestLog({ withCopying: harness.withCopying, log })
  const now = harness.clock.now().getTime()
  for (let entry = 0; entry < 20; entry += 1) {
    const receivedAt = new Date(now + entry)
    const each = entry % 2 === 0 ? requestLog : second
    each.record(recordOf({ receivedAt, requestId: newId('request', receivedAt) }))
  }
  await Promise.all([requestLog.flush(), second.close()])
  const { body } = await harness.call('GET', `/v1/requests?take=20&keyId=${keyId}`)
  const times = body.requests.map((each: { createdAt: string }) => each.createdAt)
  expect(times).toHaveLength(20)
  expect(times).toEqual(times.toSorted().toReversed())
})
