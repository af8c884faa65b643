import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { FileRailScene } from '../../test/payouts/file-rail-scene.ts'

let scene: FileRailScene
let operator: ConsoleUser
beforeAll(async () => {
  scene = await FileRailScene.start()
  operator = await signIn(scene.harness, { isOperator: true })
})
afterAll(() => scene.harness.stop())

test('an operator finds a withdrawal of any partner by its id, and the member with why they cannot withdraw', async () => {
  const { id, memberId } = await scene.withdraw(5_000)
  const partnerId = scene.harness.partner.id
  const { body: found } = await operator.call('GET', `/operator/v1/withdrawals/${id}`)
  expect(found).toMatchObject({ id, memberId, partnerId, status: 'held', employerFee: { amount: 0 }, stuck: null })
  expect(found.timeline).toMatchObject([{ status: 'held' }])
  const { body: member } = await operator.call('GET', `/operator/v1/members/${memberId}`)
  expect(member).toMatchObject({ id: memberId, partnerId, canWithdraw: false, withdrawals: [{ id }] })
  for (const [path, message] of [
    ['withdrawals/w_none', 'There is no withdrawal w_none'],
    ['members/mem_none', 'There is no member mem_none'],
    ['withdrawals/w_none/timeline', 'There is no withdrawal w_none'],
    ['withdrawals?partnerId=par_none', 'There is no partner par_none'],
  ]) {
    const { status, body } = await operator.call('GET', `/operator/v1/${path}`)
    expect([status, body.issues[0].message.startsWith(message)]).toEqual([404, true])
  }
})

test('the list pages and filters, and knows which withdrawals are stuck', async () => {
  const { harness } = scene
  const key = harness.other.key
  const memberId = (await scene.withdraw(2_000, { available: 9_000, key })).memberId
  await harness.withdraw({ memberId, amount: 1_050, currency: 'EUR', key })
  const list = async (query: string) => (await operator.call('GET', `/operator/v1/withdrawals?${query}`)).body
  const first = await list(`memberId=${memberId}&take=1`)
  expect([first.withdrawals.length, first.hasMore]).toEqual([1, true])
  const second = await list(`memberId=${memberId}&take=1&after=${first.withdrawals[0].id}`)
  expect([second.withdrawals.length, second.hasMore]).toEqual([1, false])
  expect(second.withdrawals[0].id).not.toBe(first.withdrawals[0].id)
  expect((await list(`partnerId=${harness.other.partner.id}`)).withdrawals).toHaveLength(2)
  expect((await list(`memberId=${memberId}&statuses=paid`)).withdrawals).toEqual([])
  expect((await list(`memberId=${memberId}&isStuck=true`)).withdrawals).toEqual([])
  harness.clock.advance({ minutes: 10 })
  const { withdrawals: stuck } = await list(`memberId=${memberId}&isStuck=true`)
  expect(stuck.map((each: { stuck: string }) => each.stuck)).toEqual(['no worker submits it', 'no worker submits it'])
})

test('the timeline for operators has the payment with the bank’s answers, and names the operator who removed it', async () => {
  const { id } = await scene.withdraw(5_000)
  // A session ends after a while without use, and the clock advances by hours.
  const timelineOf = async (each: string) => {
    const user = await signIn(scene.harness, { isOperator: true })
    return (await user.call('GET', `/operator/v1/withdrawals/${each}/timeline`)).body
  }
  expect(await timelineOf(id)).toMatchObject({ partnerId: scene.harness.partner.id, payout: null })
  const { payments } = await scene.sent(4_000)
  const [sent = { id: '', reference: '' }] = payments
  await scene.answer('head;W1', `failed;${sent.reference};4000EUR;AC04`)
  expect(await timelineOf(sent.id)).toMatchObject({
    steps: [{ status: 'held' }, { status: 'submitted', paymentReference: sent.reference }, { status: 'failed' }],
    payout: { reference: sent.reference, answers: [{ by: 'bank', outcome: 'failed' }] },
  })
  scene.harness.clock.advance({ minutes: 1 })
  const removed = await scene.withdraw(3_000)
  scene.harness.clock.advance({ seconds: 30 })
  await scene.run('submit-withdrawals')
  const remover = await signIn(scene.harness, { isOperator: true })
  const answer = await remover.call('POST', `/operator/v1/payouts/${removed.id}/remove`, { body: { reason: 'wrong' } })
  expect(answer.status).toBe(200)
  await scene.run('read-rail-reports')
  const actor = { kind: 'user', name: remover.user.name }
  expect((await timelineOf(removed.id)).steps.at(-1)).toMatchObject({ status: 'failed', actor })
  const seen = await scene.harness.call('GET', `/v1/pay/withdrawals/${removed.id}/timeline`)
  expect(seen.body.steps.at(-1)).toMatchObject({ status: 'failed', actor: { kind: 'user', name: null } })
})
