import { Type } from 'typebox'
import { lastFour } from '../bank-accounts/rules.ts'
import { operation } from '../http/described-route.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, readPrepared, withBatchIdempotency } from '../http/with-idempotency.ts'
import type { ProblemName } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { fromWire, toWire } from '../kernel/money.ts'
import * as members from '../members/members.ts'
import type { MemberSession } from '../partners/member-sessions.ts'
import { readBalance } from './balance.ts'
import type { withdrawalBatches } from './batches.ts'
import { balanceBody, ownDetailsBody } from './bodies.ts'
import type { Completed } from './completions.ts'
import type { Banks } from './facts.ts'
import * as intents from './intents.ts'
import { expectedAt } from './lifecycle.ts'
import type { Intent } from './rules.ts'
import {
  CompleteWithdrawal,
  MemberBalance,
  MemberPage,
  NewOwnWithdrawalIntent,
  OwnWithdrawal,
  OwnWithdrawalIntent,
  refusals,
} from './schema.ts'
import * as withdrawals from './withdrawals.ts'

const tag = 'Member sessions'
// Not `MemberNotFound`, because a session ends with its member.
const ownRefusals: ProblemName[] = refusals.filter(name => name !== 'MemberNotFound')

type Context = ApiContext & { batches: ReturnType<typeof withdrawalBatches>; banks: Banks }

/**
 * The operations for a page in a member's browser. The member comes only from the session: no request names a member, and no
 * response has a whole account number.
 */
export function memberPageRoutes(app: App, context: Context): void {
  const { db, batchDb, batches, banks, bankOf } = context

  app.get(
    '/v1/me',
    {
      config: { session: 'read' },
      schema: operation({
        id: 'getOwnSession',
        tag,
        summary: 'Get the session and its member',
        session: true,
        success: { status: 200, description: 'The session and its member.', schema: MemberPage },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { memberId, scope, expiresAt } = sessionOf(request)
        const { accountDetails, status } = await members.find(reader, { partnerId: request.partner.id, memberId })
        const bankAccount = accountDetails === null ? null : { lastFour: lastFour(accountDetails) }
        const expiresInSeconds = Math.floor((expiresAt.getTime() - request.receivedAt.getTime()) / 1_000)
        const employer = request.partner.name
        return { status: 200, body: { scope, expiresInSeconds, status, employer, bankAccount } }
      }),
  )

  app.get(
    '/v1/me/balance',
    {
      config: { session: 'read' },
      schema: operation({
        id: 'getOwnBalance',
        tag,
        summary: 'Get the member’s own balance',
        session: true,
        success: { status: 200, description: 'The balance in the open pay cycle.', schema: MemberBalance },
        problems: ['UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      readPrepared({ db, batchDb }, request, reply, async reader => {
        const { partner, now } = request
        const { memberId } = sessionOf(request)
        return {
          status: 200,
          body: balanceBody(await readBalance(reader, { partner, memberId, hasRail: banks.hasRail, now })),
        }
      }),
  )

  app.post(
    '/v1/me/withdrawals/intent',
    {
      config: { session: 'withdraw' },
      schema: operation({
        id: 'createOwnWithdrawalIntent',
        tag,
        summary: 'Create the member’s own withdrawal intent',
        description: 'Quotes a withdrawal like `createWithdrawalIntent`.',
        session: true,
        body: NewOwnWithdrawalIntent,
        success: { status: 201, description: 'The quote.', schema: OwnWithdrawalIntent },
        problems: ownRefusals,
      }),
    },
    async (request, reply) =>
      withBatchIdempotency(request, reply, {
        submit(claim) {
          const { partner, now, body } = request
          const { memberId } = sessionOf(request)
          return batches.createIntent({ partner, memberId, amount: fromWire(body.amount), now, claim })
        },
        answerOf: (intent: Intent) => ({
          status: 201,
          body: quoteBody(intent, { holdSeconds: request.partner.holdSeconds, bankOf }),
          resourceId: intent.id,
        }),
      }),
  )

  app.post(
    '/v1/me/withdrawals/complete',
    {
      config: { session: 'withdraw' },
      schema: operation({
        id: 'completeOwnWithdrawal',
        tag,
        summary: 'Complete the member’s own withdrawal',
        description: 'Moves the money like `completeWithdrawal`. Idempotent.',
        session: true,
        body: CompleteWithdrawal,
        success: { status: 201, description: 'The withdrawal.', schema: OwnWithdrawal },
        problems: ['NotFound', ...ownRefusals],
      }),
    },
    async (request, reply) => {
      const { partner, now, clockOffsetMs, body } = request
      const { memberId } = sessionOf(request)
      const intentId = body.withdrawalIntentId
      // The member of an intent never changes, so this need not be in the transaction that completes it.
      await intents.requireOwner(db, { partnerId: partner.id, intentId, memberId })
      return await withBatchIdempotency(request, reply, {
        submit: claim => batches.complete({ partner, intentId, now, clockOffsetMs, wantsDetails: true, claim }),
        answerOf({ withdrawalId, details }: Completed) {
          if (details === undefined) throw new Error(`${withdrawalId} has no details`)
          return {
            status: 201,
            body: ownDetailsBody(details, context),
            resourceId: withdrawalId,
          }
        },
      })
    },
  )

  app.get(
    '/v1/me/withdrawals/:withdrawalId',
    {
      config: { session: 'read' },
      schema: operation({
        id: 'getOwnWithdrawal',
        tag,
        summary: 'Get one of the member’s own withdrawals',
        session: true,
        params: Type.Object({ withdrawalId: Id('withdrawal') }),
        success: { status: 200, description: 'The withdrawal.', schema: OwnWithdrawal },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params } = request
        const { memberId } = sessionOf(request)
        const asked = { partnerId: partner.id, withdrawalId: params.withdrawalId }
        return { status: 200, body: ownDetailsBody(await withdrawals.findOwn(reader, { ...asked, memberId }), context) }
      }),
  )
}

function sessionOf({ memberSession }: { memberSession: MemberSession | undefined }): MemberSession {
  if (memberSession === undefined) throw new Error('The route is not for member sessions')
  return memberSession
}

function quoteBody(
  { id, grossAmount, netAmount, fee, currency, account, createdAt, expiresAt }: Intent,
  { holdSeconds, bankOf }: { holdSeconds: number; bankOf: ApiContext['bankOf'] },
) {
  // If the intent is completed at once.
  const dueAt = new Date(createdAt.getTime() + holdSeconds * 1_000)
  const isSimulated = bankOf(currency) === 'simulated'
  return {
    withdrawalIntentId: id,
    amount: toWire({ amount: grossAmount, currency }),
    netAmount: toWire({ amount: netAmount, currency }),
    fee: toWire({ amount: fee, currency }),
    bankAccount: { lastFour: lastFour(account) },
    expiresAt: expiresAt.toISOString(),
    expectedAt: expectedAt({ status: 'held', dueAt, expectedAt: null }, { isSimulated })?.toISOString() ?? null,
  }
}
