import type { Tasks } from '../tasks.ts'
import * as intents from './intents.ts'

// Few enough for a short transaction; the job goes on until nothing is left.
const intentsMax = 500

export const withdrawalTasks = {
  // Twice is safe: only pending intents are taken, and workers pass over each other's rows.
  async 'expire-intents'({ db, now }) {
    let count: number
    do count = await db.transaction().execute(tx => intents.expireDue(tx, { now: now(), countMax: intentsMax }))
    while (count === intentsMax)
  },
} satisfies Partial<Tasks>
