import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import { closeException, decideOutcome } from '../../../test/payouts/two-person-decisions.ts'
import type { Decision } from './decisions.ts'
import * as exceptions from './exceptions.ts'

let scene: FileRailScene
let atStart = 0
beforeAll(async () => {
  scene = await FileRailScene.start()
})
afterAll(() => scene.harness.stop())
beforeEach(async () => {
  await scene.nextWeek()
  atStart = (await scene.books()).float ?? 0
})
afterEach(async () => {
  expect(await scene.disagreements()).toEqual([])
  await scene.harness.pool.query(`
    update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`)
})

let messages = 0
const message = () => `head;O${++messages}`
const kinds = async () => (await scene.open()).map(({ kind }) => kind)
/** The change of the float: exactly the money that the bank has moved, if nothing waits for a decision. */
const moved = async () => ((await scene.books()).float ?? 0) - atStart
const charge = (amount: bigint) => ({ amount: { amount, currency: 'EUR' }, borneBy: 'operator' }) as const

async function decide(decided: Decision, index = 0): Promise<void> {
  const exception = (await scene.open())[index]
  const common = { exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked', now: scene.harness.clock.now() }
  await scene.inTx(tx => closeException(tx, { ...common, ...decided }))
  await scene.run('read-rail-reports')
}

async function two() {
  const sent = await scene.sent(5_000, 6_000)
  const [one = '', other = ''] = sent.payments.map(({ reference }) => reference)
  return { ...sent, one, other }
}

describe('A debit is written off only if it cannot be the payment’s', () => {
  const refusal = /may be the only one of .*, which would be in the books twice/
  const writeOff = () => decide({ decision: 'write_off', partnerId: scene.harness.partner.id })

  test('A debit of another sum is matched to its batch once the bank reports which payments failed', async () => {
    const { messageId, one, payments } = await two()
    const debit = `entry;-6000EUR;${messageId};E1;2026-03-11`
    await scene.answer(message(), debit)
    await expect(writeOff()).rejects.toThrow(refusal)
    await scene.answer(message(), `failed;${one};5000EUR;AC04`)
    await scene.answer(message(), debit)
    expect(await scene.statusesOf(payments)).toEqual(['failed', 'paid'])
    expect(await kinds()).toEqual([])
    expect(await moved()).toBe(-6_000)
  })

  test('The debit of a batch that only statuses called paid is attached, even if it is not the sum of the payments', async () => {
    for (const difference of [20, -500]) {
      const { messageId, payments } = await two()
      for (const { reference } of payments) await scene.answer(message(), `paid;${reference}`)
      await scene.answer(message(), `entry;${-11_000 - difference}EUR;${messageId};E1;2026-03-11`)
      await expect(writeOff()).rejects.toThrow(refusal)
      const units = BigInt(Math.abs(difference))
      await decide({ decision: 'attach', reference: messageId, charge: charge(units) })
      expect(await kinds()).toEqual([])
      expect(await moved()).toBe(-11_000 - difference)
      await scene.nextWeek()
      atStart = (await scene.books()).float ?? 0
    }
  })

  test('A batch that is debited with less than its payments is paid, less what the bank deducted', async () => {
    const { messageId, payments } = await two()
    await scene.answer(message(), `entry;-10500EUR;${messageId};E1;2026-03-11`)
    const attached = { decision: 'attach', reference: messageId } as const
    await expect(decide(attached)).rejects.toThrow('name the charge of 5.00 EUR, or give_back the payments')
    await decide({ ...attached, charge: charge(500n) })
    for (const { reference } of payments) await scene.answer(message(), `paid;${reference}`)
    expect(await scene.statusesOf(payments)).toEqual(['paid', 'paid'])
    expect(await moved()).toBe(-10_500)
  })

  test('The smaller debit of a payment is attached, even after a status called the payment paid', async () => {
    const { one, payments } = await two()
    await scene.answer(message(), `paid;${one};5000EUR`)
    await scene.answer(message(), `paid;${one};4900EUR;;E1;2026-03-11`)
    await expect(writeOff()).rejects.toThrow(refusal)
    await decide({ decision: 'attach', reference: one, charge: charge(100n) })
    expect(await scene.statusesOf(payments)).toEqual(['paid', 'submitted'])
    expect(await moved()).toBe(-4_900)
  })

  test('The smaller debit of a payment that has failed is written off, and a status that calls it paid adds nothing', async () => {
    const { payments } = await scene.sent(5_000)
    const reference = payments[0]?.reference ?? ''
    await scene.answer(message(), `paid;${reference};4900EUR;;E1;2026-03-11`)
    scene.harness.clock.advance({ minutes: 3 * 24 * 60 })
    const now = scene.harness.clock.now()
    await scene.inTx(tx => decideOutcome(tx, { payment: reference, outcome: 'failed', now }))
    await writeOff()
    await scene.answer(message(), `paid;${reference};5000EUR`)
    expect(await kinds()).toEqual(['paid_after_give_back'])
    await expect(decide({ decision: 'recover' })).rejects.toThrow('is written off, so it cannot also be recovered')
    expect(await moved()).toBe(-4_900)
  })

  test('The debit of money that was given back is not recovered once it is written off at the cost of a partner', async () => {
    const { messageId, one, payments } = await two()
    await scene.answer(message(), `batch;${messageId};rejected;FF01`)
    await scene.answer(message(), `entry;-11000EUR;${messageId};E1;2026-03-11`)
    await writeOff()
    await scene.answer(message(), `paid;${one};5000EUR`)
    await expect(decide({ decision: 'recover' })).rejects.toThrow('is written off, so it cannot also be recovered')
    expect(await scene.statusesOf(payments)).toEqual(['failed', 'failed'])
    expect(await moved()).toBe(-11_000)
  })
})

describe('A second booking is told apart from the one that was decided', () => {
  test('The debit of a batch after one that was attached with a charge', async () => {
    const { messageId } = await two()
    await scene.answer(message(), `entry;-11020EUR;${messageId};E1;2026-03-11`)
    await decide({ decision: 'attach', reference: messageId, charge: charge(20n) })
    await scene.answer(message(), `entry;-11000EUR;${messageId};E2;2026-03-11`)
    expect(await scene.open()).toMatchObject([{ kind: 'money_out', amount: -11_000n }])
    expect(await moved()).toBe(-11_020)
  })

  test('The debit of a payment after one that was attached with a charge', async () => {
    const { one } = await two()
    await scene.answer(message(), `paid;${one};5020EUR;;E1;2026-03-11`)
    await decide({ decision: 'attach', reference: one, charge: charge(20n) })
    for (const _ of [1, 2]) await scene.answer(message(), `paid;${one};5000EUR;;E2;2026-03-11`)
    expect(await scene.open()).toMatchObject([{ kind: 'money_out', amount: -5_000n }])
  })

  test('The credit of a payment after one that was given back with a charge', async () => {
    const { one } = await two()
    await scene.answer(message(), `paid;${one};5000EUR;;E1;2026-03-11`)
    await scene.answer(message(), `returned;${one};4500EUR;AC04;E2;2026-03-12`)
    await decide({ decision: 'give_back', charge: charge(500n) })
    await scene.answer(message(), `returned;${one};5000EUR;AC04;E3;2026-03-12`)
    expect(await scene.open()).toMatchObject([{ kind: 'money_in', amount: 5_000n }])
    expect(await moved()).toBe(-500)
  })

  test('A debit that names a returned payment only in words is the payment itself, and a second debit is recovered', async () => {
    const { one } = await two()
    await scene.answer(message(), `returned;${one};5000EUR;AC04;E2;2026-03-12`)
    await scene.answer(message(), `entry;-5000EUR;;W1;2026-03-11;PAYMENT ${one}`)
    await expect(decide({ decision: 'recover', references: [one] })).rejects.toThrow(
      'may be the payment before its return',
    )
    await expect(decide({ decision: 'write_off', partnerId: scene.harness.partner.id })).rejects.toThrow('attach it to')
    await decide({ decision: 'attach', reference: one })
    expect(await moved()).toBe(0)
    await scene.answer(message(), `entry;-5000EUR;;W3;2026-03-13;PAYMENT ${one}`)
    await decide({ decision: 'recover', references: [one] })
    expect(await moved()).toBe(-5_000)
  })

  test('A written-off debit that names its payment only in words is not recovered by a status', async () => {
    const { one } = await two()
    await scene.answer(message(), `failed;${one};5000EUR;AC04`)
    await scene.answer(message(), `entry;-5000EUR;;W5;2026-03-12;PAYMENT ${one}`)
    await decide({ decision: 'write_off', partnerId: scene.harness.partner.id })
    await scene.answer(message(), `paid;${one};5000EUR`)
    await expect(decide({ decision: 'recover' })).rejects.toThrow('is written off, so it cannot also be recovered')
  })

  test('The credit of a payment that was given back, and whose debit the operator bears', async () => {
    const { one } = await two()
    await scene.answer(message(), `paid;${one};5000EUR`)
    await scene.answer(message(), `failed;${one};5000EUR;AC04`)
    await decide({ decision: 'give_back' })
    await scene.answer(message(), `paid;${one};5000EUR;;E1;2026-03-11`)
    await decide({ decision: 'write_off' })
    await scene.answer(message(), `returned;${one};5000EUR;AC04;E2;2026-03-12`)
    expect(await scene.open()).toMatchObject([{ kind: 'money_in', amount: 5_000n }])
  })
})

describe('A payment that the bank calls paid and then rejected', () => {
  test('is not given back because its copy is a duplicate', async () => {
    const { one, payments } = await two()
    await scene.answer(message(), `paid;${one};5000EUR`)
    await scene.answer(message(), `failed;${one};5000EUR;DU01`)
    expect(await kinds()).toEqual(['duplicate'])
    await expect(decide({ decision: 'give_back' })).rejects.toThrow('The bank has paid')
    await decide({ decision: 'ignore' })
    expect(await scene.statusesOf(payments)).toEqual(['paid', 'submitted'])
  })

  test.each(['alone', 'with its batch'])('is returned only by a credit if the bank has debited it %s', async how => {
    const { messageId, one, payments } = await two()
    const debit = how === 'alone' ? `paid;${one};5000EUR` : `entry;-11000EUR;${messageId}`
    await scene.answer(message(), `${debit};${how === 'alone' ? ';' : ''}E1;2026-03-11`)
    await scene.answer(message(), `failed;${one};5000EUR;AC04`)
    expect(await kinds()).toEqual(['contradiction'])
    await expect(decide({ decision: 'give_back' })).rejects.toThrow('The bank has paid')
    await scene.answer(message(), `returned;${one};5000EUR;AC04;E2;2026-03-12`)
    expect((await scene.statusesOf(payments))[0]).toBe('returned')
    expect(await moved()).toBe(how === 'alone' ? 0 : -6_000)
  })

  test('is an exception if the bank debits it after it was given back', async () => {
    const { one, payments } = await two()
    await scene.answer(message(), `paid;${one};5000EUR`)
    await scene.answer(message(), `failed;${one};5000EUR;AC04`)
    await decide({ decision: 'give_back' })
    for (const _ of [1, 2]) await scene.answer(message(), `paid;${one};5000EUR;;E1;2026-03-11`)
    expect(await scene.open()).toMatchObject([{ kind: 'paid_after_give_back', reference: one, amount: -5_000n }])
    await decide({ decision: 'recover' })
    expect(await scene.statusesOf(payments)).toEqual(['paid', 'submitted'])
    expect(await moved()).toBe(-5_000)
  })

  test('is an exception if the bank debits its batch after it was given back, and explains a debit without it', async () => {
    for (const debit of [11_000, 6_000]) {
      const { messageId, one, payments } = await two()
      await scene.answer(message(), `paid;${one};5000EUR`)
      await scene.answer(message(), `failed;${one};5000EUR;AC04`)
      await decide({ decision: 'give_back' })
      await scene.answer(message(), `entry;-${debit}EUR;${messageId};E1;2026-03-11`)
      if (debit === 11_000) {
        expect(await kinds()).toEqual(['paid_after_give_back'])
        await decide({ decision: 'recover' })
      }
      expect(await kinds()).toEqual([])
      expect(await scene.statusesOf(payments)).toEqual([debit === 11_000 ? 'paid' : 'returned', 'paid'])
      expect(await moved()).toBe(-debit)
      await scene.nextWeek()
      atStart = (await scene.books()).float ?? 0
    }
  })
})

test('An advice that less than the payment came back is closed with give_back, not ignored', async () => {
  const { one, messageId } = await two()
  await scene.answer(message(), `entry;-11000EUR;${messageId};E1;2026-03-11`)
  await scene.answer(message(), `returned;${one};4500EUR;AC04;E2`)
  await expect(decide({ decision: 'ignore' })).rejects.toThrow('give it back with the charge')
  await decide({ decision: 'give_back', charge: charge(500n) })
  expect(await moved()).toBe(-6_500)
})

test('A report that could not be recorded cannot be ignored before its withdrawal has it', async () => {
  const { payments } = await scene.sent(5_000)
  const [{ id = '', reference = '' } = {}] = payments
  const { partner, clock } = scene.harness
  const outcome = 'returned'
  const payout = { partnerId: partner.id, withdrawalId: id }
  const refused = (fingerprint: string) =>
    scene.inTx(tx =>
      exceptions.open(
        tx,
        [
          {
            rail: scene.settings.name,
            kind: 'refused',
            fingerprint,
            reason: 'Is tried again',
            reference,
            outcome,
            payout,
          },
        ],
        clock.now(),
      ),
    )
  await scene.answer(message(), `paid;${reference};5000EUR;;E1;2026-03-11`)
  await scene.importText([message(), `returned;${reference};5000EUR;AC04;E2;2026-03-12`, 'end'].join('\n'))
  await refused('early')
  await expect(decide({ decision: 'ignore' })).rejects.toThrow(`The withdrawal of ${reference} is not returned yet`)
  await scene.run('read-rail-reports')
  expect(await kinds()).toEqual([])
  expect(await moved()).toBe(0)
  await refused('late')
  await decide({ decision: 'ignore' })
})
