import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import type { BankFault } from '../payouts/channels/simulated/simulated-bank.ts'

type Line = { msg: string; call?: string; err?: { message: string } }

let harness: Harness
let lines: Line[] = []
beforeAll(async () => {
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  harness = await startHarness({ log })
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const post = (path: string, body?: object, key = harness.key) =>
  harness.call('POST', path, { key, ...(body === undefined ? {} : { body }) })

const newWithdrawal = (key = harness.key) => harness.addWithdrawal({ available: 50_000, key })

describe('a withdrawal goes through each transition when the bank is instructed to', () => {
  test.each([
    ['submit', 'submitted', ['held', 'submitted'], null],
    ['pay', 'paid', ['held', 'submitted', 'paid'], null],
    ['fail', 'failed', ['held', 'submitted', 'failed'], 'AC06 The account is blocked'],
    ['return', 'returned', ['held', 'submitted', 'paid', 'returned'], 'AC06 The account is blocked'],
  ])('%s leads to %s, through the states before it', async (name, status, states, reason) => {
    const { id, memberId } = await newWithdrawal()
    const answer = await post(`/v1/sandbox/withdrawals/${id}/${name}`, { reason: 'AC06' })
    expect(answer).toMatchObject({ status: 200, body: { id, status } })
    expect(answer.body.timeline.map((entry: { status: string }) => entry.status)).toEqual(states)
    expect(answer.body.timeline.at(-1).reason).toBe(reason)
    expect(await harness.availableOf(memberId)).toBe(['failed', 'returned'].includes(status) ? 50_000 : 44_950)
    expect((await post(`/v1/sandbox/withdrawals/${id}/${name}`)).body.status).toBe(status)
  })

  test('step by step: submitted, paid, returned', async () => {
    const { id } = await newWithdrawal()
    for (const [name, status] of [
      ['submit', 'submitted'],
      ['pay', 'paid'],
      ['return', 'returned'],
    ]) {
      expect((await post(`/v1/sandbox/withdrawals/${id}/${name}`)).body.status).toBe(status)
    }
  })

  test('hold keeps the bank silent after the hold, however long it takes, until it is instructed to pay', async () => {
    const { key } = await harness.addPartner('Silent bank')
    const { id } = await newWithdrawal(key)
    expect((await post(`/v1/sandbox/withdrawals/${id}/hold`, undefined, key)).body.status).toBe('held')
    const moved = await post('/v1/sandbox/clock', { by: 'P2D' }, key)
    expect(moved.status).toBe(200)
    const held = await harness.call('GET', `/v1/pay/withdrawals/${id}`, { key })
    expect(held.body.status).toBe('submitted')
    expect((await post(`/v1/sandbox/withdrawals/${id}/pay`, undefined, key)).body.status).toBe('paid')
  })
})

test('a state that the withdrawal can no longer reach is a conflict, and another partner’s withdrawal is not found', async () => {
  const { id } = await newWithdrawal()
  await post(`/v1/sandbox/withdrawals/${id}/fail`)
  for (const name of ['submit', 'pay', 'return', 'hold']) {
    const answer = await post(`/v1/sandbox/withdrawals/${id}/${name}`)
    expect([answer.status, answer.body.issues?.[0].code]).toEqual([409, 'Conflict'])
  }
  const others = await post(`/v1/sandbox/withdrawals/${id}/pay`, undefined, harness.other.key)
  expect([others.status, others.body.issues[0].code]).toEqual([404, 'NotFound'])
})

describe('a queued fault meets one payment, which is paid in the end, as that fault allows', () => {
  test('timeout: the call is not answered, and the bank’s report arrives two seconds later', async () => {
    const { id, partnerId, key, reference, move } = await meet('timeout')
    expect(await withdrawalOf(id, key)).toEqual({ status: 'submitted', path: ['held', 'submitted'] })
    expect(await atTheBank(reference)).toEqual({ submissions: 1, reports: ['0 s: paid'] })
    expect(logged()).toEqual([['the bank did not answer; it is polled later', 'submit', 'No answer within 2000 ms']])
    expect((await move('PT1S')).ran).toEqual([])
    const { ran } = await move('PT1S')
    expect(ran).toEqual(['bank_report'])
    expect(await withdrawalOf(id, key)).toEqual({ status: 'paid', path: ['held', 'submitted', 'paid after 2 s'] })
    expect(await attemptsOf(partnerId)).toBe(1)
  })

  test('error: the call fails and the payment is lost; the next poll submits it again', async () => {
    const { id, partnerId, key, reference, move } = await meet('error')
    expect(await withdrawalOf(id, key)).toEqual({ status: 'submitted', path: ['held', 'submitted'] })
    expect(await atTheBank(reference)).toEqual({ submissions: 1, reports: [] })
    const lost = [
      'the bank did not answer; it is polled later',
      'submit',
      'The connection to the simulated bank was lost',
    ]
    expect(logged()).toEqual([lost])
    expect((await move('PT59S')).ran).toEqual([])
    expect((await move('PT61S')).ran).toEqual(['bank_poll'])
    const { status, path } = await withdrawalOf(id, key)
    expect([status, path.length]).toEqual(['paid', 3])
    // The first poll has a jitter of half of its two minutes.
    expect(secondsIn(path[2])).toBeGreaterThanOrEqual(60)
    expect(secondsIn(path[2])).toBeLessThanOrEqual(120)
    expect(await atTheBank(reference)).toEqual({ submissions: 2, reports: [`${secondsIn(path[2])} s: paid`] })
    expect(await attemptsOf(partnerId)).toBe(2)
    expect(logged()).toEqual([lost])
  })

  test('duplicate: the second report is read, and changes nothing', async () => {
    const { id, partnerId, key, reference, move } = await meet('duplicate')
    const paid = { status: 'paid', path: ['held', 'submitted', 'paid after 0 s'] }
    expect(await withdrawalOf(id, key)).toEqual(paid)
    expect(await atTheBank(reference)).toEqual({ submissions: 1, reports: ['0 s: paid', '0 s: paid'] })
    await move('PT2S')
    await move('PT2S')
    expect(await unreadOf(partnerId)).toBe(0)
    expect(await withdrawalOf(id, key)).toEqual(paid)
    const { body } = await harness.call('GET', '/v1/events?types=withdrawal.paid', { key })
    expect(body.events).toHaveLength(1)
    expect([await attemptsOf(partnerId), logged()]).toEqual([1, []])
  })

  test('late: the bank answers that the payment is pending, and reports it after three minutes', async () => {
    const { id, partnerId, key, reference, move } = await meet('late')
    const submitted = { status: 'submitted', path: ['held', 'submitted'] }
    expect(await withdrawalOf(id, key)).toEqual(submitted)
    expect(await atTheBank(reference)).toEqual({ submissions: 1, reports: ['180 s: paid'] })
    expect((await move('PT179S')).ran).toEqual(['bank_poll'])
    expect(await withdrawalOf(id, key)).toEqual(submitted)
    await move('PT3S')
    const { status, path } = await withdrawalOf(id, key)
    expect(status).toBe('paid')
    // By the report, or by a poll that happens to come first.
    expect(secondsIn(path[2])).toBeGreaterThanOrEqual(180)
    expect(secondsIn(path[2])).toBeLessThanOrEqual(182)
    expect((await atTheBank(reference)).submissions).toBe(1)
    expect(await attemptsOf(partnerId)).toBeGreaterThanOrEqual(2)
    expect(logged()).toEqual([])
  })

  test('contradiction: the report of a failure a minute later changes nothing, and opens an exception', async () => {
    const { id, memberId, partnerId, key, reference, move } = await meet('contradiction')
    const paid = { status: 'paid', path: ['held', 'submitted', 'paid after 0 s'] }
    expect(await withdrawalOf(id, key)).toEqual(paid)
    expect(await atTheBank(reference)).toEqual({ submissions: 1, reports: ['0 s: paid', '60 s: failed'] })
    await move('PT61S')
    expect([logged(), await exceptionsAbout(reference)]).toEqual([[], []])
    expect((await move('PT1S')).ran).toEqual(['bank_report'])
    expect(await withdrawalOf(id, key)).toEqual(paid)
    expect(logged()).toEqual([['the bank contradicts an earlier report about a withdrawal; nothing was changed']])
    expect(await exceptionsAbout(reference)).toEqual([{ kind: 'contradiction', outcome: 'failed', withdrawalId: id }])
    expect([await harness.availableOf(memberId, key), await attemptsOf(partnerId)]).toEqual([44_950, 1])
  })

  test('unknown_reference: a report about a payment that was never made opens an exception', async () => {
    const { id, partnerId, key, reference, move } = await meet('unknown_reference')
    const paid = { status: 'paid', path: ['held', 'submitted', 'paid after 0 s'] }
    expect(await withdrawalOf(id, key)).toEqual(paid)
    expect(await atTheBank(reference)).toEqual({ submissions: 1, reports: ['0 s: paid'] })
    expect(await atTheBank(`unknown-${reference}`)).toEqual({ submissions: 0, reports: ['0 s: paid'] })
    expect(logged()).toEqual([])
    expect((await move('PT2S')).ran).toEqual(['bank_report'])
    expect(logged()).toEqual([['the bank reports a payment that is not ours']])
    const unmatched = { kind: 'unmatched', outcome: 'paid', withdrawalId: null }
    expect(await exceptionsAbout(`unknown-${reference}`)).toEqual([unmatched])
    expect(await withdrawalOf(id, key)).toEqual(paid)
    expect(await attemptsOf(partnerId)).toBe(1)
  })

  let submittedAtMs = 0

  /** Queues a fault, and moves the clock to the submission of a payment, which meets the fault. */
  async function meet(next: BankFault) {
    const { key, partner } = await harness.addPartner(`Fault ${next}`)
    const queued = await post('/v1/sandbox/bank/faults', { next }, key)
    expect(queued).toMatchObject({ status: 201, body: { faults: [{ fault: next, remaining: 1 }] } })
    const { id, memberId } = await newWithdrawal(key)
    lines = []
    const move = async (by: string) => {
      const { status, body } = await post('/v1/sandbox/clock', { by }, key)
      expect(status).toBe(200)
      return { ran: body.lastMove.ran.map((each: { due: string }) => each.due) }
    }
    const moved = await post('/v1/sandbox/clock', { next: 'withdrawal_submission' }, key)
    expect(moved.status).toBe(200)
    submittedAtMs = Date.parse(moved.body.now)
    const left = await harness.db
      .selectFrom('simulatedBankFaults')
      .select('remaining')
      .where('partnerId', '=', partner.id)
      .execute()
    expect(left).toEqual([{ remaining: 0 }])
    const { paymentReference: reference } = (await harness.call('GET', `/v1/pay/withdrawals/${id}`, { key })).body
    return { id, memberId, partnerId: partner.id, key, reference, move }
  }

  /** The states that the withdrawal went through; states after its submission have the time since then by the partner's clock. */
  async function withdrawalOf(id: string, key: string): Promise<{ status: string; path: string[] }> {
    const { status, timeline } = (await harness.call('GET', `/v1/pay/withdrawals/${id}`, { key })).body
    const path = timeline.map((entry: { status: string; at: string }, index: number) =>
      index < 2 ? entry.status : `${entry.status} after ${since(new Date(entry.at))} s`,
    )
    return { status, path }
  }

  const since = (at: Date) => (at.getTime() - submittedAtMs) / 1_000
  const secondsIn = (entry = '') => Number(/after (\S+) s/.exec(entry)?.[1])

  async function atTheBank(reference: string): Promise<{ submissions: number; reports: string[] }> {
    const payment = await harness.db
      .selectFrom('simulatedBankPayments')
      .select('submissions')
      .where('reference', '=', reference)
      .executeTakeFirst()
    const reports = await harness.db
      .selectFrom('simulatedBankReports')
      .select(['outcome', 'reportedAt'])
      .where('reference', '=', reference)
      .orderBy('sequence')
      .execute()
    return {
      submissions: payment?.submissions ?? 0,
      reports: reports.map(({ outcome, reportedAt }) => `${since(reportedAt)} s: ${outcome}`),
    }
  }

  async function attemptsOf(partnerId: string): Promise<number | undefined> {
    const { attempts } = await harness.db
      .selectFrom('withdrawals')
      .select('attempts')
      .where('partnerId', '=', partnerId)
      .executeTakeFirstOrThrow()
    return attempts
  }

  /** The reports that the partner's feed has not reached. */
  async function unreadOf(partnerId: string): Promise<number | undefined> {
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count
        from simulated_bank_reports r left join rail_cursors c on c.rail = ${`simulated-bank-of-${partnerId}`}
       where r.partner_id = ${partnerId} and r.sequence > coalesce(split_part(c.cursor, '/', 2), '0')::bigint`.execute(
      harness.db,
    )
    return rows[0]?.count
  }

  async function exceptionsAbout(reference: string) {
    return await harness.db
      .selectFrom('payoutExceptions')
      .select(['kind', 'outcome', 'withdrawalId'])
      .where('reference', '=', reference)
      .execute()
  }

  /** The warnings and errors of the log: the message, and for a failed call its name and cause. */
  const logged = () => lines.map(({ msg, call, err }) => [msg, ...(call === undefined ? [] : [call, err?.message])])
})

test('a member is funded by a pay run, the float by a movement, and a pause refuses intents', async () => {
  const { key } = await harness.addPartner('Money')
  const memberId = await harness.addMember({ key })
  const funded = await post(`/v1/sandbox/members/${memberId}/fund`, { amount: gbp(7_500) }, key)
  expect(funded).toMatchObject({ status: 201, body: { status: 'Available', available: gbp(7_500) } })
  const run = await harness.call('GET', `/v1/pay/runs/${funded.body.payRunId}`, { key })
  expect(run.body).toMatchObject({ status: 'Available', lineCount: 1, totals: [gbp(7_500)] })
  const float = await post('/v1/sandbox/float', { amount: gbp(100_000) }, key)
  expect(float).toMatchObject({ status: 201, body: { float: gbp(100_000), free: gbp(100_000) } })
  const refused = await post('/v1/sandbox/float', { amount: { amount: 1, currency: 'JPY' } }, key)
  expect([refused.status, refused.body.issues[0].code]).toEqual([422, 'UnprocessableEntity'])
  expect((await post('/v1/sandbox/pause', undefined, key)).body).toEqual({ paused: true })
  const intent = { memberId, amount: gbp(5_000) }
  expect((await post('/v1/pay/withdrawals/intent', intent, key)).status).toBe(422)
  expect((await post('/v1/sandbox/resume', undefined, key)).body).toEqual({ paused: false })
  expect((await post('/v1/pay/withdrawals/intent', intent, key)).status).toBe(201)
})

test('a live installation has none of these operations', async () => {
  const live = await startHarness({ mode: 'live' })
  try {
    for (const [method, path] of [
      ['GET', '/v1/sandbox/clock'],
      ['POST', '/v1/sandbox/clock'],
      ['POST', '/v1/sandbox/bank/faults'],
      ['POST', '/v1/sandbox/pause'],
    ] as const) {
      expect((await live.call(method, path)).status).toBe(404)
    }
  } finally {
    await live.stop()
  }
})
