import { once } from 'node:events'
import net from 'node:net'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { startHarness } from '../test/harness.ts'
import { defaultHealthPort, readSettings } from './config.ts'
import type { Databases } from './database/connect.ts'
import { type Database, run } from './main.ts'

const quiet = pino({ level: 'silent' })

test('an API in live mode without a connected bank refuses intents and completions and refers to the operator', async () => {
  // Created while a bank was connected.
  const harness = await startHarness({ mode: 'live', hasRail: true })
  const { pool, clock, key, call, addMember, stop } = harness
  const memberId = await addMember({ available: 12_000 })
  const amount = { amount: 5_000, currency: 'GBP' }
  const intent = () => call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount } })
  const { withdrawalIntentId: pending } = (await intent()).body
  const { withdrawalIntentId: completed } = (await intent()).body
  await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId: completed } })

  const running = await run(databaseOf(harness), {
    settings: readSettings({ OPENWAGE_MODE: 'live', PORT: '0' }),
    roles: { api: true, worker: false },
    log: quiet,
    now: clock.now,
  })
  const send = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const headers = { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const answer = await fetch(`${running.address}/v1/pay/${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return {
      status: answer.status,
      retryAfter: answer.headers.get('retry-after'),
      body: (await answer.json()) as { issues: { code: string; message: string }[] },
    }
  }
  try {
    const refused = [
      await send('POST', 'withdrawals/intent', { memberId, amount }),
      await send('POST', 'withdrawals/complete', { withdrawalIntentId: pending }),
    ]
    for (const { status, retryAfter, body } of refused) {
      expect({ status, retryAfter, code: body.issues[0]?.code }).toEqual({
        ...{ status: 422, retryAfter: null, code: 'UnprocessableEntity' },
      })
      expect(body.issues[0]?.message).toMatch(/no bank is connected .* ask its operator to connect one/)
    }
    expect(await send('GET', `members/${memberId}/balance`)).toMatchObject({
      body: { available: { amount: 7_000, currency: 'GBP' }, isTemporarilyUnavailable: true },
    })
    const repeated = await send('POST', 'withdrawals/complete', { withdrawalIntentId: completed })
    expect(repeated.status).toBe(201)
    const { rows } = await pool.query('select status from withdrawals')
    expect(rows).toEqual([{ status: 'held' }])
  } finally {
    await running.stop()
    await stop()
  }
})

test.each([
  ['live', 1],
  ['sandbox', 0],
] as const)('a worker in %s mode warns %i times that no money is paid out', async (mode, count) => {
  const harness = await startHarness({ mode })
  const { clock, stop } = harness
  const messages: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => messages.push(JSON.parse(line).msg) })
  const running = await run(databaseOf(harness), {
    settings: readSettings({ OPENWAGE_MODE: mode, OPENWAGE_HEALTH_PORT: '0' }),
    roles: { api: false, worker: true },
    log,
    now: clock.now,
  })
  await running.stop()
  expect(messages.filter(message => message.includes('no money is paid out'))).toHaveLength(count)
  await stop()
})

test('a worker that finds the default health port in use warns and runs without health probes', async () => {
  const harness = await startHarness()
  onTestFinished(() => harness.stop())
  await occupy(defaultHealthPort)
  const messages: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => messages.push(JSON.parse(line).msg) })
  const running = await run(databaseOf(harness), {
    settings: readSettings({}),
    roles: { api: false, worker: true },
    log,
    now: harness.clock.now,
  })
  await running.stop()
  expect(messages).toEqual([expect.stringMatching(/^Port 8081 .* set OPENWAGE_HEALTH_PORT to a free port/)])
})

test('a worker does not start if its configured health port is in use', async () => {
  const harness = await startHarness()
  onTestFinished(() => harness.stop())
  const port = await occupy(0)
  const starting = run(databaseOf(harness), {
    settings: readSettings({ OPENWAGE_HEALTH_PORT: String(port) }),
    roles: { api: false, worker: true },
    log: pino({ level: 'silent' }),
    now: harness.clock.now,
  })
  await expect(starting).rejects.toThrow(
    `The port ${port} of 127.0.0.1 is in use: set OPENWAGE_HEALTH_PORT to another one`,
  )
})

/** Occupies a port until the test has finished, unless another process already does. */
async function occupy(port: number): Promise<number> {
  const server = net.createServer().listen({ host: '127.0.0.1', port })
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return port
  }
  onTestFinished(() => void server.close())
  return (server.address() as net.AddressInfo).port
}

function databaseOf({ db, batchDb, withCopying, pool }: Omit<Databases, 'close'>): Database {
  return {
    ...{ db, batchDb, withCopying, pool, ownerConnection: '', appRole: { name: '' } },
    ...{ dataDir: undefined, psqlHint: undefined, close: async () => undefined },
  }
}
