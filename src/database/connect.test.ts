import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { connect } from './connect.ts'
import { type BatchDb, type Db, lanesOf, sql, type Tx } from './database.ts'
import { outageOutcome } from './errors.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

// The connections of batches must behave like ordinary ones.
const databases = (): [string, Db | BatchDb][] => [
  ['ordinary', harness.db],
  ['batch', harness.batchDb],
]

test('lists arrive unchanged, whatever they contain', async () => {
  const texts = ['', ' ', 'null', 'NULL', null, '"', '\\', '\\"', "'", 'a,b', '{a}', 'a\nb', '\u{1F4B7} é']
  const numbers = [0n, -1n, 9_223_372_036_854_775_807n, null]
  const bytes = [Buffer.from([0, 34, 92, 255]), Buffer.from([])]
  for (const [name, db] of databases()) {
    const { rows } = await sql`
      select ${texts}::text[] as texts, ${[]}::text[] as none, ${[1, 2]}::integer[] as integers, ${numbers}::bigint[]::text[] as numbers,
             ${[true, false, null]}::boolean[] as flags, ${bytes}::bytea[] as bytes`.execute(db)
    const sent = { texts, none: [], integers: [1, 2], numbers: numbers.map(each => each?.toString() ?? null) }
    expect(rows, name).toEqual([{ ...sent, flags: [true, false, null], bytes }])
  }
})

test('a failed transaction is rolled back as a whole, and its connection can be used again', async () => {
  const count = async () =>
    Number((await sql<{ count: bigint }>`select count(*) from rail_cursors`.execute(harness.db)).rows[0]?.count)
  for (const [name, db] of databases()) {
    const undone = db.transaction().execute(async tx => {
      await sql`insert into rail_cursors (rail, cursor, read_at) values (${name}, 'one', now())`.execute(tx)
      await sql`insert into rail_cursors (rail, cursor, read_at) values (${name}, 'two', now())`.execute(tx)
    })
    await expect(undone, name).rejects.toMatchObject({ code: '23505' })
    expect(await count(), name).toBe(0)
    const kept = db.transaction().execute(async tx => {
      await sql`insert into rail_cursors (rail, cursor, read_at) values (${name}, 'one', now())`.execute(tx)
    })
    await kept
    expect(await count(), name).toBe(1)
    await sql`delete from rail_cursors`.execute(harness.ownerDb)
  }
})

test.each([
  ['nothing listens', { host: '127.0.0.1', user: 'x', database: 'x', port: 1 }],
  ['nothing listens at any address of a name', { host: 'localhost', user: 'x', database: 'x', port: 1 }],
  ['there is no socket', { host: '/nowhere', user: 'x', database: 'x' }],
  ['the name has no address', { host: 'nowhere.invalid', user: 'x', database: 'x' }],
])('an error because %s says that nothing was done', async (_, connection) => {
  const { db, close } = connect(connection, { log: pino({ level: 'silent' }) })
  const error = await sql`select 1`.execute(db).catch((refused: unknown) => refused)
  expect(outageOutcome(error)).toBe('nothing-done')
  await close()
})

test('the compiler keeps the connections of batches and of ordinary operations apart', () => {
  const ordinary = (db: Db) => db
  const batch = (db: BatchDb) => db
  // @ts-expect-error: batches give up on a lock after 50 ms, and their plans fit batches only.
  expect(ordinary(harness.batchDb)).toBe(harness.batchDb)
  // @ts-expect-error: a batch must not wait for a lock.
  expect(batch(harness.db)).toBe(harness.db)
})

test('with a lane per partner a transaction sets its limits on waits, since a distributed PostgreSQL passes on no others', async () => {
  const { db, pool, useLanes, close } = connect(harness.settings.DATABASE_URL, {
    log: pino({ level: 'silent' }),
    connectionsMax: 1,
  })
  const limitIn = async (tx: Tx) =>
    (await sql<{ limit: string }>`select current_setting('lock_timeout') as "limit"`.execute(tx)).rows
  const readLimit = () => db.transaction().execute(limitIn)
  try {
    await pool.query('set lock_timeout = 0')
    expect(await readLimit()).toEqual([{ limit: '0' }])
    useLanes('partner')
    expect(await readLimit()).toEqual([{ limit: '2s' }])
    expect(await db.transaction().setIsolationLevel('repeatable read').execute(limitIn)).toEqual([{ limit: '2s' }])
  } finally {
    await close()
  }
})

test('connections over which rows are copied have the lanes of the others', async () => {
  const log = pino({ level: 'silent' })
  const { db, withCopying, close } = connect(harness.settings.DATABASE_URL, { log, lanes: 'partner' })
  try {
    expect([lanesOf(db), await withCopying(async copying => lanesOf(copying))]).toEqual(['partner', 'partner'])
  } finally {
    await close()
  }
})
