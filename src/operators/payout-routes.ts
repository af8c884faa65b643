import { type Static, Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import type { Reader, Tx } from '../database/database.ts'
import { type Problem, problem } from '../errors.ts'
import { fileHeaders, sendParts } from '../http/csv.ts'
import { mediaTypes } from '../http/file-kinds.ts'
import { cutPage, pageOf, pageQuery } from '../http/list.ts'
import { operation } from '../http/operation.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server.ts'
import { acceptUploads } from '../http/upload.ts'
import { chunksOf, UploadedFile } from '../http/uploaded-file.ts'
import { read, withIdempotency, withStartedWork } from '../http/with-idempotency.ts'
import { Id } from '../ids.ts'
import { toWire } from '../money.ts'
import * as exceptions from '../payouts/exceptions.ts'
import { readHistory } from '../payouts/history.ts'
import * as batches from '../payouts/rails/file/batches.ts'
import * as decisions from '../payouts/rails/file/decisions.ts'
import { fileOf, markExported } from '../payouts/rails/file/export.ts'
import type { FileRailSettings } from '../payouts/rails/file/format.ts'
import { limits as bankFileLimits, importBankFile, type RecordImport } from '../payouts/rails/file/import.ts'
import { line, ReasonGiven } from './partner-schema.ts'
import {
  Batch,
  Batches,
  BatchStatus,
  batchOnWire,
  Exception,
  Exceptions,
  ExportedFile,
  exceptionOnWire,
  ImportedFile,
  Payments,
  Payout,
  payoutOnWire,
  RemovedPayment,
} from './payout-schema.ts'
import { type RailsOfOperators, railName, reasonOf } from './rail-routes.ts'

const tag = 'Payouts'
const strict = { additionalProperties: false }
const config = { isForOperators: true } as const
const ofBatch = Type.Object({ batchId: Id('payoutBatch') })
const ofPayment = Type.Object({
  payment: Type.String({
    pattern: '^(OW[A-Z2-7]{14}|w_.+)$',
    maxLength: 255,
    description: 'The payment reference, or the withdrawal’s id.',
    examples: ['OWK7Q2MZ4TB5XJ3A'],
  }),
})
const ofException = Type.Object({ exceptionId: Id('payoutException') })

const { take } = pageQuery

export function payoutRoutes(
  app: App,
  { db, log, now }: ApiContext,
  { fileRails }: Pick<RailsOfOperators, 'fileRails'>,
): void {
  app.get(
    '/admin/v1/payout-batches',
    {
      config,
      schema: operation({
        id: 'listPayoutBatches',
        tag,
        summary: 'List the batches of payments',
        description: 'Newest first.',
        query: Type.Object(
          {
            rail: Type.Optional(Type.Unsafe<string>({ ...railName, description: 'Only this rail.' })),
            statuses: Type.Optional(Type.Array(BatchStatus, { maxItems: 10, description: 'Only these statuses.' })),
            after: Type.Optional(Id('payoutBatch', 'The id of the last batch of this page, to get the next page.')),
            take,
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
        return { status: 200, body: { batches: rows.map(batchOnWire), hasMore } }
      }),
  )

  app.get(
    '/admin/v1/payout-batches/:batchId',
    {
      config,
      schema: operation({
        id: 'getPayoutBatch',
        tag,
        summary: 'Get a batch of payments',
        params: ofBatch,
        success: { status: 200, description: 'The batch.', schema: Batch },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({ status: 200, body: await view(reader, request.params.batchId) })),
  )

  app.get(
    '/admin/v1/payout-batches/:batchId/payments',
    {
      config,
      schema: operation({
        id: 'listBatchPayments',
        tag,
        summary: 'List the payments of a batch',
        description: 'In the order of its file, including those that an operator took out.',
        params: ofBatch,
        query: Type.Object(
          {
            after: Type.Optional(
              Type.String({
                pattern: '^OW[A-Z2-7]{14}$',
                description: 'The reference of the last payment of this page, to get the next page.',
                examples: ['OWK7Q2MZ4TB5XJ3A'],
              }),
            ),
            take,
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
        const { currency } = await batches.require(reader, batchId)
        const found = await batches.listPayments(reader, { batchId, after, take: take + 1 })
        const { rows, hasMore } = cutPage(found, { take })
        const payments = rows.map(({ amount, removedAt, ...payment }) => ({
          ...payment,
          amount: toWire({ amount, currency }),
          removedAt: removedAt?.toISOString() ?? null,
        }))
        return { status: 200, body: { payments, hasMore } }
      }),
  )

  app.post(
    '/admin/v1/payout-batches/:batchId/approve',
    {
      config,
      schema: operation({
        id: 'approvePayoutBatch',
        tag,
        summary: 'Approve a batch',
        description: `Needed above the limits for automatic approval, after the cut-off. The batch is sent once ${decisions.approvalsNeeded} people have approved it: users of the console, or all of them by command. An operator key is refused, since one person can have several; a user counts once.`,
        params: ofBatch,
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
            'A person must approve the batch: in the console, or with openwage payouts approve',
          )
        await decisions.approve(tx, { batchId, person, now: request.now })
        await recordOnBatch(tx, request, { action: 'payout_batch.approve', details: { person } })
        return { status: 200, body: await view(tx, batchId), resourceId: batchId }
      }),
  )

  for (const { verb, held, summary, description } of [
    {
      verb: 'hold',
      held: true,
      summary: 'Hold an unsent batch',
      description: 'It is not sent until it is released. Idempotent.',
    },
    { verb: 'release', held: false, summary: 'Release a batch that is held', description: 'Idempotent.' },
  ] as const) {
    app.post(
      `/admin/v1/payout-batches/:batchId/${verb}`,
      {
        config,
        schema: operation({
          id: `${verb}PayoutBatch`,
          tag,
          summary,
          description,
          params: ofBatch,
          body: Type.Optional(ReasonGiven),
          success: { status: 200, description: 'The batch.', schema: Batch },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { batchId } = request.params
          const hasChanged = await decisions.setHeld(tx, { batchId, held })
          const details = { person: operatorOf(request).person, reason: request.body.reason ?? null }
          if (hasChanged) await recordOnBatch(tx, request, { action: `payout_batch.${verb}`, details })
          return { status: 200, body: await view(tx, batchId), resourceId: batchId }
        }),
    )
  }

  app.get(
    '/admin/v1/payouts/:payment',
    {
      config,
      schema: operation({
        id: 'getPayout',
        tag,
        summary: 'Get the payment of a withdrawal',
        description:
          'With its batch, what the bank said about both, and the answers that did not fit. A withdrawal has a payment once it is submitted.',
        params: ofPayment,
        success: { status: 200, description: 'The payment.', schema: Payout },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({
        status: 200,
        body: payoutOnWire(await readHistory(reader, request.params.payment)),
      })),
  )

  app.post(
    '/admin/v1/payouts/:payment/remove',
    {
      config,
      schema: operation({
        id: 'removePayment',
        tag,
        summary: 'Take a payment out of an unsent batch',
        description: 'The withdrawal fails, so the member has the money back.',
        params: ofPayment,
        body: Type.Object(
          { reason: line(140, { description: 'Why; the partner and the member read it.' }) },
          { title: 'PaymentRemoval', ...strict },
        ),
        success: { status: 200, description: 'It was taken out.', schema: RemovedPayment },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { params, body, now } = request
        const removed = await decisions.remove(tx, { payment: params.payment, reason: body.reason, now })
        const { partnerId, batchId, withdrawalId } = removed
        const details = { person: operatorOf(request).person, batchId, reason: body.reason }
        const change = { action: 'payout.remove', resourceId: withdrawalId, details } as const
        await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 200, body: removed, resourceId: withdrawalId }
      }),
  )

  app.post(
    '/admin/v1/payout-batches/:batchId/export',
    {
      config: { ...config, answerMsMax: 60_000 },
      schema: operation({
        id: 'exportPayoutBatch',
        tag,
        summary: 'Export an approved batch',
        description:
          'For a bank that takes files by hand. The file is fixed and the batch counts as sent; download the file next, and bring it to the bank once.',
        params: ofBatch,
        success: { status: 200, description: 'The file.', schema: ExportedFile },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { batchId } = request.params
      return await withIdempotency(db, request, reply, async tx => {
        const before = await batches.require(tx, batchId)
        const rail = railOf(before.rail)
        if (before.sentAt !== null) await fileOf(tx, { rail, batchId })
        const exported = before.sentAt === null ? await markExported(tx, { rail, batchId, now: now() }) : undefined
        const { fileName, fileSha256, valueDate, sentAt } = await batches.require(tx, batchId)
        if (sentAt === null || fileName === null || fileSha256 === null)
          throw problem('Conflict', 'Only an approved batch that is not held can be exported')
        const details = { person: operatorOf(request).person, sha256: fileSha256 }
        if (exported !== undefined) {
          await recordOnBatch(tx, request, { action: 'payout_batch.export', details })
          log.info({ rail: rail.name, batchId, valueDate, sha256: fileSha256 }, 'a batch was exported')
        }
        return { status: 200, body: { name: fileName, sha256: fileSha256, valueDate }, resourceId: batchId }
      })
    },
  )

  app.get(
    '/admin/v1/payout-batches/:batchId/file',
    {
      config: { ...config, answerMsMax: 60_000 },
      schema: operation({
        id: 'downloadPayoutBatch',
        tag,
        summary: 'Download the file of a batch',
        description:
          'Of a batch that was exported: always the same bytes. It contains account numbers, so each download is in the audit log.',
        params: ofBatch,
        success: { status: 200, description: 'The file.', bytes: 'The file as the bank takes it.' },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { batchId } = request.params
      const { rail } = await batches.require(db, batchId)
      const { name, sha256, parts } = await fileOf(db, { rail: railOf(rail), batchId })
      const details = { person: operatorOf(request).person, sha256 }
      await db.transaction().execute(tx => recordOnBatch(tx, request, { action: 'payout_batch.download', details }))
      return sendParts(request, reply, { headers: fileHeaders(name, mediaTypes.bytes), parts: parts() })
    },
  )

  app.register(async (scope: App) => {
    acceptUploads(scope, { kinds: ['bytes'], fileBytesMax: bankFileLimits.bytesMax })
    scope.post(
      '/admin/v1/rails/:rail/files',
      {
        bodyLimit: bankFileLimits.bytesMax,
        config,
        schema: operation({
          id: 'importBankFile',
          tag,
          summary: 'Import a file of a bank',
          description:
            'All of it, or nothing. A file with the same bytes is imported once, so a repeat is safe without an idempotency key.',
          params: Type.Object({ rail: railName }),
          query: Type.Object(
            { name: line(255, { description: 'Name of the file.', examples: ['pain002.xml'] }) },
            strict,
          ),
          bytesBody: { name: 'BankFile', description: 'The file as the bank gave it, up to 1 GiB.' },
          success: { status: 200, description: 'It was imported.', schema: ImportedFile },
          problems: ['NotFound', 'FileContent'],
        }),
      },
      async (request, reply) => {
        const { rail } = request.params as { rail: string }
        const { name } = request.query as { name: string }
        const { person } = operatorOf(request)
        const asked = { rail: railOf(rail), name, now: request.now }
        const record: RecordImport = async (tx, { fileId, sha256, records }) => {
          const details = { person, rail, file: name, sha256, records }
          const change = { action: 'bank_file.import', resourceId: fileId, details } as const
          // The file is about the operator's account, not about one partner.
          await recordOperatorChange(tx, request, { partnerId: null, change, now: request.now })
        }
        let imported: Awaited<ReturnType<typeof importUploaded>> | undefined
        return await withStartedWork(db, request, reply, {
          // An import has its own transactions. Started again, it finds the file imported.
          start: async () => async () => {
            imported = await importUploaded(request.body, { ...asked, record })
          },
          answer: async () => ({ status: 200, body: imported, resourceId: imported?.fileId ?? null }),
        })
      },
    )
  })

  app.get(
    '/admin/v1/payout-exceptions',
    {
      config,
      schema: operation({
        id: 'listPayoutExceptions',
        tag,
        summary: 'List bank answers that did not fit',
        description: 'Newest first; without `state`, only those that are open.',
        query: Type.Object(
          {
            state: Type.Optional(Type.Enum([...exceptions.exceptionStates], { type: 'string', default: 'open' })),
            after: Type.Optional(
              Id('payoutException', 'The id of the last exception of this page, to get the next page.'),
            ),
            take,
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
    '/admin/v1/payout-exceptions/:exceptionId',
    {
      config,
      schema: operation({
        id: 'getPayoutException',
        tag,
        summary: 'Get a bank answer that did not fit',
        params: ofException,
        success: { status: 200, description: 'The exception.', schema: Exception },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({
        status: 200,
        body: exceptionOnWire(await requireException(reader, request.params.exceptionId)),
      })),
  )

  app.post(
    '/admin/v1/payout-exceptions/:exceptionId/close',
    {
      config,
      schema: operation({
        id: 'closePayoutException',
        tag,
        summary: 'Close a bank answer that did not fit',
        description:
          '`ignore`: nothing follows. `attach`: the answer is about the payment of `reference`. `give_back`: the payment, or each unanswered payment of the batch, was not made, and the members can withdraw again. `book`: the money that arrived or left is a movement of the float of `partnerId`, or pays the settlement of `payCycleId`.',
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
        const { person } = operatorOf(request)
        const { partnerId } = await decisions.closeException(tx, {
          exceptionId,
          person,
          note,
          now,
          ...decisionOf(given),
        })
        const details = { person, decision: given.decision, note, reference: given.reference ?? null }
        const change = { action: 'payout_exception.close', resourceId: exceptionId, details } as const
        // An answer that names no payment belongs to no partner.
        await recordOperatorChange(tx, request, { partnerId, change, now })
        const body = exceptionOnWire(await requireException(tx, exceptionId))
        return { status: 200, body, resourceId: exceptionId }
      }),
  )

  async function importUploaded(
    body: unknown,
    asked: { rail: FileRailSettings; name: string; record: RecordImport; now: Date },
  ) {
    if (!(body instanceof UploadedFile)) throw new Error('The body is no file')
    const imported = await body.lend(fd =>
      importBankFile(db, { ...asked, size: body.bytes, bytes: () => chunksOf(fd) }),
    )
    if (imported.result !== 'rejected') return imported
    const { problem: reason, line: row } = imported
    throw row === null ? notImported(reason) : problem('FileContent', reason, { row: String(row) })
  }

  /** @throws Problem `NotFound` */
  function railOf(name: string): FileRailSettings {
    const rail = fileRails.find(each => each.name === name)
    if (rail === undefined) throw problem('NotFound', `There is no rail of files ${name}; list the rails`)
    return rail
  }
}

const Closing = Type.Object(
  {
    decision: Type.Enum(['ignore', 'attach', 'give_back', 'book'], { type: 'string' }),
    note: line(500, { description: 'Why.', examples: ['bank charges'] }),
    reference: Type.Optional(
      line(140, {
        description:
          'With `attach`: the payment reference or the withdrawal’s id. With `book`: that of the movement, by default the one recorded for the entry.',
      }),
    ),
    partnerId: Type.Optional(Id('partner', 'With `book`: whose float.')),
    payCycleId: Type.Optional(Id('payCycle', 'With `book`: the pay cycle whose settlement the money pays.')),
  },
  { title: 'ExceptionClosing', ...strict },
)

/** @throws Problem `BodyValidation` if a field is missing, or does not belong to the decision */
function decisionOf({ decision, reference, partnerId, payCycleId }: Omit<Static<typeof Closing>, 'note'>) {
  const given = { reference, partnerId, payCycleId }
  const allowed: (keyof typeof given)[] =
    decision === 'attach' ? ['reference'] : decision === 'book' ? ['reference', 'partnerId', 'payCycleId'] : []
  for (const path of Object.keys(given) as (keyof typeof given)[])
    if (given[path] !== undefined && !allowed.includes(path))
      throw problem('BodyValidation', `${path} does not belong to ${decision}`, { path })
  const required = <T>(path: string, value: T | undefined): T => {
    if (value === undefined) throw problem('BodyValidation', `${decision} needs ${path}`, { path })
    return value
  }
  if (decision === 'attach') return { decision, reference: required('reference', reference) }
  if (decision !== 'book') return { decision }
  if (payCycleId !== undefined && reference !== undefined) {
    const message = 'Money of a settlement has the reference of its pay cycle; leave reference out'
    throw problem('BodyValidation', message, { path: 'reference' })
  }
  return { decision, partnerId: required('partnerId', partnerId), reference, payCycleId }
}

async function view(db: Reader, batchId: string) {
  const batch = await batches.require(db, batchId)
  const approvals = await decisions.listApprovals(db, batchId)
  return {
    ...batchOnWire(batch),
    approvals: approvals.map(({ person, at }) => ({ person, at: at.toISOString() })),
    approvalsNeeded: decisions.approvalsNeeded,
    hold: batch.held ? await holdOf(db, batchId) : null,
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

async function requireException(db: Reader, id: string): Promise<exceptions.Exception> {
  const [found] = await exceptions.list(db, { id, take: 1 })
  if (found === undefined) throw problem('NotFound', `There is no exception ${id}`)
  return found
}

/** Records a change of a batch for each partner that has payments in it. */
async function recordOnBatch(
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

function notImported(reason: string): Problem {
  return problem('BodyValidation', `${reason} Nothing of the file was booked.`, { path: 'body' })
}
