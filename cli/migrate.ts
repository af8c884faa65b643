import { Command } from 'commander'
import { readSettings } from '../src/config.ts'
import { migrateDatabase, openDatabase, warnOfMissingKeys } from '../src/main.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { printResult } from './print.ts'
import { terminal } from './terminal.ts'

export const migrateCommand = new Command('migrate')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('migrate'))
  .action(async options => {
    const log = openLog('warn')
    const database = await openDatabase(readSettings(terminal().env), log, { as: 'owner' })
    try {
      const applied = await migrateDatabase(database)
      await warnOfMissingKeys(database.db, log)
      printResult(options, {
        value: { applied },
        text: () => (applied.length === 0 ? 'The database is already up to date.' : `Applied: ${applied.join(', ')}`),
      })
    } finally {
      await database.close()
    }
  })
