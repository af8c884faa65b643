import { InvalidArgumentError } from 'commander'
import { addServerOptions, OperatorCommand } from './operator-client.ts'

const operations = () => import('../src/operators/installation-operations.ts')

export const backupCommand = new OperatorCommand('backup', operations)

backupCommand
  .command('recorded')
  .description(
    'Record that a backup was taken. Call this from the backup script; status and doctor warn if the last backup is not recent.',
  )
  .option('--at <instant>', 'when the backup began, for example 2026-03-31T02:00:00Z; by default now', instant)
  .examples('backup recorded', 'backup recorded --at 2026-03-31T02:00:00Z')
  .prints(
    (api, { at }) => api.recordBackup({ at }),
    backup => `Recorded a backup of ${backup.at}.`,
  )

addServerOptions(backupCommand)

function instant(text: string): string {
  const at = new Date(text)
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  if (!isInstant || Number.isNaN(at.getTime()))
    throw new InvalidArgumentError('Use an instant with its zone, for example 2026-03-31T02:00:00Z.')
  return at.toISOString()
}
