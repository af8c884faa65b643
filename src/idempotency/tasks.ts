import type { Tasks } from '../worker/task.ts'
import { forgetExpired } from './idempotency.ts'

// A chunk holds its locks for a few milliseconds, so that no request waits.
const keysMax = 5_000

export const idempotencyTasks = {
  // Safe to run twice: an expired record is no longer needed, and a key that is in use again has not expired.
  async 'forget-idempotency-keys'({ db, now, scope }) {
    let count: number
    do count = await forgetExpired(db, { now: now(), countMax: keysMax, scope })
    while (count === keysMax)
  },
} satisfies Partial<Tasks>
