import type { TaskContext } from '../../../tasks.ts'
import { dayIn } from '../../../time.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { FileRailSettings } from './format.ts'
import { importBankFile } from './import.ts'

/**
 * Imports the files in the inbox of a rail. It may be killed at any point and run again, also concurrently: a file that was
 * imported but not moved is recognised by its checksum.
 */
export async function receiveBankFiles({ db, log, now }: TaskContext, rail: FileRailSettings): Promise<void> {
  const delivery = await rail.delivery?.()
  if (delivery === undefined) return
  const { files, skipped } = await delivery.list(now())
  for (const { name, reason } of skipped)
    log.warn({ rail: rail.name, file: name, reason }, 'a file of the inbox is left')
  const failures: unknown[] = []
  for (const { name, size } of files) {
    // One file's failure must not keep the others back.
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
  const imported = await importBankFile(db, { rail, name, size, bytes: () => delivery.get(name), now: now() })
  if (imported.result === 'rejected') {
    const { problem } = imported
    log.error({ rail: rail.name, file: name, problem }, 'a bank file was refused; nothing of it was booked')
    return await delivery.reject(name, `${problem}\nNothing of this file was booked.\n`)
  }
  const { result, records } = imported
  const message = result === 'imported' ? 'a bank file was imported' : 'a bank file had been imported before'
  log.info({ rail: rail.name, file: name, records }, message)
  await delivery.archive(name, dayIn(rail.timeZone, now()))
}
