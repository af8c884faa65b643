import { Type } from 'typebox'
import { mediaTypes } from '../contract/media-types.ts'
import type { Db } from '../database/database.ts'
import { fileHeaders, sendParts } from '../http/bodies/csv.ts'
import { acceptUploads } from '../http/bodies/upload.ts'
import { chunksOf, UploadedFile } from '../http/bodies/uploaded-file.ts'
import { operation } from '../http/described-route.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { withIdempotency, withStartedWork } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { asSentence } from '../kernel/text.ts'
import * as batches from '../payouts/books/batches.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import { limits as bankFileLimits, importBankFile, type RecordImport } from '../payouts/books/import.ts'
import { fileOf, markExported, recordCopy, requireByHand } from '../payouts/channels/files/export.ts'
import { fileRailNamed, type Rail } from '../payouts/channels/rail.ts'
import { recordOnBatch } from './batch-routes.ts'
import { line } from './partner-schema.ts'
import { ExportedFile, ImportedFile, OfBatch } from './payout-schema.ts'
import { railName } from './rail-operations.ts'

const tag = 'Payouts'
const config = { isForOperators: true } as const
const strict = { additionalProperties: false }

/** Files to and from a bank that operators carry by hand. */
export function bankFileRoutes(app: App, { db, log, now }: ApiContext, { rails }: { rails: readonly Rail[] }): void {
  app.post(
    '/operator/v1/payout-batches/:batchId/export',
    {
      config: { ...config, answerMsMax: 60_000 },
      schema: operation({
        id: 'exportPayoutBatch',
        tag,
        summary: 'Export an approved batch',
        description:
          'For a bank that takes files by hand. The file no longer changes and the batch counts as sent; download the file next, and bring it to the bank once.',
        params: OfBatch,
        success: { status: 200, description: 'The file.', schema: ExportedFile },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { batchId } = request.params
      return await withIdempotency(db, request, reply, async tx => {
        const before = await batches.get(tx, batchId)
        const rail = railOf(before.rail)
        requireByHand(rail)
        if (before.sentAt !== null) await fileOf(tx, { rail, batchId })
        const exported = before.sentAt === null ? await markExported(tx, { rail, batchId, now: now() }) : undefined
        const { fileName, fileSha256, valueDate, sentAt } = await batches.get(tx, batchId)
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
    '/operator/v1/payout-batches/:batchId/file',
    {
      config: { ...config, answerMsMax: 60_000 },
      schema: operation({
        id: 'downloadPayoutBatch',
        tag,
        summary: 'Download the file of a batch',
        description:
          'Returns the file of a sent batch, always with the same bytes. A second download, or a download of a file that the worker delivered, needs `again`: a bank that gets a file twice may pay all members twice. The file contains account numbers, so each download is in the audit log.',
        params: OfBatch,
        query: Type.Object(
          {
            again: Type.Optional(
              Type.Boolean({
                description:
                  'Download the file even though it has left before: you know that the bank does not have it.',
              }),
            ),
          },
          strict,
        ),
        success: { status: 200, description: 'The file.', bytes: 'The file as the bank takes it.' },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { batchId } = request.params
      const rail = railOf((await batches.get(db, batchId)).rail)
      const { again: isAgain = false } = request.query
      const { name, sha256, parts } = await fileOf(db, { rail, batchId })
      const { person } = operatorOf(request)
      await db.transaction().execute(async tx => {
        const copy = await recordCopy(tx, { batchId, rail, kind: 'download', person, isAgain, now: request.now })
        await recordOnBatch(tx, request, { action: 'payout_batch.download', details: { person, sha256, copy } })
      })
      return sendParts(request, reply, { headers: fileHeaders(name, mediaTypes.bytes), parts: parts() })
    },
  )

  app.register(async (scope: App) => {
    acceptUploads(scope, { kinds: ['bytes'], fileBytesMax: bankFileLimits.bytesMax })
    scope.post(
      '/operator/v1/rails/:rail/files',
      {
        bodyLimit: bankFileLimits.bytesMax,
        config,
        schema: operation({
          id: 'importBankFile',
          tag,
          summary: 'Import a file of a bank',
          description:
            'Imports all of the file, or nothing. In a statement with several accounts, the accounts of the rail are booked, and the others are skipped and counted. A file with the same bytes is imported once, so a repeat is safe without an idempotency key; it continues an interrupted import.',
          params: Type.Object({ rail: railName }),
          query: Type.Object(
            { name: line(255, { description: 'The name of the file.', examples: ['pain002.xml'] }) },
            strict,
          ),
          bytesBody: {
            name: 'BankFile',
            description: 'The file as the bank gave it, up to 1 GiB, or a ZIP archive of such files, up to 64 MiB.',
          },
          success: { status: 200, description: 'The import.', schema: ImportedFile },
          problems: ['NotFound', 'FileContent'],
        }),
      },
      async (request, reply) => {
        const { rail } = request.params as { rail: string }
        const { name } = request.query as { name: string }
        const { person } = operatorOf(request)
        const asked = { rail: railOf(rail), name, now: request.now }
        const record: RecordImport = async (tx, { fileId, sha256, records, skippedAccounts }) => {
          const details = { person, rail, file: name, sha256, records, skippedAccounts }
          const change = { action: 'bank_file.import', resourceId: fileId, details } as const
          // The file is about the operator's account, not about one partner.
          await recordOperatorChange(tx, request, { partnerId: null, change, now: request.now })
        }
        let imported: Awaited<ReturnType<typeof importUploaded>> | undefined
        return await withStartedWork(db, request, reply, {
          // An import has its own transactions. Started again, it finds the file imported.
          start: async () => async () => {
            imported = await importUploaded(db, request.body, { ...asked, record })
          },
          answer: async () => ({ status: 200, body: imported, resourceId: imported?.fileId ?? null }),
        })
      },
    )
  })

  function railOf(name: string): FileRailSettings {
    return fileRailNamed(rails, name)
  }
}

async function importUploaded(
  db: Db,
  body: unknown,
  asked: { rail: FileRailSettings; name: string; record: RecordImport; now: Date },
) {
  if (!(body instanceof UploadedFile)) throw new Error('The body is not a file')
  const imported = await body.lend(fd => importBankFile(db, { ...asked, size: body.bytes, bytes: () => chunksOf(fd) }))
  if (imported.result !== 'rejected') return imported
  const { problem: reason, line: row } = imported
  const message = `${asSentence(reason)} Nothing of the file was booked.`
  throw row === null
    ? problem('BodyValidation', message, { path: 'body' })
    : problem('FileContent', message, { row: String(row) })
}
