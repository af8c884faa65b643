import pino from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import { verify } from '../../src/audit/verify.ts'
import { connect } from '../../src/database/connect.ts'
import { type Db, sql } from '../../src/database/database.ts'
import * as float from '../../src/float/float.ts'
import { listPartners } from '../../src/partners/partners.ts'
import { seedDemo } from '../../src/sandbox/demo.ts'
import { extent } from '../long.ts'
import { newDatabase, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 60_000 })
afterEach(tidyUp)

test('the demo has withdrawals that were paid, cancelled, failed and returned', async () => {
  const { DATABASE_URL } = await newDatabase()
  const { db, close } = connect(DATABASE_URL, { log: pino({ level: 'silent' }), connectionsMax: 2 })
  try {
    await seedDemo(db, new Date('2026-06-17T12:00:00Z'))
    const { rows } = await sql<{ status: string }>`
      select distinct status from withdrawals order by status`.execute(db)
    expect(rows.map(({ status }) => status)).toEqual(['cancelled', 'failed', 'paid', 'returned'])
  } finally {
    await close()
  }
})

test('the demo has an open pay cycle and a closed one that can be settled', async () => {
  const database = await newDatabase({ hasDemo: true })
  const service = await serve(database)
  const get = async (path: string) => {
    const response = await fetch(`${service.address}${path}`, { headers: { 'x-api-key': service.key } })
    expect(response.status).toBe(200)
    return await response.json()
  }
  const { payCycles } = (await get('/v1/pay/cycles')) as { payCycles: { id: string; status: string }[] }
  expect(payCycles.map(({ status }) => status)).toEqual(['Open', 'Closed'])
  for (const { id } of payCycles) {
    const { deductions } = (await get(`/v1/pay/cycles/${id}/deductions`)) as {
      deductions: { total: { amount: number } }[]
    }
    expect(deductions.length).toBeGreaterThan(5)
    expect(deductions.every(({ total }) => total.amount > 0)).toBe(true)
  }
  const settlement = await fetch(`${service.address}/v1/pay/cycles/${payCycles[1]?.id}/settlement`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'text/csv' },
    body: await (
      await fetch(`${service.address}/v1/pay/cycles/${payCycles[1]?.id}/deductions`, {
        headers: { 'x-api-key': service.key, accept: 'text/csv' },
      })
    ).text(),
  })
  expect([settlement.status, await settlement.json()]).toEqual([201, expect.objectContaining({ short: 0, over: 0 })])
})

const instants = [
  ['at the first instant of a month', '2026-03-31T23:00:00Z'],
  ['at the end of a month in which the clocks change', '2026-10-31T23:59:59Z'],
  ['in the middle of a month', '2026-06-17T12:00:00Z'],
  ['minutes after the start of a year', '2027-01-01T00:03:00Z'],
] as const

test.each(instants.slice(0, extent({ short: 2, long: 4 })))(
  'the demo is entirely in the past, with a balanced ledger and a positive float, when seeded %s',
  async (_, instant) => {
    const now = new Date(instant)
    const { DATABASE_URL } = await newDatabase()
    const { db, close } = connect(DATABASE_URL, { log: pino({ level: 'silent' }), connectionsMax: 2 })
    try {
      expect(await seedDemo(db, now)).toBeDefined()
      expect(await seedDemo(db, now)).toBeUndefined()
      expect((await verify(db)).filter(({ disagreement }) => disagreement !== null)).toEqual([])
      expect(await countEventsAfter(db, now)).toBe(0n)
      const [partner] = await listPartners(db)
      for (const { free } of await float.read(db, partner?.id ?? '')) expect(free).toBeGreaterThan(0n)
      const { rows } = await sql<{ status: string; endsBefore: boolean }>`
      select status, end_date < (${now}::timestamptz at time zone 'Europe/London')::date as ends_before
        from pay_cycles order by start_date`.execute(db)
      expect(rows).toEqual([
        { status: 'Closed', endsBefore: true },
        { status: 'Open', endsBefore: false },
      ])
    } finally {
      await close()
    }
  },
)

async function countEventsAfter(db: Db, now: Date): Promise<bigint> {
  const { rows } = await sql<{ count: bigint }>`select count(*) from events where created_at > ${now}`.execute(db)
  return rows[0]?.count ?? 0n
}
