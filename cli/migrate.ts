import { Command } from 'commander'
import { readSettings } from '../src/config.ts'
import { migrate } from '../src/database/migrate.ts'
import { openDatabase } from '../src/main.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { answer } from './print.ts'

export const migrateCommand = new Command('migrate')
  .description('Bring the database schema up to date. Safe to run again, and from several machines at once.')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('migrate'))
  .action(async options => {
    const database = await openDatabase(readSettings(process.env), openLog('warn'), { as: 'owner' })
    try {
      const applied = await migrate(database.db, database.pool, database.appRole)
      answer(options, {
        value: { applied },
        text: () => (applied.length === 0 ? 'The database is up to date already.' : `Applied: ${applied.join(', ')}`),
      })
    } finally {
      await database.close()
    }
  })
