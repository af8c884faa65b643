import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import { closeException } from '../../../test/payouts/two-person-decisions.ts'
import type { Decision } from './decisions.ts'

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
const message = () => `head;I${++messages}`

async function decide(decided: Decision): Promise<void> {
  const [exception] = await scene.open()
  const common = { exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked', now: scene.harness.clock.now() }
  await scene.inTx(tx => closeException(tx, { ...common, ...decided }))
  await scene.run('read-rail-reports')
}

/** The change of the float since then. */
async function since(): Promise<() => Promise<number>> {
  const before = (await scene.books()).float ?? 0
  return async () => ((await scene.books()).float ?? 0) - before
}
const charge = (amount: bigint) => ({ amount: { amount, currency: 'EUR' }, borneBy: 'operator' }) as const
const refusal = /would leave the money out of the books/

describe('Money that the bank booked for a payment or batch of ours is not ignored', () => {
  test('a return less charges is given back with the charge', async () => {
    const floatSince = await since()
    const { payments, messageId } = await scene.sent(5_000)
    await scene.answer(message(), `entry;-5000EUR;${messageId};E1;2026-03-11`)
    await scene.answer(message(), `returned;${payments[0]?.reference};4500EUR;AC04;E2;2026-03-12`)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(refusal)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(/attach it to the payment or give it back/)
    await decide({ decision: 'give_back', charge: charge(500n) })
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
    expect(await floatSince()).toBe(-500)
  })

  test('a return of a payment that nothing has reported as paid returns it, and its debit changes nothing', async () => {
    const floatSince = await since()
    const { payments, messageId } = await scene.sent(5_000)
    await scene.answer(message(), `returned;${payments[0]?.reference};;AM05;E1;2026-03-12`)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(refusal)
    await decide({ decision: 'give_back' })
    await scene.answer(message(), `entry;-5000EUR;${messageId};E2;2026-03-11`)
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
    expect(await floatSince()).toBe(0)
  })

  test('a debit of a payment and of a batch with a charge is attached with it, to a batch only once', async () => {
    const floatSince = await since()
    const one = await scene.sent(5_000)
    const reference = one.payments[0]?.reference ?? ''
    await scene.answer(message(), `paid;${reference};5020EUR;;E1;2026-03-11`)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(/attach it to the payment, with the charge/)
    await decide({ decision: 'attach', reference, charge: charge(20n) })
    expect(await floatSince()).toBe(-5_020)

    await scene.nextWeek()
    const two = await scene.sent(5_000, 6_000)
    await scene.answer(message(), `entry;-11030EUR;${two.messageId};E2;2026-03-11`)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(/attach it to the batch with the charge/)
    const attached = { decision: 'attach', reference: two.messageId } as const
    await expect(decide(attached)).rejects.toThrow('name the charge of 0.30 EUR')
    await decide({ ...attached, charge: charge(30n) })
    expect(await scene.statusesOf(two.payments)).toEqual(['paid', 'paid'])
    expect(await floatSince()).toBe(-16_050)

    await scene.answer(message(), `entry;-11040EUR;${two.messageId};E3;2026-03-12`)
    await expect(decide({ ...attached, charge: charge(40n) })).rejects.toThrow('has debited')
    await decide({ decision: 'write_off' })
    expect(await floatSince()).toBe(-27_090)
  })

  test('a debit of less than the payment is attached with what the bank deducted', async () => {
    const floatSince = await since()
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await scene.answer(message(), `paid;${reference};4900EUR;;E1;2026-03-11`)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(refusal)
    await decide({ decision: 'attach', reference, charge: charge(100n) })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    expect(await floatSince()).toBe(-4_900)
  })

  test('a second debit of a payment that was given back is written off once the first is recovered', async () => {
    const floatSince = await since()
    const { payments } = await scene.sent(5_000)
    const reference = payments[0]?.reference
    await scene.answer(message(), `failed;${reference};5000EUR;AC04`)
    for (const entry of ['E1', 'E2']) await scene.answer(message(), `paid;${reference};5000EUR;;${entry};2026-03-11`)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(/recover it, or write it off/)
    await decide({ decision: 'recover' })
    expect((await scene.open()).map(({ kind }) => kind)).toEqual(['money_out'])
    await decide({ decision: 'write_off' })
    expect(await floatSince()).toBe(-10_000)
  })

  test('a credit of a failed payment is booked as money of the partner', async () => {
    const floatSince = await since()
    const partnerId = scene.harness.partner.id
    const failed = await scene.sent(5_000)
    const { reference } = failed.payments[0] ?? {}
    await scene.answer(message(), `failed;${reference};5000EUR;AC04`)
    await scene.answer(message(), `returned;${reference};5000EUR;AC04;E1;2026-03-12`)
    await expect(decide({ decision: 'ignore' })).rejects.toThrow(/or book it as money of the partner/)
    await decide({ decision: 'book', partnerId })
    expect(await floatSince()).toBe(5_000)
  })
})
