import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { Browser, type ConsoleUser, ownOrigin, pageHeaders, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { goodAccount } from '../../test/harness/samples.ts'
import { list } from '../audit-log/audit-log.ts'
import { withPartsInPlace } from '../contract/shared-parts.ts'
import { operations as declared } from '../operations.ts'
import { sandboxOperations } from '../sandbox/operations.ts'
import { mayCall, type Role, roles } from './roles.ts'

type Operation = {
  operationId: string
  security?: object[]
  responses: Record<string, { content?: Record<string, unknown> }>
}
const document: { paths: Record<string, Record<string, Operation>> } = withPartsInPlace(
  JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')),
)
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, { operationId, security, responses }]) =>
    security === undefined
      ? [{ operationId, method: method.toUpperCase(), path, types: Object.keys(responses[200]?.content ?? {}) }]
      : [],
  ),
)
const access = Object.fromEntries(
  [...declared, ...sandboxOperations].flatMap(({ id, scope, roles: allowed }) =>
    scope === undefined ? [] : [[id, allowed]],
  ),
)
const writes = operations.filter(({ method }) => method !== 'GET').map(({ operationId }) => operationId)
const allowedTo = (role: Role, mode: 'live' | 'sandbox' = 'live') =>
  Object.keys(access).filter(operationId => mayCall(access[operationId], { isOperator: false, roles: [role] }, mode))

const idsOf: Record<string, string> = {
  memberId: 'mem_123',
  withdrawalIntentId: 'wi_123',
  withdrawalId: 'w_123',
  payRunId: 'pr_123',
  payCycleId: 'pc_123',
  jobId: 'maj_123',
  webhookId: 'we_123',
  deliveryId: 'evt_123',
  requestId: 'req_123',
  batchId: 'bat_123',
  key: 'a-key',
}
const fill = (path: string, ids: Record<string, string | undefined> = {}) =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? idsOf[name] ?? 'unknown')
const memberWrites = ['activateMember', 'eraseMember', 'inviteMember', 'removeMember', 'replaceMember', 'updateMember']

test('on a live installation a viewer changes nothing, support only cancels, and a developer sees no member', () => {
  expect(allowedTo('viewer').filter(each => writes.includes(each))).toEqual([])
  expect(allowedTo('support').filter(each => writes.includes(each))).toEqual([
    'cancelWithdrawalIntent',
    'cancelWithdrawal',
  ])
  expect(allowedTo('developer').filter(each => /member(s|)$|Job|Statement|Deductions/i.test(each))).toEqual([
    'fundSandboxMember',
    'activateSandboxMember',
    'provokeSandboxJob',
  ])
  expect(allowedTo('payroll')).toEqual(expect.arrayContaining(memberWrites))
  expect(allowedTo('payroll').filter(each => /webhook|sandbox/i.test(each) && writes.includes(each))).toEqual([])
  for (const role of roles) expect(allowedTo('admin'), role).toEqual(expect.arrayContaining(allowedTo(role)))
})

test('a user can withdraw for a member only on a sandbox, and can never create member sessions', () => {
  const operator = { isOperator: true, roles }
  for (const operationId of ['createWithdrawalIntent', 'completeWithdrawal']) {
    expect(mayCall(access[operationId], operator, 'live')).toBe(false)
    expect(mayCall(access[operationId], operator, 'sandbox')).toBe(true)
  }
  for (const mode of ['live', 'sandbox'] as const)
    expect(mayCall(access.createMemberSession, operator, mode)).toBe(false)
  expect(mayCall(access.anOperationThatIsNotDeclared, operator, 'sandbox')).toBe(false)
})

describe.each(['sandbox', 'live'] as const)('on a %s server', mode => {
  let harness: Harness
  beforeAll(async () => {
    harness = await startHarness({ mode, hasRail: true })
  })
  afterAll(() => harness.stop())

  const served = operations.filter(({ operationId }) => mode === 'sandbox' || !/sandbox/i.test(operationId))

  test.each([...roles, 'operator', 'none'] as const)(
    '%s may call exactly the operations that the table lists',
    async who => {
      const held = who === 'operator' || who === 'none' ? [] : [who]
      const isOperator = who === 'operator'
      const user = await signIn(harness, { isOperator, roles: held })
      const found: Record<string, string> = {}
      const expected: Record<string, string> = {}
      for (const { operationId, method, path } of served) {
        // No operation takes this field: an admitted request fails validation, and does nothing.
        const { status } = await (method === 'GET'
          ? user.call(method, `${fill(path)}?unexpected=true`)
          : user.call(method, fill(path), { body: { unexpected: true } }))
        found[operationId] =
          status === 403 ? 'refused' : status === 404 && who === 'none' ? 'no such partner' : 'admitted'
        expect(status, operationId).not.toBe(401)
        expect(status, operationId).toBeLessThan(500)
        const isAllowed = mayCall(access[operationId], { isOperator, roles: held }, mode)
        expected[operationId] = who === 'none' ? 'no such partner' : isAllowed ? 'admitted' : 'refused'
      }
      expect(found).toEqual(expected)
      expect(served.length).toBeGreaterThan(45)
    },
  )

  test('with another partner’s ids every operation responds with 404, even to an operator', async () => {
    const { key } = harness.other
    const memberId = await harness.addMember({ available: 10_000, key })
    const intent = await harness.createIntent({ memberId, amount: 2_000, key })
    const done = await harness.requestCompletion(intent, { key })
    const [run] = (await harness.call('GET', '/v1/pay/runs', { key })).body.payRuns
    const hook = await harness.call('POST', '/v1/webhooks', { key, body: { url: 'https://example.com/hook' } })
    const job = await harness.call('POST', '/v1/members/jobs', {
      key,
      body: { actions: [{ type: 'Update', memberId, firstName: 'Sam' }] },
    })
    const foreign = {
      ...{ memberId, withdrawalIntentId: intent, withdrawalId: locatedId(done), payRunId: run.id },
      ...{ payCycleId: harness.other.payCycle.id, webhookId: hook.body.id, jobId: job.body.jobId },
    }
    const user = await signIn(harness, { isOperator: true, roles: ['admin'] })
    const bodies: Record<string, object> = {
      updateMember: { firstName: 'Sam' },
      replaceMember: { email: 'sam@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Silver' },
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
    }
    const named = served.filter(
      ({ path, operationId }) =>
        path.includes('{') && mayCall(access[operationId], { isOperator: true, roles: [] }, mode),
    )
    const statuses: Record<string, number> = {}
    for (const { operationId, method, path } of named) {
      const given = bodies[operationId]
      const { status } = await user.call(method, fill(path, foreign), given === undefined ? {} : { body: given })
      statuses[operationId] = status
    }
    expect(statuses).toEqual(Object.fromEntries(named.map(({ operationId }) => [operationId, 404])))
  })
})

describe('a session', () => {
  let harness: Harness
  let admin: ConsoleUser
  let memberId: string
  beforeAll(async () => {
    harness = await startHarness()
    admin = await signIn(harness, { roles: ['admin'] })
    memberId = await harness.addMember({ available: 20_000 })
  })
  afterAll(() => harness.stop())

  test('cannot replace an API key or a member session, and neither of these can replace it', async () => {
    expect((await harness.call('GET', '/v1/tiers', { key: admin.token })).status).toBe(401)
    const bearer = { authorization: `Bearer ${admin.token}` }
    expect((await harness.call('GET', '/v1/me', { key: null, headers: bearer })).status).toBe(401)
    const member = (await harness.call('POST', '/v1/member-sessions', { body: { memberId, scope: 'withdraw' } })).body
      .token
    const partner = { 'midmonth-partner': harness.partner.id }
    for (const token of [harness.key, member, `${admin.token}x`, ''])
      for (const path of ['/v1/tiers', '/console/v1/session'])
        expect(
          (await harness.call('GET', path, { key: null, headers: { ...pageHeaders(token), ...partner } })).status,
        ).toBe(401)
    const both = { ...pageHeaders(admin.token), ...partner }
    // If a key is sent, only the key counts.
    expect((await harness.call('GET', '/v1/members', { key: 'mm_test_wrong', headers: both })).status).toBe(401)
    expect(
      (await harness.call('GET', `/v1/members/${memberId}`, { key: harness.other.key, headers: both })).status,
    ).toBe(404)
  })

  test('with a suspended partner is refused, unless the user is an operator', async () => {
    const operator = await signIn(harness, { isOperator: true })
    const suspend = (at: Date | null) =>
      harness.db.updateTable('partners').set({ suspendedAt: at }).where('id', '=', harness.partner.id).execute()
    await suspend(harness.clock.now())
    expect((await admin.call('GET', '/v1/tiers')).status).toBe(403)
    expect((await operator.call('GET', '/v1/tiers')).status).toBe(200)
    await suspend(null)
  })

  test('has its own idempotency keys, separate from those of the partner’s servers and of other users', async () => {
    const second = await signIn(harness, { roles: ['admin'] })
    const headers = { 'x-idempotency-key': 'shared' }
    const invite = (email: string) => ({
      headers,
      body: { email, firstName: 'Sam', lastName: 'Okafor', tier: 'Silver', accountDetails: goodAccount },
    })
    const byServer = await harness.call('POST', '/v1/members', invite('server@example.com'))
    const byAdmin = await admin.call('POST', '/v1/members', invite('admin@example.com'))
    const bySecond = await second.call('POST', '/v1/members', invite('second@example.com'))
    expect([byServer.status, byAdmin.status, bySecond.status]).toEqual([201, 201, 201])
    const again = await admin.call('POST', '/v1/members', invite('admin@example.com'))
    expect([again.headers['idempotency-replayed'], again.body]).toEqual(['true', byAdmin.body])
    expect(again.text).not.toContain(goodAccount.accountNumber)
  })

  test('is in the request log with the user instead of a key, if it does more than read', async () => {
    await admin.call('GET', '/v1/tiers')
    expect((await admin.call('POST', '/v1/sandbox/pause')).status).toBe(200)
    expect((await admin.call('POST', '/v1/sandbox/resume')).status).toBe(200)
    await harness.flushRequestLog()
    const { body } = await harness.call('GET', `/v1/requests?keyId=${admin.user.id}&take=2`)
    expect(body.requests).toMatchObject([{ route: '/v1/sandbox/resume', status: 200 }, { route: '/v1/sandbox/pause' }])
    const looks = await harness.call('GET', `/v1/requests?keyId=${admin.user.id}&route=/v1/tiers`)
    expect(looks.body.requests).toEqual([])
  })

  test('shows no account number and no date of birth to any role in any response, and reveals them to an admin or a payroll clerk who gives a reason', async () => {
    const { accountNumber } = goodAccount
    const dob = '1990-06-24'
    const amount = { amount: 2_000, currency: 'GBP' }
    const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount } })
    const { withdrawalIntentId } = intent.body
    expect(intent.text).toContain(accountNumber)
    const done = await harness.call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
    await harness.call('PATCH', `/v1/members/${memberId}`, {
      headers: { 'x-request-id': 'changed-account' },
      body: { accountDetails: { ...goodAccount, accountHolder: 'S Okafor' }, dob },
    })
    const listed = { type: 'Update', memberId, accountDetails: { ...goodAccount, accountHolder: 'S Okafor' }, dob }
    const job = await harness.call('POST', '/v1/members/jobs', { body: { actions: [listed] } })
    await harness.runTask('apply-member-imports')
    const hook = (await harness.call('POST', '/v1/webhooks', { body: { url: 'https://example.com/hook' } })).body.id
    await harness.flushRequestLog()
    const [run] = (await harness.call('GET', '/v1/pay/runs')).body.payRuns
    const ids = {
      ...{ memberId, withdrawalIntentId, withdrawalId: locatedId(done), payRunId: run.id },
      ...{ payCycleId: harness.payCycle.id, webhookId: hook, requestId: 'changed-account', jobId: job.body.jobId },
    }
    const reads = operations.filter(
      ({ method, operationId }) => method === 'GET' && operationId !== 'getSandboxTestValues',
    )
    for (const role of [...roles, 'operator'] as const) {
      const user = await signIn(harness, role === 'operator' ? { isOperator: true } : { roles: [role] })
      for (const { operationId, path, types } of reads)
        for (const accept of types) {
          const { text } = await user.call('GET', fill(path, ids), { headers: { accept } })
          expect(text, `${operationId} for ${role}`).not.toContain(accountNumber)
          expect(text, `${operationId} for ${role}`).not.toContain(dob)
        }
      const reveal = await user.call('POST', `/console/v1/members/${memberId}/account`, {
        body: { reason: 'She asks which account' },
      })
      expect(reveal.status, role).toBe(['operator', 'admin', 'payroll'].includes(role) ? 200 : 403)
      for (const secret of [accountNumber, dob]) expect(reveal.text.includes(secret), role).toBe(reveal.status === 200)
    }
    expect((await admin.call('GET', '/v1/sandbox/test-values')).body.accounts[0].accountNumber).toMatch(/^[0-9]{8}$/)
    expect((await admin.call('GET', `/v1/members/${memberId}`)).body.accountDetails).toEqual({
      ...{ accountHolder: 'S Okafor', sortCode: '••••••', accountNumber: '••••4958' },
    })
    const written = await admin.call('PATCH', `/v1/members/${memberId}`, { body: { accountDetails: goodAccount } })
    expect([written.status, written.text.includes(accountNumber)]).toEqual([200, false])
    for (const reason of ['', '  ', undefined])
      expect((await admin.call('POST', `/console/v1/members/${memberId}/account`, { body: { reason } })).status).toBe(
        400,
      )
    const foreign = await harness.addMember({ key: harness.other.key })
    const path = `/console/v1/members/${foreign}/account`
    expect((await admin.call('POST', path, { body: { reason: 'curious' } })).status).toBe(404)
    const entries = await list(harness.db, { filter: { resourceId: memberId, actions: ['member.reveal'] }, take: 10 })
    expect(entries).toHaveLength(3)
    expect(entries[0]).toMatchObject({
      ...{ actorKind: 'user', address: '127.0.0.1', requestId: expect.stringMatching(/^req_/) },
      details: { reason: 'She asks which account', lastFour: '4958' },
    })
    expect(JSON.stringify(entries)).not.toContain(accountNumber)
  })

  test('may not be used by a page that another site shows or sends', async () => {
    const browser = new Browser(harness)
    browser.cookies.set('midmonth-console', admin.token)
    const paths = ['/console/v1/sign-out', '/console/v1/invitations', `/console/v1/members/${memberId}/account`]
    for (const path of paths)
      for (const headers of [{ origin: 'https://evil.example' }, { origin: ownOrigin, 'sec-fetch-site': 'cross-site' }])
        expect((await browser.call('POST', path, { headers, body: {} })).status, path).toBe(403)
    // A form of another site that hides its origin.
    const hidden = await harness.app.inject({
      method: 'POST',
      url: '/console/v1/sign-out',
      headers: { host: 'localhost', cookie: `midmonth-console=${admin.token}` },
    })
    expect(hidden.statusCode).toBe(403)
    expect((await browser.call('GET', '/console/v1/session')).status).toBe(200)
  })
})
