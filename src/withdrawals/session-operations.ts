import type { Static } from 'typebox'
import { lastFour } from '../bank-accounts/rules.ts'
import { batched, type Call, named, operationsOn } from '../http/operation.ts'
import type { ProblemName } from '../kernel/errors.ts'
import { fromWire, toWire } from '../kernel/money.ts'
import * as members from '../members/members.ts'
import { readBalance } from './balance.ts'
import { balanceBody, ownDetailsBody } from './bodies.ts'
import type { Completed } from './completions.ts'
import * as intents from './intents.ts'
import { expectedAt } from './lifecycle.ts'
import type { WithdrawalContext } from './operation-context.ts'
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

const operation = operationsOn<WithdrawalContext>().operationWith({ tag: 'Member sessions' })

type Quoting = Call<unknown, unknown, Static<typeof NewOwnWithdrawalIntent>, WithdrawalContext>
type Completing = Call<unknown, unknown, Static<typeof CompleteWithdrawal>, WithdrawalContext>

// Not `MemberNotFound`, because a session ends with its member.
const ownRefusals: ProblemName[] = refusals.filter(name => name !== 'MemberNotFound')

const getOwnSession = operation({
  route: 'GET /v1/me',
  session: 'read',
  summary: 'Get the session and its member',
  success: { description: 'The session and its member.', schema: MemberPage },
  async read(reader, call) {
    const { memberId, scope, expiresAt } = call.memberSession
    const { accountDetails, status } = await members.find(reader, { partnerId: call.partner.id, memberId })
    const bankAccount = accountDetails === null ? null : { lastFour: lastFour(accountDetails) }
    const expiresInSeconds = Math.floor((expiresAt.getTime() - call.receivedAt.getTime()) / 1_000)
    const employer = call.partner.name
    return { body: { scope, expiresInSeconds, status, employer, bankAccount } }
  },
})

const getOwnBalance = operation({
  route: 'GET /v1/me/balance',
  session: 'read',
  summary: 'Get the member’s own balance',
  success: { description: 'The balance in the open pay cycle.', schema: MemberBalance },
  problems: ['UnprocessableEntity'],
  isPrepared: true,
  async read(reader, call) {
    const { partner, now } = call
    const { memberId } = call.memberSession
    return {
      body: balanceBody(await readBalance(reader, { partner, memberId, hasRail: call.context.banks.hasRail, now })),
    }
  },
})

const createOwnWithdrawalIntent = operation({
  route: 'POST /v1/me/withdrawals/intent',
  session: 'withdraw',
  summary: 'Create the member’s own withdrawal intent',
  description: 'Quotes a withdrawal like `createWithdrawalIntent`.',
  body: NewOwnWithdrawalIntent,
  success: { status: 201, description: 'The quote.', schema: OwnWithdrawalIntent },
  problems: ownRefusals,
  batch: batched({
    submit: ({ partner, memberSession, now, body, context }: Quoting, claim) =>
      context.batches.createIntent({
        ...{ partner, memberId: memberSession.memberId, now, claim },
        amount: fromWire(body.amount),
      }),
    respond: (intent: Intent, { partner, context }) => ({
      body: quoteBody(intent, { holdSeconds: partner.holdSeconds, bankOf: context.bankOf }),
      resourceId: intent.id,
    }),
  }),
})

const completeOwnWithdrawal = operation({
  route: 'POST /v1/me/withdrawals/complete',
  session: 'withdraw',
  summary: 'Complete the member’s own withdrawal',
  description: 'Moves the money like `completeWithdrawal`. Idempotent.',
  body: CompleteWithdrawal,
  success: { status: 201, description: 'The withdrawal.', schema: OwnWithdrawal },
  problems: ['NotFound', ...ownRefusals],
  batch: batched({
    async submit({ partner, memberSession, now, clockOffsetMs, body, context }: Completing, claim) {
      const intentId = body.withdrawalIntentId
      // The member of an intent never changes, so this need not be in the transaction that completes it.
      await intents.requireOwner(context.db, { partnerId: partner.id, intentId, memberId: memberSession.memberId })
      return await context.batches.complete({ partner, intentId, now, clockOffsetMs, wantsDetails: true, claim })
    },
    respond({ withdrawalId, details }: Completed, { context }) {
      if (details === undefined) throw new Error(`${withdrawalId} has no details`)
      return { body: ownDetailsBody(details, context), resourceId: withdrawalId }
    },
  }),
})

const getOwnWithdrawal = operation({
  route: 'GET /v1/me/withdrawals/:withdrawalId',
  session: 'read',
  summary: 'Get one of the member’s own withdrawals',
  success: { description: 'The withdrawal.', schema: OwnWithdrawal },
  async read(reader, call) {
    const { partner, params } = call
    const { memberId } = call.memberSession
    const asked = { partnerId: partner.id, withdrawalId: params.withdrawalId }
    return { body: ownDetailsBody(await withdrawals.findOwn(reader, { ...asked, memberId }), call.context) }
  },
})

/**
 * The operations for a page in a member's browser. The member comes only from the session: no request names a member, and no
 * response has a whole account number.
 */
export const sessionOperations = named({
  getOwnSession,
  getOwnBalance,
  createOwnWithdrawalIntent,
  completeOwnWithdrawal,
  getOwnWithdrawal,
})

function quoteBody(
  { id, grossAmount, netAmount, fee, currency, account, createdAt, expiresAt }: Intent,
  { holdSeconds, bankOf }: { holdSeconds: number; bankOf: WithdrawalContext['bankOf'] },
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
    expiresAt,
    expectedAt: expectedAt({ status: 'held', dueAt, expectedAt: null }, { isSimulated }),
  }
}
