import { Command } from 'commander'
import { readSettings, SettingsProblem } from '../src/config.ts'
import { connect } from '../src/database/connect.ts'
import { migrate } from '../src/database/migrate.ts'
import type { StepReport } from '../src/database/migration-steps.ts'
import { countConnections, readSchemaState } from '../src/database/migrations.ts'
import { readPlace } from '../src/database/place.ts'
import { type Database, openDatabase, openRestored } from '../src/open-database.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { stepInWords } from './migrate.ts'
import { planAsked } from './plan-restore.ts'
import { printResult, table } from './print.ts'
import { terminal, writeErrorLine } from './terminal.ts'

type Options = { databaseUrl?: string; identity?: string; from?: string; json?: boolean }

export const upgradeCommand = new Command('upgrade')
  .description('Rehearse an upgrade on a copy of the database. See docs/operations/upgrading.md.')
  .requiredOption('--rehearse', 'migrate and contract a copy of the database')
  .option('--database-url <address>', 'the copy, at an address that logs in as its owner')
  .option(
    '--identity <file>',
    'restore the last backup of the embedded server as the copy, with this private key of age',
  )
  .option('--from <folder>', 'the folder of the backups; by default MIDMONTH_BACKUP_DIR')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
Prints the time, the rows and the strongest locks of each step. Refuses what midmonth migrate would refuse.
${examples('upgrade --rehearse --identity backup.key', 'upgrade --rehearse --database-url postgres://midmonth_owner:PASSWORD@HOST/midmonth_copy')}`,
  )
  .action(async (options: Options) => {
    const { database, remove } = await openCopy(options)
    try {
      // A rehearsal on the database itself would be the upgrade.
      const { operations, batches } = database.pools
      if ((await countConnections(database.db)) > operations.totalCount + batches.totalCount)
        throw new SettingsProblem(
          'Processes of Midmonth use the database at --database-url; name a copy that none uses',
        )
      if ((await readSchemaState(database.db)).begun.length > 0 && (await readPlace(database.db))?.isKnown)
        throw new SettingsProblem(
          'The database at --database-url is where Midmonth has served it, so it is not a copy; restore one to another database',
        )
      const owner = connect(database.ownerConnection, { log: openLog('warn'), connectionsMax: 3 })
      const reports: StepReport[] = []
      try {
        await migrate(owner.db, owner.pool, database.appRole, {
          contracts: true,
          onStep: report => {
            reports.push(report)
            writeErrorLine(stepInWords(report))
          },
        })
      } finally {
        await owner.close()
      }
      printResult(options, {
        value: { steps: reports.map(stepOf) },
        text: () => (reports.length === 0 ? 'No step is left: the copy is up to date.' : table(reports.map(stepOf))),
      })
    } finally {
      await database.close()
      remove()
    }
  })

async function openCopy(options: Options): Promise<{ database: Database; remove(): void }> {
  const { databaseUrl, identity, from } = options
  const settings = readSettings(terminal().env)
  const log = openLog('warn')
  if ((databaseUrl === undefined) === (identity === undefined))
    throw new SettingsProblem('Name the copy with --database-url, or the key of its last backup with --identity')
  if (databaseUrl !== undefined) {
    const ofCopy = { ...settings, DATABASE_URL: databaseUrl, DATABASE_OWNER_URL: '' }
    return { database: await openDatabase(ofCopy, log, { as: 'owner', mayCreate: false }), remove: () => undefined }
  }
  const plan = await planAsked(settings, { identity: identity ?? '', from })
  writeErrorLine(`restoring the backup ${plan.backup.id} and the WAL after it …`)
  const { database, restoring } = await openRestored(settings, log, { plan, beside: true })
  return { database, remove: () => restoring.remove() }
}

const msPerMinute = 60_000

function stepOf({ migration, step, ms, rows, locks, lockTimeouts }: StepReport) {
  return {
    ...{ migration, step: step.number, phase: step.phase, kind: step.way.kind },
    ...{ minutes: Math.ceil((ms / msPerMinute) * 100) / 100, rows, locks: locks.join(', '), lockTimeouts },
  }
}
