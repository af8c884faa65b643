import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ownIban } from '../../../test/banks/file-bank.ts'
import { accountReport, type Entry, statusReport, transaction, wholeBatch } from '../../../test/banks/iso20022.ts'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import { closeException } from '../../../test/payouts/two-person-decisions.ts'
import { sepaFormat } from '../formats/sepa/format.ts'
import type { Decision } from './decisions.ts'

let scene: FileRailScene
let operator: Awaited<ReturnType<FileRailScene['harness']['addOperator']>>
/** The balance that the bank stated last. */
let number = 0
let balance = 0n
beforeAll(async () => {
  scene = await FileRailScene.start({ format: sepaFormat() })
  operator = await scene.harness.addOperator()
  balance = BigInt((await scene.books()).float ?? 0)
})
afterAll(() => scene.harness.stop())
beforeEach(async () => {
  // 11:00 in Berlin, on the next Tuesday.
  const { clock } = scene.harness
  do clock.advance({ minutes: 24 * 60 })
  while (clock.now().getUTCDay() !== 2)
  clock.set(new Date(`${today()}T10:00:00.000Z`))
  expect(await differences()).toEqual([])
})

const inWords = (text: string) => `<TxDtls><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls>`
let messages = 0
const message = () => ({ id: `M${++messages}`, at: scene.harness.clock.now() })
const today = () => scene.harness.clock.now().toISOString().slice(0, 10)
const nextDay = () => scene.harness.clock.advance({ minutes: 24 * 60 })

let entries = 0
const entry = (amount: bigint, details = ''): Entry => ({
  ...{ bank: `B${++entries}`, bookedOn: today(), details },
  ...(amount < 0n ? { amount: -amount, direction: 'DBIT' } : { amount, direction: 'CRDT' }),
})
const signed = ({ amount, direction }: Entry) => (direction === 'DBIT' ? -amount : amount)

/** The statement of today. Unless it says otherwise, it continues the one before and adds up. */
async function state({
  of = [],
  opening = balance,
  closing = of.reduce((sum, each) => sum + signed(each), opening),
  skips = 0,
}: {
  of?: Entry[]
  opening?: bigint
  closing?: bigint
  skips?: number
} = {}): Promise<void> {
  number += 1 + skips
  balance = closing
  const statement = { number, opening, closing, day: today() }
  await scene.hear(accountReport(message(), { kind: 'camt.053', iban: ownIban, entries: of, statement }))
}
const notify = (of: Entry[]) => scene.hear(accountReport(message(), { kind: 'camt.054', iban: ownIban, entries: of }))

/** The open exceptions of the comparison, as operators see them. */
async function differences(): Promise<
  { id: string; kind: string; amount: { amount: number } | null; reason: string }[]
> {
  await scene.run('reconcile-bank-accounts')
  const { exceptions } = (await operator.call('GET', '/payout-exceptions?take=1000')).body
  return exceptions.filter(({ kind }: { kind: string }) => /^(statement_gap|opening_balance|bank_balance)$/.test(kind))
}
const close = (id: string, note = 'The account had money before') =>
  operator.call('POST', `/payout-exceptions/${id}/close`, { body: { decision: 'ignore', note } })
const closeAll = () =>
  scene.harness.pool.query(
    `update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`,
  )
const decisionOn = async (id: string) =>
  (await operator.call('GET', `/payout-exceptions/${id}`)).body as { decision: string; closedBy: string }

test('statements that continue each other open nothing, whatever is on its way between the bank and the books', async () => {
  await state()
  const { payments, messageId } = await scene.sent(5_000, 6_000)
  const [first, second] = payments.map(({ reference }) => reference)
  // Paid, but not debited yet.
  await scene.hear(statusReport(message(), { messageId }, [{ reference: first ?? '', status: 'ACSC' }]))
  await state()
  expect(await differences()).toEqual([])
  nextDay()
  await state({
    of: [first, second].map((reference, index) =>
      entry([-5_000n, -6_000n][index] ?? 0n, transaction({ reference: reference ?? '' })),
    ),
  })
  expect(await differences()).toEqual([])
  nextDay()
  // A notice of today says more than the statement of yesterday.
  const returned = entry(6_000n, transaction({ reference: second ?? '', returned: { reason: 'AC04' } }))
  await notify([returned])
  expect(await scene.statusesOf(payments)).toEqual(['paid', 'returned'])
  expect(await differences()).toEqual([])
  await state({ of: [returned] })
  expect(await differences()).toEqual([])
})

test('money that an operator has recorded, and money that waits for a decision, is explained', async () => {
  const amount = { amount: 70_000, currency: 'EUR' }
  const at = `/partners/${scene.harness.partner.id}/float/fund`
  expect((await operator.call('POST', at, { body: { amount, reference: 'top-up 7' } })).status).toBeLessThan(300)
  await state()
  expect(await differences()).toEqual([])
  await state({ of: [entry(70_000n, transaction({ reference: 'top-up 7' })), entry(-250n), entry(1_000n)] })
  expect(await differences()).toEqual([])
  const asked = (await scene.open()).map(({ id }) => id)
  expect(asked).toHaveLength(2)
  await operator.call('POST', `/payout-exceptions/${asked[0]}/close`, {
    body: { decision: 'ignore', note: 'not ours' },
  })
  const booked = { decision: 'book', note: 'a top-up', partnerId: scene.harness.partner.id }
  await operator.call('POST', `/payout-exceptions/${asked[1]}/close`, { body: booked })
  nextDay()
  await state()
  expect(await differences()).toEqual([])
})

test('a difference that nothing explains is one exception with its amount, which closes when the entry is known', async () => {
  await state({ closing: balance + 300n })
  const [found] = await differences()
  expect(found).toMatchObject({
    kind: 'bank_balance',
    amount: { amount: 300, currency: 'EUR' },
    bookedOn: today(),
  })
  expect(found?.reason).toContain('which is 3.00 EUR more than anything explains (books ')
  nextDay()
  await state()
  expect((await differences()).map(({ id }) => id)).toEqual([found?.id])
  const shown = (await operator.call('GET', '/account-days?rail=euro-files')).body.differences
  expect(shown).toMatchObject([
    { id: found?.id, kind: 'bank_balance', reason: expect.stringContaining('3.00 EUR more') },
  ])
  const { attention } = (await operator.call('GET', '/status')).body
  expect(attention).toContainEqual(expect.stringContaining('which is 3.00 EUR more than anything explains'))
  await notify([entry(300n)])
  expect(await differences()).toEqual([])
  expect(await decisionOn(found?.id ?? '')).toMatchObject({ decision: 'applied', closedBy: 'system' })
})

test('a difference that an operator has accepted is not stated again, and what is beyond it is', async () => {
  await state({ closing: balance - 1_000n })
  const [found] = await differences()
  expect(found).toMatchObject({ amount: { amount: -1_000 } })
  expect((await close(found?.id ?? '')).status).toBe(200)
  nextDay()
  await state()
  expect(await differences()).toEqual([])
  await state({ opening: balance, closing: balance - 50n })
  const [beyond] = await differences()
  expect(beyond).toMatchObject({ kind: 'bank_balance', amount: { amount: -50 } })
  expect(beyond?.reason).toContain('which is 0.50 EUR less than anything explains')
  expect(beyond?.reason).toContain('accepted before -10.00 EUR')
  await close(beyond?.id ?? '')
})

describe('what is paid after its money was given back', () => {
  /** The bank's notice of today has the debit, and its latest statement is of yesterday. */
  async function noticed(debitOf: (sent: { messageId: string; reference: string }) => string) {
    // The batches are approved automatically, whatever was given back before.
    await scene.harness.pool.query('update payout_batches set brake_released_at = given_back_at')
    await state()
    const { payments, messageId } = await scene.sent(5_000)
    await scene.hear(statusReport(message(), { messageId, status: 'RJCT', reason: 'FF01' }, []))
    expect(await scene.statusesOf(payments)).toEqual(['failed'])
    await state()
    nextDay()
    const { reference = '' } = payments[0] ?? {}
    const debit = entry(-5_000n, debitOf({ messageId, reference }))
    await notify([debit])
    expect(await differences()).toEqual([])
    return { payments, reference, debit }
  }
  async function decide(decided: Decision) {
    const exception = (await scene.open()).at(-1)
    const common = { exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked', now: scene.harness.clock.now() }
    await scene.inTx(tx => closeException(tx, { ...common, ...decided }))
    await scene.run('read-rail-reports')
  }
  /** Neither before nor on the day of the debit, nor once it is no longer recent. */
  async function expectExplained(debit: Entry) {
    expect(await differences()).toEqual([])
    await state({ of: [debit] })
    expect(await differences()).toEqual([])
    for (let day = 0; day < 11; day++) nextDay()
    await state()
    expect(await differences()).toEqual([])
  }

  test('is explained by the day of its debit, once it is recovered', async () => {
    const { payments, debit } = await noticed(({ messageId }) => wholeBatch(messageId))
    await decide({ decision: 'recover' })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    await expectExplained(debit)
  })

  test('is explained by the day of its debit that the bank names only in words, once it is recovered', async () => {
    const { payments, reference, debit } = await noticed(({ reference }) => inWords(`Sent again: ${reference}`))
    await decide({ decision: 'recover', references: [reference] })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    await expectExplained(debit)
  })

  test('is explained by the day of its debit, once it is written off, and until it is covered the float lacks it', async () => {
    const { partner } = scene.harness
    const { payments, debit } = await noticed(({ messageId }) => wholeBatch(messageId))
    const lacking = async () => {
      const { attention } = (await operator.call('GET', '/status')).body
      const { findings } = (await operator.call('GET', '/findings')).body
      const { accountDays } = (await operator.call('GET', '/account-days?rail=euro-files')).body
      const { floats } = (await operator.call('GET', `/partners/${partner.id}/float`)).body
      return [
        ...attention.filter((sentence: string) => sentence.includes('that the operator bears')),
        ...findings
          .filter(({ check, level }: { check: string; level: string }) => check === 'costs' && level === 'warning')
          .map(({ sentence, command }: { sentence: string; command: string }) => `${sentence}: ${command}`),
        accountDays[0].uncovered.amount,
        floats.find(({ currency }: { currency: string }) => currency === 'EUR').uncovered.amount,
      ]
    }
    const before = await lacking()
    expect(before).toEqual([0, 0])
    await decide({ decision: 'write_off' })
    expect(await scene.statusesOf(payments)).toEqual(['failed'])
    await expectExplained(debit)
    expect(await lacking()).toEqual([
      `The float of ${partner.id} lacks 50.00 EUR that the operator bears; pay it in, then run midmonth float cover`,
      `The float of ${partner.name} (${partner.id}) lacks 50.00 EUR that the operator bears: transfer it to the account that pays, then record it: midmonth float cover ${partner.id} EUR 5000 --reference REFERENCE`,
      ...[5_000, 5_000],
    ])
    const body = { amount: { amount: 5_000, currency: 'EUR' }, reference: 'cover 1' }
    expect((await operator.call('POST', `/partners/${partner.id}/float/cover`, { body })).status).toBeLessThan(300)
    expect(await differences()).toEqual([])
    await state({ of: [entry(5_000n, transaction({ reference: 'cover 1' }))] })
    expect(await differences()).toEqual([])
    expect(await lacking()).toEqual(before)
  })

  test('is explained on the day of a debit with a charge that the operator bears', async () => {
    await state()
    const { payments } = await scene.sent(5_000)
    const { reference = '' } = payments[0] ?? {}
    await state()
    nextDay()
    const debit = entry(-5_020n, transaction({ reference }))
    await notify([debit])
    const charge = { amount: { amount: 20n, currency: 'EUR' }, borneBy: 'operator' } as const
    await decide({ decision: 'attach', reference, charge })
    expect(await scene.statusesOf(payments)).toEqual(['paid'])
    await expectExplained(debit)
  })
})

test('a batch that is debited as one sum and then payment by payment leaves a difference of the second debit', async () => {
  const { payments, messageId } = await scene.sent(5_000, 6_000)
  await state({ of: [entry(-11_000n, wholeBatch(messageId))] })
  expect(await differences()).toEqual([])
  const copies = payments.map(({ reference }, index) =>
    entry([-5_000n, -6_000n][index] ?? 0n, transaction({ reference })),
  )
  await state({ of: copies })
  const found = await differences()
  expect(found).toMatchObject([{ kind: 'bank_balance', amount: { amount: -11_000 } }])
  await close(found[0]?.id ?? '', 'The bank gives it back')
})

test('a payment that counts as paid and is never debited is missing after ten days', async () => {
  const { payments, messageId } = await scene.sent(4_000)
  await scene.hear(
    statusReport(message(), { messageId }, [{ reference: payments[0]?.reference ?? '', status: 'ACSC' }]),
  )
  await state()
  expect(await differences()).toEqual([])
  for (let day = 0; day < 11; day++) nextDay()
  await state()
  const found = await differences()
  expect(found).toMatchObject([{ kind: 'bank_balance', amount: { amount: 4_000 } }])
  await state({ of: [entry(-4_000n, transaction({ reference: payments[0]?.reference ?? '' }))] })
  expect(await differences()).toEqual([])
})

test('a statement that is missing shows in its number and its balances, and closes both when it comes', async () => {
  await state()
  nextDay()
  const missing = { day: today(), opening: balance, number: number + 1, entries: [entry(900n)] }
  nextDay()
  await state({ opening: balance + 900n, skips: 1 })
  const found = await differences()
  expect(found.map(({ kind }) => kind).toSorted()).toEqual(['bank_balance', 'opening_balance', 'statement_gap'])
  const reasonOf = (wanted: string) => found.find(({ kind }) => kind === wanted)?.reason
  expect(reasonOf('statement_gap')).toMatch(/^Statement \d+ of the account …6199 is missing, between those of /)
  expect(reasonOf('opening_balance')).toContain('ask the bank where 9.00 EUR comes from')
  const { day, entries: of, opening, number: missed } = missing
  const statement = { number: missed, opening, closing: opening + 900n, day }
  await scene.hear(accountReport(message(), { kind: 'camt.053', iban: ownIban, entries: of, statement }))
  expect(await differences()).toEqual([])
  for (const { id } of found) expect(await decisionOn(id)).toMatchObject({ decision: 'applied' })
})

test('a gap that an operator has closed stays closed, and numbers that count days have none on a weekend', async () => {
  await state({ skips: 2 })
  const [gap] = await differences()
  expect(gap?.reason).toMatch(/^Statements \d+ to \d+ of the account …6199 are missing/)
  await close(gap?.id ?? '', 'The bank tested')
  expect(await differences()).toEqual([])
  // From Tuesday to Friday.
  for (const _ of [1, 2, 3]) {
    nextDay()
    await state()
  }
  for (const _ of [1, 2, 3]) nextDay()
  await state({ skips: 2 })
  expect(await differences()).toEqual([])
  nextDay()
  nextDay()
  await state({ skips: 1 })
  const [onWorkday] = await differences()
  expect(onWorkday).toMatchObject({ kind: 'statement_gap' })
  await closeAll()
})

test('a new year may begin with number 1', async () => {
  await state()
  scene.harness.clock.set(new Date('2027-01-05T10:00:00.000Z'))
  number = 0
  await state()
  expect(await differences()).toEqual([])
  nextDay()
  await state({ skips: 1 })
  expect(await differences()).toMatchObject([{ kind: 'statement_gap' }])
  await closeAll()
})
