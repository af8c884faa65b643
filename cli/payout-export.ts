import { systemClock } from '../src/clock.ts'
import type { Tx } from '../src/database/database.ts'
import { asOption, operator, personOf } from './actor.ts'
import { stateInWords } from './batch-state.ts'
import { PrintingCommand } from './command.ts'
import { openLog } from './log.ts'
import { printResult } from './print.ts'
import { withDatabase } from './with-database.ts'

// Not through the API: the file is written, and recorded as sent, in steps of which none is lost if the command is killed.
export const exportCommand = new PrintingCommand('export')
  .description(
    'Write the file of an approved batch, for a bank that takes files by hand. The batch then counts as sent.',
  )
  .argument('<batch>', 'the batch’s id, bat_…')
  .option('--folder <folder>', 'where to write the file', '.')
  .option(
    '--first-file-not-sent',
    'write the file even if an interrupted export may have written it: you know that the bank does not have it',
  )
  .option('--again', 'write the file of a sent batch once more: you know that the bank does not have it')
  .addOption(asOption())
  .examples('payouts export bat_… --folder /secure/to-the-bank')
  .action(async (batchId: string, given: Given) => {
    const written = await writeFile(batchId, given)
    printResult(given, {
      value: written,
      text: () =>
        [
          written.path ?? 'The bank has answered this batch, so its file was not written again. It counts as sent.',
          ...(written.path !== null && !written.isNew ? ['An earlier export has written this file.'] : []),
          `value date ${written.valueDate}`,
          `SHA-256 ${written.sha256}`,
        ].join('\n'),
    })
  })

type Given = { folder: string; firstFileNotSent?: boolean; again?: boolean; as?: string; json?: boolean }

async function writeFile(batchId: string, { folder, firstFileNotSent = false, again = false, as }: Given) {
  // Loaded here: `--help` must not wait for them.
  const [rails, batches, copies, { isHeld }, { exportAgain, exportBatch }, { fileRailNamed }, audit, { recordAudit }] =
    await Promise.all([
      import('../src/rails.ts'),
      import('../src/payouts/books/batches.ts'),
      import('../src/payouts/books/copies.ts'),
      import('../src/payouts/books/rail-holds.ts'),
      import('../src/payouts/channels/files/export.ts'),
      import('../src/payouts/channels/rail.ts'),
      import('../src/operators/batch-operations.ts'),
      import('../src/http/record-audit.ts'),
    ])
  const now = systemClock()
  const person = personOf(as)
  return await withDatabase(async (db, settings) => {
    const rail = fileRailNamed(await rails.readRails(settings), (await batches.get(db, batchId)).rail)
    const record = async (tx: Tx, { sha256 }: { sha256: string }) => {
      const words = { ...(firstFileNotSent ? { firstFileNotSent } : {}), ...(again ? { again } : {}) }
      const change = { action: 'payout_batch.export', details: { person, sha256, ...words } } as const
      const entries = await audit.auditOfBatch(tx, batchId, change)
      await recordAudit(tx, { audit: entries }, { actor: operator(), partnerId: null, now })
    }
    const context = { db, log: openLog('warn'), now: systemClock }
    const asked = { rail, batchId, folder, person, record }
    if (again) return await exportAgain(context, asked)
    const file = await exportBatch(context, { ...asked, isFirstUnsent: firstFileNotSent })
    if (file !== undefined) return file
    const sent = await copies.list(db, batchId)
    if (sent.length > 0)
      throw new Error(
        `The file has left already: ${copies.inWords(sent)}. If the bank gets it twice, it may pay all members twice; add --again only if the bank does not have it`,
      )
    if (await isHeld(db, rail.name)) throw new Error(`The rail ${rail.name} is held; release it first`)
    const { status, held, closedAt } = await batches.get(db, batchId)
    const state = stateInWords({ status, held, needsApproval: status === 'building' && closedAt !== null })
    throw new Error(`The batch is ${state}; only an approved batch can be exported`)
  })
}
