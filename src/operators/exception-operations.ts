import { type Static, Type } from 'typebox'
import type { Details } from '../audit-log/audit-log.ts'
import { nextQuery, readPage } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { type Disclosed, named, operationWith } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { fromWire, toWire } from '../kernel/money.ts'
import { strictObject, wordOf } from '../kernel/schemas.ts'
import { readProposals } from '../payouts/books/attachments.ts'
import { decide } from '../payouts/books/decisions-of-two.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listProposals, withdrawProposal } from '../payouts/books/proposals.ts'
import { deciderOf } from './decider.ts'
import { Closing, Exception, ExceptionDetails, Exceptions, exceptionView, proposalView } from './payout-schema.ts'

const operation = operationWith({ tag: 'Payouts', isForOperators: true })

const listPayoutExceptions = operation({
  route: 'GET /operator/v1/payout-exceptions',
  summary: 'List bank answers that did not fit',
  description: 'Newest first; without `state`, only open exceptions.',
  query: strictObject({
    state: Type.Optional(wordOf(exceptions.exceptionStates, { default: 'open' })),
    ...nextQuery('payoutException', 'exception'),
  }),
  success: { description: 'One page of exceptions.', schema: Exceptions },
  async read(reader, { query }) {
    const { state = 'open', after } = query
    const { rows, hasMore } = await readPage(query, take => exceptions.list(reader, { state, before: after, take }))
    return {
      body: { exceptions: rows.map(exceptionView), hasMore },
      disclosed: disclosedBy(rows, { resourceId: 'payout_exceptions', filter: { state } }),
    }
  },
})

const getPayoutException = operation({
  route: 'GET /operator/v1/payout-exceptions/:exceptionId',
  summary: 'Get a bank answer that did not fit',
  success: { description: 'The exception.', schema: ExceptionDetails },
  async read(reader, { params }) {
    const found = await requireException(reader, params.exceptionId)
    const { proposals, isBookedElsewhere } = await readProposals(reader, found)
    const proposed = proposals.map(({ netAmount: amount, currency, ...payment }) => ({
      ...payment,
      amount: toWire({ amount, currency }),
    }))
    const [proposal] = await listProposals(reader, [found.id])
    const more = { proposal: proposalView(proposal), proposals: proposed, isBookedElsewhere }
    return {
      body: { ...exceptionView(found), ...more },
      disclosed: disclosedBy([found], { resourceId: found.id, partnerId: found.partnerId }),
    }
  },
})

const closePayoutException = operation({
  route: 'POST /operator/v1/payout-exceptions/:exceptionId/close',
  summary: 'Close a bank answer that did not fit',
  description:
    '`ignore`: nothing follows. `attach`: the answer is about the payment of `reference`, or the payments of `references`: money that arrived returns it, and money that left pays it. `give_back`: the payment, or each unanswered payment of the batch, was not made, and the members can withdraw again. `book`: the money that arrived or left is a movement of the float of `partnerId`, or pays the settlement of `payCycleId`. `recover`: the bank made the payment, or the payments of the batch, after the money was given back; the members repay, first from their available balance. `write_off`: the operator bears the money that left, and the float lacks it until it is covered. Giving back a batch, `write_off`, a charge that the operator bears, and decisions about payments that two people had to approve take two people: the first request proposes the decision, the exception stays open, and the same request of another person carries it out. An operator key is refused.',
  body: Closing,
  success: { description: 'The closed exception.', schema: Exception },
  async write(tx, { operator, params, body, now }) {
    const { exceptionId } = params
    const { note, ...given } = body
    const decided = await decide(tx, { exceptionId, by: deciderOf(operator), note, now, ...decisionOf(given) })
    const { done } = decided
    const details = {
      ...{ person: operator.person, decision: given.decision, note, reference: given.reference ?? null },
      ...(given.references === undefined ? {} : { references: given.references }),
      ...(given.charge === undefined ? {} : { charge: given.charge }),
      ...(done === 'closed' ? {} : { isProposed: true }),
    }
    // An answer that names no payment belongs to no partner.
    const { partnerId } = decided.exception
    const audit = { action: 'payout_exception.close', details, partnerId } as const
    const closed = exceptionView(await requireException(tx, exceptionId))
    return { body: closed, resourceId: exceptionId, audit: done === 'repeated' ? undefined : audit }
  },
})

const withdrawPayoutDecision = operation({
  route: 'POST /operator/v1/payout-exceptions/:exceptionId/withdraw',
  summary: 'Withdraw a proposed decision',
  description: 'Withdraws a decision that takes two people and that one person has made.',
  success: { description: 'The exception.', schema: Exception },
  async write(tx, { operator, params, now }) {
    const { exceptionId } = params
    const { partnerId, ...found } = await requireException(tx, exceptionId)
    const by = operator.person
    const { decision, person } = await withdrawProposal(tx, { subject: exceptionId, person: by, now })
    const details = { person: by, decision, proposedBy: person }
    const audit = { action: 'payout_exception.withdraw', details, partnerId } as const
    return {
      body: exceptionView({ partnerId, ...found, proposedBy: null }),
      resourceId: exceptionId,
      audit,
    }
  },
})

/** Bank answers that did not fit, and operators' decisions about them. */
export const exceptionOperations = named({
  listPayoutExceptions,
  getPayoutException,
  closePayoutException,
  withdrawPayoutDecision,
})

const fieldsOf: Record<Static<typeof Closing>['decision'], readonly string[]> = {
  ignore: [],
  attach: ['reference', 'references', 'charge'],
  give_back: ['references', 'charge'],
  book: ['reference', 'partnerId', 'payCycleId'],
  recover: ['references'],
  write_off: ['references', 'partnerId'],
}

/** @throws Problem `BodyValidation` if a field is missing, or does not belong to the decision */
function decisionOf({
  decision,
  reference,
  partnerId,
  payCycleId,
  references,
  ...rest
}: Omit<Static<typeof Closing>, 'note'>) {
  const given = { reference, partnerId, payCycleId, references, charge: rest.charge }
  for (const path of Object.keys(given) as (keyof typeof given)[])
    if (given[path] !== undefined && !fieldsOf[decision].includes(path))
      throw problem('BodyValidation', `${path} does not belong to ${decision}`, { path })
  const required = <T>(path: string, value: T | undefined): T => {
    if (value === undefined) throw problem('BodyValidation', `${decision} needs ${path}`, { path })
    return value
  }
  const charge = rest.charge && { ...rest.charge, amount: fromWire(rest.charge.amount) }
  if (decision === 'attach' && references !== undefined) {
    for (const [path, value] of Object.entries({ reference, charge }))
      if (value !== undefined)
        throw problem('BodyValidation', `${path} does not go with references; leave it out`, { path })
    return { decision, references }
  }
  if (decision === 'attach') return { decision, reference: required('reference', reference), charge }
  if (decision === 'give_back') return { decision, references, charge }
  if (decision === 'recover') return { decision, references }
  if (decision === 'write_off') return { decision, references, partnerId }
  if (decision === 'ignore') return { decision }
  if (payCycleId !== undefined && reference !== undefined) {
    const message = 'Money of a settlement has the reference of its pay cycle; leave reference out'
    throw problem('BodyValidation', message, { path: 'reference' })
  }
  return { decision, partnerId: required('partnerId', partnerId), reference, payCycleId }
}

/** The trace of exceptions in which the bank says something about the money: it may name people. */
function disclosedBy(
  found: readonly { bankText: string | null }[],
  { resourceId, partnerId = null, filter }: { resourceId: string; partnerId?: string | null; filter?: Details },
): Disclosed | undefined {
  const count = found.filter(({ bankText }) => bankText !== null).length
  if (count === 0) return undefined
  return { action: 'payout_exception.read', resourceId, partnerId, details: { count, filter } }
}

async function requireException(db: Reader, id: string): Promise<exceptions.Exception> {
  const [found] = await exceptions.list(db, { id, take: 1 })
  if (found === undefined) throw problem('NotFound', `There is no exception ${id}`)
  return found
}
