import { type EmbeddedPostgres, findPackage } from '@midmonth/embedded-postgres'
import type { Settings } from '../config.ts'
import type { Clock } from '../kernel/time.ts'
import { type BaseBackup, takeBaseBackup } from './base-backups.ts'
import { type Expired, expireBackups } from './expiry.ts'
import { requireBackupTarget } from './target.ts'

/**
 * Takes a base backup of the embedded server and deletes those that are no longer kept.
 * @param options.record records the backup, with the instant at which it began
 * @throws Error with a sentence for the operator
 */
export async function takeBackup(
  settings: Settings,
  {
    embedded,
    now,
    onStep,
    record,
  }: {
    embedded: EmbeddedPostgres | undefined
    now: Clock
    onStep: (step: string) => void
    record: (at: string) => Promise<void>
  },
): Promise<{ backup: BaseBackup; expired: Expired }> {
  const target = requireBackupTarget(settings)
  if (embedded === undefined) throw new Error('Only the embedded PostgreSQL is backed up by Midmonth')
  const { superuserConnection: connection, pgdata } = embedded
  onStep('copying the database')
  const backup = await takeBaseBackup(target, { connection, pgdata, postgresMajor: findPackage().major, now })
  await record(backup.startedAt)
  onStep('deleting backups that are no longer kept')
  const { systemIdentifier } = backup
  const expired = await expireBackups(target, {
    ...{ systemIdentifier, backupDays: settings.MIDMONTH_BACKUP_DAYS, now: now() },
  })
  return { backup, expired }
}
