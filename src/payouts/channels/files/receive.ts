import { asSentence } from '../../../kernel/text.ts'
import { dayIn } from '../../../kernel/time.ts'
import type { TaskContext } from '../../../worker/task.ts'
import { prepareArchiveKeys, sealFor } from '../../books/archive-keys.ts'
import type { FileRailSettings } from '../../books/file-rail-settings.ts'
import { applyIfFree, importBankFile, listBegun } from '../../books/import.ts'
import type { Delivery } from '../../delivery/delivery.ts'

/**
 * Continues interrupted imports of a rail, then imports the files in its inbox. May be killed at any point and run again, also
 * concurrently: a file that was imported but not moved is recognised by its checksum.
 */
export async function receiveBankFiles({ db, log, now }: TaskContext, rail: FileRailSettings): Promise<void> {
  const failures: unknown[] = []
  await continueImports({ db, log, now }, rail).catch(error => failures.push(error))
  await receiveInbox({ db, log, now }, rail).catch(error => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** Continues imports whose process was killed, including files that an operator uploaded. */
async function continueImports({ db, log, now }: TaskContext, rail: FileRailSettings): Promise<void> {
  for (const { fileId, name } of await listBegun(db, rail.name)) {
    // Another process is importing.
    if (!(await applyIfFree(db, { rail, fileId, now: now() }))) return
    log.info({ rail: rail.name, file: name, fileId }, 'the import of a bank file that had been interrupted is complete')
  }
}

async function receiveInbox({ db, log, now }: TaskContext, rail: FileRailSettings): Promise<void> {
  const delivery = await rail.delivery?.()
  if (delivery === undefined) return
  await prepareArchiveKeys(db, { rail: rail.name, day: dayIn(rail.timeZone, now()) })
  const { files, skipped } = await delivery.list(now())
  for (const { name, reason } of skipped)
    log.warn({ rail: rail.name, file: name, reason }, 'a file of the inbox is left')
  const failures: unknown[] = []
  for (const { name, size } of files) {
    // One file's failure must not delay the others.
    await receiveOne({ db, log, now }, { rail, delivery, name, size }).catch(error => {
      const message = 'a bank file was not imported; it is tried again every minute'
      log.error({ err: error, rail: rail.name, file: name }, message)
      failures.push(error)
    })
  }
  if (failures.length > 0) throw failures[0]
}

async function receiveOne(
  { db, log, now }: TaskContext,
  { rail, delivery, name, size }: { rail: FileRailSettings; delivery: Delivery; name: string; size: number },
): Promise<void> {
  const day = dayIn(rail.timeZone, now())
  const seal = sealFor(db, { rail: rail.name, day })
  const imported = await importBankFile(db, { rail, name, size, bytes: () => delivery.get(name), now: now() })
  if (imported.result === 'rejected') {
    const { problem } = imported
    log.error({ rail: rail.name, file: name, problem }, 'a bank file was refused; nothing of it was booked')
    return await delivery.reject(name, `${asSentence(problem)}\nNothing of this file was booked.\n`, seal)
  }
  const { result, records, skippedAccounts } = imported
  const message = result === 'imported' ? 'a bank file was imported' : 'a bank file had been imported before'
  log.info({ rail: rail.name, file: name, records, skippedAccounts }, message)
  await delivery.archive(name, day, seal)
}
