import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import type { Currency } from '../kernel/money.ts'
import { pausePartner, resumePartner } from '../partners/partners.ts'
import { completeAll, complete as completeIn } from '../withdrawals/completions.ts'
import { SubmissionSchedule } from '../withdrawals/submission-schedule.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import * as float from './float.ts'
import { floatTasks } from './tasks.ts'

let harness: Harness
let mine: TestPartner
let partnerId: string
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  mine = await harness.addPartner('Float')
  partnerId = mine.partner.id
})

const gbp = (amount: bigint) => ({ amount, currency: 'GBP' as const })
const unknownPartner = 'par_01kah4pzc5e4r8v2m6t0x9y3bd'
const inTx = <T>(work: Parameters<ReturnType<Harness['db']['transaction']>['execute']>[0]) =>
  harness.inTx(work) as Promise<T>
const fund = (amount: bigint) =>
  inTx(tx => float.fund(tx, { partnerId, amount: gbp(amount), now: harness.clock.now() }))
const takeOut = (amount: bigint) =>
  inTx(tx => float.withdraw(tx, { partnerId, amount: gbp(amount), now: harness.clock.now() }))
const setFloor = (floor: bigint | null) =>
  inTx(tx => float.setFloor(tx, { partnerId, currency: 'GBP', floor, now: harness.clock.now() }))
const show = async (currency: Currency = 'GBP') =>
  (await float.read(harness.db, partnerId)).find(each => each.currency === currency)
const addMember = (available: number) => harness.addMember({ available, key: mine.key })
const intentOf = (memberId: string) => harness.createIntent({ key: mine.key, memberId })
const complete = (id: string, headers = {}) => harness.requestCompletion(id, { key: mine.key, headers })
const balance = async (memberId: string) =>
  (await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key: mine.key })).body
const watch = () =>
  floatTasks['watch-floats']({ db: harness.db, log: harness.app.log as never, now: harness.clock.now })
const lowEvents = async () =>
  await harness.db
    .selectFrom('events')
    .select(['data', 'sequence'])
    .where('partnerId', '=', partnerId)
    .where('type', '=', 'float.low')
    .where('resourceId', '=', partnerId)
    .orderBy('sequence')
    .execute()

test('a completion that crosses the floor never waits for the partner’s row in a shared batch', async () => {
  await fund(10_000n)
  await setFloor(6_000n)
  const intentId = await intentOf(await addMember(12_000))
  const command = {
    partner: { ...mine.partner, holdSeconds: 60 },
    intentId,
    now: harness.clock.now(),
    clockOffsetMs: 0,
  }
  const completing = (waits: boolean) =>
    inTx(tx =>
      completeAll(tx, [command], { waits, banks: { hasRail: () => true }, schedule: new SubmissionSchedule() }),
    )
  const [isLocked, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holder = inTx(async tx => {
    await tx.selectFrom('partners').select('id').where('id', '=', partnerId).forNoKeyUpdate().execute()
    isLocked.resolve()
    await end.promise
  })
  await isLocked.promise
  // Fails at once: a time-out would say 'canceling statement due to lock timeout'.
  await expect(completing(false)).rejects.toThrow(/could not obtain lock on row in relation "partners"/)
  const waiting = completing(true)
  end.resolve()
  await holder
  await waiting
  expect(await lowEvents()).toHaveLength(1)
})

describe('a float', () => {
  test('is what was funded; a completed withdrawal is pending at once and leaves the float when it is paid', async () => {
    await fund(100_000n)
    expect(await show()).toMatchObject({ float: 100_000n, pending: 0n, free: 100_000n, floor: null, lowSince: null })
    const completed = await complete(await intentOf(await addMember(12_000)))
    expect(await show()).toMatchObject({ float: 100_000n, pending: 4_950n, free: 95_050n })
    const withdrawalId = completed.headers.location?.split('/').at(-1) ?? ''
    harness.clock.advance({ minutes: 5 })
    await inTx(tx => withdrawals.submitDue(tx, claimingAt(harness.clock.now(), mine.partner.id)))
    const about = { partnerId, withdrawalId, reason: null, now: harness.clock.now() }
    await inTx(tx => withdrawals.applyBankReport(tx, { ...about, outcome: 'paid' }))
    expect(await show()).toMatchObject({ float: 95_050n, pending: 0n, free: 95_050n })
    await inTx(tx => withdrawals.applyBankReport(tx, { ...about, outcome: 'returned' }))
    expect(await show()).toMatchObject({ float: 100_000n, pending: 0n, free: 100_000n })
  })

  test('is one per currency, and there is none in a currency without a tier', async () => {
    await inTx(tx => float.fund(tx, { partnerId, amount: { amount: 7n, currency: 'EUR' }, now: harness.clock.now() }))
    expect((await float.read(harness.db, partnerId)).map(({ currency, free }) => `${free} ${currency}`)).toEqual([
      '7 EUR',
      '0 GBP',
    ])
    const usd = { amount: 7n, currency: 'USD' } as const
    await expect(inTx(tx => float.fund(tx, { partnerId, amount: usd, now: harness.clock.now() }))).rejects.toThrow(
      'no tier in USD',
    )
  })

  test('never releases more than is free', async () => {
    await fund(10_000n)
    await complete(await intentOf(await addMember(12_000)))
    await expect(takeOut(5_051n)).rejects.toThrow('Only 50.50 GBP is free')
    await takeOut(5_050n)
    expect(await show()).toMatchObject({ float: 4_950n, pending: 4_950n, free: 0n })
  })

  test('two concurrent withdrawals from a float are serialised, and together never take more than is free', async () => {
    await fund(10_000n)
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => takeOut(3_000n)))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    expect(await show()).toMatchObject({ free: 1_000n })
  })

  test('moves once for each reference, in either direction and however often it is repeated', async () => {
    const moving = (move: typeof float.fund, amount: bigint, reference = 'transfer 17') =>
      inTx<float.Moved>(tx => move(tx, { partnerId, amount: gbp(amount), reference, now: harness.clock.now() }))
    const all = await Promise.all(Array.from({ length: 8 }, () => moving(float.fund, 10_000n)))
    expect(all.filter(({ isRepeated }) => !isRepeated)).toHaveLength(1)
    expect(new Set(all.map(({ movementId }) => movementId)).size).toBe(1)
    expect(await show()).toMatchObject({ float: 10_000n })

    await expect(moving(float.fund, 10_001n)).rejects.toThrow('belongs to another movement (fund 100.00 GBP')
    await expect(moving(float.withdraw, 10_000n)).rejects.toThrow('belongs to another movement')
    // Repeating it gives the same result even when no more is free.
    await moving(float.withdraw, 10_000n, 'sweep 1')
    expect(await moving(float.withdraw, 10_000n, 'sweep 1')).toMatchObject({ isRepeated: true })
    expect(await show()).toMatchObject({ float: 0n })

    const other = await harness.addPartner('Same reference')
    const theirs = await inTx<float.Moved>(tx =>
      float.fund(tx, {
        partnerId: other.partner.id,
        amount: gbp(1n),
        reference: 'transfer 17',
        now: harness.clock.now(),
      }),
    )
    expect(theirs.isRepeated).toBe(false)
  })

  test('is limited to what JSON can represent exactly', async () => {
    const most = BigInt(Number.MAX_SAFE_INTEGER)
    await fund(1n)
    await expect(fund(most)).rejects.toThrow('add at most 90071992547409.90 GBP')
    expect(await show()).toMatchObject({ float: 1n })
    await fund(most - 1n)
    expect(await show()).toMatchObject({ float: most })
  })

  test('of an unknown partner, or by an amount of zero, is not moved', async () => {
    const now = harness.clock.now()
    await expect(inTx(tx => float.fund(tx, { partnerId: unknownPartner, amount: gbp(1n), now }))).rejects.toThrow(
      'There is no partner',
    )
    await expect(fund(0n)).rejects.toThrow('at least one minor unit')
    await expect(takeOut(0n)).rejects.toThrow('at least one minor unit')
  })
})

describe('below its floor', () => {
  test('intents and completions are refused with a retry time, and the balance says so', async () => {
    const memberId = await addMember(12_000)
    await fund(20_000n)
    const pending = await intentOf(memberId)
    await setFloor(20_000n)
    expect(await intentOf(memberId)).toMatch(/^wi_/)
    await setFloor(20_001n)
    for (const answer of [await harness.requestIntent({ key: mine.key, memberId }), await complete(pending)]) {
      expect(answer.status).toBe(422)
      expect(answer.body.issues).toEqual([
        { code: 'UnprocessableEntity', message: expect.stringContaining('temporarily unavailable') },
      ])
      expect(answer.headers['retry-after']).toBe('300')
    }
    expect(await balance(memberId)).toMatchObject({ available: { amount: 12_000 }, isTemporarilyUnavailable: true })
    await fund(1n)
    expect(await balance(memberId)).toMatchObject({ isTemporarilyUnavailable: false })
    expect((await complete(pending)).status).toBe(201)
  })

  test('a refused completion leaves its idempotency key unused, and succeeds once the float is funded', async () => {
    const memberId = await addMember(12_000)
    const pending = await intentOf(memberId)
    await setFloor(1n)
    const headers = { 'x-idempotency-key': 'again' }
    expect((await complete(pending, headers)).status).toBe(422)
    await fund(10_000n)
    const answer = await complete(pending, headers)
    expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([201, undefined])
    expect((await complete(pending, headers)).headers['idempotency-replayed']).toBe('true')
  })

  test('only this partner’s members in that currency are refused', async () => {
    const memberId = await harness.addMember({ available: 12_000, key: mine.key, tier: 'Silver EU', currency: 'EUR' })
    await setFloor(1n)
    expect((await harness.requestIntent({ key: mine.key, memberId, currency: 'EUR' })).status).toBe(201)
    const foreign = await harness.addMember({ available: 12_000 })
    expect((await harness.call('GET', `/v1/pay/members/${foreign}/balance`)).body.isTemporarilyUnavailable).toBe(false)
  })

  test('a partner without a floor withdraws without a float', async () => {
    const memberId = await addMember(12_000)
    expect((await complete(await intentOf(memberId))).status).toBe(201)
    expect(await show()).toMatchObject({ float: 0n, free: -4_950n })
  })
})

describe('a fall below the floor emits one event', () => {
  test('in the transaction of the withdrawal that causes it; the next one is refused and emits none', async () => {
    await fund(20_000n)
    await setFloor(12_000n)
    const [first, second, third] = [await addMember(9_000), await addMember(9_000), await addMember(9_000)]
    await complete(await intentOf(first))
    expect(await lowEvents()).toEqual([])
    const pending = await intentOf(third)
    await complete(await intentOf(second))
    const data = { free: { amount: 10_100, currency: 'GBP' }, floor: { amount: 12_000, currency: 'GBP' } }
    expect(await lowEvents()).toEqual([{ sequence: 1, data }])
    expect((await complete(pending)).status).toBe(422)
    expect(await show()).toMatchObject({ lowSince: harness.clock.now() })
    await fund(5_000n)
    expect(await show()).toMatchObject({ lowSince: null })
    expect(await lowEvents()).toHaveLength(1)
    await complete(pending)
    expect(await lowEvents()).toMatchObject([{ sequence: 1 }, { sequence: 2, data: { free: { amount: 10_150 } } }])
  })

  test('when money is taken out, and when the floor is raised', async () => {
    await fund(20_000n)
    await setFloor(15_000n)
    await takeOut(5_000n)
    expect(await lowEvents()).toEqual([])
    await takeOut(1n)
    await takeOut(1n)
    expect(await lowEvents()).toHaveLength(1)
    await setFloor(10_000n)
    await setFloor(14_999n)
    await setFloor(15_500n)
    expect(await lowEvents()).toHaveLength(2)
    await setFloor(null)
    expect(await show()).toMatchObject({ floor: null, lowSince: null })
  })

  test('when two withdrawals cross it only together: both succeed, and the watch task emits it once', async () => {
    await fund(20_000n)
    await setFloor(11_000n)
    const [first, second] = [await addMember(9_000), await addMember(9_000)]
    const [one, other] = [await intentOf(first), await intentOf(second)]
    await inTx(async tx => {
      await completeIn(tx, { partner: mine.partner, intentId: one, now: harness.clock.now(), clockOffsetMs: 0 })
      expect((await complete(other)).status).toBe(201)
    })
    expect(await show()).toMatchObject({ free: 10_100n, lowSince: null })
    expect((await harness.requestIntent({ key: mine.key, memberId: first, amount: 1_000 })).status).toBe(422)
    await Promise.all([watch(), watch()])
    expect(await lowEvents()).toHaveLength(1)
    expect(await show()).toMatchObject({ lowSince: harness.clock.now() })
  })

  test('when ten concurrent withdrawals each cross it', async () => {
    await fund(12_000n)
    const members = await Promise.all(Array.from({ length: 10 }, () => addMember(9_000)))
    const pending = await Promise.all(members.map(memberId => intentOf(memberId)))
    await setFloor(12_000n)
    await Promise.all(pending.map(id => complete(id)))
    expect(await lowEvents()).toHaveLength(1)
  })

  test('a refund ends it within one run of the watch task', async () => {
    await fund(20_000n)
    const completed = await complete(await intentOf(await addMember(9_000)))
    await setFloor(16_000n)
    const withdrawalId = completed.headers.location?.split('/').at(-1) ?? ''
    await inTx(tx => withdrawals.cancel(tx, { partnerId, withdrawalId, now: harness.clock.now() }))
    expect((await harness.requestIntent({ key: mine.key, memberId: await addMember(9_000) })).status).toBe(201)
    await watch()
    expect(await show()).toMatchObject({ lowSince: null })
    expect(await lowEvents()).toHaveLength(1)
  })
})

test('a manually paused partner is refused in the same way, until it is resumed', async () => {
  const memberId = await addMember(12_000)
  const pending = await intentOf(memberId)
  await inTx(tx => pausePartner(tx, partnerId))
  for (const answer of [await harness.requestIntent({ key: mine.key, memberId }), await complete(pending)]) {
    expect(answer.status).toBe(422)
    expect(answer.body.issues[0].code).toBe('UnprocessableEntity')
    expect(answer.headers['retry-after']).toBe('300')
  }
  expect((await balance(memberId)).isTemporarilyUnavailable).toBe(true)
  await inTx(tx => resumePartner(tx, partnerId))
  expect((await complete(pending)).status).toBe(201)
  await expect(inTx(tx => pausePartner(tx, unknownPartner))).rejects.toThrow('There is no partner')
})
