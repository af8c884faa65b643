import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { goodAccount } from '../../test/harness/samples.ts'
import { sql } from '../database/database.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const fuller = { prefer: 'return=representation' }
const paths = {
  intent: '/v1/pay/withdrawals/intent',
  complete: '/v1/pay/withdrawals/complete',
  list: '/v1/pay/withdrawals',
  tiers: '/v1/tiers',
}

const quote = (memberId: string, headers = {}) => harness.requestIntent({ memberId, headers })
const complete = (id: string, headers = {}) => harness.requestCompletion(id, { headers })
const get = async (path: string) => (await harness.call('GET', path)).body

describe('a caller that prefers the representation gets', () => {
  test('the whole withdrawal on completion, the same as a later read', async () => {
    const memberId = await harness.addMember({ available: 12_000, tier: 'Bronze' })
    const withdrawalIntentId = await harness.createIntent({ memberId })
    const completed = await complete(withdrawalIntentId, fuller)
    expect(completed).toMatchObject({ status: 201, headers: { 'preference-applied': 'return=representation' } })
    expect(completed.body).toEqual(await get(completed.headers.location ?? ''))
    expect(completed.body).toEqual({
      ...{ id: expect.stringMatching(/^w_/), withdrawalIntentId, memberId, payCycleId: harness.payCycle.id },
      ...{ status: 'held', amount: gbp(5_000), netAmount: gbp(4_900), fee: gbp(100), balanceAfter: gbp(7_000) },
      ...{ bankAccount: { lastFour: '4958' }, createdAt: '2026-03-10T09:00:00.000Z', metadata: {} },
      timeline: [{ status: 'held', at: '2026-03-10T09:00:00.000Z', reason: null }],
      // The end of the hold.
      expectedAt: '2026-03-10T09:00:30.000Z',
      // It has not been submitted yet.
      paymentReference: null,
    })
  })

  test('the current withdrawal if the intent was completed before', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const withdrawalIntentId = await harness.createIntent({ memberId })
    const { location = '' } = (await complete(withdrawalIntentId)).headers
    await harness.call('POST', `${location}/cancel`)
    const again = await complete(withdrawalIntentId, fuller)
    expect(again).toMatchObject({ status: 201, headers: { location } })
    expect(again.body).toEqual(await get(location))
    expect(again.body).toMatchObject({ status: 'cancelled', expectedAt: null })
  })

  test('its preferred shape, whatever other requests of the batch prefer', async () => {
    const memberId = await harness.addMember({ available: 50_000 })
    const [first = '', second = ''] = [
      await harness.createIntent({ memberId }),
      await harness.createIntent({ memberId }),
    ]
    const commands = [first, second].flatMap(id => [
      { id, headers: {} },
      { id, headers: fuller },
      { id, headers: fuller },
      { id, headers: {} },
    ])
    const answers = await Promise.all(commands.map(({ id, headers }) => complete(id, headers)))
    for (const [index, { status, body, headers }] of answers.entries()) {
      expect(status).toBe(201)
      const prefers = commands[index]?.headers === fuller
      expect(headers['preference-applied']).toBe(prefers ? 'return=representation' : undefined)
      if (prefers) expect(body).toMatchObject({ withdrawalIntentId: commands[index]?.id, status: 'held' })
      else expect(Object.keys(body)).toEqual(['message'])
    }
  })

  test('an intent with its expiry, and later its withdrawal', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const { status, headers, body } = await quote(memberId, fuller)
    expect(status).toBe(201)
    expect(headers).toMatchObject({ 'preference-applied': 'return=representation' })
    expect(body).toMatchObject({ memberId, status: 'pending', amount: gbp(5_000), accountDetails: goodAccount })
    expect(body).toMatchObject({ expiresAt: headers['x-intent-expires-at'], withdrawalId: null })
    const path = `${paths.intent}/${body.withdrawalIntentId}`
    expect(await get(path)).toEqual(body)
    const completed = await complete(body.withdrawalIntentId, fuller)
    expect(await get(path)).toMatchObject({ status: 'completed', withdrawalId: completed.body.id })
  })

  test('withdrawals with status, gross amount and last change', async () => {
    const memberId = await harness.addMember({ available: 50_000, tier: 'Bronze' })
    const first = await harness.withdraw({ memberId })
    harness.clock.advance({ seconds: 10 })
    await harness.call('POST', `${paths.list}/${first}/cancel`)
    const second = await harness.withdraw({ memberId })
    const query = `?memberId=${memberId}&statuses=cancelled&statuses=held`
    const { body, headers } = await harness.call('GET', `${paths.list}${query}`, { headers: fuller })
    expect(headers).toMatchObject({ 'preference-applied': 'return=representation' })
    const { createdAt } = await get(`${paths.list}/${first}`)
    const at = harness.clock.now().toISOString()
    const rest = {
      netAmount: gbp(4_900),
      fee: gbp(100),
      payCycleId: harness.payCycle.id,
      memberId,
      amount: gbp(5_000),
      metadata: {},
    }
    expect(body).toEqual({
      withdrawals: [
        { id: second, ...rest, createdAt: at, status: 'held', changedAt: at, reason: null },
        { id: first, ...rest, createdAt, status: 'cancelled', changedAt: at, reason: 'Cancelled by the partner' },
      ],
      ...{ hasMore: false, skip: 0, take: 50 },
    })
    const page = await harness.call('GET', `${paths.list}${query}&skip=1&take=1`, { headers: fuller })
    expect(page.body).toEqual({ withdrawals: [body.withdrawals[1]], hasMore: false, skip: 1, take: 1 })
  })

  test('tiers with their current currency, fees and limits', async () => {
    const partner = await harness.addPartner('Tiers')
    const { body, headers } = await harness.call('GET', paths.tiers, { key: partner.key, headers: fuller })
    expect(headers).toMatchObject({ 'preference-applied': 'return=representation' })
    expect(body.map(({ name, currency }: Record<string, string>) => `${name} ${currency}`)).toEqual([
      ...['Bronze GBP', 'Gold GBP', 'Silver GBP', 'Silver EU EUR'],
    ])
    expect(body[0]).toEqual({
      ...{ name: 'Bronze', version: 1, currency: 'GBP', feeFixed: gbp(50), feeBps: 100, feeMin: gbp(50) },
      ...{ feeMax: gbp(300), feePayer: 'member', lowerLimit: gbp(1_000), upperLimit: gbp(20_000) },
      ...{ withdrawalsPerDay: null, withdrawalsPerCycle: null, payoutSpeed: null },
    })
  })
})

describe('without the preference, or with another one,', () => {
  test.each([{}, { prefer: 'return=minimal' }, { prefer: 'respond-async' }, { prefer: '"' }])(
    'the published shapes are unchanged: %o',
    async headers => {
      const memberId = await harness.addMember({ available: 12_000 })
      const intent = await quote(memberId, headers)
      const { withdrawalIntentId } = intent.body
      expect(intent.text).toBe(
        JSON.stringify({
          ...{ withdrawalIntentId, netAmount: gbp(4_950), fee: gbp(50) },
          ...{ accountDetails: goodAccount, bankAccount: { lastFour: '4958' } },
        }),
      )
      const completed = await complete(withdrawalIntentId, headers)
      expect(completed.text).toBe('{"message":"The withdrawal is on its way"}')
      const id = completed.headers.location?.split('/').at(-1)
      const listed = await harness.call('GET', `${paths.list}?memberId=${memberId}&statuses=held`, { headers })
      const createdAt = harness.clock.now().toISOString()
      const item = { id, netAmount: gbp(4_950), fee: gbp(50), payCycleId: harness.payCycle.id, memberId, createdAt }
      expect(listed.text).toBe(JSON.stringify({ withdrawals: [item], hasMore: false, skip: 0, take: 50 }))
      const tiers = await harness.call('GET', paths.tiers, { headers })
      expect(tiers.body[0]).toEqual({ name: 'Bronze' })
      for (const answer of [intent, completed, listed, tiers]) {
        expect(answer.headers).not.toHaveProperty('preference-applied')
      }
    },
  )
})

describe('a repeated idempotency key', () => {
  const key = (name: string) => ({ 'x-idempotency-key': name })

  test('replays the stored shape, whatever the repeated request prefers', async () => {
    const memberId = await harness.addMember({ available: 50_000 })
    const requests = [
      { name: 'intent', send: (headers: object) => quote(memberId, headers) },
      { name: 'tiers', send: (headers: object) => harness.call('GET', paths.tiers, { headers: { ...headers } }) },
      ...[await harness.createIntent({ memberId }), await harness.createIntent({ memberId })].map((id, index) => ({
        ...{ name: `complete-${index}`, send: (headers: object) => complete(id, headers) },
      })),
    ]
    for (const [index, { name, send }] of requests.entries()) {
      const [before, after] = index % 2 === 0 ? [fuller, {}] : [{}, fuller]
      const first = await send({ ...before, ...key(name) })
      const again = await send({ ...after, ...key(name) })
      expect(first.status).toBeLessThan(300)
      expect(again).toMatchObject({ status: first.status, text: first.text })
      expect(again.headers).toMatchObject({ 'idempotency-replayed': 'true' })
      const applied = before === fuller ? 'return=representation' : undefined
      expect([first, again].map(({ headers }) => headers['preference-applied'])).toEqual([applied, applied])
    }
  })
})

describe('the list of withdrawals', () => {
  test('has the requested statuses, or by default all statuses that keep the funds', async () => {
    const memberId = await harness.addMember({ available: 100_000 })
    const all = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled']
    const ids = new Map<string, string>()
    for (const status of all) {
      const id = await harness.withdraw({ memberId })
      ids.set(status, id)
      const way = { held: [], returned: ['submitted', 'paid', 'returned'], cancelled: ['cancelled'] }[
        status as 'held'
      ] ?? [...new Set(['submitted', status])]
      for (const to of way) {
        await sql`update withdrawals set status = ${to}, due_at = case when ${to} = 'submitted' then due_at end
                   where id = ${id}`.execute(harness.db)
      }
    }
    const listed = async (...statuses: string[]) => {
      const query = statuses.map(status => `&statuses=${status}`).join('')
      const { withdrawals } = await get(`${paths.list}?memberId=${memberId}${query}`)
      return withdrawals.map(({ id }: { id: string }) => all.find(status => ids.get(status) === id)).toReversed()
    }
    expect(await listed()).toEqual(['held', 'submitted', 'paid'])
    for (const status of all) expect(await listed(status)).toEqual([status])
    expect(await listed(...all)).toEqual(all)
    expect(await listed('held', 'failed', 'cancelled')).toEqual(['held', 'failed', 'cancelled'])
    expect(await listed('submitted', 'held')).toEqual(['held', 'submitted'])
    expect(await listed('paid', 'returned')).toEqual(['paid', 'returned'])
  })

  test('refuses an unknown status', async () => {
    const { status, body } = await harness.call('GET', `${paths.list}?statuses=held&statuses=lost`)
    expect(status).toBe(400)
    expect(body.issues).toEqual([expect.objectContaining({ code: 'QueryValidation', path: 'statuses.1' })])
  })
})

test('a withdrawal and a list read the transfers of the withdrawals shown, by their index', async () => {
  const id = await harness.withdraw({ memberId: await harness.addMember({ available: 12_000 }) })
  const sent: { text: string; values: unknown[] }[] = []
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [text, values] = args as [unknown, unknown[]]
    if (typeof text === 'string' && /movement_id = \w+\.id/.test(text)) sent.push({ text, values })
    return query.apply(this, args)
  } as never)
  try {
    await get(`${paths.list}/${id}`)
    // Only this one: those that the tests above move to `submitted` have no payment.
    expect((await harness.call('GET', `${paths.list}?take=1`, { headers: fuller })).status).toBe(200)
  } finally {
    spy.mockRestore()
  }
  expect(sent).toHaveLength(2)
  const client = await harness.pool.connect()
  try {
    // A table of a few rows is scanned otherwise.
    await client.query('set enable_seqscan = off')
    for (const { text, values } of sent) {
      const { rows } = await client.query(`explain (costs off) ${text}`, values)
      expect(rows.map(row => row['QUERY PLAN']).join('\n')).toMatch(
        /using ledger_transfers_\w+_partner_id_movement_id_idx[^\n]*\n *Index Cond: .*movement_id/,
      )
    }
  } finally {
    await client.query('reset enable_seqscan')
    client.release()
  }
})
