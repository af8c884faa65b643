import type { Tasks } from '../worker/task.ts'
import { forgetOld } from './requests.ts'

// A chunk holds its locks for a few tens of milliseconds, and nothing waits for them.
const requestsMax = 5_000

export const requestTasks = {
  // Safe to run twice: old requests are not used.
  async 'forget-requests'({ db, now }) {
    let count: number
    do count = await forgetOld(db, { now: now(), countMax: requestsMax })
    while (count === requestsMax)
  },
} satisfies Partial<Tasks>
