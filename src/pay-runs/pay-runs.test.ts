import fc from 'fast-check'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId as idOf } from '../../test/harness/api-response.ts'
import { verifyResponse } from '../../test/harness/contract.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { insertMembers } from '../../test/harness/insert-members.ts'
import { breaking } from '../../test/harness/refusal.ts'
import { euAccount } from '../../test/harness/samples.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { extent } from '../../test/runner/extent.ts'
import { closeIfOver } from '../closing/closing.ts'
import { newId } from '../kernel/ids.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { payRunTasks } from './tasks.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const unknownPayRun = 'pr_01kah4pzc5e4r8v2m6t0x9y3bd'
const codes = (answer: { body: { issues: { code: string }[] } }) => answer.body.issues.map(issue => issue.code)

const pay = (lines: [string, number, string?][], key = harness.key) =>
  harness.call('POST', '/v1/pay/run', {
    key,
    body: {
      payDetails: lines.map(([memberId, amount, currency = 'GBP']) => ({ memberId, money: { amount, currency } })),
    },
  })
const revert = (id: string, options = {}) => harness.call('POST', `/v1/pay/runs/${id}/revert`, options)
const get = (id: string, options = {}) => harness.call('GET', `/v1/pay/runs/${id}`, options)

async function balance(memberId: string, currency = 'GBP') {
  const row = await harness.db
    .selectFrom('ledgerBalances')
    .select(['available', 'owed'])
    .where('memberId', '=', memberId)
    .where('currency', '=', currency as 'GBP')
    .executeTakeFirst()
  return { available: Number(row?.available ?? 0n), owed: Number(row?.owed ?? 0n) }
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

async function addMembers({ partner }: TestPartner, count: number): Promise<string[]> {
  const now = harness.clock.now()
  const ids = Array.from({ length: count }, () => newId('member', now))
  await insertMembers(harness.db, { partnerId: partner.id, members: ids.map(id => ({ id })), now })
  return ids
}

const makeDueAvailable = () =>
  payRunTasks['make-pay-runs-available']({ db: harness.db, now: harness.clock.now, log: pino({ level: 'silent' }) })

const typesOf = async (id: string) =>
  (await harness.db.selectFrom('events').select('type').where('resourceId', '=', id).orderBy('sequence').execute()).map(
    ({ type }) => type,
  )

describe('reverting', () => {
  test('a scheduled pay run moves no money, and it never becomes available', async () => {
    const mine = await harness.addPartner('Grace', { graceMinutes: 10 })
    const memberId = await harness.addMember({ key: mine.key })
    const payRun = await pay([[memberId, 5_000]], mine.key)
    expect(payRun.body.status).toBe('Scheduled')
    const reverted = await revert(idOf(payRun), { key: mine.key })
    expect(reverted.status).toBe(200)
    expect(reverted.body).toEqual({
      metadata: {},
      payCycleId: mine.payCycle.id,
      id: idOf(payRun),
      status: 'Reverted',
      scheduledFor: payRun.body.scheduledFor,
    })
    harness.clock.advance({ minutes: 11 })
    await makeDueAvailable()
    expect(await balance(memberId)).toEqual({ available: 0, owed: 0 })
    expect(await typesOf(idOf(payRun))).toEqual(['pay_run.scheduled', 'pay_run.reverted'])
    const found = await get(idOf(payRun), { key: mine.key })
    expect(found.body).toMatchObject({ status: 'Reverted', availableAt: null })
    expect(await harness.disagreements()).toEqual([])
  })

  test('an available pay run takes back what is left; the rest is owed and deducted from the next pay', async () => {
    const [drew, kept] = [await harness.addMember(), await harness.addMember()]
    const payRun = await pay([
      [drew, 10_000],
      [kept, 4_000],
    ])
    await harness.withdraw({ memberId: drew, amount: 8_000 })
    const reverted = await revert(idOf(payRun))
    expect(reverted.body).toMatchObject({ id: idOf(payRun), status: 'Reverted' })
    expect(await balance(drew)).toEqual({ available: 0, owed: 8_000 })
    expect(await balance(kept)).toEqual({ available: 0, owed: 0 })
    await pay([[drew, 10_000]])
    expect(await balance(drew)).toEqual({ available: 2_000, owed: 0 })
    expect(await typesOf(idOf(payRun))).toEqual(['pay_run.scheduled', 'pay_run.available', 'pay_run.reverted'])
    expect(await harness.disagreements()).toEqual([])
  })

  test('is idempotent: a second revert gives the same response and moves nothing', async () => {
    const memberId = await harness.addMember()
    const payRun = await pay([[memberId, 5_000]])
    const first = await revert(idOf(payRun))
    harness.clock.advance({ minutes: 1 })
    const again = await revert(idOf(payRun))
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(await balance(memberId)).toEqual({ available: 0, owed: 0 })
    expect(await typesOf(idOf(payRun))).toHaveLength(3)
  })

  test('concurrent reverts take effect once', async () => {
    const memberId = await harness.addMember()
    const payRun = await pay([[memberId, 5_000]])
    await pay([[memberId, 20_000]])
    const answers = await Promise.all(Array.from({ length: 8 }, () => revert(idOf(payRun))))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(await balance(memberId)).toEqual({ available: 20_000, owed: 0 })
  })

  test('replays the response for the same idempotency key', async () => {
    const memberId = await harness.addMember()
    const payRun = await pay([[memberId, 5_000]])
    const headers = { 'x-idempotency-key': 'revert-once' }
    await revert(idOf(payRun), { headers })
    const again = await revert(idOf(payRun), { headers })
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([200, 'true'])
    const other = await pay([[memberId, 5_000]])
    expect((await revert(idOf(other), { headers })).status).toBe(422)
  })

  test('takes back the original currency, even if the member’s currency has changed', async () => {
    const memberId = await harness.addMember()
    const payRun = await pay([[memberId, 5_000]])
    await harness.withdraw({ memberId, amount: 5_000 })
    // The member has no money left in pounds.
    await payOut()
    const changed = await harness.call('PATCH', `/v1/members/${memberId}`, {
      body: { tier: 'Silver EU', accountDetails: euAccount },
    })
    expect(changed.status).toBe(200)
    await pay([[memberId, 3_000, 'EUR']])
    expect((await revert(idOf(payRun))).status).toBe(200)
    expect(await balance(memberId, 'EUR')).toEqual({ available: 3_000, owed: 0 })
    expect(await balance(memberId)).toEqual({ available: 0, owed: 5_000 })
  })

  test('also reverses negative lines, even for offboarded members', async () => {
    const memberId = await harness.addMember({ available: 1_000 })
    const payRun = await pay([
      [memberId, 500],
      [memberId, -2_000],
    ])
    expect(await balance(memberId)).toEqual({ available: 0, owed: 500 })
    await harness.call('DELETE', `/v1/members/${memberId}`)
    expect((await revert(idOf(payRun))).status).toBe(200)
    expect(await balance(memberId)).toEqual({ available: 1_000, owed: 0 })
  })

  test('restores every balance if nothing else happened since the pay run', { timeout: 60_000 }, async () => {
    const members = await Promise.all([harness.addMember({ available: 300 }), harness.addMember({ available: 50 })])
    const before = await Promise.all(members.map(memberId => balance(memberId)))
    const line = fc.tuple(
      fc.constantFrom(...members),
      fc.integer({ min: -400, max: 400 }).filter(amount => amount !== 0),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 6 }), async lines => {
        const payRun = await pay(lines)
        await revert(idOf(payRun))
        expect(await Promise.all(members.map(memberId => balance(memberId)))).toEqual(before)
      }),
      { numRuns: extent({ short: 10, long: 200 }) },
    )
    expect(await harness.disagreements()).toEqual([])
  })

  test('is refused once its cycle has closed', async () => {
    const mine = await harness.addPartner('Closed')
    const memberId = await harness.addMember({ key: mine.key })
    const payRun = await pay([[memberId, 5_000]], mine.key)
    const now = new Date('2026-04-01T08:00:00Z')
    await harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: mine.partner.id, now }))
    const answer = await revert(idOf(payRun), { key: mine.key })
    expect([answer.status, codes(answer)]).toEqual([409, ['Conflict']])
    expect((await get(idOf(payRun), { key: mine.key })).body.status).toBe('Available')
  })

  test('another partner’s pay run is the same 404 as one that does not exist', async () => {
    const memberId = await harness.addMember()
    const payRun = await pay([[memberId, 5_000]])
    const { key } = harness.other
    for (const call of [revert, get]) {
      const [foreign, missing] = [await call(idOf(payRun), { key }), await call(unknownPayRun, { key })]
      expect([foreign.status, foreign.text]).toEqual([404, missing.text])
      const malformed = await call('pc_01kah4pzc5e4r8v2m6t0x9y3bd')
      expect(malformed.body.issues[0]).toMatchObject({ code: 'PathValidation', path: 'payRunId' })
      expect((await call(idOf(payRun), { key: null })).status).toBe(401)
    }
    expect((await get(idOf(payRun))).body.status).toBe('Available')
  })

  test('requires a key with write scope', async () => {
    const { secret } = await harness.addKey(['pay:read'])
    expect((await revert(unknownPayRun, { key: secret })).status).toBe(403)
    expect((await get(unknownPayRun, { key: secret })).status).toBe(404)
  })
})

describe('reading', () => {
  test('a pay run shows its timestamps, line count and totals', async () => {
    const [a, b] = [await harness.addMember(), await harness.addMember({ tier: 'Silver EU', account: euAccount })]
    const payRun = await pay([
      [a, 5_000],
      [a, -700],
      [b, 900, 'EUR'],
    ])
    const createdAt = harness.clock.now().toISOString()
    harness.clock.advance({ minutes: 5 })
    const revertedAt = harness.clock.now().toISOString()
    const details = {
      ...{ id: idOf(payRun), payCycleId: harness.payCycle.id, status: 'Available', scheduledFor: createdAt },
      ...{ createdAt, availableAt: createdAt, lineCount: 3, metadata: {} },
    }
    const totals = [{ amount: 900, currency: 'EUR' }, gbp(4_300)]
    expect((await get(idOf(payRun))).body).toEqual({ ...details, revertedAt: null, totals })
    await revert(idOf(payRun))
    expect((await get(idOf(payRun))).body).toEqual({ ...details, status: 'Reverted', revertedAt, totals })
  })

  test('pay runs are listed newest first, in pages, filtered by status and cycle', async () => {
    const mine = await harness.addPartner('Listing')
    const { key } = mine
    const memberId = await harness.addMember({ key })
    const ids: string[] = []
    for (let count = 0; count < 5; count++) {
      ids.unshift(idOf(await pay([[memberId, 100]], key)))
      harness.clock.advance({ minutes: 1 })
    }
    await revert(ids[1] ?? '', { key })
    const list = async (query: string) => (await harness.call('GET', `/v1/pay/runs?${query}`, { key })).body
    const idsOf = (body: { payRuns: { id: string }[] }) => body.payRuns.map(({ id }) => id)
    const all = await list('')
    expect(all).toMatchObject({ total: 5, skip: 0, take: 50 })
    expect(idsOf(all)).toEqual(ids)
    expect(Object.keys(all.payRuns[0]).sort()).toEqual(['id', 'metadata', 'payCycleId', 'scheduledFor', 'status'])
    expect([...idsOf(await list('take=3')), ...idsOf(await list('take=3&skip=3'))]).toEqual(ids)
    expect(await list('statuses=Reverted')).toMatchObject({ total: 1, payRuns: [{ id: ids[1] }] })
    expect((await list('statuses=Reverted&statuses=Available')).total).toBe(5)
    expect((await list(`payCycleId=${mine.payCycle.id}`)).total).toBe(5)
    expect((await list(`payCycleId=${harness.payCycle.id}`)).total).toBe(0)
    expect((await harness.call('GET', '/v1/pay/runs', { key: harness.other.key })).body.total).toBe(0)
  })

  test.each(['statuses=Done', 'payCycleId=x', 'take=0', 'memberId=x'])('refuses the query %s', async query => {
    const { status, body } = await harness.call('GET', `/v1/pay/runs?${query}`)
    expect(status).toBe(400)
    expect(body.issues[0].code).toBe('QueryValidation')
  })
})

describe('becoming available', () => {
  test('happens exactly once, when the grace period is over', async () => {
    const mine = await harness.addPartner('On time', { graceMinutes: 10 })
    const memberId = await harness.addMember({ key: mine.key })
    const payRun = await pay([[memberId, 5_000]], mine.key)
    harness.clock.advance({ minutes: 9 })
    await makeDueAvailable()
    expect(await balance(memberId)).toEqual({ available: 0, owed: 0 })
    harness.clock.advance({ minutes: 1 })
    await Promise.all([makeDueAvailable(), makeDueAvailable(), makeDueAvailable()])
    expect(await balance(memberId)).toEqual({ available: 5_000, owed: 0 })
    expect(await typesOf(idOf(payRun))).toEqual(['pay_run.scheduled', 'pay_run.available'])
  })

  test('concurrent with a revert, leaves no money behind', async () => {
    const mine = await harness.addPartner('Racing', { graceMinutes: 1 })
    const memberId = await harness.addMember({ key: mine.key })
    const ids: string[] = []
    for (let count = 0; count < 10; count++) ids.push(idOf(await pay([[memberId, 100]], mine.key)))
    harness.clock.advance({ minutes: 1 })
    const reverts = ids.map(id => revert(id, { key: mine.key }))
    await Promise.all([makeDueAvailable(), ...reverts])
    expect((await Promise.all(reverts)).map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(await balance(memberId)).toEqual({ available: 0, owed: 0 })
    expect(await harness.disagreements()).toEqual([])
  })

  test('a pay run whose total exceeds the largest safe number is refused', async () => {
    const memberId = await harness.addMember()
    const answer = await pay([
      [memberId, 9_007_199_254_740_991],
      [memberId, 1],
    ])
    expect([answer.status, codes(answer)]).toEqual([400, ['BodyValidation']])
    expect(answer.body.issues[0].path).toBe('payDetails')
  })
})

describe('uploading', () => {
  test('responds with one closed shape per status, and the location of the pay run', async () => {
    const mine = await harness.addPartner('Shapes', { graceMinutes: 10 })
    const [scheduled, available] = [
      await pay([[await harness.addMember({ key: mine.key }), 100]], mine.key),
      await pay([[await harness.addMember(), 100]]),
    ]
    const scheduledFor = new Date(harness.clock.now().getTime() + 10 * 60_000).toISOString()
    expect([scheduled.status, scheduled.body]).toEqual([
      201,
      { id: idOf(scheduled), payCycleId: mine.payCycle.id, status: 'Scheduled', scheduledFor },
    ])
    const ids = { id: idOf(available), payCycleId: harness.payCycle.id }
    expect([available.status, available.body]).toEqual([201, { ...ids, status: 'Available' }])
    expect(available.headers.location).toMatch(/^\/v1\/pay\/runs\/pr_/)
    const found = await harness.call('GET', scheduled.headers.location ?? '', { key: mine.key })
    expect(found.body).toMatchObject({ id: idOf(scheduled), status: 'Scheduled', scheduledFor })

    // The harness validates every response, and rejects a property of another shape.
    const odd = [{ status: 'Available', scheduledFor }, { status: 'Scheduled' }, { status: 'Reverted' }]
    for (const body of [...odd.map(shape => ({ ...ids, ...shape })), { status: 'Available' }]) {
      const text = JSON.stringify(body)
      expect(() => verifyResponse('POST', '/v1/pay/run', { ...available, body, text })).toThrow(/not as declared/)
    }
  })

  test('is replayed byte for byte for its idempotency key, with its location and original status', async () => {
    const mine = await harness.addPartner('Replayed', { graceMinutes: 10 })
    const payDetails = [{ memberId: await harness.addMember({ key: mine.key }), money: gbp(100) }]
    const upload = () =>
      harness.call('POST', '/v1/pay/run', {
        key: mine.key,
        body: { payDetails },
        headers: { 'x-idempotency-key': 'march, first half' },
      })
    const first = await upload()
    harness.clock.advance({ minutes: 10 })
    await makeDueAvailable()
    const second = await upload()
    expect([second.status, second.text, second.headers.location]).toEqual([201, first.text, first.headers.location])
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect((await get(idOf(first), { key: mine.key })).body.status).toBe('Available')
  })

  test('names every invalid line and stores nothing', async () => {
    const memberId = await harness.addMember()
    const inactive = await harness.addMember()
    await harness.call('DELETE', `/v1/members/${inactive}`)
    const foreign = await harness.addMember({ key: harness.other.key })
    const before = (await harness.call('GET', '/v1/pay/runs')).body.total

    const currency = await pay([[memberId, 100, 'EUR']])
    expect(currency.body.issues).toEqual([
      { code: 'BodyValidation', message: expect.any(String), path: 'payDetails.0.money.currency' },
    ])
    const ineligible = await pay([
      [memberId, 100],
      [inactive, 100],
      [foreign, 100],
      [foreign, 200],
    ])
    expect(ineligible.status).toBe(400)
    expect(ineligible.body.issues.map((issue: object) => issue)).toEqual(
      [inactive, foreign].map(id => ({ code: 'MemberNotEligible', message: expect.any(String), memberId: id })),
    )
    expect(await balance(memberId)).toEqual({ available: 0, owed: 0 })
    expect((await harness.call('GET', '/v1/pay/runs')).body.total).toBe(before)
  })

  test('accepts zero lines, which move nothing but count as lines', async () => {
    const mine = await harness.addPartner('Zeros', { graceMinutes: 10 })
    const [paid, unpaid] = [await harness.addMember({ key: mine.key }), await harness.addMember({ key: mine.key })]
    const payRun = await pay(
      [
        [paid, 0],
        [unpaid, 0],
        [paid, 100],
      ],
      mine.key,
    )
    expect(payRun.status).toBe(201)
    // The member has no pending money, so the currency may change.
    const moved = await harness.call('PATCH', `/v1/members/${unpaid}`, { key: mine.key, body: { tier: 'Silver EU' } })
    expect(moved.status).toBe(200)
    harness.clock.advance({ minutes: 10 })
    await makeDueAvailable()
    expect([await balance(paid), await balance(unpaid)]).toEqual([
      { available: 100, owed: 0 },
      { available: 0, owed: 0 },
    ])
    expect((await get(idOf(payRun), { key: mine.key })).body).toMatchObject({ lineCount: 3, totals: [gbp(100)] })
    expect((await revert(idOf(payRun), { key: mine.key })).status).toBe(200)
    expect(await balance(paid)).toEqual({ available: 0, owed: 0 })
    expect(await harness.disagreements()).toEqual([])
  })

  test('accepts an empty list as a pay run without lines', async () => {
    const payRun = await pay([])
    expect(payRun.status).toBe(201)
    expect((await get(idOf(payRun))).body).toMatchObject({ status: 'Available', lineCount: 0, totals: [] })
    expect((await revert(idOf(payRun))).body.status).toBe('Reverted')
    expect(await harness.disagreements()).toEqual([])
  })

  test('accepts 100,000 lines with generous white space, and no more', { timeout: 120_000 }, async () => {
    const mine = await harness.addPartner('Large', { graceMinutes: 10 })
    const memberIds = await addMembers(mine, 1_000)
    const payDetails = Array.from({ length: 100_000 }, (_, index) => ({
      memberId: memberIds[index % 1_000],
      money: gbp(index % 1_000),
    }))
    const raw = JSON.stringify({ payDetails }, null, 1)
    expect(raw.length).toBeGreaterThan(11_000_000)
    if (extent({ short: true, long: false })) {
      // Booking them takes seconds; here, only a line that could not be booked is refused.
      const unknown = await harness.call('POST', '/v1/pay/run', {
        key: mine.key,
        raw: raw.replace(memberIds[0] ?? '', 'mem_01kah4pzc5e4r8v2m6t0x9y3bd'),
      })
      expect(codes(unknown)).toEqual(['MemberNotEligible'])
    } else {
      const payRun = await harness.call('POST', '/v1/pay/run', { key: mine.key, raw })
      expect(payRun.status).toBe(201)
      const details = { status: 'Scheduled', lineCount: 100_000, totals: [gbp(49_950_000)] }
      expect((await get(idOf(payRun), { key: mine.key })).body).toMatchObject(details)
      // Otherwise later tests would make it available with their own pay runs.
      expect((await revert(idOf(payRun), { key: mine.key })).status).toBe(200)
    }

    const more = await harness.call('POST', '/v1/pay/run', {
      key: mine.key,
      body: { payDetails: [...payDetails, payDetails[0]] },
    })
    expect([codes(more), more.body.issues[0].path]).toEqual([['BodyValidation'], 'payDetails'])
  })

  test('books a large pay run in line order, across several statements', {
    timeout: 60_000,
  }, async () => {
    const mine = await harness.addPartner('Pieces')
    const memberIds = await addMembers(mine, 4_000)
    const [first = ''] = memberIds
    // The last line takes back more than the first one paid, and the rest is owed.
    const payRun = await pay([...memberIds.map((id): [string, number] => [id, 100]), [first, -150]], mine.key)
    expect((await get(idOf(payRun), { key: mine.key })).body).toMatchObject({
      lineCount: 4_001,
      totals: [gbp(399_850)],
    })
    expect([await balance(first), await balance(memberIds.at(-1) ?? '')]).toEqual([
      { available: 0, owed: 50 },
      { available: 100, owed: 0 },
    ])
    expect(await harness.disagreements()).toEqual([])
  })

  test('never raises a balance above the largest number on the wire, in one pay run or several', async () => {
    const memberId = await harness.addMember()
    const most = Number.MAX_SAFE_INTEGER
    expect(
      codes(
        await pay([
          [memberId, most],
          [memberId, 1],
        ]),
      ),
    ).toEqual(['BodyValidation'])
    expect((await pay([[memberId, most]])).status).toBe(201)
    expect(codes(await pay([[memberId, 1]]))).toEqual(['BodyValidation'])
    expect((await harness.call('GET', `/v1/pay/members/${memberId}/balance`)).body.available.amount).toBe(most)
    expect((await pay([[memberId, -most]])).status).toBe(201)
  })

  test('concurrent with a change of currency, exactly one of the two succeeds', async () => {
    for (let round = 0; round < 10; round++) {
      const memberId = await harness.addMember()
      const [paid, moved] = await Promise.all([
        pay([[memberId, 500]]),
        harness.call('PATCH', `/v1/members/${memberId}`, { body: { tier: 'Silver EU' } }),
      ])
      // Either the pay comes first and blocks the change, or the change comes first and the pay has the wrong currency.
      expect([
        [201, 400],
        [400, 200],
      ]).toContainEqual([paid.status, moved.status])
    }
  })

  test('concurrent with another change of the member, both succeed', async () => {
    const memberId = await harness.addMember()
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all([
        pay([[memberId, 500]]),
        harness.call('PATCH', `/v1/members/${memberId}`, { body: { firstName: `Sam ${round}` } }),
      ])
      expect(answers.map(answer => answer.status)).toEqual([201, 200])
    }
  })

  test('a pay run that cannot be booked does not delay another partner’s pay', async () => {
    const [stuck, fine] = [
      await harness.addPartner('Stuck', { graceMinutes: 10 }),
      await harness.addPartner('Fine', { graceMinutes: 10 }),
    ]
    const memberIds = [await harness.addMember({ key: stuck.key }), await harness.addMember({ key: fine.key })] as const
    await pay([[memberIds[0], 100]], stuck.key)
    await pay([[memberIds[1], 100]], fine.key)
    // Makes booking fail: the balance has no room left.
    await harness.db
      .insertInto('ledgerBalances')
      .values({
        partnerId: stuck.partner.id,
        memberId: memberIds[0],
        currency: 'GBP',
        available: BigInt(Number.MAX_SAFE_INTEGER),
        payCycleId: stuck.payCycle.id,
      })
      .execute()
    harness.clock.advance({ minutes: 10 })
    const context = { db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now }
    await expect(payRunTasks['make-pay-runs-available'](context)).rejects.toMatchObject(
      breaking('balance_fits_the_wire'),
    )
    expect(await balance(memberIds[1])).toEqual({ available: 100, owed: 0 })
    await harness.ownerDb.deleteFrom('ledgerBalances').where('partnerId', '=', stuck.partner.id).execute()
    await payRunTasks['make-pay-runs-available'](context)
    expect(await balance(memberIds[0])).toEqual({ available: 100, owed: 0 })
  })
})

test('a pay run with thousands of invalid lines is refused with a thousand issues and a closing one', async () => {
  const memberId = await harness.addMember()
  const count = 2_000
  const unknown = await pay(Array.from({ length: count }, () => [newId('member', harness.clock.now()), 100]))
  const wrongCurrency = await pay(Array.from({ length: count }, () => [memberId, 100, 'EUR']))
  for (const { status, body } of [unknown, wrongCurrency]) {
    expect(status).toBe(400)
    expect(body.issues).toHaveLength(1_001)
    expect(body.issues[1_000].message).toBe('and more; fix these issues first')
  }
})
