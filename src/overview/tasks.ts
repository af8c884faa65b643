import type { Tasks } from '../worker/task.ts'
import { addUpAll } from './totals.ts'

export const overviewTasks = {
  // Safe to run twice: each event is added once, under the lock of the feed. A locked feed is skipped.
  async 'add-up-withdrawals'({ db }) {
    await addUpAll(db)
  },
} satisfies Partial<Tasks>
