import type { RestorePlan, Wanted } from '../src/backups/restore.ts'
import type { Settings } from '../src/config.ts'

type PlanAsked = { identity: string; from?: string | undefined } & Partial<Omit<Wanted, 'dir' | 'identities'>>

/**
 * Plans a restore as the options of a command ask for it.
 * @param asked.identity the file of the private key
 * @param asked.from the folder of the backups, by default the configured one
 * @throws Error with a sentence for the operator
 */
export async function planAsked(
  settings: Settings,
  { identity, from, at, backup, timeline }: PlanAsked,
): Promise<RestorePlan> {
  // Loaded late: only these commands restore.
  const [{ planRestore }, { requireBackupTarget }, { readIdentities }] = await Promise.all([
    import('../src/backups/restore.ts'),
    import('../src/backups/target.ts'),
    import('../src/sealing/age.ts'),
  ])
  const dir = from ?? requireBackupTarget(settings).dir
  return await planRestore({ dir, identities: await readIdentities(identity), at, backup, timeline })
}
