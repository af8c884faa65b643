import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'

let harness: Harness
let second: Awaited<ReturnType<Harness['startSecond']>>
beforeAll(async () => {
  harness = await startHarness()
  second = await harness.startSecond()
})
afterAll(async () => {
  await second.stop()
  await harness.stop()
})
beforeEach(() => harness.clock.advance({ minutes: 1 }))

const keyed = (key: string) => ({ headers: { 'x-idempotency-key': key } })
const balancesAfter = async (memberId: string) => {
  const { rows } = await sql<{ balanceAfter: bigint }>`
    select balance_after from withdrawals where member_id = ${memberId} order by balance_after desc`.execute(harness.db)
  return rows.map(row => Number(row.balanceAfter))
}
const countWithdrawals = async (memberId: string) =>
  (await harness.call('GET', `/v1/pay/withdrawals?memberId=${memberId}`)).body.withdrawals.length
const codesOf = (answers: ApiResponse[]) =>
  answers.map(({ status, body }) => (status === 201 ? 201 : body.issues[0].code))

/** Runs in a transaction that stays open while `meanwhile` runs. */
async function whileOpen<T>(statement: ReturnType<typeof sql>, meanwhile: () => Promise<T>): Promise<T> {
  return await harness.inTx(async tx => {
    await statement.execute(tx)
    return await meanwhile()
  })
}

test('each of many concurrent requests gets its own response: accepted, refused or repeated', async () => {
  const rich = await harness.addMember({ available: 20_000 })
  const poor = await harness.addMember({ available: 1_500 })
  const key = randomUUID()
  const unknown = 'mem_01kah4pzc5e4r8v2m6t0x9y3bd'
  const answers = await Promise.all([
    harness.requestIntent({ memberId: rich, amount: 5_000, ...keyed(key) }),
    harness.requestIntent({ memberId: unknown, amount: 1_000 }),
    harness.requestIntent({ memberId: poor, amount: 2_000 }),
    harness.requestIntent({ memberId: rich, amount: 999 }),
    harness.requestIntent({ memberId: poor, amount: 1_500 }),
    harness.requestIntent({ memberId: rich, amount: 5_000, ...keyed(key) }),
    harness.requestIntent({ memberId: rich, amount: 6_000, ...keyed(key) }),
  ])
  expect(codesOf(answers)).toEqual([
    ...[201, 'MemberNotFound', 'MemberInsufficientFunds', 'AmountBelowLowerLimit', 201, 201],
    'HeaderValidation',
  ])
  expect(answers[5]?.text).toBe(answers[0]?.text)
  expect(answers[5]?.headers['idempotency-replayed']).toBe('true')
})

test('two partners may use one idempotency key, at once or one after the other, and each gets its own response', async () => {
  const headers = { 'x-idempotency-key': randomUUID() }
  const partners = [harness.key, harness.other.key]
  const members = await Promise.all(partners.map(key => harness.addMember({ available: 20_000, key })))
  const request = (at: number) =>
    harness.requestIntent({ memberId: members[at] ?? '', amount: 5_000, key: partners[at], headers })
  const answers = await Promise.all([request(0), request(1)])
  expect(codesOf(answers)).toEqual([201, 201])
  expect(answers[0]?.text).not.toBe(answers[1]?.text)
  for (const at of [1, 0]) expect((await request(at)).text).toBe(answers[at]?.text)
})

test('concurrent completions of one member are decided one after the other, to the last penny', async () => {
  const memberId = await harness.addMember({ available: 10_500 })
  const pending = await Promise.all(Array.from({ length: 15 }, () => harness.createIntent({ memberId, amount: 1_000 })))
  const answers = await Promise.all(pending.map(id => harness.requestCompletion(id)))
  expect(codesOf(answers).filter(code => code === 201)).toHaveLength(10)
  expect(codesOf(answers).filter(code => code === 'MemberInsufficientFunds')).toHaveLength(5)
  expect(await harness.availableOf(memberId)).toBe(500)
  expect(await balancesAfter(memberId)).toEqual(Array.from({ length: 10 }, (_, index) => 9_500 - index * 1_000))
  expect(await harness.disagreements()).toEqual([])
})

test('two processes that complete for one member concurrently never pay out more than is available', async () => {
  const memberId = await harness.addMember({ available: 20_500 })
  const pending = await Promise.all(Array.from({ length: 40 }, () => harness.createIntent({ memberId, amount: 1_000 })))
  const answers = await Promise.all(
    pending.map((id, index) => (index % 2 === 0 ? harness : second).requestCompletion(id)),
  )
  expect(codesOf(answers).filter(code => code === 201)).toHaveLength(20)
  expect(codesOf(answers).filter(code => code === 'MemberInsufficientFunds')).toHaveLength(20)
  expect(await harness.availableOf(memberId)).toBe(500)
  // Each completion was decided on the balance that the previous one left, not only refused by the database once nothing was
  // left.
  expect(await balancesAfter(memberId)).toEqual(Array.from({ length: 20 }, (_, index) => 19_500 - index * 1_000))
  expect(await harness.disagreements()).toEqual([])
})

test('an intent completed many times concurrently, in two processes, is one withdrawal', async () => {
  const memberId = await harness.addMember({ available: 20_000 })
  const id = await harness.createIntent({ memberId, amount: 1_000 })
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? harness : second).requestCompletion(id)),
  )
  expect(codesOf(answers)).toEqual(Array(20).fill(201))
  expect(new Set(answers.map(({ headers }) => headers.location)).size).toBe(1)
  expect(await countWithdrawals(memberId)).toBe(1)
  expect(await harness.availableOf(memberId)).toBe(19_000)
})

test('an idempotency key used many times concurrently, in two processes, has one effect and one response', async () => {
  const memberId = await harness.addMember({ available: 20_000 })
  const key = randomUUID()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? harness : second).requestIntent({ memberId, amount: 1_000, ...keyed(key) }),
    ),
  )
  expect(codesOf(answers)).toEqual(Array(20).fill(201))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  const { rows } = await sql`select from withdrawal_intents where member_id = ${memberId}`.execute(harness.db)
  expect(rows).toHaveLength(1)
  const intentId = answers[0]?.body.withdrawalIntentId
  const [one, other] = await Promise.all([
    harness.requestCompletion(intentId, keyed(`${key}-complete`)),
    second.requestCompletion(intentId, keyed(`${key}-complete`)),
  ])
  expect([one.status, other.status, one.headers.location]).toEqual([201, 201, other.headers.location])
})

test('a key whose record has expired can be reused', async () => {
  const memberId = await harness.addMember({ available: 20_000 })
  const key = randomUUID()
  const first = await harness.requestIntent({ memberId, amount: 1_000, ...keyed(key) })
  await sql`update idempotency_keys set expires_at = ${harness.clock.now()} where key = ${key}`.execute(harness.db)
  const [anew, again] = await Promise.all([
    harness.requestIntent({ memberId, amount: 2_000, ...keyed(key) }),
    second.requestIntent({ memberId, amount: 2_000, ...keyed(key) }),
  ])
  expect([anew.status, again.text]).toEqual([201, anew.text])
  expect(anew.body.withdrawalIntentId).not.toBe(first.body.withdrawalIntentId)
})

test('a locked member does not delay other members, and is served afterwards', async () => {
  const [held, free] = [await harness.addMember({ available: 5_000 }), await harness.addMember({ available: 5_000 })]
  const [heldIntent, freeIntent] = [
    await harness.createIntent({ memberId: held, amount: 1_000 }),
    await harness.createIntent({ memberId: free, amount: 1_000 }),
  ]
  const waiting = await whileOpen(sql`select from members where id = ${held} for no key update`, async () => {
    const completing = harness.requestCompletion(heldIntent)
    expect((await harness.requestCompletion(freeIntent)).status).toBe(201)
    return { completing }
  })
  expect((await waiting.completing).status).toBe(201)
  expect(await harness.disagreements()).toEqual([])
})

test('a key in use by another process does not delay other requests, and is a conflict after two seconds', async () => {
  const memberId = await harness.addMember({ available: 5_000 })
  const key = randomUUID()
  const now = harness.clock.now()
  const unfinished = sql`
    insert into idempotency_keys (partner_id, key, fingerprint, operation, created_at, expires_at)
    values (${harness.partner.id}, ${key}, ${Buffer.alloc(32)}, 'createPayRun', ${now}, ${new Date(now.getTime() + 1e9)})`
  await whileOpen(unfinished, async () => {
    const waiting = harness.requestIntent({ memberId, amount: 1_000, ...keyed(key) })
    const neighbours = await Promise.all([
      harness.requestIntent({ memberId, amount: 1_000 }),
      harness.requestIntent({ memberId, amount: 2_000, ...keyed(`${key}-neighbour`) }),
    ])
    // Their batch was rolled back and run again: the responses, now and when repeated, match the stored rows.
    for (const { status, body } of [
      ...neighbours,
      await harness.requestIntent({ memberId, amount: 2_000, ...keyed(`${key}-neighbour`) }),
    ]) {
      expect(status).toBe(201)
      const path = `/v1/pay/withdrawals/intent/${body.withdrawalIntentId}`
      expect((await harness.call('GET', path)).status).toBe(200)
    }
    const { status, body } = await waiting
    expect([status, body.issues[0].message]).toEqual([409, expect.stringContaining('is still being processed')])
  })
})
