import type { Tasks } from '../tasks.ts'
import * as float from './float.ts'

export const floatTasks = {
  // Each float is its own transaction. Twice is safe: what is noted already is not noted again.
  async 'watch-floats'({ db, now, log }) {
    for (const { partnerId, currency } of await float.findStaleLowAlerts(db)) {
      await db.transaction().execute(tx => float.updateLowAlert(tx, { partnerId, currency, now: now() }))
      log.info({ partnerId, currency }, 'float noted')
    }
  },
} satisfies Partial<Tasks>
