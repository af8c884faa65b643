import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../test/harness.ts'
import { type Db, sql } from './db.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

// Whoever asks over the connections of batches must not notice.
const databases = (): [string, Db][] => [
  ['ordinary', harness.db],
  ['batch', harness.batchDb],
]

test('a transaction is undone as a whole, and its connection goes on', async () => {
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
    await sql`delete from rail_cursors`.execute(harness.db)
  }
})
