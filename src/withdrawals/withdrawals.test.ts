import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { breaking } from '../../test/harness/refusal.ts'
import { badAccount, euAccount, goodAccount, silver } from '../../test/harness/samples.ts'
import { closeIfOver } from '../closing/closing.ts'
import { sql } from '../database/database.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const intentPath = '/v1/pay/withdrawals/intent'
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const codes = (answer: { body: { issues: { code: string }[] } }) => answer.body.issues.map(issue => issue.code)
const unknownMember = 'mem_01kah4pzc5e4r8v2m6t0x9y3bd'
const unknownIntent = 'wi_01kah4pzc5e4r8v2m6t0x9y3bd'

describe('creating an intent', () => {
  test('quotes fee, net amount and account, and moves nothing', async () => {
    const memberId = await harness.addMember({ available: 12_000, tier: 'Bronze' })
    const answer = await harness.requestIntent({ memberId, amount: 10_000 })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      withdrawalIntentId: expect.stringMatching(/^wi_[0-7][0-9a-hjkmnp-tv-z]{25}$/),
      netAmount: gbp(9_850),
      fee: gbp(150),
      accountDetails: goodAccount,
      bankAccount: { lastFour: '4958' },
    })
    expect(await harness.availableOf(memberId)).toBe(12_000)
  })

  test('shows no fee if the employer pays it', async () => {
    const memberId = await harness.addMember({ available: 12_000, tier: 'Gold' })
    const { body } = await harness.requestIntent({ memberId })
    expect(body).toMatchObject({ netAmount: gbp(5_000), fee: gbp(0) })
  })

  test('names an EU account by its IBAN', async () => {
    const memberId = await harness.addMember({
      available: 12_000,
      tier: 'Silver EU',
      account: euAccount,
      currency: 'EUR',
    })
    const { status, body } = await harness.call('POST', intentPath, {
      body: { memberId, amount: { amount: 5_000, currency: 'EUR' } },
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({ accountDetails: euAccount, bankAccount: { lastFour: '3000' } })
  })

  test('several may be open at once, since none reserves funds', async () => {
    const memberId = await harness.addMember({ available: 5_000 })
    await harness.createIntent({ memberId })
    await harness.createIntent({ memberId })
    expect(await harness.availableOf(memberId)).toBe(5_000)
  })

  test('reports every problem of the body at once, each with its path', async () => {
    const { status, body } = await harness.call('POST', intentPath, {
      body: { memberId: 'wi_wrong', amount: { amount: '100', currency: 'XYZ', decimals: 2 }, note: 'hello' },
    })
    expect(status).toBe(400)
    expect(body.issues.map((issue: { code: string; path: string }) => `${issue.code} ${issue.path}`).sort()).toEqual([
      'BodyValidation amount.amount',
      'BodyValidation amount.currency',
      'BodyValidation amount.decimals',
      'BodyValidation memberId',
      'BodyValidation note',
    ])
  })

  test.each(['"100"', 'true', 'null', '1.5', '9007199254740992', '-9007199254740992', '1e2', '100.0', '[]', '{}'])(
    'refuses %s as an amount',
    async amount => {
      const raw = `{"memberId":"${unknownMember}","amount":{"amount":${amount},"currency":"GBP"}}`
      const { status, body } = await harness.call('POST', intentPath, { raw })
      expect(status).toBe(400)
      expect(body.issues[0]).toMatchObject({ code: 'BodyValidation', path: 'amount.amount' })
    },
  )

  test.each([0, -1, -5_000, -Number.MAX_SAFE_INTEGER])(
    'refuses an amount of %d as below the lower limit, and states the limit',
    async amount => {
      const memberId = await harness.addMember({ available: 12_000 })
      const { status, body } = await harness.requestIntent({ memberId, amount })
      expect(status).toBe(422)
      expect(body.issues).toEqual([
        { code: 'AmountBelowLowerLimit', message: expect.any(String), lowerLimit: gbp(1_000) },
      ])
    },
  )

  test('refuses an unknown member, and names the id', async () => {
    const { status, body } = await harness.requestIntent({ memberId: unknownMember })
    expect(status).toBe(404)
    expect(body.issues).toEqual([{ code: 'MemberNotFound', message: expect.any(String), memberId: unknownMember }])
  })

  test('responds to another partner’s member exactly as to an unknown one', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const foreign = await harness.requestIntent({ memberId, key: harness.other.key })
    const missing = await harness.requestIntent({ memberId: unknownMember, key: harness.other.key })
    expect(foreign.status).toBe(404)
    expect(foreign.text).toBe(missing.text.replace(unknownMember, memberId))
  })

  test('refuses an amount in another currency than the member is paid in', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const { status, body } = await harness.call('POST', intentPath, {
      body: { memberId, amount: { amount: 5_000, currency: 'EUR' } },
    })
    expect(status).toBe(400)
    expect(body.issues[0]).toMatchObject({ code: 'BodyValidation', path: 'amount.currency' })
  })

  test('refuses a member who is not active', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    await harness.call('DELETE', `/v1/members/${memberId}`)
    const { status, body } = await harness.requestIntent({ memberId })
    expect(status).toBe(422)
    expect(body.issues).toEqual([{ code: 'MemberNotEligible', message: expect.any(String), memberId }])
  })

  test('refuses a member without an account', async () => {
    const memberId = await harness.addMember({ available: 12_000, account: null })
    const answer = await harness.requestIntent({ memberId })
    expect(answer.status).toBe(422)
    expect(codes(answer)).toEqual(['BankAccountInvalid'])
  })

  test('refuses an account that fails its check, however it was set', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    await harness.setUncheckedAccount({ memberId, account: badAccount })
    const answer = await harness.requestIntent({ memberId })
    expect(answer.status).toBe(422)
    expect(codes(answer)).toEqual(['BankAccountInvalid'])
  })

  test('refuses amounts outside the limits, and states the limits', async () => {
    const memberId = await harness.addMember({ available: 30_000 })
    const below = await harness.requestIntent({ memberId, amount: 999 })
    expect(below.status).toBe(422)
    expect(below.body.issues).toEqual([
      { code: 'AmountBelowLowerLimit', message: expect.any(String), lowerLimit: gbp(1_000) },
    ])
    const above = await harness.requestIntent({ memberId, amount: 20_001 })
    expect(above.status).toBe(422)
    expect(above.body.issues).toEqual([
      { code: 'AmountAboveUpperLimit', message: expect.any(String), upperLimit: gbp(20_000) },
    ])
  })

  test('raises the minimum so that something is left after the fee', async () => {
    await harness.addTier('Small', { ...silver, lowerLimit: 1n })
    const memberId = await harness.addMember({ available: 12_000, tier: 'Small' })
    const { body } = await harness.requestIntent({ memberId, amount: 50 })
    expect(body.issues[0].lowerLimit).toEqual(gbp(51))
    expect((await harness.requestIntent({ memberId, amount: 51 })).body.netAmount).toEqual(gbp(1))
  })

  test('refuses more than is available', async () => {
    const memberId = await harness.addMember({ available: 4_999 })
    const { status, body } = await harness.requestIntent({ memberId })
    expect(status).toBe(422)
    expect(body.issues).toEqual([{ code: 'MemberInsufficientFunds', message: expect.any(String), memberId }])
  })

  test('is refused while on-demand pay is paused, and the balance says so', async () => {
    const mine = await harness.addPartner('Paused')
    const memberId = await harness.addMember({ available: 12_000, key: mine.key })
    await harness.db.updateTable('partners').set({ paused: true }).where('id', '=', mine.partner.id).execute()
    const answer = await harness.requestIntent({ memberId, key: mine.key })
    expect(answer.status).toBe(422)
    expect(codes(answer)).toEqual(['UnprocessableEntity'])
    const balance = await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key: mine.key })
    expect(balance.body.isTemporarilyUnavailable).toBe(true)
  })

  test('is refused while no pay cycle is open, as are the balance and a pay run', async () => {
    const mine = await harness.addPartner('Between cycles')
    const memberId = await harness.addMember({ key: mine.key })
    await harness.db
      .updateTable('payCycles')
      .set({ status: 'Closed', closedAt: harness.clock.now() })
      .where('id', '=', mine.payCycle.id)
      .execute()
    expect(codes(await harness.requestIntent({ memberId, key: mine.key }))).toEqual(['UnprocessableEntity'])
    expect(codes(await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key: mine.key }))).toEqual([
      'UnprocessableEntity',
    ])
    const body = { payDetails: [{ memberId, money: gbp(100) }] }
    expect(codes(await harness.call('POST', '/v1/pay/run', { body, key: mine.key }))).toEqual(['UnprocessableEntity'])
  })

  test('uses new tier terms at once, while an older intent keeps its fee', async () => {
    await harness.addTier('Changing', silver)
    const memberId = await harness.addMember({ available: 12_000, tier: 'Changing' })
    const before = await harness.requestIntent({ memberId, amount: 2_000 })
    await harness.addTier('Changing', { ...silver, feeFixed: 75n })
    expect((await harness.requestIntent({ memberId, amount: 2_000 })).body.fee).toEqual(gbp(75))
    await harness.requestCompletion(before.body.withdrawalIntentId)
    expect((await harness.call('GET', `/v1/pay/withdrawals?memberId=${memberId}`)).body.withdrawals[0].fee).toEqual(
      gbp(50),
    )
  })
})

describe('an intent', () => {
  test('expires although another transaction has locked it for hours, and the history is not read again', async () => {
    const expiredUntil = async () =>
      (await harness.db.selectFrom('withdrawalIntentExpiry').select('expiredUntil').executeTakeFirstOrThrow())
        .expiredUntil
    const memberId = await harness.addMember({ available: 12_000 })
    const id = await harness.createIntent({ memberId })
    const { body } = await harness.call('GET', `${intentPath}/${id}`)
    const status = async () =>
      (await harness.db.selectFrom('withdrawalIntents').select('status').where('id', '=', id).executeTakeFirst())
        ?.status
    harness.clock.advance({ minutes: 300 })
    await harness.inTx(async tx => {
      await sql`
        select from withdrawal_intents where partner_id = ${harness.partner.id} and id = ${id} for update`.execute(tx)
      await harness.runTask('expire-intents')
    })
    expect(await status()).toBe('pending')
    expect(await expiredUntil()).toEqual(new Date(body.expiresAt))
    await harness.runTask('expire-intents')
    expect(await status()).toBe('expired')
    expect(await expiredUntil()).toEqual(new Date(harness.clock.now().getTime() - 3_600_000))
  })

  test('can be read, and expires at the stated minute', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const id = await harness.createIntent({ memberId })
    const pending = await harness.call('GET', `${intentPath}/${id}`)
    expect(pending.body).toMatchObject({ status: 'pending', amount: gbp(5_000), tier: 'Silver', tierVersion: 1 })
    harness.clock.set(new Date(pending.body.expiresAt))
    expect((await harness.call('GET', `${intentPath}/${id}`)).body.status).toBe('expired')
    const refused = await harness.requestCompletion(id)
    expect(refused.status).toBe(409)
    expect(codes(refused)).toEqual(['Conflict'])
    expect(await harness.availableOf(memberId)).toBe(12_000)
  })

  test('can be cancelled repeatedly, and not completed afterwards', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const id = await harness.createIntent({ memberId })
    const cancelled = await harness.call('DELETE', `${intentPath}/${id}`)
    expect(cancelled.status).toBe(200)
    expect(cancelled.body.status).toBe('cancelled')
    expect((await harness.call('DELETE', `${intentPath}/${id}`)).body).toEqual(cancelled.body)
    expect((await harness.requestCompletion(id)).status).toBe(409)
  })

  test('that was completed cannot be cancelled', async () => {
    const id = await harness.createIntent({ memberId: await harness.addMember({ available: 12_000 }) })
    await harness.requestCompletion(id)
    expect((await harness.call('DELETE', `${intentPath}/${id}`)).status).toBe(409)
  })

  test('of another partner is not found, byte for byte like an unknown one', async () => {
    const id = await harness.createIntent({ memberId: await harness.addMember({ available: 12_000 }) })
    const { key } = harness.other
    for (const [method, path, body] of [
      ['GET', `${intentPath}/ID`],
      ['DELETE', `${intentPath}/ID`],
      ['POST', '/v1/pay/withdrawals/complete', { withdrawalIntentId: 'ID' }],
    ] as const) {
      const ask = (intent: string) =>
        harness.call(method, path.replace('ID', intent), {
          key,
          ...(body === undefined ? {} : { body: { withdrawalIntentId: intent } }),
        })
      const [foreign, missing] = [await ask(id), await ask(unknownIntent)]
      expect(foreign.status).toBe(404)
      expect(foreign.text).toBe(missing.text)
    }
  })
})

describe('completing', () => {
  test('debits the member and books net and fee', async () => {
    const memberId = await harness.addMember({ available: 12_000, tier: 'Bronze' })
    const id = await harness.createIntent({ memberId })
    const completed = await harness.requestCompletion(id)
    expect(completed.status).toBe(201)
    expect(completed.body).toEqual({ message: expect.any(String) })
    expect(await harness.availableOf(memberId)).toBe(7_000)
    const withdrawalId = completed.headers.location?.split('/').at(-1) ?? ''
    const transfers = await harness.db
      .selectFrom('ledgerTransfers')
      .select(['debit', 'credit', 'amount'])
      .where('movementId', '=', withdrawalId)
      .execute()
    expect(transfers).toHaveLength(2)
    expect(transfers).toContainEqual({ debit: 'member_available', credit: 'payouts_pending', amount: 4_900n })
    expect(transfers).toContainEqual({ debit: 'member_available', credit: 'fees', amount: 100n })
  })

  test('again gives the same response and moves nothing', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const id = await harness.createIntent({ memberId })
    const first = await harness.requestCompletion(id)
    harness.clock.advance({ days: 8 })
    const second = await harness.requestCompletion(id)
    expect([second.status, second.text, second.headers.location]).toEqual([201, first.text, first.headers.location])
    expect(await harness.availableOf(memberId)).toBe(7_000)
  })

  test('charges the employer if the employer pays the fee', async () => {
    const memberId = await harness.addMember({ available: 12_000, tier: 'Gold' })
    const completed = await harness.requestCompletion(await harness.createIntent({ memberId }))
    expect(await harness.availableOf(memberId)).toBe(7_000)
    const withdrawalId = completed.headers.location?.split('/').at(-1) ?? ''
    const transfers = await harness.db
      .selectFrom('ledgerTransfers')
      .select(['debit', 'credit', 'amount'])
      .where('movementId', '=', withdrawalId)
      .execute()
    expect(transfers).toContainEqual({ debit: 'partner_fees', credit: 'fees', amount: 50n })
    expect(transfers).toContainEqual({ debit: 'member_available', credit: 'payouts_pending', amount: 5_000n })
  })

  test('checks funds again: of two intents for the same money only one is paid', async () => {
    const memberId = await harness.addMember({ available: 6_000 })
    const [first, second] = [await harness.createIntent({ memberId }), await harness.createIntent({ memberId })]
    expect((await harness.requestCompletion(first)).status).toBe(201)
    const refused = await harness.requestCompletion(second)
    expect(refused.status).toBe(422)
    expect(codes(refused)).toEqual(['MemberInsufficientFunds'])
    expect(await harness.availableOf(memberId)).toBe(1_000)
  })

  test('is refused when the account has changed since the intent', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const id = await harness.createIntent({ memberId })
    await harness.call('PATCH', `/v1/members/${memberId}`, {
      body: { accountDetails: { ...goodAccount, accountHolder: 'Someone Else' } },
    })
    const refused = await harness.requestCompletion(id)
    expect(refused.status).toBe(409)
    expect(await harness.availableOf(memberId)).toBe(12_000)
  })

  test('is refused when the member has been offboarded since', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const id = await harness.createIntent({ memberId })
    await harness.call('DELETE', `/v1/members/${memberId}`)
    expect(codes(await harness.requestCompletion(id))).toEqual(['MemberNotEligible'])
  })

  test('is refused when the tier’s number of withdrawals is reached', async () => {
    await harness.addTier('Once a day', { ...silver, withdrawalsPerDay: 1 })
    const memberId = await harness.addMember({ available: 12_000, tier: 'Once a day' })
    const [first, second] = [
      await harness.createIntent({ memberId, amount: 2_000 }),
      await harness.createIntent({ memberId, amount: 2_000 }),
    ]
    expect((await harness.requestCompletion(first)).status).toBe(201)
    expect(codes(await harness.requestCompletion(second))).toEqual(['MemberNotEligible'])
    harness.clock.advance({ days: 1 })
    expect((await harness.requestCompletion(await harness.createIntent({ memberId, amount: 2_000 }))).status).toBe(201)
  })

  test('the tier’s withdrawals a day are counted from midnight where the partner is, and those a cycle in that cycle', async () => {
    const { partner, key } = await harness.addPartner('Kolkata', { timeZone: 'Asia/Kolkata' })
    const limits = { ...silver, withdrawalsPerDay: 1, withdrawalsPerCycle: 2 }
    await harness.addTier('Twice', limits, { partnerId: partner.id })
    const memberId = await harness.addMember({ available: 12_000, tier: 'Twice', key })
    const withdraw = () => harness.withdraw({ memberId, amount: 2_000, key })
    const startedAt = harness.clock.now()
    // 00:00 in Kolkata is 18:30 in UTC.
    harness.clock.set(new Date(`${startedAt.toISOString().slice(0, 10)}T18:29:00Z`))
    await withdraw()
    await expect(withdraw()).rejects.toThrow('MemberNotEligible')
    harness.clock.advance({ minutes: 1 })
    await withdraw()
    harness.clock.advance({ days: 1 })
    await expect(withdraw()).rejects.toThrow('2 withdrawals')
    harness.clock.set(startedAt)
  })

  test('the tier’s withdrawals a cycle do not include one of the cycle before, however recent', async () => {
    const { partner, key } = await harness.addPartner('Monthly', { timeZone: 'UTC' })
    await harness.addTier('Once a cycle', { ...silver, withdrawalsPerCycle: 1 }, { partnerId: partner.id })
    const memberId = await harness.addMember({ available: 12_000, tier: 'Once a cycle', key })
    const startedAt = harness.clock.now()
    harness.clock.set(new Date('2026-03-31T23:50:00Z'))
    await harness.withdraw({ memberId, amount: 2_000, key })
    harness.clock.set(new Date('2026-04-01T00:01:00Z'))
    await harness.inTx(tx => closeIfOver(tx, { partnerId: partner.id, now: harness.clock.now() }))
    const payDetails = [{ memberId, money: gbp(12_000) }]
    expect((await harness.call('POST', '/v1/pay/run', { key, body: { payDetails } })).status).toBe(201)
    await harness.withdraw({ memberId, amount: 2_000, key })
    harness.clock.set(startedAt)
  })

  test('a member who has moved to a tier in another currency withdraws what is available in that one', async () => {
    const memberId = await harness.addMember({ available: 5_000 })
    const pay = async (money: object) => {
      const paid = await harness.call('POST', '/v1/pay/run', { body: { payDetails: [{ memberId, money }] } })
      expect(paid.status).toBe(201)
    }
    await pay(gbp(-5_000))
    const body = { tier: 'Silver EU', accountDetails: euAccount }
    expect((await harness.call('PATCH', `/v1/members/${memberId}`, { body })).status).toBe(200)
    await pay({ amount: 8_000, currency: 'EUR' })
    await harness.withdraw({ memberId, amount: 8_000, currency: 'EUR' })
    expect(await harness.availableOf(memberId)).toBe(0)
  })
})

describe('concurrent requests', () => {
  test('twenty-five withdrawals of 10 from 100 become exactly ten', async () => {
    const memberId = await harness.addMember({ available: 10_000 })
    const intents = await Promise.all(
      Array.from({ length: 25 }, () => harness.createIntent({ memberId, amount: 1_000 })),
    )
    const answers = await Promise.all(intents.map(id => harness.requestCompletion(id)))
    expect(answers.filter(answer => answer.status === 201)).toHaveLength(10)
    expect(answers.filter(answer => answer.status === 422).flatMap(codes)).toEqual(
      Array(15).fill('MemberInsufficientFunds'),
    )
    expect(await harness.availableOf(memberId)).toBe(0)
  })

  test('twenty completions of one intent create one withdrawal, and all twenty return it', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const id = await harness.createIntent({ memberId })
    const answers = await Promise.all(Array.from({ length: 20 }, () => harness.requestCompletion(id)))
    expect(new Set(answers.map(answer => `${answer.status} ${answer.headers.location}`)).size).toBe(1)
    expect(await harness.availableOf(memberId)).toBe(7_000)
  })

  test('completing and cancelling one intent concurrently does exactly one of the two', async () => {
    const memberId = await harness.addMember({ available: 100_000 })
    for (let round = 0; round < 10; round++) {
      const before = await harness.availableOf(memberId)
      const id = await harness.createIntent({ memberId, amount: 1_000 })
      const [completed, cancelled] = await Promise.all([
        harness.requestCompletion(id),
        harness.call('DELETE', `${intentPath}/${id}`),
      ])
      expect([completed.status, cancelled.status].sort()).toEqual(completed.status === 201 ? [201, 409] : [200, 409])
      expect(await harness.availableOf(memberId)).toBe(completed.status === 201 ? before - 1_000 : before)
    }
  })
})

describe('listing', () => {
  test('pages through withdrawals newest first, without repeating or skipping one', async () => {
    const mine = await harness.addPartner('Lister')
    const memberId = await harness.addMember({ available: 50_000, key: mine.key })
    const other = await harness.addMember({ available: 50_000, key: mine.key })
    const started = harness.clock.now()
    for (let count = 0; count < 7; count++) {
      const intent = await harness.requestIntent({
        memberId: count === 3 ? other : memberId,
        amount: 1_000 + count,
        key: mine.key,
      })
      await harness.requestCompletion(intent.body.withdrawalIntentId, { key: mine.key })
      // Some share an instant: the id breaks the tie.
      if (count % 2 === 1) harness.clock.advance({ minutes: 1 })
    }
    const list = async (query: string) =>
      (await harness.call('GET', `/v1/pay/withdrawals?${query}`, { key: mine.key })).body
    const all = await list('')
    expect(all).toMatchObject({ hasMore: false, skip: 0, take: 50 })
    expect(all.withdrawals).toHaveLength(7)
    const times = all.withdrawals.map((withdrawal: { createdAt: string }) => withdrawal.createdAt)
    expect(times).toEqual(times.toSorted().toReversed())
    const paged = [await list('take=3'), await list('take=3&skip=3'), await list('take=3&skip=6')]
    expect(paged.flatMap(page => page.withdrawals)).toEqual(all.withdrawals)
    expect(paged.map(page => page.hasMore)).toEqual([true, true, false])

    expect((await list(`memberId=${other}`)).withdrawals).toHaveLength(1)
    expect((await list(`payCycleId=${mine.payCycle.id}`)).withdrawals).toHaveLength(7)
    const second = new Date(started.getTime() + 60_000).toISOString()
    expect((await list(`fromDate=${second}`)).withdrawals).toHaveLength(5)
    expect((await list(`toDate=${second}`)).withdrawals).toHaveLength(2)
    // A nanosecond later is after the withdrawals of this instant: `fromDate` excludes them, and `toDate` includes them.
    const justAfter = second.replace('.000Z', '.000000001Z')
    expect((await list(`fromDate=${justAfter}`)).withdrawals).toHaveLength(3)
    expect((await list(`toDate=${justAfter}`)).withdrawals).toHaveLength(4)

    const deprecated = await harness.call('GET', `/v1/pay/members/${memberId}/withdrawals?take=2&skip=1`, {
      key: mine.key,
    })
    expect(deprecated.body).toMatchObject({ skip: 1, take: 2, total: 6 })
    expect(deprecated.body.withdrawals).toHaveLength(2)
    expect(Object.keys(deprecated.body.withdrawals[0]).sort()).toEqual(['amount', 'createdAt', 'fee', 'payCycleId'])
  })

  test('the deprecated listing announces its deprecation, its sunset and its successor', async () => {
    const memberId = await harness.addMember()
    const { headers, body } = await harness.call('GET', `/v1/pay/members/${memberId}/withdrawals`)
    expect(body).toEqual({ withdrawals: [], skip: 0, take: 50, total: 0 })
    expect(headers.deprecation).toMatch(/^@\d+$/)
    expect(new Date(headers.sunset ?? '').getTime()).toBeGreaterThan(Number(headers.deprecation?.slice(1)) * 1000)
    expect(headers.link).toBe('</v1/pay/withdrawals>; rel="successor-version"')
  })

  test('another partner’s withdrawals and members are not visible', async () => {
    const memberId = await harness.addMember({ available: 12_000 })
    const completed = await harness.requestCompletion(await harness.createIntent({ memberId }))
    const { key } = harness.other
    expect((await harness.call('GET', completed.headers.location ?? '', { key })).status).toBe(404)
    expect((await harness.call('GET', '/v1/pay/withdrawals', { key })).body.withdrawals).toEqual([])
    expect((await harness.call('GET', `/v1/pay/withdrawals?memberId=${memberId}`, { key })).body.withdrawals).toEqual(
      [],
    )
    expect(codes(await harness.call('GET', `/v1/pay/members/${memberId}/withdrawals`, { key }))).toEqual([
      'MemberNotFound',
    ])
    expect(codes(await harness.call('GET', `/v1/pay/members/${memberId}/balance`, { key }))).toEqual(['MemberNotFound'])
  })

  test.each(['2024-01-01T00:00Z', '2024-01-01T00:00:00.123456Z', '2024-01-01T00:00:00.123456789Z', '2024-01-01'])(
    'takes %s as the bounds of a list and of a statement',
    async instant => {
      const memberId = await harness.addMember({ available: 1_000 })
      const query = `fromDate=${instant}&toDate=${instant}`
      expect((await harness.call('GET', `/v1/pay/withdrawals?${query}`)).status).toBe(200)
      const statement = await harness.call('GET', `/v1/pay/members/${memberId}/statement?asOf=${instant}`)
      expect(statement.status).toBe(instant.includes('T') ? 200 : 400)
    },
  )

  test('reports the accepted format of an instant, and that a day does not exist', async () => {
    const messageOf = async (query: string) =>
      (await harness.call('GET', `/v1/pay/withdrawals?${query}`)).body.issues[0].message
    expect(await messageOf('fromDate=2026-03-10T09:00:00%2B05:00')).toBe(
      'fromDate has the wrong format; example: 2026-03-31',
    )
    expect(await messageOf('fromDate=2026-02-30T00:00Z')).toBe(
      'fromDate must be a day that exists, like 2026-03-31, or an instant of one, like 2026-03-31T09:30:00.000Z',
    )
  })

  test.each([
    'take=0',
    'take=1001',
    'take=ten',
    'take=1.0',
    'take=',
    'skip=-1',
    'take=1&take=2',
    'limit=5',
    'memberId=x',
    'fromDate=yesterday',
    'fromDate=2016-12-31T23:59:60Z',
    'toDate=2026-03-10T09:00:00%2B05:00',
    'toDate=2026-02-30',
    'toDate=2026-02-30T00:00Z',
    'fromDate=2026-03-10T09Z',
    'fromDate=2026-03-10T24:00Z',
    'fromDate=2026-03-10T09:00:00.Z',
    'fromDate=2026-03-10T09:00:00',
    'fromDate=2026-03-10 09:00:00Z',
    'memberId=%00',
  ])('refuses the query %s', async query => {
    const { status, body } = await harness.call('GET', `/v1/pay/withdrawals?${query}`)
    expect(status).toBe(400)
    expect(body.issues[0]).toMatchObject({ code: 'QueryValidation', path: query.split('=')[0] })
  })
})

test('the database refuses a second withdrawal of one intent, independently of the application', async () => {
  const memberId = await harness.addMember({ available: 12_000 })
  await harness.requestCompletion(await harness.createIntent({ memberId }))
  const withdrawal = await harness.db
    .selectFrom('withdrawals')
    .selectAll()
    .where('memberId', '=', memberId)
    .executeTakeFirstOrThrow()
  const copy = { ...withdrawal, id: withdrawal.id.replace(/.$/, last => (last === '0' ? '1' : '0')) }
  await expect(harness.db.insertInto('withdrawals').values(copy).execute()).rejects.toMatchObject(
    breaking('one_withdrawal_per_intent'),
  )
})

test('the database refuses to overdraw a member, to change the books, and to make unlisted transitions', async () => {
  const memberId = await harness.addMember({ available: 1_000 })
  const { ownerDb: db } = harness
  await expect(
    db.updateTable('ledgerBalances').set({ available: -1n }).where('memberId', '=', memberId).execute(),
  ).rejects.toMatchObject(breaking('member_not_overdrawn'))
  await expect(
    db.updateTable('ledgerTransfers').set({ amount: 1n }).where('memberId', '=', memberId).execute(),
  ).rejects.toMatchObject(breaking('append_only'))
  await expect(db.deleteFrom('ledgerTransfers').where('memberId', '=', memberId).execute()).rejects.toMatchObject(
    breaking('append_only'),
  )
  await expect(
    db.updateTable('members').set({ status: 'invited' }).where('id', '=', memberId).execute(),
  ).rejects.toMatchObject(breaking('only_listed_transitions'))
})
