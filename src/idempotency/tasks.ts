import type { Tasks } from '../tasks.ts'
import { forgetExpired } from './idempotency.ts'

// A chunk holds its locks for a few milliseconds, so that nobody waits.
const keysMax = 5_000

export const idempotencyTasks = {
  // Twice is safe: an expired record is of no use to anybody, and a key in use again is no longer expired.
  async 'forget-idempotency-keys'({ db, now }) {
    let count: number
    do count = await forgetExpired(db, { now: now(), countMax: keysMax })
    while (count === keysMax)
  },
} satisfies Partial<Tasks>
