import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness.ts'
import { cachedSql } from './cached-sql.ts'
import { sql } from './database.ts'

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
