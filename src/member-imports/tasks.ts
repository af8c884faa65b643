import { isUniqueViolation, outageOutcome } from '../database/errors.ts'
import { partnerOf, scheduleTask, type Tasks } from '../worker/task.ts'
import * as memberImports from './member-imports.ts'

// A large import is applied in turns, so that it neither starves other tasks nor delays a shutdown.
const turnMsMax = 5_000

// Per transaction.
const expiredMax = 100

// Before a locked import is retried.
const heldMs = 500

// Consecutive failures of one import; after that it is retried in the next run.
const collisionsMax = 3

export const memberImportTasks = {
  // Running it twice is safe: each chunk is a transaction that advances the import's mark under the import's lock.
  async 'apply-member-imports'({ db, now, log, scope }) {
    const until = now().getTime() + turnMsMax
    const failures: unknown[] = []
    const failed: string[] = []
    const held: string[] = []
    let collisions = 0
    while (now().getTime() < until) {
      const next = await memberImports.findNext(db, { except: [...failed, ...held], scope })
      if (next === undefined) break
      const { importId } = next
      try {
        const report: memberImports.Report = async stepsDone => {
          await db.transaction().execute(tx => memberImports.recordProgress(tx, { ...next, stepsDone }))
        }
        const applied = await db
          .transaction()
          .execute(tx => memberImports.applyNext(tx, { ...next, now: now(), report }))
        collisions = 0
        if (applied === undefined) held.push(importId)
        else if (applied.hasEnded) await memberImports.analyzeFilledTables(db, applied)
      } catch (error) {
        // Another member has taken an e-mail or a worker_id in the meantime. A retry decides the step again.
        const mayPass = isUniqueViolation(error) || outageOutcome(error) === 'nothing-done'
        collisions += 1
        log.warn({ err: error, importId, collisions }, 'steps of a member import failed')
        if (mayPass && collisions <= collisionsMax) continue
        // An import that keeps failing must not block the others.
        collisions = 0
        failed.push(importId)
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
    // An import may have been locked by another worker, or by an operator's query.
    if ((await memberImports.findNext(db, { except: failed, scope })) !== undefined) {
      const at = new Date(now().getTime() + (held.length > 0 ? heldMs : 0))
      await db
        .transaction()
        .execute(tx => scheduleTask(tx, { task: 'apply-member-imports', at, partnerId: partnerOf(scope) }))
    }
  },

  // Running it twice is safe: an expired import is rejected and no longer waits.
  async 'expire-member-imports'({ db, now, scope }) {
    const expire = () =>
      db.transaction().execute(tx => memberImports.expireReviews(tx, { now: now(), countMax: expiredMax, scope }))
    while ((await expire()) === expiredMax);
  },
} satisfies Partial<Tasks>
