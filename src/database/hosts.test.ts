import { once } from 'node:events'
import net from 'node:net'
import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { readSettings } from '../config.ts'
import { openDatabase } from '../open-database.ts'
import { connect, connectFirst } from './connect.ts'
import { sql } from './database.ts'
import { outageOutcome } from './errors.ts'
import { addressesOf, BackOff, clientOf } from './hosts.ts'

const log = pino({ level: 'silent' })

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test.each([
  ['postgres://app@db-1/pay', ['postgres://app@db-1/pay']],
  [
    'postgres://app:a,b@db-1,db-2:5433,[::1]:5434/pay?target_session_attrs=read-write&sslmode=require',
    ['db-1', 'db-2:5433', '[::1]:5434'].map(
      host => `postgres://app:a,b@${host}/pay?target_session_attrs=read-write&sslmode=require`,
    ),
  ],
  ['postgres://db-1,db-2', ['postgres://db-1', 'postgres://db-2']],
])('%s has the addresses of its hosts', (url, addresses) => {
  expect(addressesOf(url)).toEqual(addresses)
})

test('several hosts are refused if the address asks for a standby', () => {
  expect(() => addressesOf('postgres://a,b/pay?target_session_attrs=standby')).toThrow(
    'leads to the one that accepts writes, not to target_session_attrs=standby',
  )
})

test.each(['db-1, db-2', 'db-1,', 'db-1,,db-2', ',db-1', 'db-1,:5433', 'db-1,%20db-2'])(
  'the hosts "%s" are refused, because one is empty or has a blank',
  hosts => {
    expect(() => addressesOf(`postgres://app:secret@${hosts}/pay`)).toThrow(
      'Separate several hosts by commas only: a host of the database is empty or has a blank',
    )
  },
)

test.each(['host=a,b', 'host=a%2Cb', 'sslmode=require&port=1,2'])('several hosts in ?%s are refused', query => {
  expect(() => addressesOf(`postgres://app@/pay?${query}`)).toThrow(
    'Write several hosts before the name of the database',
  )
})

test('connections lead to the host that accepts writes, wherever it stands in the list', async () => {
  const [standby, primary] = [await startHost({ isReadOnly: true }), await startHost()]
  const { db, batchDb, pool } = connectTo([standby.port, 1, primary.port])
  await connectFirst(pool, log)
  for (const each of [db, batchDb]) {
    const { rows } = await sql`select current_setting('transaction_read_only') as read_only`.execute(each)
    expect(rows).toEqual([{ readOnly: 'off' }])
  }
})

test('while no host accepts writes, nothing is done, and the first that does is found', async () => {
  const host = await startHost({ isReadOnly: true })
  const { db } = connectTo([host.port, 1])
  expect(outageOutcome(await sql`select 1`.execute(db).catch((refused: unknown) => refused))).toBe('nothing-done')
  host.isReadOnly = false
  await vi.waitFor(() => sql`select 1`.execute(db))
})

test('when another host takes over, a query on one that hangs ends, and the next one is answered', async () => {
  const [first, second] = [await startHost(), await startHost({ isReadOnly: true })]
  const { db } = connectTo([first.port, second.port])
  await sql`select 1`.execute(db)
  first.isFrozen = true
  second.isReadOnly = false
  const hanging = await sql`select 1`.execute(db).catch((lost: unknown) => lost)
  expect(outageOutcome(hanging)).toBe('unknown')
  await sql`select 1`.execute(db)
})

test('a query on a host that hangs ends, although no other host accepts writes yet', async () => {
  const [first, second] = [await startHost(), await startHost({ isReadOnly: true })]
  const { db } = connectTo([first.port, second.port])
  await sql`select 1`.execute(db)
  first.isFrozen = true
  expect(outageOutcome(await sql`select 1`.execute(db).catch((lost: unknown) => lost))).toBe('unknown')
})

test.each([
  ['at most', 0, [250, 500, 1_000, 1_500, 1_500]],
  ['at least', 1, [125, 250, 500, 750, 750]],
])('an unreachable host is asked again after %s these waits, and at once after it has answered', (_, random, waits) => {
  let now = 0
  const backOff = new BackOff({ now: () => now, random: () => random })
  for (const waitMs of waits) {
    expect(backOff.isDue).toBe(true)
    backOff.fail()
    now += waitMs - 1
    expect(backOff.isDue).toBe(false)
    now += 1
  }
  backOff.fail()
  backOff.reset()
  expect(backOff.isDue).toBe(true)
  backOff.fail()
  now += waits[0] ?? 0
  expect(backOff.isDue).toBe(true)
})

test('a search does not ask an unreachable host before its time, and a standby in every round', async () => {
  const [down, standby] = [await startHost({ isDown: true }), await startHost({ isReadOnly: true })]
  let now = 0
  const addresses = [down.port, standby.port].map(
    port => `postgres://${harness.user}@127.0.0.1:${port}/${harness.database}`,
  )
  const Client = clientOf(addresses, { now: () => now, random: () => 0 })
  // A search has four rounds.
  const searchAnew = async () => {
    const before = standby.connections
    await vi.waitFor(async () => {
      await expect(new Client().connect()).rejects.toThrow('no host of the database accepts writes')
      expect(standby.connections).toBeGreaterThan(before + 4)
    }, 10_000)
  }
  await searchAnew()
  expect(down.connections).toBe(1)
  now += 250
  await searchAnew()
  expect(down.connections).toBe(2)
})

test('the reason why hosts refuse a connection is kept while they are not asked again', async () => {
  const [first, second] = [await startHost(), await startHost()]
  const addresses = [first.port, second.port].map(
    port => `postgres://${harness.user}@127.0.0.1:${port}/${harness.database}?sslmode=verify-full`,
  )
  const Client = clientOf(addresses, { now: () => 0, random: () => 0 })
  const refuse = async () => await new Client().connect().catch((refused: unknown) => refused)
  const refused = await refuse()
  const refusedLater = await vi.waitFor(async () => {
    const later = await refuse()
    expect(later).not.toBe(refused)
    return later
  }, 10_000)
  for (const each of [refused, refusedLater])
    expect(each).toMatchObject({
      message: 'no host of the database accepts writes: The server does not support SSL connections',
    })
  expect([first.connections, second.connections]).toEqual([1, 1])
})

test('a start that every host refuses does not wait, and says why', async () => {
  const administrator = new pg.Client({ host: harness.host, user: harness.superuser, database: harness.database })
  await administrator.connect()
  const { database } = harness
  const role = `${database}_refused`
  await administrator.query(`create role ${role} login; revoke connect on database ${database} from public`)
  const [first, second] = [await startHost(), await startHost({ isReadOnly: true })]
  try {
    const settings = readSettings({
      DATABASE_URL: `postgres://${role}@127.0.0.1:${first.port},127.0.0.1:${second.port}/${database}`,
    })
    await expect(openDatabase(settings, log)).rejects.toThrow(
      `Cannot use the database at DATABASE_URL: no host of the database accepts writes: permission denied for database "${database}"; as its owner, run: grant connect on database "${database}" to "${role}";`,
    )
  } finally {
    await administrator.query(`drop role ${role}`)
    await administrator.end()
  }
})

function connectTo(ports: number[]) {
  const hosts = ports.map(port => `127.0.0.1:${port}`).join()
  const databases = connect(`postgres://${harness.user}@${hosts}/${harness.database}`, { log, connectionsMax: 2 })
  onTestFinished(() => databases.close())
  return databases
}

/** A host of the database, which passes everything on to the test's server until it is frozen. If it is read-only, so are its sessions. One that is down ends each connection. */
async function startHost({ isReadOnly = false, isDown = false } = {}) {
  const sockets = new Set<net.Socket>()
  const host = { port: 0, isReadOnly, isFrozen: false, connections: 0 }
  const listener = net.createServer(near => {
    host.connections += 1
    if (isDown) {
      near.destroy()
      return
    }
    const far = net.connect(`${harness.host}/.s.PGSQL.5432`)
    near.once('data', startup => {
      if (!host.isFrozen) far.write(host.isReadOnly ? asReadOnly(startup) : startup)
      near.on('data', chunk => host.isFrozen || far.write(chunk))
    })
    far.on('data', chunk => host.isFrozen || near.write(chunk))
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => other.destroy())
    }
  })
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    listener.close()
    for (const socket of sockets) socket.destroy()
  })
  host.port = (listener.address() as net.AddressInfo).port
  return host
}

/** Adds an option to a startup message: its length, the protocol's version, names and values that end with a zero, and a zero. */
function asReadOnly(startup: Buffer): Buffer {
  const message = Buffer.concat([startup.subarray(0, -1), Buffer.from('default_transaction_read_only\0on\0\0')])
  message.writeInt32BE(message.length)
  return message
}
