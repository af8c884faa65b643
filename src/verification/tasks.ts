import { scheduleTask, type Tasks } from '../worker/task.ts'
import { BooksDisagree, findUnsealed, refuse, seal } from './sealing.ts'
import { recordEnded, runRequested } from './verifications.ts'

// A run that takes longer makes way for other tasks, and for the end of the process.
const runMsMax = 10_000

export const auditTasks = {
  // Safe to run twice: a lock lets one run at a time, and a verification changes nothing but its own row.
  async 'verify-ledger'({ db, now }) {
    await runRequested(db, now)
  },
  // Safe to run twice: each step is one transaction under a lock.
  async 'seal-ledger'({ db, log, now }) {
    const until = performance.now() + runMsMax
    for (const cycle of await findUnsealed(db, { now: now() })) {
      const startedAt = now()
      try {
        while (performance.now() < until && (await seal(db, cycle, now)));
      } catch (error) {
        if (!(error instanceof BooksDisagree)) throw error
        log.error({ err: error, partnerId: cycle.partnerId, checks: error.checks }, 'the books are not sealed')
        await db.transaction().execute(async tx => {
          await refuse(tx, cycle, now())
          await recordEnded(tx, { requestedBy: 'sealing', startedAt, endedAt: now(), checks: error.checks })
        })
      }
      if (performance.now() > until) {
        await db.transaction().execute(tx => scheduleTask(tx, { task: 'seal-ledger', at: now() }))
        return
      }
    }
  },
} satisfies Partial<Tasks>
