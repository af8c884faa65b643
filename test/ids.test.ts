import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { withPartsInPlace } from '../src/contract/shared-parts.ts'
import { type Role, roles } from '../src/users/roles.ts'
import type { ApiResponse, Call } from './harness/api-response.ts'
import { type ConsoleUser, signIn } from './harness/console.ts'
import { type Harness, startHarness } from './harness/harness.ts'

type Schema = { $ref?: string; pattern?: string }
type Caller = (method: string, path: string, options: Omit<Call, 'key'>) => Promise<ApiResponse>
type Parameter = { in: string; name: string; schema: Schema }
type Document = {
  paths: Record<string, Record<string, { operationId: string; parameters?: Parameter[] }>>
  components: { schemas: Record<string, Schema> }
}
const documentIn = (file: string): Document =>
  withPartsInPlace(JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')))
const [document, ofOperators] = [documentIn('openapi.json'), documentIn('openapi-operator.json')]

/** Every operation with a resource id in its path, and the prefix of that id. */
function byPathIn({ paths, components }: Document) {
  const patternOf = ({ $ref, pattern }: Schema) =>
    $ref === undefined ? pattern : components.schemas[$ref.split('/').at(-1) ?? '']?.pattern
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId, parameters = [] }]) =>
      parameters.flatMap(({ in: where, name, schema }) => {
        const prefix = /^\^([a-z]+_)$/.exec(patternOf(schema) ?? '')?.[1]
        return where === 'path' && prefix !== undefined
          ? [{ operationId, method: method.toUpperCase(), path, name, prefix }]
          : []
      }),
    ),
  )
}
const [byPath, byPathOfOperators] = [byPathIn(document), byPathIn(ofOperators)]
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
  ...Object.fromEntries(
    ['Member', 'WithdrawalIntent', 'PayRun', 'Webhook'].map(of => [
      `set${of}Metadata`,
      { metadata: { site: 'Leeds' } },
    ]),
  ),
  updatePartner: { graceMinutes: 5 },
  pausePartner: {},
  resumePartner: {},
  suspendPartner: {},
  restorePartner: {},
  releaseMember: {},
  ...Object.fromEntries(['previewTier', 'saveTier'].map(id => [id, { currency: 'GBP', version: 1, ...terms() }])),
  fundFloat: { amount: gbp(1_000) },
  withdrawFloat: { amount: gbp(1_000) },
  coverFloat: { amount: gbp(1_000) },
  receiveFloat: { payCycleId: 'pc_123', currency: 'GBP' },
  withdrawRevenue: { amount: gbp(1_000), reference: 'fees' },
  issueInvoice: { currency: 'GBP' },
  payInvoice: { reference: 'transfer', on: '2026-03-31' },
  ...Object.fromEntries(['reopenInvoice', 'voidInvoice'].map(id => [id, { note: 'by mistake' }])),
  setFloatFloor: { currency: 'GBP', floor: null },
  createApiKey: {},
  closePayoutException: { decision: 'ignore', note: 'bank charges' },
  closePayoutBatch: { note: 'the bank closes early' },
}

function gbp(amount: number) {
  return { amount, currency: 'GBP' }
}

function terms() {
  const fee = { feeFixed: gbp(50), feeBps: 0, feeMin: null, feeMax: null, feePayer: 'member' }
  const counts = { withdrawalsPerDay: null, withdrawalsPerCycle: null, payoutSpeed: null }
  return { ...fee, lowerLimit: gbp(1_000), upperLimit: gbp(20_000), ...counts }
}

let harness: Harness
let webhookId: string
let token: string
let operator: ConsoleUser
beforeAll(async () => {
  harness = await startHarness()
  const body = { url: 'http://127.0.0.1:9999/hook', types: ['*'] }
  webhookId = (await harness.call('POST', '/v1/webhooks', { body })).body.id
  const session = { memberId: await harness.addMember(), scope: 'withdraw' }
  token = (await harness.call('POST', '/v1/member-sessions', { body: session })).body.token
})
// With a frozen clock, one session would exceed its quota.
beforeEach(async () => {
  operator = await signIn(harness, { isOperator: true })
})
afterAll(() => harness.stop())

test('the documents contain the operations under test', () => {
  expect(byPath.length).toBeGreaterThanOrEqual(20)
  expect(byPathOfOperators.length).toBeGreaterThanOrEqual(30)
  expect(new Set(byPathOfOperators.map(({ prefix }) => prefix))).toEqual(
    new Set(['par_', 'key_', 'bat_', 'pex_', 'pxr_', 'lv_', 'ivc_', 'mem_', 'w_']),
  )
  expect(new Set(byPath.map(({ prefix }) => prefix))).toEqual(
    new Set(['mem_', 'wi_', 'w_', 'pc_', 'pr_', 'maj_', 'we_', 'evt_', 'req_', 'bat_']),
  )
})

const asKey: Caller = (method, path, options) => harness.call(method, path, options)
const asOperator: Caller = (method, path, options) => operator.call(method, path, { ...options, partner: null })

const unknown = ['123', '', 'ÄÖ ☃/../x', "' or 1=1; --", '01KAH4PZC5E4R8V2M6T0X9Y3BD', 'x'.repeat(200)]
const malformed = (prefix: string) => [
  'x',
  `${prefix.toUpperCase()}123`,
  `not_${prefix}123`,
  ` ${prefix}123`,
  `${prefix}\0`,
  prefix + 'x'.repeat(256),
]

test.each([
  ...byPath.map(each => ({ ...each, as: asKey })),
  ...byPathOfOperators.map(each => ({ ...each, as: asOperator })),
])('$operationId: an unknown $name is the 404 of its resource, a malformed one a validation issue', async operation => {
  const { name, prefix } = operation
  const notFound = (id: string) => (prefix === 'mem_' ? { code: 'MemberNotFound', memberId: id } : { code: 'NotFound' })
  const expected = {
    ...Object.fromEntries(unknown.map(rest => [prefix + rest, { status: 404, issue: notFound(prefix + rest) }])),
    ...Object.fromEntries(
      malformed(prefix).map(id => [id, { status: 400, issue: { code: 'PathValidation', path: name } }]),
    ),
  }
  const found: Record<string, unknown> = {}
  for (const id of Object.keys(expected)) found[id] = await callWithId(operation, id).then(summary, String)
  // Only the ids that fail, so that the diff names them.
  const failed = Object.keys(expected).filter(id => !isDeepStrictEqual(found[id], expected[id]))
  const ofFailed = (results: Record<string, unknown>) => Object.fromEntries(failed.map(id => [id, results[id]]))
  expect(ofFailed(found)).toEqual(ofFailed(expected))
})

/** The status and the only issue of a response, without its message. */
function summary({ status, body }: ApiResponse) {
  const [issue, ...further] = (body.issues ?? []) as { message: unknown }[]
  if (typeof issue?.message !== 'string' || further.length > 0) return { status, body }
  const { message, ...facts } = issue
  return { status, issue: facts }
}

async function callWithId(
  { operationId, method, path, name, as }: ReturnType<typeof byPathIn>[number] & { as: Caller },
  id: string,
): Promise<ApiResponse> {
  const body = bodies[operationId]
  // The endpoint of a delivery exists.
  const url = path
    .replace(`{${name}}`, encodeURIComponent(id))
    .replace('{webhookId}', webhookId)
    .replace('{deliveryId}', 'evt_123')
    .replace('{partnerId}', harness.partner.id)
    .replace('{keyId}', 'key_123')
    .replace('{invoiceId}', 'ivc_123')
    .replace('{tier}', 'Silver')
  const headers: Record<string, string> = path.startsWith('/v1/me/') ? { authorization: `Bearer ${token}` } : {}
  const query = operationId === 'getFeeStatement' ? '?month=2026-03' : ''
  return await as(method, `${url}${query}`, body === undefined ? { headers } : { headers, body })
}

describe('an unknown id', () => {
  const codesOf = (answer: { body: { issues: { code: string }[] } }) => answer.body.issues.map(({ code }) => code)

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

  test('in one of several lines is an issue of that line', async () => {
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

/** The operations that a partner's user may call, with the permitted roles. */
const ofPartners: Record<string, readonly Role[]> = {
  listApiKeys: ['admin', 'developer'],
  createApiKey: ['admin', 'developer'],
  rotateApiKey: ['admin', 'developer'],
  revokeApiKey: ['admin', 'developer'],
  listPartnerAuditEntries: ['admin'],
}
const allOfOperators = Object.entries(ofOperators.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({ operationId, method: method.toUpperCase(), path })),
)

test.each([...roles, 'operator', 'none'] as const)(
  'in the operators’ API, %s reaches only the declared operations, and nothing of another partner',
  async who => {
    const isOperator = who === 'operator'
    const user = await signIn(harness, { isOperator, roles: who === 'operator' || who === 'none' ? [] : [who] })
    const found: Record<string, string> = {}
    const expected: Record<string, string> = {}
    for (const { operationId, method, path } of allOfOperators) {
      const statusFor = async (partnerId: string) => {
        const url = path
          .replace('{partnerId}', partnerId)
          .replace(/\{[a-z]+Id\}/gi, 'key_123')
          .replace(/\{[a-z]+\}/g, 'x')
        // No operation takes this body: an admitted request fails validation, and nothing changes.
        const body = method === 'GET' ? {} : { body: { unexpected: true } }
        return (await user.call(method, url, { ...body, partner: null })).status
      }
      const [own, foreign] = [await statusFor(harness.partner.id), await statusFor(harness.other.partner.id)]
      const shown = (status: number) => (status === 403 || status === 404 ? status : status < 500 ? 'admitted' : status)
      const isListed = ofPartners[operationId] !== undefined
      found[operationId] = `${isOperator ? own === 403 : shown(own)} ${isOperator ? foreign === 403 : shown(foreign)}`
      expected[operationId] = isOperator
        ? 'false false'
        : !isListed
          ? '403 403'
          : who === 'none'
            ? '404 404'
            : ofPartners[operationId]?.includes(who)
              ? 'admitted 404'
              : '403 404'
    }
    expect(found).toEqual(expected)
    expect(allOfOperators.length).toBeGreaterThanOrEqual(45)
  },
)

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
  // An unsettled cycle and an unknown job have no pages, but the page size is validated first.
  if (largest.status !== 404) expect([largest.status, largest.body.take]).toEqual([200, 1_000])
  expect([larger.status, larger.body.issues[0].path]).toEqual([400, 'take'])
})
