import type { Jobs } from '../jobs.ts'
import * as float from './float.ts'

export const floatJobs: Jobs = {
  // Each float is its own transaction. Twice is safe: what is noted already is not noted again.
  async 'watch-floats'({ db, now, log }) {
    for (const { partnerId, currency } of await float.findUnnoted(db)) {
      await db.transaction().execute(tx => float.note(tx, { partnerId, currency, now: now() }))
      log.info({ partnerId, currency }, 'float noted')
    }
  },
}
