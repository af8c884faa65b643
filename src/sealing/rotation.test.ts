import { spawn } from 'node:child_process'
import { createPublicKey, randomBytes, verify } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { keySource } from '../../test/harness/installation-key.ts'
import { lanesOfTests } from '../../test/harness/lanes.ts'
import { readSettings } from '../config.ts'
import { connect } from '../database/connect.ts'
import { sql } from '../database/database.ts'
import { publicKeyOf, signReceipt } from '../erasure/receipts.ts'
import { openDatabase, prepare } from '../open-database.ts'
import { rehash } from '../operators/rehash.ts'
import { sealedTables } from '../operators/sealed-tables.ts'
import { findArchiveKey, sealFor } from '../payouts/books/archive-keys.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { readStaged, stage, stagedRecordsTable } from '../payouts/books/staging.ts'
import * as totp from '../users/totp.ts'
import { sealerOf } from './held.ts'
import { openSealer } from './installation-keys.ts'
import { copyKeys, listCopies, removeCopy } from './key-copies.ts'
import { KeyLease, leaseLimits } from './key-lease.ts'
import { namesKey, rewrap } from './rewrap.ts'
import { rotateFingerprints, rotateSealing, unfinishedRotations } from './rotation.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
  // Reads the keys so often that a rotation in a test need not wait for seconds.
  await openSealer(harness.db, keySource, { lease: new KeyLease({ readEveryMs: 5 }) })
})
afterAll(() => harness.stop())

const settleMs = 250
const record = async () => undefined
const rotate = (options: Partial<Parameters<typeof rotateSealing>[1]> = {}) =>
  rotateSealing(harness.ownerDb, {
    ...{ source: keySource, tables: sealedTables, now: harness.clock.now(), onStep: () => undefined, settleMs, record },
    ...options,
  })
const usesOf = async (purpose = 'sealing') => {
  const { rows } = await sql<{ number: number; stage: string }>`
    select number, stage from installation_key_uses where purpose = ${purpose} order by number`.execute(harness.db)
  return rows
}

/** Makes a value in every table that has sealed values. @returns a function that reads them, and fails if one cannot be opened */
async function fillTables() {
  const { call } = harness
  const name = randomBytes(4).toString('hex')
  const memberId = await harness.addMember()
  const webhook = { url: `https://${name}.example.com`, headers: { authorization: `Bearer ${name}` } }
  const endpoint = await call('POST', '/v1/webhooks', { body: webhook })
  const key = { 'x-idempotency-key': name }
  const actions = [{ type: 'Add', email: `${name}@example.com`, firstName: 'A', lastName: 'B', tier: 'Silver' }]
  const job = await call('POST', '/v1/members/jobs', { body: { actions }, headers: key })
  const user = { id: `usr_${name}`, email: `${name}@example.org` }
  await sql`
    insert into users (id, email, name, is_operator, created_at)
    values (${user.id}, ${user.email}, 'U', true, ${harness.clock.now()})`.execute(harness.db)
  await harness.inTx(tx => totp.begin(tx, user))
  const told = { rail: 'sepa', kind: 'money_in', reason: 'Money arrived', fingerprint: name, bankText: name } as const
  await harness.inTx(tx => exceptions.open(tx, [told], harness.clock.now()))
  const head = { message: 'camt.053', messageId: name, createdAt: null, account: null } as const
  const record = { type: 'name-check', line: 1, messageId: name, reference: null, code: 'MTCH', key: name } as const
  const staged = [{ step: 0, partnerId: '', place: 1, said: { head, record } }]
  await harness.inTx(tx => stage(tx, { fileId: name, staged }))
  const archive = { rail: name, day: '2026-03-10' }
  for await (const _ of sealFor(harness.db, archive)(Readable.from([Buffer.from(name)])));
  expect([endpoint.status, job.status]).toEqual([201, 202])
  return async () => {
    const member = await call('GET', `/v1/members/${memberId}`)
    const shown = await call('GET', `/v1/webhooks/${endpoint.body.id}`)
    const replayed = await call('POST', '/v1/members/jobs', { body: { actions }, headers: key })
    expect([member.status, shown.status, replayed.text]).toEqual([200, 200, job.text])
    const { rows } = await sql<{ totpSecret: Buffer }>`select totp_secret from users where id = ${user.id}`.execute(
      harness.db,
    )
    const kind = { kind: 'totp-secret', owner: user.id } as const
    expect(sealerOf(harness.db).open(rows[0]?.totpSecret ?? Buffer.alloc(0), kind)).toHaveLength(20)
    expect((await exceptions.list(harness.db, { take: 1_000 })).map(({ bankText }) => bankText)).toContain(name)
    expect(await findArchiveKey(harness.db, archive)).toHaveLength(32)
    expect(await readStaged(harness.db, { fileId: name, after: undefined })).toMatchObject([{ records: [record] }])
    await harness.runTask('apply-member-imports')
    const results = await call('GET', `/v1/members/jobs/${job.body.jobId}/results`)
    expect(results.body.results).toMatchObject([{ outcome: 'Done', email: actions[0]?.email }])
  }
}

test('after a rotation everything is sealed with the new key, and the old one is gone', async () => {
  const before = await usesOf()
  const read = await fillTables()
  const rotated = await rotate()
  const [used, ...others] = await usesOf()
  expect([used, others]).toEqual([{ number: rotated.number, stage: 'used' }, []])
  expect(rotated.number).toBeGreaterThan(before[0]?.number ?? 0)
  for (const table of sealedTables) {
    const old = before.map(({ number }) => number)
    expect(await namesKey(harness.ownerDb, table, old), table.table).toBe(false)
    expect(await namesKey(harness.ownerDb, table, [rotated.number]), table.table).toBe(true)
  }
  await read()
})

test('every column with values of the installation’s key is in the list that a rotation seals again', async () => {
  await fillTables()
  const { rows: columns } = await sql<{ table: string; column: string }>`
    select table_name as table, column_name as column from information_schema.columns
     where table_schema = 'public' and data_type = 'bytea'`.execute(harness.ownerDb)
  const listed = new Set(sealedTables.flatMap(({ table, columns: own }) => own.map(({ name }) => `${table}.${name}`)))
  const [{ number = 0 } = {}] = await usesOf()
  // Version, number and salt: the salts of this process are in all of its values.
  const salts = await Promise.all(
    sealedTables.map(async ({ table, columns: [first] }) => {
      const { rows } = await sql<{ header: Buffer }>`
        select distinct substr(${sql.ref(first?.name ?? '')}, 1, 18) as header from ${sql.ref(table)}
         where ${sql.ref(first?.name ?? '')} is not null`.execute(harness.ownerDb)
      return rows.map(({ header }) => header)
    }),
  )
  expect(salts.flat().length).toBeGreaterThan(0)
  for (const { table, column } of columns) {
    const { rows } = await sql`
      select from ${sql.ref(table)}
       where octet_length(${sql.ref(column)}) > 18 and get_byte(${sql.ref(column)}, 1) = ${number}
         and substr(${sql.ref(column)}, 1, 18) = any(${salts.flat()}::bytea[]) limit 1`.execute(harness.ownerDb)
    if (rows.length > 0) expect(listed).toContain(`${table}.${column}`)
  }
})

test('requests during a rotation give no error, and nothing that they seal is lost', async () => {
  const memberIds = [await harness.addMember()]
  let isOver = false
  const statuses = new Set<number>()
  let count = 0
  const load = async () => {
    while (!isOver) {
      memberIds.push(await harness.addMember())
      const turn = count++
      const memberId = memberIds[turn % memberIds.length]
      const read = await harness.call('GET', `/v1/members/${memberId}`)
      const body = { phone: `+44 7400 ${100_000 + turn}` }
      const headers = { 'x-idempotency-key': `load ${turn}` }
      const [changed, again] = [
        await harness.call('PATCH', `/v1/members/${memberId}`, { body, headers }),
        await harness.call('PATCH', `/v1/members/${memberId}`, { body, headers }),
      ]
      for (const { status } of [read, changed, again]) statuses.add(status)
    }
  }
  const loads = [load(), load()]
  await rotate()
  await rotate()
  isOver = true
  await Promise.all(loads)
  expect(count).toBeGreaterThan(10)
  expect([...statuses]).toEqual([200])
  for (const memberId of memberIds) expect((await harness.call('GET', `/v1/members/${memberId}`)).status).toBe(200)
})

test('a rotation that ends at any step is continued by the next', async () => {
  const read = await fillTables()
  const steps: string[] = []
  await rotate({ onStep: step => steps.push(step) })
  for (const last of steps) {
    const onStep = (step: string) => {
      if (step === last) throw new Error('ended')
    }
    await expect(rotate({ onStep })).rejects.toThrow('ended')
    expect(await unfinishedRotations(harness.db)).toEqual(['sealing'])
    await read()
    expect(await rotate()).toMatchObject({ isContinued: true })
    expect(await usesOf()).toHaveLength(1)
    await read()
  }
})

test('a rotation whose process is killed while it seals values again is continued', async () => {
  const read = await fillTables()
  const args = [fileURLToPath(new URL('rotation.fixture.ts', import.meta.url)), harness.settings.DATABASE_OWNER_URL]
  const child = spawn(process.execPath, [...args, keySource.key, lanesOfTests], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(child.signalCode).toBe('SIGKILL')
  expect((await usesOf()).map(({ stage }) => stage)).toEqual(['retired', 'used'])
  await read()
  // The server notices a moment later that the connection with the lock is gone.
  const continued = await expect.poll(() => rotate().catch(() => undefined), { timeout: 10_000 })
  await continued.toMatchObject({ isContinued: true })
  expect(await usesOf()).toHaveLength(1)
  await read()
})

test('a start says that a rotation is unfinished, and how to continue it', async () => {
  await expect(
    rotate({
      onStep: () => {
        throw new Error('ended')
      },
    }),
  ).rejects.toThrow('ended')
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) })
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-rotation-'))
  const journal = { MIDMONTH_ERASURE_JOURNAL: path.join(folder, 'erasures.jsonl') }
  const database = await openDatabase(readSettings({ ...harness.settings, ...journal }), log)
  try {
    await prepare(database, { mayMigrate: false, log })
  } finally {
    await database.close()
    await rm(folder, { recursive: true })
  }
  expect(lines.join()).toContain('unless it is running, continue it with midmonth installation-key rotate')
  await rotate()
})

test('a second rotation at the same time is refused', async () => {
  const first = rotate({ settleMs: 500 })
  await expect.poll(() => unfinishedRotations(harness.db)).toEqual(['sealing'])
  await expect(rotate()).rejects.toThrow('A rotation is running already, in another process; wait until it ends')
  await first
})

/** Ends the connection that holds the lock of rotations, as a restart of PostgreSQL does. */
async function loseLock(): Promise<void> {
  await sql`
    select pg_terminate_backend(l.pid, 10000) from pg_locks l join pg_database d on d.oid = l.database
     where d.datname = current_database() and l.locktype = 'advisory'
       and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('rotation of keys', 0)`.execute(
    harness.ownerDb,
  )
}

test('a rotation that has lost its lock ends, and does not undo what another has rotated since', async () => {
  const read = await fillTables()
  const rotateNames = ({ settleMs: waitMs = settleMs } = {}) =>
    rotateFingerprints(harness.ownerDb, {
      ...{ source: keySource, now: harness.clock.now(), onStep: () => undefined, record, rehash, settleMs: waitMs },
    })
  for (const [purpose, run] of [
    ['sealing', rotate],
    ['fingerprints', rotateNames],
  ] as const) {
    // Long enough for the other run to end in the meantime.
    const stopped = run({ settleMs: 4_000 }).catch(String)
    await expect.poll(() => unfinishedRotations(harness.db)).toEqual([purpose])
    await loseLock()
    const { number } = await run()
    expect(await stopped).toContain('onnection')
    expect(await usesOf(purpose)).toEqual([{ number, stage: 'used' }])
    await read()
  }
}, 30_000)

test('in the middle of a move, a rotation disturbs no process, and ends before its key is used until that is copied', async () => {
  const other = { key: randomBytes(32).toString('base64') }
  const copying = { from: keySource, to: other, now: harness.clock.now(), record }
  const { to } = await copyKeys(harness.ownerDb, copying)
  const second = connect(harness.settings.DATABASE_URL, { log: pino({ level: 'silent' }), connectionsMax: 2 })
  try {
    const lease = new KeyLease({ readEveryMs: 5 })
    const sealer = await openSealer(second.db, other, { lease })
    const names = async () => (await usesOf()).map(({ stage }) => stage)
    await expect(rotate()).rejects.toThrow(`The key ${to} does not open the new key. If a process uses it, run`)
    expect(await names()).toEqual(['used', 'known'])
    await lease.refresh()
    await openSealer(harness.ownerDb, other)
    await expect(rotate({ source: other, othersInEscrow: true })).rejects.toThrow('does not open the new key')
    expect(await copyKeys(harness.ownerDb, copying)).toMatchObject({ hasChanged: true })
    const rotated = await rotate()
    await lease.refresh()
    expect(sealer.seal('', { kind: 'webhook-secret', owner: 'par_1' })[1]).toBe(rotated.number)

    await rotate({ othersInEscrow: true })
    expect((await listCopies(harness.db)).find(({ provider }) => provider === to)?.isComplete).toBe(false)
  } finally {
    await second.close()
    await removeCopy(harness.ownerDb, { id: to, source: keySource, record })
  }
})

test('a transaction that has sealed with the old key is waited for', async () => {
  const { partner } = harness
  const wait = Promise.withResolvers<void>()
  const steps: string[] = []
  const open = harness.inTx(async tx => {
    const secret = sealerOf(tx).seal('whsec_late', { kind: 'webhook-secret', owner: partner.id })
    await sql`select`.execute(tx)
    await wait.promise
    await sql`
      insert into webhook_endpoints (partner_id, id, url, types, headers, created_at, since_position)
      values (${partner.id}, 'we_late', 'https://late.example.com', '{*}', ${sealerOf(tx).seal('{}', { kind: 'webhook-headers', owner: partner.id })},
              now(), 0)`.execute(tx)
    await sql`
      insert into webhook_secrets (partner_id, endpoint_id, secret, created_at)
      values (${partner.id}, 'we_late', ${secret}, now())`.execute(tx)
    return secret
  })
  const rotating = rotate({ onStep: step => steps.push(step) })
  await expect.poll(() => steps.at(-1)).toMatch(/^Waiting for 1 transactions to end \(process ids \d+\)$/)
  wait.resolve()
  const [late] = await Promise.all([open, rotating])
  const { rows } = await sql<{ secret: Buffer }>`
    select secret from webhook_secrets where endpoint_id = 'we_late'`.execute(harness.db)
  expect(rows[0]?.secret[1]).not.toBe(late[1])
  expect(
    sealerOf(harness.db)
      .open(rows[0]?.secret ?? late, { kind: 'webhook-secret', owner: partner.id })
      .toString(),
  ).toBe('whsec_late')
})

test('a process that has not read the new key answers 503 until it has, and then opens what others sealed', async () => {
  const second = await harness.startSecond()
  try {
    await rotate()
    const memberId = await harness.addMember()
    // Its first reading of the keys would be seconds away, but an unknown key brings it forward.
    const first = await second.call('GET', `/v1/members/${memberId}`)
    expect([first.status, first.headers['retry-after']]).toEqual([503, '1'])
    await expect.poll(async () => (await second.call('GET', `/v1/members/${memberId}`)).status).toBe(200)
  } finally {
    await second.stop()
  }
})

test('a process that has not read the keys for longer than a rotation waits seals nothing', async () => {
  let nowMs = Date.now()
  const second = await harness.startSecond()
  try {
    const lease = new KeyLease({ clockMs: () => nowMs, readEveryMs: 3_600_000 })
    const sealer = await openSealer(harness.ownerDb, keySource, { lease })
    const of = { kind: 'webhook-secret', owner: 'par_1' } as const
    sealer.seal('known', of)
    nowMs += leaseLimits.staleMs
    expect(() => sealer.seal('stale', of)).toThrow('have not been read for too long')
    expect(() => sealer.fingerprint(['stale'])).toThrow('have not been read for too long')
    // The refusal has brought the next reading forward.
    await expect.poll(() => lease.isFresh).toBe(true)
    sealer.seal('known again', of)
  } finally {
    await second.stop()
  }
})

test('a value whose key was rotated away is refused with what to do', async () => {
  const of = { kind: 'webhook-secret', owner: 'par_1' } as const
  const restored = sealerOf(harness.db).seal('restored from a backup of the table', of)
  await rotate()
  const sealer = await openSealer(harness.ownerDb, keySource, { lease: new KeyLease({ readEveryMs: 5 }) })
  expect(() => sealer.open(restored, of)).toThrow('cannot be opened until the keys were read again')
  await expect
    .poll(() => {
      try {
        return sealer.open(restored, of)
      } catch (error) {
        return String(error)
      }
    })
    .toMatch(/its key \d+ was rotated away; restore a backup of the value that is later than the rotation/)
})

test('receipts from before a rotation can still be checked, and browsers stay known', async () => {
  const sealer = sealerOf(harness.db)
  const [receipt, browserKey] = [signReceipt(sealer, { memberId: 'mem_1' }), sealer.browserKey]
  await rotate()
  const { kid: _, ...key } = publicKeyOf(await openSealer(harness.ownerDb, keySource))
  const [signed = '', signature = ''] = receipt.split(/\.(?=[^.]+$)/)
  const isSigned = verify(
    null,
    Buffer.from(signed),
    createPublicKey({ key, format: 'jwk' }),
    Buffer.from(signature, 'base64url'),
  )
  expect(isSigned).toBe(true)
  expect(sealerOf(harness.db).browserKey).toEqual(browserKey)
})

test('large values are read and sealed again in chunks of some megabytes', async () => {
  const fileId = randomBytes(4).toString('hex')
  const sealer = sealerOf(harness.db)
  const records = sealer.seal(randomBytes(1024 * 1024), { kind: 'bank-records', owner: fileId })
  await sql`
    insert into staged_bank_records (bank_file_id, step, partner_id, place, record_count, head, records)
    select ${fileId}, 0, '', place, 1, '{}', ${records} from generate_series(1, 12) as place`.execute(harness.ownerDb)
  const chunks: number[] = []
  const table = stagedRecordsTable
  await rewrap(harness.ownerDb, { table, sealer, onRead: count => chunks.push(count) })
  await sql`delete from staged_bank_records where bank_file_id = ${fileId}`.execute(harness.ownerDb)
  expect(Math.max(...chunks)).toBeLessThan(12)
  expect(chunks.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(12)
})
