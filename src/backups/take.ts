import { type EmbeddedPostgres, findPackage } from '@midmonth/embedded-postgres'
import type { Settings } from '../config.ts'
import type { Clock } from '../kernel/time.ts'
import { type BaseBackup, takeBaseBackup } from './base-backups.ts'
import { type Expired, expireBackups } from './expiry.ts'
import { requireBackupTarget } from './target.ts'
import { readSystemIdentifier } from './wal-archive.ts'

type Taking = {
  embedded: Pick<EmbeddedPostgres, 'superuserConnection' | 'pgdata'> | undefined
  now: Clock
  onStep: (step: string) => void
  record: (at: string) => Promise<void>
}

/**
 * Takes a base backup of the embedded server and deletes those that are no longer kept.
 * @param options.record records the backup, with the instant at which it began
 * @throws Error with a sentence for the operator
 */
export async function takeBackup(
  settings: Settings,
  { embedded, now, onStep, record }: Taking,
): Promise<{ backup: BaseBackup; expired: Expired }> {
  const target = requireBackupTarget(settings)
  if (embedded === undefined) throw new Error('Only the embedded PostgreSQL is backed up by Midmonth')
  const { superuserConnection: connection, pgdata } = embedded
  const expire = async () => {
    onStep('deleting backups that are no longer kept')
    const systemIdentifier = await readSystemIdentifier(pgdata)
    const backupDays = settings.MIDMONTH_BACKUP_DAYS
    return await expireBackups(target, { systemIdentifier, backupDays, now: now() })
  }
  // Before too: otherwise a full disk would stay full.
  const earlier = await expire()
  onStep('copying the database')
  const backup = await takeBaseBackup(target, { connection, pgdata, postgresMajor: findPackage().major, now })
  await record(backup.startedAt)
  const { backups, segments, oldest } = await expire()
  return {
    backup,
    expired: {
      backups: [...earlier.backups, ...backups],
      segments: earlier.segments + segments,
      oldest,
    },
  }
}
