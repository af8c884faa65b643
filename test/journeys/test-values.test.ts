import { afterAll, beforeAll, expect, test } from 'vitest'
import { exampleIssue } from '../../src/contract/refusals.ts'
import { sql } from '../../src/database/database.ts'
import { type ProblemName, partnerProblems, problems } from '../../src/kernel/errors.ts'
import { provocable, rows as testValues } from '../../src/sandbox/test-values.ts'
import { type Harness, startHarness } from '../harness/harness.ts'

type Value = {
  reaches: { code: string; status: number } | { transition: { entity: string; from: string; to: string } }
  request: { method: string; path: string; headers?: Record<string, string>; body?: unknown }
}
const entities: Record<string, string> = {
  members: 'member',
  member_imports: 'member_job',
  pay_cycles: 'pay_cycle',
  pay_runs: 'pay_run',
  withdrawal_intents: 'withdrawal_intent',
  withdrawals: 'withdrawal',
}
/** The events of each transition, in the order of an entity's states. */
const statesByEvent: Record<string, string> = {
  'member.invited': 'invited',
  'member.activated': 'active',
  'member.removed': 'inactive',
  'member.reinstated': 'invited',
  'job.queued': 'NotReady',
  'job.awaiting_review': 'AwaitingReview',
  'job.processing': 'Processing',
  'job.completed': 'Completed',
  'job.rejected': 'Rejected',
  'pay_cycle.opened': 'Open',
  'pay_cycle.closed': 'Closed',
  'pay_run.scheduled': 'Scheduled',
  'pay_run.available': 'Available',
  'pay_run.reverted': 'Reverted',
  'intent.created': 'pending',
}

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const nameOf = ({ reaches }: Value) =>
  'code' in reaches
    ? `${reaches.status} ${reaches.code}`
    : `${reaches.transition.entity} ${reaches.transition.from} > ${reaches.transition.to}`

test('there is a request for every error and for every transition of a state', async () => {
  const { body } = await harness.call('GET', '/v1/sandbox/test-values')
  const named = new Set((body.values as Value[]).map(nameOf))
  const codes = Object.values(problems)
    // A partner's request cannot sign in to the console.
    .filter(({ when }) => !when.startsWith('Only in the console'))
    .map(({ code, status }) => `${status} ${code}`)
  const listed = await harness.db.selectFrom('stateTransitions').selectAll().execute()
  const transitions = listed
    // Batches and invoices belong to the operator: a partner's requests do not reach them.
    .filter(({ entity }) => entity !== 'payout_batches' && entity !== 'invoices')
    // Only an operator's decision moves a withdrawal from a final state back to paid.
    .filter(
      ({ entity, fromState, toState }) =>
        !(entity === 'withdrawals' && toState === 'paid' && fromState !== 'submitted'),
    )
    .map(({ entity, fromState, toState }) => `${entities[entity]} ${fromState} > ${toState}`)
  const missing = [...codes, ...transitions].filter(each => !named.has(each))
  expect(missing).toEqual([])
  const { rows } = await sql<{ details: object }>`
    select details from audit_log where partner_id = ${harness.partner.id} and action = 'partner.test_values'`.execute(
    harness.ownerDb,
  )
  expect(rows).toEqual([{ details: { requests: body.values.length } }])
  expect(body.accounts).toContainEqual({
    sortCode: '000002',
    accountNumber: '12345678',
    iban: 'DE79000000000000000002',
    behaviour: 'returned',
  })
})

// Seventy requests, some of which move the clock by weeks: 15 seconds on an idle machine.
test('every request, sent as printed, reaches its stated error or transition', { timeout: 90_000 }, async () => {
  const { key, partner } = await harness.addPartner('Test values', { graceMinutes: 0 })
  const outcomes: Record<string, string> = {}
  const expected: Record<string, string> = {}
  const sent = new Map<ProblemName, Issue>()
  let values = await fetchValues()
  for (const index of values.keys()) {
    const value = values[index]
    if (value === undefined) continue
    const name = `${index} ${nameOf(value)}`
    const { method, path, headers = {}, body } = value.request
    const before = await lastSequences(partner.id)
    const { 'x-api-key': ownKey = key, ...others } = headers
    const answer = await harness.call(method, path, {
      key: ownKey,
      headers: others,
      ...(typeof body === 'string' ? { raw: body } : body === undefined ? {} : { body }),
    })
    if ('code' in value.reaches) {
      expected[name] = nameOf(value)
      outcomes[name] = `${answer.status} ${answer.body.issues?.[0].code}`
      const reaches = testValues[index]?.reaches
      if (reaches !== undefined && 'problem' in reaches) sent.set(reaches.problem, answer.body.issues?.[0])
    } else {
      const { entity, from, to } = value.reaches.transition
      expected[name] = `${entity} ${from} > ${to}`
      const seen = await transitionsSince(partner.id, before)
      outcomes[name] = seen.has(`${entity} ${from} > ${to}`) ? `${entity} ${from} > ${to}` : [...seen].join()
      if (path === '/v1/sandbox/clock') values = await fetchValues()
    }
  }
  expect(outcomes).toEqual(expected)
  for (const [name, issue] of sent) expect(issue, name).toEqual(exampleLike(issue, name))
  // This error takes an outage (src/http/deadline.test.ts).
  expect(partnerProblems.filter(name => !sent.has(name))).toEqual(['OutcomeUnknown'])

  async function fetchValues(): Promise<Value[]> {
    const { status, body, text } = await harness.call('GET', '/v1/sandbox/test-values', { key })
    expect(status, text).toBe(200)
    return body.values
  }
})

type Issue = { message: string; memberId?: string; email?: string }

/** The example in the API reference, whose ids and e-mail addresses differ from the request's. */
function exampleLike({ memberId, email }: Issue, name: ProblemName): object {
  return { ...exampleIssue(name), ...(memberId && { memberId }), ...(email && { email }) }
}

test('an error provoked by the header has the message of the genuine error', async () => {
  const { key } = await harness.addPartner('Hasty', { requestsPerSecond: 100, requestsBurst: 1 })
  const { secret: withoutScope } = await harness.addKey(['pay:write'])
  await harness.call('GET', '/v1/tiers', { key })
  const url = await harness.app.listen({ host: '127.0.0.1', port: 0 })
  const causes: Partial<Record<ProblemName, unknown>> = {
    RateLimitExceeded: (await harness.call('GET', '/v1/tiers', { key })).body,
    Forbidden: (await harness.call('GET', '/v1/members', { key: withoutScope })).body,
    PayloadTooLarge: (await harness.call('POST', '/v1/pay/withdrawals/intent', { raw: ' '.repeat(65_537) })).body,
    HeadersTooLarge: await (await fetch(url, { headers: { x: 'x'.repeat(16_384) } })).json(),
  }
  for (const [name, body] of Object.entries(causes))
    expect(body, name).toEqual({ issues: [exampleIssue(name as ProblemName)] })
  // These three need a timeout, an outage and a bug (src/http/bodies/body-timeouts.test.ts, deadline.test.ts, should-retry.test.ts).
  const others = ['RequestTimeout', 'ServiceUnavailable', 'InternalServerError']
  expect(provocable.filter(name => !(name in causes))).toEqual(others)
})

async function events(partnerId: string) {
  return await harness.db
    .selectFrom('events')
    .select(['type', 'resourceId', 'sequence'])
    .where('partnerId', '=', partnerId)
    .orderBy('resourceId')
    .orderBy('sequence')
    .execute()
}

async function lastSequences(partnerId: string): Promise<Map<string, number>> {
  return new Map((await events(partnerId)).map(({ resourceId, sequence }) => [resourceId, sequence]))
}

async function transitionsSince(partnerId: string, before: Map<string, number>): Promise<Set<string>> {
  const seen = new Set<string>()
  let from = 'new'
  let last = ''
  for (const { type, resourceId, sequence } of await events(partnerId)) {
    if (resourceId !== last) from = 'new'
    last = resourceId
    const [kind = '', verb = ''] = type.split('.')
    const entity = { intent: 'withdrawal_intent', job: 'member_job' }[kind] ?? kind
    const to = statesByEvent[type] ?? (entity.startsWith('withdrawal') ? verb : undefined)
    if (to === undefined) continue
    if (sequence > (before.get(resourceId) ?? 0)) seen.add(`${entity} ${from} > ${to}`)
    from = to
  }
  return seen
}

test('an unknown code in the header is refused, and a live installation ignores the header', async () => {
  const headers = { 'x-sandbox-provoke': 'Nothing' }
  const refused = await harness.call('GET', '/v1/tiers', { headers })
  expect([refused.status, refused.body.issues[0].path]).toEqual([400, 'x-sandbox-provoke'])
  const live = await startHarness({ mode: 'live' })
  try {
    const answer = await live.call('GET', '/v1/tiers', { headers: { 'x-sandbox-provoke': 'InternalServerError' } })
    expect(answer.status).toBe(200)
  } finally {
    await live.stop()
  }
})

test('withdrawals for these errors are queued by real time, however far ahead the clock is', async () => {
  const { key } = await harness.addPartner('Far ahead')
  await harness.call('POST', '/v1/sandbox/clock', { key, body: { by: 'P30D' } })
  const { rows: before } = await jobs()
  const { status, text } = await harness.call('GET', '/v1/sandbox/test-values', { key })
  expect(status, text).toBe(200)
  const { rows: after } = await jobs()
  const isNew = ({ id }: { id: bigint }) => !before.some(each => each.id === id)
  const tomorrow = harness.clock.now().getTime() + 86_400_000
  expect(after.length).toBeGreaterThan(0)
  expect(after.filter(isNew).filter(({ runAt }) => runAt.getTime() > tomorrow)).toEqual([])
})

async function jobs() {
  return await sql<{ id: bigint; runAt: Date }>`
    select id, run_at from graphile_worker.jobs where task_identifier = 'submit-withdrawals'`.execute(harness.ownerDb)
}
