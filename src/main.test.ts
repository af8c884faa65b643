import { once } from 'node:events'
import net from 'node:net'
import pino from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startHarness } from '../test/harness/harness.ts'
import { keySettings, keySource } from '../test/harness/installation-key.ts'
import { defaultHealthPort, readSettings } from './config.ts'
import type { Databases } from './database/connect.ts'
import { outageOutcome } from './database/errors.ts'
import { run } from './main.ts'
import { type Database, openDatabase, prepare } from './open-database.ts'

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
    sealer: harness.sealer,
    settings: readSettings({ MIDMONTH_MODE: 'live', PORT: '0' }),
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
    sealer: harness.sealer,
    settings: readSettings({ MIDMONTH_MODE: mode, MIDMONTH_HEALTH_PORT: '0' }),
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
    sealer: harness.sealer,
    settings: readSettings({}),
    roles: { api: false, worker: true },
    log,
    now: harness.clock.now,
  })
  await running.stop()
  expect(messages).toEqual([expect.stringMatching(/^Port 8081 .* set MIDMONTH_HEALTH_PORT to a free port/)])
})

test('a worker does not start if its configured health port is in use', async () => {
  const harness = await startHarness()
  onTestFinished(() => harness.stop())
  const port = await occupy(0)
  const starting = run(databaseOf(harness), {
    sealer: harness.sealer,
    settings: readSettings({ MIDMONTH_HEALTH_PORT: String(port) }),
    roles: { api: false, worker: true },
    log: pino({ level: 'silent' }),
    now: harness.clock.now,
  })
  await expect(starting).rejects.toThrow(
    `The port ${port} of 127.0.0.1 is in use: set MIDMONTH_HEALTH_PORT to another port`,
  )
})

test('startup waits for a slow PostgreSQL and logs the wait; in service, connecting takes at most 5 s', async () => {
  const harness = await startHarness()
  onTestFinished(() => harness.stop())
  const { port, nextHeld, pass } = await startHoldingProxy(`${harness.host}/.s.PGSQL.5432`)
  const addressOf = (user: string) => `postgres://${user}@127.0.0.1:${port}/${harness.database}`
  const { user, owner } = harness
  const settings = readSettings({
    DATABASE_URL: addressOf(user),
    DATABASE_OWNER_URL: addressOf(owner),
    PORT: '0',
    ...keySettings,
  })
  const messages: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => messages.push(JSON.parse(line).msg) })
  // Sockets keep their real timers.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const notice = 'PostgreSQL has accepted no connection for 5 s: waiting, for at most 60 s'

  const opening = openDatabase(settings, log)
  let held = await nextHeld()
  vi.advanceTimersByTime(4_999)
  expect(messages).toEqual([])
  vi.advanceTimersByTime(55_000)
  expect(messages).toEqual([notice])
  pass(held)
  const database = await opening
  onTestFinished(() => database.close())
  const preparing = prepare(database, { mayMigrate: true, log })
  held = await nextHeld()
  vi.advanceTimersByTime(59_999)
  expect(messages).toEqual([notice, notice])
  pass(held)
  const sealer = await preparing
  const roles = { api: true, worker: false }
  const running = await run(database, { settings, roles, sealer, log, now: harness.clock.now })
  onTestFinished(() => running.stop())

  const idle = Array.from({ length: database.pool.idleCount }, () => database.pool.connect())
  const clients = await Promise.all(idle)
  const connecting = database.pool.connect().catch((error: unknown) => error)
  await nextHeld()
  vi.advanceTimersByTime(5_000)
  const error = await connecting
  expect(error).toMatchObject({ message: 'Connection terminated due to connection timeout' })
  expect(outageOutcome(error)).toBe('nothing-done')
  for (const client of clients) client.release()
})

test('startup waits for a PostgreSQL that is recovering from a crash; a command that reports the state does not', async () => {
  const harness = await startHarness()
  onTestFinished(() => harness.stop())
  let connections = 0
  const { port } = await startHoldingProxy(`${harness.host}/.s.PGSQL.5432`, { mayPass: () => ++connections > 3 })
  const settings = readSettings({ DATABASE_URL: `postgres://${harness.user}@127.0.0.1:${port}/${harness.database}` })
  const asked = openDatabase(settings, quiet, { isStarting: false })
  await expect(asked).rejects.toThrow('Cannot use the database at DATABASE_URL: the database system is starting up')
  expect(connections).toBe(1)
  const database = await openDatabase(settings, quiet)
  await database.close()
  // Two of the start were refused, and two more show that no pooler shares their sessions.
  expect(connections).toBe(5)
})

test('startup gives up on a PostgreSQL that has not answered for a minute, and names the setting', async () => {
  const { port, nextHeld } = await startHoldingProxy('/nowhere')
  const settings = readSettings({ DATABASE_URL: `postgres://x@127.0.0.1:${port}/x` })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const opening = openDatabase(settings, quiet).catch(error => error.message)
  await nextHeld()
  vi.advanceTimersByTime(60_000)
  expect(await opening).toBe('Cannot use the database at DATABASE_URL: Connection terminated due to connection timeout')

  const asked = openDatabase(settings, quiet, { isStarting: false }).catch(error => error.message)
  await nextHeld()
  vi.advanceTimersByTime(5_000)
  expect(await asked, 'of a command that reports the state').toMatch(/connection timeout$/)
})

/**
 * Starts a proxy in front of a PostgreSQL. It holds the connection that `nextHeld` waits for until `pass` is called, and passes
 * all others on.
 * @param options.mayPass false to answer a connection as a recovering server does
 */
async function startHoldingProxy(target: string, { mayPass = () => true }: { mayPass?: () => boolean } = {}) {
  const pass = (socket: net.Socket) => {
    const onward = net.connect(target)
    for (const each of [socket, onward]) each.on('error', () => undefined)
    socket.pipe(onward).pipe(socket)
  }
  let hold: ((socket: net.Socket) => void) | undefined
  const held: net.Socket[] = []
  const server = net.createServer(socket => {
    socket.on('error', () => undefined)
    held.push(socket)
    if (!mayPass()) return socket.once('data', () => socket.end(startingUp))
    if (hold === undefined) return pass(socket)
    hold(socket)
    hold = undefined
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of held) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as net.AddressInfo).port,
    pass,
    nextHeld: () => {
      const { promise, resolve } = Promise.withResolvers<net.Socket>()
      hold = resolve
      return promise
    },
  }
}

// An error in PostgreSQL's protocol: E, the length, then fields that end with a zero byte.
const fields = 'SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0'
const startingUp = Buffer.from(`E\0\0\0${String.fromCharCode(4 + fields.length)}${fields}`, 'latin1')

/** Occupies a port until the test has finished, unless another process already occupies it. */
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

function databaseOf({ db, batchDb, withCopying, pool, pools, useLanes, endStart }: Omit<Databases, 'close'>): Database {
  return {
    ...{ db, batchDb, withCopying, pool, pools, useLanes, endStart, ownerConnection: '', appRole: { name: '' } },
    erasures: { journal: '/nowhere/erasures.jsonl', evidenceDays: 2_192, backupDays: 35 },
    ...{
      embedded: undefined,
      dataDir: undefined,
      keySource,
      psqlHint: undefined,
      abandon: () => undefined,
      close: async () => undefined,
    },
  }
}
