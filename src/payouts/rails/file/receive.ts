import type { TaskContext } from '../../../tasks.ts'
import { dayIn } from '../../../time.ts'
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
    try {
      const imported = await importBankFile(db, { rail, name, size, bytes: () => delivery.get(name), now: now() })
      if (imported.result === 'rejected') {
        const { problem } = imported
        log.error({ rail: rail.name, file: name, problem }, 'a bank file was refused; nothing of it was booked')
        await delivery.reject(name, `${problem}\nNothing of this file was booked.\n`)
      } else {
        const { result, records } = imported
        log.info(
          { rail: rail.name, file: name, records },
          `a bank file was ${result === 'imported' ? 'imported' : 'there again'}`,
        )
        await delivery.archive(name, dayIn(rail.timeZone, now()))
      }
    } catch (error) {
      // One file's failure must not keep the others back.
      log.error(
        { err: error, rail: rail.name, file: name },
        'a bank file was not imported; it is tried again every minute',
      )
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}
