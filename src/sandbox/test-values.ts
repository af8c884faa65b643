import type { ProblemName } from '../kernel/errors.ts'
import { lowestAmount, type Tier } from '../tiers/rules.ts'
import { type ImportTransition, importTransitions } from './import-transitions.ts'

/** The header that makes a sandbox refuse a request with a problem that nothing in a single request can cause. */
export const provokeHeader = 'x-sandbox-provoke'

/** The problems that the header provokes. */
export const provocable = [
  'RateLimitExceeded',
  'Forbidden',
  'RequestTimeout',
  'PayloadTooLarge',
  'HeadersTooLarge',
  'ServiceUnavailable',
  'InternalServerError',
] as const satisfies ProblemName[]

/** The objects that requests need. Each is created for one request, so that the requests do not depend on each other. */
export const fixtures = {
  nothing: 'nothing',
  member: 'an active member without pay',
  paidMember: 'an active member with pay',
  invitedMember: 'an invited member',
  inactiveMember: 'an inactive member',
  accountlessMember: 'an active member with pay and without a bank account',
  intent: 'a pending intent',
  cancelledIntent: 'a cancelled intent',
  withdrawal: 'a held withdrawal',
  scheduledPayRun: 'a scheduled pay run',
  availablePayRun: 'an available pay run',
  usedKey: 'an idempotency key that was used for another request',
} as const
export type Fixture = keyof typeof fixtures

export type Reaches = { problem: ProblemName } | { entity: Entity; from: string; to: string }
type Entity = 'member' | 'member_job' | 'pay_cycle' | 'pay_run' | 'withdrawal_intent' | 'withdrawal'

/** A text body is sent unchanged; any other body as JSON. */
type ProvokingRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  headers?: Record<string, string> | undefined
  body?: unknown
}

/** @property id of the fixture; for a member that has to be named, `email` is the member's */
export type CreatedFixture = { id: string; email: string }

type Provocation = {
  reaches: Reaches
  needs: Fixture
  note: string
  request: (fixture: CreatedFixture, tier: Tier) => ProvokingRequest
}

const get = (path: string, headers?: Record<string, string>): ProvokingRequest => ({ method: 'GET', path, headers })
const post = (path: string, body?: unknown, headers?: Record<string, string>): ProvokingRequest => ({
  method: 'POST',
  path,
  headers,
  body,
})
const remove = (path: string): ProvokingRequest => ({ method: 'DELETE', path })

const intents = '/v1/pay/withdrawals/intent'
const jobsPath = '/v1/members/jobs'

const intentOf = (memberId: string, tier: Tier, amount: bigint) =>
  post(intents, { memberId, amount: { amount: Number(amount), currency: tier.currency } })
const lowestIntentOf = ({ id }: CreatedFixture, tier: Tier) => intentOf(id, tier, lowestAmount(tier))
const complete = ({ id }: CreatedFixture) => post('/v1/pay/withdrawals/complete', { withdrawalIntentId: id })
const instruct = (name: string) => (withdrawal: CreatedFixture) =>
  post(`/v1/sandbox/withdrawals/${withdrawal.id}/${name}`)
const newMember = (tier: string, email: string) => ({ email, firstName: 'Sam', lastName: 'Okafor', tier })
const payRun = (memberId: string, { currency }: Tier) =>
  post('/v1/pay/run', { payDetails: [{ memberId, money: { amount: 5_000, currency } }] })
const revert = ({ id }: CreatedFixture) => post(`/v1/pay/runs/${id}/revert`)
const moveTo = (next: string) => () => post('/v1/sandbox/clock', { next })

const problem = (problem: ProblemName, needs: Fixture, note: string, request: Provocation['request']): Provocation => ({
  ...{ reaches: { problem }, needs, note, request },
})

const transition = (
  entity: Entity,
  [from, to]: [from: string, to: string],
  needs: Fixture,
  note: string,
  request: Provocation['request'],
): Provocation => ({ reaches: { entity, from, to }, needs, note, request })

const byHeader = provocable.map(name =>
  problem(name, 'nothing', `The header ${provokeHeader} is known only to a sandbox.`, () =>
    get('/v1/tiers', { [provokeHeader]: name }),
  ),
)

const jobs = (Object.entries(importTransitions) as [ImportTransition, string][]).map(([name, note]) => {
  const [from = '', to = ''] = name.split(' > ')
  return transition('member_job', [from, to], 'nothing', note, () => post('/v1/sandbox/members/jobs', { from, to }))
})

/** One row for each problem and for each transition. Rows that move the clock are last. */
export const rows: readonly Provocation[] = [
  problem('ApiKeyRefused', 'nothing', 'This header takes the place of your own.', () =>
    get('/v1/tiers', { 'x-api-key': 'mm_test_wrong' }),
  ),
  problem('SessionRefused', 'nothing', 'No session has this token.', () =>
    get('/v1/me', { authorization: 'Bearer mms_test_wrong' }),
  ),
  ...byHeader,
  problem('UnknownPath', 'nothing', 'There is no such path.', () => get('/v1/nothing')),
  problem('MethodNotAllowed', 'nothing', 'The `allow` header of the response lists the methods.', () =>
    remove('/v1/tiers'),
  ),
  problem('UnsupportedMediaType', 'nothing', 'The body is not JSON.', () =>
    post(intents, 'memberId', { 'content-type': 'text/plain' }),
  ),
  problem('BadRequest', 'nothing', 'The JSON is cut off.', () =>
    post(intents, '{"memberId":', { 'content-type': 'application/json' }),
  ),
  problem('HeaderValidation', 'nothing', 'An idempotency key has at most 1,024 characters.', () =>
    get('/v1/tiers', { 'x-idempotency-key': 'k'.repeat(1_025) }),
  ),
  problem('PathValidation', 'nothing', 'The id of a member begins with mem_.', () => get('/v1/members/w_123')),
  problem('QueryValidation', 'nothing', 'A page has at least one entry.', () => get('/v1/members?take=0')),
  problem('BodyValidation', 'nothing', 'Both fields are missing.', () => post(intents, {})),
  problem('IdempotencyKeyReused', 'usedKey', 'The key was used for another request.', ({ id }) =>
    get('/v1/tiers', { 'x-idempotency-key': id }),
  ),
  problem('Conflict', 'cancelledIntent', 'The intent is cancelled.', complete),
  problem('MemberNotFound', 'nothing', 'There is no such member.', () => get('/v1/pay/members/mem_123/balance')),
  problem('NotFound', 'nothing', 'There is no such withdrawal.', () => get('/v1/pay/withdrawals/w_123')),
  problem('UnprocessableEntity', 'nothing', 'The partner has no tier in this currency.', () =>
    post('/v1/sandbox/float', { amount: { amount: 1, currency: 'VUV' } }),
  ),
  problem('MemberNotEligible', 'invitedMember', 'The member is not active.', lowestIntentOf),
  problem('PayRunMemberNotEligible', 'nothing', 'There is no such member.', (_, tier) => payRun('mem_123', tier)),
  problem('BankAccountInvalid', 'accountlessMember', 'The member has no bank account.', lowestIntentOf),
  problem('AmountBelowLowerLimit', 'paidMember', 'One less than the lower limit.', ({ id }, tier) =>
    intentOf(id, tier, lowestAmount(tier) - 1n),
  ),
  problem('AmountAboveUpperLimit', 'paidMember', 'One more than the upper limit.', ({ id }, tier) =>
    intentOf(id, tier, tier.upperLimit + 1n),
  ),
  problem('MemberInsufficientFunds', 'member', 'The member has no pay.', lowestIntentOf),
  problem('MemberAlreadyInvited', 'member', 'The e-mail belongs to another member.', ({ email }, tier) =>
    post('/v1/members', newMember(tier.name, email)),
  ),
  problem('InvalidAddMemberPayload', 'nothing', 'There is no such tier.', () =>
    post('/v1/members', newMember('No such tier', 'no.such.tier@example.com')),
  ),
  problem('InvalidUpdateMemberPayload', 'member', 'There is no such tier.', ({ id }) => ({
    ...{ method: 'PATCH', path: `/v1/members/${id}`, body: { tier: 'No such tier' } },
  })),
  problem('InvalidRemoveMemberPayload', 'nothing', 'There is no such member.', () =>
    post(jobsPath, { actions: [{ type: 'Offboard', memberId: 'mem_123' }] }),
  ),
  problem('FileContent', 'nothing', 'The second row has no e-mail.', () => ({
    method: 'PUT',
    path: `${jobsPath}/csv`,
    headers: { 'content-type': 'text/csv' },
    body: 'email,first_name,last_name,phone,tier\r\n,Sam,Okafor,,\r\n',
  })),
  transition(
    'member',
    ['new', 'invited'],
    'nothing',
    'If the partner activates members, the member is active immediately.',
    ({ email }, tier) => post('/v1/members', newMember(tier.name, email)),
  ),
  transition('member', ['invited', 'active'], 'invitedMember', 'The member accepts.', ({ id }) =>
    post(`/v1/sandbox/members/${id}/activate`),
  ),
  transition('member', ['invited', 'inactive'], 'invitedMember', 'The member is offboarded.', ({ id }) =>
    remove(`/v1/members/${id}`),
  ),
  transition('member', ['active', 'inactive'], 'member', 'The member is offboarded.', ({ id }) =>
    remove(`/v1/members/${id}`),
  ),
  transition(
    'member',
    ['inactive', 'invited'],
    'inactiveMember',
    'The member is reinstated.',
    ({ id, email }, tier) => ({
      ...{ method: 'PUT', path: `/v1/members/${id}`, body: newMember(tier.name, email) },
    }),
  ),
  ...jobs,
  transition(
    'pay_run',
    ['new', 'Scheduled'],
    'member',
    'Available immediately if the partner has no grace period.',
    ({ id }, tier) => payRun(id, tier),
  ),
  transition('pay_run', ['Scheduled', 'Available'], 'member', 'The pay run has no grace period.', ({ id }, tier) =>
    post(`/v1/sandbox/members/${id}/fund`, { amount: { amount: 5_000, currency: tier.currency } }),
  ),
  transition('pay_run', ['Scheduled', 'Reverted'], 'scheduledPayRun', 'Within its grace period.', revert),
  transition('pay_run', ['Available', 'Reverted'], 'availablePayRun', 'After its grace period.', revert),
  transition('withdrawal_intent', ['new', 'pending'], 'paidMember', 'A quote.', lowestIntentOf),
  transition('withdrawal_intent', ['pending', 'completed'], 'intent', 'The intent becomes a withdrawal.', complete),
  transition('withdrawal_intent', ['pending', 'cancelled'], 'intent', 'Cancelled by the partner.', ({ id }) =>
    remove(`${intents}/${id}`),
  ),
  transition('withdrawal', ['new', 'held'], 'intent', 'Held for as long as the partner’s setting says.', complete),
  transition(
    'withdrawal',
    ['held', 'submitted'],
    'withdrawal',
    'The bank accepts the payment and reports nothing.',
    instruct('submit'),
  ),
  transition('withdrawal', ['held', 'cancelled'], 'withdrawal', 'Cancelled by the partner.', ({ id }) =>
    post(`/v1/pay/withdrawals/${id}/cancel`),
  ),
  transition('withdrawal', ['submitted', 'paid'], 'withdrawal', 'The withdrawal is submitted first.', instruct('pay')),
  transition(
    'withdrawal',
    ['submitted', 'failed'],
    'withdrawal',
    'The withdrawal is submitted first.',
    instruct('fail'),
  ),
  transition(
    'withdrawal',
    ['paid', 'returned'],
    'withdrawal',
    'The withdrawal is submitted and paid first.',
    instruct('return'),
  ),
  transition('withdrawal_intent', ['pending', 'expired'], 'intent', 'Moves the clock.', moveTo('intent_expiry')),
  transition('pay_cycle', ['Open', 'Closed'], 'nothing', 'Moves the clock.', moveTo('cycle_close')),
  transition('pay_cycle', ['new', 'Open'], 'nothing', 'Moves the clock; the next cycle opens.', moveTo('cycle_close')),
]
