import pino from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { connect, type Databases } from './connect.ts'
import { sql, type Tx } from './database.ts'
import { outageOutcome } from './errors.ts'
import { answeredWithNext } from './prepared.ts'

let harness: Harness
let databases: Databases
beforeAll(async () => {
  harness = await startHarness()
  const { host, user, database } = harness
  databases = connect({ host, user, database }, { log: pino({ level: 'silent' }) })
})
afterAll(async () => {
  await databases.close()
  await harness.stop()
})

const divide = (tx: Tx, by: number) => sql`${answeredWithNext} select 1 / ${by}::integer`.execute(tx)
const pause = (tx: Tx, paused: boolean) =>
  sql`update partners set paused = ${paused} where id = ${harness.partner.id}`.execute(tx)
const isPaused = async () => {
  const { paused } = await harness.db
    .selectFrom('partners')
    .select('paused')
    .where('id', '=', harness.partner.id)
    .executeTakeFirstOrThrow()
  return paused
}

test.each([
  ['the commit', async () => undefined],
  ['another statement', (tx: Tx) => pause(tx, true)],
  ['an error of the caller', () => Promise.reject(new Error('refused'))],
])('a statement answered with the next one rolls back with its own error, before %s', async (_next, after) => {
  const failing = databases.batchDb.transaction().execute(async tx => {
    await pause(tx, true)
    await divide(tx, 0)
    await after(tx)
  })
  await expect(failing).rejects.toThrow('division by zero')
  expect(await isPaused()).toBe(false)
})

test('a statement answered with the next one is committed with its transaction', async () => {
  await databases.batchDb.transaction().execute(async tx => {
    await divide(tx, 1)
    await sql`${answeredWithNext} update partners set paused = ${true} where id = ${harness.partner.id}`.execute(tx)
  })
  expect(await isPaused()).toBe(true)
})

test('after a migration alters a column, a running process has one failed statement per connection and then recovers', async () => {
  const { host, user, owner, database, pool } = harness
  const log = pino({ level: 'silent' })
  const running = connect({ host, user, database }, { log, connectionsMax: 1 })
  onTestFinished(() => running.close())
  const asOwner = connect({ host, user: owner, database }, { log, connectionsMax: 1 })
  onTestFinished(() => asOwner.close())
  const read = () =>
    running.batchDb
      .transaction()
      .execute(tx => sql<{ name: string }>`select name from partners where id = ${harness.partner.id}`.execute(tx))
      .then(
        ({ rows }) => rows.length,
        error => outageOutcome(error),
      )
  expect(await read()).toBe(1)
  const { rows } = await pool.query(`select collation_name from information_schema.columns
    where table_schema = 'public' and table_name = 'partners' and column_name = 'name'`)
  const collation = rows[0].collation_name === 'C' ? 'default' : 'C'
  await asOwner.pool.query(`alter table partners alter column name type text collate "${collation}"`)
  expect(await read()).toBe('nothing-done')
  expect(await read()).toBe(1)
})
