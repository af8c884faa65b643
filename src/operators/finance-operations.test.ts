import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { breaking } from '../../test/harness/refusal.ts'
import { list } from '../audit-log/audit-log.ts'
import { closeIfOver } from '../closing/closing.ts'

let harness: Harness
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness()
  operator = await harness.addOperator()
})
afterAll(() => harness.stop())

const march = new Date('2026-03-10T09:00:00.000Z')
const april = new Date('2026-04-02T10:00:00.000Z')
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]

/** Withdraws. @returns the id of the withdrawal */

const cancel = async ({ key }: TestPartner, withdrawalId: string) =>
  expect((await harness.call('POST', `/v1/pay/withdrawals/${withdrawalId}/cancel`, { key })).status).toBe(200)

const close = ({ partner }: TestPartner) =>
  harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: partner.id, now: harness.clock.now() }))

/** A partner with a member who pays a fee of 0.50 and one whose employer pays it. */
async function addPartner(): Promise<{ mine: TestPartner; payer: string; employed: string }> {
  harness.clock.set(march)
  const mine = await harness.addPartner('Finance')
  const [payer, employed] = [
    await harness.addMember({ key: mine.key, available: 20_000 }),
    await harness.addMember({ key: mine.key, tier: 'Gold', available: 20_000 }),
  ]
  return { mine, payer, employed }
}

describe('revenue', () => {
  test('is taken out of the float once per reference, up to what was collected and what is free above the floor', async () => {
    const { mine, payer } = await addPartner()
    const at = `/partners/${mine.partner.id}`
    const take = (amount: number, reference: string) =>
      operator.call('POST', `${at}/revenue/withdraw`, { body: { amount: gbp(amount), reference } })
    await harness.withdraw({ key: mine.key, memberId: payer, amount: 5_000 })
    await harness.withdraw({ key: mine.key, memberId: payer, amount: 6_000 })
    expect(problemOf(await take(1, 'too early'))).toEqual([422, 'UnprocessableEntity', undefined])
    harness.clock.set(april)
    await close(mine)
    const deductions = [{ memberId: payer, taken: gbp(11_000) }]
    await harness.call('POST', `/v1/pay/cycles/${mine.payCycle.id}/settlement`, { key: mine.key, body: { deductions } })
    expect((await operator.call('GET', `${at}/revenue`)).body.revenue).toContainEqual({
      ...{ currency: 'GBP', collected: gbp(100), withdrawn: gbp(0), inFloat: gbp(100) },
      ...{ arriving: gbp(0), invoiced: gbp(0), paid: gbp(0) },
    })
    // 110.00 has arrived, and 109.00 is on its way to the member.
    await operator.call('PUT', `${at}/float/floor`, { body: { currency: 'GBP', floor: gbp(30) } })
    expect(problemOf(await take(71, 'below the floor'))).toEqual([422, 'UnprocessableEntity', undefined])
    const first = await take(70, 'fees 1')
    expect(first.body.revenue[0]).toMatchObject({ withdrawn: { amount: 0, currency: 'EUR' } })
    expect(first.body.revenue[1]).toMatchObject({ withdrawn: gbp(70), inFloat: gbp(30) })
    expect((await take(70, 'fees 1')).body).toEqual({
      ...first.body,
      movement: { ...first.body.movement, hasMoved: false },
    })
    expect(problemOf(await take(20, 'fees 1'))).toEqual([409, 'Conflict', undefined])
    await operator.call('POST', `${at}/float/fund`, { body: { amount: gbp(500), reference: 'funds' } })
    expect(problemOf(await take(30, 'funds'))).toEqual([409, 'Conflict', undefined])
    expect(problemOf(await take(31, 'fees 2'))).toEqual([422, 'UnprocessableEntity', undefined])
    expect((await take(30, 'fees 2')).status).toBe(200)
    expect(problemOf(await take(0, 'nothing'))).toEqual([409, 'Conflict', undefined])
    const { floats } = (await operator.call('GET', `${at}/float`)).body
    expect(floats[1].free).toEqual(gbp(500))
    const entries = await list(harness.db, { filter: { partnerId: mine.partner.id }, take: 10 })
    expect(entries.filter(({ action }) => action === 'revenue.withdraw')).toMatchObject([
      { details: { amount: gbp(30), reference: 'fees 2' } },
      { details: { amount: gbp(70), reference: 'fees 1' } },
    ])
    expect(await harness.disagreements()).toEqual([])
  })

  test('is never more than was collected, whatever the program does', async () => {
    const { mine } = await addPartner()
    const row = {
      partnerId: mine.partner.id,
      reference: 'r',
      direction: 'revenue',
      currency: 'GBP',
      amount: 1n,
    } as const
    const inserting = harness.db
      .insertInto('floatReferences')
      .values({ ...row, movementId: 'fm_1', createdAt: march })
      .execute()
    await expect(inserting).rejects.toMatchObject(breaking('revenue_was_collected'))
  })
})

describe('an invoice', () => {
  test('bills the fees of employers once, by day and tier, and sets off the fees given back', async () => {
    const { mine, payer, employed } = await addPartner()
    const at = `/partners/${mine.partner.id}/invoices`
    const issue = (body: object) => operator.call('POST', at, { body: { currency: 'GBP', ...body } })
    const early = await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_000 })
    await harness.withdraw({ key: mine.key, memberId: payer, amount: 2_000 })
    harness.clock.advance({ minutes: 24 * 60 })
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 3_000 })
    await cancel(mine, await harness.withdraw({ key: mine.key, memberId: employed, amount: 4_000 }))
    expect(problemOf(await issue({ month: '2026-03' }))).toEqual([409, 'Conflict', undefined])
    const invoice = await issue({})
    expect(invoice.status, invoice.text).toBe(201)
    const line = (day: string, withdrawals: number, givenBack: number) => ({
      ...{ day, tier: 'Gold', withdrawals, fees: gbp(50 * withdrawals) },
      ...{ givenBack, feesGivenBack: gbp(50 * givenBack) },
    })
    expect(invoice.body).toEqual({
      ...{ id: invoice.body.id, partnerId: mine.partner.id, status: 'open', paid: null },
      ...{ number: `${mine.partner.id.slice(-6).toUpperCase()}-0001`, sum: gbp(100) },
      ...{ firstDay: '2026-03-10', lastDay: '2026-03-11', issuedAt: '2026-03-11T09:00:00.000Z' },
      lines: [line('2026-03-10', 1, 0), line('2026-03-11', 2, 1)],
    })
    expect(problemOf(await issue({}))).toEqual([409, 'Conflict', undefined])
    await cancel(mine, early)
    // There is a credit now.
    expect(problemOf(await issue({}))).toEqual([409, 'Conflict', undefined])
    harness.clock.set(new Date('2026-03-31T22:30:00.000Z'))
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_500 })
    expect((await issue({})).body.issues[0].message).toContain('the fees given back equal the others')
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_600 })
    harness.clock.set(april)
    await close(mine)
    const next = await issue({ month: '2026-03' })
    expect(next.body).toMatchObject({ firstDay: '2026-03-11', lastDay: '2026-03-31', sum: gbp(0 + 50) })
    expect(next.body.lines).toEqual([{ ...line('2026-03-11', 0, 1) }, line('2026-03-31', 2, 0)])
    expect(await harness.disagreements()).toEqual([])
  })

  test('is paid, open again, void and billed again, and its fees are revenue while it is paid', async () => {
    const { mine, employed } = await addPartner()
    const at = `/partners/${mine.partner.id}`
    const revenue = async () => {
      const { revenue: found } = (await operator.call('GET', `${at}/revenue`)).body
      const { invoiced, paid, inFloat } = found.find(({ currency }: { currency: string }) => currency === 'GBP')
      return [invoiced.amount, paid.amount, inFloat.amount]
    }
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_000 })
    const issue = () => operator.call('POST', `${at}/invoices`, { body: { currency: 'GBP' } })
    const { id } = (await issue()).body
    const act = (verb: string, body: object) => operator.call('POST', `${at}/invoices/${id}/${verb}`, { body })
    expect(await revenue()).toEqual([50, 0, 0])
    const payment = { reference: 'transfer 1', on: '2026-03-10' }
    expect(problemOf(await act('pay', { ...payment, on: '2026-03-11' }))).toEqual([
      422,
      'UnprocessableEntity',
      undefined,
    ])
    expect(problemOf(await act('pay', { ...payment, on: '2026-02-30' }))).toEqual([400, 'BodyValidation', 'on'])
    expect(problemOf(await act('reopen', { note: 'not paid' }))).toEqual([409, 'Conflict', undefined])
    expect((await act('pay', payment)).body).toMatchObject({ status: 'paid', paid: payment })
    expect((await act('pay', payment)).status).toBe(200)
    expect(problemOf(await act('pay', { ...payment, reference: 'another' }))).toEqual([409, 'Conflict', undefined])
    expect(problemOf(await act('void', { note: 'wrong' }))).toEqual([409, 'Conflict', undefined])
    // Its money is not in the float.
    expect(await revenue()).toEqual([0, 50, 0])
    expect(problemOf(await act('reopen', {}))[0]).toBe(400)
    expect((await act('reopen', { note: 'paid by mistake' })).body).toMatchObject({ status: 'open', paid: null })
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_000 })
    const later = (await issue()).body
    expect(problemOf(await act('void', { note: 'wrong' }))).toEqual([409, 'Conflict', undefined])
    const laterVoid = await operator.call('POST', `${at}/invoices/${later.id}/void`, { body: { note: 'wrong' } })
    expect(laterVoid.body.status).toBe('void')
    expect((await act('void', { note: 'wrong' })).body).toMatchObject({ status: 'void' })
    expect(await revenue()).toEqual([0, 0, 0])
    const again = (await issue()).body
    expect([again.sum, again.number]).toEqual([gbp(100), `${mine.partner.id.slice(-6).toUpperCase()}-0003`])
    const listed = await operator.call('GET', `/invoices?partnerId=${mine.partner.id}&statuses=void`)
    expect([listed.body.total, listed.body.invoices[1].id]).toEqual([2, id])
    expect((await operator.call('GET', `${at}/invoices/${again.id}`)).body).toEqual(again)
    expect(await harness.disagreements()).toEqual([])
  })

  test('is paid and reopened once when many requests come at the same time', async () => {
    const { mine, employed } = await addPartner()
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_000 })
    const at = `/partners/${mine.partner.id}/invoices`
    const issued = await Promise.all([1, 2, 3].map(() => operator.call('POST', at, { body: { currency: 'GBP' } })))
    expect(issued.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    const id = issued.find(({ status }) => status === 201)?.body.id
    const paid = await Promise.all(
      ['a', 'b', 'c'].map(reference =>
        operator.call('POST', `${at}/${id}/pay`, { body: { reference, on: '2026-03-10' } }),
      ),
    )
    expect(paid.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    expect(await harness.disagreements()).toEqual([])
  })

  test('of another partner, or unknown, is not found', async () => {
    const { mine, employed } = await addPartner()
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_000 })
    const at = `/partners/${mine.partner.id}/invoices`
    const { id } = (await operator.call('POST', at, { body: { currency: 'GBP' } })).body
    const elsewhere = `/partners/${harness.partner.id}/invoices/${id}`
    expect(problemOf(await operator.call('GET', elsewhere))).toEqual([404, 'NotFound', undefined])
    const note = { body: { note: 'x' } }
    expect(problemOf(await operator.call('POST', `${elsewhere}/void`, note))).toEqual([404, 'NotFound', undefined])
    expect((await operator.call('POST', '/partners/par_123/invoices', { body: { currency: 'GBP' } })).status).toBe(404)
    expect((await operator.call('GET', '/partners/par_123/revenue')).status).toBe(404)
  })
})

describe('for the accountant', () => {
  test('the fee statement of a month has a line per day and tier, and sums, in JSON and as a file', async () => {
    const { mine, payer, employed } = await addPartner()
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 2_000 })
    const early = await harness.withdraw({ key: mine.key, memberId: payer, amount: 2_000 })
    await harness.withdraw({ key: mine.key, memberId: payer, amount: 3_000 })
    harness.clock.advance({ minutes: 24 * 60 })
    await cancel(mine, early)
    const at = `/partners/${mine.partner.id}/fee-statement?month=2026-03`
    const line = (changes: object) => ({
      ...{ withdrawals: 0, memberFees: gbp(0), employerFees: gbp(0) },
      ...{ givenBack: 0, memberFeesGivenBack: gbp(0), employerFeesGivenBack: gbp(0), ...changes },
    })
    const ofSilver = { withdrawals: 2, memberFees: gbp(100) }
    const givenBack = { givenBack: 1, memberFeesGivenBack: gbp(50) }
    expect((await operator.call('GET', at)).body).toEqual({
      month: '2026-03',
      lines: [
        { day: '2026-03-10', tier: 'Gold', ...line({ withdrawals: 1, employerFees: gbp(50) }) },
        { day: '2026-03-10', tier: 'Silver', ...line(ofSilver) },
        { day: '2026-03-11', tier: 'Silver', ...line(givenBack) },
      ],
      sums: [
        {
          ...{ currency: 'GBP', collected: gbp(0) },
          ...line({ ...ofSilver, ...givenBack, withdrawals: 3, employerFees: gbp(50) }),
        },
      ],
    })
    const file = await operator.call('GET', at, { headers: { accept: 'text/csv' } })
    expect(file.text.split('\r\n')).toEqual([
      'day,tier,withdrawals,member_fees,employer_fees,given_back,member_fees_given_back,employer_fees_given_back,currency',
      '2026-03-10,Gold,1,0.00,0.50,0,0.00,0.00,GBP',
      '2026-03-10,Silver,2,1.00,0.00,0,0.00,0.00,GBP',
      '2026-03-11,Silver,0,0.00,0.00,1,0.50,0.00,GBP',
      '',
    ])
    const empty = await operator.call('GET', `/partners/${mine.partner.id}/fee-statement?month=2026-04`)
    expect(empty.body).toEqual({ month: '2026-04', lines: [], sums: [] })
    expect(problemOf(await operator.call('GET', at.replace('2026-03', '2026-13')))).toEqual([
      400,
      'QueryValidation',
      'month',
    ])
    expect((await operator.call('GET', '/partners/par_123/fee-statement?month=2026-03')).status).toBe(404)
  })

  test('the journal has every transfer of the days once, and each entry balances', async () => {
    const { mine, payer, employed } = await addPartner()
    const partnerId = mine.partner.id
    await operator.call('POST', `/partners/${partnerId}/float/fund`, {
      body: { amount: gbp(70_000), reference: '=HYPERLINK("x")' },
    })
    await harness.withdraw({ key: mine.key, memberId: payer, amount: 2_000 })
    await harness.withdraw({ key: mine.key, memberId: employed, amount: 3_000 })
    harness.clock.set(april)
    await close(mine)
    const read = (query: string) => operator.call('GET', `/journal?from=2026-03-01&to=${query}`)
    const { text, headers } = await read(`2026-04-30&partnerId=${partnerId}`)
    expect(headers['content-type']).toContain('text/csv')
    const [header, ...lines] = text.trimEnd().split('\r\n')
    expect(header).toBe('day,partner_id,reference,reason,account,debit,credit,currency')
    expect(lines).toContain(`2026-03-10,${partnerId},"'=HYPERLINK(""x"")",float.funded,float,700.00,,GBP`)
    const cells = lines.map(line => line.split(',').slice(-6))
    const minor = (text = '') => BigInt(text.replace('.', ''))
    const entries = Map.groupBy(lines, line => line.split(',').slice(0, -4).join())
    for (const [entry, own] of entries) {
      const sum = own.reduce((all, line) => {
        const [debit, credit] = line.split(',').slice(-3)
        return all + minor(debit) - minor(credit)
      }, 0n)
      expect(sum, entry).toBe(0n)
    }
    const { rows } = await harness.pool.query<{ account: string; debit: string; credit: string }>(
      `select account, sum(debit)::text as debit, sum(credit)::text as credit
         from (select debit as account, amount as debit, 0 as credit from ledger_transfers where partner_id = $1
                union all select credit, 0, amount from ledger_transfers where partner_id = $1) sides
        group by account`,
      [partnerId],
    )
    for (const { account, debit, credit } of rows) {
      const own = cells.filter(each => each[2] === account)
      expect(
        own.reduce((all, each) => all + minor(each[3]), 0n),
        account,
      ).toBe(BigInt(debit))
      expect(
        own.reduce((all, each) => all + minor(each[4]), 0n),
        account,
      ).toBe(BigInt(credit))
    }
    expect((await read('2026-04-30')).text).toContain(partnerId)
    expect(problemOf(await read('2026-02-28'))).toEqual([400, 'QueryValidation', 'to'])
    expect(problemOf(await read('2027-03-02'))).toEqual([400, 'QueryValidation', 'to'])
    expect((await read('2026-03-31&partnerId=par_123')).status).toBe(404)
  })
})
