import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ownIban } from '../../../test/banks/file-bank.ts'
import { FileRailScene } from '../../../test/payouts/file-rail-scene.ts'
import { addDays } from '../../kernel/time.ts'
import { referenceOf } from '../payments/reference.ts'
import { decide } from './decisions-of-two.ts'
import { detectRestore, findRestore, recordRestore } from './restores.ts'

// A restored database has payments as not sent that the bank has: in a batch that was not sent yet, or as withdrawals without a reference.

let scene: FileRailScene
let operator: Awaited<ReturnType<FileRailScene['harness']['addOperator']>>
beforeAll(async () => {
  scene = await FileRailScene.start()
  operator = await scene.harness.addOperator()
})
afterAll(() => scene.harness.stop())
beforeEach(async () => {
  await scene.harness.pool.query(`update restores set compared_at = now(), compared_by = 'test'`)
  await scene.harness.pool.query(
    `update payout_exceptions set closed_at = now(), closed_by = 'test', decision = 'ignore' where closed_at is null`,
  )
  await scene.nextWeek()
})

let messages = 0
const message = () => `R${++messages}`
const paid = (reference: string, net: number) =>
  scene.answer(`head;${message()}`, `paid;${reference};${net}EUR;;E${messages};2026-03-11`)
const resume = (body: object = { note: 'compared with the portal', withoutStatements: true }) =>
  operator.call('POST', '/payouts/resume', { body })
const restored = () =>
  scene.inTx(tx => recordRestore(tx, { how: 'The database was restored', now: scene.harness.clock.now() }))
const referenceFor = (id: string) => referenceOf({ partnerId: scene.harness.partner.id, withdrawalId: id })
/** Lets the worker claim withdrawals whose hold is over. */
const claim = async () => {
  scene.harness.clock.advance({ minutes: 1 })
  await scene.run('submit-withdrawals')
}
const sentCount = async () => {
  const { rows } = await scene.harness.pool.query(
    `select count(*)::integer as count from payout_batches where file_sha256 is not null`,
  )
  return rows[0].count
}

test('after a restore nothing is sent, and what the bank reports as paid is paid once', async () => {
  const inBatch = await scene.withdraw(5_000)
  await claim()
  const waiting = await scene.withdraw(6_000)
  const unpaid = await scene.withdraw(7_000)
  await restored()
  const before = await sentCount()
  await scene.send([inBatch, waiting, unpaid])
  expect(await sentCount()).toBe(before)
  expect(await scene.statusesOf([inBatch, waiting, unpaid])).toEqual(['submitted', 'submitted', 'submitted'])

  await paid(referenceFor(inBatch.id), 5_000)
  await paid(referenceFor(waiting.id), 6_000)
  expect(await scene.open()).toEqual([])
  expect(await scene.statusesOf([inBatch, waiting, unpaid])).toEqual(['paid', 'paid', 'submitted'])
  expect(await resume()).toMatchObject({ status: 200 })
  await scene.run('ask-about-withdrawals')
  // The cut-off of today has passed.
  scene.harness.clock.advance({ days: 1 })
  const { batchId } = await scene.send([unpaid])
  expect(await sentCount()).toBe(before + 1)
  const { rows } = await scene.harness.pool.query('select reference from payouts where batch_id = $1', [batchId])
  expect(rows).toEqual([{ reference: referenceFor(unpaid.id) }])
  await paid(referenceFor(unpaid.id), 7_000)
  expect(await scene.statusesOf([inBatch, waiting, unpaid])).toEqual(['paid', 'paid', 'paid'])
  expect(await scene.disagreements()).toEqual([])
})

test('the debit of a batch that the backup had as not sent pays its payments, and it is not sent again', async () => {
  const withdrawn = [await scene.withdraw(5_000), await scene.withdraw(6_000)]
  await claim()
  const { rows } = await scene.harness.pool.query(`select message_id from payout_batches where status = 'building'`)
  await restored()
  const before = await sentCount()
  await scene.answer(`head;${message()}`, `entry;-11000EUR;${rows[0].message_id};E9;2026-03-11`)
  expect(await scene.statusesOf(withdrawn)).toEqual(['paid', 'paid'])
  expect(await resume()).toMatchObject({ status: 200 })
  await scene.send(withdrawn)
  expect(await sentCount()).toBe(before)
  expect(await scene.disagreements()).toEqual([])
})

const close = async (decided: object) => {
  const [exception] = await scene.open()
  return await operator.call('POST', `/payout-exceptions/${exception?.id}/close`, {
    body: { note: 'test', ...decided },
  })
}

test('the debit of a batch that was made after the backup pays its payments, and cannot be ignored', async () => {
  const withdrawn = [await scene.withdraw(5_000), await scene.withdraw(6_000)]
  const references = withdrawn.map(({ id }) => referenceFor(id))
  await restored()
  await claim()
  await scene.answer(`head;${message()}`, 'entry;-11000EUR;MMBABCDEFGHIJKLMN;E9;2026-03-11')
  expect(await scene.open()).toMatchObject([
    { kind: 'money_out', reason: expect.stringContaining('the restored books do not know; attach the debit') },
  ])
  expect(await close({ decision: 'ignore' })).toMatchObject({ status: 409 })
  expect(await close({ decision: 'attach', references })).toMatchObject({ status: 200 })
  expect(await resume()).toMatchObject({ status: 200 })
  const before = await sentCount()
  await scene.run('ask-about-withdrawals')
  scene.harness.clock.advance({ days: 1 })
  await scene.send(withdrawn)
  expect(await sentCount()).toBe(before)
  await scene.run('read-rail-reports')
  expect(await scene.statusesOf(withdrawn)).toEqual(['paid', 'paid'])
  await scene.answer(`head;${message()}`, `returned;${references[0]};5000EUR;AC04;E${messages};2026-03-20`)
  expect(await scene.open()).toEqual([])
  expect(await scene.statusesOf(withdrawn)).toEqual(['returned', 'paid'])
  expect(await scene.disagreements()).toEqual([])
})

test('the debit of a batch that more payments joined after the backup pays them too', async () => {
  const early = await scene.withdraw(5_000)
  await claim()
  const { rows } = await scene.harness.pool.query(`select message_id from payout_batches where status = 'building'`)
  const late = await scene.withdraw(6_000)
  await restored()
  await claim()
  await scene.answer(`head;${message()}`, `entry;-11000EUR;${rows[0].message_id};E9;2026-03-11`)
  const [debit] = await scene.open()
  expect(debit).toMatchObject({ kind: 'amount' })
  const references = [early, late].map(({ id }) => referenceFor(id))
  const decision = { exceptionId: debit?.id ?? '', note: 'test', decision: 'attach', references } as const
  const now = scene.harness.clock.now()
  for (const person of ['Ada', 'Grace']) await scene.inTx(tx => decide(tx, { ...decision, by: { person }, now }))
  await scene.run('read-rail-reports')
  expect(await scene.statusesOf([early, late])).toEqual(['paid', 'paid'])
  expect(await scene.disagreements()).toEqual([])
})

test('a payment that a person knows to be paid is recorded so before payouts are resumed, and is not sent', async () => {
  const known = await scene.withdraw(9_500)
  await restored()
  await claim()
  const outcome = { outcome: 'paid', note: 'in the file of the batch' }
  expect(await operator.call('POST', `/payouts/${referenceFor(known.id)}/outcome`, { body: outcome })).toMatchObject({
    status: 200,
  })
  const before = await sentCount()
  expect(await resume()).toMatchObject({ status: 200 })
  await scene.run('ask-about-withdrawals')
  scene.harness.clock.advance({ days: 1 })
  await scene.send([known])
  await scene.run('read-rail-reports')
  expect(await sentCount()).toBe(before)
  expect(await scene.statusesOf([known])).toEqual(['paid'])
})

test('payments that the books do not know are exceptions, and keep payouts stopped until they are decided', async () => {
  await restored()
  const unknown = 'MMAAAAAAAAAAAAAA'
  await paid(unknown, 8_000)
  expect(await scene.open()).toMatchObject([{ kind: 'unmatched', reference: unknown }])
  expect(await resume()).toMatchObject({
    ...{
      status: 409,
      body: { issues: [{ message: expect.stringContaining('1 payout exception since the restore is open') }] },
    },
  })
})

test('payouts stay stopped until statements cover each banking day from the backup to the restore, unless a person says otherwise', async () => {
  const days = [0, 1, 2, 3].map(count => addDays('2031-04-01', count))
  const [tuesday, , , friday] = days
  scene.harness.clock.set(new Date(`${friday}T10:00:00Z`))
  const recoveredUntil = new Date(`${tuesday}T10:00:00Z`)
  const how = 'The database was restored'
  await scene.inTx(tx => recordRestore(tx, { how, recoveredUntil, now: scene.harness.clock.now() }))
  const statementOf = (day?: string) => scene.answer(`head;${message()};${ownIban}`, `statement;${day};0EUR;0EUR;1`)
  const refusal = async () => (await resume({ note: 'by the statements' })).text
  expect(await refusal()).toContain(`(default) covers ${tuesday} and 3 later days`)
  await statementOf(friday)
  expect(await refusal()).toContain(`(default) covers ${tuesday} and 2 later days`)
  for (const day of days) await statementOf(day)
  expect(await resume({ note: 'by the statements' })).toMatchObject({ status: 200 })
  expect(await resume()).toMatchObject({ status: 404 })
})

test('a payment that the bank had named before it got its reference again is not sent', async () => {
  await restored()
  const late = await scene.withdraw(9_000)
  await paid(referenceFor(late.id), 9_000)
  expect(await scene.open()).toMatchObject([{ kind: 'unmatched', reference: referenceFor(late.id) }])
  await scene.harness.pool.query(`update restores set compared_at = now(), compared_by = 'test'`)
  const before = await sentCount()
  await scene.send([late])
  expect(await sentCount()).toBe(before)
  expect((await scene.open()).map(({ kind }) => kind)).toEqual(['unmatched', 'contradiction'])
})

test('a server that is restored under a running worker sends nothing either', async () => {
  const withdrawal = await scene.withdraw(5_000)
  await scene.harness.pool.query(`update database_places set timeline = '00000000'`)
  const before = await sentCount()
  await scene.send([withdrawal])
  expect(await sentCount()).toBe(before)
  expect(await findRestore(scene.harness.db)).toMatchObject({
    how: 'The server was recovered from an archive of its WAL, or restarted after a failover (then resume with --without-statements)',
  })
})

test('a database that has moved to another place is held, and a restart is not', async () => {
  const { db, pool, clock } = scene.harness
  const now = clock.now()
  expect(await detectRestore(db, { now })).toBe(undefined)
  expect(await detectRestore(db, { now })).toBe(undefined)
  expect(await findRestore(db)).toBe(undefined)
  for (const [change, how] of [
    [`system_identifier = '1'`, 'The database is on another server than before'],
    [`database_oid = 1`, 'The database was created anew on its server'],
    [
      `timeline = '00000000'`,
      'The server was recovered from an archive of its WAL, or restarted after a failover (then resume with --without-statements)',
    ],
    [`table_oid = 1`, 'The tables of the database were created anew'],
  ] as const) {
    await pool.query(`update database_places set ${change}`)
    expect(await detectRestore(db, { now })).toBe(how)
    expect(await findRestore(db)).toMatchObject({ how })
    expect(await detectRestore(db, { now })).toBe(undefined)
  }
})
