import type { Tasks } from '../worker/task.ts'
import { runRequested } from './verifications.ts'

export const auditTasks = {
  // Safe to run twice: a lock lets one run at a time, and a verification changes nothing but its own row.
  async 'verify-ledger'({ db, now }) {
    await runRequested(db, now)
  },
} satisfies Partial<Tasks>
