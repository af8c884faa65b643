import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { insertMembers } from '../../test/harness/insert-members.ts'
import { breaking } from '../../test/harness/refusal.ts'
import { euAccount, goodAccount } from '../../test/harness/samples.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { extent } from '../../test/runner/extent.ts'
import { closeIfOver } from '../closing/closing.ts'
import { sql, type Tx } from '../database/database.ts'
import type { PartnerSettings } from '../partners/partners.ts'
import { makeAvailable } from '../pay-runs/pay-runs.ts'
import { complete as completeIn } from '../withdrawals/completions.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const march = new Date('2026-03-10T09:00:00.000Z')
const april = new Date('2026-04-01T08:00:00.000Z')
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const unknownCycle = 'pc_01kah4pzc5e4r8v2m6t0x9y3bd'
const codes = (answer: { body: { issues: { code: string }[] } }) => answer.body.issues.map(issue => issue.code)

/** Adds a partner, on 10 March. */
async function partner(name: string, settings: PartnerSettings = {}): Promise<TestPartner> {
  harness.clock.set(march)
  return await harness.addPartner(name, settings)
}

const close = () => harness.runTask('close-pay-cycles')

const pay = (key: string, lines: [string, number][]) =>
  harness.call('POST', '/v1/pay/run', {
    key,
    body: { payDetails: lines.map(([memberId, amount]) => ({ memberId, money: gbp(amount) })) },
  })

const cyclesOf = async (key: string) => (await harness.call('GET', '/v1/pay/cycles', { key })).body.payCycles
const deductionsOf = async (key: string, payCycleId: string) =>
  (await harness.call('GET', `/v1/pay/cycles/${payCycleId}/deductions`, { key })).body.deductions

const statusOf = async (key: string, payCycleId: string) =>
  (await harness.call('GET', `/v1/pay/cycles/${payCycleId}`, { key })).body.status

async function eventsOf(partnerId: string): Promise<string[]> {
  const rows = await harness.db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('partnerId', '=', partnerId)
    .where('type', 'like', 'pay\\_cycle.%')
    .orderBy('id')
    .execute()
  return rows.map(({ type, data }) => `${type} ${(data as { startDate: string }).startDate}`).sort()
}

/** Submits all held withdrawals and has the bank pay them. */
async function payOut(): Promise<void> {
  const now = new Date(harness.clock.now().getTime() + 60_000)
  for (const { id } of await harness.db.selectFrom('partners').select('id').execute())
    await harness.inTx(async tx => {
      for (const { partnerId, withdrawalId } of await withdrawals.submitDue(tx, claimingAt(now, id)))
        await withdrawals.applyBankReport(tx, { partnerId, withdrawalId, outcome: 'paid', reason: null, now })
    })
}

/** Does some work in a transaction and keeps it open until `commit` is called. */
async function holding(work: (tx: Tx) => Promise<unknown>): Promise<{ commit(): Promise<void> }> {
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const done = harness.inTx(async tx => {
    await work(tx)
    started.resolve()
    await released.promise
  })
  await Promise.race([started.promise, done])
  return {
    async commit() {
      released.resolve()
      await done
    },
  }
}

test('the database refuses a second open cycle of a partner', async () => {
  const { partner: mine } = await partner('Two')
  const adding = harness.db
    .insertInto('payCycles')
    .values({
      ...{ partnerId: mine.id, id: unknownCycle, startDate: '2030-01-01', endDate: '2030-01-31' },
      ...{ status: 'Open', createdAt: march },
    })
    .execute()
  await expect(adding).rejects.toThrow('one_open_cycle')
})

describe('the first cycle', () => {
  test.each<[PartnerSettings, string, string]>([
    [{}, '2026-03-01', '2026-03-31'],
    [{ cycleAnchor: '2026-01-25' }, '2026-02-25', '2026-03-24'],
    [{ cycleSchedule: 'weekly', cycleAnchor: '2026-03-02' }, '2026-03-09', '2026-03-15'],
    [{ cycleSchedule: 'semi_monthly' }, '2026-03-01', '2026-03-15'],
  ])('with %o is %s to %s', async (settings, startDate, endDate) => {
    const { payCycle } = await partner('First', settings)
    expect(payCycle).toMatchObject({ startDate, endDate, status: 'Open' })
  })

  test('contains today in the partner’s time zone, not the server’s', async () => {
    harness.clock.set(new Date('2026-03-31T23:30:00Z'))
    const { payCycle } = await harness.addPartner('Auckland', { timeZone: 'Pacific/Auckland' })
    expect(payCycle.startDate).toBe('2026-04-01')
  })

  test('cannot be monthly and start on a 30th; the database refuses that too', async () => {
    await expect(harness.addPartner('Odd', { cycleAnchor: '2026-01-30' })).rejects.toThrow(
      /must start on a day that every/,
    )
    const update = `update partners set cycle_anchor = '2026-01-30' where id = $1`
    await expect(harness.pool.query(update, [harness.partner.id])).rejects.toMatchObject(
      breaking('monthly_anchor_is_in_every_month'),
    )
  })

  test('is closed by a task scheduled for the end of its last day in the partner’s time zone', async () => {
    const { rows: before } = await sql<{ count: number }>`select count(*)::integer from graphile_worker.jobs`.execute(
      harness.db,
    )
    await partner('Los Angeles', { timeZone: 'America/Los_Angeles' })
    const { rows } = await sql<{ runAt: Date }>`
      select run_at from graphile_worker.jobs where task_identifier = 'close-pay-cycles' order by id desc limit 1`.execute(
      harness.db,
    )
    expect(before[0]?.count).toBeGreaterThan(0)
    expect(rows[0]?.runAt).toEqual(new Date('2026-04-01T07:00:00Z'))
  })
})

describe('closing', () => {
  test('waits for a lock as long as its lock timeout allows, and a second attempt does not wait at the same time', async () => {
    const { key, payCycle, partner: mine } = await partner('Waiting')
    harness.clock.set(new Date('2026-04-01T10:00:00Z'))
    const lock = (tx: Tx) =>
      sql`select from pay_cycles where partner_id = ${mine.id} and id = ${payCycle.id} for update`.execute(tx)
    const { commit } = await holding(lock)
    const first = close()
    await whenWaiting(harness.db)
    await close()
    expect(await statusOf(key, payCycle.id)).toBe('Open')
    await commit()
    await first
    expect(await statusOf(key, payCycle.id)).toBe('Closed')
    const timeouts = await harness.db.transaction().execute(async tx => {
      await closeIfOver(tx, { partnerId: mine.id, now: harness.clock.now() })
      const { rows } = await sql<{ waitsMs: number; endsMs: number }>`
        select max(setting::integer) filter (where name = 'lock_timeout') as waits_ms,
               max(setting::integer) filter (where name = 'statement_timeout') as ends_ms
          from pg_settings where name in ('lock_timeout', 'statement_timeout')`.execute(tx)
      return rows[0]
    })
    expect(timeouts).toEqual({ waitsMs: 30_000, endsMs: 40_000 })
  })

  test('releases what was not withdrawn, makes the deductions final and opens the next cycle the day after', async () => {
    const { key, payCycle, partner: mine } = await partner('Closing')
    const [drew, drewNothing] = [
      await harness.addMember({ key, available: 12_000 }),
      await harness.addMember({ key, available: 700 }),
    ]
    await harness.withdraw({ key, memberId: drew })
    harness.clock.set(april)
    await close()
    const [next, closed] = await cyclesOf(key)
    expect(closed).toEqual({ ...payCycle, status: 'Closed' })
    expect(next).toMatchObject({ startDate: '2026-04-01', endDate: '2026-04-30', status: 'Open' })
    expect(await deductionsOf(key, payCycle.id)).toEqual([{ memberId: drew, total: gbp(5_000) }])
    expect(await deductionsOf(key, next.id)).toEqual([])
    for (const memberId of [drew, drewNothing]) {
      const { body } = await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key })
      expect(body).toMatchObject({ available: gbp(0), payCycle: { id: next.id, lastPayDate: null } })
    }
    expect(await eventsOf(mine.id)).toEqual([
      'pay_cycle.closed 2026-03-01',
      'pay_cycle.opened 2026-03-01',
      'pay_cycle.opened 2026-04-01',
    ])
    expect(await harness.disagreements()).toEqual([])
  })

  test('waits for the end of the last day in the partner’s time zone, including summer time', async () => {
    const { key } = await partner('London')
    // London is already an hour ahead.
    harness.clock.set(new Date('2026-03-31T22:59:59.999Z'))
    await close()
    expect(await cyclesOf(key)).toHaveLength(1)
    harness.clock.set(new Date('2026-03-31T23:00:00.000Z'))
    await close()
    expect(await cyclesOf(key)).toHaveLength(2)
  })

  test('after downtime, closes every overdue cycle until today’s is open, and running again changes nothing', async () => {
    const { key, partner: mine } = await partner('Standstill', { cycleSchedule: 'weekly', cycleAnchor: '2026-03-02' })
    const memberId = await harness.addMember({ key, available: 12_000 })
    await harness.withdraw({ key, memberId })
    harness.clock.set(new Date('2026-04-08T10:00:00Z'))
    await Promise.all([close(), close(), close()])
    await close()
    const cycles = await cyclesOf(key)
    expect(
      cycles.map(({ startDate, endDate, status }: Record<string, string>) => `${startDate} ${endDate} ${status}`),
    ).toEqual([
      '2026-04-06 2026-04-12 Open',
      '2026-03-30 2026-04-05 Closed',
      '2026-03-23 2026-03-29 Closed',
      '2026-03-16 2026-03-22 Closed',
      '2026-03-09 2026-03-15 Closed',
    ])
    expect(await deductionsOf(key, cycles[4].id)).toEqual([{ memberId, total: gbp(5_000) }])
    expect(await deductionsOf(key, cycles[1].id)).toEqual([])
    expect(await eventsOf(mine.id)).toHaveLength(9)
  })

  test('follows a changed schedule without a gap or overlap', async () => {
    const { key, partner: mine } = await partner('Changing')
    await harness.db
      .updateTable('partners')
      .set({ cycleSchedule: 'weekly', cycleAnchor: '2026-03-02' })
      .where('id', '=', mine.id)
      .execute()
    harness.clock.set(new Date('2026-04-07T10:00:00Z'))
    await close()
    const cycles = await cyclesOf(key)
    expect(cycles.map(({ startDate, endDate }: Record<string, string>) => `${startDate} ${endDate}`)).toEqual([
      '2026-04-06 2026-04-12',
      '2026-04-01 2026-04-05',
      '2026-03-01 2026-03-31',
    ])
  })

  test('moves a scheduled pay run to the next cycle', async () => {
    const { key } = await partner('Grace', { graceMinutes: 60 })
    const memberId = await harness.addMember({ key })
    harness.clock.set(new Date('2026-03-31T22:30:00Z'))
    const payRun = await pay(key, [[memberId, 900]])
    harness.clock.set(new Date('2026-03-31T23:00:00Z'))
    await close()
    const [next] = await cyclesOf(key)
    const moved = await harness.call('GET', `/v1/pay/runs/${locatedId(payRun)}`, { key })
    expect(moved.body).toMatchObject({ payCycleId: next.id, status: 'Scheduled' })
    harness.clock.set(new Date('2026-03-31T23:30:00Z'))
    await harness.runTask('make-pay-runs-available')
    const { body } = await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key })
    expect(body).toMatchObject({ available: gbp(900), payCycle: { id: next.id } })
    expect(await harness.disagreements()).toEqual([])
  })

  test('keeps what a member owes, and the next pay repays it', async () => {
    const { key, payCycle } = await partner('Owing')
    const memberId = await harness.addMember({ key, available: 10_000 })
    await harness.withdraw({ key, memberId, amount: 8_000 })
    await pay(key, [[memberId, -5_000]])
    harness.clock.set(april)
    await close()
    // Earned 5,000 and withdrew 8,000: payroll deducts the 5,000 earned now and 3,000 in the next cycle.
    expect(await deductionsOf(key, payCycle.id)).toEqual([{ memberId, total: gbp(5_000) }])
    await pay(key, [[memberId, 10_000]])
    const { body } = await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key })
    expect(body.available).toEqual(gbp(7_000))
    const [next] = await cyclesOf(key)
    expect(await deductionsOf(key, next.id)).toEqual([{ memberId, total: gbp(3_000) }])
  })

  test('covers all of many members, across several statements', async () => {
    const { key, payCycle, partner: mine } = await partner('Many')
    // More than one statement can close.
    const count = extent({ short: 5_200, long: 12_000 })
    const ids = Array.from({ length: count }, (_, index) => `mem_${String(index + 1).padStart(26, '0')}`)
    const now = harness.clock.now()
    await insertMembers(harness.db, { partnerId: mine.id, members: ids.map(id => ({ id })), now })
    for (const part of [ids.slice(0, 5_000), ids.slice(5_000)]) {
      expect(
        (
          await pay(
            key,
            part.map(memberId => [memberId, 100]),
          )
        ).status,
      ).toBe(201)
    }
    harness.clock.set(april)
    await close()
    const { rows } = await sql<{ left: bigint; released: number }>`
      select (select sum(available)::bigint from ledger_balances where partner_id = ${mine.id}) as left,
             (select count(*)::integer from ledger_transfers
               where partner_id = ${mine.id} and pay_cycle_id = ${payCycle.id} and reason = 'pay_cycle.closed') as released`.execute(
      harness.db,
    )
    expect(rows[0]).toEqual({ left: 0n, released: count })
    expect(await harness.disagreements()).toEqual([])
  })
})

describe('closing, concurrent with', () => {
  test('a completion that came first: it counts in the closing cycle', async () => {
    const { key, payCycle, partner: mine } = await partner('Completion first')
    const memberId = await harness.addMember({ key, available: 12_000 })
    const intentId = await harness.createIntent({ key, memberId })
    const completing = await holding(tx =>
      completeIn(tx, { partner: mine, intentId, now: harness.clock.now(), clockOffsetMs: 0 }),
    )
    harness.clock.set(april)
    const closing = close()
    await whenWaiting(harness.db)
    await completing.commit()
    await closing
    expect(await statusOf(key, payCycle.id)).toBe('Closed')
    expect(await deductionsOf(key, payCycle.id)).toEqual([{ memberId, total: gbp(5_000) }])
    expect(await harness.disagreements()).toEqual([])
  })

  test('a completion that has locked its member: it is refused once the cycle has ended, and the two do not deadlock', async () => {
    const { key, payCycle, partner: mine } = await partner('Completion begun')
    const memberId = await harness.addMember({ key, available: 12_000 })
    const intentId = await harness.createIntent({ key, memberId })
    let closing = Promise.resolve()
    const completing = harness.inTx(async tx => {
      await sql`select from members where partner_id = ${mine.id} and id = ${memberId} for no key update`.execute(tx)
      const now = harness.clock.now()
      harness.clock.set(april)
      closing = close()
      await whenWaiting(harness.db)
      await completeIn(tx, { partner: mine, intentId, now, clockOffsetMs: 0 })
    })
    await expect(completing).rejects.toThrow(/The pay cycle of the withdrawal intent has closed/)
    await closing
    expect(await statusOf(key, payCycle.id)).toBe('Closed')
    expect(await deductionsOf(key, payCycle.id)).toEqual([])
    expect(await harness.disagreements()).toEqual([])
  })

  test('a completion that came second: it is refused, and the money was released', async () => {
    const { key, payCycle, partner: mine } = await partner('Completion second', { intentMinutes: 1_440 })
    const memberId = await harness.addMember({ key, available: 12_000 })
    harness.clock.set(new Date('2026-03-31T22:59:00Z'))
    const intentId = await harness.createIntent({ key, memberId })
    harness.clock.set(new Date('2026-03-31T23:01:00Z'))
    const closing = await holding(tx => closeIfOver(tx, { partnerId: mine.id, now: harness.clock.now() }))
    const completing = harness.requestCompletion(intentId, { key })
    await whenWaiting(harness.db)
    await closing.commit()
    const answer = await completing
    expect(answer.status).toBe(409)
    expect(codes(answer)).toEqual(['Conflict'])
    expect(await deductionsOf(key, payCycle.id)).toEqual([])
    expect(await harness.disagreements()).toEqual([])
  })

  test.each(['cancel', 'upload', 'make available', 'revert'] as const)(
    'an operation that came second waits, then goes into the next cycle if it can: %s',
    async step => {
      const {
        key,
        payCycle,
        partner: mine,
      } = await partner(`Second ${step}`, { graceMinutes: step === 'make available' ? 1 : 0 })
      const memberId = await harness.addMember({ key })
      const payRun = await pay(key, [[memberId, 12_000]])
      const withdrawalId = step === 'cancel' ? await harness.withdraw({ key, memberId }) : ''
      harness.clock.set(april)
      const closing = await holding(tx => closeIfOver(tx, { partnerId: mine.id, now: harness.clock.now() }))
      const second = {
        cancel: () => harness.call('POST', `/v1/pay/withdrawals/${withdrawalId}/cancel`, { key }),
        upload: () => pay(key, [[memberId, 300]]),
        'make available': () =>
          harness
            .inTx(tx =>
              makeAvailable(tx, { partnerId: mine.id, payRunId: locatedId(payRun), now: harness.clock.now() }),
            )
            .then(body => ({ status: 200, body })),
        revert: () => harness.call('POST', `/v1/pay/runs/${locatedId(payRun)}/revert`, { key }),
      }[step]()
      await whenWaiting(harness.db)
      await closing.commit()
      const { status, body } = await second
      const [next] = await cyclesOf(key)
      const [before, after] = [await deductionsOf(key, payCycle.id), await deductionsOf(key, next.id)]
      const available = (await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key })).body.available
        .amount
      switch (step) {
        case 'cancel':
          expect(status).toBeLessThan(300)
          // The closed cycle keeps its deduction; the refund is an adjustment in the next one.
          expect([before, after, available]).toEqual([
            [{ memberId, total: gbp(5_000) }],
            [{ memberId, total: gbp(-5_000) }],
            5_000,
          ])
          break
        case 'upload':
          expect([status, body.status, available]).toEqual([201, 'Available', 300])
          expect((await harness.call('GET', `/v1/pay/runs?payCycleId=${next.id}`, { key })).body.total).toBe(1)
          break
        case 'make available':
          expect([body.status, body.payCycleId, available]).toEqual(['Available', next.id, 12_000])
          break
        case 'revert':
          expect([status, available]).toEqual([409, 0])
          break
      }
      expect(await harness.disagreements()).toEqual([])
    },
  )

  test('all operations together: every penny is accounted for, in the right cycle', async () => {
    const { key, partner: mine } = await partner('Everything', {
      cycleSchedule: 'weekly',
      cycleAnchor: '2026-03-02',
      intentMinutes: 1_440,
    })
    const memberIds = await Promise.all(Array.from({ length: 12 }, () => harness.addMember({ key, available: 30_000 })))
    let closings = 0
    for (const week of [1, 2, 3]) {
      const withdrawalIds = await Promise.all(
        memberIds.slice(0, 4).map(memberId => harness.withdraw({ key, memberId, amount: 1_000 })),
      )
      const early = await pay(
        key,
        memberIds.slice(8).map(memberId => [memberId, 400]),
      )
      const intentIds = await Promise.all(
        memberIds.map(memberId => harness.createIntent({ key, memberId, amount: 2_000 })),
      )
      harness.clock.set(new Date(Date.parse('2026-03-09T06:00:00Z') + week * 7 * 86_400_000))
      const answers = await Promise.all([
        ...intentIds.map(intentId => harness.requestCompletion(intentId, { key })),
        ...withdrawalIds.map(id => harness.call('POST', `/v1/pay/withdrawals/${id}/cancel`, { key })),
        close().then(() => undefined),
        ...memberIds.map(memberId => pay(key, [[memberId, 20_000]])),
        harness.call('POST', `/v1/pay/runs/${locatedId(early)}/revert`, { key }),
        close().then(() => undefined),
      ])
      for (const answer of answers) if (answer !== undefined) expect([200, 201, 409, 422, 503]).toContain(answer.status)
      await close()
      closings++
      // Tops up members whose balance was released before their pay arrived.
      await pay(
        key,
        memberIds.map(memberId => [memberId, 10_000]),
      )
    }
    expect(await harness.disagreements()).toEqual([])
    expect(await cyclesOf(key)).toHaveLength(closings + 1)
    // In every cycle, a member's deduction is the amount withdrawn and not refunded in that cycle, minus refunds in that cycle of
    // withdrawals of an earlier cycle.
    const { rows } = await sql<{ memberId: string; payCycleId: string; earned: bigint; explained: bigint }>`
      with earned as (
        select member_id, pay_cycle_id, sum(case when debit = 'earned_pay' then amount else -amount end) as amount
          from ledger_transfers where partner_id = ${mine.id} and (debit = 'earned_pay' or credit = 'earned_pay')
         group by 1, 2
      ), explained as (
        select member_id, pay_cycle_id, sum(amount) as amount from (
          select member_id, pay_cycle_id, gross_amount as amount from withdrawals
           where partner_id = ${mine.id} and (status <> 'cancelled' or adjusted_in_cycle_id is not null)
           union all
          select member_id, adjusted_in_cycle_id, -gross_amount from withdrawals
           where partner_id = ${mine.id} and adjusted_in_cycle_id is not null
           union all
          select b.member_id, c.id, b.available - b.owed from ledger_balances b
            join pay_cycles c on c.partner_id = b.partner_id and c.status = 'Open'
           where b.partner_id = ${mine.id}) parts
         group by 1, 2
      )
      select coalesce(e.member_id, x.member_id) as member_id, coalesce(e.pay_cycle_id, x.pay_cycle_id) as pay_cycle_id,
             coalesce(e.amount, 0)::bigint as earned, coalesce(x.amount, 0)::bigint as explained
        from earned e full join explained x using (member_id, pay_cycle_id)`.execute(harness.db)
    expect(rows.length).toBeGreaterThan(40)
    const owes = await harness.db
      .selectFrom('ledgerBalances')
      .select('memberId')
      .where('partnerId', '=', mine.id)
      .where('owed', '>', 0n)
      .execute()
    expect(owes).toEqual([])
    expect(rows.filter(({ earned, explained }) => earned !== explained)).toEqual([])
  })

  test('another closing: each cycle closes once', async () => {
    const { key, partner: mine } = await partner('Twice')
    await harness.addMember({ key, available: 12_000 })
    harness.clock.set(april)
    const now = harness.clock.now()
    const turns = await Promise.all(
      Array.from({ length: 5 }, () =>
        harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: mine.id, now })),
      ),
    )
    expect(turns.filter(turn => turn !== undefined)).toHaveLength(1)
    expect(await eventsOf(mine.id)).toHaveLength(3)
  })
})

describe('reading deductions', () => {
  test('deductions of an open cycle are provisional and exclude available balances', async () => {
    const { key, payCycle } = await partner('Provisional')
    const memberId = await harness.addMember({ key, available: 12_000 })
    await harness.addMember({ key, available: 12_000 })
    expect(await deductionsOf(key, payCycle.id)).toEqual([])
    await harness.withdraw({ key, memberId })
    expect(await deductionsOf(key, payCycle.id)).toEqual([{ memberId, total: gbp(5_000) }])
  })

  test('deductions include the member’s fee but not the employer’s', async () => {
    const { key, payCycle } = await partner('Fees')
    const members = [
      await harness.addMember({ key, available: 9_000, tier: 'Bronze' }),
      await harness.addMember({ key, available: 9_000, tier: 'Gold' }),
    ]
    for (const memberId of members) await harness.withdraw({ key, memberId })
    const expected = members.toSorted().map(memberId => ({ memberId, total: gbp(5_000) }))
    expect(await deductionsOf(key, payCycle.id)).toEqual(expected)
  })

  test('a member whose currency has changed has one deduction per currency', async () => {
    const { key, payCycle } = await partner('Currencies')
    const memberId = await harness.addMember({ key, available: 5_000 })
    await harness.withdraw({ key, memberId })
    await payOut()
    const changed = await harness.call('PATCH', `/v1/members/${memberId}`, {
      key,
      body: { tier: 'Silver EU', accountDetails: euAccount },
    })
    expect(changed.status).toBe(200)
    const money = { amount: 7_000, currency: 'EUR' }
    await harness.call('POST', '/v1/pay/run', { key, body: { payDetails: [{ memberId, money }] } })
    const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', {
      key,
      body: { memberId, amount: { ...money, amount: 1_500 } },
    })
    await harness.requestCompletion(intent.body.withdrawalIntentId, { key })
    expect(await deductionsOf(key, payCycle.id)).toEqual([
      { memberId, total: { amount: 1_500, currency: 'EUR' } },
      { memberId, total: gbp(5_000) },
    ])

    // A page by cursor never splits a member. A page by `skip` has exactly as many entries as requested.
    const last = await harness.addMember({ key, available: 5_000 })
    await harness.withdraw({ key, memberId: last })
    const page = async (query: string) => {
      const { body } = await harness.call('GET', `/v1/pay/cycles/${payCycle.id}/deductions?${query}`, { key })
      return body.deductions.map((each: { memberId: string; total: { currency: string } }) => [
        each.memberId,
        each.total.currency,
      ])
    }
    expect(await page('take=1')).toEqual([
      [memberId, 'EUR'],
      [memberId, 'GBP'],
    ])
    expect(await page(`take=1&after=${memberId}`)).toEqual([[last, 'GBP']])
    expect(await page('skip=0&take=1')).toEqual([[memberId, 'EUR']])
    expect(await page('skip=1&take=1')).toEqual([[memberId, 'GBP']])
  })

  test('deductions come in pages, ordered by member', async () => {
    const { key, payCycle } = await partner('Pages')
    const members: string[] = []
    for (let count = 0; count < 5; count++) {
      members.push(await harness.addMember({ key, available: 5_000 }))
      await harness.withdraw({ key, memberId: members.at(-1) ?? '' })
    }
    const page = async (query: string) =>
      (await harness.call('GET', `/v1/pay/cycles/${payCycle.id}/deductions?${query}`, { key })).body
    const [first, second] = [await page('take=3'), await page('take=3&skip=3')]
    expect(first).toMatchObject({ total: 5, skip: 0, take: 3 })
    expect(second).toMatchObject({ total: 5, skip: 3, take: 3 })
    const ids = [...first.deductions, ...second.deductions].map(({ memberId }: { memberId: string }) => memberId)
    expect(ids).toEqual(members.toSorted())
  })

  test('the file is complete and safe to open in a spreadsheet', async () => {
    const { key, payCycle } = await partner('File')
    const memberIds: string[] = []
    for (const [index, workerId] of ['=HYPERLINK("http://x")', '+44', '-1+1', '@sum', 'a,"b"', '007'].entries()) {
      const invited = await harness.call('POST', '/v1/members', {
        key,
        body: {
          email: `w${index}@example.com`,
          firstName: 'A',
          lastName: 'B',
          tier: 'Silver',
          workerId,
          accountDetails: goodAccount,
        },
      })
      expect(invited.status).toBe(201)
      memberIds.push(invited.body.memberId)
      await pay(key, [[invited.body.memberId, 5_000]])
      await harness.withdraw({ key, memberId: invited.body.memberId, amount: 1_050 })
    }
    const answer = await harness.call('GET', `/v1/pay/cycles/${payCycle.id}/deductions?take=2`, {
      key,
      headers: { accept: 'text/csv' },
    })
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8')
    expect(answer.headers['content-disposition']).toBe('attachment; filename="deductions-2026-03-01-2026-03-31.csv"')
    expect(answer.headers.vary).toBe('accept')
    const [header, ...lines] = answer.text.trimEnd().split('\r\n')
    expect(header).toBe('member_id,worker_id,email,amount_decimal,currency')
    const cells = [`"'=HYPERLINK(""http://x"")"`, "'+44", "'-1+1", "'@sum", '"a,""b"""', '007']
    expect(lines.toSorted()).toEqual(
      memberIds.map((id, index) => `${id},${cells[index]},w${index}@example.com,10.50,GBP`).toSorted(),
    )
  })

  test('a negative deduction in the file is a number, not a formula', async () => {
    const { key } = await partner('Negative')
    const memberId = await harness.addMember({ key, available: 5_000 })
    const withdrawalId = await harness.withdraw({ key, memberId, amount: 1_250 })
    harness.clock.set(april)
    await close()
    await harness.call('POST', `/v1/pay/withdrawals/${withdrawalId}/cancel`, { key })
    const [next] = await cyclesOf(key)
    const { text } = await harness.call('GET', `/v1/pay/cycles/${next.id}/deductions`, {
      key,
      headers: { accept: 'text/csv' },
    })
    expect(text.split('\r\n')[1]).toMatch(/,-12\.50,GBP$/)
  })

  test.each([
    ['application/json', false],
    ['*/*', false],
    ['text/csv, application/json', true],
    ['text/csv;q=0.5, application/json', false],
    ['text/csv;q=0', false],
    ['TEXT/CSV; charset=utf-8', true],
  ])('accept %s: a file is %s', async (accept, isFile) => {
    const path = `/v1/pay/cycles/${harness.payCycle.id}/deductions`
    const { headers } = await harness.call('GET', path, { headers: { accept } })
    expect(headers['content-type']).toMatch(isFile ? /^text\/csv/ : /^application\/json/)
  })

  test('another partner’s cycle is the same 404 as an unknown one; an invalid id or query is refused', async () => {
    const path = (id: string) => `/v1/pay/cycles/${id}/deductions`
    const foreign = await harness.call('GET', path(harness.other.payCycle.id))
    const missing = await harness.call('GET', path(unknownCycle))
    expect([foreign.status, foreign.text]).toEqual([404, missing.text])
    expect((await harness.call('GET', path('w_1'))).body.issues[0]).toMatchObject({
      code: 'PathValidation',
      path: 'payCycleId',
    })
    expect((await harness.call('GET', `${path(unknownCycle)}?memberId=x`)).body.issues[0]).toMatchObject({
      code: 'QueryValidation',
    })
    expect((await harness.call('GET', path(unknownCycle), { key: null })).status).toBe(401)
  })
})
