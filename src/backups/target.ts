import { type Settings, SettingsProblem } from '../config.ts'
import type { BackupTarget } from './sealed.ts'

type BackupSettings = Pick<Settings, 'DATABASE_URL' | 'MIDMONTH_BACKUP_DIR' | 'MIDMONTH_BACKUP_RECIPIENTS'>

/**
 * Where the embedded server is backed up; undefined if it is not.
 * @throws SettingsProblem if the settings contradict each other
 */
export function backupTargetOf({
  DATABASE_URL,
  MIDMONTH_BACKUP_DIR: dir,
  MIDMONTH_BACKUP_RECIPIENTS: recipients,
}: BackupSettings): BackupTarget | undefined {
  if ((dir === '') !== (recipients === ''))
    throw new SettingsProblem('Set both MIDMONTH_BACKUP_DIR and MIDMONTH_BACKUP_RECIPIENTS, or neither')
  if (dir === '') return undefined
  if (DATABASE_URL !== '')
    throw new SettingsProblem(
      'MIDMONTH_BACKUP_DIR is for the embedded PostgreSQL; back the server at DATABASE_URL up with its own tools (docs/operations/backups.md)',
    )
  return { dir, recipients: recipients.split(',') }
}

/** @throws SettingsProblem if the embedded server is not backed up */
export function requireBackupTarget(settings: BackupSettings): BackupTarget {
  const target = backupTargetOf(settings)
  if (target === undefined)
    throw new SettingsProblem(
      'Set MIDMONTH_BACKUP_DIR and MIDMONTH_BACKUP_RECIPIENTS; a server of your own is backed up with its own tools (docs/operations/backups.md)',
    )
  return target
}
