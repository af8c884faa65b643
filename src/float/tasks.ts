import type { Tasks } from '../worker/task.ts'
import * as float from './float.ts'

export const floatTasks = {
  // Each float has its own transaction. Safe to run twice: an alert is raised or cleared once.
  async 'watch-floats'({ db, now, log, scope }) {
    for (const { partnerId, currency } of await float.findStaleLowAlerts(db, scope)) {
      await db.transaction().execute(tx => float.updateLowAlert(tx, { partnerId, currency, now: now() }))
      log.info({ partnerId, currency }, 'low-float alert updated')
    }
  },
} satisfies Partial<Tasks>
