import { Type } from 'typebox'
import { pageQuery, readPage } from '../contract/list.ts'
import { named, operationWith } from '../http/operation.ts'
import { isIdOf } from '../kernel/ids.ts'
import { namedObject, strictObject } from '../kernel/schemas.ts'
import { findPayout } from '../payouts/books/decided-payments.ts'
import { confirmProposal } from '../payouts/books/decisions-of-two.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listOpenProposals, withdrawProposal } from '../payouts/books/proposals.ts'
import { deciderOf } from './decider.ts'
import { OpenProposals } from './payout-schema.ts'

const operation = operationWith({ tag: 'Payouts', isForOperators: true })
const ofSubject = Type.Object({
  subject: Type.String({
    maxLength: 255,
    description: 'The exception, or the reference of the payment, as in the list.',
    examples: ['MMK7Q2MZ4TB5XJ3A'],
  }),
})
const Settled = namedObject('SettledProposal', { subject: Type.String() })

const listPayoutProposals = operation({
  route: 'GET /operator/v1/payout-proposals',
  summary: 'List decisions that wait for a second person',
  description:
    'Decisions about exceptions, and outcomes of payments recorded by hand, ordered by subject. A proposal ends when its exception is closed or its payment is answered. Batches that wait for approval and proposed rules are in their own lists.',
  query: strictObject({
    after: Type.Optional(
      Type.String({
        maxLength: 255,
        description: 'The subject of the last proposal of this page, to get the next page.',
      }),
    ),
    take: pageQuery.take,
  }),
  success: { description: 'One page of proposals.', schema: OpenProposals },
  async read(reader, { query }) {
    const { rows, hasMore } = await readPage(query, take => listOpenProposals(reader, { after: query.after, take }))
    return { body: { proposals: rows.map(({ login: _, ...proposal }) => proposal), hasMore } }
  },
})

const confirmPayoutProposal = operation({
  route: 'POST /operator/v1/payout-proposals/:subject/confirm',
  summary: 'Confirm a proposed decision',
  description:
    'Carries out exactly what another person has proposed. An ended proposal is refused with a 409 that says why. An operator key is refused.',
  params: ofSubject,
  success: { description: 'The decision is carried out.', schema: Settled },
  async write(tx, { operator, params, now }) {
    const { subject } = params
    const { partnerId, decision, ...about } = await confirmProposal(tx, { subject, by: deciderOf(operator), now })
    const details = { person: operator.person, decision, isConfirmed: true }
    const change =
      'exceptionId' in about
        ? ({ action: 'payout_exception.close', resourceId: subject } as const)
        : ({ action: 'payout.outcome', resourceId: about.withdrawalId } as const)
    return { body: { subject }, resourceId: subject, audit: { ...change, details, partnerId } }
  },
})

const withdrawPayoutProposal = operation({
  route: 'POST /operator/v1/payout-proposals/:subject/withdraw',
  summary: 'Withdraw a proposed decision or outcome',
  description: 'Any operator may withdraw a proposal. Another decision can then be proposed.',
  params: ofSubject,
  success: { description: 'The proposal is withdrawn.', schema: Settled },
  async write(tx, { operator, params, now }) {
    const { subject } = params
    const { person } = operator
    const { decision, person: proposedBy } = await withdrawProposal(tx, { subject, person, now })
    const details = { person, decision, proposedBy }
    const response = { body: { subject }, resourceId: subject }
    if (isIdOf('payoutException', subject)) {
      const [exception] = await exceptions.list(tx, { id: subject, take: 1 })
      const partnerId = exception?.partnerId ?? null
      return { ...response, audit: { action: 'payout_exception.withdraw', details, partnerId } }
    }
    const { partnerId, withdrawalId } = await findPayout(tx, subject)
    const change = { action: 'payout.withdraw_outcome', resourceId: withdrawalId } as const
    return { ...response, audit: { ...change, details, partnerId } }
  },
})

/** Decisions about exceptions and payments that wait for a second person. */
export const proposalOperations = named({ listPayoutProposals, confirmPayoutProposal, withdrawPayoutProposal })
