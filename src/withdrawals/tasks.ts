import type { Tasks } from '../worker/task.ts'
import * as intents from './intents.ts'

// Few enough for a short transaction; the task repeats until none are left.
const intentsMax = 500

export const withdrawalTasks = {
  // Safe to run twice: only pending intents change, and rows locked by another worker are skipped.
  async 'expire-intents'({ db, now, scope }) {
    let count: number
    do count = await db.transaction().execute(tx => intents.expireDue(tx, { now: now(), countMax: intentsMax, scope }))
    while (count === intentsMax)
  },
} satisfies Partial<Tasks>
