import { Command } from 'commander'
import { readSettings } from '../src/config.ts'
import { openDatabase } from '../src/main.ts'
import { migrate } from '../src/migrate.ts'
import { openLog } from './log.ts'

export const migrateCommand = new Command('migrate')
  .description('Bring the database schema up to date. Safe to run again, and from several machines at once.')
  .action(async () => {
    const database = await openDatabase(readSettings(process.env), openLog('warn'), { as: 'owner' })
    try {
      const applied = await migrate(database.db, database.pool, database.appRole)
      console.log(applied.length === 0 ? 'The database is up to date already.' : `Applied: ${applied.join(', ')}`)
    } finally {
      await database.close()
    }
  })
