import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closingTasks } from '../../src/closing/tasks.ts'
import { sql } from '../../src/database/database.ts'
import { payRunTasks } from '../../src/pay-runs/tasks.ts'
import { simulatedBank } from '../../src/payouts/channels/simulated/simulated-bank.ts'
import { payoutTasks } from '../../src/payouts/tasks.ts'
import { verify } from '../../src/verification/verify.ts'
import type { Tasks } from '../../src/worker/task.ts'
import { locatedId } from '../harness/api-response.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { scopeOfTests } from '../harness/lanes.ts'
import { goodAccount } from '../harness/samples.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })

test('two pay cycles, from the first pay run to the second settlement, account for every penny', async () => {
  const { clock, db, addPartner } = harness
  clock.set(new Date('2026-03-05T09:00:00Z'))
  const mine = await addPartner('Acme', { graceMinutes: 10, holdSeconds: 30 })
  const { key } = mine
  const call = (method: string, path: string, options = {}) => harness.call(method, path, { key, ...options })
  const bank = simulatedBank({ db, now: clock.now })
  const tasks: Partial<Tasks> = { ...payRunTasks, ...closingTasks, ...payoutTasks([bank]) }
  const run = { db, now: clock.now, log: pino({ level: 'silent' }), scope: scopeOfTests(mine.partner.id) }
  const work = async () => {
    for (const task of Object.values(tasks)) await task(run)
  }

  const invite = async (name: string, tier: string, accountDetails: object = goodAccount) => {
    const body = {
      email: `${name}@example.com`,
      firstName: name,
      lastName: 'Doe',
      tier,
      workerId: name,
      accountDetails,
    }
    return (await call('POST', '/v1/members', { body })).body.memberId as string
  }
  // Bronze members pay a fee of 0.50 plus 1 %. For Gold, the employer pays the fee.
  const ann = await invite('ann', 'Bronze')
  const bob = await invite('bob', 'Gold')
  // The simulated bank pays this account, then returns the money later.
  const cat = await invite('cat', 'Gold', { accountHolder: 'Cat Doe', sortCode: '000002', accountNumber: '12345678' })
  const names: Record<string, string> = { [ann]: 'ann', [bob]: 'bob', [cat]: 'cat' }

  const pay = async (lines: [string, number][]) => {
    const body = { payDetails: lines.map(([memberId, amount]) => ({ memberId, money: gbp(amount) })) }
    const payRun = await call('POST', '/v1/pay/run', { body })
    expect([payRun.status, payRun.body.status]).toEqual([201, 'Scheduled'])
    return locatedId(payRun)
  }
  const withdraw = (memberId: string, amount: number) => harness.withdraw({ key, memberId, amount })
  const available = (memberId: string) => harness.availableOf(memberId, key)
  const statusOf = async (id: string) => (await harness.getWithdrawal(id, key)).status
  const cycles = async () => (await call('GET', '/v1/pay/cycles')).body.payCycles
  const deductions = async (payCycleId: string) => {
    const { body } = await call('GET', `/v1/pay/cycles/${payCycleId}/deductions`)
    const all = body.deductions.map((each: { memberId: string; total: { amount: number } }) => [
      names[each.memberId],
      each.total.amount,
    ])
    return Object.fromEntries(all)
  }

  // March: members are paid, a pay run is corrected, and another is reverted before it is available.
  await pay([
    [ann, 60_000],
    [bob, 40_000],
    [cat, 30_000],
  ])
  const mistaken = await pay([[bob, 99_999]])
  expect((await call('POST', `/v1/pay/runs/${mistaken}/revert`)).body.status).toBe('Reverted')
  clock.advance({ minutes: 10 })
  await work()
  await pay([[bob, -5_000]])
  clock.advance({ minutes: 10 })
  await work()
  expect([await available(ann), await available(bob), await available(cat)]).toEqual([60_000, 35_000, 30_000])

  const first = await withdraw(ann, 20_000)
  const second = await withdraw(bob, 15_000)
  const cancelled = await withdraw(bob, 10_000)
  expect((await call('POST', `/v1/pay/withdrawals/${cancelled}/cancel`)).status).toBeLessThan(300)
  clock.set(new Date('2026-03-31T22:50:00Z'))
  const late = await withdraw(cat, 8_000)
  clock.advance({ seconds: 40 })
  await work()
  expect([await statusOf(first), await statusOf(second), await statusOf(late)]).toEqual(['paid', 'paid', 'paid'])
  const [march] = await cycles()
  expect(await deductions(march.id)).toEqual({ ann: 20_000, bob: 15_000, cat: 8_000 })

  // Midnight in London: the worker closes March and opens April. The return arrives afterwards.
  clock.set(new Date('2026-03-31T23:00:00Z'))
  await closingTasks['close-pay-cycles'](run)
  const [april, closed] = await cycles()
  expect([closed.id, closed.status, april.startDate]).toEqual([march.id, 'Closed', '2026-04-01'])
  clock.advance({ minutes: 10 })
  await work()
  expect(await statusOf(late)).toBe('returned')
  expect(await deductions(march.id)).toEqual({ ann: 20_000, bob: 15_000, cat: 8_000 })
  expect(await deductions(april.id)).toEqual({ cat: -8_000 })
  expect(await available(cat)).toBe(8_000)

  // Payroll took too little from Ann and too much from Bob.
  const settlement = await call('POST', `/v1/pay/cycles/${march.id}/settlement`, {
    body: {
      deductions: [
        { memberId: ann, taken: gbp(18_500) },
        { memberId: bob, taken: gbp(15_300) },
        { memberId: cat, taken: gbp(8_000) },
      ],
    },
  })
  expect(settlement.body).toMatchObject({
    ...{ matched: 1, short: 1, over: 1, unknown: 0 },
    totals: [{ deducted: gbp(43_000), taken: gbp(41_800), carried: gbp(1_200), writtenOff: gbp(0) }],
  })
  expect(await deductions(april.id)).toEqual({ ann: 1_500, bob: -300, cat: -8_000 })

  // April: Bob's pay run is reverted after he has withdrawn from it, so he owes the money until his next pay.
  clock.set(new Date('2026-04-10T09:00:00Z'))
  const reverted = await pay([[bob, 12_000]])
  await pay([[ann, 50_000]])
  clock.advance({ minutes: 10 })
  await work()
  await withdraw(bob, 9_000)
  expect((await call('POST', `/v1/pay/runs/${reverted}/revert`)).body.status).toBe('Reverted')
  expect(await available(bob)).toBe(0)
  await pay([[bob, 40_000]])
  clock.advance({ minutes: 10 })
  await work()
  expect(await available(bob)).toBe(31_000)
  await withdraw(ann, 5_000)
  clock.advance({ minutes: 1 })
  await work()

  // The worker does not run again until 3 May.
  clock.set(new Date('2026-05-03T09:00:00Z'))
  await work()
  const [may, aprilClosed] = await cycles()
  expect([aprilClosed.id, aprilClosed.status, may.startDate, may.status]).toEqual([
    april.id,
    'Closed',
    '2026-05-01',
    'Open',
  ])
  expect(await deductions(april.id)).toEqual({ ann: 6_500, bob: 8_700, cat: -8_000 })
  const file = await call('GET', `/v1/pay/cycles/${april.id}/deductions`, { headers: { accept: 'text/csv' } })
  const settled = await call('POST', `/v1/pay/cycles/${april.id}/settlement`, {
    raw: file.text,
    headers: { 'content-type': 'text/csv' },
  })
  expect(settled.body).toMatchObject({ matched: 3, short: 0, over: 0, unknown: 0 })
  expect(await deductions(may.id)).toEqual({})

  // Every penny: what payroll took equals what members received plus their fees.
  const { rows } = await sql<{ account: string; balance: bigint }>`
    select account, sum(amount)::bigint as balance
      from (select debit as account, amount from ledger_transfers where partner_id = ${mine.partner.id}
             union all
            select credit, -amount from ledger_transfers where partner_id = ${mine.partner.id}) sides
     group by account having sum(amount) <> 0 order by account`.execute(db)
  // Payroll took 41,800 and 7,200. Ann received 19,750 and 4,900 and paid fees of 250 and 100. Bob received 15,000 and 9,000,
  // with an employer fee of 50 each, not yet billed to the partner. Bob's cancelled withdrawal and Cat's returned one leave nothing behind.
  expect(rows).toEqual([
    { account: 'fees', balance: -100n },
    { account: 'float', balance: 350n },
    { account: 'partner_fees', balance: 100n },
    { account: 'revenue', balance: -350n },
  ])
  expect((await verify(db)).filter(({ disagreement }) => disagreement !== null)).toEqual([])
})
