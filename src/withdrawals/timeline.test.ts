import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { signIn } from '../../test/harness/console.ts'
import { FileRailScene } from '../../test/payouts/file-rail-scene.ts'
import { closeException } from '../../test/payouts/two-person-decisions.ts'

type Step = {
  status: string
  at: string
  reason: string | null
  actor: { kind: string; name: string | null } | null
  paymentReference: string | null
  lines: {
    reason: string
    change: { available: { amount: number } }
    balanceAfter: { available: { amount: number } }
  }[]
}

let scene: FileRailScene
beforeAll(async () => {
  scene = await FileRailScene.start()
})
afterAll(() => scene.harness.stop())
beforeEach(() => scene.nextWeek())

const timelineOf = (id = '', options = {}) => scene.harness.call('GET', `/v1/pay/withdrawals/${id}/timeline`, options)
const stepsOf = async (id = ''): Promise<Step[]> => (await timelineOf(id)).body.steps
const statusesOf = (steps: Step[]) =>
  steps.map(({ status, reason }) => (reason === null ? status : `${status}: ${reason}`))
const changesOf = ({ lines }: Step) =>
  lines.map(({ change, balanceAfter }) => [change, balanceAfter].map(each => each.available.amount))

let messages = 0
const answer = (line: string) => scene.answer(`head;T${++messages}`, line)

test('a held withdrawal has one step, with the lines that deducted it', async () => {
  const { id } = await scene.withdraw(5_000, { available: 8_000 })
  const [held, ...later] = await stepsOf(id)
  expect(later).toEqual([])
  expect(held).toMatchObject({ status: 'held', at: scene.harness.clock.now().toISOString(), reason: null, actor: null })
  expect(held && changesOf(held)).toEqual([
    [-5_000, 3_000],
    [-50, 2_950],
  ])
})

test('a cancelled withdrawal says who cancelled it', async () => {
  const { id } = await scene.withdraw(5_000)
  const support = await signIn(scene.harness, { roles: ['support'] })
  await support.call('POST', `/v1/pay/withdrawals/${id}/cancel`)
  const steps = await stepsOf(id)
  expect(statusesOf(steps)).toEqual(['held', 'cancelled: Cancelled by the partner'])
  expect(steps.map(({ actor }) => actor)).toEqual([null, { kind: 'user', name: support.user.name }])
  expect(steps[1] && changesOf(steps[1])).toEqual([
    [5_000, 5_000],
    [50, 5_050],
  ])
})

test('a payment that bounces has its reference and the reason of the bank, each at its time', async () => {
  const { payments } = await scene.sent(5_000)
  const [payment] = payments
  await answer(`failed;${payment?.reference};5000EUR;AC04`)
  const steps = await stepsOf(payment?.id)
  expect(statusesOf(steps)).toEqual(['held', 'submitted', 'failed: AC04 The account is closed'])
  expect(steps.map(({ paymentReference }) => paymentReference)).toEqual([null, payment?.reference, null])
  expect(steps.map(({ at }) => at)).toEqual(steps.map(({ at }) => at).toSorted())
  expect(steps[2]?.at).toBe(scene.harness.clock.now().toISOString())
})

test('a payment that is returned and then paid after all keeps every reason, also once its events are gone', async () => {
  const { payments } = await scene.sent(5_000)
  const [{ id, reference } = { id: '', reference: '' }] = payments
  await answer(`returned;${reference};5000EUR;AC04;E2;2026-03-12`)
  const returned = ['held', 'submitted', 'paid', 'returned: AC04 The account is closed']
  expect(statusesOf(await stepsOf(id))).toEqual(returned)

  // The bank debits the payment itself, and then once more.
  const decisions = [
    { decision: 'attach', reference } as const,
    { decision: 'recover', references: [reference] } as const,
  ]
  for (const decided of decisions) {
    await answer(`entry;-5000EUR;;${decided.decision};2026-03-13;PAYMENT ${reference}`)
    const [exception] = await scene.open()
    const by = { exceptionId: exception?.id ?? '', person: 'Ada', note: 'asked the bank' }
    await scene.inTx(tx => closeException(tx, { ...by, now: scene.harness.clock.now(), ...decided }))
    await scene.run('read-rail-reports')
  }
  const steps = await stepsOf(id)
  expect(statusesOf(steps)).toEqual([...returned, 'paid: The bank has paid after all'])
  expect(steps.at(-1)?.lines.map(({ reason }) => reason)).toEqual(['withdrawal.recovered', 'withdrawal.recovered'])
  const { body } = await scene.harness.call('GET', `/v1/pay/withdrawals/${id}`)
  expect(body.timeline).toEqual(steps.map(({ status, at, reason }) => ({ status, at, reason })))

  await scene.harness.ownerDb.deleteFrom('events').execute()
  expect(await stepsOf(id)).toEqual(steps)
  const { withdrawals } = (
    await scene.harness.call('GET', '/v1/pay/withdrawals?take=1', { headers: { prefer: 'return=representation' } })
  ).body
  expect(withdrawals).toMatchObject([{ id, changedAt: steps.at(-1)?.at, reason: 'The bank has paid after all' }])
})

test('the timeline has the decision, the requests and the deliveries, as far as the reader may see each', async () => {
  const { call, flushRequestLog } = scene.harness
  const endpoint = (await call('POST', '/v1/webhooks', { body: { url: 'https://hooks.example.com/pay' } })).body
  const since = scene.harness.clock.now().toISOString()
  const { id } = await scene.withdraw(5_000)
  await call('POST', `/v1/webhooks/${endpoint.id}/replay`, { body: { since } })
  await call('GET', `/v1/pay/withdrawals/${id}`)
  await flushRequestLog()
  const { body } = await timelineOf(id)
  expect(body.explanation.result.netAmount).toEqual({ amount: 5_000, currency: 'EUR' })
  expect(body.requests.map(({ method, route }: { method: string; route: string }) => `${method} ${route}`)).toEqual([
    'POST /v1/pay/withdrawals/intent',
    'POST /v1/pay/withdrawals/complete',
  ])
  expect(body.deliveries).toMatchObject(
    ['intent.created', 'intent.completed', 'withdrawal.held'].map(type => ({
      ...{ webhookId: endpoint.id, url: endpoint.url, type, state: 'pending' },
    })),
  )
  const seenBy = async (role: 'support' | 'developer' | 'payroll') => {
    const user = await signIn(scene.harness, { roles: [role] })
    const seen = (await user.call('GET', `/v1/pay/withdrawals/${id}/timeline`)).body
    return [seen.requests !== null, seen.deliveries !== null, seen.steps[0].lines.length]
  }
  expect(await seenBy('support')).toEqual([true, false, 2])
  expect(await seenBy('payroll')).toEqual([false, false, 2])
  // On a sandbox, a developer may do what an admin may.
  expect(await seenBy('developer')).toEqual([true, true, 2])
})

test('another partner’s withdrawal has no timeline', async () => {
  const { id } = await scene.withdraw(5_000)
  expect((await timelineOf(id, { key: scene.harness.other.key })).status).toBe(404)
  expect((await timelineOf('w_unknown')).status).toBe(404)
})
