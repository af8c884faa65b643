import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ApiResponse } from '../harness/api-response.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { startTestPostgres } from '../runner/postgres.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

// The deadline of a request, plus the delay of a busy machine. Without the deadline, a request would wait until PostgreSQL resumes.
const slackMs = 15_000
const answerMsMax = 5_000 + slackMs

let postgres: Awaited<ReturnType<typeof startTestPostgres>>
let harness: Harness
const logged: { level: number; msg: string; refusals?: Record<string, number>; err?: { stack: string } }[] = []
beforeAll(async () => {
  postgres = await startTestPostgres()
  const log = pino({ level: 'warn' }, { write: line => logged.push(JSON.parse(line)) })
  harness = await startHarness({ postgres, log })
})
afterAll(async () => {
  signalServer('SIGCONT')
  await harness.stop()
  await postgres.stop()
})

function postmaster(): number {
  const [pid] = readFileSync(path.join(postgres.dataDir, 'postgres-18/postmaster.pid'), 'utf8').split('\n')
  return Number(pid)
}

/** Stops or continues the postmaster and all of its backends. */
function signalServer(signal: 'SIGSTOP' | 'SIGCONT'): void {
  const parent = postmaster()
  process.kill(parent, signal)
  for (const line of execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).split('\n')) {
    const [pid, ppid] = line.trim().split(/ +/).map(Number)
    if (pid === undefined || ppid !== parent) continue
    try {
      process.kill(pid, signal)
    } catch (error) {
      // The backend has exited since: it may have been waiting to do so.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

async function timed(call: Promise<ApiResponse>): Promise<{ answer: ApiResponse; ms: number }> {
  const startedAt = performance.now()
  const answer = await call
  return { answer, ms: performance.now() - startedAt }
}

/** Retries a request with the same idempotency key, like a client, until it gets a definite response. */
async function retry(call: () => Promise<ApiResponse>): Promise<ApiResponse> {
  for (;;) {
    const answer = await call()
    if (answer.status !== 503 && answer.status !== 409) return answer
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

async function waitUntilReady(): Promise<void> {
  await vi.waitFor(async () => expect((await harness.call('GET', '/readyz', { key: null })).status).toBe(200), {
    timeout: 45_000,
    interval: 50,
  })
}

test('while PostgreSQL is frozen every request fails within its deadline, and retries afterwards take effect exactly once', async () => {
  const memberId = await harness.addMember({ available: 50_000 })
  const money = { amount: 5_000, currency: 'GBP' }
  const intent = async () =>
    (await harness.call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount: money } })).body
  const [first, second] = [await intent(), await intent()]
  const write = (key: string, pathname: string, body: object) => () =>
    harness.call('POST', pathname, { body, headers: { 'x-idempotency-key': key } })
  const person = { email: 'frozen@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Silver' }
  const complete = '/v1/pay/withdrawals/complete'
  const writes = [
    write('intent', '/v1/pay/withdrawals/intent', { memberId, amount: money }),
    write('first', complete, { withdrawalIntentId: first.withdrawalIntentId }),
    write('second', complete, { withdrawalIntentId: second.withdrawalIntentId }),
    write('member', '/v1/members', person),
  ]
  const reads = [
    () => harness.call('GET', '/v1/tiers'),
    () => harness.call('GET', `/v1/pay/members/${memberId}/balance`),
    () => harness.call('GET', '/v1/members', { headers: { accept: 'text/csv' } }),
    () => harness.call('GET', '/v1/tiers', { headers: { 'x-idempotency-key': 'read' } }),
    () => harness.call('GET', '/v1/%zz'),
  ]
  signalServer('SIGSTOP')
  try {
    // First with a cached API key, so that the operation itself times out; then with one that must be looked up.
    for (const round of ['cached key', 'uncached key']) {
      const ready = timed(harness.call('GET', '/readyz', { key: null }))
      const asked = [...reads.slice(0, round === 'cached key' ? 2 : 5), ...writes].map(call => timed(call()))
      expect((await timed(harness.call('GET', '/livez', { key: null }))).ms).toBeLessThan(slackMs)
      for (const { answer, ms } of await Promise.all(asked)) {
        expect([answer.status, answer.headers['retry-after']], answer.text).toEqual([503, '1'])
        expect(ms).toBeLessThan(answerMsMax)
      }
      const probe = await ready
      expect(probe.answer.status).toBe(503)
      expect(probe.ms).toBeLessThan(2_000 + slackMs)
      harness.clock.advance({ seconds: 1 })
    }
  } finally {
    signalServer('SIGCONT')
  }
  for (const call of writes) expect((await retry(call)).status).toBe(201)
  for (const call of writes) expect((await retry(call)).headers['idempotency-replayed']).toBe('true')
  const balance = await harness.call('GET', `/v1/pay/members/${memberId}/balance`)
  expect(balance.body.available.amount).toBe(50_000 - 2 * 5_000)
  const { body } = await harness.call('GET', `/v1/pay/withdrawals?memberId=${memberId}`)
  expect(body.withdrawals).toHaveLength(2)
  const listed = await harness.call('GET', `/v1/members?emails=${person.email}`)
  expect(listed.body.members).toHaveLength(1)
  expect(await harness.disagreements()).toEqual([])
})

test('2,000 reads that PostgreSQL does not answer are all refused in time, and the log summarises them', async () => {
  await waitUntilReady()
  logged.length = 0
  signalServer('SIGSTOP')
  try {
    const answers = await Promise.all(Array.from({ length: 2_000 }, () => timed(harness.call('GET', '/v1/tiers'))))
    expect(answers.map(({ answer }) => answer.status)).toEqual(Array(2_000).fill(503))
    expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(answerMsMax)
    expect(answers[1_999]?.answer.headers['retry-after']).toBe('1')
  } finally {
    signalServer('SIGCONT')
  }
  const counted = () =>
    logged.flatMap(line => Object.values(line.refusals ?? {})).reduce((sum, count) => sum + count, 0)
  // The first is logged on its own line.
  await vi.waitFor(() => expect(counted()).toBeGreaterThanOrEqual(1_999), { timeout: 15_000, interval: 50 })
  expect(logged.length).toBeLessThan(20)
  await waitUntilReady()
  expect((await harness.call('GET', '/v1/tiers')).status).toBe(200)
})

test.each(['SIGINT', 'SIGQUIT', 'SIGKILL'] as const)(
  'while PostgreSQL restarts after %s no request fails with 500',
  async signal => {
    await waitUntilReady()
    logged.length = 0
    const memberId = await harness.addMember({ available: 50_000 })
    let isOver = false
    const statuses = new Map<number, number>()
    const client = async (index: number) => {
      for (let round = 0; !isOver; round++) {
        const answer =
          index % 3 === 0
            ? await harness.call('POST', '/v1/pay/withdrawals/intent', {
                body: { memberId, amount: { amount: 1_000, currency: 'GBP' } },
              })
            : index % 3 === 1
              ? await harness.call('PATCH', `/v1/members/${memberId}`, { body: { firstName: `Sam ${round}` } })
              : await harness.call('GET', `/v1/members/${memberId}`)
        harness.clock.advance({ seconds: 1 })
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        // Waits like a client that honours retry-after; immediate retries of 24 clients would starve the starting server.
        if (answer.status === 503) await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
    const clients = Array.from({ length: 24 }, (_, index) => client(index))
    await vi.waitFor(() => expect(statuses.size).toBeGreaterThan(0), { timeout: 45_000, interval: 10 })
    const before = postmaster()
    process.kill(before, signal)
    await vi.waitFor(() => expect(postmaster()).not.toBe(before), { timeout: 45_000, interval: 20 })
    await waitUntilReady()
    isOver = true
    await Promise.all(clients)
    expect([...statuses.keys()].filter(status => status >= 500)).toEqual([503])
    expect(
      logged.filter(({ msg }) => msg === 'request failed').map(({ err }) => err?.stack),
      'requests that failed with 500',
    ).toEqual([])
    expect(await harness.disagreements()).toEqual([])
  },
)

test('on a read-only database, reads still work; writes fail with 503, and so do reads of accounts, which leave a trace', async () => {
  await waitUntilReady()
  const readOnly = async (setting: string) => {
    await asSuperuser(`alter system set default_transaction_read_only = ${setting}`)
  }
  const invite = () =>
    harness.call('POST', '/v1/members', {
      body: { email: 'read-only@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Silver' },
    })
  const memberId = await harness.addMember()
  await readOnly('on')
  try {
    await vi.waitFor(async () => expect((await invite()).status).toBe(503), { timeout: 45_000, interval: 50 })
    expect((await harness.call('GET', `/v1/pay/members/${memberId}/balance`)).status).toBe(200)
    expect((await harness.call('GET', `/v1/members/${memberId}`)).status).toBe(503)
  } finally {
    await asSuperuser('alter system reset default_transaction_read_only')
  }
  await vi.waitFor(async () => expect((await invite()).status).toBe(201), { timeout: 45_000, interval: 50 })
})

async function asSuperuser(setting: string): Promise<void> {
  const client = new pg.Client({ host: postgres.host, user: postgres.superuser, database: 'postgres' })
  await client.connect()
  try {
    await client.query(setting)
    await client.query('select pg_reload_conf()')
  } finally {
    await client.end()
  }
}
