import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
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
const message = () => `head;R${++messages}`
const kinds = async () => (await scene.open()).map(({ kind }) => kind)

async function decide(decided: Decision, index = 0): Promise<void> {
  const exception = (await scene.open())[index]
  const common = { exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked', now: scene.harness.clock.now() }
  await scene.inTx(tx => closeException(tx, { ...common, ...decided }))
  await scene.run('read-rail-reports')
}

async function paidTwice() {
  const { payments } = await scene.sent(5_000)
  const reference = payments[0]?.reference ?? ''
  const paid = (entry: string) => `paid;${reference};5000EUR;;${entry};2026-03-11`
  await scene.answer(message(), paid('E1'), paid('E2'))
  expect(await kinds()).toEqual(['money_out'])
  return { payments, reference, returned: (entry: string) => `returned;${reference};5000EUR;AC04;${entry};2026-03-12` }
}

test.each(['before', 'after'] as const)(
  'a credit that comes %s the second debit of a payment is closed as not ours returns nothing, however often it is reported',
  async order => {
    const { payments, returned } = await paidTwice()
    if (order === 'after') await decide({ decision: 'ignore' })
    await scene.answer(message(), returned('C1'))
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    expect((await kinds()).at(-1)).toBe('money_in')
    for (const _ of await kinds()) await decide({ decision: 'ignore' })
    await scene.answer(message(), returned('C1'))
    expect(await kinds()).toEqual([])
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    // Now the payment itself comes back.
    await scene.answer(message(), returned('C2'))
    expect(await kinds()).toEqual([])
    expect(await scene.statusesOf(payments)).toEqual(['returned'])
  },
)

test('a credit in the file of the second debit waits for a decision, and can be attached as the return', async () => {
  const { payments } = await scene.sent(5_000)
  const reference = payments[0]?.reference ?? ''
  const booked = (state: string, entry: string) => `${state};${reference};5000EUR;;${entry};2026-03-11`
  await scene.answer(message(), booked('paid', 'E1'), booked('paid', 'E2'), booked('returned', 'C1'))
  expect(await kinds()).toEqual(['money_out', 'money_in'])
  await decide({ decision: 'attach', reference }, 1)
  expect(await scene.statusesOf(payments)).toEqual(['returned'])
  expect(await kinds()).toEqual(['money_out'])
})

test('a credit of a payment whose batch was debited twice waits for a decision', async () => {
  const { payments, messageId } = await scene.sent(5_000, 6_000)
  for (const entry of ['E1', 'E2'])
    await scene.answer(message(), `entry;-11000EUR;${messageId};${entry};2026-03-1${entry.at(-1)}`)
  expect(await kinds()).toEqual(['money_out'])
  await scene.answer(message(), `returned;${payments[0]?.reference};5000EUR;AC04;C1;2026-03-13`)
  expect(await kinds()).toEqual(['money_out', 'money_in'])
  expect(await scene.statusesOf(payments)).toEqual(['paid', 'paid'])
})
