import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import * as float from '../float/float.ts'
import { defaultRetention } from '../kernel/retention.ts'
import { beat } from '../worker/heartbeats.ts'
import { exposeInstallation } from './installation-metrics.ts'

let harness: Awaited<ReturnType<typeof startHarness>>
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

/** The lines of the samples of a metric, without its name. */
async function samplesOf(name: string): Promise<string[]> {
  const { db, clock } = harness
  const text = await exposeInstallation(db, { mode: 'sandbox', retention: defaultRetention, now: clock.now() })
  return text
    .split('\n')
    .flatMap(line => (line.match(/^midmonth_([a-z_]+)/)?.[1] === name ? [line.replace(/^midmonth_[a-z_]+/, '')] : []))
}

test('withdrawals are unpaid until the bank has paid them, and overdue tasks are named', async () => {
  await harness.withdraw({ memberId: await harness.addMember({ available: 10_000 }) })
  expect(await samplesOf('withdrawals_unfinished')).toEqual(['{status="held"} 1', '{status="submitted"} 0'])
  expect(await samplesOf('payouts_unpaid')).toEqual(['{rail="none",status="held"} 1'])
  harness.clock.advance({ minutes: 10 })
  expect(await samplesOf('withdrawals_stuck')).toEqual(['{status="held"} 1', '{status="submitted"} 0'])
  expect(await samplesOf('tasks_due')).toContain('{task="submit-withdrawals"} 1')
  await harness.runTask('submit-withdrawals')
  expect(await samplesOf('payouts_unpaid')).toEqual([])
})

test('floats are named by partner, and those beyond the two hundredth are added up', async () => {
  const { partner, other, ownerDb } = harness
  for (const partnerId of [partner.id, other.partner.id]) {
    const of = { partnerId, amount: { amount: 20_000n, currency: 'GBP' as const }, now: harness.clock.now() }
    await harness.inTx(tx => float.fund(tx, of))
  }
  // Copies of the second partner and its rows about floats.
  for (const [table, id] of [
    ['partners', 'id'],
    ['tiers', 'partner_id'],
    ['ledger_float_totals', 'partner_id'],
    ['ledger_float_changes', 'partner_id'],
  ] as const)
    await sql`
      insert into ${sql.ref(table)}
      select copy.* from ${sql.ref(table)} source, generate_series(1, 200) number,
             jsonb_populate_record(source, jsonb_build_object(${id}::text, source.${sql.ref(id)} || number)) copy
       where source.${sql.ref(id)} = ${other.partner.id}`.execute(ownerDb)
  const { rows } = await sql<{ id: string }>`select id from partners`.execute(ownerDb)
  const partnerIds = rows.map(({ id }) => id).toSorted()
  const samples = (await samplesOf('float_free')).filter(sample => sample.includes('GBP'))
  expect(samples).toHaveLength(201)
  expect(samples).toContain(`{partner="${partnerIds[100]}",currency="GBP"} 20000`)
  expect(samples.at(-1)).toBe('{partner="other",currency="GBP"} 40000')
})

test('an endpoint that was given up is not counted among those that their partner disabled', async () => {
  const urls = ['healthy', 'failing', 'given-up', 'disabled'].map(name => `https://${name}.example.com/hook`)
  for (const url of urls) {
    const { status } = await harness.call('POST', '/v1/webhooks', { body: { url, types: ['withdrawal.paid'] } })
    expect(status).toBe(201)
  }
  const change = (name: string, values: string) =>
    sql`update webhook_endpoints set ${sql.raw(values)} where url like ${`%//${name}.%`}`.execute(harness.ownerDb)
  await change('failing', 'failing_since = now()')
  await change('given-up', "enabled = false, disabled_reason = 'failing', failing_since = now()")
  await change('disabled', "enabled = false, disabled_reason = 'requested'")
  expect(await samplesOf('webhook_endpoints')).toEqual([
    '{state="healthy"} 1',
    '{state="failing"} 1',
    '{state="given_up"} 1',
    '{state="disabled"} 1',
  ])
})

test('a database without replicas has 0, so that a lost replica is noticed, and its clock is compared with ours', async () => {
  expect(await samplesOf('database_replicas')).toContain('{state="sync"} 0')
  const before = Number((await samplesOf('clock_offset_seconds'))[0])
  harness.clock.advance({ minutes: 1 })
  const after = Number((await samplesOf('clock_offset_seconds'))[0])
  expect(after - before).toBeGreaterThan(30)
})

test('a gauge without a value is left out instead of being 0', async () => {
  expect(await samplesOf('backup_last_timestamp_seconds')).toEqual([])
  expect(await samplesOf('workers_alive')).toEqual([' 0'])
  await beat(harness.db, { workerId: 'worker-1', host: 'node-1', processId: 1 })
  expect(await samplesOf('workers_alive')).toEqual([' 1'])
})
