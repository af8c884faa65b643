import type { Jobs } from '../jobs.ts'
import * as payRuns from './pay-runs.ts'

// One turn of the worker; what is left comes in the next.
const payRunsMax = 100

export const payRunJobs: Jobs = {
  // Each pay run is its own transaction. Twice is safe: only a scheduled pay run is acted on, under its row's lock.
  async 'make-pay-runs-available'({ db, now, log }) {
    for (const { partnerId, payRunId } of await payRuns.findDue(db, { now: now(), countMax: payRunsMax })) {
      await db.transaction().execute(tx => payRuns.makeAvailable(tx, { partnerId, payRunId, now: now() }))
      log.info({ partnerId, payRunId }, 'pay run available')
    }
  },
}
