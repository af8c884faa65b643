import { Command, InvalidArgumentError } from 'commander'
import { examples } from './help.ts'
import { addServerOptions, withOperators } from './operator-client.ts'
import { printResult } from './print.ts'

const operations = () => import('../src/operators/installation-operations.ts')

export const backupCommand = new Command('backup')

backupCommand
  .command('recorded')
  .description(
    'Record that a backup was taken. Call this from the backup script; status and doctor warn if the last backup is not recent.',
  )
  .option('--at <instant>', 'when the backup began, for example 2026-03-31T02:00:00Z; by default now', instant)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('backup recorded', 'backup recorded --at 2026-03-31T02:00:00Z'))
  .action(async ({ at, ...options }) => {
    const backup = await withOperators(options, operations, api => api.recordBackup({ at }))
    printResult(options, { value: backup, text: () => `Recorded a backup of ${backup.at}.` })
  })

addServerOptions(backupCommand)

function instant(text: string): string {
  const at = new Date(text)
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  if (!isInstant || Number.isNaN(at.getTime()))
    throw new InvalidArgumentError('Use an instant with its zone, for example 2026-03-31T02:00:00Z.')
  return at.toISOString()
}
