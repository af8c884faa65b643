import type { Tasks } from '../worker/task.ts'
import * as moves from './moves.ts'

// A long move is split into turns, so that it neither starves other tasks nor delays a shutdown.
const turnMsMax = 5_000

/** @param tasks the tasks that a move of a clock runs */
export function clockTasks(tasks: Partial<Tasks>) {
  return {
    // Continues moves whose process has stopped or handed them over. Safe to run twice: a move has one lease holder.
    async 'move-sandbox-clocks'({ db, log, now }) {
      const until = performance.now() + turnMsMax
      const mayGoOn = () => performance.now() < until
      for (const { partnerId, moveId } of await moves.findAbandoned(db)) {
        const isComplete = await moves.advance({ db, log, now, tasks }, { partnerId, moveId, mayGoOn })
        log.info({ partnerId, moveId, isComplete }, 'sandbox clock moved')
        if (!mayGoOn()) return
      }
      await db.transaction().execute(moves.watchLeases)
    },
  } satisfies Partial<Tasks>
}
