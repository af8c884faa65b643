import { Type } from 'typebox'
import { cutPage, pageOf, pageQuery } from '../contract/list.ts'
import { operation } from '../http/described-route.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { isIdOf } from '../kernel/ids.ts'
import { findPayout } from '../payouts/books/decided-payments.ts'
import { confirmProposal } from '../payouts/books/decisions-of-two.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listOpenProposals, withdrawProposal } from '../payouts/books/proposals.ts'
import { OpenProposals, openProposalOnWire } from './payout-schema.ts'

const tag = 'Payouts'
const config = { isForOperators: true } as const
const strict = { additionalProperties: false }
const ofSubject = Type.Object({
  subject: Type.String({
    maxLength: 255,
    description: 'The exception, or the reference of the payment, as in the list.',
    examples: ['MMK7Q2MZ4TB5XJ3A'],
  }),
})
const Settled = Type.Object({ subject: Type.String() }, { title: 'SettledProposal', ...strict })

/** Decisions about exceptions and payments that wait for a second person. */
export function proposalRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/operator/v1/payout-proposals',
    {
      config,
      schema: operation({
        id: 'listPayoutProposals',
        tag,
        summary: 'List decisions that wait for a second person',
        description:
          'Decisions about exceptions, and outcomes of payments recorded by hand, ordered by subject. A proposal ends when its exception is closed or its payment is answered. Batches that wait for approval and proposed rules are in their own lists.',
        query: Type.Object(
          {
            after: Type.Optional(
              Type.String({
                maxLength: 255,
                description: 'The subject of the last proposal of this page, to get the next page.',
              }),
            ),
            take: pageQuery.take,
          },
          strict,
        ),
        success: { status: 200, description: 'One page of proposals.', schema: OpenProposals },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { take } = pageOf(request.query)
        const found = await listOpenProposals(reader, { after: request.query.after, take: take + 1 })
        const { rows, hasMore } = cutPage(found, { take })
        return { status: 200, body: { proposals: rows.map(openProposalOnWire), hasMore } }
      }),
  )

  app.post(
    '/operator/v1/payout-proposals/:subject/confirm',
    {
      config,
      schema: operation({
        id: 'confirmPayoutProposal',
        tag,
        summary: 'Confirm a proposed decision',
        description:
          'Carries out exactly what another person has proposed. An ended proposal is refused with a 409 that says why. An operator key is refused.',
        params: ofSubject,
        success: { status: 200, description: 'The decision is carried out.', schema: Settled },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { subject } = request.params
        const { now } = request
        const { kind, person } = operatorOf(request)
        const by = { person, isKey: kind === 'operator_key' }
        const { partnerId, decision, ...about } = await confirmProposal(tx, { subject, by, now })
        const details = { person, decision, isConfirmed: true }
        const change =
          'exceptionId' in about
            ? ({ action: 'payout_exception.close', resourceId: subject, details } as const)
            : ({ action: 'payout.outcome', resourceId: about.withdrawalId, details } as const)
        await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 200, body: { subject }, resourceId: subject }
      }),
  )

  app.post(
    '/operator/v1/payout-proposals/:subject/withdraw',
    {
      config,
      schema: operation({
        id: 'withdrawPayoutProposal',
        tag,
        summary: 'Withdraw a proposed decision or outcome',
        description: 'Any operator may withdraw a proposal. Another decision can then be proposed.',
        params: ofSubject,
        success: { status: 200, description: 'The proposal is withdrawn.', schema: Settled },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { subject } = request.params
        const { now } = request
        const { person } = operatorOf(request)
        const { decision, person: proposedBy } = await withdrawProposal(tx, { subject, person, now })
        const details = { person, decision, proposedBy }
        if (isIdOf('payoutException', subject)) {
          const [exception] = await exceptions.list(tx, { id: subject, take: 1 })
          const change = { action: 'payout_exception.withdraw', resourceId: subject, details } as const
          await recordOperatorChange(tx, request, { partnerId: exception?.partnerId ?? null, change, now })
        } else {
          const { partnerId, withdrawalId } = await findPayout(tx, subject)
          const change = { action: 'payout.withdraw_outcome', resourceId: withdrawalId, details } as const
          await recordOperatorChange(tx, request, { partnerId, change, now })
        }
        return { status: 200, body: { subject }, resourceId: subject }
      }),
  )
}
