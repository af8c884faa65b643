import { Command } from 'commander'
import { systemClock } from '../src/clock.ts'
import { readSettings } from '../src/config.ts'
import { openRestored, prepare } from '../src/open-database.ts'
import { recordChange } from './actor.ts'
import { instant, timelineNumber } from './backup.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { planAsked } from './plan-restore.ts'
import { printResult } from './print.ts'
import { terminal, writeErrorLine } from './terminal.ts'

export const restoreCommand = new Command('restore')
  .description('Restore the embedded PostgreSQL from its backups, into an empty data folder.')
  .requiredOption('--identity <file>', 'the private key of age that opens the backups, from where you keep it')
  .option('--at <instant>', 'restore what was committed until then; by default all that is archived', instant)
  .option('--backup <id>', 'start from this backup; by default from the last one before the instant')
  .option('--timeline <number>', 'the timeline of the WAL; by default the one that was archived last', timelineNumber)
  .option('--from <folder>', 'the folder of the backups; by default MIDMONTH_BACKUP_DIR')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
The data folder must hold no database, and the installation’s key must be in its place. Afterwards nothing is sent to banks until
midmonth payouts resume.
${examples('restore --identity backup.key', 'restore --identity backup.key --at 2026-03-31T09:55:00Z')}`,
  )
  .action(async ({ identity, at, backup: id, timeline, from, ...options }: Options) => {
    const [{ readRecoveredUntil }, restores] = await Promise.all([
      import('../src/backups/restore.ts'),
      import('../src/payouts/books/restores.ts'),
    ])
    const settings = readSettings(terminal().env)
    const log = openLog('warn')
    const startedAt = performance.now()
    if (settings.DATABASE_URL !== '')
      throw new Error('Only the embedded PostgreSQL is restored by Midmonth; unset DATABASE_URL')
    const plan = await planAsked(settings, {
      ...{ identity, from, backup: id, timeline },
      at: at === undefined ? undefined : new Date(at),
    })
    const { backup } = plan
    writeErrorLine(`restoring the backup ${backup.id} and the WAL after it on timeline ${plan.timeline} …`)
    const { database, restoring } = await openRestored(settings, log, { plan, beside: false }).catch(error => {
      // PostgreSQL's words, in its log.
      if (!/recovery ended before configured recovery target was reached/.test(error.message)) throw error
      throw new Error(`The archive has no commit after ${at}; omit --at to restore all of it`, { cause: error })
    })
    let recoveredUntil: Date | null = null
    try {
      try {
        const { db } = database
        recoveredUntil = await readRecoveredUntil(db)
        await prepare(database, { mayMigrate: true, log: openLog('error'), recoveredUntil })
        await db.transaction().execute(async tx => {
          const now = systemClock()
          // A backup from before the program remembered where the database is.
          if ((await restores.findRestore(tx)) === undefined)
            await restores.recordRestore(tx, { how: 'The database was restored', recoveredUntil, now })
          const change = {
            action: 'backup.restore',
            resourceId: backup.id,
            details: { recoveredUntil: recoveredUntil?.toISOString() ?? null },
          } as const
          await recordChange(tx, { partnerId: null, change, now })
        })
      } finally {
        await database.close()
      }
      restoring.place()
    } catch (error) {
      restoring.remove()
      throw error
    }
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    printResult(options, {
      value: { backup: backup.id, timeline: plan.timeline, recoveredUntil, dataDir: restoring.configuredDir, seconds },
      text: () =>
        [
          `Restored to ${restoring.configuredDir} in ${seconds} s, with what was committed until ${recoveredUntil?.toISOString() ?? backup.endedAt}.`,
          'Now verify the books, and take a backup: midmonth ledger verify --all, midmonth backup take',
          'Nothing is sent to banks until you have compared with them, and run midmonth payouts resume; see docs/operations/backups.md.',
        ].join('\n'),
    })
  })

type Options = { identity: string; at?: string; backup?: string; timeline?: number; from?: string; json?: boolean }
