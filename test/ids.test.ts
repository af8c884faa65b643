import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withPartsInPlace } from '../src/http/shared-parts.ts'
import { type Harness, startHarness } from './harness.ts'

type Schema = { $ref?: string; pattern?: string }
type Parameter = { in: string; name: string; schema: Schema }
type Document = {
  paths: Record<string, Record<string, { operationId: string; parameters?: Parameter[] }>>
  components: { schemas: Record<string, Schema> }
}
const document: Document = withPartsInPlace(
  JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')),
)
const patternOf = ({ $ref, pattern }: Schema) =>
  $ref === undefined ? pattern : document.components.schemas[$ref.split('/').at(-1) ?? '']?.pattern

/** Every operation with a resource id in its path, with the prefix of the id. */
const byPath = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, { operationId, parameters = [] }]) =>
    parameters.flatMap(({ in: where, name, schema }) => {
      const prefix = /^\^([a-z]+_)$/.exec(patternOf(schema) ?? '')?.[1]
      return where === 'path' && prefix !== undefined
        ? [{ operationId, method: method.toUpperCase(), path, name, prefix }]
        : []
    }),
  ),
)
const newMember = { email: 'sam.okafor@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Silver' }
const bodies: Record<string, object> = {
  updateMember: { firstName: 'Sam' },
  replaceMember: newMember,
  createSettlement: { deductions: [] },
  fundSandboxMember: { amount: { amount: 1_000, currency: 'GBP' } },
  updateWebhook: { enabled: true },
  rotateWebhookSecret: {},
  testWebhook: { type: 'withdrawal.paid' },
  answerSandboxBankFile: { format: 'pain.002', outcomes: [{ outcome: 'paid' }] },
  replayWebhook: { eventId: 'evt_123' },
}

let harness: Harness
let webhookId: string
let token: string
beforeAll(async () => {
  harness = await startHarness()
  const body = { url: 'http://127.0.0.1:9999/hook', types: ['*'] }
  webhookId = (await harness.call('POST', '/v1/webhooks', { body })).body.id
  const session = { memberId: await harness.addMember(), scope: 'withdraw' }
  token = (await harness.call('POST', '/v1/member-sessions', { body: session })).body.token
})
afterAll(() => harness.stop())

test('openapi.json contains the operations under test', () => {
  expect(byPath.length).toBeGreaterThanOrEqual(20)
  expect(new Set(byPath.map(({ prefix }) => prefix))).toEqual(
    new Set(['mem_', 'wi_', 'w_', 'pc_', 'pr_', 'maj_', 'we_', 'evt_', 'req_', 'bat_']),
  )
})

describe.each(byPath)('$operationId', ({ operationId, method, path, name, prefix }) => {
  const call = (id: string) => {
    const body = bodies[operationId]
    // The endpoint of a delivery exists.
    const url = path
      .replace(`{${name}}`, encodeURIComponent(id))
      .replace('{webhookId}', webhookId)
      .replace('{deliveryId}', 'evt_123')
    const headers: Record<string, string> = path.startsWith('/v1/me/') ? { authorization: `Bearer ${token}` } : {}
    return harness.call(method, url, body === undefined ? { headers } : { headers, body })
  }

  test.each(['123', '', 'ÄÖ ☃/../x', "' or 1=1; --", '01KAH4PZC5E4R8V2M6T0X9Y3BD', 'x'.repeat(200)])(
    `unknown id ${prefix}%s is the 404 of its resource`,
    async rest => {
      const { status, body } = await call(prefix + rest)
      expect(status).toBe(404)
      const issue = prefix === 'mem_' ? { code: 'MemberNotFound', memberId: prefix + rest } : { code: 'NotFound' }
      expect(body.issues).toEqual([{ ...issue, message: expect.any(String) }])
    },
  )

  test.each([
    'x',
    `${prefix.toUpperCase()}123`,
    `key_${prefix}123`,
    ` ${prefix}123`,
    `${prefix}\0`,
    prefix + 'x'.repeat(256),
  ])('rejects %j as a validation issue', async id => {
    const { status, body } = await call(id)
    expect([status, body.issues[0].code, body.issues[0].path]).toEqual([400, 'PathValidation', name])
  })
})

describe('an unknown id', () => {
  const codesOf = (answer: { body: { issues: { code: string }[] } }) => answer.body.issues.map(({ code }) => code)
  const gbp = (amount: number) => ({ amount, currency: 'GBP' })

  test('in a body is the 404 of its resource', async () => {
    const intent = { memberId: 'mem_123', amount: gbp(5_000) }
    expect((await harness.call('POST', '/v1/pay/withdrawals/intent', { body: intent })).body.issues).toEqual([
      { code: 'MemberNotFound', message: expect.any(String), memberId: 'mem_123' },
    ])
    const completion = { withdrawalIntentId: 'wi_123' }
    const completed = await harness.call('POST', '/v1/pay/withdrawals/complete', { body: completion })
    expect([completed.status, codesOf(completed)]).toEqual([404, ['NotFound']])
    const wrong = await harness.call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId: 'w_123' } })
    expect([wrong.status, codesOf(wrong)]).toEqual([400, ['BodyValidation']])
  })

  test('in one of many lines is an issue of that line', async () => {
    const payDetails = [{ memberId: 'mem_123', money: gbp(100) }]
    expect((await harness.call('POST', '/v1/pay/run', { body: { payDetails } })).body.issues).toEqual([
      { code: 'MemberNotEligible', message: expect.any(String), memberId: 'mem_123' },
    ])
    const actions = [
      { type: 'Update', memberId: 'mem_123', firstName: 'Sam' },
      { type: 'Offboard', memberId: 'mem_' },
    ]
    expect((await harness.call('POST', '/v1/members/jobs', { body: { actions } })).body.issues).toMatchObject([
      { code: 'InvalidUpdateMemberPayload', memberId: 'mem_123' },
      { code: 'InvalidRemoveMemberPayload', memberId: 'mem_' },
    ])
  })

  test('in a filter matches nothing', async () => {
    expect((await harness.call('GET', '/v1/members?memberIds=mem_123&memberIds=mem_')).body.members).toEqual([])
    for (const filter of ['memberId=mem_123', 'payCycleId=pc_123']) {
      expect((await harness.call('GET', `/v1/pay/withdrawals?${filter}`)).body.withdrawals).toEqual([])
    }
    expect((await harness.call('GET', '/v1/pay/runs?payCycleId=pc_123')).body.payRuns).toEqual([])
    expect(codesOf(await harness.call('GET', '/v1/members?memberIds=wi_123'))).toEqual(['QueryValidation'])
  })

  test('as the position in the event feed is NotFound', async () => {
    const answer = await harness.call('GET', '/v1/events?after=evt_123')
    expect([answer.status, codesOf(answer)]).toEqual([404, ['NotFound']])
  })
})

const lists = Object.entries(document.paths).flatMap(([path, { get }]) =>
  get?.parameters?.some(({ in: where, name }) => where === 'query' && name === 'take') ? [path] : [],
)

test('openapi.json contains the lists under test', () => {
  expect(lists.length).toBeGreaterThanOrEqual(10)
})

test.each(lists)('%s returns pages of up to 1,000 entries and refuses larger ones', async path => {
  const url = path
    .replace('{memberId}', await harness.addMember())
    .replace('{payCycleId}', harness.payCycle.id)
    .replace('{jobId}', 'maj_123')
    .replace('{webhookId}', webhookId)
  const [largest, larger] = [
    await harness.call('GET', `${url}?take=1000`),
    await harness.call('GET', `${url}?take=1001`),
  ]
  // An unsettled cycle and an unknown job have no page, but the page size is validated first.
  if (largest.status !== 404) expect([largest.status, largest.body.take]).toEqual([200, 1_000])
  expect([larger.status, larger.body.issues[0].path]).toEqual([400, 'take'])
})
