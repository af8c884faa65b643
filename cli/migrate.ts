import { readSettings } from '../src/config.ts'
import type { Migrated } from '../src/database/migrate.ts'
import type { StepReport } from '../src/database/migration-steps.ts'
import { migrateDatabase, openDatabase, requireMemberKeys, warnOfRestore } from '../src/open-database.ts'
import { PrintingCommand } from './command.ts'
import { openLog } from './log.ts'
import { countOf, printResult } from './print.ts'
import { terminal, writeErrorLine } from './terminal.ts'

export const migrateCommand = new PrintingCommand('migrate')
  .description('Migrate the database schema. Safe to run again, and from several machines at once.')
  .option(
    '--contract',
    'also remove what only older programs need; they must have stopped, and cannot be started again',
  )
  .examples('migrate', 'migrate --contract')
  .action(async ({ contract: contracts = false, ...options }: { contract?: boolean; json?: boolean }) => {
    const log = openLog('warn')
    const database = await openDatabase(readSettings(terminal().env), log, { as: 'owner' })
    try {
      const migrated = await migrateDatabase(database, {
        contracts,
        onStep: report => writeErrorLine(stepInWords(report)),
      })
      await warnOfRestore(database.db, { log })
      await requireMemberKeys(database.db)
      printResult(options, { value: migrated, text: () => resultInWords(migrated) })
    } finally {
      await database.close()
    }
  })

function resultInWords({ applied, contracted, toContract }: Migrated): string {
  const lines = [
    ...(applied.length > 0 ? [`Applied: ${applied.join(', ')}`] : []),
    ...(contracted.length > 0 ? [`Contracted: ${contracted.join(', ')}`] : []),
    ...(toContract.length > 0
      ? [
          `To contract: ${toContract.join(', ')}. Once all processes run this version and you will not go back, run midmonth migrate --contract`,
        ]
      : []),
  ]
  return lines.length === 0 ? 'The database is already up to date.' : lines.join('\n')
}

/** `0002_joined_on, step 3 of expand: back-fill, 1000000 rows in 48.1 s`. */
export function stepInWords({ migration, step, ms, rows, lockTimeouts }: StepReport): string {
  const counted = step.way.kind === 'back-fill' ? `, ${countOf(rows, 'row')}` : ''
  const waits = lockTimeouts === 0 ? '' : `, after ${countOf(lockTimeouts, 'lock timeout')}`
  return `${migration}, step ${step.number}: ${step.phase}, ${step.way.kind}${counted} in ${Math.ceil(ms / 100) / 10} s${waits}`
}
