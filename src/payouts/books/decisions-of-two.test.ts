import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { breaking } from '../../../test/harness/refusal.ts'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import type { Decision } from './decisions.ts'
import { closeException } from './decisions.ts'
import { confirmProposal, decide, decideOutcomeOfTwo } from './decisions-of-two.ts'
import { listOpenProposals, listProposals, withdrawProposal } from './proposals.ts'

let scene: FileRailScene
beforeAll(async () => {
  scene = await FileRailScene.start()
})
afterAll(() => scene.harness.stop())
beforeEach(() => scene.nextWeek())

let messages = 0
async function debited(): Promise<string> {
  messages += 1
  await scene.answer(`head;M${messages}`, `entry;-300EUR;charge;E${messages};2026-03-11`)
  return (await scene.open()).at(-1)?.id ?? ''
}

type Who = { person: string; login?: string | null; isKey?: boolean }
const close = async (exceptionId: string, by: Who, decided: Decision) =>
  (await scene.inTx(tx => decide(tx, { exceptionId, by, note: 'gone', now: scene.harness.clock.now(), ...decided })))
    .done

test('a write-off takes two people who decide exactly the same; one of them, a key and a command do not count', async () => {
  const id = await debited()
  const partnerId = scene.harness.partner.id
  const writeOff = { decision: 'write_off', partnerId } as const
  await expect(close(id, { person: 'opk_1', isKey: true }, writeOff)).rejects.toThrow('an operator key cannot')
  expect(await close(id, { person: 'Ada' }, writeOff)).toBe('proposed')
  expect(await close(id, { person: 'ada ' }, writeOff)).toBe('repeated')
  expect(await listProposals(scene.harness.db, [id])).toMatchObject([{ subject: id, person: 'Ada', note: 'gone' }])
  const other = { ...writeOff, partnerId: scene.harness.other.partner.id }
  await expect(close(id, { person: 'Grace' }, other)).rejects.toThrow('Ada has proposed another decision')
  await expect(close(id, { person: 'Grace', login: '1000@host' }, writeOff)).rejects.toThrow('in the console, too')
  expect((await scene.open()).map(each => each.id)).toContain(id)
  expect(await close(id, { person: 'Grace' }, writeOff)).toBe('closed')
  expect((await scene.open()).map(each => each.id)).not.toContain(id)
  expect(await listProposals(scene.harness.db, [id])).toEqual([])
  expect(await scene.disagreements()).toEqual([])
})

test('a proposed decision can be withdrawn, and then another one be made', async () => {
  const id = await debited()
  const writeOff = { decision: 'write_off', partnerId: scene.harness.partner.id } as const
  await close(id, { person: 'Ada' }, writeOff)
  const withdrawn = { subject: id, person: 'Ada', now: scene.harness.clock.now() }
  await scene.inTx(tx => withdrawProposal(tx, withdrawn))
  await expect(scene.inTx(tx => withdrawProposal(tx, withdrawn))).rejects.toThrow('No decision about')
  expect(await close(id, { person: 'Grace' }, { decision: 'ignore' })).toBe('closed')
})

test('a proposal ends with its exception or payment, and a later confirmation is told why', async () => {
  const now = scene.harness.clock.now()
  const confirmAs = (subject: string, person: string) =>
    scene.inTx(tx => confirmProposal(tx, { subject, by: { person }, now }))
  const id = await debited()
  await expect(confirmAs(id, 'Grace')).rejects.toThrow('No decision about')
  await close(id, { person: 'Ada' }, { decision: 'write_off', partnerId: scene.harness.partner.id })
  await expect(confirmAs(id, 'ada')).rejects.toThrow('another person must confirm it')
  await close(id, { person: 'Eve' }, { decision: 'ignore' })
  await expect(confirmAs(id, 'Grace')).rejects.toThrow('The proposal of Ada has ended: Eve has closed the exception')
  expect(await listOpenProposals(scene.harness.db, { take: 10 })).toEqual([])

  const { payments, batchId } = await scene.sent(5_000, 6_000)
  await scene.harness.pool.query('update payout_batches set approved_automatically = false where id = $1', [batchId])
  const [first = '', second = ''] = payments.map(({ reference }) => reference)
  for (const payment of [first, second])
    await scene.inTx(tx =>
      decideOutcomeOfTwo(tx, { payment, by: { person: 'Ada' }, note: 'portal', now, outcome: 'paid' }),
    )
  expect(await listOpenProposals(scene.harness.db, { take: 10 })).toHaveLength(2)
  await scene.answer(`head;M${++messages}`, `failed;${first};5000EUR;AC04`)
  await expect(confirmAs(first, 'Grace')).rejects.toThrow('has said that the payment is failed')
  expect(await listOpenProposals(scene.harness.db, { take: 10 })).toMatchObject([{ reference: second, person: 'Ada' }])
  await confirmAs(second, 'Grace')
  await scene.run('read-rail-reports')
  expect(await scene.statusesOf(payments)).toEqual(['failed', 'paid'])
  await expect(confirmAs(second, 'Eve')).rejects.toThrow('is confirmed already')
})

test('a decision that cannot be carried out is refused to the first person, and nothing is proposed', async () => {
  const id = await debited()
  await expect(close(id, { person: 'Ada' }, { decision: 'give_back' })).rejects.toThrow('Money that arrived or left')
  const writeOff = { decision: 'write_off' } as const
  await expect(close(id, { person: 'Ada' }, writeOff)).rejects.toThrow('partner')
  expect(await listProposals(scene.harness.db, [id])).toEqual([])
})

test('a charge that the operator bears takes two people, in an answer and by hand; the database refuses the cost of one', async () => {
  const { payments } = await scene.sent(5_000, 6_000)
  const [first = '', second = ''] = payments.map(({ reference }) => reference)
  await scene.answer(`head;M${++messages}`, `paid;${first};5000EUR`)
  await scene.answer(`head;M${++messages}`, `entry;4500EUR;return ${first};E${messages};2026-03-12`)
  const id = (await scene.open()).at(-1)?.id ?? ''
  const charged = (borneBy: 'operator' | 'partner') =>
    ({ decision: 'attach', reference: first, charge: { amount: { amount: 500n, currency: 'EUR' }, borneBy } }) as const
  const now = scene.harness.clock.now()
  await expect(
    scene.inTx(tx => closeException(tx, { exceptionId: id, person: 'Ada', note: 'n', now, ...charged('operator') })),
  ).rejects.toMatchObject(breaking('decided_by_two_people'))
  expect(await close(id, { person: 'Ada' }, charged('operator'))).toBe('proposed')
  expect(await close(id, { person: 'Grace' }, charged('operator'))).toBe('closed')
  const credit = { bookedOn: now.toISOString().slice(0, 10), amount: { amount: 5_500n, currency: 'EUR' } } as const
  const say = async (person: string, borneBy: 'operator' | 'partner') =>
    (
      await scene.inTx(tx =>
        decideOutcomeOfTwo(tx, {
          ...{ payment: second, by: { person }, note: 'n', now },
          ...{ outcome: 'returned', credit, borneBy },
        }),
      )
    ).done
  expect(await say('Ada', 'operator')).toBe('proposed')
  expect(await say('Grace', 'operator')).toBe('decided')
  await scene.run('read-rail-reports')
  expect(await scene.statusesOf(payments)).toEqual(['returned', 'returned'])
  expect(await scene.disagreements()).toEqual([])
})

test('a charge that the partner bears takes one person, and so does a return without a charge', async () => {
  const { payments } = await scene.sent(5_000, 6_000)
  const now = scene.harness.clock.now()
  const bookedOn = now.toISOString().slice(0, 10)
  const returned = async (index: number, amount: bigint, borne: { borneBy?: 'partner' }) =>
    await scene.inTx(tx =>
      decideOutcomeOfTwo(tx, {
        ...{ payment: payments[index]?.reference ?? '', by: { person: 'Ada' }, note: 'n', now },
        ...{ outcome: 'returned', credit: { bookedOn, amount: { amount, currency: 'EUR' } }, ...borne },
      }),
    )
  expect(await returned(0, 4_500n, { borneBy: 'partner' })).toMatchObject({ done: 'decided' })
  expect(await returned(1, 6_000n, {})).toMatchObject({ done: 'decided' })
  await scene.run('read-rail-reports')
  expect(await scene.statusesOf(payments)).toEqual(['returned', 'returned'])
  expect(await scene.disagreements()).toEqual([])
})

test('of two concurrent confirmations only one is carried out, and giving back a batch takes two people', async () => {
  const { payments, messageId } = await scene.sent(5_000)
  await scene.answer(`head;M${++messages}`, `batch;${messageId};rejected;DU01`)
  const id = (await scene.open()).at(-1)?.id ?? ''
  const giveBack = { decision: 'give_back' } as const
  expect(await close(id, { person: 'Ada' }, giveBack)).toBe('proposed')
  const done = await Promise.allSettled([
    close(id, { person: 'Grace' }, giveBack),
    close(id, { person: 'Eve' }, giveBack),
  ])
  expect(done.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  await scene.run('read-rail-reports')
  expect(await scene.statusesOf(payments)).toEqual(['failed'])
})

test('the database refuses a decision that takes two people unless its transaction confirms exactly this one', async () => {
  const { pool } = scene.harness
  const closeBySql = (id: string, decision: string, by = 'Ada') =>
    pool.query(
      `update payout_exceptions set closed_at = now(), closed_by = $3, decision = $2, note = 'n' where id = $1`,
      [...[id, decision, by]],
    )
  const refusal = { constraint: 'decided_by_two_people' }
  const debit = await debited()
  await expect(closeBySql(debit, 'write_off')).rejects.toMatchObject(refusal)
  await expect(closeBySql(debit, 'write_off', 'system')).rejects.toMatchObject(refusal)
  const { messageId, payments, batchId } = await scene.sent(5_000)
  await scene.answer(`head;M${++messages}`, `batch;${messageId};rejected;DU01`)
  const rejection = (await scene.open()).at(-1)?.id ?? ''
  await expect(closeBySql(rejection, 'give_back')).rejects.toMatchObject(refusal)

  // A proposal is not a confirmation, least of all by the same person.
  await close(debit, { person: 'Ada' }, { decision: 'write_off', partnerId: scene.harness.partner.id })
  await expect(closeBySql(debit, 'write_off')).rejects.toMatchObject(refusal)
  const confirm = (person: string, login: string | null = null) =>
    pool.query(
      `update payout_proposals set confirmed_by = $2, confirmed_login = $3, confirmed_in = pg_current_xact_id() where subject = $1`,
      [debit, person, login],
    )
  for (const by of [['ＡＤＡ '], ['ada (1000@host)'], ['Grace', '1000@host']] as [string, string?][])
    await expect(confirm(...by)).rejects.toMatchObject(breaking('confirmed_by_another_person'))
  // An earlier transaction has carried out the decision that it confirmed.
  await confirm('Grace')
  await expect(closeBySql(debit, 'write_off')).rejects.toMatchObject(refusal)
  await closeBySql(debit, 'ignore')

  await pool.query('update payout_batches set approved_automatically = false where id = $1', [batchId])
  const byHand = pool.query(
    `insert into bank_records (rail, message_id, entry_key, reference, outcome, created_at)
     values ($1, 'operator', 'by hand x', $2, 'failed', now())`,
    [scene.settings.name, payments[0]?.reference],
  )
  await expect(byHand).rejects.toMatchObject(refusal)
})
