import { Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import { mediaTypes } from '../contract/media-types.ts'
import { fileHeaders } from '../http/bodies/csv.ts'
import { chunksOf } from '../http/bodies/uploaded-file.ts'
import { named, operationsOn } from '../http/operation.ts'
import { recordAudit } from '../http/record-audit.ts'
import { problem } from '../kernel/errors.ts'
import { strictObject } from '../kernel/schemas.ts'
import { asSentence } from '../kernel/text.ts'
import * as batches from '../payouts/books/batches.ts'
import * as bankFiles from '../payouts/books/import.ts'
import { fileOf, markExported, recordCopy, requireByHand } from '../payouts/channels/files/export.ts'
import { fileRailNamed } from '../payouts/channels/rail.ts'
import { auditOfBatch } from './batch-operations.ts'
import type { RailsContext } from './operation-context.ts'
import { line } from './partner-schema.ts'
import { ExportedFile, ImportedFile } from './payout-schema.ts'
import { railName } from './rail-operations.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Payouts', isForOperators: true })

const answerMsMax = 60_000

const exportPayoutBatch = operation({
  route: 'POST /operator/v1/payout-batches/:batchId/export',
  answerMsMax,
  summary: 'Export an approved batch',
  description:
    'For a bank that takes files by hand. The file no longer changes and the batch counts as sent; download the file next, and bring it to the bank once.',
  success: { description: 'The file.', schema: ExportedFile },
  async write(tx, { operator: { person }, params: { batchId }, context }) {
    const before = await batches.get(tx, batchId)
    const rail = fileRailNamed(context.rails, before.rail)
    requireByHand(rail)
    if (before.sentAt !== null) await fileOf(tx, { rail, batchId })
    const exported = before.sentAt === null ? await markExported(tx, { rail, batchId, now: context.now() }) : undefined
    const { fileName: name, fileSha256: sha256, valueDate, sentAt } = await batches.get(tx, batchId)
    if (sentAt === null || name === null || sha256 === null)
      throw problem('Conflict', 'Only an approved batch that is not held can be exported')
    const response = { body: { name, sha256, valueDate }, resourceId: batchId }
    if (exported === undefined) return response
    context.log.info({ rail: rail.name, batchId, valueDate, sha256 }, 'a batch was exported')
    const change = { action: 'payout_batch.export', details: { person, sha256 } } as const
    return { ...response, audit: await auditOfBatch(tx, batchId, change) }
  },
})

const downloadPayoutBatch = operation({
  route: 'GET /operator/v1/payout-batches/:batchId/file',
  answerMsMax,
  summary: 'Download the file of a batch',
  description:
    'Returns the file of a sent batch, always with the same bytes. A second download, or a download of a file that the worker delivered, needs `again`: a bank that gets a file twice may pay all members twice. The file contains account numbers, so each download is in the audit log.',
  query: strictObject({
    again: Type.Optional(
      Type.Boolean({
        description: 'Download the file even though it has left before: you know that the bank does not have it.',
      }),
    ),
  }),
  success: { description: 'The file.', bytes: 'The file as the bank takes it.' },
  async run({ operator: { person }, actor, params, query, now, context: { db, rails } }, { download }) {
    const { batchId } = params
    const { again: isAgain = false } = query
    const rail = fileRailNamed(rails, (await batches.get(db, batchId)).rail)
    const { name, sha256, parts } = await fileOf(db, { rail, batchId })
    await db.transaction().execute(async tx => {
      const copy = await recordCopy(tx, { batchId, rail, kind: 'download', person, isAgain, now })
      const change = { action: 'payout_batch.download', details: { person, sha256, copy } } as const
      await recordAudit(tx, { audit: await auditOfBatch(tx, batchId, change) }, { actor, partnerId: null, now })
    })
    return download({ headers: fileHeaders(name, mediaTypes.bytes), parts: parts() })
  },
})

const importBankFile = operation({
  route: 'POST /operator/v1/rails/:rail/files',
  bodyBytesMax: bankFiles.limits.bytesMax,
  fileBytesMax: bankFiles.limits.bytesMax,
  summary: 'Import a file of a bank',
  description:
    'Imports all of the file, or nothing. In a statement with several accounts, the accounts of the rail are booked, and the others are skipped and counted. A file with the same bytes is imported once, so a repeat is safe without an idempotency key; it continues an interrupted import.',
  params: Type.Object({ rail: railName }),
  query: strictObject({ name: line(255, { description: 'The name of the file.', examples: ['pain002.xml'] }) }),
  bytesBody: {
    name: 'BankFile',
    description: 'The file as the bank gave it, up to 1 GiB, or a ZIP archive of such files, up to 64 MiB.',
  },
  success: { description: 'The import.', schema: ImportedFile },
  problems: ['FileContent'],
  // An import has its own transactions. Started again, it finds the file imported.
  async start(_tx, { operator: { person }, actor, params, query: { name }, file, now, context: { db, rails } }) {
    const rail = fileRailNamed(rails, params.rail)
    const record: bankFiles.RecordImport = async (tx, { fileId, sha256, records, skippedAccounts }) => {
      const details = { person, rail: rail.name, file: name, sha256, records, skippedAccounts }
      const change = { action: 'bank_file.import', resourceId: fileId, details } as const
      // The file is about the operator's account, not about one partner.
      await auditLog.record(tx, { partnerId: null, actor, change, now })
    }
    return async () => {
      const asked = { rail, name, size: file.bytes, record, now }
      const imported = await file.lend(fd => bankFiles.importBankFile(db, { ...asked, bytes: () => chunksOf(fd) }))
      if (imported.result !== 'rejected') return imported
      const message = `${asSentence(imported.problem)} Nothing of the file was booked.`
      throw imported.line === null
        ? problem('BodyValidation', message, { path: 'body' })
        : problem('FileContent', message, { row: String(imported.line) })
    }
  },
  async respond(_tx, _call, imported) {
    return { body: imported, resourceId: imported.fileId }
  },
})

/** Files to and from a bank that operators carry by hand. */
export const bankFileOperations = named({ exportPayoutBatch, downloadPayoutBatch, importBankFile })
