import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import { closeException, decideOutcome } from '../../../test/payouts/two-person-decisions.ts'
import { fund } from '../../float/float.ts'
import { readProposals } from './attachments.ts'
import type { Decision } from './decisions.ts'
import * as exceptions from './exceptions.ts'
import type { OutcomeByHand } from './outcomes.ts'

let scene: FileRailScene
beforeAll(async () => {
  scene = await FileRailScene.start()
})
afterAll(() => scene.harness.stop())
beforeEach(() => scene.nextWeek())
afterEach(async () => {
  expect(await scene.disagreements()).toEqual([])
  await scene.harness.pool.query(`
    update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`)
})

let messages = 0
const message = () => `head;M${++messages}`
const eur = (amount: bigint) => ({ amount, currency: 'EUR' as const })

async function decide(decided: Decision): Promise<void> {
  const [exception] = await scene.open()
  const now = scene.harness.clock.now()
  await scene.inTx(tx =>
    closeException(tx, { exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked the bank', now, ...decided }),
  )
  await scene.run('read-rail-reports')
}

async function say(payment: string, decided: OutcomeByHand): Promise<void> {
  await scene.inTx(tx => decideOutcome(tx, { payment, now: scene.harness.clock.now(), ...decided }))
  await scene.run('read-rail-reports')
}

const proposalsOf = async () => {
  const [exception] = await exceptions.list(scene.harness.db, { state: 'open', take: 1 })
  if (exception === undefined) throw new Error('No exception is open')
  return await readProposals(scene.harness.db, exception)
}

describe('Money that the bank names only in words', () => {
  test('is attached to all payments that it names, if they add up to it, when it left and when it came back', async () => {
    const float = async () => (await scene.books()).float ?? 0
    const before = await float()
    const { payments } = await scene.sent(5_000, 6_000, 7_000)
    const [first = '', second = '', third = ''] = payments.map(({ reference }) => reference)
    await scene.answer(message(), `entry;-11000EUR;;E1;2026-02-11;SAMMLER ${first} ${second.toLowerCase()}`)
    expect((await proposalsOf()).proposals.map(({ reference }) => reference)).toEqual([first, second].sort())
    const { id: partnerId } = scene.harness.partner
    for (const decision of ['book', 'write_off'] as const)
      await expect(decide({ decision, partnerId })).rejects.toThrow(/names the payments .*; attach it to them/)
    const references = [second, first]
    await expect(decide({ decision: 'attach', references: [first, third] })).rejects.toThrow(
      'The payments add up to 120.00 EUR, but the bank booked 110.00 EUR',
    )
    await decide({ decision: 'attach', references })
    expect(await scene.statusesOf(payments)).toEqual(['paid', 'paid', 'submitted'])
    expect(await float()).toBe(before - 11_000)
    // The statement that names each in the usual way repeats it.
    for (const [index, reference] of [first, second].entries())
      await scene.answer(message(), `paid;${reference};${5_000 + index * 1_000}EUR;;S${index};2026-02-11`)
    expect(await scene.open()).toEqual([])

    await scene.answer(message(), `entry;11000EUR;;E2;2026-02-12;RETURNED ${first} ${second}`)
    await expect(decide({ decision: 'book', partnerId })).rejects.toThrow(/The credit names the payments/)
    const operator = await scene.harness.addOperator()
    const [credit] = await scene.open()
    const body = { decision: 'attach', references, note: 'returned as one sum' }
    expect((await operator.call('POST', `/payout-exceptions/${credit?.id}/close`, { body })).status).toBe(200)
    await scene.run('read-rail-reports')
    expect(await scene.statusesOf(payments)).toEqual(['returned', 'returned', 'submitted'])
    expect(await float()).toBe(before)

    await scene.answer(message(), `entry;-11000EUR;;E3;2026-02-13;SAMMLER ${first} ${second}`)
    await expect(decide({ decision: 'attach', references })).rejects.toThrow('is already returned')
  })

  test('is proposed for the payment whose reference its text holds, in any letter case, and attached by a decision only', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '', memberId = '' } = payments[0] ?? {}
    await scene.answer(message(), `paid;${reference};5000EUR;;E1;2026-03-10`)
    const words = `RETURN ${reference.slice(0, 9).toLowerCase()} ${reference.slice(9).toLowerCase()} AC04 closed`
    await scene.answer(message(), `entry;5000EUR;;E2;2026-03-12;${words}`)
    expect(await scene.open()).toMatchObject([{ kind: 'money_in', bankText: words }])
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    expect(await proposalsOf()).toMatchObject({
      proposals: [{ reference, netAmount: 5_000n }],
      isBookedElsewhere: false,
    })
    await decide({ decision: 'attach', reference })
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
    expect(await scene.balanceOf(memberId)).toEqual({ available: 5_050, owed: 0 })
    // The statement that names it in the usual way repeats it.
    await scene.answer(message(), `returned;${reference};5000EUR;AC04;E9;2026-03-12`)
    expect(await scene.open()).toEqual([])
  })

  test('pays a payment if it left, and warns if another message has booked as much on the day', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await scene.answer(message(), `entry;-5000EUR;;E1;2026-03-11;TRANSFER ${reference}`)
    await scene.answer(message(), `entry;-5000EUR;;E2;2026-03-11;transfer`)
    expect(await proposalsOf()).toEqual({ proposals: [], isBookedElsewhere: true })
    await expect(decide({ decision: 'attach', reference: 'MMAAAAAAAAAAAAAA' })).rejects.toThrow('There is no payment')
    await decide({ decision: 'attach', reference })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    await expect(decide({ decision: 'attach', reference })).rejects.toThrow('is already paid')
  })

  test('less a charge is taken with the charge that the decision names, which the operator or the partner bears', async () => {
    for (const borneBy of ['operator', 'partner'] as const) {
      await scene.nextWeek()
      const { payments } = await scene.sent(5_000)
      const { reference = '', memberId = '' } = payments[0] ?? {}
      await scene.answer(message(), `paid;${reference};5000EUR`)
      const before = await scene.books()
      await scene.answer(message(), `entry;4500EUR;;${borneBy};2026-03-12;return ${reference}`)
      await expect(decide({ decision: 'attach', reference })).rejects.toThrow('name the charge of 5.00 EUR')
      const charge = (amount: bigint) =>
        ({ decision: 'attach', reference, charge: { amount: eur(amount), borneBy } }) as const
      await expect(decide(charge(499n))).rejects.toThrow('name the charge of 5.00 EUR')
      await decide(charge(500n))
      expect(await scene.balanceOf(memberId)).toEqual({ available: 5_050, owed: 0 })
      const after = await scene.books()
      expect((after.float ?? 0) - (before.float ?? 0)).toBe(4_500)
      const bearer = borneBy === 'operator' ? 'operator_costs' : 'written_off'
      expect((after[bearer] ?? 0) - (before[bearer] ?? 0)).toBe(500)
    }
  })

  test('pays a payment of which the bank deducted a charge: what did not leave stays in the float', async () => {
    for (const borneBy of ['operator', 'partner'] as const) {
      await scene.nextWeek()
      const { payments } = await scene.sent(5_000)
      const { reference = '', memberId = '' } = payments[0] ?? {}
      const before = await scene.books()
      await scene.answer(message(), `entry;-4500EUR;;${borneBy};2026-03-12;transfer ${reference}`)
      await expect(decide({ decision: 'attach', reference })).rejects.toThrow('name the charge of 5.00 EUR')
      await decide({ decision: 'attach', reference, charge: { amount: eur(500n), borneBy } })
      expect(await scene.statusesOf(payments)).toEqual(['paid'])
      expect(await scene.balanceOf(memberId)).toEqual({ available: 0, owed: 0 })
      const after = await scene.books()
      expect((after.float ?? 0) - (before.float ?? 0)).toBe(-4_500)
      expect(after.operator_costs ?? 0).toBe(before.operator_costs ?? 0)
    }
  })

  test('is not booked as other money while it may be the payment, which a later return would count twice', async () => {
    const { payments } = await scene.sent(5_100)
    const { reference = '' } = payments[0] ?? {}
    const { id: partnerId } = scene.harness.partner
    const before = await scene.books()
    await scene.answer(message(), `entry;-5100EUR;;N1;2026-03-11;TRANSFER ${reference.toLowerCase()}`)
    for (const decision of ['book', 'write_off'] as const)
      await expect(decide({ decision, partnerId })).rejects.toThrow(`attach it to ${reference}`)
    // A status without an entry pays the payment, and the debit is still to be explained.
    await scene.answer(message(), `paid;${reference};5100EUR`)
    await expect(decide({ decision: 'book', partnerId })).rejects.toThrow(`attach it to ${reference}`)
    await decide({ decision: 'attach', reference })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    await scene.answer(message(), `entry;5100EUR;;N2;2026-03-12;RETURN ${reference}`)
    await expect(decide({ decision: 'book', partnerId })).rejects.toThrow(`attach it to ${reference}`)
    await decide({ decision: 'attach', reference })
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
    await scene.answer(message(), `returned;${reference};5100EUR;AC04;N9;2026-03-12`)
    expect(await scene.open()).toEqual([])
    expect((await scene.books()).float).toBe(before.float)
    await scene.answer(message(), `entry;-5100EUR;;N3;2026-03-16;TRANSFER ${reference}`)
    await expect(decide({ decision: 'book', partnerId })).rejects.toThrow(`recover ${reference}, or write`)
  })

  test('is booked as other money if it is a second debit of the payment, or too much to be it', async () => {
    const { payments } = await scene.sent(5_200)
    const { reference = '' } = payments[0] ?? {}
    const { id: partnerId } = scene.harness.partner
    await scene.inTx(tx =>
      fund(tx, { partnerId, amount: eur(50_000n), reference: 'for rent', now: scene.harness.clock.now() }),
    )
    const { float = 0 } = await scene.books()
    await scene.answer(message(), `entry;-10400EUR;;O1;2026-03-11;RENT LIKE ${reference}`)
    await decide({ decision: 'book', partnerId })
    await scene.answer(message(), `paid;${reference};5200EUR;;O2;2026-03-11`)
    await scene.answer(message(), `entry;-5200EUR;;O3;2026-03-12;AGAIN ${reference}`)
    await expect(decide({ decision: 'attach', reference })).rejects.toThrow('is already paid')
    await decide({ decision: 'book', partnerId })
    expect((await scene.books()).float).toBe(float - 20_800)
  })

  test('recovers the payments that were given back and that the debit adds up to; later files say the same quietly', async () => {
    const sent = await scene.sent(5_000, 6_000)
    const [first = '', second = ''] = sent.payments.map(({ reference }) => reference)
    await scene.answer(message(), `batch;${sent.messageId};rejected;FF01`)
    await scene.answer(message(), `entry;-5000EUR;;E1;2026-03-12;transfer ${first.toLowerCase()}`)
    expect(await scene.open()).toMatchObject([{ kind: 'money_out' }])
    expect((await proposalsOf()).proposals).toMatchObject([{ reference: first, outcome: 'failed' }])
    const before = await scene.books()
    await expect(decide({ decision: 'recover' })).rejects.toThrow('The bank names no payment')
    await expect(decide({ decision: 'recover', references: [second] })).rejects.toThrow('add up to 60.00 EUR')
    await decide({ decision: 'recover', references: [first] })
    expect(await scene.statusesOf(sent.payments)).toEqual(['paid', 'failed'])
    expect(await scene.balanceOf(sent.payments[0]?.memberId ?? '')).toEqual({ available: 0, owed: 0 })
    expect(((await scene.books()).float ?? 0) - (before.float ?? 0)).toBe(-5_000)
    await scene.answer(message(), `paid;${first};5000EUR;;E9;2026-03-12`)
    expect(await scene.open()).toEqual([])
    await scene.answer(message(), `entry;-5000EUR;;E3;2026-03-13;transfer ${first}`)
    await expect(decide({ decision: 'recover', references: [first] })).rejects.toThrow('is paid; its money was not')
  })

  test('or that a file without days advises, less a charge, is given back with the charge', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await scene.answer(message(), `paid;${reference};5000EUR`)
    const before = await scene.books()
    await scene.answer(message(), `returned;${reference};4500EUR;AC04`)
    expect(await scene.open()).toMatchObject([{ kind: 'amount', bookedOn: null }])
    await expect(decide({ decision: 'give_back' })).rejects.toThrow('name the charge of 5.00 EUR')
    await decide({ decision: 'give_back', charge: { amount: eur(500n), borneBy: 'operator' } })
    const after = await scene.books()
    expect((after.float ?? 0) - (before.float ?? 0)).toBe(4_500)
  })

  test('is not attached with a charge as large as the payment: that is other money', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await scene.answer(message(), `entry;-10000EUR;;E1;2026-03-11;${reference}`)
    const charge = { amount: eur(5_000n), borneBy: 'operator' } as const
    await expect(decide({ decision: 'attach', reference, charge })).rejects.toThrow(
      'A charge must be less than its payment',
    )
    const credit = { bookedOn: scene.harness.clock.now().toISOString().slice(0, 10), amount: eur(0n) }
    await expect(say(reference, { outcome: 'returned', credit })).rejects.toThrow(
      'A charge must be less than its payment',
    )
  })

  test('and names a payment with another amount is not given back in full', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await scene.answer(message(), `paid;${reference};5000EUR`)
    const before = await scene.books()
    await scene.answer(message(), `returned;${reference};4500EUR;AC04;E3;2026-03-12`)
    await expect(decide({ decision: 'give_back' })).rejects.toThrow('name the charge of 5.00 EUR')
    await decide({ decision: 'give_back', charge: { amount: eur(500n), borneBy: 'operator' } })
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
    expect(((await scene.books()).float ?? 0) - (before.float ?? 0)).toBe(4_500)
  })
})

describe('A sent payment that no file answers', () => {
  test('is paid by hand; a file that says the same closes quietly, and another opens an exception', async () => {
    const { payments, messageId } = await scene.sent(5_000)
    const { reference = '', id = '' } = payments[0] ?? {}
    await say(id, { outcome: 'paid' })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    await scene.answer(message(), `entry;-5000EUR;${messageId};E1;2026-03-11`)
    await scene.answer(message(), `paid;${reference};5000EUR`)
    expect(await scene.open()).toEqual([])
    await scene.answer(message(), `failed;${reference};5000EUR;AC04`)
    expect(await scene.open()).toMatchObject([{ kind: 'contradiction' }])
  })

  test('fails by hand only once the bank cannot pay it any longer', async () => {
    const { payments, messageId } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await expect(say(reference, { outcome: 'failed' })).rejects.toThrow('The bank may still pay')
    scene.harness.clock.advance({ minutes: 5 * 24 * 60 })
    await scene.answer(message(), `batch;${messageId};acknowledged`)
    await expect(say(reference, { outcome: 'failed' })).rejects.toThrow('has accepted')
    const tomorrow = scene.harness.clock.now().toISOString().slice(0, 10)
    await scene.answer(message(), `balance;${tomorrow};0EUR`, `entry;-5000EUR;;E1;${tomorrow};transfer`)
    await expect(say(reference, { outcome: 'failed' })).rejects.toThrow('may be the payment')
    await decide({ decision: 'ignore' })
    await say(reference, { outcome: 'failed' })
    expect(await scene.statusesOf(payments)).toEqual(['failed'])
    // A later debit is money that was given back.
    await scene.answer(message(), `paid;${reference};5000EUR;;E2;2026-03-20`)
    expect(await scene.open()).toMatchObject([{ kind: 'paid_after_give_back' }])
  })

  test('is returned by hand with the day and amount of the credit, which the statement then repeats', async () => {
    const { payments } = await scene.sent(5_000, 6_000)
    const [first = '', second = ''] = payments.map(({ reference }) => reference)
    const bookedOn = scene.harness.clock.now().toISOString().slice(0, 10)
    const credit = { bookedOn, amount: eur(5_000n) }
    await expect(say(first, { outcome: 'returned', credit: { ...credit, bookedOn: '2026-01-01' } })).rejects.toThrow(
      'so it cannot have come back on 2026-01-01',
    )
    await expect(say(first, { outcome: 'returned', credit: { ...credit, amount: eur(5_001n) } })).rejects.toThrow(
      'another amount',
    )
    await say(first, { outcome: 'returned', credit })
    await say(second, { outcome: 'returned', credit: { ...credit, amount: eur(5_900n) } })
    expect(await scene.statusesOf(payments)).toEqual(['returned', 'returned'])
    const repeated = [`returned;${first};5000EUR;AC04;E1;${bookedOn}`, `returned;${second};5900EUR;AC04;E2;${bookedOn}`]
    await scene.answer(message(), ...repeated)
    await scene.answer(message(), ...repeated)
    expect(await scene.open()).toEqual([])
    await scene.answer(message(), `entry;5000EUR;;E3;${bookedOn};RETURN`)
    await decide({ decision: 'attach', reference: first })
    expect(await scene.open()).toEqual([])
    // One credit was recorded by hand, so another entry is other money.
    await scene.answer(message(), `entry;5000EUR;;E5;${bookedOn};RETURN`)
    await expect(decide({ decision: 'attach', reference: first })).rejects.toThrow('is already returned')
    await decide({ decision: 'ignore' })
    await scene.answer(message(), `returned;${first};5000EUR;AC04;E4;2030-01-01`)
    expect(await scene.open()).toMatchObject([{ kind: 'money_in' }])
  })

  test('and is returned by hand, and then again on that day, has one exception for the second credit', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    const bookedOn = scene.harness.clock.now().toISOString().slice(0, 10)
    await say(reference, { outcome: 'returned', credit: { bookedOn, amount: eur(5_000n) } })
    const credit = (entry: string) => `returned;${reference};5000EUR;AC04;${entry};${bookedOn}`
    await scene.answer(`${message()};;camt.054`, credit('E1'))
    await scene.answer(`${message()};;camt.054`, credit('E2'))
    expect(await scene.open()).toMatchObject([{ kind: 'money_in', amount: 5_000n }])
    await scene.answer(`${message()};;camt.053`, credit('E1'), credit('E2'))
    expect(await scene.open()).toHaveLength(1)
  })

  test('is not returned by hand while an exception is open about the credit', async () => {
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    const bookedOn = scene.harness.clock.now().toISOString().slice(0, 10)
    await scene.answer(message(), `returned;${reference};4500EUR;AC04;E1;${bookedOn}`)
    const credit = { bookedOn, amount: eur(4_500n) }
    // The portal may show another day than the statement.
    for (const day of [bookedOn, '2030-01-01'])
      await expect(say(reference, { outcome: 'returned', credit: { ...credit, bookedOn: day } })).rejects.toThrow(
        'decide that one',
      )
    await decide({ decision: 'give_back', charge: { amount: eur(500n), borneBy: 'operator' } })
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
  })
})
