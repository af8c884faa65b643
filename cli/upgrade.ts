import { Command } from 'commander'
import { readSettings, SettingsProblem } from '../src/config.ts'
import { migrate } from '../src/database/migrate.ts'
import type { StepReport } from '../src/database/migration-steps.ts'
import { countPrograms } from '../src/database/migrations.ts'
import { openDatabase } from '../src/main.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { print } from './print.ts'
import { terminal, writeErrorLine } from './terminal.ts'

export const upgradeCommand = new Command('upgrade')
  .requiredOption('--rehearse', 'migrate and contract a copy of the database')
  .requiredOption('--database-url <address>', 'the copy, at an address that logs in as its owner')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `\nPrints the time, the rows and the strongest locks of each step. Refuses what midmonth migrate would refuse.\n${examples('upgrade --rehearse --database-url postgres://midmonth_owner:PASSWORD@HOST/midmonth_copy')}`,
  )
  .action(async ({ databaseUrl, ...options }: { databaseUrl: string; json?: boolean }) => {
    const settings = { ...readSettings(terminal().env), DATABASE_URL: databaseUrl, DATABASE_OWNER_URL: '' }
    const copy = await openDatabase(settings, openLog('warn'), { as: 'owner', mayCreate: false })
    try {
      // A rehearsal on the database itself would be the upgrade.
      if ((await countPrograms(copy.db)) > 0)
        throw new SettingsProblem(
          'Processes of Midmonth use the database at --database-url; name a copy that none uses',
        )
      const reports: StepReport[] = []
      const onStep = (report: StepReport) => {
        reports.push(report)
        writeErrorLine(`${report.migration}, step ${report.step.number} is done`)
      }
      await migrate(copy.db, copy.pool, copy.appRole, { contracts: true, onStep })
      print(reports.map(rowOf), options)
    } finally {
      await copy.close()
    }
  })

const msPerMinute = 60_000

function rowOf({ migration, step, ms, rows, locks, lockTimeouts }: StepReport) {
  return {
    migration,
    step: step.number,
    phase: step.phase,
    kind: step.way.kind,
    minutes: Math.ceil((ms / msPerMinute) * 100) / 100,
    rows,
    locks: locks.join(', '),
    'lock timeouts': lockTimeouts,
  }
}
