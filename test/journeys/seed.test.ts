import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql, type Tx } from '../../src/database/database.ts'
import { lockByName } from '../../src/database/named-locks.ts'
import { hold } from '../../src/idempotency/idempotency.ts'
import { newId } from '../../src/kernel/ids.ts'
import * as members from '../../src/members/members.ts'
import { simulatedBank } from '../../src/payouts/channels/simulated/simulated-bank.ts'
import { start } from '../../src/sandbox/moves.ts'
import { resetPartner } from '../../src/sandbox/reset.ts'
import { internalTasks, payoutTasks } from '../../src/tasks.ts'
import { verify } from '../../src/verification/verify.ts'
import { complete } from '../../src/withdrawals/completions.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { whenWaiting } from '../harness/waiting.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const kept = [
  'api_keys',
  'tiers',
  'tier_versions',
  'sandbox_clocks',
  'audit_log',
  'event_feeds',
  'webhook_endpoints',
  'webhook_secrets',
  'webhook_feeds',
  'request_log',
  'user_roles',
  'user_invitations',
]

/** Counts a partner's rows in each table. */
async function rowsOf(partnerId: string): Promise<Record<string, number>> {
  const { rows: tables } = await sql<{ name: string }>`
    select c.relname::text as name from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and a.attname = 'partner_id' and not a.attisdropped
     order by 1`.execute(harness.ownerDb)
  const counts: Record<string, number> = {}
  for (const { name } of tables) {
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count from ${sql.table(name)} where partner_id = ${partnerId}`.execute(
      harness.ownerDb,
    )
    counts[name] = rows[0]?.count ?? 0
  }
  return counts
}

async function live(key: string): Promise<void> {
  const memberId = await harness.addMember({ available: 50_000, key })
  await harness.call('POST', '/v1/sandbox/float', { key, body: { amount: gbp(100_000) } })
  for (const name of ['pay', 'return', 'hold']) {
    const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', {
      key,
      body: { memberId, amount: gbp(2_000) },
    })
    const { withdrawalIntentId } = intent.body
    const done = await harness.call('POST', '/v1/pay/withdrawals/complete', {
      key,
      body: { withdrawalIntentId },
      headers: { 'x-idempotency-key': `living ${name}` },
    })
    const told = await harness.call('POST', `${done.headers.location?.replace('/pay/', '/sandbox/')}/${name}`, { key })
    expect(told.status, told.text).toBe(200)
  }
  const actions = [{ type: 'Update', memberId, firstName: 'Samuel' }]
  await harness.call('POST', '/v1/members/jobs', { key, body: { actions } })
  const moved = await harness.call('POST', '/v1/sandbox/clock', { key, body: { next: 'cycle_close' } })
  expect(moved.status, moved.text).toBe(200)
}

describe('a reset', () => {
  test('leaves only the partner’s settings, tiers, key and audit log, and does not touch another partner', async () => {
    const { partner, key } = await harness.addPartner('Reset')
    const other = await harness.addPartner('Bystander')
    await live(key)
    await live(other.key)
    await harness.call('POST', '/v1/sandbox/pause', { key })
    // The request log is written after the responses.
    await harness.flushRequestLog()
    const [before, othersBefore] = [await rowsOf(partner.id), await rowsOf(other.partner.id)]
    expect(before.ledger_transfers).toBeGreaterThan(5)

    const headers = { 'x-idempotency-key': 'the reset' }
    const reset = await harness.call('POST', '/v1/sandbox/reset', { key, headers })
    const realNow = harness.clock.now().toISOString()
    expect(reset).toMatchObject({ status: 200, body: { now: realNow, aheadSeconds: 0, lastMove: null } })
    const after = await rowsOf(partner.id)
    const left = Object.entries(after).filter(([table, count]) => count > 0 && !kept.includes(table))
    // The reset itself creates the open pay cycle with its event, and its idempotency record.
    expect(Object.fromEntries(left)).toEqual({ events: 1, idempotency_keys: 1, pay_cycles: 1 })
    for (const table of kept) expect(after[table], table).toBeGreaterThanOrEqual(before[table] ?? 0)
    expect(await rowsOf(other.partner.id)).toEqual(othersBefore)

    const again = await harness.call('POST', '/v1/sandbox/reset', { key, headers })
    expect(again.headers['idempotency-replayed']).toBe('true')
    await live(key)
    expect((await verify(harness.ownerDb)).filter(({ disagreement }) => disagreement !== null)).toEqual([])
  })

  test('neither fails with 503 nor makes concurrent pay runs and completions fail with it', async () => {
    const { key } = await harness.addPartner('Reset during traffic')
    const statuses: number[] = []
    for (let round = 0; round < 4; round++) {
      const memberIds: string[] = []
      for (let index = 0; index < 6; index++) memberIds.push(await harness.addMember({ available: 50_000, key }))
      await harness.call('POST', '/v1/sandbox/float', { key, body: { amount: gbp(100_000) } })
      const intents = await Promise.all(
        memberIds.map(memberId =>
          harness.call('POST', '/v1/pay/withdrawals/intent', { key, body: { memberId, amount: gbp(2_000) } }),
        ),
      )
      const completions = intents.map(({ body: { withdrawalIntentId } }) =>
        harness.call('POST', '/v1/pay/withdrawals/complete', { key, body: { withdrawalIntentId } }),
      )
      const payDetails = memberIds.toReversed().map(memberId => ({ memberId, money: gbp(1_000) }))
      const payRuns = Array.from({ length: 6 }, () =>
        harness.call('POST', '/v1/pay/run', { key, body: { payDetails } }),
      )
      const reset = harness.call('POST', '/v1/sandbox/reset', { key })
      for (const { status } of await Promise.all([...completions, ...payRuns, reset])) statuses.push(status)
      expect((await reset).status).toBe(200)
    }
    expect(statuses.filter(status => status >= 500)).toEqual([])
  })

  test('waits for a completion that has locked its member, without a deadlock', async () => {
    const { partner, key } = await harness.addPartner('Reset during a completion')
    const memberId = await harness.addMember({ available: 50_000, key })
    const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', {
      key,
      body: { memberId, amount: gbp(2_000) },
    })
    const intentId = intent.body.withdrawalIntentId
    let resetting: ReturnType<typeof harness.call> | undefined
    await harness.inTx(async tx => {
      await sql`select from members where partner_id = ${partner.id} and id = ${memberId} for no key update`.execute(tx)
      resetting = harness.call('POST', '/v1/sandbox/reset', { key })
      await whenWaiting(harness.db)
      // The low-float alert takes this lock last.
      await complete(tx, { partner, intentId, now: harness.clock.now(), clockOffsetMs: 0 })
      await sql`select from partners where id = ${partner.id} for no key update`.execute(tx)
    })
    const reset = await resetting
    expect(reset?.status, reset?.text).toBe(200)
  })

  test.each<[string, (tx: Tx, partnerId: string) => Promise<unknown>]>([
    ['a request', (tx, id) => sql`select from members where partner_id = ${id} for update`.execute(tx)],
    ['a delivery', (tx, id) => sql`select from webhook_endpoints where partner_id = ${id} for update`.execute(tx)],
    ['a closing pay cycle', (tx, id) => sql`select from pay_cycles where partner_id = ${id} for update`.execute(tx)],
    ['another reset', (tx, id) => lockByName(tx, 'clock of', id)],
  ])('waits for %s for longer than other operations do', async (_, lock) => {
    const { partner, key } = await harness.addPartner('Reset of a busy partner')
    await harness.addMember({ key })
    const endpoint = { url: 'https://hooks.example.com/', types: ['*'] }
    expect((await harness.call('POST', '/v1/webhooks', { key, body: endpoint })).status).toBe(201)
    let resetting: ReturnType<typeof harness.call> | undefined
    await harness.inTx(async tx => {
      await lock(tx, partner.id)
      resetting = harness.call('POST', '/v1/sandbox/reset', { key })
      // Other operations give up after two seconds.
      await Promise.race([resetting, whenWaiting(harness.db, { seconds: 2.5 })])
    })
    const reset = await resetting
    expect(reset?.status, reset?.text).toBe(200)
  })

  test('succeeds without a 503 alongside a running import, payouts and other resets', async () => {
    const { partner, key } = await harness.addPartner('Reset during tasks')
    const log = pino({ level: 'silent' })
    const { db, clock } = harness
    const payouts = payoutTasks([simulatedBank({ db, now: clock.now })])
    const tasks = [internalTasks['apply-member-imports'], payouts['submit-withdrawals'], payouts['read-rail-reports']]
    const statuses: number[] = []
    for (let round = 0; round < 4; round++) {
      const memberIds: string[] = []
      for (let index = 0; index < 4; index++) memberIds.push(await harness.addMember({ available: 50_000, key }))
      await harness.call('POST', '/v1/sandbox/float', { key, body: { amount: gbp(100_000) } })
      for (const memberId of memberIds) {
        const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', {
          key,
          body: { memberId, amount: gbp(2_000) },
        })
        const { withdrawalIntentId } = intent.body
        await harness.call('POST', '/v1/pay/withdrawals/complete', { key, body: { withdrawalIntentId } })
      }
      const lines = Array.from({ length: 2_000 }, (_, row) => `m${round}-${row}@example.com,Sam,Okafor,,Silver`)
      const raw = ['email,first_name,last_name,phone,tier', ...lines].join('\n')
      const query = 'offboardMax=100'
      const job = await harness.call('PUT', `/v1/members/jobs/csv?${query}`, {
        key,
        raw,
        headers: { 'content-type': 'text/csv' },
      })
      expect(job.status, job.text).toBe(202)
      harness.clock.advance({ minutes: 30 })
      const working = tasks.map(task => task({ db, log, now: clock.now, scope: { only: partner.id } }))
      const resets = Array.from({ length: 3 }, () => harness.call('POST', '/v1/sandbox/reset', { key }))
      for (const { status } of await Promise.all(resets)) statuses.push(status)
      await Promise.all(working)
    }
    expect(statuses).toEqual(Array(12).fill(200))
    expect((await verify(harness.ownerDb)).filter(({ disagreement }) => disagreement !== null)).toEqual([])
  })

  test('does not wait for an abandoned move of the clock, and is refused while a process is moving it', async () => {
    const { partner, key } = await harness.addPartner('Reset during a move')
    const now = harness.clock.now()
    const startMove = () =>
      harness.inTx(tx => start(tx, { partnerId: partner.id, destination: { byMs: 86_400_000 }, now, realNow: now }))
    await startMove()
    const lease = (until: string) =>
      sql`update sandbox_clock_moves set leased_by = 'another process', leased_until = now() + ${until}::interval
           where partner_id = ${partner.id}`.execute(harness.db)
    await lease('1 minute')
    const refused = await harness.call('POST', '/v1/sandbox/reset', { key })
    expect([refused.status, refused.body.issues?.[0].code, refused.headers['retry-after']]).toEqual([
      409,
      'Conflict',
      '1',
    ])
    await lease('-1 second')
    const reset = await harness.call('POST', '/v1/sandbox/reset', { key })
    expect(reset).toMatchObject({ status: 200, body: { status: 'Still', lastMove: null } })
  })

  test('during a move leaves no future pay cycle', async () => {
    const { partner, key } = await harness.addPartner('Reset during a long move')
    const moving = harness.call('POST', '/v1/sandbox/clock', { key, body: { by: 'P390D' } })
    const resets: number[] = []
    for (let isOver = false; !isOver; ) {
      const { status } = await harness.call('POST', '/v1/sandbox/reset', { key })
      resets.push(status)
      isOver = await Promise.race([moving.then(() => true), new Promise<false>(r => setImmediate(r, false))])
    }
    expect((await harness.call('POST', '/v1/sandbox/reset', { key })).status).toBe(200)
    expect(resets.filter(status => ![200, 409].includes(status))).toEqual([])
    expect([200, 409]).toContain((await moving).status)
    const { rows } = await sql<{ status: string }>`
      select status from pay_cycles where partner_id = ${partner.id}`.execute(harness.db)
    expect(rows).toEqual([{ status: 'Open' }])
  })

  test('succeeds although a new member and its intent are committed while it deletes, and deletes them too', async () => {
    const { partner, key } = await harness.addPartner('Reset during an invitation')
    let resetting: ReturnType<typeof harness.call> | undefined
    await harness.inTx(async tx => {
      const now = harness.clock.now()
      const accountDetails = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' }
      const body = { email: 'new@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Silver', accountDetails }
      const { id: memberId } = await members.invite(tx, { partner, body, now })
      await sql`
        insert into withdrawal_intents (partner_id, id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee,
                                        employer_fee, tier, tier_version, account, created_at, expires_at)
        select c.partner_id, ${newId('withdrawalIntent', now)}, m.id, c.id, 'pending', 'GBP', 5000, 5000, 0,
               0, 'Silver', 1, m.account, ${now}, ${now}
          from pay_cycles c join members m using (partner_id)
         where c.partner_id = ${partner.id} and m.id = ${memberId}`.execute(tx)
      resetting = harness.call('POST', '/v1/sandbox/reset', { key })
      await whenWaiting(harness.db)
    })
    const reset = await resetting
    expect(reset?.status, reset?.text).toBe(200)
    expect((await harness.call('GET', '/v1/members', { key })).body.members).toEqual([])
  })

  test('makes a concurrent intent fail with a Conflict, which a retry resolves', async () => {
    const { partner, key } = await harness.addPartner('Reset during an intent')
    const memberId = await harness.addMember({ available: 50_000, key })
    const ask = () =>
      harness.call('POST', '/v1/pay/withdrawals/intent', { key, body: { memberId, amount: gbp(2_000) } })
    let asking: ReturnType<typeof ask> | undefined
    await harness.inTx(async tx => {
      await resetPartner(tx, { partnerId: partner.id })
      asking = ask()
      await whenWaiting(harness.db)
    })
    const overtaken = await asking
    expect(overtaken, overtaken?.text).toMatchObject({
      status: 409,
      headers: { 'x-should-retry': 'true', 'retry-after': '1' },
      body: { issues: [{ code: 'Conflict' }] },
    })
    expect((await ask()).body.issues[0].code).toBe('MemberNotFound')
  })

  test('is refused by a live database, and rows can be deleted only by its function', async () => {
    const livePlace = await startHarness({ mode: 'live' })
    try {
      await livePlace.addMember({ available: 5_000 })
      const { id } = livePlace.partner
      await expect(sql`select reset_sandbox_partner(${id})`.execute(livePlace.db)).rejects.toThrow(
        /only a partner of a sandbox/,
      )
      // Not even the owner can delete rows with the setting that the function uses.
      const asOwner = livePlace.ownerDb.transaction().execute(async tx => {
        await sql`select set_config('midmonth.resetting', ${id}, true)`.execute(tx)
        await sql`delete from ledger_transfers where partner_id = ${id}`.execute(tx)
      })
      await expect(asOwner).rejects.toThrow(/is append-only/)
      expect((await livePlace.call('POST', '/v1/sandbox/reset')).status).toBe(404)
    } finally {
      await livePlace.stop()
    }
  })
})

describe('a scenario', () => {
  test('seeded twice concurrently with one idempotency key is seeded once', async () => {
    const { partner, key } = await harness.addPartner('Seeded concurrently')
    const call = { key, body: { scenario: 'mid_cycle' }, headers: { 'x-idempotency-key': 'one seed' } }
    const memberIds = async () => {
      const { rows } = await sql<{ id: string }>`
        select id from members where partner_id = ${partner.id} order by id`.execute(harness.db)
      return rows.map(({ id }) => id)
    }
    const seeding = [1, 2].map(() => harness.call('POST', '/v1/sandbox/seed', call))
    let seeded: string[] = []
    while (seeded.length === 0) seeded = await memberIds()
    const answers = await Promise.all(seeding)
    const outcomes = answers.map(({ status, headers }) => headers['idempotency-replayed'] ?? status)
    expect(outcomes).toContain(201)
    // A request that has waited for two seconds is told to retry.
    expect(outcomes.every(outcome => [201, 'true', 409].includes(outcome))).toBe(true)
    expect(outcomes.filter(outcome => outcome === 201)).toHaveLength(1)
    expect(await memberIds()).toEqual(seeded)
  })

  test('does not start while another process handles a request with the same idempotency key', async () => {
    const { partner, key } = await harness.addPartner('Seeded elsewhere')
    const call = { key, body: { scenario: 'mid_cycle' }, headers: { 'x-idempotency-key': 'held' } }
    const claimed = {
      partnerId: partner.id,
      key: 'held',
      fingerprint: Buffer.alloc(32),
      operation: 'seedSandbox',
    }
    let seeding: ReturnType<typeof harness.call> | undefined
    await hold(harness.db, { ...claimed, now: harness.clock.now() }, async () => {
      seeding = harness.call('POST', '/v1/sandbox/seed', call)
      await whenWaiting(harness.db)
      expect((await harness.call('GET', '/v1/members', { key })).body.members).toEqual([])
    })
    expect((await seeding)?.body).toEqual({ scenario: 'mid_cycle', members: 25 })
  })

  test.each([
    ['fresh', { members: 0, available: [], statuses: [], cycles: ['Open'] }],
    ['mid_cycle', { members: 25, statuses: ['paid'], cycles: ['Open'] }],
    ['after_payroll', { members: 25, statuses: ['paid'], cycles: ['Closed', 'Open'] }],
    ['returned_payments', { members: 25, statuses: ['failed', 'paid', 'returned', 'submitted'], cycles: ['Open'] }],
  ])('%s contains what its name promises', async (scenario, expected) => {
    const { partner, key } = await harness.addPartner(`Scenario ${scenario}`)
    await live(key)
    const seeded = await harness.call('POST', '/v1/sandbox/seed', { key, body: { scenario } })
    expect(seeded).toMatchObject({ status: 201, body: { scenario, members: expected.members } })
    const statuses = await harness.db
      .selectFrom('withdrawals')
      .select('status')
      .distinct()
      .where('partnerId', '=', partner.id)
      .orderBy('status')
      .execute()
    expect(statuses.map(({ status }) => status)).toEqual(expected.statuses)
    const cycles = await harness.db
      .selectFrom('payCycles')
      .select('status')
      .where('partnerId', '=', partner.id)
      .orderBy('startDate')
      .execute()
    expect(cycles.map(({ status }) => status)).toEqual(expected.cycles)
    const moved = await harness.call('POST', '/v1/sandbox/clock', { key, body: { by: 'P1D' } })
    expect(moved.status, moved.text).toBe(200)
  })

  test('after_payroll has fees that were collected, taken out and billed', async () => {
    const { partner, key } = await harness.addPartner('Seeded with fees')
    await harness.call('POST', '/v1/sandbox/seed', { key, body: { scenario: 'after_payroll' } })
    const operator = await harness.addOperator()
    const { revenue } = (await operator.call('GET', `/partners/${partner.id}/revenue`)).body
    const amounts = revenue.map((each: { [name: string]: { amount: number } }) => [
      each.collected?.amount,
      each.withdrawn?.amount,
      each.paid?.amount,
    ])
    expect(amounts).toEqual([
      [100, 50, 0],
      [expect.any(Number), expect.any(Number), 100],
    ])
    expect(amounts[1][1]).toBe(Math.floor(amounts[1][0] / 2))
    expect(await harness.disagreements()).toEqual([])
  })
})
