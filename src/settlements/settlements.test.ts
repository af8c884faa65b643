import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { insertMembers } from '../../test/harness/insert-members.ts'
import { extent } from '../../test/runner/extent.ts'
import { closeIfOver } from '../closing/closing.ts'
import { sql } from '../database/database.ts'
import type { PartnerSettings } from '../partners/partners.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const march = new Date('2026-03-10T09:00:00.000Z')
const april = new Date('2026-04-02T10:00:00.000Z')
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const unknownCycle = 'pc_01kah4pzc5e4r8v2m6t0x9y3bd'
const unknownMember = 'mem_01kah4pzc5e4r8v2m6t0x9y3bd'
const csv = { 'content-type': 'text/csv' }

type Settled = TestPartner & { memberIds: string[] }

/** Adds a partner with a closed March cycle, in which each member withdrew the given amount (zero: paid, but no withdrawal). */
async function closedCycle(withdrawn: number[], settings: PartnerSettings = {}): Promise<Settled> {
  harness.clock.set(march)
  const mine = await harness.addPartner('Closed', settings)
  const memberIds: string[] = []
  for (const amount of withdrawn) {
    const memberId = await harness.addMember({ key: mine.key, available: 20_000 })
    memberIds.push(memberId)
    if (amount > 0) await harness.withdraw({ key: mine.key, memberId, amount })
  }
  harness.clock.set(april)
  await close(mine)
  return { ...mine, memberIds }
}

const close = ({ partner }: TestPartner) =>
  harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: partner.id, now: harness.clock.now() }))

const path = (payCycleId: string) => `/v1/pay/cycles/${payCycleId}/settlement`
type Taken = { memberId: string | undefined; taken: { amount: number; currency: string } }
const settle = ({ key, payCycle }: TestPartner, deductions: Taken[], options = {}) =>
  harness.call('POST', path(payCycle.id), { key, body: { deductions }, ...options })
const settleFile = ({ key, payCycle }: TestPartner, raw: string | Buffer, headers: Record<string, string> = csv) =>
  harness.call('POST', path(payCycle.id), { key, raw, headers })
const read = ({ key, payCycle }: TestPartner, query = '') =>
  harness.call('GET', `${path(payCycle.id)}${query}`, { key })
const openCycle = async (key: string) =>
  (await harness.call('GET', '/v1/pay/cycles?statuses=Open', { key })).body.payCycles[0]
const deductionsOf = async (key: string, payCycleId: string) =>
  (await harness.call('GET', `/v1/pay/cycles/${payCycleId}/deductions`, { key })).body.deductions

async function earnedPayOf(payCycleId: string): Promise<{ memberId: string; balance: bigint }[]> {
  const { rows } = await sql<{ memberId: string; balance: bigint }>`
    select member_id, sum(case when debit = 'earned_pay' then amount else -amount end)::bigint as balance
      from ledger_transfers where pay_cycle_id = ${payCycleId} and (debit = 'earned_pay' or credit = 'earned_pay')
     group by member_id having sum(case when debit = 'earned_pay' then amount else -amount end) <> 0
     order by member_id`.execute(harness.db)
  return rows
}

async function balanceOf(partnerId: string, account: string): Promise<bigint> {
  const { rows } = await sql<{ balance: bigint }>`
    select coalesce(sum(case when debit = ${account} then amount else -amount end), 0)::bigint as balance
      from ledger_transfers where partner_id = ${partnerId} and (debit = ${account} or credit = ${account})`.execute(
    harness.db,
  )
  return rows[0]?.balance ?? 0n
}

async function expectNothingBooked(mine: TestPartner): Promise<void> {
  expect((await read(mine)).status).toBe(404)
  expect(await balanceOf(mine.partner.id, 'float')).toBe(0n)
}

describe('settling', () => {
  test('compares the report with the deductions, carries each difference and leaves no earned pay', async () => {
    const mine = await closedCycle([5_000, 3_000, 2_000, 1_000, 0])
    const [matched, short, over, unreported, unknown] = mine.memberIds
    const before = await deductionsOf(mine.key, mine.payCycle.id)
    const created = await settle(mine, [
      { memberId: unknown, taken: gbp(250) },
      { memberId: over, taken: gbp(2_400) },
      { memberId: matched, taken: gbp(5_000) },
      { memberId: short, taken: gbp(1_900) },
    ])
    expect(created.status).toBe(201)
    const totals = [{ deducted: gbp(11_000), taken: gbp(9_550), carried: gbp(1_450), writtenOff: gbp(0), due: gbp(0) }]
    const summary = {
      payCycleId: mine.payCycle.id,
      settledAt: april.toISOString(),
      matched: 1,
      short: 2,
      over: 1,
      unknown: 1,
      // The money is already in the float, because no bank reports arrivals.
      paymentReference: null,
      totals,
    }
    expect(created.body).toEqual(summary)

    const line = (memberId: string | undefined, outcome: string, deducted: number, taken: number, carried: number) => ({
      memberId,
      outcome,
      deducted: gbp(deducted),
      taken: gbp(taken),
      carried: gbp(carried),
      writtenOff: gbp(0),
    })
    const lines = [
      line(matched, 'matched', 5_000, 5_000, 0),
      line(short, 'short', 3_000, 1_900, 1_100),
      line(over, 'over', 2_000, 2_400, -400),
      line(unreported, 'short', 1_000, 0, 1_000),
      line(unknown, 'unknown', 0, 250, -250),
    ].toSorted((a, b) => ((a.memberId ?? '') < (b.memberId ?? '') ? -1 : 1))
    expect((await read(mine)).body).toEqual({ ...summary, lines, total: 5, skip: 0, take: 50 })
    expect((await read(mine, '?skip=1&take=2')).body).toMatchObject({
      lines: lines.slice(1, 3),
      total: 5,
      skip: 1,
      take: 2,
    })

    expect(await earnedPayOf(mine.payCycle.id)).toEqual([])
    expect(await balanceOf(mine.partner.id, 'carried')).toBe(0n)
    expect(await balanceOf(mine.partner.id, 'float')).toBe(9_550n)
    // The deductions of the settled cycle stay readable; the carried amounts are deductions of the open cycle.
    expect(await deductionsOf(mine.key, mine.payCycle.id)).toEqual(before)
    const next = await openCycle(mine.key)
    const carried = lines
      .filter(({ carried }) => carried.amount !== 0)
      .map(({ memberId, carried }) => ({ memberId, total: carried }))
    expect(await deductionsOf(mine.key, next.id)).toEqual(carried)
    expect(await harness.disagreements()).toEqual([])
  })

  test('writes off a shortfall if that is the policy, and still gives back an excess', async () => {
    const mine = await closedCycle([5_000, 3_000], { shortfallPolicy: 'write_off' })
    const [short, over] = mine.memberIds
    const { body } = await settle(mine, [
      { memberId: short, taken: gbp(4_100) },
      { memberId: over, taken: gbp(3_200) },
    ])
    expect(body.totals).toEqual([
      { deducted: gbp(8_000), taken: gbp(7_300), carried: gbp(-200), writtenOff: gbp(900), due: gbp(0) },
    ])
    expect(await balanceOf(mine.partner.id, 'written_off')).toBe(900n)
    expect(await earnedPayOf(mine.payCycle.id)).toEqual([])
    expect(await deductionsOf(mine.key, (await openCycle(mine.key)).id)).toEqual([{ memberId: over, total: gbp(-200) }])
    expect(await harness.disagreements()).toEqual([])
  })

  test('a carried amount is settled in the next cycle; a negative one by a negative amount', async () => {
    const mine = await closedCycle([5_000, 3_000])
    const [short, over] = mine.memberIds
    await settle(mine, [
      { memberId: short, taken: gbp(4_000) },
      { memberId: over, taken: gbp(3_500) },
    ])
    const next = await openCycle(mine.key)
    harness.clock.set(new Date('2026-05-02T10:00:00Z'))
    await close(mine)
    expect(await deductionsOf(mine.key, next.id)).toEqual(
      [
        { memberId: short, total: gbp(1_000) },
        { memberId: over, total: gbp(-500) },
      ].toSorted((a, b) => ((a.memberId ?? '') < (b.memberId ?? '') ? -1 : 1)),
    )
    const second = { ...mine, payCycle: next }
    const refused = await settle(second, [{ memberId: short, taken: gbp(-1) }])
    expect(refused.body.issues).toEqual([
      expect.objectContaining({ code: 'BodyValidation', path: 'deductions.0.taken.amount' }),
    ])
    const { body } = await settle(second, [
      { memberId: short, taken: gbp(1_000) },
      { memberId: over, taken: gbp(-500) },
    ])
    expect(body).toMatchObject({ matched: 2, short: 0, over: 0, unknown: 0 })
    expect(await earnedPayOf(next.id)).toEqual([])
    expect(await balanceOf(mine.partner.id, 'float')).toBe(8_000n)
    expect(await harness.disagreements()).toEqual([])
  })

  test('emits one event', async () => {
    const mine = await closedCycle([5_000])
    await settle(mine, [])
    const events = await harness.db
      .selectFrom('events')
      .select(['type', 'data'])
      .where('resourceId', '=', mine.payCycle.id)
      .orderBy('sequence')
      .execute()
    expect(events.map(({ type }) => type)).toEqual(['pay_cycle.opened', 'pay_cycle.closed', 'pay_cycle.settled'])
    expect(events[2]?.data).toEqual({
      payCycleId: mine.payCycle.id,
      startDate: '2026-03-01',
      endDate: '2026-03-31',
      ...{ matched: 0, short: 1, over: 0, unknown: 0 },
    })
  })

  test('an empty list settles a cycle without deductions', async () => {
    const mine = await closedCycle([0])
    expect((await settle(mine, [])).body).toMatchObject({ matched: 0, short: 0, over: 0, unknown: 0, totals: [] })
    expect((await read(mine)).body).toMatchObject({ lines: [], total: 0 })
  })

  test('happens once: the same idempotency key is replayed, another request is refused', async () => {
    const mine = await closedCycle([5_000])
    const [memberId] = mine.memberIds
    const headers = { 'x-idempotency-key': 'settle' }
    const first = await settle(mine, [{ memberId, taken: gbp(5_000) }], { headers })
    const again = await settle(mine, [{ memberId, taken: gbp(5_000) }], { headers })
    expect([again.status, again.text, again.headers['idempotency-replayed']]).toEqual([201, first.text, 'true'])
    expect((await settle(mine, [{ memberId, taken: gbp(1) }], { headers })).status).toBe(422)
    const second = await settle(mine, [{ memberId, taken: gbp(5_000) }])
    expect([second.status, second.body.issues[0].code]).toEqual([409, 'Conflict'])
    expect(await balanceOf(mine.partner.id, 'float')).toBe(5_000n)
  })

  test('only one of several concurrent settlements succeeds', async () => {
    const mine = await closedCycle([5_000])
    const [memberId] = mine.memberIds
    const answers = await Promise.all(Array.from({ length: 6 }, () => settle(mine, [{ memberId, taken: gbp(5_000) }])))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409])
    expect(await balanceOf(mine.partner.id, 'float')).toBe(5_000n)
  })

  test('concurrent with closing the next cycle, carries to whichever cycle is open', async () => {
    for (let round = 0; round < 4; round++) {
      const mine = await closedCycle([5_000, 4_000])
      const next = await openCycle(mine.key)
      const others = mine.memberIds.map(memberId => ({ memberId, taken: gbp(4_500) }))
      harness.clock.set(new Date('2026-05-02T10:00:00Z'))
      const [answer] = await Promise.all([settle(mine, others), close(mine)])
      expect(answer.status).toBe(201)
      const last = await openCycle(mine.key)
      const carried = [...(await deductionsOf(mine.key, next.id)), ...(await deductionsOf(mine.key, last.id))]
      expect(carried.map(({ total }: { total: { amount: number } }) => total.amount).toSorted()).toEqual([-500, 500])
      expect(await earnedPayOf(mine.payCycle.id)).toEqual([])
    }
    expect(await harness.disagreements()).toEqual([])
  })

  test('a later cancellation becomes an adjustment and leaves the settlement unchanged', async () => {
    harness.clock.set(march)
    const mine = await harness.addPartner('Late')
    const memberId = await harness.addMember({ key: mine.key, available: 20_000 })
    const withdrawal = await harness.withdraw({ key: mine.key, memberId, amount: 5_000 })
    harness.clock.set(april)
    await close(mine)
    await settle(mine, [{ memberId, taken: gbp(5_000) }])
    expect(
      (await harness.call('POST', `/v1/pay/withdrawals/${withdrawal}/cancel`, { key: mine.key })).status,
    ).toBeLessThan(300)
    expect(await earnedPayOf(mine.payCycle.id)).toEqual([])
    expect(await deductionsOf(mine.key, (await openCycle(mine.key)).id)).toEqual([{ memberId, total: gbp(-5_000) }])
    expect(await harness.disagreements()).toEqual([])
  })
})

describe('as a file', () => {
  test('the unchanged deductions file settles every deduction as matched', async () => {
    const mine = await closedCycle([5_000, 3_000])
    const file = await harness.call('GET', `/v1/pay/cycles/${mine.payCycle.id}/deductions`, {
      key: mine.key,
      headers: { accept: 'text/csv' },
    })
    const { status, body } = await settleFile(mine, file.text)
    expect([status, body.matched, body.short]).toEqual([201, 2, 0])
    expect(await earnedPayOf(mine.payCycle.id)).toEqual([])
  })

  test('may have a byte order mark, semicolons and a charset parameter', async () => {
    const mine = await closedCycle([5_000])
    const { status, body } = await settleFile(
      mine,
      `\ufeffMember ID;Amount Decimal;Currency\r\n${mine.memberIds[0]};40.00;GBP\r\n`,
      {
        'content-type': 'text/csv; charset=UTF-8',
        'x-idempotency-key': 'as a file'.replaceAll(' ', '-'),
      },
    )
    expect([status, body.short]).toEqual([201, 1])
  })

  type Bad = [name: string, file: (members: string[], foreign: string) => string, expected: [string, RegExp][]]
  const header = 'member_id,amount_minor,currency\n'
  test.each<Bad>([
    [
      'no known column',
      () => 'x\n',
      [
        [
          '1',
          /the column member_id is missing; the column amount_decimal is missing; the column currency is missing; the column "x" is not known/,
        ],
      ],
    ],
    [
      'a missing column',
      ([a]) => `member_id,currency\n${a},GBP\n`,
      [['1', /^Row 1: the column amount_decimal is missing$/]],
    ],
    [
      'an unknown column',
      ([a]) => `member_id,amount_minor,currency,note\n${a},1,GBP,x\n`,
      [['1', /"note" is not known/]],
    ],
    ['no lines', () => header, [['1', /no lines below/]]],
    ['an unknown member', ([a]) => `${header}${a},1,GBP\n${unknownMember},1,GBP\n`, [['3', /no such member/]]],
    ['another partner’s member', (_, foreign) => `${header}${foreign},1,GBP\n`, [['2', /no such member/]]],
    ['a wrong currency', ([a]) => `${header}${a},1,EUR\n`, [['2', /no deduction in EUR/]]],
    ['a duplicate member', ([a, b]) => `${header}${a},1,GBP\n${b},1,GBP\n${a},2,GBP\n`, [['4', /earlier line/]]],
    [
      'a fractional amount',
      ([a, b]) => `${header}${a},1.5,GBP\n${b},1e3,GBP\n`,
      [
        ['2', /whole number/],
        ['3', /whole number/],
      ],
    ],
    ['a negative amount', ([a]) => `${header}${a},-1,GBP\n`, [['2', /must not be negative/]]],
    ['a broken quote', ([a, b]) => `${header}${a},1,GBP\n"${b},1,GBP\n`, [['3', /quote is opened .* never closed/]]],
    [
      'all kinds of errors, in row order, one issue per row',
      ([a, b], foreign) => `${header}${foreign},1,GBP\n${a},x,GBP\n\n${b},1\n${b},1,GBP\n${b},-2,GBP\n`,
      [
        ['2', /no such member/],
        ['3', /whole number/],
        ['5', /2 cells/],
        ['7', /must not be negative.*; .*earlier line/],
      ],
    ],
  ])('%s: every error names its row, and nothing is booked', async (_, file, expected) => {
    const mine = await closedCycle([5_000, 3_000])
    const foreign = await harness.addMember({ key: harness.other.key })
    const { status, body } = await settleFile(mine, file(mine.memberIds, foreign))
    expect(status).toBe(400)
    const issues: { code: string; row: string; message: string }[] = body.issues
    expect(issues.map(({ code, row }) => [code, row])).toEqual(expected.map(([row]) => ['FileContent', row]))
    for (const [index, [, message]] of expected.entries()) expect(issues[index]?.message).toMatch(message)
    await expectNothingBooked(mine)
  })

  test('a file with very many errors lists a thousand and counts the rest', async () => {
    const mine = await closedCycle([5_000])
    const { status, body } = await settleFile(mine, header + `${unknownMember},x,GBP\n`.repeat(1_500))
    expect(status).toBe(400)
    expect(body.issues).toHaveLength(1_001)
    expect(body.issues[1_000]).toEqual({
      code: 'FileContent',
      row: '1002',
      message: '500 more errors from here on; fix the others first',
    })
    await expectNothingBooked(mine)
  })

  test('is refused if it is not UTF-8, too large, compressed or a spreadsheet', async () => {
    const mine = await closedCycle([5_000])
    expect((await settleFile(mine, Buffer.from([0x6d, 0xff, 0xfe]))).status).toBe(400)
    expect((await settleFile(mine, header, { 'content-type': 'text/csv; charset=iso-8859-1' })).status).toBe(415)
    expect((await settleFile(mine, header, { ...csv, 'content-encoding': 'gzip' })).status).toBe(415)
    expect((await settleFile(mine, header, { 'content-type': 'application/vnd.ms-excel' })).status).toBe(415)
    const large = await settleFile(mine, Buffer.alloc(32 * 1024 * 1024 + 1, 'a'))
    expect([large.status, large.body.issues[0].message]).toEqual([413, 'The file must not exceed 33554432 bytes'])
    await expectNothingBooked(mine)
  })

  const megabytes = extent({ short: 8, long: 32 })
  test.each([
    ['a header of commas', ','.repeat(megabytes * 1024 * 1024), /more than 1000 cells/],
    [
      'commas below the header',
      `${header}${`${','.repeat(999)}\n`.repeat(megabytes * 1_000)}`,
      /no lines below|too much memory/,
    ],
    ['one-cell rows', `${header}${'x\n'.repeat(megabytes * 500_000)}`, /has 1 cells/],
    ['a quote that is never closed', `${header}"${'x'.repeat(megabytes * 1_000_000)}`, /longer than 524288/],
  ])('megabytes of %s are refused without blocking the event loop', async (_, file, message) => {
    const mine = await closedCycle([5_000])
    const histogram = monitorEventLoopDelay({ resolution: 5 })
    histogram.enable()
    const { status, body } = await settleFile(mine, file)
    histogram.disable()
    expect([status, body.issues[0].message]).toEqual([400, expect.stringMatching(message)])
    expect(body.issues.length).toBeLessThanOrEqual(1_001)
    // Generous, since test machines are shared. On the main thread, 32 MiB took 56 s.
    expect(histogram.max / 1e6).toBeLessThan(1_000)
    await expectNothingBooked(mine)
  })

  test('is accepted by no other operation', async () => {
    for (const other of ['/v1/pay/run', '/v1/members', '/v1/pay/withdrawals/intent']) {
      expect((await harness.call('POST', other, { raw: header, headers: csv })).status).toBe(415)
    }
  })
})

describe('a file that is only compared', () => {
  const compare = ({ key, payCycle }: TestPartner, raw: string) =>
    harness.call('POST', `/console/v1/pay-cycles/${payCycle.id}/settlement-files`, { key, raw, headers: csv })

  test.each([
    ['carry', gbp(100), gbp(0)],
    ['write_off', gbp(0), gbp(100)],
  ] as const)(
    'shows what settling it would do with the shortfall policy %s, and books nothing',
    async (shortfallPolicy, carried, writtenOff) => {
      const mine = await closedCycle([3_000, 2_000, 1_000, 0], { shortfallPolicy })
      const [matched, short, over, unknown] = mine.memberIds
      const lines = [`${matched},3000`, `${short},1900`, `${over},1050`, `${unknown},70`].map(line => `${line},GBP\n`)
      const file = `member_id,amount_minor,currency\n${lines.join('')}`
      const { status, body } = await compare(mine, file)
      expect(status).toBe(200)
      expect(body).toEqual({
        ...{ matched: 1, short: 1, over: 1, unknown: 1, shortfallPolicy },
        totals: [
          {
            ...{ deducted: gbp(6_000), taken: gbp(6_020), writtenOff },
            carried: gbp(carried.amount - 50 - 70),
          },
        ],
        lines: expect.arrayContaining([
          { memberId: short, outcome: 'short', deducted: gbp(2_000), taken: gbp(1_900), carried, writtenOff },
          {
            ...{ memberId: over, outcome: 'over', deducted: gbp(1_000), taken: gbp(1_050) },
            ...{ carried: gbp(-50), writtenOff: gbp(0) },
          },
          {
            ...{ memberId: unknown, outcome: 'unknown', deducted: gbp(0), taken: gbp(70) },
            ...{ carried: gbp(-70), writtenOff: gbp(0) },
          },
        ]),
      })
      expect(body.lines).toHaveLength(3)
      await expectNothingBooked(mine)
      const { body: settled } = await settleFile(mine, file)
      const { due: _, ...total } = settled.totals[0]
      expect(body.totals).toEqual([total])
    },
  )

  test('is refused for the same reasons as a settlement', async () => {
    const mine = await closedCycle([3_000])
    const file = `member_id,amount_minor,currency\n${mine.memberIds[0]},3000,GBP\n`
    const faulty = await compare(mine, `${file}${unknownMember},1,GBP\n`)
    expect(faulty.body).toEqual((await settleFile(mine, `${file}${unknownMember},1,GBP\n`)).body)
    const open = await openCycle(mine.key)
    expect((await compare({ ...mine, payCycle: open }, file)).status).toBe(409)
    expect((await compare({ ...mine, key: harness.key }, file)).status).toBe(404)
    await settleFile(mine, file)
    expect((await compare(mine, file)).status).toBe(409)
  })
})

describe('as JSON', () => {
  test('every error names its path, and nothing is booked', async () => {
    const mine = await closedCycle([5_000, 3_000])
    const [a, b] = mine.memberIds
    const foreign = await harness.addMember({ key: harness.other.key })
    const { status, body } = await settle(mine, [
      { memberId: a, taken: gbp(1) },
      { memberId: foreign, taken: gbp(1) },
      { memberId: unknownMember, taken: gbp(1) },
      { memberId: b, taken: { amount: 1, currency: 'EUR' } },
      { memberId: a, taken: gbp(2) },
      { memberId: b, taken: gbp(-1) },
    ])
    expect(status).toBe(400)
    expect(body.issues.map(({ code, path }: Record<string, string>) => `${code} ${path}`)).toEqual([
      'BodyValidation deductions.1.memberId',
      'BodyValidation deductions.2.memberId',
      'BodyValidation deductions.3.taken.currency',
      'BodyValidation deductions.4.memberId',
      'BodyValidation deductions.5.taken.amount',
    ])
    await expectNothingBooked(mine)
  })

  test.each([
    ['{}', 'deductions'],
    ['{"deductions":null}', 'deductions'],
    ['"member_id,amount_minor,currency"', 'body'],
    [
      `{"deductions":[{"memberId":"${unknownMember}","taken":{"amount":1.5,"currency":"GBP"}}]}`,
      'deductions.0.taken.amount',
    ],
    [
      `{"deductions":[{"memberId":"${unknownMember}","taken":{"amount":"1","currency":"GBP"}}]}`,
      'deductions.0.taken.amount',
    ],
    ['{"deductions":[],"note":1}', 'note'],
  ])('refuses %s', async (raw, at) => {
    const mine = await closedCycle([])
    const { status, body } = await harness.call('POST', path(mine.payCycle.id), { key: mine.key, raw })
    expect([status, body.issues[0].code, body.issues[0].path]).toEqual([400, 'BodyValidation', at])
  })
})

describe('settling is refused', () => {
  test('while the cycle is open', async () => {
    for (const answer of [await settle(harness, []), await settleFile(harness, 'x')]) {
      expect([answer.status, answer.body.issues[0].code]).toEqual([409, 'Conflict'])
    }
    expect((await read(harness)).status).toBe(404)
  })

  test('for another partner’s cycle, with the same 404 as for an unknown one', async () => {
    const mine = await closedCycle([5_000])
    const [foreign, missing] = [
      await settle({ ...mine, key: harness.key }, []),
      await settle({ ...mine, key: harness.key, payCycle: { ...mine.payCycle, id: unknownCycle } }, []),
    ]
    expect([foreign.status, foreign.text]).toEqual([404, missing.text])
    await settle(mine, [])
    expect((await read({ ...mine, key: harness.key })).status).toBe(404)
    expect((await read(mine)).status).toBe(200)
  })

  test('without a key with write scope', async () => {
    const { secret } = await harness.addKey(['pay:read'])
    expect((await settle({ ...harness, key: secret }, [])).status).toBe(403)
    expect((await harness.call('GET', path(unknownCycle), { key: null })).status).toBe(401)
    expect((await harness.call('GET', path('x'))).body.issues[0]).toMatchObject({
      code: 'PathValidation',
      path: 'payCycleId',
    })
  })
})

test('thousands of lines are settled completely', async () => {
  const count = extent({ short: 4_500, long: 10_000 })
  harness.clock.set(march)
  const mine = await harness.addPartner('Large')
  const partnerId = mine.partner.id
  const ids = Array.from({ length: count }, (_, index) => `mem_${String(index + 1).padStart(26, '0')}`)
  await insertMembers(harness.db, { partnerId, members: ids.map(id => ({ id })), now: harness.clock.now() })
  // Books a withdrawal of ten pounds per member directly; the settlement only reads the ledger.
  await sql`
    insert into ledger_transfers (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at, member_sequence)
    select ${partnerId}, 'tr_' || lpad(n::text, 26, '0'), 'pr_large', 'test', 'earned_pay', 'carried', 1000, 'GBP',
           'mem_' || lpad(n::text, 26, '0'), ${mine.payCycle.id}, ${march}, 1
      from generate_series(1, ${count}) n`.execute(harness.db)
  await sql`
    insert into ledger_balances (partner_id, member_id, currency, transfer_count)
    select ${partnerId}, 'mem_' || lpad(n::text, 26, '0'), 'GBP', 1 from generate_series(1, ${count}) n`.execute(
    harness.db,
  )
  await sql`
    insert into ledger_deductions (partner_id, pay_cycle_id, member_id, currency, amount)
    select ${partnerId}, ${mine.payCycle.id}, 'mem_' || lpad(n::text, 26, '0'), 'GBP', 1000
      from generate_series(1, ${count}) n`.execute(harness.db)
  // Otherwise so many rows are found, and their foreign keys checked, with plans for small tables.
  await sql`analyze members, ledger_balances, ledger_deductions`.execute(harness.ownerDb)
  harness.clock.set(april)
  await close(mine)
  const lines = Array.from(
    { length: count },
    (_, index) =>
      `mem_${String(index + 1).padStart(26, '0')},${index % 10 === 0 ? 900 : index % 10 === 1 ? 1100 : 1000},GBP`,
  )
  const { status, body } = await settleFile(mine, `member_id,amount_minor,currency\n${lines.join('\n')}\n`)
  expect(status).toBe(201)
  expect(body).toMatchObject({ matched: count * 0.8, short: count / 10, over: count / 10, unknown: 0 })
  expect(await earnedPayOf(mine.payCycle.id)).toEqual([])
})
