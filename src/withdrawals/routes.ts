import { Type } from 'typebox'
import { lastFour } from '../bank-accounts/rules.ts'
import { cursorOf, cutPage, pageOf, pageQuery } from '../contract/list.ts'
import { prefersRepresentation, representationApplied } from '../contract/prefer.ts'
import { operation } from '../http/described-route.ts'
import { metadataRoutes } from '../http/metadata.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, readPrepared, withBatchIdempotency, withIdempotency } from '../http/with-idempotency.ts'
import { Id } from '../kernel/ids.ts'
import { type Currency, fromWire, toWire } from '../kernel/money.ts'
import { parseInstant } from '../kernel/time.ts'
import * as members from '../members/members.ts'
import * as metadata from '../metadata/metadata.ts'
import { termsToWire } from '../tiers/rules.ts'
import { readBalance } from './balance.ts'
import { withdrawalBatches } from './batches.ts'
import { balanceBody, detailsBody, itemBody } from './bodies.ts'
import type { Completed } from './completions.ts'
import { type Explanation, explain } from './explanation.ts'
import type { Banks } from './facts.ts'
import * as intents from './intents.ts'
import { memberSupportRoutes } from './member-routes.ts'
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
import { memberPageRoutes } from './session-routes.ts'
import * as withdrawals from './withdrawals.ts'

const tag = 'Withdrawals'
const intentParams = Type.Object({ withdrawalIntentId: Id('withdrawalIntent') })
const withdrawalParams = Type.Object({ withdrawalId: Id('withdrawal') })

/**
 * @param payeeName returns the account holder's name in the form that the bank that pays the currency gets
 * @param accountRefusal why the bank that pays the currency cannot pay to an account; undefined if it can
 */
export function withdrawalRoutes(
  app: App,
  context: ApiContext,
  {
    payeeName,
    accountRefusal,
  }: { payeeName: (currency: Currency, accountHolder: string) => string } & Pick<Banks, 'accountRefusal'>,
): void {
  const intentBody = (intent: Intent & { withdrawalId: string | null }, found: metadata.Metadata, now: Date) => ({
    ...intentOnWire(intent, { payeeName: payeeName(intent.currency, intent.account.accountHolder), now }),
    metadata: found,
  })
  const { db, batchDb, bankOf } = context
  const hasRail = (currency: Currency) => bankOf(currency) !== null
  const banks = { hasRail, accountRefusal }
  const batches = withdrawalBatches({ ...context, banks })
  metadataRoutes(app, context, {
    kind: 'withdrawal_intent',
    names: { id: 'WithdrawalIntent', summary: 'a withdrawal intent' },
    ...{ tag, path: '/v1/pay/withdrawals/intent/:withdrawalIntentId', params: intentParams, problem: 'NotFound' },
    scopes: { read: 'pay:read', write: 'pay:write' },
    idOf: ({ withdrawalIntentId }) => withdrawalIntentId,
    requireKnown: (reader, { partnerId, params: { withdrawalIntentId: intentId } }) =>
      intents.find(reader, { partnerId, intentId }),
  })
  memberPageRoutes(app, { ...context, batches, banks })
  memberSupportRoutes(app, { ...context, banks })

  app.get(
    '/v1/pay/members/:memberId/balance',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getMemberBalance',
        tag,
        summary: 'Get a member’s available balance',
        params: Type.Object({ memberId: Id('member') }),
        success: { status: 200, description: 'The balance in the open pay cycle.', schema: MemberBalance },
        problems: ['MemberNotFound', 'UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      // Called as often as withdrawals are made, and planning its statement costs ten times its execution.
      readPrepared({ db, batchDb }, request, reply, async reader => {
        const { partner, now, params } = request
        return {
          status: 200,
          body: balanceBody(await readBalance(reader, { partner, memberId: params.memberId, hasRail, now })),
        }
      }),
  )

  app.post(
    '/v1/pay/withdrawals/intent',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'createWithdrawalIntent',
        tag,
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
      }),
    },
    async (request, reply) => {
      const isFuller = prefersRepresentation(request)
      return await withBatchIdempotency(request, reply, {
        submit(claim) {
          const { partner, now, body } = request
          return batches.createIntent({ partner, memberId: body.memberId, amount: fromWire(body.amount), now, claim })
        },
        answerOf: (intent: Intent) => ({
          status: 201,
          body: isFuller ? intentBody({ ...intent, withdrawalId: null }, {}, request.now) : createdBody(intent),
          headers: {
            'x-intent-expires-at': intent.expiresAt.toISOString(),
            ...(isFuller ? representationApplied : {}),
          },
          resourceId: intent.id,
        }),
      })
    },
  )

  app.get(
    '/v1/pay/withdrawals/intent/:withdrawalIntentId',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWithdrawalIntent',
        tag,
        summary: 'Get a withdrawal intent',
        params: intentParams,
        success: { status: 200, description: 'The intent.', schema: WithdrawalIntent },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, now, params } = request
        const intent = await intents.find(reader, { partnerId: partner.id, intentId: params.withdrawalIntentId })
        const found = await metadata.find(reader, { partnerId: partner.id, resourceId: intent.id })
        return { status: 200, body: intentBody(intent, found, now) }
      }),
  )

  app.get(
    '/v1/pay/withdrawals/intent/:withdrawalIntentId/explanation',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWithdrawalIntentExplanation',
        tag,
        summary: 'Explain a withdrawal intent',
        description:
          'Shows the inputs of the quote and the result of each rule: limits, parts of the fee, who pays it, and the net amount.',
        params: intentParams,
        success: { status: 200, description: 'The explanation. It never changes.', schema: IntentExplanation },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params } = request
        const explanation = await explain(reader, { partnerId: partner.id, intentId: params.withdrawalIntentId })
        return { status: 200, body: explanationBody(explanation) }
      }),
  )

  app.delete(
    '/v1/pay/withdrawals/intent/:withdrawalIntentId',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'cancelWithdrawalIntent',
        tag,
        summary: 'Cancel a withdrawal intent',
        description:
          'Cancels a pending intent, which can then no longer be completed. Idempotent: cancelling it again returns the same response.',
        params: intentParams,
        success: { status: 200, description: 'The cancelled intent.', schema: WithdrawalIntent },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now, params } = request
        const intent = await intents.cancel(tx, { partnerId: partner.id, intentId: params.withdrawalIntentId, now })
        const found = await metadata.find(tx, { partnerId: partner.id, resourceId: intent.id })
        return { status: 200, body: intentBody({ ...intent, withdrawalId: null }, found, now), resourceId: intent.id }
      }),
  )

  app.post(
    '/v1/pay/withdrawals/complete',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'completeWithdrawal',
        tag,
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
      }),
    },
    async (request, reply) => {
      const wantsDetails = prefersRepresentation(request)
      return await withBatchIdempotency(request, reply, {
        submit(claim) {
          const { partner, now, clockOffsetMs, body } = request
          const intentId = body.withdrawalIntentId
          return batches.complete({ partner, intentId, now, clockOffsetMs, wantsDetails, claim })
        },
        answerOf: ({ withdrawalId, details }: Completed) => ({
          status: 201,
          body: details ? detailsBody(details, context) : { message: 'The withdrawal is on its way' },
          headers: {
            location: `/v1/pay/withdrawals/${withdrawalId}`,
            ...(details ? representationApplied : {}),
          },
          resourceId: withdrawalId,
        }),
      })
    },
  )

  app.get(
    '/v1/pay/withdrawals',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWithdrawals',
        tag,
        summary: 'List withdrawals',
        description:
          'Newest first. Withdrawals that failed, were returned or were cancelled are left out unless `statuses` names them, because the member has the money back. If `after` or `before` is unknown, the response is `NotFound`.',
        query: WithdrawalQuery,
        success: {
          status: 200,
          description: 'One page of withdrawals.',
          schema: Withdrawals,
          representation: {
            description: 'each withdrawal with its gross amount, its status, and when and why it entered that status.',
            schema: WithdrawalsWithStatus,
          },
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { fromDate, toDate, memberId, payCycleId, statuses, metadata: wanted } = request.query
        const page = pageOf(request.query)
        const cursor = cursorOf(request.query)
        const filter = {
          ...(memberId === undefined ? {} : { memberId }),
          ...(payCycleId === undefined ? {} : { payCycleId }),
          ...(fromDate === undefined ? {} : { from: parseInstant(fromDate, { decimals: 'up' }) }),
          ...(toDate === undefined ? {} : { before: parseInstant(toDate, { decimals: 'up' }) }),
          ...(statuses === undefined ? {} : { statuses }),
          ...(wanted === undefined ? {} : { metadata: wanted }),
        }
        const listing = {
          partnerId: request.partner.id,
          filter,
          // One more than asked for, to tell whether there is more.
          page: { skip: page.skip, take: page.take + 1 },
          cursor,
        }
        const bodyOf = (found: object[]) => {
          const { rows, hasMore } = cutPage(found, { take: page.take, cursor })
          return { withdrawals: rows, hasMore, ...page }
        }
        if (!prefersRepresentation(request)) {
          return { status: 200, body: bodyOf((await withdrawals.list(reader, listing)).map(itemBody)) }
        }
        const rows = (await withdrawals.listWithChanges(reader, listing)).map(itemWithStatusBody)
        return { status: 200, body: bodyOf(rows), headers: representationApplied }
      }),
  )

  app.get(
    '/v1/pay/withdrawals/:withdrawalId',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getWithdrawal',
        tag,
        summary: 'Get a withdrawal',
        params: withdrawalParams,
        success: { status: 200, description: 'The withdrawal.', schema: WithdrawalDetails },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params } = request
        const found = await withdrawals.find(reader, { partnerId: partner.id, withdrawalId: params.withdrawalId })
        return { status: 200, body: detailsBody(found, context) }
      }),
  )

  app.post(
    '/v1/pay/withdrawals/:withdrawalId/cancel',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'cancelWithdrawal',
        tag,
        summary: 'Cancel a withdrawal',
        description:
          'Cancels a withdrawal while it is `held`. The member gets the money back at once, including the fee. Idempotent: cancelling it again returns the same response.',
        params: withdrawalParams,
        success: { status: 200, description: 'The cancelled withdrawal.', schema: WithdrawalDetails },
        problems: ['NotFound', 'UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now, params } = request
        const { withdrawalId } = params
        const hasChanged = await withdrawals.cancel(tx, { partnerId: partner.id, withdrawalId, now })
        const cancelled = await withdrawals.find(tx, { partnerId: partner.id, withdrawalId })
        const { memberId, grossAmount, currency } = cancelled
        const details = { memberId, amount: toWire({ amount: grossAmount, currency }) }
        const audit = hasChanged ? ({ action: 'withdrawal.cancel', details } as const) : undefined
        return { status: 200, body: detailsBody(cancelled, context), resourceId: withdrawalId, audit }
      }),
  )

  app.get(
    '/v1/pay/members/:memberId/withdrawals',
    {
      config: {
        scope: 'pay:read',
        deprecated: { since: '2026-11-01', sunset: '2027-11-01', successor: '/v1/pay/withdrawals' },
      },
      schema: operation({
        id: 'getMemberWithdrawals',
        tag,
        summary: 'List a member’s withdrawals',
        description:
          'Deprecated: use `GET /v1/pay/withdrawals`. Newest first. `amount` is the gross amount: what left the member’s pay, including the fee.',
        deprecated: true,
        params: Type.Object({ memberId: Id('member') }),
        query: Type.Object(pageQuery, { additionalProperties: false }),
        success: { status: 200, description: 'One page of withdrawals.', schema: MemberWithdrawals },
        problems: ['MemberNotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const partnerId = request.partner.id
        const { memberId } = request.params
        const page = pageOf(request.query)
        await members.requireMember(reader, { partnerId, memberId })
        const filter = { memberId }
        const found = await withdrawals.list(reader, { partnerId, filter, page, cursor: undefined })
        const total = await withdrawals.count(reader, { partnerId, filter })
        return { status: 200, body: { withdrawals: found.map(memberItemBody), ...page, total } }
      }),
  )
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

function explanationBody({ intent, tier, rules }: Explanation) {
  const { id, memberId, payCycleId, grossAmount, netAmount, fee, employerFee, createdAt } = intent
  const { name, version, currency, since } = tier
  const money = (of: bigint) => toWire({ amount: of, currency })
  return {
    withdrawalIntentId: id,
    inputs: { memberId, payCycleId, amount: money(grossAmount), createdAt: createdAt.toISOString() },
    tier: { name, version, since: since.toISOString(), ...termsToWire(tier, currency) },
    rules: rules.map(({ amount: given, ...rule }) => ({ ...rule, amount: money(given) })),
    result: { fee: money(fee), employerFee: money(employerFee), netAmount: money(netAmount) },
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
    createdAt: intent.createdAt.toISOString(),
    expiresAt: intent.expiresAt.toISOString(),
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
    changedAt: changedAt.toISOString(),
    reason,
    metadata: withdrawal.metadata,
  }
}

function memberItemBody({ grossAmount, fee, currency, payCycleId, createdAt }: withdrawals.Withdrawal) {
  return {
    amount: toWire({ amount: grossAmount, currency }),
    fee: toWire({ amount: fee, currency }),
    payCycleId,
    createdAt: createdAt.toISOString(),
  }
}
