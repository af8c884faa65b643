import { Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import { cutPage, pageOf, pageQuery } from '../contract/list.ts'
import type { Reader, Tx } from '../database/database.ts'
import { operation } from '../http/described-route.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { toWire } from '../kernel/money.ts'
import * as approvals from '../payouts/books/approvals.ts'
import * as batches from '../payouts/books/batches.ts'
import { listBrakes } from '../payouts/books/brakes.ts'
import * as copies from '../payouts/books/copies.ts'
import { closeEarly } from '../payouts/books/early-closing.ts'
import { listProposals, withdrawProposal } from '../payouts/books/proposals.ts'
import * as unsentBatches from '../payouts/books/unsent-batches.ts'
import { fileRailNamed, fileRailsOf, type Rail } from '../payouts/channels/rail.ts'
import { referencePattern } from '../payouts/payments/reference.ts'
import { ReasonGiven } from './partner-schema.ts'
import {
  Batch,
  Batches,
  BatchStatus,
  batchOnWire,
  EarlyClosing,
  OfBatch,
  Payments,
  proposalOnWire,
} from './payout-schema.ts'
import { brakeView, railName, reasonOf } from './rail-operations.ts'

const tag = 'Payouts'
const config = { isForOperators: true } as const
const strict = { additionalProperties: false }

/** The batches of payments, and operators' decisions about them before they are sent. */
export function batchRoutes(app: App, { db }: ApiContext, { rails }: { rails: readonly Rail[] }): void {
  const view = (reader: Reader, batchId: string) => viewOf(reader, { batchId, rails })

  app.get(
    '/operator/v1/payout-batches',
    {
      config,
      schema: operation({
        id: 'listPayoutBatches',
        tag,
        summary: 'List the batches of payments',
        description: 'Newest first.',
        query: Type.Object(
          {
            rail: Type.Optional(Type.Unsafe<string>({ ...railName, description: 'Only batches of this rail.' })),
            statuses: Type.Optional(
              Type.Array(BatchStatus, { maxItems: 10, description: 'Only batches with these statuses.' }),
            ),
            after: Type.Optional(Id('payoutBatch', 'The id of the last batch of this page, to get the next page.')),
            take: pageQuery.take,
          },
          strict,
        ),
        success: { status: 200, description: 'One page of batches.', schema: Batches },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { rail, statuses, after } = request.query
        const { take } = pageOf(request.query)
        const found = await batches.list(reader, { rail, statuses, before: after, take: take + 1 })
        const { rows, hasMore } = cutPage(found, { take })
        return { status: 200, body: { batches: rows.map(row => batchOnWire(row, fileRailsOf(rails))), hasMore } }
      }),
  )

  app.get(
    '/operator/v1/payout-batches/:batchId',
    {
      config,
      schema: operation({
        id: 'getPayoutBatch',
        tag,
        summary: 'Get a batch of payments',
        params: OfBatch,
        success: { status: 200, description: 'The batch.', schema: Batch },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({ status: 200, body: await view(reader, request.params.batchId) })),
  )

  app.get(
    '/operator/v1/payout-batches/:batchId/payments',
    {
      config,
      schema: operation({
        id: 'listBatchPayments',
        tag,
        summary: 'List the payments of a batch',
        description:
          'Lists the payments in the order of the batch’s file, including payments that an operator removed. Shows only the end of a payee’s account number.',
        params: OfBatch,
        query: Type.Object(
          {
            after: Type.Optional(
              Type.String({
                pattern: `^${referencePattern}$`,
                description: 'The reference of the last payment of this page, to get the next page.',
                examples: ['MMK7Q2MZ4TB5XJ3A'],
              }),
            ),
            take: pageQuery.take,
          },
          strict,
        ),
        success: { status: 200, description: 'One page of payments.', schema: Payments },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { batchId } = request.params
        const { after = '' } = request.query
        const { take } = pageOf(request.query)
        const { currency } = await batches.get(reader, batchId)
        const found = await batches.listPayments(reader, { batchId, after, take: take + 1 })
        const { rows, hasMore } = cutPage(found, { take })
        const payments = rows.map(({ netAmount: amount, removedAt, ...payment }) => ({
          ...payment,
          amount: toWire({ amount, currency }),
          removedAt: removedAt?.toISOString() ?? null,
        }))
        return { status: 200, body: { payments, hasMore } }
      }),
  )

  app.post(
    '/operator/v1/payout-batches/:batchId/approve',
    {
      config,
      schema: operation({
        id: 'approvePayoutBatch',
        tag,
        summary: 'Approve a batch',
        description: `Needed for batches above the limits for automatic approval, after the cut-off. The batch is sent once ${approvals.approvalsNeeded} people have approved it, either all in the console or all by command. An operator key is refused, because one person can have several; a user counts once.`,
        params: OfBatch,
        success: { status: 200, description: 'The batch.', schema: Batch },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { batchId } = request.params
        const { kind, person } = operatorOf(request)
        if (kind === 'operator_key')
          throw problem(
            'Forbidden',
            'A person must approve the batch: in the console, or with midmonth payouts approve',
          )
        const { hasChanged } = await approvals.approve(tx, { batchId, person, now: request.now })
        if (hasChanged) await recordOnBatch(tx, request, { action: 'payout_batch.approve', details: { person } })
        return { status: 200, body: await view(tx, batchId), resourceId: batchId }
      }),
  )

  app.post(
    '/operator/v1/payout-batches/:batchId/close',
    {
      config,
      schema: operation({
        id: 'closePayoutBatch',
        tag,
        summary: 'Close a batch before its cut-off',
        description:
          'No payment joins a closed batch; later payments go into another batch. Closing early takes two people: the first request proposes it, and the batch stays open; the same request of another person closes the batch. A batch within the limits is then approved immediately, and any other batch can be approved. The value date does not change. An operator key is refused, because one person can have several.',
        params: OfBatch,
        body: EarlyClosing,
        success: { status: 200, description: 'The batch.', schema: Batch },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { batchId } = request.params
        const { note } = request.body
        const { kind, person } = operatorOf(request)
        const rail = fileRailNamed(rails, (await batches.get(tx, batchId)).rail)
        const by = { person, isKey: kind === 'operator_key' }
        const done = await closeEarly(tx, { rail, batchId, by, note, now: request.now })
        const details = { person, note, ...(done === 'closed' ? {} : { isProposed: true }) }
        if (done !== 'repeated') await recordOnBatch(tx, request, { action: 'payout_batch.close', details })
        return { status: 200, body: await view(tx, batchId), resourceId: batchId }
      }),
  )

  app.post(
    '/operator/v1/payout-batches/:batchId/withdraw',
    {
      config,
      schema: operation({
        id: 'withdrawPayoutBatchClosing',
        tag,
        summary: 'Withdraw the proposal to close a batch early',
        description: 'The batch stays open until its cut-off.',
        params: OfBatch,
        success: { status: 200, description: 'The batch.', schema: Batch },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { batchId } = request.params
        await batches.lock(tx, batchId)
        const { person } = operatorOf(request)
        const withdrawn = { subject: batchId, person, now: request.now }
        const { decision, person: proposedBy } = await withdrawProposal(tx, withdrawn)
        const details = { person, decision, proposedBy }
        await recordOnBatch(tx, request, { action: 'payout_batch.withdraw', details })
        return { status: 200, body: await view(tx, batchId), resourceId: batchId }
      }),
  )

  for (const { verb, held, summary, description } of [
    {
      verb: 'hold',
      held: true,
      summary: 'Hold an unsent batch',
      description: 'A held batch is not sent until it is released. Idempotent.',
    },
    { verb: 'release', held: false, summary: 'Release a held batch', description: 'Idempotent.' },
  ] as const) {
    app.post(
      `/operator/v1/payout-batches/:batchId/${verb}`,
      {
        config,
        schema: operation({
          id: `${verb}PayoutBatch`,
          tag,
          summary,
          description,
          params: OfBatch,
          body: Type.Optional(ReasonGiven),
          success: { status: 200, description: 'The batch.', schema: Batch },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { batchId } = request.params
          const hasChanged = await unsentBatches.setHeld(tx, { batchId, held })
          const details = { person: operatorOf(request).person, reason: request.body.reason ?? null }
          if (hasChanged) await recordOnBatch(tx, request, { action: `payout_batch.${verb}`, details })
          return { status: 200, body: await view(tx, batchId), resourceId: batchId }
        }),
    )
  }
}

async function viewOf(db: Reader, { batchId, rails }: { batchId: string; rails: readonly Rail[] }) {
  const batch = await batches.get(db, batchId)
  const approved = await approvals.listApprovals(db, batchId)
  const [proposal] = await listProposals(db, [batchId])
  return {
    ...batchOnWire(batch, fileRailsOf(rails)),
    proposal: proposalOnWire(proposal),
    approvals: approved.map(({ person, at }) => ({ person, at: at.toISOString() })),
    approvalsNeeded: approvals.approvalsNeeded,
    copies: (await copies.list(db, batchId)).map(({ kind, person, at }) => ({ kind, person, at: at.toISOString() })),
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
  return { since: entry.at.toISOString(), by: entry.actor, reason: reasonOf(entry.details) }
}

/** Records a change of a batch for each partner that has payments in it. */
export async function recordOnBatch(
  tx: Tx,
  request: Parameters<typeof recordOperatorChange>[1] & { params: { batchId: string } },
  { action, details }: { action: auditLog.Action; details: auditLog.Details },
): Promise<void> {
  const { batchId } = request.params
  for (const partnerId of await batches.listPartners(tx, batchId)) {
    const change = { action, resourceId: batchId, details }
    await recordOperatorChange(tx, request, { partnerId, change, now: request.now })
  }
}
