import { outageOutcome } from '../database/errors.ts'
import type { Tasks } from '../worker/task.ts'
import * as payRuns from './pay-runs.ts'

// Per run of the task; the rest follows in the next run.
const payRunsMax = 100

export const payRunTasks = {
  // One transaction per pay run. Safe to run twice: only a scheduled pay run is changed, under its row lock.
  async 'make-pay-runs-available'({ db, now, log, scope }) {
    const failures: unknown[] = []
    for (const { partnerId, payRunId } of await payRuns.findDue(db, { now: now(), countMax: payRunsMax, scope })) {
      try {
        const { status } = await db
          .transaction()
          .execute(tx => payRuns.makeAvailable(tx, { partnerId, payRunId, now: now() }))
        log.info({ partnerId, payRunId, status }, 'pay run made available')
      } catch (error) {
        // One partner's failure must not delay the pay of others. A locked pay run is retried in the next run.
        log.warn({ err: error, partnerId, payRunId }, 'pay run not available yet')
        if (outageOutcome(error) === undefined) failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  },
} satisfies Partial<Tasks>
