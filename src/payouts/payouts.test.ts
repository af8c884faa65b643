import assert from 'node:assert/strict'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { breaking } from '../../test/harness/refusal.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { extent } from '../../test/runner/extent.ts'
import { type Reader, sql } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'
import { addDays } from '../kernel/time.ts'
import { verify } from '../verification/verify.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import type { TaskContext } from '../worker/task.ts'
import * as exceptions from './books/exceptions.ts'
import type { Channel } from './channels/channel.ts'
import { simulatedBank } from './channels/simulated/simulated-bank.ts'
import type { Report } from './payments/payment.ts'
import { findByReference } from './payouts.ts'

type Line = { level: number; msg: string; withdrawalId?: string; reference?: string }

let harness: Harness
let context: TaskContext
let bank: Channel
let lines: Line[] = []
beforeAll(async () => {
  harness = await startHarness()
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  const { db, clock } = harness
  context = { db, log, now: clock.now }
  bank = simulatedBank({ db, now: clock.now, callMsMax: 1_000 })
})
afterEach(() => {
  lines = []
})
afterAll(() => harness.stop())

type Step = 'submit-withdrawals' | 'ask-about-withdrawals' | 'read-rail-reports'
const run = (step: Step, rail: Channel | null = bank) =>
  harness.runTask(step, { channels: rail === null ? [] : [rail], log: context.log })
const errors = () => lines.filter(({ level }) => level >= 50).map(({ msg }) => msg)

const afterHold = () => harness.clock.advance({ seconds: 30 })
const untilAsked = () => harness.clock.advance({ minutes: 3 })
const statusOf = async (id: string) => (await harness.getWithdrawal(id)).status
const cancel = (id: string, options = {}) => harness.call('POST', `/v1/pay/withdrawals/${id}/cancel`, options)
const path = async (id: string) =>
  (await harness.getWithdrawal(id)).timeline.map((entry: { status: string }) => entry.status).join(' ')
const isListed = async (memberId: string) =>
  (await harness.call('GET', `/v1/pay/withdrawals?memberId=${memberId}`)).body.withdrawals.length === 1

async function booked(id: string, reason: string): Promise<string[]> {
  const rows = await harness.db
    .selectFrom('ledgerTransfers')
    .select(['debit', 'credit', 'amount'])
    .where('movementId', '=', id)
    .where('reason', '=', reason)
    .execute()
  return rows.map(({ debit, credit, amount }) => `${debit} > ${credit} ${amount}`).sort()
}

/** Our reference at the bank, as the partner sees it; null before the withdrawal is submitted. */
const referenceOf = async (id: string, key = harness.key): Promise<string | null> =>
  (await harness.getWithdrawal(id, key)).paymentReference

async function atTheBank(id: string): Promise<{ submissions: number; executed: number }> {
  const reference = (await referenceOf(id)) ?? ''
  const payment = await harness.db
    .selectFrom('simulatedBankPayments')
    .select('submissions')
    .where('reference', '=', reference)
    .executeTakeFirst()
  const reports = await harness.db
    .selectFrom('simulatedBankReports')
    .select('outcome')
    .where('reference', '=', reference)
    .execute()
  return {
    submissions: payment?.submissions ?? 0,
    executed: reports.filter(({ outcome }) => outcome === 'paid').length,
  }
}

test('a batch of withdrawals is one log line, and each withdrawal only a debug line', async () => {
  for (const amount of [5_000, 6_000]) await harness.addWithdrawal({ net: amount })
  await harness.addWithdrawal({ net: 6_601 })
  afterHold()
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => logged.push(JSON.parse(line)) })
  await harness.runTask('submit-withdrawals', { channels: [bank], log })
  const info = logged.filter(({ level }) => level === 30)
  expect(info).toEqual([
    expect.objectContaining({ msg: 'withdrawals submitted', submitted: 3, reported: 3, paid: 2, failed: 1 }),
  ])
  expect(logged.filter(({ level }) => level === 20)).toHaveLength(3)
})

describe('the payment reference', () => {
  test('is given on submission, fits every payment scheme, and is what the bank, the partner and the event feed see', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    expect(await referenceOf(id)).toBeNull()
    afterHold()
    await run('submit-withdrawals')
    const reference = await referenceOf(id)
    expect(reference).toMatch(/^MM[A-Z2-7]{14}$/)
    expect(await atTheBank(id)).toEqual({ submissions: 1, executed: 1 })
    const { events } = (await harness.call('GET', `/v1/events?take=1000`)).body
    const ofWithdrawal = events.filter((event: { data: { withdrawalId?: string } }) => event.data.withdrawalId === id)
    expect(
      ofWithdrawal.map(({ type, data }: { type: string; data: { paymentReference?: string } }) => [
        type,
        data.paymentReference,
      ]),
    ).toEqual([
      ['withdrawal.held', undefined],
      ['withdrawal.submitted', reference],
      ['withdrawal.paid', undefined],
    ])
  })

  test('stays the same, and so does the amount, whatever the program tries', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await run('submit-withdrawals')
    const change = harness.ownerDb.updateTable('payouts').where('withdrawalId', '=', id)
    await expect(change.set({ netAmount: 1n }).execute()).rejects.toThrow('keeps its reference')
    await expect(change.set({ reference: 'MMAAAAAAAAAAAAAA' }).execute()).rejects.toThrow('keeps its reference')
  })

  test('is unique over all partners, and finds the payment without naming its partner', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await run('submit-withdrawals')
    const reference = (await referenceOf(id)) ?? ''
    const partnerId = harness.partner.id
    expect(await findByReference(harness.db, reference)).toEqual({ partnerId, withdrawalId: id })
    expect(await findByReference(harness.db, 'MMAAAAAAAAAAAAAA')).toBeUndefined()
    const other = { reference, partnerId: 'par_other' }
    await expect(harness.db.insertInto('payoutReferences').values(other).execute()).rejects.toMatchObject(
      breaking('one_payment_per_reference'),
    )
  })

  test('that finds another partner than its payment’s is noticed by ledger verify', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await run('submit-withdrawals')
    const reference = (await referenceOf(id)) ?? ''
    const disagreement = async (partnerId: string) => {
      await harness.ownerDb
        .updateTable('payoutReferences')
        .set({ partnerId })
        .where('reference', '=', reference)
        .execute()
      const checks = await verify(harness.db)
      return checks.find(({ name }) => name === 'payout batches')?.disagreement
    }
    expect(await disagreement('par_other')).toMatchObject({ subject: reference, found: 'par_other' })
    expect(await disagreement(harness.partner.id)).toBeNull()
  })
})

test('a rail claims only withdrawals in its currencies, and is polled only about its own', async () => {
  const euro = await harness.addWithdrawal({ net: 5_000, currency: 'EUR' })
  const pounds = await harness.addWithdrawal({ net: 6_603 })
  afterHold()
  const asked: string[] = []
  const euroBank = bankThat({
    name: 'euro-bank',
    currencies: ['EUR'],
    submit: async payments => payments.map(({ reference }) => ({ reference, outcome: 'pending', reason: null })),
    ask: async references => {
      asked.push(...references)
      return references.map(reference => ({ reference, outcome: 'pending', reason: null }))
    },
  })
  await run('submit-withdrawals', euroBank)
  expect([await statusOf(euro.id), await statusOf(pounds.id)]).toEqual(['submitted', 'held'])
  await run('submit-withdrawals')
  expect(await statusOf(pounds.id)).toBe('submitted')
  untilAsked()
  await run('ask-about-withdrawals', euroBank)
  expect(asked).toEqual([await referenceOf(euro.id)])
  await run('ask-about-withdrawals')
  expect([await statusOf(euro.id), await statusOf(pounds.id)]).toEqual(['submitted', 'paid'])
})

describe('a withdrawal', () => {
  test('is held for the partner’s hold time, submitted to the bank, and paid from the float', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    harness.clock.advance({ seconds: 29 })
    await run('submit-withdrawals')
    expect(await statusOf(id)).toBe('held')
    harness.clock.advance({ seconds: 1 })
    await run('submit-withdrawals')
    const now = harness.clock.now()
    const heldAt = new Date(now.getTime() - 30_000).toISOString()
    expect(await harness.getWithdrawal(id)).toMatchObject({
      status: 'paid',
      netAmount: { amount: 5_000, currency: 'GBP' },
      bankAccount: { lastFour: '4958' },
      balanceAfter: { amount: 14_950, currency: 'GBP' },
      timeline: [
        { status: 'held', at: heldAt, reason: null },
        { status: 'submitted', at: now.toISOString(), reason: null },
        { status: 'paid', at: now.toISOString(), reason: null },
      ],
    })
    expect(await booked(id, 'withdrawal.paid')).toEqual(['payouts_pending > float 5000'])
    expect(await harness.availableOf(memberId)).toBe(14_950)
    expect(await isListed(memberId)).toBe(true)
    expect(lines).toEqual([])
  })

  test('is submitted at once if the partner has no hold', async () => {
    const { key } = await harness.addPartner('No hold', { holdSeconds: 0 })
    const { id } = await harness.addWithdrawal({ net: 5_000, key })
    await run('submit-withdrawals')
    expect((await harness.getWithdrawal(id, key)).status).toBe('paid')
  })

  test('wakes the worker when its hold is over', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    const { rows } = await harness.pool.query(
      `select run_at from graphile_worker.jobs where task_identifier = 'submit-withdrawals' order by id desc limit 1`,
    )
    const { dueAt } = await harness.db
      .selectFrom('withdrawals')
      .select('dueAt')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    expect(rows[0]?.run_at).toEqual(dueAt)
  })

  test('that fails is refunded to the member at once, with its fee and the reason', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 6_601 })
    afterHold()
    await run('submit-withdrawals')
    expect(await harness.availableOf(memberId)).toBe(20_000)
    expect(await booked(id, 'withdrawal.failed')).toEqual([
      'fees > member_available 50',
      'payouts_pending > member_available 6601',
    ])
    const { status, timeline, balanceAfter } = await harness.getWithdrawal(id)
    expect(status).toBe('failed')
    expect(timeline.at(-1)).toMatchObject({ status: 'failed', reason: 'The account is closed' })
    // It stays what it was when this was booked.
    expect(balanceAfter.amount).toBe(20_000 - 6_651)
    expect(await isListed(memberId)).toBe(false)
  })

  test('that fails refunds the fee to the employer if the employer paid it', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 6_601, tier: 'Gold' })
    afterHold()
    await run('submit-withdrawals')
    expect(await harness.availableOf(memberId)).toBe(20_000)
    expect(await booked(id, 'withdrawal.failed')).toEqual([
      'fees > partner_fees 50',
      'payouts_pending > member_available 6601',
    ])
  })

  test('that is returned after it was paid is refunded to the float and to the member', async () => {
    const { id, memberId } = await harness.addWithdrawal({
      net: 5_000,
      account: { accountHolder: 'Mia Schulz', iban: 'DE79000000000000000002' },
      currency: 'EUR',
    })
    afterHold()
    await run('submit-withdrawals')
    expect(await statusOf(id)).toBe('paid')
    await run('read-rail-reports')
    expect(await statusOf(id)).toBe('paid')
    untilAsked()
    await run('read-rail-reports')
    expect(await path(id)).toBe('held submitted paid returned')
    expect((await harness.getWithdrawal(id)).timeline.at(-1).reason).toBe('The account holder does not match')
    expect(await booked(id, 'withdrawal.returned')).toEqual([
      'fees > member_available 50',
      'float > member_available 5000',
    ])
    expect(await harness.availableOf(memberId)).toBe(20_000)
    expect(await isListed(memberId)).toBe(false)
  })

  test('whose account is lost with its key gets its reference and is asked about, but not submitted, and delays no other', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    const other = await harness.addWithdrawal({ net: 5_000 })
    await sql`update member_keys set payment_key = null where member_id = ${memberId}`.execute(harness.db)
    afterHold()
    await run('submit-withdrawals')
    expect([await statusOf(id), await statusOf(other.id)]).toEqual(['submitted', 'paid'])
    untilAsked()
    let asked: readonly string[] = []
    const asking = bankThat({
      ask(references, signal) {
        asked = references
        return bank.ask(references, signal)
      },
    })
    await run('ask-about-withdrawals', asking)
    expect(asked).toContain(await referenceOf(id))
    expect(await atTheBank(id)).toEqual({ submissions: 0, executed: 0 })
    expect(await statusOf(id)).toBe('submitted')
  })

  test('that is returned before the paid report arrives goes through both states', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_602 })
    afterHold()
    const [payout] = await claim()
    await submit([payout])
    harness.clock.advance({ minutes: 5 })
    await run('ask-about-withdrawals')
    expect(await path(id)).toBe('held submitted paid returned')
    await run('read-rail-reports')
    expect(await path(id)).toBe('held submitted paid returned')
    expect(errors()).toEqual([])
  })

  test('at a slow bank is polled until it is paid', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_603 })
    afterHold()
    await run('submit-withdrawals')
    expect(await statusOf(id)).toBe('submitted')
    await run('ask-about-withdrawals')
    expect(await statusOf(id)).toBe('submitted')
    harness.clock.advance({ minutes: 10 })
    await run('ask-about-withdrawals')
    expect(await statusOf(id)).toBe('paid')
    expect(await atTheBank(id)).toEqual({ submissions: 1, executed: 1 })
  })

  test('whose submission gets no response is polled, and not submitted again', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_604 })
    const other = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await run('submit-withdrawals')
    expect([await statusOf(id), await statusOf(other.id)]).toEqual(['submitted', 'submitted'])
    expect(lines.map(({ msg }) => msg)).toEqual(['the bank did not answer; it is polled later'])
    untilAsked()
    await run('ask-about-withdrawals')
    expect([await statusOf(id), await statusOf(other.id)]).toEqual(['paid', 'paid'])
    expect(await atTheBank(id)).toEqual({ submissions: 1, executed: 1 })
  })

  test('whose submission gets no response is also settled by a bank report', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_604 })
    afterHold()
    await run('submit-withdrawals')
    harness.clock.advance({ seconds: 5 })
    await run('read-rail-reports')
    expect(await statusOf(id)).toBe('paid')
  })

  test('that the bank reports twice is paid once', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_605 })
    afterHold()
    await run('submit-withdrawals')
    untilAsked()
    await run('read-rail-reports')
    expect(await path(id)).toBe('held submitted paid')
    expect(await booked(id, 'withdrawal.paid')).toEqual(['payouts_pending > float 6605'])
    expect(errors()).toEqual([])
  })

  test('that was lost in transit is submitted again once the bank says that it is unknown', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_606 })
    afterHold()
    await run('submit-withdrawals')
    expect(await statusOf(id)).toBe('submitted')
    untilAsked()
    await run('ask-about-withdrawals')
    expect(await path(id)).toBe('held submitted paid')
    expect(await atTheBank(id)).toEqual({ submissions: 2, executed: 1 })
  })

  test('stays held without a bank, and can be cancelled', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    for (const step of ['submit-withdrawals', 'ask-about-withdrawals', 'read-rail-reports'] as const)
      await run(step, null)
    expect(await statusOf(id)).toBe('held')
    expect((await cancel(id)).status).toBe(200)
  })
})

describe('a worker that is killed', () => {
  test('between claiming and calling loses nothing: the bank does not know the payment, and receives it', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await claim()
    await run('submit-withdrawals')
    await run('ask-about-withdrawals')
    expect(await statusOf(id)).toBe('submitted')
    expect((await atTheBank(id)).submissions).toBe(0)
    untilAsked()
    await run('ask-about-withdrawals')
    expect(await statusOf(id)).toBe('paid')
    expect(await atTheBank(id)).toEqual({ submissions: 1, executed: 1 })
  })

  test('between calling and recording pays nothing twice: the bank says that it has paid', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await submit(await claim())
    untilAsked()
    await run('ask-about-withdrawals')
    expect(await path(id)).toBe('held submitted paid')
    expect(await atTheBank(id)).toEqual({ submissions: 1, executed: 1 })
    expect(await harness.availableOf(memberId)).toBe(14_950)
  })

  test('after polling and before submitting again is replaced by one that submits', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_606 })
    afterHold()
    await run('submit-withdrawals')
    untilAsked()
    const { db, now } = context
    await db.transaction().execute(tx => withdrawals.claimUnresolved(tx, claimingAt(now(), harness.partner.id)))
    await run('ask-about-withdrawals')
    expect((await atTheBank(id)).submissions).toBe(1)
    harness.clock.advance({ minutes: 5 })
    await run('ask-about-withdrawals')
    expect(await statusOf(id)).toBe('paid')
  })

  test('while recording changes nothing twice when the bank is polled again', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    const reports = await submit(await claim())
    await Promise.all(Array.from({ length: 10 }, () => record(reports)))
    expect(await path(id)).toBe('held submitted paid')
    expect(await booked(id, 'withdrawal.paid')).toHaveLength(1)
  })
})

describe('several workers at once', () => {
  test('pay each withdrawal once', async () => {
    const nets = [5_000, 6_601, 6_603, 6_604, 6_605, 6_606, 5_001, 5_002, 5_003, 5_004]
    const all = await Promise.all([...nets, ...nets].map(net => harness.addWithdrawal({ net })))
    afterHold()
    const small = bankThat({ paymentsMax: 3 })
    for (let round = 0; round < 4; round++) {
      const steps: Step[] = ['submit-withdrawals', 'ask-about-withdrawals', 'read-rail-reports']
      await Promise.all([...steps, ...steps, ...steps].map(step => run(step, small)))
      harness.clock.advance({ minutes: 20 })
    }
    for (const [index, { id, memberId }] of all.entries()) {
      const net = [...nets, ...nets][index] ?? 0
      expect(await path(id)).toBe(`held submitted ${net === 6_601 ? 'failed' : 'paid'}`)
      expect(await booked(id, 'withdrawal.paid')).toHaveLength(net === 6_601 ? 0 : 1)
      expect(await harness.availableOf(memberId)).toBe(net === 6_601 ? 20_000 : 20_000 - 50 - net)
      expect((await atTheBank(id)).submissions).toBe(net === 6_606 ? 2 : 1)
    }
    expect(errors()).toEqual([])
  })
})

describe('cancelling', () => {
  test('refunds the money and the fee at once, and the bank is never called', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    const answer = await cancel(id)
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ id, status: 'cancelled' })
    expect(answer.body.timeline.at(-1)).toMatchObject({ status: 'cancelled', reason: 'Cancelled by the partner' })
    expect(await booked(id, 'withdrawal.cancelled')).toEqual([
      'fees > member_available 50',
      'payouts_pending > member_available 5000',
    ])
    expect(await harness.availableOf(memberId)).toBe(20_000)
    expect(await isListed(memberId)).toBe(false)
    afterHold()
    await run('submit-withdrawals')
    expect(await statusOf(id)).toBe('cancelled')
    expect((await atTheBank(id)).submissions).toBe(0)
  })

  test('again gives the same response and moves nothing', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    const first = await cancel(id)
    harness.clock.advance({ minutes: 1 })
    const second = await cancel(id)
    expect([second.status, second.text]).toEqual([200, first.text])
    expect(await harness.availableOf(memberId)).toBe(20_000)
  })

  test('twenty times at once cancels once, and all twenty report it', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(id)))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(200)
    expect(await harness.availableOf(memberId)).toBe(20_000)
    expect(await booked(id, 'withdrawal.cancelled')).toHaveLength(2)
  })

  test('with an idempotency key replays the response', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    const headers = { 'x-idempotency-key': `cancel-${id}` }
    const first = await cancel(id, { headers })
    const second = await cancel(id, { headers })
    expect([first.status, second.text]).toEqual([200, first.text])
    expect(second.headers['idempotency-replayed']).toBe('true')
  })

  test.each([
    [6_603, 'submitted'],
    [5_000, 'paid'],
    [6_601, 'failed'],
  ])('is refused once a withdrawal of %d is %s', async (net, status) => {
    const { id, memberId } = await harness.addWithdrawal({ net })
    afterHold()
    await run('submit-withdrawals')
    const before = await harness.availableOf(memberId)
    const answer = await cancel(id)
    expect(answer.status).toBe(409)
    expect(answer.body.issues).toEqual([{ code: 'Conflict', message: expect.stringContaining(status) }])
    expect(await harness.availableOf(memberId)).toBe(before)
    expect(await statusOf(id)).toBe(status)
  })

  test('another partner’s withdrawal responds like an unknown one', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    const foreign = await cancel(id, { key: harness.other.key })
    const missing = await cancel('w_01kah4pzc5e4r8v2m6t0x9y3bd', { key: harness.other.key })
    expect([foreign.status, foreign.text]).toEqual([404, missing.text])
    expect(await harness.availableOf(memberId)).toBe(14_950)
    const read = await harness.call('GET', `/v1/pay/withdrawals/${id}`, { key: harness.other.key })
    expect([read.status, read.text]).toEqual([404, missing.text])
  })

  test('needs an id of the right form, and the scope to write', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    const wrong = await cancel('wi_01kah4pzc5e4r8v2m6t0x9y3bd')
    expect(wrong.body.issues[0]).toMatchObject({ code: 'PathValidation', path: 'withdrawalId' })
    const { secret } = await harness.addKey(['pay:read'])
    expect((await cancel(id, { key: secret })).status).toBe(403)
  })

  test('racing with the bank, exactly one of the two happens', async () => {
    const outcomes = new Set<string>()
    for (let round = 0; round < extent({ short: 6, long: 20 }); round++) {
      const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
      afterHold()
      const [answer] = await Promise.all([cancel(id), run('submit-withdrawals')])
      const status = await statusOf(id)
      outcomes.add(status)
      expect(answer.status).toBe(status === 'cancelled' ? 200 : 409)
      expect(await harness.availableOf(memberId)).toBe(status === 'cancelled' ? 20_000 : 14_950)
      expect((await atTheBank(id)).executed).toBe(status === 'cancelled' ? 0 : 1)
    }
    for (const outcome of outcomes) expect(['cancelled', 'paid']).toContain(outcome)
  })
})

describe('a faulty bank', () => {
  test('that reports failed after paid changes nothing, and the operator sees it', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await run('submit-withdrawals')
    await record([{ reference: id, outcome: 'failed', reason: 'Changed our mind' }])
    expect(await path(id)).toBe('held submitted paid')
    expect(await harness.availableOf(memberId)).toBe(14_950)
    expect(lines).toMatchObject([{ level: 50, withdrawalId: id, msg: expect.stringContaining('contradicts') }])
  })

  test('that reports paid for a payment we never submitted changes nothing, and the operator sees it', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    await record([{ reference: id, outcome: 'paid', reason: null }])
    expect(await statusOf(id)).toBe('held')
    expect(errors()).toHaveLength(1)
    await cancel(id)
    await record([{ reference: id, outcome: 'paid', reason: null }])
    expect(await statusOf(id)).toBe('cancelled')
    expect(errors()).toHaveLength(2)
  })

  test('that reports a foreign payment does not block the other reports', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_603 })
    afterHold()
    await run('submit-withdrawals')
    await record([
      { reference: 'a stranger', outcome: 'paid', reason: null },
      { reference: id, outcome: 'paid', reason: null },
    ])
    expect(await statusOf(id)).toBe('paid')
    expect(lines).toMatchObject([{ level: 50, reference: 'a stranger' }])
  })

  test('that gives a reason the database cannot store is still recorded', async () => {
    const { id } = await harness.addWithdrawal({ net: 6_603 })
    afterHold()
    await run('submit-withdrawals')
    const reason = `\0closed \ud800${'💷'.repeat(200)}`
    await record([{ reference: id, outcome: 'failed', reason }])
    const { status, timeline } = await harness.getWithdrawal(id)
    expect(status).toBe('failed')
    expect(timeline.at(-1).reason).toMatch(/^closed \ufffd(💷)+$/u)
  })

  test('that reports nothing final for hours is polled hourly, and the operator sees it', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    const mute = bankThat({
      submit: async () => [],
      ask: async references => references.map(reference => ({ reference, outcome: 'pending', reason: null })),
    })
    await run('submit-withdrawals', mute)
    const attempts = async () =>
      await harness.db.selectFrom('withdrawals').select('attempts').where('id', '=', id).executeTakeFirstOrThrow()
    for (let hour = 0; hour < 12; hour++) {
      harness.clock.advance({ minutes: 61 })
      await run('ask-about-withdrawals', mute)
    }
    expect(await attempts()).toEqual({ attempts: 13 })
    expect(lines.filter(line => line.level >= 50 && line.withdrawalId === id)).toHaveLength(5)
    expect(await statusOf(id)).toBe('submitted')
    // It was never given up.
    harness.clock.advance({ minutes: 61 })
    await run('ask-about-withdrawals')
    expect(await statusOf(id)).toBe('paid')
  })

  test('that is unreachable breaks nothing: state is unchanged, and the call is retried later', async () => {
    const down = bankThat({ submit: unreachable, ask: unreachable, collect: unreachable })
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    afterHold()
    await run('submit-withdrawals', down)
    untilAsked()
    await run('ask-about-withdrawals', down)
    await expect(run('read-rail-reports', down)).rejects.toThrow('unreachable')
    expect(await statusOf(id)).toBe('submitted')
    harness.clock.advance({ minutes: 10 })
    await run('ask-about-withdrawals')
    expect(await statusOf(id)).toBe('paid')
  })
})

test('the books account for every penny of these tests', async () => {
  const checks = await harness.inTx(tx => verify(tx))
  expect(checks.length).toBeGreaterThan(3)
  for (const { name, disagreement } of checks) expect([name, disagreement]).toEqual([name, null])
})

describe('a late refund', () => {
  test('goes to the open cycle when the withdrawal’s cycle has closed, and the closed one does not change', async () => {
    const { id, memberId } = await harness.addWithdrawal({ net: 6_602 })
    afterHold()
    await run('submit-withdrawals')
    const before = await harness.getWithdrawal(id)
    const next = await closeCycle(harness.partner.id)
    harness.clock.advance({ minutes: 5 })
    await run('read-rail-reports')
    const after = await harness.getWithdrawal(id)
    expect([after.status, after.payCycleId]).toEqual(['returned', before.payCycleId])
    // What was not withdrawn belonged to the cycle that has closed.
    expect(await harness.availableOf(memberId)).toBe(6_652)
    const row = await harness.db
      .selectFrom('withdrawals')
      .select('adjustedInCycleId')
      .where('id', '=', id)
      .executeTakeFirst()
    expect(row).toEqual({ adjustedInCycleId: next })
    const transfers = await harness.db
      .selectFrom('ledgerTransfers')
      .select('payCycleId')
      .where('movementId', '=', id)
      .where('reason', '=', 'withdrawal.returned')
      .execute()
    expect(transfers).toEqual([{ payCycleId: next }, { payCycleId: next }])
  })

  test('waits for a closing in progress, and goes into the next cycle', async () => {
    const { id } = await harness.addWithdrawal({ net: 5_000 })
    let next = ''
    let cancelling: ReturnType<typeof cancel> | undefined
    await harness.inTx(async tx => {
      await tx
        .selectFrom('payCycles')
        .select('id')
        .where('partnerId', '=', harness.partner.id)
        .where('status', '=', 'Open')
        .forUpdate()
        .execute()
      cancelling = cancel(id)
      await whenWaiting(harness.db)
      next = await closeCycle(harness.partner.id, tx)
    })
    expect((await cancelling)?.status).toBe(200)
    const row = await harness.db
      .selectFrom('withdrawals')
      .select('adjustedInCycleId')
      .where('id', '=', id)
      .executeTakeFirst()
    expect(row).toEqual({ adjustedInCycleId: next })
  })

  test('is not lost while no cycle is open: the report is processed again once one is', async () => {
    const { partner, key } = await harness.addPartner('Between cycles')
    const { id, memberId } = await harness.addWithdrawal({ net: 6_602, key })
    afterHold()
    await run('submit-withdrawals')
    harness.clock.advance({ minutes: 5 })
    await harness.db
      .updateTable('payCycles')
      .set({ status: 'Closed', closedAt: harness.clock.now() })
      .where('partnerId', '=', partner.id)
      .execute()
    await run('read-rail-reports')
    expect((await harness.getWithdrawal(id, key)).status).toBe('paid')
    expect(await openExceptions(id)).toEqual(['refused'])
    // The reports after it are read meanwhile.
    const other = await harness.addWithdrawal({ net: 6_603 })
    afterHold()
    await run('submit-withdrawals')
    harness.clock.advance({ minutes: 5 })
    await run('read-rail-reports')
    expect(await statusOf(other.id)).toBe('paid')
    await openNext(partner.id)
    await run('read-rail-reports')
    expect(await openExceptions(id)).toEqual([])
    expect((await harness.getWithdrawal(id, key)).status).toBe('returned')
    expect(await harness.availableOf(memberId, key)).toBe(6_652)
  })
})

const openExceptions = async (withdrawalId: string) =>
  (await exceptions.list(harness.db, { state: 'open', take: 1_000 }))
    .filter(each => each.withdrawalId === withdrawalId)
    .map(({ kind }) => kind)

// The pieces of the steps, for what happens in between.
const claim = () =>
  context.db.transaction().execute(tx => withdrawals.submitDue(tx, claimingAt(context.now(), harness.partner.id)))

const submit = async (claimed: (withdrawals.Claimed | undefined)[]) =>
  await bank.submit(
    claimed.filter(each => each !== undefined).filter(withdrawals.hasAccount),
    AbortSignal.timeout(1_000),
  )

/** The simulated bank with other properties, whichever partner a worker works for. */
function bankThat(differs: Partial<Channel>, like = bank): Channel {
  const { time } = like
  assert(time.kept === 'by partner')
  return {
    ...like,
    ...differs,
    time: { kept: 'by partner', inScope: context => bankThat(differs, time.inScope(context)) },
  }
}

let railsMade = 0
// Through the step that reads reports, from a rail that has only these.
async function record(given: Report[]): Promise<void> {
  const reports = await Promise.all(
    given.map(async each => ({
      ...each,
      reference: each.reference.startsWith('w_')
        ? ((await referenceOf(each.reference)) ?? each.reference)
        : each.reference,
    })),
  )
  const name = `rail-${++railsMade}`
  const reporting = bankThat({
    name,
    feed: name,
    collect: async () => ({ reports: reports.splice(0), cursor: 'read' }),
  })
  await run('read-rail-reports', reporting)
}

const unreachable = async () => await Promise.reject(new Error('unreachable'))

async function closeCycle(partnerId: string, db: Reader = harness.db): Promise<string> {
  await db
    .updateTable('payCycles')
    .set({ status: 'Closed', closedAt: harness.clock.now(), releasedAt: harness.clock.now() })
    .where('partnerId', '=', partnerId)
    .where('status', '=', 'Open')
    .execute()
  return await openNext(partnerId, db)
}

async function openNext(partnerId: string, db: Reader = harness.db): Promise<string> {
  const { last } = await db
    .selectFrom('payCycles')
    .select(({ fn }) => fn.max('endDate').as('last'))
    .where('partnerId', '=', partnerId)
    .executeTakeFirstOrThrow()
  const startDate = addDays(last, 1)
  const id = newId('payCycle', harness.clock.now())
  await db
    .insertInto('payCycles')
    .values({
      partnerId,
      id,
      startDate,
      endDate: addDays(startDate, 30),
      status: 'Open',
      createdAt: harness.clock.now(),
    })
    .execute()
  return id
}
