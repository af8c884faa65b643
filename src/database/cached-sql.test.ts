import assert from 'node:assert/strict'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { cachedSql } from './cached-sql.ts'
import { connect } from './connect.ts'
import { type Reader, sql } from './database.ts'
import { onOnePartner } from './one-partner.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const one = sql`1`
const plus = (added: number) => cachedSql`+ ${added}::integer`
const sum = async (first: number, parts: { added?: number; last: number }) => {
  const { added, last } = parts
  const { rows } = await cachedSql<{ theSum: number }>`
    select ${first}::integer ${added === undefined ? cachedSql`` : plus(added)} + ${last}::integer * ${one} as the_sum`.execute(
    harness.db,
  )
  return rows[0]?.theSum
}

test('values keep their order in every combination of parts', async () => {
  expect(await sum(1, { added: 20, last: 300 })).toBe(321)
  expect(await sum(2, { last: 400 })).toBe(402)
  expect(await sum(3, { added: 50, last: 600 })).toBe(653)
  expect(await sum(4, { last: 700 })).toBe(704)
})

test('a list is one parameter', async () => {
  const { rows } = await cachedSql<{ count: number }>`
    select cardinality(${['a', 'b', 'c']}::text[]) as count`.execute(harness.db)
  expect(rows).toEqual([{ count: 3 }])
})

test('a part that is created for each execution is refused before its texts fill the memory', async () => {
  const run = () => cachedSql`select ${sql`1`}`.execute(harness.db)
  for (let time = 1; time <= 8; time++) await run()
  await expect(run()).rejects.toThrow('A part of cached SQL is created for each execution')
})

test('with two databases in one process, only statements for the one with a lane per partner name the partner', async () => {
  const connection = { host: harness.host, user: harness.user, database: harness.database }
  const log = pino({ level: 'silent' })
  const [shared, routed] = (['shared', 'partner'] as const).map(lanes => connect(connection, { log, lanes }))
  assert(shared && routed)
  const asked = [{ partnerId: harness.partner.id }]
  const read = async (db: Reader) => {
    const { rows } = await cachedSql<{ id: string }>`
      select t.partner_id as id from tiers t where true ${onOnePartner('t', asked)}`.execute(db)
    return new Set(rows.map(({ id }) => id)).size
  }
  try {
    for (const both of [1, 2]) {
      expect([both, await read(shared.batchDb)]).toEqual([both, 2])
      expect([both, await read(routed.batchDb)]).toEqual([both, 1])
      expect([both, await routed.db.transaction().execute(read)]).toEqual([both, 1])
    }
  } finally {
    await Promise.all([shared.close(), routed.close()])
  }
})
