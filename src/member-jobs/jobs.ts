import { isUniqueViolation, unavailability } from '../db.ts'
import type { Jobs } from '../jobs.ts'
import * as memberJobs from './member-jobs.ts'

// A large job is not taken in one go: other background steps have their turn, and a stop need not wait for its end.
const turnMsMax = 5_000

// As long as a partner might come back and ask what became of a file.
const keptDays = 30
const rowsMax = 5_000

export const memberJobJobs: Jobs = {
  // Each chunk is a transaction that moves the job's own mark. Twice is safe: the mark is moved under the job's lock.
  async 'apply-member-jobs'({ db, now, log }) {
    const until = now().getTime() + turnMsMax
    let collisions = 0
    while (now().getTime() < until) {
      try {
        const applied = await db.transaction().execute(tx => memberJobs.applyNext(tx, now()))
        if (applied === undefined) return
        if (applied.hasEnded) await memberJobs.noteGrowth(db, applied)
        collisions = 0
      } catch (error) {
        // Somebody has taken an e-mail or a worker id in between: decided again, the step sees them.
        const mayPass = isUniqueViolation(error) || unavailability(error) === 'nothing-done'
        collisions += 1
        if (!mayPass || collisions > 3) throw error
        log.warn({ err: error }, 'a chunk of a member job is tried again')
      }
    }
    await memberJobs.goOn(db, now())
  },

  // Twice is safe: what is gone is gone.
  async 'forget-member-jobs'({ db, now }) {
    const endedBefore = new Date(now().getTime() - keptDays * 86_400_000)
    while (await memberJobs.forgetSome(db, { endedBefore, rowsMax, now: now() }));
  },
}
