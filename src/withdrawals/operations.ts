import { type Static, Type } from 'typebox'
import { lastFour } from '../bank-accounts/rules.ts'
import { cursorOf, cutPage, pageOf, pageQuery } from '../contract/list.ts'
import { metadataOperations } from '../http/metadata-operations.ts'
import { batched, type Call, named, operationsOn } from '../http/operation.ts'
import { fromWire, toWire } from '../kernel/money.ts'
import { parseInstant } from '../kernel/time.ts'
import { excludeErasure } from '../members/locks.ts'
import * as members from '../members/members.ts'
import * as metadata from '../metadata/metadata.ts'
import { cancelling, payroll, readers } from '../users/roles.ts'
import { readBalance } from './balance.ts'
import { balanceBody, detailsBody, explanationBody, itemBody } from './bodies.ts'
import type { Completed } from './completions.ts'
import { explain } from './explanation.ts'
import * as intents from './intents.ts'
import type { WithdrawalContext } from './operation-context.ts'
import { type Intent, statusAt } from './rules.ts'
import {
  CompleteWithdrawal,
  IntentExplanation,
  MemberBalance,
  MemberWithdrawals,
  NewWithdrawalIntent,
  refusals,
  WithdrawalCompleted,
  WithdrawalDetails,
  WithdrawalIntent,
  WithdrawalIntentCreated,
  WithdrawalQuery,
  Withdrawals,
  WithdrawalsWithStatus,
} from './schema.ts'
import { sessionOperations } from './session-operations.ts'
import { getMemberSupport } from './support-operations.ts'
import { getWithdrawalTimeline } from './timeline-operations.ts'
import * as withdrawals from './withdrawals.ts'

const tag = 'Withdrawals'
const operation = operationsOn<WithdrawalContext>().operationWith({ tag })

type Quoting = Call<unknown, unknown, Static<typeof NewWithdrawalIntent>, WithdrawalContext>
type Completing = Call<unknown, unknown, Static<typeof CompleteWithdrawal>, WithdrawalContext>

const getMemberBalance = operation({
  route: 'GET /v1/pay/members/:memberId/balance',
  scope: 'pay:read',
  roles: readers,
  sdk: 'members.getBalance',
  summary: 'Get a member’s available balance',
  success: { description: 'The balance in the open pay cycle.', schema: MemberBalance },
  problems: ['UnprocessableEntity'],
  // Called as often as withdrawals are made, and planning its statement costs ten times its execution.
  isPrepared: true,
  async read(reader, { partner, params, now, context }) {
    const { hasRail } = context.banks
    return { body: balanceBody(await readBalance(reader, { partner, memberId: params.memberId, hasRail, now })) }
  },
})

const createWithdrawalIntent = operation({
  route: 'POST /v1/pay/withdrawals/intent',
  scope: 'pay:write',
  roles: 'noLiveUser',
  sdk: 'withdrawals.createIntent',
  summary: 'Create a withdrawal intent',
  description:
    'Quotes a withdrawal: the fee under the member’s tier, the net amount and the destination account. No money is reserved or moved until the intent is completed.',
  body: NewWithdrawalIntent,
  success: {
    status: 201,
    description: 'The quote.',
    schema: WithdrawalIntentCreated,
    headers: {
      'x-intent-expires-at': Type.String({ description: 'When the quote expires (ISO 8601, UTC).' }),
    },
    representation: {
      description: 'the whole intent, as `getWithdrawalIntent` returns it, including its expiry.',
      schema: WithdrawalIntent,
    },
  },
  problems: refusals,
  batch: batched({
    submit: ({ partner, now, body, context }: Quoting, claim) =>
      context.batches.createIntent({ partner, memberId: body.memberId, amount: fromWire(body.amount), now, claim }),
    respond: (intent: Intent, { prefersRepresentation, now, context }) => ({
      body: prefersRepresentation
        ? intentBody({ ...intent, withdrawalId: null }, { metadata: {}, now, context })
        : createdBody(intent),
      headers: { 'x-intent-expires-at': intent.expiresAt.toISOString() },
      resourceId: intent.id,
    }),
  }),
})

const getWithdrawalIntent = operation({
  route: 'GET /v1/pay/withdrawals/intent/:withdrawalIntentId',
  scope: 'pay:read',
  roles: readers,
  sdk: 'withdrawals.getIntent',
  summary: 'Get a withdrawal intent',
  success: { description: 'The intent.', schema: WithdrawalIntent },
  async read(reader, call) {
    const { partner, user, now, params, context } = call
    const intent = await intents.find(reader, { partnerId: partner.id, intentId: params.withdrawalIntentId })
    const found = await metadata.find(reader, { partnerId: partner.id, resourceId: intent.id })
    const disclosed = { action: 'withdrawal_intent.read', resourceId: intent.id, details: { count: 1 } } as const
    return {
      body: intentBody(intent, { metadata: found, now, context }),
      // Users of the console see the account masked.
      disclosed: user === undefined ? disclosed : undefined,
    }
  },
})

const getWithdrawalIntentExplanation = operation({
  route: 'GET /v1/pay/withdrawals/intent/:withdrawalIntentId/explanation',
  scope: 'pay:read',
  roles: readers,
  sdk: 'withdrawals.explainIntent',
  summary: 'Explain a withdrawal intent',
  description:
    'Shows the inputs of the quote and the result of each rule: limits, parts of the fee, who pays it, and the net amount.',
  success: { description: 'The explanation. It never changes.', schema: IntentExplanation },
  async read(reader, call) {
    const { partner, params } = call
    const explanation = await explain(reader, { partnerId: partner.id, intentId: params.withdrawalIntentId })
    return { body: explanationBody(explanation) }
  },
})

const cancelWithdrawalIntent = operation({
  route: 'DELETE /v1/pay/withdrawals/intent/:withdrawalIntentId',
  scope: 'pay:write',
  roles: cancelling,
  sdk: 'withdrawals.cancelIntent',
  summary: 'Cancel a withdrawal intent',
  description:
    'Cancels a pending intent, which can then no longer be completed. Idempotent: cancelling it again returns the same response.',
  success: { description: 'The cancelled intent.', schema: WithdrawalIntent },
  async write(tx, call) {
    const { partner, now, params, context } = call
    const intent = await intents.cancel(tx, { partnerId: partner.id, intentId: params.withdrawalIntentId, now })
    const found = await metadata.find(tx, { partnerId: partner.id, resourceId: intent.id })
    return {
      body: intentBody({ ...intent, withdrawalId: null }, { metadata: found, now, context }),
      resourceId: intent.id,
    }
  },
})

const completeWithdrawal = operation({
  route: 'POST /v1/pay/withdrawals/complete',
  scope: 'pay:write',
  roles: 'noLiveUser',
  sdk: 'withdrawals.complete',
  summary: 'Complete a withdrawal',
  description:
    'Repeats all checks and moves the money. Idempotent: completing the intent again returns the same response and moves nothing.',
  body: CompleteWithdrawal,
  success: {
    status: 201,
    description: 'The money has left the member’s pay.',
    schema: WithdrawalCompleted,
    headers: { location: Type.String({ description: 'Path of the withdrawal.' }) },
    representation: {
      description: 'the whole withdrawal, as `getWithdrawal` returns it.',
      schema: WithdrawalDetails,
    },
  },
  problems: ['NotFound', ...refusals],
  batch: batched({
    submit: ({ partner, now, clockOffsetMs, body, prefersRepresentation, context }: Completing, claim) =>
      context.batches.complete({
        ...{ partner, intentId: body.withdrawalIntentId, now, clockOffsetMs, claim },
        wantsDetails: prefersRepresentation,
      }),
    respond: ({ withdrawalId, details }: Completed, { context }) => ({
      body: details ? detailsBody(details, context) : { message: 'The withdrawal is on its way' },
      headers: { location: `/v1/pay/withdrawals/${withdrawalId}` },
      resourceId: withdrawalId,
    }),
  }),
})

const getWithdrawals = operation({
  route: 'GET /v1/pay/withdrawals',
  scope: 'pay:read',
  roles: readers,
  sdk: 'withdrawals.list',
  summary: 'List withdrawals',
  description:
    'Newest first. Withdrawals that failed, were returned or were cancelled are left out unless `statuses` names them, because the member has the money back. If `after` or `before` is unknown, the response is `NotFound`.',
  query: WithdrawalQuery,
  success: {
    description: 'One page of withdrawals.',
    schema: Withdrawals,
    representation: {
      description: 'each withdrawal with its gross amount, its status, and when and why it entered that status.',
      schema: WithdrawalsWithStatus,
    },
  },
  problems: ['NotFound'],
  async read(reader, call) {
    const { fromDate, toDate, memberId, payCycleId, statuses, metadata: wanted } = call.query
    const page = pageOf(call.query)
    const cursor = cursorOf(call.query)
    const filter = {
      ...(memberId === undefined ? {} : { memberId }),
      ...(payCycleId === undefined ? {} : { payCycleId }),
      ...(fromDate === undefined ? {} : { from: parseInstant(fromDate, { decimals: 'up' }) }),
      ...(toDate === undefined ? {} : { before: parseInstant(toDate, { decimals: 'up' }) }),
      ...(statuses === undefined ? {} : { statuses }),
      ...(wanted === undefined ? {} : { metadata: wanted }),
    }
    const listing = {
      partnerId: call.partner.id,
      filter,
      // One more than asked for, to tell whether there is more.
      page: { skip: page.skip, take: page.take + 1 },
      cursor,
    }
    const bodyOf = (found: object[]) => {
      const { rows, hasMore } = cutPage(found, { take: page.take, cursor })
      return { withdrawals: rows, hasMore, ...page }
    }
    if (!call.prefersRepresentation) {
      return { body: bodyOf((await withdrawals.list(reader, listing)).map(itemBody)) }
    }
    const rows = (await withdrawals.listWithChanges(reader, listing)).map(itemWithStatusBody)
    return { body: bodyOf(rows) }
  },
})

const getWithdrawal = operation({
  route: 'GET /v1/pay/withdrawals/:withdrawalId',
  scope: 'pay:read',
  roles: readers,
  sdk: 'withdrawals.get',
  summary: 'Get a withdrawal',
  success: { description: 'The withdrawal.', schema: WithdrawalDetails },
  async read(reader, call) {
    const { partner, params, context } = call
    const found = await withdrawals.find(reader, { partnerId: partner.id, withdrawalId: params.withdrawalId })
    return { body: detailsBody(found, context) }
  },
})

const cancelWithdrawal = operation({
  route: 'POST /v1/pay/withdrawals/:withdrawalId/cancel',
  scope: 'pay:write',
  roles: cancelling,
  sdk: 'withdrawals.cancel',
  summary: 'Cancel a withdrawal',
  description:
    'Cancels a withdrawal while it is `held`. The member gets the money back at once, including the fee. Idempotent: cancelling it again returns the same response.',
  success: { description: 'The cancelled withdrawal.', schema: WithdrawalDetails },
  problems: ['UnprocessableEntity'],
  async write(tx, call) {
    const { partner, now, params, context } = call
    const { withdrawalId } = params
    const hasChanged = await withdrawals.cancel(tx, { partnerId: partner.id, withdrawalId, now })
    const cancelled = await withdrawals.find(tx, { partnerId: partner.id, withdrawalId })
    const { memberId, grossAmount, currency } = cancelled
    const details = { memberId, amount: toWire({ amount: grossAmount, currency }) }
    const audit = hasChanged ? ({ action: 'withdrawal.cancel', details } as const) : undefined
    return { body: detailsBody(cancelled, context), resourceId: withdrawalId, audit }
  },
})

const getMemberWithdrawals = operation({
  route: 'GET /v1/pay/members/:memberId/withdrawals',
  scope: 'pay:read',
  deprecated: { since: '2026-11-01', sunset: '2027-11-01', successor: '/v1/pay/withdrawals' },
  roles: readers,
  sdk: 'members.listWithdrawals',
  summary: 'List a member’s withdrawals',
  description:
    'Deprecated: use `GET /v1/pay/withdrawals`. Newest first. `amount` is the gross amount: what left the member’s pay, including the fee.',
  query: Type.Object(pageQuery, { additionalProperties: false }),
  success: { description: 'One page of withdrawals.', schema: MemberWithdrawals },
  async read(reader, call) {
    const partnerId = call.partner.id
    const { memberId } = call.params
    const page = pageOf(call.query)
    await members.requireMember(reader, { partnerId, memberId })
    const filter = { memberId }
    const found = await withdrawals.list(reader, { partnerId, filter, page, cursor: undefined })
    const total = await withdrawals.count(reader, { partnerId, filter })
    return { body: { withdrawals: found.map(memberItemBody), ...page, total } }
  },
})

const intentMetadata = metadataOperations({
  kind: 'withdrawal_intent',
  names: { id: 'WithdrawalIntent', summary: 'a withdrawal intent', sdk: { resource: 'withdrawals', of: 'Intent' } },
  tag,
  path: '/v1/pay/withdrawals/intent/:withdrawalIntentId',
  scopes: { read: 'pay:read', write: 'pay:write' },
  roles: { read: readers, write: payroll },
  requireKnown: (reader, { partnerId, resourceId: intentId }) => intents.find(reader, { partnerId, intentId }),
  async lock(tx, { partnerId, resourceId: intentId }) {
    const { memberId } = await intents.find(tx, { partnerId, intentId })
    await excludeErasure(tx, { partnerId, memberId })
  },
})

export const withdrawalOperations = [
  ...intentMetadata,
  ...sessionOperations,
  ...named({
    getMemberSupport,
    getMemberBalance,
    createWithdrawalIntent,
    getWithdrawalIntent,
    getWithdrawalIntentExplanation,
    cancelWithdrawalIntent,
    completeWithdrawal,
    getWithdrawals,
    getWithdrawal,
    getWithdrawalTimeline,
    cancelWithdrawal,
    getMemberWithdrawals,
  }),
]

function intentBody(
  intent: Intent & { withdrawalId: string | null },
  { metadata: found, now, context }: { metadata: metadata.Metadata; now: Date; context: WithdrawalContext },
) {
  const payeeName = context.payeeName(intent.currency, intent.account.accountHolder)
  return { ...intentOnWire(intent, { payeeName, now }), metadata: found }
}

function createdBody({ id, netAmount, fee, currency, account }: Intent) {
  return {
    withdrawalIntentId: id,
    netAmount: toWire({ amount: netAmount, currency }),
    fee: toWire({ amount: fee, currency }),
    accountDetails: account,
    bankAccount: { lastFour: lastFour(account) },
  }
}

function intentOnWire(
  intent: Intent & { withdrawalId: string | null },
  { payeeName, now }: { payeeName: string; now: Date },
) {
  const { id, memberId, payCycleId, grossAmount, netAmount, fee, currency, tier, tierVersion, account } = intent
  return {
    withdrawalIntentId: id,
    memberId,
    payCycleId,
    status: statusAt(intent, now),
    amount: toWire({ amount: grossAmount, currency }),
    netAmount: toWire({ amount: netAmount, currency }),
    fee: toWire({ amount: fee, currency }),
    tier,
    tierVersion,
    accountDetails: account,
    payeeName,
    createdAt: intent.createdAt,
    expiresAt: intent.expiresAt,
    withdrawalId: intent.withdrawalId,
  }
}

function itemWithStatusBody(
  withdrawal: withdrawals.Withdrawal & { changedAt: Date; reason: string | null; metadata: metadata.Metadata },
) {
  const { grossAmount, currency, status, changedAt, reason } = withdrawal
  return {
    ...itemBody(withdrawal),
    amount: toWire({ amount: grossAmount, currency }),
    status,
    changedAt,
    reason,
    metadata: withdrawal.metadata,
  }
}

function memberItemBody({ grossAmount, fee, currency, payCycleId, createdAt }: withdrawals.Withdrawal) {
  return {
    amount: toWire({ amount: grossAmount, currency }),
    fee: toWire({ amount: fee, currency }),
    payCycleId,
    createdAt,
  }
}
