import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import { readStatement } from './statement.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const unknownMember = 'mem_01kah4pzc5e4r8v2m6t0x9y3bd'
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const balance = (available: number, owed = 0) => ({ available: gbp(available), owed: gbp(owed) })
const statement = (memberId: string, query = '', options = {}) =>
  harness.call('GET', `/v1/pay/members/${memberId}/statement${query}`, options)
const pay = (memberId: string, amount: number) =>
  harness.call('POST', '/v1/pay/run', { body: { payDetails: [{ memberId, money: gbp(amount) }] } })

/** A member who is paid, withdraws, and gets a correction beyond the available balance, a minute apart. */
async function memberWithHistory() {
  const memberId = await harness.addMember()
  const payRun = locatedId(await pay(memberId, 12_000))
  const paidAt = harness.clock.now()
  harness.clock.advance({ minutes: 1 })
  const withdrawalId = await harness.withdraw({ memberId, amount: 5_000 })
  const withdrawnAt = harness.clock.now()
  harness.clock.advance({ minutes: 1 })
  const correction = locatedId(await pay(memberId, -7_500))
  return { memberId, payRun, paidAt, withdrawalId, withdrawnAt, correction }
}

describe('a statement', () => {
  test('has every line with its change and the balance after it, newest first', async () => {
    const { memberId, payRun, withdrawalId, correction } = await memberWithHistory()
    const { status, body } = await statement(memberId)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      ...{ memberId, asOf: harness.clock.now().toISOString(), hasMore: false, skip: 0, take: 50 },
      ...{ opening: balance(0), closing: balance(0, 500) },
    })
    const lines = body.lines.map((line: { change: unknown }) => line.change)
    expect(lines).toHaveLength(5)
    expect(body.lines[4]).toEqual({
      ...{ id: expect.stringMatching(/^tr_/), movementId: payRun, reason: 'pay_run.available' },
      ...{ createdAt: expect.any(String), change: balance(12_000), balanceAfter: balance(12_000) },
    })
    expect(body.lines.slice(2, 4)).toMatchObject([
      { movementId: withdrawalId, reason: 'withdrawal.held', balanceAfter: balance(7_000) },
      { movementId: withdrawalId, reason: 'withdrawal.held' },
    ])
    expect(lines.slice(2, 4)).toEqual(expect.arrayContaining([balance(-4_950), balance(-50)]))
    expect(body.lines.slice(0, 2).map((line: { movementId: string }) => line.movementId)).toEqual([
      correction,
      correction,
    ])
    expect(lines.slice(0, 2)).toEqual(expect.arrayContaining([balance(-7_000), balance(0, 500)]))
  })

  test('as of an instant includes that instant and ignores later transfers', async () => {
    const { memberId, paidAt, withdrawnAt } = await memberWithHistory()
    const asOf = async (instant: Date) => (await statement(memberId, `?asOf=${instant.toISOString()}`)).body
    expect((await asOf(new Date(paidAt.getTime() - 1))).lines).toEqual([])
    expect(await asOf(paidAt)).toMatchObject({ closing: balance(12_000), lines: [{ change: balance(12_000) }] })
    expect(await asOf(withdrawnAt)).toMatchObject({ opening: balance(0), closing: balance(7_000) })
    const nanoBefore = new Date(withdrawnAt.getTime() - 1).toISOString().replace('Z', '999999Z')
    expect((await statement(memberId, `?asOf=${nanoBefore}`)).body).toMatchObject({ closing: balance(12_000) })
    const before = await asOf(withdrawnAt)
    await pay(memberId, 3_000)
    expect(await asOf(withdrawnAt)).toEqual(before)
    expect((await statement(memberId)).body.closing).toEqual(balance(2_500))
  })

  test('is in booking order, even if the request that was booked later began earlier', async () => {
    const memberId = await harness.addMember()
    const began = harness.clock.now()
    harness.clock.advance({ seconds: 2 })
    await pay(memberId, 6_000)
    const paidAt = harness.clock.now()
    // A request that waited for the lock keeps the instant at which it arrived.
    harness.clock.set(began)
    await harness.withdraw({ memberId, amount: 5_000 })
    const { body } = await statement(memberId, `?asOf=${paidAt.toISOString()}`)
    expect(
      body.lines.map((line: { balanceAfter: { available: { amount: number } } }) => line.balanceAfter.available),
    ).toEqual([gbp(1_000), gbp(1_050), gbp(6_000)])
    expect(body).toMatchObject({ opening: balance(0), closing: balance(1_000) })
    harness.clock.set(paidAt)
  })

  test('is paged without repeating or skipping a line, and each page continues the balance of the previous one', async () => {
    const memberId = await harness.addMember()
    // All in one millisecond, so only the booking order is left.
    for (let amount = 1_000; amount < 1_008; amount++) await pay(memberId, amount)
    await harness.withdraw({ memberId, amount: 2_000 })
    const all = (await statement(memberId)).body
    expect(all.lines).toHaveLength(10)
    for (const { balanceAfter } of all.lines) expect(balanceAfter.available.amount).toBeGreaterThanOrEqual(0)
    const { asOf } = all
    const pages = await Promise.all(
      [0, 4, 8, 12].map(async skip => (await statement(memberId, `?asOf=${asOf}&skip=${skip}&take=4`)).body),
    )
    expect(pages.flatMap(page => page.lines)).toEqual(all.lines)
    expect(pages.map(page => page.hasMore)).toEqual([true, true, false, false])
    expect(pages[0].closing).toEqual(all.closing)
    expect(pages[1].closing).toEqual(pages[0].opening)
    expect(pages[2].closing).toEqual(pages[1].opening)
    expect(pages[2].opening).toEqual(balance(0))
    expect(pages[3]).toMatchObject({ lines: [], opening: balance(0), closing: balance(0) })
  })

  test('is empty for a member without transfers, and in another currency', async () => {
    const memberId = await harness.addMember()
    expect((await statement(memberId)).body).toMatchObject({ lines: [], closing: balance(0), hasMore: false })
    await pay(memberId, 1_000)
    const euros = (await statement(memberId, '?currency=EUR')).body
    expect(euros).toMatchObject({ lines: [], closing: { available: { amount: 0, currency: 'EUR' } } })
  })

  test('of another partner’s member is not found, exactly as one that does not exist', async () => {
    const memberId = await harness.addMember({ available: 1_000 })
    const { key } = harness.other
    const [foreign, missing] = [await statement(memberId, '', { key }), await statement(unknownMember, '', { key })]
    expect(foreign.status).toBe(404)
    expect(foreign.body.issues[0].code).toBe('MemberNotFound')
    expect(foreign.text.replace(memberId, unknownMember)).toBe(missing.text)
  })

  test('with an idempotency key is replayed', async () => {
    const memberId = await harness.addMember({ available: 1_000 })
    const headers = { 'x-idempotency-key': `statement ${memberId}`.replace(' ', '-') }
    const first = await statement(memberId, '', { headers })
    await pay(memberId, 1_000)
    const second = await statement(memberId, '', { headers })
    expect([second.text, second.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
  })

  test.each(['asOf=yesterday', 'asOf=2016-12-31T23:59:60Z', 'asOf=2026-03-31', 'currency=gbp', 'take=0', 'from=1'])(
    'refuses the query %s',
    async query => {
      const { status, body } = await statement(unknownMember, `?${query}`)
      expect(status).toBe(400)
      expect(body.issues[0]).toMatchObject({ code: 'QueryValidation', path: query.split('=')[0] })
    },
  )
})

test('the statement of a member, which looks into every month, is planned once per connection for all members', async () => {
  const { memberId } = await memberWithHistory()
  const { db, clock, partner } = harness
  const { rows } = await db.connection().execute(async connection => {
    const read = () =>
      readStatement(connection, {
        ...{ partnerId: partner.id, memberId, currency: 'GBP', asOf: clock.now(), page: { skip: 0, take: 5 } },
      })
    // PostgreSQL compares five plans for given values with the generic one.
    for (let call = 1; call <= 8; call++) expect((await read()).lines).toHaveLength(5)
    return await sql<object>`
      select custom_plans <= 5 as is_planned_once, generic_plans >= 3 as is_kept from pg_prepared_statements
       where statement like '%with booked as%'`.execute(connection)
  })
  expect(rows).toEqual([{ isPlannedOnce: true, isKept: true }])
})
