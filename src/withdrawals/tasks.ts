import { partnerOf, type Tasks } from '../worker/task.ts'
import * as intents from './intents.ts'

// Few enough for a short transaction; the task repeats until none are left.
const intentsMax = 500

export const withdrawalTasks = {
  // Safe to run twice: only pending intents change, and rows locked by another worker are skipped.
  async 'expire-intents'({ db, now, scope }) {
    let expired: Awaited<ReturnType<typeof intents.expireDue>> | undefined
    do {
      const from = expired?.last
      expired = await db
        .transaction()
        .execute(tx => intents.expireDue(tx, { now: now(), from, countMax: intentsMax, scope }))
    } while (expired.count === intentsMax)
    if (partnerOf(scope) === undefined) await db.transaction().execute(tx => intents.recordExpiry(tx, now()))
  },
} satisfies Partial<Tasks>
