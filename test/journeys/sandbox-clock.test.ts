import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '../../src/database/database.ts'
import { createClock, raiseOffset } from '../../src/partners/clocks.ts'
import type { Channel } from '../../src/payouts/channels/channel.ts'
import { simulatedBank } from '../../src/payouts/channels/simulated/simulated-bank.ts'
import { advance, start } from '../../src/sandbox/moves.ts'
import { clockTasks } from '../../src/sandbox/tasks.ts'
import { internalTasks, payoutTasks } from '../../src/tasks.ts'
import type { TaskContext } from '../../src/worker/task.ts'
import { locatedId } from '../harness/api-response.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { goodAccount } from '../harness/samples.ts'
import { whenWaiting } from '../harness/waiting.ts'
import { deliveryOf, startReceiver } from '../servers/receiver.ts'

const log = pino({ level: 'silent' })
const day = 86_400_000
const gbp = (amount: number) => ({ amount, currency: 'GBP' })

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const move = (body: object, key = harness.key, headers = {}) =>
  harness.call('POST', '/v1/sandbox/clock', { body, key, headers })

const newIntent = async (key = harness.key) =>
  await harness.createIntent({ key, memberId: await harness.addMember({ available: 50_000, key }) })
const newWithdrawal = async (key: string) => await harness.completeIntent(await newIntent(key), { key })
const intentOf = async (id: string, key: string) =>
  (await harness.call('GET', `/v1/pay/withdrawals/intent/${id}`, { key })).body
const later = (ms: number) => new Date(harness.clock.now().getTime() + ms).toISOString()

/** Runs the worker's tasks for partners on real time. */
const work = () => ({ ...internalTasks, ...payoutTasks([simulatedBank({ db: harness.db, now: harness.clock.now })]) })

test('a clock that was never moved shows real time', async () => {
  const { status, body } = await harness.call('GET', '/v1/sandbox/clock', { key: harness.other.key })
  expect({ status, body }).toEqual({
    status: 200,
    body: { now: harness.clock.now().toISOString(), aheadSeconds: 0, status: 'Still', lastMove: null },
  })
})

test('a move that waits for the first move off real time continues from the bank feed’s current position', async () => {
  const { partner, key } = await harness.addPartner('Two moves')
  await harness.inTx(tx => createClock(tx, partner.id))
  const feed = `simulated-bank-of-${partner.id}`
  let moving: ReturnType<typeof move> | undefined
  await harness.inTx(async tx => {
    await raiseOffset(tx, { partnerId: partner.id, offsetMs: day })
    await sql`
      insert into rail_cursors (rail, cursor, read_at)
      values ('simulated-bank', '2026-03-10T00:00:00.000Z/7', now()), (${feed}, '2026-03-11T00:00:00.000Z/9', now())
          on conflict (rail) do update set cursor = excluded.cursor`.execute(tx)
    moving = move({ by: 'P2D' }, key)
    await whenWaiting(harness.db)
  })
  const moved = await moving
  expect(moved?.status, moved?.text).toBe(200)
  const { rows } = await sql<{ cursor: string }>`select cursor from rail_cursors where rail = ${feed}`.execute(
    harness.db,
  )
  expect(rows).toEqual([{ cursor: '2026-03-11T00:00:00.000Z/9' }])
})

describe('moving a clock', () => {
  test('expires an intent, in the partner’s time, and emits its event', async () => {
    const { partner, key } = await harness.addPartner('Expiring')
    const id = await newIntent(key)
    const { status, body } = await move({ next: 'intent_expiry' }, key)
    const expiresAt = later(partner.intentMinutes * 60_000)
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        now: expiresAt,
        aheadSeconds: partner.intentMinutes * 60,
        status: 'Still',
        lastMove: {
          from: harness.clock.now().toISOString(),
          to: expiresAt,
          ran: [{ due: 'intent_expiry', from: expiresAt, to: expiresAt, count: 1 }],
        },
      },
    })
    expect(await intentOf(id, key)).toMatchObject({ status: 'expired' })
    const { body: feed } = await harness.call('GET', '/v1/events?types=intent.expired', { key })
    expect(feed.events).toMatchObject([{ timestamp: expiresAt, data: { withdrawalIntentId: id } }])
  })

  test('does everything that falls due on the way, each at its time', async () => {
    const { partner, key } = await harness.addPartner('Everything', { graceMinutes: 10 })
    const memberId = await harness.addMember({ key })
    const paid = await harness.call('POST', '/v1/pay/run', {
      key,
      body: { payDetails: [{ memberId, money: gbp(50_000) }] },
    })
    expect(paid.body.status).toBe('Scheduled')
    expect((await move({ next: 'pay_run_available' }, key)).body.now).toBe(later(10 * 60_000))
    const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', {
      key,
      body: { memberId, amount: gbp(5_000) },
    })
    const completed = await harness.call('POST', '/v1/pay/withdrawals/complete', {
      key,
      body: { withdrawalIntentId: intent.body.withdrawalIntentId },
    })
    expect((await move({ next: 'withdrawal_submission' }, key)).body.aheadSeconds).toBe(600 + partner.holdSeconds)
    expect((await harness.getWithdrawal(locatedId(completed), key)).status).toBe('paid')
    const closed = await move({ next: 'cycle_close' }, key)
    // The last day of March ends in London an hour before midnight UTC: the clocks have gone forward.
    expect(closed.body.now).toBe('2026-03-31T23:00:00.000Z')
    expect(closed.body.lastMove.ran.at(-1)).toMatchObject({ due: 'cycle_close', count: 1 })
    const year = await move({ by: 'P365D' }, key)
    expect(year.body.lastMove.ran).toEqual([
      { due: 'cycle_close', from: '2026-04-30T23:00:00.000Z', to: '2027-03-31T23:00:00.000Z', count: 12 },
    ])
    const { body } = await harness.call('GET', '/v1/pay/cycles', { key })
    expect([body.total, body.payCycles[0]]).toMatchObject([14, { startDate: '2027-04-01', status: 'Open' }])
  })

  test('expires idempotency keys and API keys by the moved clock', async () => {
    const { partner, key } = await harness.addPartner('Lives')
    const { secret } = await harness.addKey(['members:read'], {
      partnerId: partner.id,
      expiresAt: new Date(harness.clock.now().getTime() + 3 * day),
    })
    const headers = { 'x-idempotency-key': 'a week' }
    const repeat = async () =>
      (await harness.call('GET', '/v1/tiers', { key, headers })).headers['idempotency-replayed']
    const status = async () => (await harness.call('GET', '/v1/members', { key: secret })).status
    expect([await repeat(), await repeat(), await status()]).toEqual([undefined, 'true', 200])
    const moved = await move({ by: 'P3D' }, key)
    expect(moved.body.lastMove.ran).toMatchObject([{ due: 'key_expiry', count: 1 }])
    expect([await repeat(), await status()]).toEqual(['true', 401])
    await move({ by: 'P4D' }, key)
    expect([await repeat(), await repeat()]).toEqual([undefined, 'true'])
  })

  test('never moves another partner’s work, in either direction', async () => {
    const [moved, still] = [await harness.addPartner('Moved'), await harness.addPartner('Still')]
    const [movedIntent, stillIntent] = [await newIntent(moved.key), await newIntent(still.key)]
    const [movedWithdrawal, stillWithdrawal] = [await newWithdrawal(moved.key), await newWithdrawal(still.key)]
    await move({ by: 'PT1H' }, moved.key)
    expect((await intentOf(movedIntent, moved.key)).status).toBe('expired')
    expect((await harness.getWithdrawal(movedWithdrawal, moved.key)).status).toBe('paid')
    expect((await intentOf(stillIntent, still.key)).status).toBe('pending')
    expect((await harness.getWithdrawal(stillWithdrawal, still.key)).status).toBe('held')

    // The moved partner's new work falls due an hour later, so the worker's rounds in real time do not touch it.
    const next = await newIntent(moved.key)
    const except = { scope: { except: [moved.partner.id] } }
    harness.clock.advance({ minutes: 16 })
    for (const task of Object.values(work())) await task({ db: harness.db, log, now: harness.clock.now, ...except })
    expect((await intentOf(stillIntent, still.key)).status).toBe('expired')
    expect((await harness.getWithdrawal(stillWithdrawal, still.key)).status).toBe('paid')
    const row = await harness.db.selectFrom('withdrawalIntents').select('status').where('id', '=', next).execute()
    expect(row).toEqual([{ status: 'pending' }])
  })

  test('is seen by another process at the next request', async () => {
    const { key } = await harness.addPartner('Two processes')
    const second = await harness.startSecond()
    try {
      const nowOf = async () => (await second.call('GET', '/v1/sandbox/clock', { key })).body.now
      const quote = async () =>
        (
          await second.call('POST', '/v1/pay/withdrawals/intent', {
            key,
            body: { memberId, amount: gbp(5_000) },
          })
        ).headers['x-intent-expires-at']
      const memberId = await harness.addMember({ available: 50_000, key })
      const before = await quote()
      await move({ by: 'P1D' }, key)
      // The first move waits until cached API keys have expired; the clock of this test stands still.
      harness.clock.advance({ seconds: 1 })
      expect(await quote()).toBe(new Date(Date.parse(before ?? '') + day + 1_000).toISOString())
      await move({ by: 'P1D' }, key)
      expect(await quote()).toBe(new Date(Date.parse(before ?? '') + 2 * day + 1_000).toISOString())
      expect(await nowOf()).toBe(later(2 * day))
    } finally {
      await second.stop()
    }
  })

  test('only goes forward, by at most 400 days, and only to an event that is still ahead', async () => {
    const { key } = await harness.addPartner('Bounds')
    const refused = async (body: object) => {
      const answer = await move(body, key)
      return [answer.status, answer.body.issues?.[0].code, answer.body.issues?.[0].path]
    }
    expect(await refused({ to: later(-1) })).toEqual([400, 'BodyValidation', 'to'])
    expect(await refused({ to: later(400 * day + 1) })).toEqual([400, 'BodyValidation', 'to'])
    expect(await refused({ by: 'P401D' })).toEqual([400, 'BodyValidation', 'by'])
    expect(await refused({ by: 'P1M' })).toEqual([400, 'BodyValidation', 'by'])
    expect(await refused({ by: 'P' })).toEqual([400, 'BodyValidation', 'by'])
    expect(await refused({ by: 'P1D', next: 'cycle_close' })).toEqual([400, 'BodyValidation', 'body'])
    expect(await refused({})).toEqual([400, 'BodyValidation', 'body'])
    expect(await refused({ next: 'pay_run_available' })).toEqual([409, 'Conflict', undefined])
    expect((await move({ to: later(400 * day) }, key)).body.now).toBe(later(400 * day))
    expect(await refused({ by: 'PT1S' })).toEqual([400, 'BodyValidation', 'by'])
  })

  test('happens once per idempotency key, however far it goes', async () => {
    const { key } = await harness.addPartner('Once')
    const headers = { 'x-idempotency-key': 'eight days' }
    const first = await move({ by: 'P8D' }, key, headers)
    const again = await move({ by: 'P8D' }, key, headers)
    expect([again.text, again.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
    const [one, two] = await Promise.all(
      ['x', 'x'].map(name => move({ by: 'P1D' }, key, { 'x-idempotency-key': name })),
    )
    expect([one?.status, two?.status]).toEqual([200, 200])
    expect((await harness.call('GET', '/v1/sandbox/clock', { key })).body.aheadSeconds).toBe((9 * day) / 1_000)
  })

  test('with one idempotency key and two bodies happens once; every process refuses the second body', async () => {
    const { key } = await harness.addPartner('Two bodies')
    const second = await harness.startSecond()
    try {
      const headers = { 'x-idempotency-key': 'one key' }
      const [day1, day2] = [{ by: 'P1D' }, { by: 'P2D' }]
      const answers = await Promise.all([
        move(day1, key, headers),
        second.call('POST', '/v1/sandbox/clock', { body: day2, key, headers }),
      ])
      const codes = answers.map(({ status, body }) => (status === 200 ? 200 : [status, body.issues[0].path]))
      expect(codes).toContainEqual(200)
      expect(codes).toContainEqual([422, 'x-idempotency-key'])
      const moved = codes[0] === 200 ? day1 : day2
      const replayed = await move(moved, key, headers)
      expect(replayed.body.aheadSeconds).toBe(((moved === day1 ? 1 : 2) * day) / 1_000)
    } finally {
      await second.stop()
    }
  })

  test('interrupted by a kill keeps its key: the same body continues the move, another body is refused', async () => {
    const { partner, key } = await harness.addPartner('Killed with a key')
    const now = harness.clock.now()
    const destination = { byMs: day }
    const claim = { key: 'left behind', fingerprint: Buffer.alloc(32, 1) }
    const started = await harness.inTx(tx =>
      start(tx, { partnerId: partner.id, destination, claim, now, realNow: now }),
    )
    harness.app.forgetKeys(partner.id)
    const headers = { 'x-idempotency-key': 'left behind' }
    const refused = await move({ by: 'P2D' }, key, headers)
    expect([refused.status, refused.body.issues?.[0].path]).toEqual([422, 'x-idempotency-key'])
    const again = await harness.inTx(tx => start(tx, { partnerId: partner.id, destination, claim, now, realNow: now }))
    expect(again.moveId).toBe(started.moveId)
  })

  test('by a duration ends exactly that far ahead, however long the move takes', async () => {
    const { key } = await harness.addPartner('Exactly')
    await newIntent(key)
    const ticking = setInterval(() => harness.clock.advance({ seconds: 0.007 }), 1)
    try {
      const first = await move({ by: 'P3D' }, key)
      const second = await move({ by: 'PT1S' }, key)
      expect([first.body.aheadSeconds, second.body.aheadSeconds]).toEqual([259_200, 259_201])
    } finally {
      clearInterval(ticking)
    }
  })

  test('abandoned by its process is continued by a worker; until then another move is a conflict', async () => {
    const { partner, key } = await harness.addPartner('Abandoned', { intentMinutes: 60 })
    const id = await newIntent(key)
    const now = harness.clock.now()
    await harness.inTx(tx =>
      start(tx, { partnerId: partner.id, destination: { byMs: 2 * 3_600_000 }, now, realNow: now }),
    )
    harness.app.forgetKeys(partner.id)
    const moving = await harness.call('GET', '/v1/sandbox/clock', { key })
    expect(moving.body).toMatchObject({ status: 'Moving', now: now.toISOString() })
    const conflict = await move({ by: 'P1D' }, key)
    expect([conflict.status, conflict.headers['retry-after']]).toEqual([409, '1'])
    await clockTasks(work())['move-sandbox-clocks']({ db: harness.db, log, now: harness.clock.now })
    const arrived = await harness.call('GET', '/v1/sandbox/clock', { key })
    expect(arrived.body).toMatchObject({ status: 'Still', now: later(2 * 3_600_000) })
    expect((await intentOf(id, key)).status).toBe('expired')
  })
})

test('a move that outlasts its request responds 202, can be polled while it runs, and completes', async () => {
  const { key } = await harness.addPartner('Slow', { holdSeconds: 30, intentMinutes: 60 })
  const answer = Promise.withResolvers<void>()
  const channels = [bankThatWaits(answer.promise)]
  const second = await harness.startSecond({ moveMsMax: 100, channels })
  try {
    const [withdrawalId, intentId] = [await newWithdrawal(key), await newIntent(key)]
    const headers = { 'x-idempotency-key': 'slow' }
    const ask = () => second.call('POST', '/v1/sandbox/clock', { key, headers, body: { by: 'P1D' } })
    const accepted = await ask()
    const clock = async () => (await harness.call('GET', '/v1/sandbox/clock', { key })).body
    const lastMove = { from: later(0), to: later(day) }
    expect(accepted).toMatchObject({ status: 202, body: { status: 'Moving', lastMove } })
    expect(await clock()).toMatchObject({ status: 'Moving', lastMove })
    expect((await harness.getWithdrawal(withdrawalId, key)).status).not.toBe('paid')
    const other = await move({ by: 'PT1S' }, key)
    expect([other.status, other.headers['retry-after'], other.body.issues[0].code]).toEqual([409, '1', 'Conflict'])

    answer.resolve()
    const worker = clockTasks(work())['move-sandbox-clocks']
    await vi.waitFor(
      async () => {
        await worker({ db: harness.db, log, now: harness.clock.now })
        expect((await clock()).status).toBe('Still')
      },
      { timeout: 20_000 },
    )
    const arrived = await clock()
    expect(arrived.now).toBe(later(day))
    expect(arrived.lastMove.ran).toMatchObject([
      { due: 'withdrawal_submission', from: later(30_000), count: 1 },
      { due: 'intent_expiry', from: later(3_600_000), count: 1 },
    ])
    expect((await harness.getWithdrawal(withdrawalId, key)).status).toBe('paid')
    expect((await intentOf(intentId, key)).status).toBe('expired')
    const again = await ask()
    expect([again.text, again.headers['idempotency-replayed']]).toEqual([accepted.text, 'true'])
  } finally {
    answer.resolve()
    await second.stop()
  }
})

function inScope(bank: Channel, context: Pick<TaskContext, 'now' | 'scope'>): Channel {
  return bank.time.kept === 'real' ? bank : bank.time.inScope(context)
}

/** The simulated bank, which holds back its response to a submission until `answered` resolves. */
function bankThatWaits(answered: Promise<void>): Channel {
  const waiting = (bank: Channel): Channel => ({
    ...bank,
    callMsMax: 60_000,
    time: { kept: 'by partner', inScope: context => waiting(inScope(bank, context)) },
    async submit(payments, signal) {
      await answered
      return await bank.submit(payments, signal)
    },
  })
  return waiting(simulatedBank({ db: harness.db, now: harness.clock.now }))
}

test('a worker continues a move as soon as the lease of its killed process ends', async () => {
  const { partner, key } = await harness.addPartner('Leased')
  const now = harness.clock.now()
  const { moveId } = await harness.inTx(tx =>
    start(tx, { partnerId: partner.id, destination: { byMs: day }, now, realNow: now }),
  )
  const leaseEndsAt = async () => {
    const { rows } = await sql<{ endsAt: Date }>`
      select leased_until as ends_at from sandbox_clock_moves where id = ${moveId}`.execute(harness.db)
    return rows[0]?.endsAt.getTime() ?? 0
  }
  const hasJobAt = async (at: number) => {
    const { rows } = await sql<{ runAt: Date }>`
      select run_at from graphile_worker.jobs where task_identifier = 'move-sandbox-clocks'`.execute(harness.ownerDb)
    return rows.some(({ runAt }) => Math.abs(runAt.getTime() - at) <= 1_000)
  }
  let hasJob = false
  // Checked in the middle of the move, where a kill would leave it.
  const tasks = {
    async 'watch-floats'() {
      hasJob = await hasJobAt(await leaseEndsAt())
    },
  }
  await advance({ db: harness.db, log, now: harness.clock.now, tasks }, { partnerId: partner.id, moveId })
  expect(hasJob).toBe(true)

  // The move is still leased when the job runs: a worker must look again later.
  await sql`update sandbox_clock_moves set ended_at = null, leased_until = now() + interval '1 hour'
             where id = ${moveId}`.execute(harness.db)
  await clockTasks(work())['move-sandbox-clocks']({ db: harness.db, log, now: harness.clock.now })
  expect(await hasJobAt(await leaseEndsAt())).toBe(true)
  await sql`update sandbox_clock_moves set ended_at = now() where id = ${moveId}`.execute(harness.db)
  expect((await harness.call('GET', '/v1/sandbox/clock', { key })).body.status).toBe('Still')
})

test('a move lists the webhook retries that fall due, and the worker makes them after the move', async () => {
  const { key } = await harness.addPartner('Retries')
  const [receiver, delivery] = [await startReceiver(), deliveryOf(harness)]
  try {
    receiver.answerWith(503)
    const { status, text } = await harness.call('POST', '/v1/webhooks', { key, body: { url: receiver.url } })
    expect(status, text).toBe(201)
    await harness.addMember({ key })
    await delivery.deliverDue()
    const failed = receiver.received.length
    expect(failed).toBeGreaterThan(0)
    const moved = await move({ by: 'PT10M' }, key)
    const to = moved.body.lastMove.to
    expect(moved.body.lastMove.ran).toEqual([{ due: 'webhook_retry', from: to, to, count: failed }])
    receiver.answerWith(204)
    await delivery.deliverDue()
    expect(receiver.received.length).toBe(2 * failed)
    expect((await move({ by: 'P1D' }, key)).body.lastMove.ran).toEqual([])
  } finally {
    await delivery.stop()
    await receiver.stop()
  }
})

test('journey: a withdrawal is paid, and returned three days later by the clock', async () => {
  const { key } = await harness.addPartner('Journey')
  const memberId = await harness.addMember({ key, account: goodAccount })
  await harness.call('POST', `/v1/sandbox/members/${memberId}/fund`, { key, body: { amount: gbp(50_000) } })
  const id = await harness.withdraw({ key, memberId, amount: 20_000 })
  await move({ next: 'withdrawal_submission' }, key)
  expect((await harness.getWithdrawal(id, key)).status).toBe('paid')
  await move({ by: 'P3D' }, key)
  const instructed = await harness.call('POST', `/v1/sandbox/withdrawals/${id}/return`, {
    key,
    body: { reason: 'AC04' },
  })
  expect(instructed.body.status).toBe('returned')

  const { body } = await harness.call('GET', '/v1/events?types=withdrawal.paid&types=withdrawal.returned', { key })
  const [paid, returned] = body.events
  expect([paid.type, returned.type, returned.data.reason]).toEqual([
    'withdrawal.paid',
    'withdrawal.returned',
    'AC04 The account is closed',
  ])
  expect(Date.parse(returned.timestamp) - Date.parse(paid.timestamp)).toBe(3 * day)
  const balance = await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key })
  expect(balance.body.available).toEqual(gbp(50_000))
})
