import { InvalidArgumentError } from 'commander'
import type { Change } from '../src/audit-log/audit-log.ts'
import { systemClock } from '../src/clock.ts'
import type { Tx } from '../src/database/database.ts'
import { PrintingCommand } from './command.ts'
import { addServerOptions, OperatorCommand } from './operator-client.ts'
import { countOf, print, printResult } from './print.ts'
import { terminal, writeErrorLine } from './terminal.ts'
import { whole } from './whole.ts'

const operations = () => import('../src/operators/installation-operations.ts')

export const backupCommand = new PrintingCommand('backup').description(
  'Back up the embedded PostgreSQL, and record backups by other tools, so that a missing one is noticed.',
)

backupCommand
  .command('take')
  .description(
    'Back up the embedded PostgreSQL to MIDMONTH_BACKUP_DIR while it runs, record the backup, and delete those older than MIDMONTH_BACKUP_DAYS. Call it daily.',
  )
  .examples('backup take')
  .action(async options => {
    const [{ takeBackup }, { withDatabase }] = await Promise.all([
      import('../src/backups/take.ts'),
      import('./with-database.ts'),
    ])
    const taken = await withDatabase(async (db, settings, { database }) => {
      const { recordChange } = await import('./actor.ts')
      return await takeBackup(settings, {
        embedded: database.embedded,
        now: systemClock,
        onStep: step => writeErrorLine(`${step} …`),
        record: async at => {
          const change = { action: 'backup.record', resourceId: at, details: {} } as const
          await db.transaction().execute(tx => recordChange(tx, { partnerId: null, change, now: systemClock() }))
        },
      })
    })
    const { backup, expired } = taken
    printResult(options, {
      value: { backup: shown(backup), expired },
      text: () =>
        [
          `Backed up to ${backup.folder} (${megabytes(backup.bytes)}), complete at ${backup.endedAt}.`,
          `Deleted ${countOf(expired.backups.length, 'backup')} and ${countOf(expired.segments, 'WAL segment')} that are no longer kept. The oldest backup ended at ${expired.oldest}.`,
        ].join('\n'),
    })
  })

backupCommand
  .command('list')
  .description('List the complete backups in MIDMONTH_BACKUP_DIR, oldest first.')
  .examples('backup list', 'backup list --json')
  .action(async options => {
    const [{ readSettings }, { listBaseBackups }, { requireBackupTarget }] = await Promise.all([
      import('../src/config.ts'),
      import('../src/backups/base-backups.ts'),
      import('../src/backups/target.ts'),
    ])
    const backups = await listBaseBackups(requireBackupTarget(readSettings(terminal().env)))
    print(backups.map(shown), options)
  })

const recording = new OperatorCommand('recorded', operations)
recording
  .description(
    'Record that a backup was taken by another tool. Call this from the backup script; status and doctor warn if the last backup is not recent.',
  )
  .option('--at <instant>', 'when the backup began, for example 2026-03-31T02:00:00Z; by default now', instant)
  .examples('backup recorded', 'backup recorded --at 2026-03-31T02:00:00Z')
  .prints(
    (api, { at }) => api.recordBackup({ at }),
    backup => `Recorded a backup of ${backup.at}.`,
  )
addServerOptions(recording)
backupCommand.addCommand(recording)

const restored = new OperatorCommand('restored', () => import('../src/operators/restore-operations.ts'))
restored
  .description(
    'Declare that the database was restored by another tool, so that nothing is sent to banks before they are compared. Call this after every restore, before the service starts.',
  )
  .option('--until <instant>', 'the last commit that was restored, for example 2026-03-31T09:55:00Z', instant)
  .examples('backup restored', 'backup restored --until 2026-03-31T09:55:00Z')
  .prints(
    (api, { until: recoveredUntil }) => api.declareRestore({ recoveredUntil }),
    ({ detectedAt }) => `Since ${detectedAt} nothing is sent to banks until midmonth payouts resume.`,
  )
addServerOptions(restored)
backupCommand.addCommand(restored)

backupCommand
  .command('keys-lost')
  .description(
    'Declare that no backup has the keys of the members who have none, so that the service starts without what these keys sealed: e-mail, phone, worker id, date of birth, gender and bank account. Cannot be undone. See docs/operations/backups.md.',
  )
  .option('--yes', 'do it; otherwise only say which members are meant')
  .examples('backup keys-lost', 'backup keys-lost --yes')
  .action(async ({ yes = false, ...options }: { yes?: boolean; json?: boolean }) => {
    const [
      { withUnopenedKeys },
      { findMembersWithoutKeys, lackingKeysInWords },
      { withoutLimit },
      { openSealer },
      { giveUpLostKeys },
      { recordChange },
    ] = await Promise.all([
      import('./with-database.ts'),
      import('../src/members/key-checks.ts'),
      import('../src/database/wait-limits.ts'),
      import('../src/sealing/installation-keys.ts'),
      import('../src/operators/lost-keys.ts'),
      import('./actor.ts'),
    ])
    await withUnopenedKeys(async ({ db, keySource, erasures }) => {
      await openSealer(db, keySource)
      const now = systemClock()
      const found = await withoutLimit(db, tx => findMembersWithoutKeys(tx, { isThorough: true }))
      const record = (tx: Tx, partnerId: string, change: Change) => recordChange(tx, { partnerId, change, now })
      const givenUp = yes ? await giveUpLostKeys(db, { erasures, now, record }) : undefined
      const { count, memberIds } = givenUp === undefined ? found : { count: givenUp.length, memberIds: givenUp }
      printResult(options, {
        value: { done: yes, members: count, memberIds },
        text: () => {
          if (count === 0) return 'All members have their keys.'
          if (!yes)
            return `${lackingKeysInWords(found)}.\nNothing was changed. First look for a later backup of the keys; with --yes, midmonth backup keys-lost abandons what these keys sealed.`
          return `The keys of ${countOf(count, 'member')} are given up; midmonth audit names them. Their partners can offboard them and invite the persons again.`
        },
      })
    })
  })

type ShownBackup = { id: string; systemIdentifier: string; startedAt: string; endedAt: string; bytes: number }

function shown({ id, systemIdentifier, startedAt, endedAt, bytes }: ShownBackup) {
  return { id, server: systemIdentifier, started: startedAt, ended: endedAt, size: megabytes(bytes) }
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000_000)} MB`
}

export function instant(text: string): string {
  const at = new Date(text)
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  if (!isInstant || Number.isNaN(at.getTime()))
    throw new InvalidArgumentError('Use an instant with its zone, for example 2026-03-31T02:00:00Z.')
  return at.toISOString()
}

export const timelineNumber = whole({ min: 1, max: 2 ** 32 - 1 })
