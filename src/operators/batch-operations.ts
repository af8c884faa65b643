import { Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import { nextQuery, pageQuery, readPage } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { type Audit, named, operationsOn, type Words } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { toWire } from '../kernel/money.ts'
import { described, strictObject } from '../kernel/schemas.ts'
import * as approvals from '../payouts/books/approvals.ts'
import * as batches from '../payouts/books/batches.ts'
import { listBrakes } from '../payouts/books/brakes.ts'
import * as copies from '../payouts/books/copies.ts'
import { closeEarly } from '../payouts/books/early-closing.ts'
import { listProposals, withdrawProposal } from '../payouts/books/proposals.ts'
import * as unsentBatches from '../payouts/books/unsent-batches.ts'
import { fileRailNamed, fileRailsOf, type Rail } from '../payouts/channels/rail.ts'
import { referencePattern } from '../payouts/payments/reference.ts'
import { deciderOf } from './decider.ts'
import type { RailsContext } from './operation-context.ts'
import { ReasonGiven } from './partner-schema.ts'
import { Batch, Batches, BatchStatus, batchView, EarlyClosing, Payments, proposalView } from './payout-schema.ts'
import { brakeView, railName, reasonOf } from './rail-operations.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Payouts', isForOperators: true })

const listPayoutBatches = operation({
  route: 'GET /operator/v1/payout-batches',
  summary: 'List the batches of payments',
  description: 'Newest first.',
  query: strictObject({
    rail: Type.Optional(described(railName, 'Only batches of this rail.')),
    statuses: Type.Optional(
      Type.Array(BatchStatus, { maxItems: 10, description: 'Only batches with these statuses.' }),
    ),
    ...nextQuery('payoutBatch', 'batch'),
  }),
  success: { description: 'One page of batches.', schema: Batches },
  async read(reader, { query, context }) {
    const { rail, statuses, after } = query
    const { rows, hasMore } = await readPage(query, take =>
      batches.list(reader, { rail, statuses, before: after, take }),
    )
    return { body: { batches: rows.map(row => batchView(row, fileRailsOf(context.rails))), hasMore } }
  },
})

const getPayoutBatch = operation({
  route: 'GET /operator/v1/payout-batches/:batchId',
  summary: 'Get a batch of payments',
  success: { description: 'The batch.', schema: Batch },
  async read(reader, { params, context }) {
    return { body: await view(reader, { batchId: params.batchId, rails: context.rails }) }
  },
})

const listBatchPayments = operation({
  route: 'GET /operator/v1/payout-batches/:batchId/payments',
  summary: 'List the payments of a batch',
  description:
    'Lists the payments in the order of the batch’s file, including payments that an operator removed. Shows only the end of a payee’s account number.',
  query: strictObject({
    after: Type.Optional(
      Type.String({
        pattern: `^${referencePattern}$`,
        description: 'The reference of the last payment of this page, to get the next page.',
        examples: ['MMK7Q2MZ4TB5XJ3A'],
      }),
    ),
    take: pageQuery.take,
  }),
  success: { description: 'One page of payments.', schema: Payments },
  async read(reader, { params, query }) {
    const { batchId } = params
    const { after = '' } = query
    const { currency } = await batches.get(reader, batchId)
    const { rows, hasMore } = await readPage(query, take => batches.listPayments(reader, { batchId, after, take }))
    const payments = rows.map(({ netAmount: amount, ...payment }) => ({
      ...payment,
      amount: toWire({ amount, currency }),
    }))
    const details = { count: payments.length }
    const disclosed = { action: 'payout_batch.read', resourceId: batchId, details } as const
    return { body: { payments, hasMore }, disclosed: payments.length === 0 ? undefined : disclosed }
  },
})

const approvePayoutBatch = operation({
  route: 'POST /operator/v1/payout-batches/:batchId/approve',
  summary: 'Approve a batch',
  description: `Needed for batches above the limits for automatic approval, after the cut-off. The batch is sent once ${approvals.approvalsNeeded} people have approved it, either all in the console or all by command. An operator key is refused, because one person can have several; a user counts once.`,
  success: { description: 'The batch.', schema: Batch },
  async write(tx, { operator, params, now, context }) {
    const { batchId } = params
    const by = deciderOf(operator)
    if (by.isKey)
      throw problem(
        'Forbidden',
        'Two people must approve the batch, in the console or by command; an operator key cannot',
      )
    const { hasChanged } = await approvals.approve(tx, { batchId, now, ...by })
    // A repeat by command is also recorded: a command accepts any name, and another spelling of a name may be an attempt to count twice.
    const details = { person: by.person, ...(hasChanged ? {} : { isRepeated: true }) }
    const isRecorded = hasChanged || operator.kind === 'cli'
    const change = { action: 'payout_batch.approve', details } as const
    const audit = isRecorded ? await auditOfBatch(tx, batchId, change) : undefined
    return { body: await view(tx, { batchId, rails: context.rails }), resourceId: batchId, audit }
  },
})

const closePayoutBatch = operation({
  route: 'POST /operator/v1/payout-batches/:batchId/close',
  summary: 'Close a batch before its cut-off',
  description:
    'No payment joins a closed batch; later payments go into another batch. Closing early takes two people: the first request proposes it, and the batch stays open; the same request of another person closes the batch. A batch within the limits is then approved immediately, and any other batch can be approved. The value date does not change. An operator key is refused, because one person can have several.',
  body: EarlyClosing,
  success: { description: 'The batch.', schema: Batch },
  async write(tx, { operator, params, body, now, context }) {
    const { batchId } = params
    const { note } = body
    const rail = fileRailNamed(context.rails, (await batches.get(tx, batchId)).rail)
    const done = await closeEarly(tx, { rail, batchId, by: deciderOf(operator), note, now })
    const details = { person: operator.person, note, ...(done === 'closed' ? {} : { isProposed: true }) }
    const change = { action: 'payout_batch.close', details } as const
    const audit = done === 'repeated' ? undefined : await auditOfBatch(tx, batchId, change)
    return { body: await view(tx, { batchId, rails: context.rails }), resourceId: batchId, audit }
  },
})

const withdrawPayoutBatchClosing = operation({
  route: 'POST /operator/v1/payout-batches/:batchId/withdraw',
  summary: 'Withdraw the proposal to close a batch early',
  description: 'The batch stays open until its cut-off.',
  success: { description: 'The batch.', schema: Batch },
  async write(tx, { operator, params, now, context }) {
    const { batchId } = params
    await batches.lock(tx, batchId)
    const { person } = operator
    const withdrawn = { subject: batchId, person, now }
    const { decision, person: proposedBy } = await withdrawProposal(tx, withdrawn)
    const details = { person, decision, proposedBy }
    const audit = await auditOfBatch(tx, batchId, { action: 'payout_batch.withdraw', details })
    return { body: await view(tx, { batchId, rails: context.rails }), resourceId: batchId, audit }
  },
})

const changeOfHold = (verb: 'hold' | 'release', words: Words) =>
  operation({
    route: `POST /operator/v1/payout-batches/:batchId/${verb}`,
    ...words,
    body: Type.Optional(ReasonGiven),
    success: { description: 'The batch.', schema: Batch },
    async write(tx, { operator: { person }, params: { batchId }, body: { reason = null }, actor, now, context }) {
      const isHeld = verb === 'hold'
      const hasChanged = await unsentBatches.setHeld(tx, { batchId, held: isHeld })
      const body = await view(tx, { batchId, rails: context.rails })
      if (!hasChanged) return { body, resourceId: batchId }
      // A hold is read from the audit log, where this one is not yet.
      const hold = isHeld ? { since: now, by: actor.name, reason } : null
      const change = { action: `payout_batch.${verb}`, details: { person, reason } } as const
      return { body: { ...body, hold }, resourceId: batchId, audit: await auditOfBatch(tx, batchId, change) }
    },
  })

const holdPayoutBatch = changeOfHold('hold', {
  summary: 'Hold an unsent batch',
  description: 'A held batch is not sent until it is released. Idempotent.',
})

const releasePayoutBatch = changeOfHold('release', {
  summary: 'Release a held batch',
  description: 'Idempotent.',
})

/** The batches of payments, and operators' decisions about them before they are sent. */
export const batchOperations = named({
  listPayoutBatches,
  getPayoutBatch,
  listBatchPayments,
  approvePayoutBatch,
  closePayoutBatch,
  withdrawPayoutBatchClosing,
  holdPayoutBatch,
  releasePayoutBatch,
})

async function view(db: Reader, { batchId, rails }: { batchId: string; rails: readonly Rail[] }) {
  const batch = await batches.get(db, batchId)
  const approved = await approvals.listApprovals(db, batchId)
  const [proposal] = await listProposals(db, [batchId])
  return {
    ...batchView(batch, fileRailsOf(rails)),
    proposal: proposalView(proposal),
    approvals: approved,
    approvalsNeeded: approvals.approvalsNeeded,
    copies: (await copies.list(db, batchId)).map(({ kind, person, at }) => ({ kind, person, at })),
    hold: batch.held ? await holdOf(db, batchId) : null,
    brake: batch.status === 'building' ? brakeView((await listBrakes(db, { rail: batch.rail }))[0]) : null,
  }
}

/** Reads from the audit log why a batch is held: the same entry is there for each partner with payments in it. */
async function holdOf(db: Reader, batchId: string) {
  const actions = ['payout_batch.hold', 'payout_batch.release'] as const
  const [entry] = await auditLog.list(db, { filter: { resourceId: batchId, actions }, take: 1 })
  // Held directly in the database.
  if (entry === undefined || entry.action !== actions[0]) return { since: null, by: null, reason: null }
  return { since: entry.at, by: entry.actor, reason: reasonOf(entry.details) }
}

/** The entries of the audit log about a change of a batch: one for each partner that has payments in it. */
export async function auditOfBatch(
  db: Reader,
  batchId: string,
  change: { action: auditLog.Action; details: auditLog.Details },
): Promise<Audit[]> {
  const partnerIds = await batches.listPartners(db, batchId)
  return partnerIds.map(partnerId => ({ ...change, resourceId: batchId, partnerId }))
}
