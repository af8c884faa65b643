import { afterAll, beforeAll, expect, test } from 'vitest'
import { gbp, id, type LogEntry, Midmonth } from '../../packages/sdk/src/index.ts'
import { sql } from '../../src/database/database.ts'
import { randomOf } from '../crash/random.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { extent } from '../runner/extent.ts'
import { type Fault, startFaultyProxy } from './faulty-proxy.ts'

const faults: Fault[] = ['drop', 'lose', 'cut', 'delay', 'duplicate']

let harness: Harness
let address: string
beforeAll(async () => {
  harness = await startHarness()
  address = await harness.app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(() => harness.stop())

// Many calls wait for several retries, the last of them for seconds.
test('withdrawals over a connection that drops, delays, duplicates and truncates responses happen exactly once', {
  timeout: extent({ short: 120_000, long: 300_000 }),
}, async () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const random = randomOf(seed, 'faults')
  // The test proves something only if each of these faults happens.
  const due = [...faults]
  const proxy = await startFaultyProxy(
    address,
    () => due.pop() ?? (random.chance(0.4) ? random.pick(faults) : undefined),
  )
  const log: LogEntry[] = []
  const midmonth = new Midmonth({
    apiKey: harness.key,
    baseUrl: proxy.url,
    timeoutMs: 2_000,
    // Far more retries than in practice, so that every withdrawal goes through.
    retriesMax: 20,
    log: entry => log.push(entry),
  })
  const count = extent({ short: 20, long: 1_000 })
  const members = await Promise.all(
    Array.from({ length: 10 }, async () => id('mem', await harness.addMember({ available: 5_000 * count }))),
  )
  const order = Array.from({ length: count }, (_, index) => members[index % members.length] ?? 'mem_none')
  const withdrawalIds: string[] = []

  async function withdrawNext(): Promise<void> {
    for (let memberId = order.pop(); memberId !== undefined; memberId = order.pop()) {
      const { withdrawalIntentId } = await midmonth.withdrawals.createIntent({ memberId, amount: gbp('50.00') })
      withdrawalIds.push((await midmonth.withdrawals.complete({ withdrawalIntentId })).id)
    }
  }

  await Promise.all(Array.from({ length: 50 }, withdrawNext))
  await proxy.stop()

  const partnerId = harness.partner.id
  const { rows: stored } = await sql<{ id: string; grossAmount: bigint }>`
    select id, gross_amount from withdrawals where partner_id = ${partnerId}`.execute(harness.db)
  const { rows: intents } = await sql`
    select from withdrawal_intents where partner_id = ${partnerId}`.execute(harness.db)
  expect(stored.map(each => each.id).sort(), `seed ${seed}`).toEqual(withdrawalIds.sort())
  expect(stored.every(({ grossAmount }) => grossAmount === 5_000n)).toBe(true)
  // A retried quote is the same quote.
  expect(intents).toHaveLength(count)
  for (const memberId of members) {
    const { body } = await harness.call('GET', `/v1/pay/members/${memberId}/balance`)
    expect(body.available.amount).toBe(5_000 * count - (5_000 * count) / members.length)
  }
  // Each fault except the duplicate costs the client a response.
  const lostCount = proxy.arrived.filter(({ fault }) => fault !== undefined && fault !== 'duplicate').length
  expect(lostCount).toBeGreaterThanOrEqual(4)
  expect(log.filter(({ retryInMs }) => retryInMs !== undefined).length).toBeGreaterThanOrEqual(lostCount)
})
