import pino from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { breaking } from '../../test/harness/refusal.ts'
import { euAccount, silver } from '../../test/harness/samples.ts'
import { extent } from '../../test/runner/extent.ts'
import { connect } from '../database/connect.ts'
import { type Db, type Reader, sql } from '../database/database.ts'
import { writeAll } from '../members/changes.ts'
import * as members from '../members/members.ts'
import { readOverview } from '../overview/overview.ts'
import type { PartnerSettings } from '../partners/partners.ts'
import { verify } from '../verification/verify.ts'
import { readBalance } from '../withdrawals/balance.ts'
import { complete } from '../withdrawals/completions.ts'
import { endIfOver, type Progress, releaseSome, start } from './closing.ts'

// Between the end of a cycle and the release of its last member’s unused pay. Closing as a whole is tested with the pay cycles.

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const march = new Date('2026-03-10T09:00:00.000Z')
const april = new Date('2026-04-01T08:00:00.000Z')
const gbp = (amount: number) => ({ amount, currency: 'GBP' })

async function addPartner(name: string, settings: PartnerSettings = {}): Promise<TestPartner> {
  harness.clock.set(march)
  return await harness.addPartner(name, settings)
}

const pay = (key: string, lines: [string, number][]) =>
  harness.call('POST', '/v1/pay/run', {
    key,
    body: { payDetails: lines.map(([memberId, amount]) => ({ memberId, money: gbp(amount) })) },
  })

/** Moves the clock to April, and ends the cycle of March. */
async function end({ partner: { id: partnerId } }: TestPartner, db: Db = harness.db): Promise<void> {
  harness.clock.set(april)
  await db.transaction().execute(tx => endIfOver(tx, { partnerId, now: april }))
}

async function release(
  { partner: { id: partnerId } }: TestPartner,
  { countMax, progress = start, db = harness.db }: { countMax?: number; progress?: Progress; db?: Db } = {},
) {
  const of = { partnerId, progress, now: harness.clock.now(), ...(countMax === undefined ? {} : { countMax }) }
  return await db.transaction().execute(tx => releaseSome(tx, of))
}

async function balanceOf({ key }: TestPartner, memberId: string) {
  const { body } = await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key })
  return { available: body.available.amount, payCycleId: body.payCycle.id }
}

const cyclesOf = async ({ key }: TestPartner) => (await harness.call('GET', '/v1/pay/cycles', { key })).body.payCycles
const askDeductions = ({ key }: TestPartner, payCycleId: string) =>
  harness.call('GET', `/v1/pay/cycles/${payCycleId}/deductions`, { key })

/** The transfers of a member, in the order in which they were booked. */
async function bookingsOf(memberId: string): Promise<string[]> {
  const rows = await harness.db
    .selectFrom('ledgerTransfers')
    .select(['reason', 'amount'])
    .where('memberId', '=', memberId)
    .orderBy('memberSequence')
    .execute()
  return rows.map(({ reason, amount }) => `${reason} ${amount}`)
}

const closingsOf = async ({ partner }: TestPartner) =>
  await harness.db
    .selectFrom('events')
    .select('resourceId')
    .where('partnerId', '=', partner.id)
    .where('type', '=', 'pay_cycle.closed')
    .execute()

async function expectBooksToAgree(): Promise<void> {
  expect((await verify(harness.db)).filter(({ disagreement }) => disagreement !== null)).toEqual([])
}

describe('unused pay of an ended cycle', () => {
  test('counts as zero wherever a balance is read, and cannot be withdrawn', async () => {
    const mine = await addPartner('Reading')
    const memberId = await harness.addMember({ key: mine.key, available: 12_000 })
    await end(mine)
    const [next] = await cyclesOf(mine)
    expect(await balanceOf(mine, memberId)).toEqual({ available: 0, payCycleId: next.id })
    const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', {
      key: mine.key,
      body: { memberId, amount: gbp(5_000) },
    })
    expect([intent.status, intent.body.issues[0].code]).toEqual([422, 'MemberInsufficientFunds'])
    const { currencies } = await readOverview(harness.db, { partner: mine.partner, now: april })
    expect(currencies.find(({ currency }) => currency === 'GBP')?.available).toBe(0n)
    expect((await askDeductions(mine, next.id)).body.deductions).toEqual([])
    // It does not keep the member in its currency either.
    const body = { tier: 'Silver EU', accountDetails: euAccount }
    expect((await harness.call('PATCH', `/v1/members/${memberId}`, { key: mine.key, body })).status).toBe(200)
    await expectBooksToAgree()
    expect(await release(mine)).toBe('closed')
    expect(await bookingsOf(memberId)).toEqual(['pay_run.available 12000', 'pay_cycle.closed 12000'])
    await expectBooksToAgree()
  })

  test.each(['pay', 'correction', 'cancellation'] as const)(
    'is released by the first movement that concerns the member: a %s',
    async movement => {
      const mine = await addPartner(`First ${movement}`)
      const { key } = mine
      const memberId = await harness.addMember({ key, available: 12_000 })
      const withdrawalId = await harness.withdraw({ key, memberId })
      await end(mine)
      const [next, ended] = await cyclesOf(mine)
      const { status } = await {
        pay: () => pay(key, [[memberId, 300]]),
        correction: () => pay(key, [[memberId, -300]]),
        cancellation: () => harness.call('POST', `/v1/pay/withdrawals/${withdrawalId}/cancel`, { key }),
      }[movement]()
      expect(status).toBeLessThan(300)
      const [available, last] = {
        pay: [300, ['pay_cycle.closed 7000', 'pay_run.available 300']],
        // Nothing is available, so all of it is owed. That leaves the pay of March alone.
        correction: [0, ['pay_run.available 300']],
        cancellation: [5_000, ['pay_cycle.closed 7000', 'withdrawal.cancelled 4950', 'withdrawal.cancelled 50']],
      }[movement] as [number, string[]]
      expect((await balanceOf(mine, memberId)).available).toBe(available)
      expect((await bookingsOf(memberId)).slice(-last.length)).toEqual(last)
      await expectBooksToAgree()
      expect(await release(mine)).toBe('closed')
      expect((await bookingsOf(memberId)).filter(booking => booking === 'pay_cycle.closed 7000')).toHaveLength(1)
      const { deductions } = (await askDeductions(mine, ended.id)).body
      expect(deductions).toEqual([{ memberId, total: gbp(5_000) }])
      expect((await balanceOf(mine, memberId)).payCycleId).toBe(next.id)
      await expectBooksToAgree()
    },
  )

  test('is never mixed with pay of another cycle: the database refuses it', async () => {
    const mine = await addPartner('Fence')
    const memberId = await harness.addMember({ key: mine.key, available: 12_000 })
    await end(mine)
    const [next] = await cyclesOf(mine)
    const update = 'update ledger_balances set available = available + 1, pay_cycle_id = $1 where member_id = $2'
    await expect(harness.pool.query(update, [next.id, memberId])).rejects.toMatchObject(
      breaking('available_is_of_one_cycle'),
    )
  })
})

describe('until the last member’s pay is released', () => {
  test('deductions and settlement are refused with a retry-after, and the closing is not announced', async () => {
    const mine = await addPartner('Waiting')
    const members = [1_000, 2_000, 3_000]
    for (const available of members) await harness.addMember({ key: mine.key, available })
    await end(mine)
    const { id } = mine.payCycle
    expect((await harness.call('GET', `/v1/pay/cycles/${id}`, { key: mine.key })).body.status).toBe('Closed')
    const settle = () =>
      harness.call('POST', `/v1/pay/cycles/${id}/settlement`, { key: mine.key, body: { deductions: [] } })
    let progress: Awaited<ReturnType<typeof release>> = start
    for (let steps = 0; typeof progress === 'object'; steps++) {
      for (const answer of [await askDeductions(mine, id), await settle()]) {
        expect([answer.status, answer.body.issues[0].code]).toEqual([409, 'Conflict'])
        expect(answer.headers).toMatchObject({ 'retry-after': '5', 'x-should-retry': 'true' })
      }
      expect(await closingsOf(mine)).toEqual([])
      expect(steps).toBeLessThan(4)
      progress = await release(mine, { progress, countMax: 1 })
    }
    expect((await askDeductions(mine, id)).body.deductions).toEqual([])
    expect(await closingsOf(mine)).toEqual([{ resourceId: id }])
    expect((await settle()).status).toBe(201)
  })

  test('the database refuses the settlement, too', async () => {
    const mine = await addPartner('Unsettled')
    await harness.addMember({ key: mine.key, available: 1_000 })
    await end(mine)
    const settle = 'update pay_cycles set settled_at = closed_at where id = $1'
    await expect(harness.pool.query(settle, [mine.payCycle.id])).rejects.toMatchObject(
      breaking('only_released_is_settled'),
    )
  })

  test('the next cycle does not end', async () => {
    const mine = await addPartner('In a row')
    await harness.addMember({ key: mine.key, available: 1_000 })
    await end(mine)
    harness.clock.set(new Date('2026-05-02T08:00:00.000Z'))
    const of = { partnerId: mine.partner.id, now: harness.clock.now() }
    expect(await harness.db.transaction().execute(tx => endIfOver(tx, of))).toBeUndefined()
    expect(await release(mine)).toBe('closed')
    expect(await harness.db.transaction().execute(tx => endIfOver(tx, of))).toMatchObject({
      closed: { startDate: '2026-04-01' },
    })
  })
})

/** Locks a member until the returned function is called. */
async function lock({ partner }: TestPartner, memberId: string): Promise<() => Promise<void>> {
  const done = Promise.withResolvers<void>()
  onTestFinished(() => done.resolve())
  const isLocked = Promise.withResolvers<void>()
  const holding = harness.inTx(async tx => {
    await sql`select from members where partner_id = ${partner.id} and id = ${memberId} for no key update`.execute(tx)
    isLocked.resolve()
    await done.promise
  })
  await isLocked.promise
  return async () => {
    done.resolve()
    await holding
  }
}

test('a locked member delays neither the end of the cycle nor the release of the others', async () => {
  const mine = await addPartner('Locked')
  const ranked = (
    await Promise.all([1, 2, 3].map(() => harness.addMember({ key: mine.key, available: 1_000 })))
  ).sort() as [string, string, string]
  const [first, free, last] = ranked
  const unlockFirst = await lock(mine, first)
  const unlockLast = await lock(mine, last)
  await end(mine)
  const left = { after: '', waits: true }
  expect(await release(mine)).toEqual(left)
  const countBookings = async () => (await Promise.all([first, free, last].map(bookingsOf))).map(({ length }) => length)
  expect(await countBookings()).toEqual([1, 2, 1])
  await unlockFirst()
  // Not locked while the last is waited for.
  expect(await release(mine, { progress: left })).toEqual({ ...left, after: first })
  expect(await countBookings()).toEqual([2, 2, 1])
  await expect(release(mine, { progress: { ...left, after: first } })).rejects.toThrow('lock timeout')
  const waiting = release(mine, { progress: { ...left, after: first } })
  await unlockLast()
  expect(await waiting).toEqual({ ...left, after: last })
  expect(await release(mine, { progress: { ...left, after: last } })).toBe('closed')
  expect(await bookingsOf(last)).toEqual(['pay_run.available 1000', 'pay_cycle.closed 1000'])
})

test('a task that takes too long makes way for others, and is scheduled again', async () => {
  const mine = await addPartner('Long')
  await harness.addMember({ key: mine.key, available: 1_000 })
  harness.clock.set(april)
  const countJobs = async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer from graphile_worker.jobs
       where task_identifier = 'close-pay-cycles' and run_at <= ${april}`.execute(harness.db)
    return rows[0]?.count ?? 0
  }
  const before = await countJobs()
  let ms = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (ms += 10_000))
  await harness.runTask('close-pay-cycles').finally(() => clock.mockRestore())
  expect(await closingsOf(mine)).toEqual([])
  expect(await countJobs()).toBe(before + 1)
  await harness.runTask('close-pay-cycles')
  expect(await closingsOf(mine)).toHaveLength(1)
})

// Enough members are left for each killed closing.
const { killsMax, count } = extent({ short: { killsMax: 20, count: 200 }, long: { killsMax: 100, count: 800 } })

test('a closing that is killed many times, while members are paid and withdraw, loses nothing', async () => {
  const mine = await addPartner('Killed')
  const { key, partner } = mine
  const first = await harness.addMember({ key })
  const like = await members.find(harness.db, { partnerId: partner.id, memberId: first })
  const memberIds = Array.from({ length: count }, (_, index) => `mem_${String(index + 1).padStart(26, '0')}`)
  const changes = memberIds.map(id => ({ before: undefined, after: { ...like, id, email: `${id}@killed.example` } }))
  const now = harness.clock.now()
  await harness.inTx(tx => writeAll(tx, { partnerId: partner.id, changes, instructedAt: now, now }))
  await pay(
    key,
    memberIds.map(memberId => [memberId, 12_000]),
  )
  const withdrawn = memberIds.filter((_, index) => index % 10 === 0)
  const withdrawalIds = await Promise.all(withdrawn.map(memberId => harness.withdraw({ key, memberId })))
  harness.clock.set(april)

  let isClosed = false
  const living = (async () => {
    for (let at = 0; !isClosed && at < count / 5; at++) {
      const memberId = memberIds[(at * 7_919) % count] ?? ''
      expect((await pay(key, [[memberId, 6_000]])).status).toBe(201)
      // It may go into the cycle that has not ended yet.
      await harness.withdraw({ key, memberId, amount: 3_000 }).catch(() => undefined)
      const cancelled = at % 5 === 0 ? withdrawalIds.pop() : undefined
      if (cancelled !== undefined) await harness.call('POST', `/v1/pay/withdrawals/${cancelled}/cancel`, { key })
    }
  })()
  const seed = Math.floor(Math.random() * 2 ** 31)
  const random = randomFrom(seed)
  let kills = 0
  while (!isClosed) {
    // A chunk takes about eight statements.
    const { db, close } = await connectUntilKilled(kills < killsMax ? 1 + Math.floor(random() * 16) : Infinity)
    try {
      isClosed = await closeStepwise(mine, db)
    } catch {
      kills += 1
    }
    await close().catch(() => undefined)
  }
  await living
  expect(kills, `seed ${seed}`).toBe(killsMax)
  expect(await closingsOf(mine)).toHaveLength(1)
  await expectBooksToAgree()
  const { rows } = await sql<{ releases: number; members: number }>`
    select count(*)::integer as releases, count(distinct member_id)::integer as members from ledger_transfers
     where partner_id = ${partner.id} and pay_cycle_id = ${mine.payCycle.id} and reason = 'pay_cycle.closed'`.execute(
    harness.db,
  )
  expect(rows[0]?.releases).toBe(rows[0]?.members)
  // What was withdrawn in the ended cycle is its deductions, to the penny.
  const { rows: wrong } = await sql`
    select member_id from (
      select member_id, gross_amount as amount from withdrawals
       where partner_id = ${partner.id} and pay_cycle_id = ${mine.payCycle.id}
         and (status <> 'cancelled' or adjusted_in_cycle_id is not null)
       union all
      select member_id, case when debit = 'earned_pay' then -amount else amount end from ledger_transfers
       where partner_id = ${partner.id} and pay_cycle_id = ${mine.payCycle.id}
         and (debit = 'earned_pay' or credit = 'earned_pay')) both_sides
     group by member_id having sum(amount) <> 0`.execute(harness.db)
  expect(wrong).toEqual([])
}, 120_000)

/** Connects like another process, which knows nothing of earlier progress. Its connection is killed at a statement, given by number. */
async function connectUntilKilled(statement: number) {
  const { host, user, database } = harness
  const connected = connect({ host, user, database }, { log: pino({ level: 'silent' }), connectionsMax: 1 })
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(connected.db)
  const client = await connected.pool.connect()
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  let count = 0
  Object.assign(client, {
    async query(...args: unknown[]) {
      if (++count === statement) await sql`select pg_terminate_backend(${rows[0]?.pid}::integer)`.execute(harness.db)
      return await query(...args)
    },
  })
  client.release()
  return connected
}

/** Closes in chunks of three members. @returns whether the cycle is closed */
async function closeStepwise(mine: TestPartner, db: Db): Promise<boolean> {
  await end(mine, db)
  for (let progress: Awaited<ReturnType<typeof release>> = start; ; ) {
    progress = await release(mine, { progress, countMax: 3, db })
    if (typeof progress !== 'object') return true
  }
}

function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

describe('a cycle that ends between two statements', () => {
  const lastMinute = new Date('2026-03-31T22:55:00.000Z')

  /** A database on which the partner's cycle ends after the statement that reads the facts of a withdrawal. */
  const endingAfterFacts = <T extends Reader>(db: T, partnerId: string): T => {
    let hasEnded = false
    return db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        if (!hasEnded && result.rows[0] !== undefined && 'upperLimit' in result.rows[0]) {
          hasEnded = true
          await harness.inTx(tx => endIfOver(tx, { partnerId, now: april }))
        }
        return result
      },
    }) as T
  }

  test('a completion counts the withdrawals of the cycle that it withdraws in', async () => {
    const { key, partner } = await addPartner('Limit')
    await harness.addTier('Once', { ...silver, withdrawalsPerCycle: 1 }, { partnerId: partner.id })
    const memberId = await harness.addMember({ key, tier: 'Once', available: 20_000 })
    harness.clock.set(lastMinute)
    const intents = [
      await harness.createIntent({ key, memberId, amount: 5_000 }),
      await harness.createIntent({ key, memberId, amount: 5_000 }),
    ]
    await harness.completeIntent(intents[0] ?? '', { key })
    const completing = harness.inTx(async tx => {
      const ending = endingAfterFacts(tx, partner.id)
      return await complete(ending, { partner, intentId: intents[1] ?? '', now: lastMinute, clockOffsetMs: 0 })
    })
    await expect(completing).rejects.toMatchObject({ issues: [{ code: 'MemberNotEligible' }] })
  })

  test('a balance is shown with the cycle that it was earned in', async () => {
    const { key, partner, payCycle } = await addPartner('Mixed')
    const memberId = await harness.addMember({ key, available: 20_000 })
    const ending = endingAfterFacts(harness.db, partner.id)
    const read = await readBalance(ending, { partner, memberId, hasRail: () => true, now: lastMinute })
    expect(read).toMatchObject({ available: 20_000n, payCycle: { id: payCycle.id } })
  })
})
