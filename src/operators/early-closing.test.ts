import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { euroRail } from '../../test/banks/file-bank.ts'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type ConsoleUser, signIn } from '../../test/harness/console.ts'
import type { Harness } from '../../test/harness/harness.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { FileRailScene } from '../../test/payouts/file-rail-scene.ts'
import { midmonthHere } from '../../test/program/program.ts'
import { list } from '../audit-log/audit-log.ts'
import { instantAt } from '../kernel/time.ts'
import { closeDue, join } from '../payouts/books/batches.ts'
import { closeEarly } from '../payouts/books/early-closing.ts'
import type { TaskName } from '../worker/task.ts'

// Two people approve a batch of more than 100.00.
const limits = { paymentMax: 10_000n, batchMax: 100_000n, dayMax: 1_000_000n }

let scene: FileRailScene
let operator: Awaited<ReturnType<Harness['addOperator']>>
let users: ConsoleUser[]
beforeAll(async () => {
  scene = await FileRailScene.start({ automatic: limits, delivery: null })
  operator = await scene.harness.addOperator()
})
afterAll(() => scene.harness.stop())
beforeEach(async () => {
  await scene.nextWeek()
  const { harness } = scene
  users = [await signIn(harness, { isOperator: true }), await signIn(harness, { isOperator: true })]
})

/** An open batch at 11:00 in Berlin, with a payment of each net amount. */
async function openBatch(...nets: number[]): Promise<string> {
  for (const net of nets) await scene.withdraw(net)
  scene.harness.clock.advance({ seconds: 30 })
  await scene.run('submit-withdrawals')
  const { batches } = (await operator.call('GET', '/payout-batches?statuses=building&take=1')).body
  return batches[0]?.id
}

const post = (user: ConsoleUser | undefined, batchId: string, verb: string, body?: object) =>
  user?.call('POST', `/operator/v1/payout-batches/${batchId}/${verb}`, {
    partner: null,
    ...(body && { body }),
  }) as Promise<ApiResponse>
const close = (user: ConsoleUser | undefined, batchId: string) =>
  post(user, batchId, 'close', { note: 'the bank closes early' })
const get = async (batchId: string) => (await operator.call('GET', `/payout-batches/${batchId}`)).body
const paymentsOf = async (batchId: string) =>
  (await operator.call('GET', `/payout-batches/${batchId}/payments`)).body.payments
const conflict = (answer: ApiResponse) => [answer.status, answer.body.issues[0].message]

/** Runs a task with another cut-off of the rail. */
const runWith = (cutOff: string, task: TaskName) =>
  scene.harness.runTask(task, { rails: [euroRail({ automatic: limits, cutOff })] })

test('two people close a batch before its cut-off; within the limits it is approved immediately, and later payments go into another batch', async () => {
  const id = await openBatch(5_000)
  const { cutOffAt, valueDate } = await get(id)
  const first = await close(users[0], id)
  expect(first.body).toMatchObject({
    ...{ status: 'building', closedAt: null, needsApproval: false, cutOffTimeZone: 'Europe/Berlin' },
    proposal: { person: users[0]?.user.id, note: 'the bank closes early' },
  })
  // Repeating the request does not count twice, and payments join until the second person confirms.
  expect((await close(users[0], id)).body.closedAt).toBeNull()
  expect(await openBatch(6_000)).toBe(id)
  const closedAt = scene.harness.clock.now().toISOString()
  expect((await close(users[1], id)).body).toMatchObject({
    ...{ status: 'approved', approvedAutomatically: true, closedAt, cutOffAt, valueDate, proposal: null },
    paymentCount: 2,
  })
  const other = await openBatch(7_000)
  expect(other).not.toBe(id)
  expect(await get(other)).toMatchObject({ cutOffAt, valueDate, paymentCount: 1 })
  expect(conflict(await close(users[0], id))).toEqual([409, 'The batch is closed already'])
  const exported = await operator.call('POST', `/payout-batches/${id}/export`)
  expect(exported.status, exported.text).toBe(200)
  const entries = await list(scene.harness.db, { filter: { resourceId: id }, take: 10 })
  const recorded = entries.map(({ action, details }) => `${action}${details.isProposed === true ? ' proposed' : ''}`)
  expect(recorded.toReversed()).toEqual([
    ...['payout_batch.close proposed', 'payout_batch.close', 'payout_batch.export'],
  ])
})

test('a batch above the limits that is closed early immediately needs the approvals of two people', async () => {
  const id = await openBatch(15_000)
  const refused = await post(users[0], id, 'approve')
  expect(conflict(refused)[1]).toMatch(/approve it after that, or close it early$/)
  for (const user of users) await close(user, id)
  expect(await get(id)).toMatchObject({ status: 'building', needsApproval: true, approvals: [], approvalsNeeded: 2 })
  for (const user of users) await post(user, id, 'approve')
  expect(await get(id)).toMatchObject({ status: 'approved', approvedAutomatically: false })
})

test('a proposal to close early can be withdrawn, is gone after the cut-off, and is not for an operator key', async () => {
  const id = await openBatch(5_000)
  expect((await operator.call('POST', `/payout-batches/${id}/close`, { body: { note: 'x' } })).status).toBe(403)
  expect((await post(users[0], id, 'close', {})).body.issues[0]).toMatchObject({ code: 'BodyValidation', path: 'note' })
  expect((await close(users[0], 'bat_00000000000000000000000000')).status).toBe(404)
  expect((await post(users[1], id, 'withdraw')).status).toBe(404)
  await close(users[0], id)
  expect((await post(users[1], id, 'withdraw')).body.proposal).toBeNull()
  expect((await close(users[1], id)).body.closedAt).toBeNull()
  scene.harness.clock.advance({ minutes: 4 * 60 })
  await scene.run('send-payout-batches')
  expect(await get(id)).toMatchObject({ status: 'approved', proposal: null })
})

test('each payment of a batch has its payee, its partner and only the end of its account number', async () => {
  const id = await openBatch(5_000)
  const { harness } = scene
  const [payment] = await paymentsOf(id)
  expect(payment).toMatchObject({
    ...{ partnerId: harness.partner.id, partnerName: harness.partner.name, memberId: expect.stringMatching(/^mem_/) },
    payee: { accountHolder: expect.any(String), lastFour: '3000' },
  })
  expect(JSON.stringify(payment)).not.toContain('DE89')
})

test('by command two logins close a batch early, and its page shows the cut-off in the zone of the bank', async () => {
  const id = await openBatch(5_000)
  const shown = (await midmonthHere(['payouts', 'show', id], scene.harness.settings)).stdout
  expect(shown).toMatch(/^approvals +0 of 2$/m)
  expect(shown).toContain('…3000')
  expect(shown).toContain(scene.harness.partner.name)
  // A console and a login may be one person.
  await close(users[0], id)
  const { harness } = scene
  const byLogin = (login: string) =>
    scene.inTx(tx =>
      closeEarly(tx, {
        ...{ rail: scene.settings, batchId: id, note: 'n', now: harness.clock.now(), by: { person: login, login } },
      }),
    )
  await expect(byLogin('1000@host')).rejects.toThrow('in the console, too')
  await post(users[0], id, 'withdraw')
  expect([await byLogin('1000@host'), await byLogin('1000@host'), await byLogin('1001@host')]).toEqual([
    ...['proposed', 'repeated', 'closed'],
  ])
})

test('an earlier cut-off in the settings closes open batches earlier, with the payments that came after it; a later cut-off does not', async () => {
  const id = await openBatch(5_000)
  const { cutOffAt, valueDate } = await get(id)
  const at = (time: string) => instantAt('Europe/Berlin', valueDate, time)
  expect(new Date(cutOffAt)).toEqual(at('15:00'))
  // A later cut-off applies from the next batch.
  await runWith('16:00', 'send-payout-batches')
  expect((await get(id)).cutOffAt).toBe(cutOffAt)
  await runWith('13:00', 'send-payout-batches')
  expect(await get(id)).toMatchObject({ cutOffAt: at('13:00').toISOString(), closedAt: null, valueDate })
  // The clock is at 12:30 in Berlin, and the setting is changed to 12:00: the payment of 12:15 stays in the batch.
  scene.harness.clock.set(at('12:15'))
  expect(await openBatch(6_000)).toBe(id)
  scene.harness.clock.set(at('12:30'))
  await runWith('12:00', 'send-payout-batches')
  expect(await get(id)).toMatchObject({
    ...{ cutOffAt: at('12:00').toISOString(), closedAt: at('12:30').toISOString(), status: 'approved' },
    ...{ paymentCount: 2, valueDate },
  })
  // Payments that come now are for the next banking day.
  const late = await scene.withdraw(7_000)
  scene.harness.clock.advance({ seconds: 30 })
  await runWith('12:00', 'submit-withdrawals')
  const { batch } = (await operator.call('GET', `/payouts/${late.id}`)).body
  expect(batch.valueDate > valueDate).toBe(true)
  // A closed batch keeps its times.
  await runWith('10:00', 'send-payout-batches')
  expect((await get(id)).cutOffAt).toBe(at('12:00').toISOString())
})

test('a payment that joins with an earlier cut-off moves the cut-off of its batch, before any task runs', async () => {
  const id = await openBatch(5_000)
  await scene.withdraw(6_000)
  scene.harness.clock.advance({ seconds: 30 })
  await runWith('13:30', 'submit-withdrawals')
  const { cutOffAt, valueDate, paymentCount } = await get(id)
  expect([new Date(cutOffAt), paymentCount]).toEqual([instantAt('Europe/Berlin', valueDate, '13:30'), 2])
})

test('payments that join while a batch is being closed wait, and go into another batch; the task that closes batches also waits', async () => {
  const id = await openBatch(5_000)
  await close(users[0], id)
  const { harness, settings } = scene
  const now = harness.clock.now()
  const { id: withdrawalId } = await scene.withdraw(6_000)
  const closing = Promise.withResolvers<void>()
  const commit = Promise.withResolvers<void>()
  const closed = scene.inTx(async tx => {
    const by = { person: users[1]?.user.id ?? '' }
    expect(await closeEarly(tx, { rail: settings, batchId: id, by, note: 'n', now })).toBe('closed')
    closing.resolve()
    await commit.promise
  })
  await closing.promise
  harness.clock.advance({ seconds: 30 })
  const joined = scene.run('submit-withdrawals')
  const task = scene.inTx(tx => closeDue(tx, { rail: settings, now }))
  await whenWaiting(scene.harness.db, { count: 2 })
  commit.resolve()
  await Promise.all([closed, joined, task])
  const { batch } = (await operator.call('GET', `/payouts/${withdrawalId}`)).body
  expect(batch.id).not.toBe(id)
  expect(await get(id)).toMatchObject({ status: 'approved', paymentCount: 1 })
  expect(await scene.disagreements()).toEqual([])
})

test('a batch is closed with the payments that are joining at that moment', async () => {
  const id = await openBatch(5_000)
  await close(users[0], id)
  const { harness, settings } = scene
  const now = harness.clock.now()
  const joining = Promise.withResolvers<void>()
  const commit = Promise.withResolvers<void>()
  const { id: withdrawalId } = await scene.withdraw(6_000)
  await harness.pool.query(
    `with created as (
       insert into payouts (partner_id, withdrawal_id, reference, rail, net_amount, currency, created_at)
       select partner_id, id, 'MMAAAAAAAAAAAAAA', $2, net_amount, currency, created_at from withdrawals where id = $1
       returning reference, partner_id
     )
     insert into payout_references select * from created`,
    [withdrawalId, settings.name],
  )
  const joined = scene.inTx(async tx => {
    const payment = {
      partnerId: harness.partner.id,
      reference: 'MMAAAAAAAAAAAAAA',
      netAmount: 6_000n,
      isInstant: false,
    }
    await join(tx, { rail: settings, payments: [payment], now })
    joining.resolve()
    await commit.promise
  })
  await joining.promise
  const closed = close(users[1], id)
  await whenWaiting(scene.harness.db, { count: 1 })
  commit.resolve()
  await joined
  expect((await closed).body).toMatchObject({ status: 'approved', paymentCount: 2 })
  await harness.call('POST', `/v1/pay/withdrawals/${withdrawalId}/cancel`)
})

test('of two concurrent confirmations one closes the batch, and the other is told so', async () => {
  const id = await openBatch(5_000)
  const third = await signIn(scene.harness, { isOperator: true })
  await close(users[0], id)
  const answers = await Promise.all([close(users[1], id), close(third, id)])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
})

test('the database refuses to close a batch early without two people, to open it again, and to add payments to it', async () => {
  const id = await openBatch(5_000)
  const { pool } = scene.harness
  const change = (text: string) => pool.query(`update payout_batches set ${text} where id = $1`, [id])
  const early = { constraint: 'closed_early_by_two_people' }
  await expect(change(`closed_at = created_at`)).rejects.toMatchObject(early)
  await close(users[0], id)
  await expect(change(`closed_at = created_at`)).rejects.toMatchObject(early)
  await close(users[1], id)
  const closed = { constraint: 'closed_batch_takes_no_payments' }
  await expect(change('closed_at = null')).rejects.toMatchObject(closed)
  await expect(change('payment_count = payment_count + 1, control_total = control_total + 1')).rejects.toMatchObject(
    closed,
  )
})
