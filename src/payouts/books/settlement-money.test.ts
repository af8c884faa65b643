import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { euroRail, FileBank, ownIban } from '../../../test/banks/file-bank.ts'
import { type Harness, startHarness, type TestPartner } from '../../../test/harness/harness.ts'
import { closeException } from '../../../test/payouts/two-person-decisions.ts'
import { closeIfOver } from '../../closing/closing.ts'
import * as float from '../../float/float.ts'
import * as dues from '../../settlements/dues.ts'
import { listBalances } from './balances.ts'
import type { FileRailSettings } from './file-rail-settings.ts'

const march = new Date('2026-03-10T09:00:00.000Z')
const april = new Date('2026-04-02T10:00:00.000Z')
const account = { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' }
const eur = (amount: number) => ({ amount, currency: 'EUR' })

let harness: Harness
const bank = new FileBank()
const settings: FileRailSettings = euroRail({ name: 'euro-settled', delivery: async () => bank })
beforeAll(async () => {
  harness = await startHarness({
    bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated'),
    rails: [settings],
  })
})
afterAll(() => harness.stop())

let files = 0
beforeEach(() => {
  files += 1
})

const answer = (...lines: string[]) => harness.bankAnswers(bank, lines)
const entry = (amount: number, reference: string, { bank = `E${files}`, text = '' } = {}) =>
  `entry;${amount}EUR;${reference};${bank};2026-04-02;${text}`
const floatOf = async ({ partner }: TestPartner) =>
  (await float.read(harness.db, partner.id)).find(({ currency }) => currency === 'EUR')?.float ?? 0n
const openExceptions = async () =>
  await harness.db
    .selectFrom('payoutExceptions')
    .select(['id', 'kind', 'reason', 'partnerId'])
    .where('closedAt', 'is', null)
    .orderBy('id')
    .execute()

type Closed = TestPartner & { memberIds: string[] }

/** A partner with a closed cycle, in which each member withdrew an amount. */
async function closedCycle(...withdrawn: number[]): Promise<Closed> {
  harness.clock.set(march)
  const mine = await harness.addPartner('Settled')
  const memberIds: string[] = []
  for (const amount of withdrawn) {
    const { key } = mine
    const memberId = await harness.addMember({ key, available: 20_000, account, tier: 'Silver EU', currency: 'EUR' })
    memberIds.push(memberId)
    await harness.withdraw({ key, memberId, amount, currency: 'EUR' })
  }
  harness.clock.set(april)
  await harness.inTx(tx => closeIfOver(tx, { partnerId: mine.partner.id, now: harness.clock.now() }))
  return { ...mine, memberIds }
}

/** … that payroll has settled. */
async function settledCycle(...taken: number[]): Promise<Closed & { reference: string }> {
  const mine = await closedCycle(...taken)
  const settled = await settle(mine, taken)
  return { ...mine, reference: settled.body.paymentReference }
}

const settle = async ({ key, payCycle, memberIds }: Closed, taken: number[]) =>
  await harness.call('POST', `/v1/pay/cycles/${payCycle.id}/settlement`, {
    key,
    body: { deductions: taken.map((amount, index) => ({ memberId: memberIds[index], taken: eur(amount) })) },
  })
const summaryOf = async ({ key, payCycle }: Closed) =>
  (await harness.call('GET', `/v1/pay/cycles/${payCycle.id}/settlement`, { key })).body

test('what payroll took is in the float once it has arrived under the reference of the settlement', async () => {
  const mine = await closedCycle(5_000, 3_000)
  const settled = await settle(mine, [5_000, 2_000])
  const paymentReference = `MMS${mine.payCycle.id.slice(-14).toUpperCase()}`
  expect(settled.body).toMatchObject({ paymentReference, totals: [{ taken: eur(7_000), due: eur(7_000) }] })
  expect(await floatOf(mine)).toBe(0n)
  expect(await dues.listOpen(harness.db, mine.partner.id)).toMatchObject([{ amount: 7_000n, received: 0n }])

  await answer('head;A1', entry(7_000, 'payroll', { text: `Deductions ${paymentReference.toLowerCase()}, March` }))
  expect(await openExceptions()).toEqual([])
  expect(await floatOf(mine)).toBe(7_000n)
  expect(await summaryOf(mine)).toMatchObject({ paymentReference, totals: [{ taken: eur(7_000), due: eur(0) }] })
  expect(await dues.listOpen(harness.db, mine.partner.id)).toEqual([])
  expect(await harness.disagreements()).toEqual([])
})

test('money of another amount, and of a settlement that has arrived or is not reported, is an exception', async () => {
  const mine = await settledCycle(4_000)
  const open = await closedCycle(1_000)
  const unreported = dues.referenceOf(open.payCycle.id)
  await answer('head;B1', entry(3_999, mine.reference))
  await answer('head;B2', entry(4_000, mine.reference, { bank: 'again-1' }), entry(1_000, unreported))
  await answer('head;B3', entry(4_000, mine.reference, { bank: 'again-2' }))
  expect((await openExceptions()).map(({ kind, reason, partnerId }) => [kind, partnerId, reason])).toEqual([
    [
      'money_in',
      mine.partner.id,
      `It names the settlement of ${mine.payCycle.id}, but is 39.99 EUR instead of 40.00 EUR`,
    ],
    ['money_in', open.partner.id, `It names the settlement of ${open.payCycle.id}, which payroll has not reported yet`],
    ['money_in', mine.partner.id, `It names the settlement of ${mine.payCycle.id}, whose money has arrived before`],
  ])
  expect(await floatOf(mine)).toBe(4_000n)

  // Once it is reported, the money that waited is booked to it.
  await settle(open, [1_000])
  const [, waiting] = await openExceptions()
  const decided = { decision: 'book', partnerId: open.partner.id, payCycleId: open.payCycle.id } as const
  const common = { exceptionId: waiting?.id ?? '', person: 'Ada', note: 'payroll paid early', now: harness.clock.now() }
  await harness.inTx(tx => closeException(tx, { ...common, ...decided }))
  expect(await floatOf(open)).toBe(1_000n)
  const [, twice] = await openExceptions()
  const again = harness.inTx(tx => closeException(tx, { ...common, ...decided, exceptionId: twice?.id ?? '' }))
  await expect(again).rejects.toThrow('Nothing is due in EUR')
  expect(await harness.disagreements()).toEqual([])
  for (const { id } of await openExceptions())
    await harness.inTx(tx => closeException(tx, { ...common, exceptionId: id, decision: 'ignore' }))
})

test('money on an account that does not pay for the partner is not booked to its settlement', async () => {
  const mine = await settledCycle(2_000)
  const own = { name: 'Own', account: { accountHolder: 'Own', iban: 'DE02120300000000202051' } }
  const apart = { ...settings, debtors: { default: settings.debtors.default, [mine.partner.id]: own } }
  await harness.bankAnswers(bank, [`head;O1;${ownIban}`, entry(2_000, mine.reference)], { rails: [apart] })
  const [elsewhere] = await openExceptions()
  expect(elsewhere).toMatchObject({ reason: 'Money arrived that belongs to no payment of ours', partnerId: null })
  const { id: exceptionId = '' } = elsewhere ?? {}
  const common = { exceptionId, person: 'Ada', note: 'the wrong account', now: harness.clock.now() }
  await harness.inTx(tx => closeException(tx, { ...common, decision: 'ignore' }))
  await harness.bankAnswers(bank, ['head;O2;DE02120300000000202051', entry(2_000, mine.reference)], { rails: [apart] })
  expect(await openExceptions()).toEqual([])
  expect(await floatOf(mine)).toBe(2_000n)
})

test('a transfer in parts is booked part by part, never more than is due', async () => {
  const mine = await settledCycle(6_000)
  await answer('head;C1', entry(2_500, mine.reference))
  const [part] = await openExceptions()
  const { id: partnerId } = mine.partner
  const common = { exceptionId: part?.id ?? '', person: 'Ada', note: 'first part', now: harness.clock.now() }
  const payCycleId = mine.payCycle.id
  await harness.inTx(tx => closeException(tx, { ...common, decision: 'book', partnerId, payCycleId }))
  expect(await floatOf(mine)).toBe(2_500n)
  // The rest is what is due now, so it needs no decision.
  await answer('head;C2', entry(3_500, mine.reference, { bank: 'rest' }))
  expect(await openExceptions()).toEqual([])
  expect(await floatOf(mine)).toBe(6_000n)
  const more = harness.inTx(tx =>
    dues.receive(tx, {
      ...{ partnerId, payCycleId, isByHand: true, now: harness.clock.now() },
      amount: { amount: 1n, currency: 'EUR' },
    }),
  )
  await expect(more).rejects.toThrow('Nothing is due')
})

test('a transfer of more than is due is booked to the settlement, and the rest funds the float', async () => {
  const mine = await settledCycle(6_000)
  await answer('head;G1', entry(6_777, mine.reference))
  const [more] = await openExceptions()
  expect(more?.reason).toContain('but is 67.77 EUR instead of 60.00 EUR')
  const common = { exceptionId: more?.id ?? '', person: 'Ada', note: 'paid too much', now: harness.clock.now() }
  const decided = { decision: 'book', partnerId: mine.partner.id, payCycleId: mine.payCycle.id } as const
  await harness.inTx(tx => closeException(tx, { ...common, ...decided }))
  expect(await floatOf(mine)).toBe(6_777n)
  expect(await dues.listOpen(harness.db, mine.partner.id)).toEqual([])
  const booked = await harness.db
    .selectFrom('ledgerTransfers')
    .select(['movementId', 'credit', 'amount'])
    .where('partnerId', '=', mine.partner.id)
    .where('debit', '=', 'float')
    .orderBy('id')
    .execute()
  expect(booked).toMatchObject([
    { credit: 'payroll_receivable', amount: 6_000n },
    { credit: 'funding', amount: 777n },
  ])
  // One entry of the bank is one movement.
  expect(new Set(booked.map(({ movementId }) => movementId)).size).toBe(1)
  expect(await harness.disagreements()).toEqual([])
})

test('one transfer for two settlements is booked to both, without a decision if it is what is due', async () => {
  const settledTwice = async () => {
    const mine = await settledCycle(4_000)
    const memberId = mine.memberIds[0] ?? ''
    const open = await harness.call('GET', '/v1/pay/cycles?statuses=Open', { key: mine.key })
    harness.clock.set(new Date('2026-05-04T10:00:00.000Z'))
    await harness.inTx(tx => closeIfOver(tx, { partnerId: mine.partner.id, now: harness.clock.now() }))
    // Payroll took 25.00 without a deduction.
    const body = { deductions: [{ memberId, taken: eur(2_500) }] }
    const next = open.body.payCycles[0].id
    const settled = await harness.call('POST', `/v1/pay/cycles/${next}/settlement`, { key: mine.key, body })
    expect(settled.status).toBe(201)
    return { ...mine, text: `${mine.reference} and ${settled.body.paymentReference}` }
  }
  const exact = await settledTwice()
  await answer('head;T1', entry(6_500, 'payroll', { text: exact.text }))
  expect(await openExceptions()).toEqual([])
  expect(await floatOf(exact)).toBe(6_500n)
  expect(await dues.listOpen(harness.db, exact.partner.id)).toEqual([])

  const more = await settledTwice()
  await answer('head;T2', entry(6_600, 'payroll', { bank: 'T2', text: more.text }))
  const [open] = await openExceptions()
  expect(open?.reason).toContain('but is 66.00 EUR instead of 65.00 EUR')
  const common = { exceptionId: open?.id ?? '', person: 'Ada', note: 'both', now: harness.clock.now() }
  const decided = { decision: 'book', partnerId: more.partner.id, payCycleId: more.payCycle.id } as const
  await harness.inTx(tx => closeException(tx, { ...common, ...decided }))
  expect(await floatOf(more)).toBe(6_600n)
  expect(await dues.listOpen(harness.db, more.partner.id)).toEqual([])
  expect(await harness.disagreements()).toEqual([])
})

describe('money that may have been booked before is left to the operator:', () => {
  const common = () => ({ person: 'Ada', note: 'checked', now: harness.clock.now() })
  const newestException = async () => (await openExceptions()).at(-1)
  const ignoreAll = async () => {
    for (const { id: exceptionId } of await openExceptions())
      await harness.inTx(tx => closeException(tx, { ...common(), exceptionId, decision: 'ignore' }))
  }
  const book = async ({ partner, payCycle }: Closed) => {
    const exceptionId = (await newestException())?.id ?? ''
    const decided = { decision: 'book', partnerId: partner.id, payCycleId: payCycle.id } as const
    await harness.inTx(tx => closeException(tx, { ...common(), exceptionId, ...decided }))
  }
  /** An entry without a reference of the bank. */
  const unnamed = (amount: number, reference: string, day = '2026-04-02') => `entry;${amount}EUR;;;${day};${reference}`

  test.each([
    ['without a reference of the bank', (reference: string) => unnamed(3_000, reference)],
    ['under another reference', (reference: string) => entry(3_000, reference, { bank: 'another' })],
  ])('the half of a settlement that the statement reports again %s', async (_, again) => {
    const mine = await settledCycle(6_000)
    await answer(`head;R1 ${mine.reference}`, entry(3_000, mine.reference))
    await book(mine)
    await answer(`head;R2 ${mine.reference}`, again(mine.reference))
    expect(await newestException()).toMatchObject({
      kind: 'money_in',
      partnerId: mine.partner.id,
      reason: expect.stringContaining('another message has reported an equal amount of the same day'),
    })
    expect(await floatOf(mine)).toBe(3_000n)
    await ignoreAll()
    // The other half comes on another day.
    await answer(`head;R3 ${mine.reference}`, unnamed(3_000, mine.reference, '2026-04-09'))
    expect(await openExceptions()).toEqual([])
    expect(await floatOf(mine)).toBe(6_000n)
  })

  test('an entry about a settlement of which a part was recorded by hand', async () => {
    const mine = await settledCycle(6_000)
    const { id: partnerId } = mine.partner
    const recorded = { partnerId, payCycleId: mine.payCycle.id, isByHand: true, now: harness.clock.now() }
    await harness.inTx(tx => dues.receive(tx, { ...recorded, amount: { amount: 3_000n, currency: 'EUR' } }))
    await answer('head;H1', entry(3_000, mine.reference))
    expect(await newestException()).toMatchObject({
      partnerId,
      reason: expect.stringContaining('30.00 EUR was recorded by hand'),
    })
    expect(await floatOf(mine)).toBe(3_000n)
    await book(mine)
    expect(await floatOf(mine)).toBe(6_000n)
  })

  test('more than is due for a settlement of which a part was recorded by hand', async () => {
    const mine = await settledCycle(6_000)
    const { id: partnerId } = mine.partner
    const recorded = { partnerId, payCycleId: mine.payCycle.id, isByHand: true, now: harness.clock.now() }
    await harness.inTx(tx => dues.receive(tx, { ...recorded, amount: { amount: 2_000n, currency: 'EUR' } }))
    await answer('head;J1', entry(6_000, mine.reference))
    await expect(book(mine)).rejects.toThrow('40.00 EUR is due, so 60.00 EUR does not fit')
    expect(await floatOf(mine)).toBe(2_000n)
    await ignoreAll()
  })

  test('an entry that was reported before payroll reported the settlement', async () => {
    const mine = await closedCycle(6_000)
    const reference = dues.referenceOf(mine.payCycle.id)
    await answer('head;E1', unnamed(6_000, reference))
    await settle(mine, [6_000])
    await answer('head;E2', unnamed(6_000, reference))
    expect(await openExceptions()).toHaveLength(2)
    expect(await floatOf(mine)).toBe(0n)
    await book(mine)
    await ignoreAll()
    expect(await floatOf(mine)).toBe(6_000n)
  })

  test('but not equal money of two partners on one day, in one message or explained before', async () => {
    const [one, two, three] = [await settledCycle(4_400), await settledCycle(4_400), await settledCycle(4_400)]
    const ofOne = entry(4_400, one.reference, { bank: 'one' })
    await answer('head;P1', ofOne, entry(4_400, two.reference, { bank: 'two' }))
    // The statement repeats the first, and has a third.
    await answer('head;P2', ofOne)
    await answer('head;P3', entry(4_400, three.reference, { bank: 'three' }))
    expect(await openExceptions()).toEqual([])
    expect(await Promise.all([one, two, three].map(floatOf))).toEqual([4_400n, 4_400n, 4_400n])
  })

  test('and an entry under one reference of the bank counts once, though only one message has the sender’s', async () => {
    const mine = await settledCycle(5_500)
    await answer(`head;I1;${ownIban}`, entry(5_500, mine.reference, { bank: 'same' }))
    const spaced = ownIban.replaceAll(/(.{4})/g, '$1 ')
    await answer(`head;I2;${spaced}`, entry(5_500, '', { bank: 'same' }))
    expect(await openExceptions()).toEqual([])
    // The bank repeats its reference, but the sender says that it is other money.
    await answer('head;I3', entry(5_500, 'another transfer', { bank: 'same' }))
    expect(await openExceptions()).toHaveLength(1)
    await ignoreAll()
    expect(await floatOf(mine)).toBe(5_500n)
  })
})

test('the balances of a day reconcile before and after the money of a settlement arrives', async () => {
  const difference = async () => {
    const [day] = await listBalances(harness.db, settings, { daysMax: 1 })
    return day && day.bank - day.book
  }
  const mine = await closedCycle(8_000)
  await answer(`head;D1;${ownIban}`, 'balance;2026-04-02;0EUR')
  const before = await difference()
  await settle(mine, [8_000])
  expect(await difference()).toBe(before)
  await answer(`head;D2;${ownIban}`, entry(8_000, dues.referenceOf(mine.payCycle.id)), 'balance;2026-04-02;8000EUR')
  expect(await difference()).toBe(before)
})

test('what payroll gave back on balance is owed to the employer, and leaves the float with the transfer', async () => {
  const mine = await closedCycle(3_000)
  // Payroll took too much, so the next cycle gives it back.
  await settle(mine, [5_000])
  await answer('head;F1', entry(5_000, dues.referenceOf(mine.payCycle.id)))
  const open = await harness.call('GET', '/v1/pay/cycles?statuses=Open', { key: mine.key })
  const next = { ...mine, payCycle: open.body.payCycles[0] }
  harness.clock.set(new Date('2026-05-04T10:00:00.000Z'))
  await harness.inTx(tx => closeIfOver(tx, { partnerId: mine.partner.id, now: harness.clock.now() }))
  const settled = await settle(next, [-2_000])
  expect(settled.body.totals).toMatchObject([{ taken: eur(-2_000), due: eur(-2_000) }])
  expect(await floatOf(mine)).toBe(5_000n)
  await answer('head;F2', entry(-2_000, settled.body.paymentReference, { bank: 'out' }))
  expect(await openExceptions()).toEqual([])
  expect(await floatOf(mine)).toBe(3_000n)
  expect(await harness.disagreements()).toEqual([])
})
