import { isUniqueViolation, outageOutcome } from '../database/errors.ts'
import { scheduleTask, type Tasks } from '../tasks.ts'
import * as memberImports from './member-imports.ts'

// A large job is not taken in one go: other background steps have their turn, and a stop need not wait for its end.
const turnMsMax = 5_000

// As long as a partner might come back and ask what became of a file.
const keptDays = 30
const rowsMax = 5_000

// Of one transaction.
const expiredMax = 100

// After which a locked job is tried again.
const heldMs = 500

// Of one job in a row; after that it has its turn in the next round.
const collisionsMax = 3

export const memberJobTasks = {
  // Each chunk is a transaction that moves the job's own mark. Twice is safe: the mark is moved under the job's lock.
  async 'apply-member-jobs'({ db, now, log }) {
    const until = now().getTime() + turnMsMax
    const failures: unknown[] = []
    const failed: string[] = []
    const held: string[] = []
    let collisions = 0
    while (now().getTime() < until) {
      const jobId = await memberImports.findNext(db, { except: [...failed, ...held] })
      if (jobId === undefined) break
      try {
        const applied = await db.transaction().execute(tx => memberImports.applyNext(tx, { jobId, now: now() }))
        collisions = 0
        if (applied === undefined) held.push(jobId)
        else if (applied.hasEnded) await memberImports.noteGrowth(db, applied)
      } catch (error) {
        // Another member has taken an e-mail or a worker_id in between: decided again, the step sees that.
        const mayPass = isUniqueViolation(error) || outageOutcome(error) === 'nothing-done'
        collisions += 1
        log.warn({ err: error, jobId, collisions }, 'steps of a member job were not taken')
        if (mayPass && collisions <= collisionsMax) continue
        // One that fails again and again must not hold up the others.
        collisions = 0
        failed.push(jobId)
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    // A job may have been locked by another worker, or by an operator's query.
    if ((await memberImports.findNext(db, { except: failed })) !== undefined) {
      const at = new Date(now().getTime() + (held.length > 0 ? heldMs : 0))
      await db.transaction().execute(tx => scheduleTask(tx, { task: 'apply-member-jobs', at }))
    }
  },

  // Twice is safe: an expired job is rejected, and no longer waits.
  async 'expire-member-jobs'({ db, now }) {
    const expire = () =>
      db.transaction().execute(tx => memberImports.expireReviews(tx, { now: now(), countMax: expiredMax }))
    while ((await expire()) === expiredMax);
  },

  // Twice is safe: what is gone is gone.
  async 'forget-member-jobs'({ db, now }) {
    const endedBefore = new Date(now().getTime() - keptDays * 86_400_000)
    const forget = () =>
      db.transaction().execute(tx => memberImports.forgetSome(tx, { endedBefore, rowsMax, now: now() }))
    while (await forget());
  },
} satisfies Partial<Tasks>
