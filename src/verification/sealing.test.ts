import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { closeIfOver } from '../closing/closing.ts'
import { type Db, sql, type Tx } from '../database/database.ts'
import { firstId } from '../kernel/ids.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { findUnsealed, seal } from './sealing.ts'
import { auditTasks } from './tasks.ts'
import { list } from './verifications.ts'
import { verify } from './verify.ts'

let harness: Harness
let members: string[]
let month = 4
beforeAll(async () => {
  harness = await startHarness()
  members = [await harness.addMember(), await harness.addMember(), await harness.addMember()]
})
afterAll(() => harness.stop())

const inTx = <T>(work: (tx: Tx) => Promise<T>) => harness.db.transaction().execute(work)
const memberAt = (index: number) => members[index] ?? ''

async function pay(): Promise<void> {
  const payDetails = members.map(memberId => ({ memberId, money: { amount: 50_000, currency: 'GBP' } }))
  locatedId(await harness.call('POST', '/v1/pay/run', { body: { payDetails } }))
}

async function submit(): Promise<void> {
  harness.clock.advance({ minutes: 2 })
  await inTx(tx => withdrawals.submitDue(tx, claimingAt(harness.clock.now(), harness.partner.id)))
}

async function report(withdrawalId: string, outcome: 'paid' | 'returned'): Promise<void> {
  const { partner, clock } = harness
  await inTx(tx =>
    withdrawals.applyBankReport(tx, { partnerId: partner.id, withdrawalId, outcome, reason: 'AC04', now: clock.now() }),
  )
}

async function close(): Promise<void> {
  const { clock, partner } = harness
  clock.set(new Date(`2026-${String(month++).padStart(2, '0')}-02T09:00:00Z`))
  await inTx(tx => closeIfOver(tx, { partnerId: partner.id, now: clock.now() }))
}

/** A month in which each member withdraws and one withdrawal is still unfinished when its cycle closes. */
async function live(): Promise<{ paid: string; unfinished: string }> {
  await pay()
  const paid = await harness.withdraw({ memberId: memberAt(0), amount: 10_000 })
  await harness.withdraw({ memberId: memberAt(1), amount: 9_000 })
  const unfinished = await harness.withdraw({ memberId: memberAt(2), amount: 8_000 })
  await submit()
  await report(paid, 'paid')
  await close()
  return { paid, unfinished }
}

const runTask = () =>
  auditTasks['seal-ledger']({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now })

async function countSealed(): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from ledger_seals where sealed_at is not null`.execute(harness.db)
  return rows[0]?.count ?? 0
}

/** The names of the rules that are broken, by a verification of what is newer, and by one of everything. */
async function brokenIn(db: Db | Tx) {
  const names = (checks: Awaited<ReturnType<typeof verify>>) =>
    checks.flatMap(({ name, disagreement }) => (disagreement === null ? [] : [name]))
  return { byDefault: names(await verify(db)), byAll: names(await verify(db, { isWhole: true })) }
}

const agreed = { byDefault: [], byAll: [] }

/** What verifications find after a superuser has changed rows; the change is rolled back. */
async function brokenAfter(change: ReturnType<typeof sql>): ReturnType<typeof brokenIn> {
  const undone = new Error('undone')
  let found: Awaited<ReturnType<typeof brokenIn>> = agreed
  await harness.ownerDb
    .transaction()
    .execute(async tx => {
      for (const table of ['ledger_transfers', 'ledger_member_seals', 'ledger_seal_sums', 'ledger_seals']) {
        await sql`alter table ${sql.table(table)} disable trigger user`.execute(tx)
      }
      const { numAffectedRows } = await change.execute(tx)
      expect(numAffectedRows).toBeGreaterThan(0n)
      found = await brokenIn(tx)
      throw undone
    })
    .catch(error => {
      if (error !== undone) throw error
    })
  return found
}

test('after a cycle has closed, its books are sealed, and what is paid later is not lost', async () => {
  const { unfinished } = await live()
  await runTask()
  expect(await countSealed()).toBe(1)
  expect(await brokenIn(harness.db)).toEqual(agreed)
  await report(unfinished, 'paid')
  await pay()
  await harness.withdraw({ memberId: memberAt(0), amount: 1_000 })
  await report(unfinished, 'returned')
  expect(await brokenIn(harness.db)).toEqual(agreed)
})

test('a transfer of a partner that does not exist is found', async () => {
  const found = await brokenAfter(sql`
    insert into ledger_transfers (partner_id, id, movement_id, reason, debit, credit, amount, currency, created_at)
    select 'par_none', id, movement_id, reason, debit, credit, amount, currency, created_at
      from ledger_transfers where reason = 'withdrawal.paid' limit 1`)
  expect(found.byDefault).toContain('withdrawals')
  expect(found.byAll).toContain('withdrawals')
})

test('a changed deduction is found by default if its cycle is not sealed, and by --all if it is', async () => {
  const change = (isSealed: boolean) =>
    sql`update ledger_deductions d set amount = amount + 1
         where exists (select from ledger_seals s where s.pay_cycle_id = d.pay_cycle_id) = ${isSealed}`
  expect(await brokenAfter(change(false))).toEqual({ byDefault: ['deductions'], byAll: ['deductions'] })
  expect(await brokenAfter(change(true))).toEqual({ byDefault: [], byAll: ['deductions'] })
})

test('a tampered transfer is found by default after the seal, and by --all before it; a tampered seal by both', async () => {
  const isNewer = sql`t.member_sequence > (select s.sequence from ledger_member_seals s where s.member_id = t.member_id)`
  const held = (where: ReturnType<typeof sql>) =>
    sql`update ledger_transfers t set amount = amount + 1 where t.debit = 'member_available' and ${where}`
  const newer = await brokenAfter(held(isNewer))
  expect(newer.byDefault).toContain('member balances')
  expect(newer.byAll).toContain('member balances')
  const older = await brokenAfter(held(sql`not ${isNewer} and t.member_id = ${memberAt(1)}`))
  expect(older.byDefault).toEqual([])
  expect(older.byAll).toEqual(expect.arrayContaining(['seals', 'withdrawals']))
  const paid = await brokenAfter(
    sql`update ledger_transfers set amount = amount + 1 where reason = 'withdrawal.paid' and id < (select min(id) from ledger_transfers where reason = 'pay_cycle.closed')`,
  )
  expect(paid).toEqual({ byDefault: [], byAll: expect.arrayContaining(['seals', 'withdrawals']) })
  for (const change of [
    sql`update ledger_member_seals set member_available = member_available + 1, earned_pay = earned_pay - 1`,
    sql`update ledger_member_seals set fees = fees + 1, payouts_pending = payouts_pending - 1`,
    sql`update ledger_member_seals set sequence = sequence - 1`,
    sql`delete from ledger_member_seals where member_id = ${memberAt(1)}`,
    sql`update ledger_seal_sums set credits = credits + 1 where part = 'members' and account = 'fees'`,
    sql`update ledger_seal_sums set debits = debits + 1 where part = 'paid' and account = 'payouts_pending'`,
    sql`update ledger_seal_sums set credits = credits + 1 where part = 'paid' and account = 'float'`,
  ]) {
    const { byDefault, byAll } = await brokenAfter(change)
    expect([byDefault.length > 0, byAll.length > 0]).toEqual([true, true])
  }
})

test('a transfer whose id is older than the seals, because a clock was wrong, is newer all the same', async () => {
  const { rows } = await sql<{ id: string; memberId: string; at: Date }>`
    select t.id, t.member_id, c.created_at as at from ledger_transfers t join pay_cycles c on c.id = ${harness.payCycle.id}
     where t.reason = 'withdrawal.held' and t.credit = 'payouts_pending' order by t.id desc limit 1`.execute(harness.db)
  const [last] = rows
  const olderId = `${firstId('transfer', last?.at ?? new Date(0)).slice(0, -8)}old00000`
  const found = await brokenAfter(sql`
    update ledger_transfers set id = ${olderId}, created_at = ${last?.at} where id = ${last?.id}`)
  expect(found).toEqual(agreed)
})

test('sealing that is killed in the middle continues, while members withdraw', async () => {
  const { db, clock } = harness
  await live()
  const sealed = await countSealed()
  // A step is one transaction, so a kill leaves a number of whole steps.
  for (let steps = 0, isMore = true; isMore; steps++) {
    expect(steps).toBeLessThan(20)
    const [cycle] = await findUnsealed(db, { now: clock.now() })
    if (cycle === undefined) break
    isMore = await seal(db, cycle, clock.now)
    if (steps === 0) await pay()
    await harness.withdraw({ memberId: memberAt(steps % 3), amount: 1_000 })
    expect(await brokenIn(db)).toEqual(agreed)
  }
  expect(await countSealed()).toBe(sealed + 1)
})

test('verifications agree while members withdraw, in whatever parts they are read', async () => {
  const { db } = harness
  await pay()
  let isDone = false
  const withdrawing = (async () => {
    for (let count = 0; count < 12; count++) await harness.withdraw({ memberId: memberAt(count % 3), amount: 1_000 })
    isDone = true
  })()
  while (!isDone) expect(await brokenIn(db)).toEqual(agreed)
  await withdrawing
})

test('a withdrawal that is being completed while its member is sealed is newer than the seal', async () => {
  const { ownerDb, db, clock } = harness
  await live()
  await pay()
  const before = await countSealed()
  await ownerDb.transaction().execute(async tx => {
    // Holds the member's balance, as a completion does.
    await sql`update ledger_balances set transfer_count = transfer_count where member_id = ${memberAt(0)}`.execute(tx)
    await runTask()
  })
  expect(await countSealed()).toBe(before + 1)
  await harness.withdraw({ memberId: memberAt(0), amount: 1_000 })
  expect(await brokenIn(db)).toEqual(agreed)
  expect(await findUnsealed(db, { now: clock.now() })).toEqual([])
})

test('books that disagree are not sealed, and the disagreement is recorded', async () => {
  const { db, ownerDb, clock } = harness
  await live()
  const before = await countSealed()
  const tamper = (by: number) =>
    ownerDb.transaction().execute(async tx => {
      await sql`update ledger_balances set owed = owed + ${by} where member_id = ${memberAt(1)}`.execute(tx)
    })
  await tamper(1)
  await runTask()
  expect(await countSealed()).toBe(before)
  const [recorded] = await list(db)
  expect(recorded).toMatchObject({
    requestedBy: 'sealing',
    checks: [expect.objectContaining({ name: 'member balances' })],
  })
  await runTask()
  expect((await list(db)).length).toBe(1)
  await tamper(-1)
  clock.advance({ days: 2 })
  await runTask()
  expect(await countSealed()).toBe(before + 1)
})

test('a seal never goes back, and a finished one never changes', async () => {
  const { ownerDb } = harness
  for (const change of [
    sql`update ledger_member_seals set sequence = sequence - 1`,
    sql`update ledger_member_seals set carried = carried + 1, earned_pay = earned_pay - 1`,
    sql`delete from ledger_member_seals`,
    sql`truncate ledger_member_seals`,
    sql`update ledger_seal_sums set debits = debits - 1`,
    sql`delete from ledger_seal_sums`,
    sql`update ledger_seals set sealed_at = null`,
    sql`update ledger_seals set unfinished_withdrawals = '{}'`,
    sql`delete from ledger_seals`,
  ]) {
    await expect(change.execute(ownerDb)).rejects.toThrow(/append-only|keeps the terms|only advances/)
  }
})
