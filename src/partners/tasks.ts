import type { Tasks } from '../worker/task.ts'
import { forgetSessions } from './member-sessions.ts'

// A chunk holds its locks for a few milliseconds, so that no request waits.
const sessionsMax = 5_000

export const partnerTasks = {
  // Safe to run twice: expired sessions are no longer used.
  async 'forget-member-sessions'({ db, now }) {
    let count: number
    do count = await forgetSessions(db, { now: now(), countMax: sessionsMax })
    while (count === sessionsMax)
  },
} satisfies Partial<Tasks>
