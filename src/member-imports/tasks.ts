import { isUniqueViolation, outageOutcome } from '../database/errors.ts'
import { partnerOf, scheduleTask, type Tasks } from '../worker/task.ts'
import * as memberImports from './member-imports.ts'

// A large job is applied in turns, so that it neither starves other tasks nor delays a shutdown.
const turnMsMax = 5_000

// How long a partner can look up the results of a job.
const keptDays = 30
const rowsMax = 5_000

// Per transaction.
const expiredMax = 100

// Before a locked job is retried.
const heldMs = 500

// Consecutive failures of one job; after that it is retried in the next run.
const collisionsMax = 3

export const memberJobTasks = {
  // Running it twice is safe: each chunk is a transaction that advances the job's mark under the job's lock.
  async 'apply-member-jobs'({ db, now, log, scope }) {
    const until = now().getTime() + turnMsMax
    const failures: unknown[] = []
    const failed: string[] = []
    const held: string[] = []
    let collisions = 0
    while (now().getTime() < until) {
      const jobId = await memberImports.findNext(db, { except: [...failed, ...held], scope })
      if (jobId === undefined) break
      try {
        const report: memberImports.Report = async (stepsDone, partnerId) => {
          await db.transaction().execute(tx => memberImports.recordProgress(tx, { partnerId, jobId, stepsDone }))
        }
        const applied = await db.transaction().execute(tx => memberImports.applyNext(tx, { jobId, now: now(), report }))
        collisions = 0
        if (applied === undefined) held.push(jobId)
        else if (applied.hasEnded) await memberImports.analyzeFilledTables(db, applied)
      } catch (error) {
        // Another member has taken an e-mail or a worker_id meanwhile; a retry decides the step again and sees that.
        const mayPass = isUniqueViolation(error) || outageOutcome(error) === 'nothing-done'
        collisions += 1
        log.warn({ err: error, jobId, collisions }, 'steps of a member job failed')
        if (mayPass && collisions <= collisionsMax) continue
        // A job that keeps failing must not block the others.
        collisions = 0
        failed.push(jobId)
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    // A job may have been locked by another worker, or by an operator's query.
    if ((await memberImports.findNext(db, { except: failed, scope })) !== undefined) {
      const at = new Date(now().getTime() + (held.length > 0 ? heldMs : 0))
      await db
        .transaction()
        .execute(tx => scheduleTask(tx, { task: 'apply-member-jobs', at, partnerId: partnerOf(scope) }))
    }
  },

  // Running it twice is safe: an expired job is rejected and no longer waits.
  async 'expire-member-jobs'({ db, now, scope }) {
    const expire = () =>
      db.transaction().execute(tx => memberImports.expireReviews(tx, { now: now(), countMax: expiredMax, scope }))
    while ((await expire()) === expiredMax);
  },

  // Running it twice is safe: deleting is idempotent.
  async 'forget-member-jobs'({ db, now, scope }) {
    const endedBefore = new Date(now().getTime() - keptDays * 86_400_000)
    const forget = () =>
      db.transaction().execute(tx => memberImports.forgetSome(tx, { endedBefore, rowsMax, now: now(), scope }))
    while (await forget());
  },
} satisfies Partial<Tasks>
