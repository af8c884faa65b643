import pino from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import { connect } from '../../src/database/connect.ts'
import { type Db, sql } from '../../src/database/database.ts'
import * as float from '../../src/float/float.ts'
import { listPartners } from '../../src/partners/partners.ts'
import { readDemoRail, readRails } from '../../src/rails.ts'
import { seedDemo } from '../../src/sandbox/demo.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'
import { verify } from '../../src/verification/verify.ts'
import { keySource } from '../harness/installation-key.ts'
import { extent } from '../runner/extent.ts'
import { newDatabase, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(tidyUp)

const newcomer = { MIDMONTH_RAILS: '', MIDMONTH_MODE: 'sandbox', DATABASE_URL: '' } as const

async function columnOf<T>(db: Db, query: ReturnType<typeof sql<{ value: T }>>): Promise<T[]> {
  return (await query.execute(db)).rows.map(({ value }) => value)
}

test('the demo has a withdrawal in every state, and pay runs from files', async () => {
  const { DATABASE_URL } = await newDatabase()
  const { db, close } = connect(DATABASE_URL, { log: pino({ level: 'silent' }), connectionsMax: 2 })
  await openSealer(db, keySource)
  try {
    await seedDemo(db, new Date('2026-06-17T12:00:00Z'))
    const states = sql<{ value: string }>`select distinct status as value from withdrawals order by status`
    expect(await columnOf(db, states)).toEqual(['cancelled', 'failed', 'held', 'paid', 'returned', 'submitted'])
    const unnamed = sql<{ value: string }>`select id as value from pay_runs where file_name is null`
    expect(await columnOf(db, unnamed)).toEqual([])
  } finally {
    await close()
  }
})

test('only a sandbox without MIDMONTH_RAILS and DATABASE_URL has the demo rail', async () => {
  expect((await readRails({ ...newcomer })).map(({ name }) => name)).toEqual(['demo-bank'])
  expect(await readDemoRail({ ...newcomer, DATABASE_URL: 'postgres://db/midmonth' })).toBeUndefined()
  expect(await readDemoRail({ ...newcomer, MIDMONTH_RAILS: '/etc/midmonth/rails.json' })).toBeUndefined()
  expect(await readRails({ ...newcomer, MIDMONTH_MODE: 'live' })).toEqual([])
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
  'the demo rail has a batch to approve, a batch to answer and entries to explain, when seeded %s',
  async (_, instant) => {
    const now = new Date(instant)
    const { DATABASE_URL } = await newDatabase()
    const { db, close } = connect(DATABASE_URL, { log: pino({ level: 'silent' }), connectionsMax: 2 })
    await openSealer(db, keySource)
    try {
      await seedDemo(db, now, { rail: await readDemoRail(newcomer) })
      expect((await verify(db)).filter(({ disagreement }) => disagreement !== null)).toEqual([])
      expect(await countEventsAfter(db, now)).toBe(0n)
      const batches = sql<{ value: string }>`
        select b.status || ' ' || (b.closed_at is null) || ' ' || count(a.person) as value
          from payout_batches b left join payout_batch_approvals a on a.batch_id = b.id
         group by b.id order by b.id`
      expect(await columnOf(db, batches)).toEqual(['sent false 2', 'building false 1', 'building true 0'])
      const exceptions = sql<{
        value: string
      }>`select kind as value from payout_exceptions where closed_at is null order by kind`
      expect(await columnOf(db, exceptions)).toEqual(['money_in', 'money_out'])
    } finally {
      await close()
    }
  },
)

test.each(instants.slice(0, extent({ short: 2, long: 4 })))(
  'the demo is entirely in the past, with a balanced ledger and a positive float, when seeded %s',
  async (_, instant) => {
    const now = new Date(instant)
    const { DATABASE_URL } = await newDatabase()
    const { db, close } = connect(DATABASE_URL, { log: pino({ level: 'silent' }), connectionsMax: 2 })
    await openSealer(db, keySource)
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
