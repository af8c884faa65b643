import { Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../src/main.ts'
import { recordChange } from './actor.ts'
import { examples } from './help.ts'
import { printResult } from './print.ts'
import { withTransaction } from './with-database.ts'

export const backupCommand = new Command('backup')

backupCommand
  .command('recorded')
  .description(
    'Record that a backup was taken. Call this from the backup script; status and doctor warn if the last backup is not recent.',
  )
  .option('--at <instant>', 'when the backup began, for example 2026-03-31T02:00:00Z; by default now', pastInstant)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('backup recorded', 'backup recorded --at 2026-03-31T02:00:00Z'))
  .action(async ({ at, json }: { at?: Date; json?: boolean }) => {
    const now = systemClock()
    const takenAt = (at ?? now).toISOString()
    const change = { action: 'backup.record', resourceId: takenAt, details: {} } as const
    await withTransaction(tx => recordChange(tx, { partnerId: null, change, now }))
    printResult({ json }, { value: { at: takenAt }, text: () => `Recorded a backup of ${takenAt}.` })
  })

function pastInstant(text: string): Date {
  const at = new Date(text)
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  if (!isInstant || Number.isNaN(at.getTime()))
    throw new InvalidArgumentError('Use an instant with its zone, for example 2026-03-31T02:00:00Z.')
  if (at > systemClock())
    throw new InvalidArgumentError('The instant is in the future; give the time when the backup began.')
  return at
}
