import { outageOutcome } from '../database/errors.ts'
import { lockByNameIfFree } from '../database/named-locks.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { partnerOf, type Tasks } from '../worker/task.ts'
import * as closing from './closing.ts'

// Per run of the task. High, because the months of many partners end at the same midnight.
const partnersMax = 10_000

export const closingTasks = {
  // One transaction per cycle. After days of downtime, closes overdue cycles one by one until today's is open. Safe to run
  // twice: a cycle is closed only while it is open and over, under its row lock.
  async 'close-pay-cycles'({ db, now, log, scope }) {
    const failures: unknown[] = []
    // Moving a partner's clock waits until the cycle is closed.
    const mayWait = partnerOf(scope) !== undefined
    for (const partnerId of await payCycles.findOver(db, { now: now(), countMax: partnersMax, scope })) {
      try {
        let turn: Awaited<ReturnType<typeof closing.closeIfOver>>
        do {
          turn = await db.transaction().execute(async tx => {
            // An attempt can wait for half a minute. A concurrent attempt would only take up a second worker slot.
            if (!mayWait && !(await lockByNameIfFree(tx, 'closing of the pay cycle of', partnerId))) return undefined
            return await closing.closeIfOver(tx, { partnerId, now: now() })
          })
          if (turn !== undefined) {
            log.info({ partnerId, closed: turn.closed.id, opened: turn.opened.id }, 'pay cycle closed')
          }
        } while (turn !== undefined)
      } catch (error) {
        // One partner's failure must not keep other cycles open. A locked cycle is retried in the next run.
        log.warn({ err: error, partnerId }, 'pay cycle not closed yet')
        if (outageOutcome(error) === undefined) failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  },
} satisfies Partial<Tasks>
