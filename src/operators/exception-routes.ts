import { type Static, Type } from 'typebox'
import { cutPage, pageOf, pageQuery } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { operation } from '../http/described-route.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { fromWire, toWire } from '../kernel/money.ts'
import { readProposals } from '../payouts/books/attachments.ts'
import { decide } from '../payouts/books/decisions-of-two.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listProposals, withdrawProposal } from '../payouts/books/proposals.ts'
import { Closing, Exception, ExceptionDetails, Exceptions, exceptionOnWire, proposalOnWire } from './payout-schema.ts'

const tag = 'Payouts'
const config = { isForOperators: true } as const
const strict = { additionalProperties: false }
const ofException = Type.Object({ exceptionId: Id('payoutException') })

/** Bank answers that did not fit, and operators' decisions about them. */
export function exceptionRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/operator/v1/payout-exceptions',
    {
      config,
      schema: operation({
        id: 'listPayoutExceptions',
        tag,
        summary: 'List bank answers that did not fit',
        description: 'Newest first; without `state`, only open exceptions.',
        query: Type.Object(
          {
            state: Type.Optional(Type.Enum([...exceptions.exceptionStates], { type: 'string', default: 'open' })),
            after: Type.Optional(
              Id('payoutException', 'The id of the last exception of this page, to get the next page.'),
            ),
            take: pageQuery.take,
          },
          strict,
        ),
        success: { status: 200, description: 'One page of exceptions.', schema: Exceptions },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { state = 'open', after } = request.query
        const { take } = pageOf(request.query)
        const found = await exceptions.list(reader, { state, before: after, take: take + 1 })
        const { rows, hasMore } = cutPage(found, { take })
        return { status: 200, body: { exceptions: rows.map(exceptionOnWire), hasMore } }
      }),
  )

  app.get(
    '/operator/v1/payout-exceptions/:exceptionId',
    {
      config,
      schema: operation({
        id: 'getPayoutException',
        tag,
        summary: 'Get a bank answer that did not fit',
        params: ofException,
        success: { status: 200, description: 'The exception.', schema: ExceptionDetails },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const found = await requireException(reader, request.params.exceptionId)
        const { proposals, isBookedElsewhere } = await readProposals(reader, found)
        const proposed = proposals.map(({ netAmount: amount, currency, ...payment }) => ({
          ...payment,
          amount: toWire({ amount, currency }),
        }))
        const [proposal] = await listProposals(reader, [found.id])
        const more = { proposal: proposalOnWire(proposal), proposals: proposed, isBookedElsewhere }
        return { status: 200, body: { ...exceptionOnWire(found), ...more } }
      }),
  )

  app.post(
    '/operator/v1/payout-exceptions/:exceptionId/close',
    {
      config,
      schema: operation({
        id: 'closePayoutException',
        tag,
        summary: 'Close a bank answer that did not fit',
        description:
          '`ignore`: nothing follows. `attach`: the answer is about the payment of `reference`, or the payments of `references`: money that arrived returns it, and money that left pays it. `give_back`: the payment, or each unanswered payment of the batch, was not made, and the members can withdraw again. `book`: the money that arrived or left is a movement of the float of `partnerId`, or pays the settlement of `payCycleId`. `recover`: the bank made the payment, or the payments of the batch, after the money was given back; the members repay, first from their available balance. `write_off`: the operator bears the money that left, and the float lacks it until it is covered. Giving back a batch, `write_off`, a charge that the operator bears, and decisions about payments that two people had to approve take two people: the first request proposes the decision, the exception stays open, and the same request of another person carries it out. An operator key is refused.',
        params: ofException,
        body: Closing,
        success: { status: 200, description: 'The closed exception.', schema: Exception },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { exceptionId } = request.params
        const { note, ...given } = request.body
        const { now } = request
        const { kind, person } = operatorOf(request)
        const decided = await decide(tx, {
          ...{ exceptionId, by: { person, isKey: kind === 'operator_key' }, note, now },
          ...decisionOf(given),
        })
        const { done } = decided
        const details = {
          ...{ person, decision: given.decision, note, reference: given.reference ?? null },
          ...(given.references === undefined ? {} : { references: given.references }),
          ...(given.charge === undefined ? {} : { charge: given.charge }),
          ...(done === 'closed' ? {} : { isProposed: true }),
        }
        const change = { action: 'payout_exception.close', resourceId: exceptionId, details } as const
        // An answer that names no payment belongs to no partner.
        const { partnerId } = decided.exception
        if (done !== 'repeated') await recordOperatorChange(tx, request, { partnerId, change, now })
        const body = exceptionOnWire(await requireException(tx, exceptionId))
        return { status: 200, body, resourceId: exceptionId }
      }),
  )

  app.post(
    '/operator/v1/payout-exceptions/:exceptionId/withdraw',
    {
      config,
      schema: operation({
        id: 'withdrawPayoutDecision',
        tag,
        summary: 'Withdraw a proposed decision',
        description: 'Withdraws a decision that takes two people and that one person has made.',
        params: ofException,
        success: { status: 200, description: 'The exception.', schema: Exception },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { exceptionId } = request.params
        const { now } = request
        const { partnerId, ...found } = await requireException(tx, exceptionId)
        const by = operatorOf(request).person
        const { decision, person } = await withdrawProposal(tx, { subject: exceptionId, person: by, now })
        const details = { person: by, decision, proposedBy: person }
        const change = { action: 'payout_exception.withdraw', resourceId: exceptionId, details } as const
        await recordOperatorChange(tx, request, { partnerId, change, now })
        return {
          status: 200,
          body: exceptionOnWire({ partnerId, ...found, proposedBy: null }),
          resourceId: exceptionId,
        }
      }),
  )
}

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

async function requireException(db: Reader, id: string): Promise<exceptions.Exception> {
  const [found] = await exceptions.list(db, { id, take: 1 })
  if (found === undefined) throw problem('NotFound', `There is no exception ${id}`)
  return found
}
