import { copyFileSync, existsSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '../src/clock.ts'
import { readSettings, SettingsProblem } from '../src/config.ts'
import { ago, countOf } from '../src/kernel/text.ts'
import { openRestored, prepare } from '../src/open-database.ts'
import { timelineNumber } from './backup.ts'
import { PrintingCommand } from './command.ts'
import { openLog } from './log.ts'
import { planAsked } from './plan-restore.ts'
import { printResult } from './print.ts'
import { setExitCode, terminal, writeErrorLine } from './terminal.ts'

export const restoreDrill = new PrintingCommand('restore')
  .description(
    'Restore the last backup of the embedded PostgreSQL beside the data folder, verify its books, read the feeds, open stored responses and members’ keys, and say what would be lost and how long it took. Changes nothing but a temporary folder. Exits with code 3 if the books do not agree.',
  )
  .requiredOption('--identity <file>', 'the private key of age that opens the backups, from where you keep it')
  .option('--timeline <number>', 'the timeline of the WAL; by default the one that was archived last', timelineNumber)
  .examples('drill restore --identity backup.key')
  .action(async ({ identity, timeline, ...options }: { identity: string; timeline?: number; json?: boolean }) => {
    const [{ readRecoveredUntil }, { inspectRestored }] = await Promise.all([
      import('../src/backups/restore.ts'),
      import('../src/backups/inspection.ts'),
    ])
    const settings = readSettings(terminal().env)
    if (settings.DATABASE_URL !== '') throw new SettingsProblem('The drill is for the embedded PostgreSQL')
    const startedAt = systemClock()
    const plan = await planAsked(settings, { identity, timeline })
    writeErrorLine(`restoring the backup ${plan.backup.id} and the WAL after it, beside the data …`)
    const log = openLog('error')
    const { database, restoring } = await openRestored(settings, log, { plan, beside: true })
    try {
      const { db } = database
      const recoveredUntil = (await readRecoveredUntil(db)) ?? new Date(plan.backup.endedAt)
      const recoveredIn = secondsSince(startedAt)
      // The drill erases members again, but leaves the journal as it is.
      const journal = path.join(restoring.dataDir, 'erasures.jsonl')
      if (existsSync(database.erasures.journal)) copyFileSync(database.erasures.journal, journal)
      const erasures = { ...database.erasures, journal }
      await prepare({ ...database, erasures }, { mayMigrate: true, log, recoveredUntil })
      writeErrorLine('verifying the books …')
      const found = await inspectRestored(db, { now: systemClock() })
      const seconds = secondsSince(startedAt)
      printResult(options, {
        value: { backup: plan.backup.id, recoveredUntil, at: startedAt, recoveredIn, seconds, ...found },
        text: () =>
          [
            `Restored the backup ${plan.backup.id} of ${plan.backup.endedAt}, with its WAL, in ${recoveredIn} s.`,
            ...found.broken.map(rule => `BROKEN  ${rule}`),
            found.broken.length === 0
              ? `The books agree by ${countOf(found.rules, 'rule')}.`
              : 'The books do not agree.',
            `Read ${countOf(found.events, 'event')} of the feeds, and opened ${countOf(found.replays, 'stored response')} and the keys of ${countOf(found.memberKeys, 'member')}.`,
            `Lost would be what was committed after ${recoveredUntil.toISOString()}, ${ago(recoveredUntil, startedAt)}.`,
            `The whole drill took ${seconds} s.`,
          ].join('\n'),
      })
      if (found.broken.length > 0) setExitCode(3)
    } finally {
      await database.close()
      restoring.remove()
    }
  })

function secondsSince(startedAt: Date): number {
  return Math.round((systemClock().getTime() - startedAt.getTime()) / 1_000)
}
