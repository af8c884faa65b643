import { outageOutcome } from '../database/errors.ts'
import type { Tasks } from '../tasks.ts'
import * as payRuns from './pay-runs.ts'

// One turn of the worker; what is left comes in the next.
const payRunsMax = 100

export const payRunTasks = {
  // Each pay run is its own transaction. Twice is safe: only a scheduled pay run is acted on, under its row's lock.
  async 'make-pay-runs-available'({ db, now, log }) {
    const failures: unknown[] = []
    for (const { partnerId, payRunId } of await payRuns.findDue(db, { now: now(), countMax: payRunsMax })) {
      try {
        const { status } = await db
          .transaction()
          .execute(tx => payRuns.makeAvailable(tx, { partnerId, payRunId, now: now() }))
        log.info({ partnerId, payRunId, status }, 'pay run made available')
      } catch (error) {
        // One partner's trouble must not hold up the others' pay. A busy one has its turn in the next round.
        log.warn({ err: error, partnerId, payRunId }, 'pay run not available yet')
        if (outageOutcome(error) === undefined) failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  },
} satisfies Partial<Tasks>
