import type { Tasks } from '../worker/task.ts'
import { forgetAddresses } from './audit-log.ts'

// A chunk holds its locks for a few tens of milliseconds, and nothing waits for them.
const countMax = 5_000

/** @param addressDays how long the audit log keeps the addresses of its authors */
export function auditLogTasks({ addressDays }: { addressDays: number }) {
  return {
    // Safe to run twice: an address that was removed stays removed.
    async 'forget-audit-addresses'({ db, now }) {
      const before = new Date(now().getTime() - addressDays * 86_400_000)
      let count: number
      do count = await forgetAddresses(db, { before, countMax })
      while (count >= countMax)
    },
  } satisfies Partial<Tasks>
}
