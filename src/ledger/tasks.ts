import type { Tasks } from '../worker/task.ts'
import { cyclesToFold, floatsToFold, foldCycleChanges, foldFloatChanges } from './ledger.ts'

const limits = {
  // Summing this many rows takes well under a millisecond.
  unfoldedMax: 500,
  // A transaction of this many deletes takes some ten milliseconds.
  foldedAtOnceMax: 5_000,
}

export const ledgerTasks = {
  // Safe to run twice: the statement that adds a change to the total also deletes the change.
  async 'fold-float-changes'({ db }) {
    for (const float of await floatsToFold(db, { countMin: limits.unfoldedMax })) {
      const fold = () =>
        db.transaction().execute(tx => foldFloatChanges(tx, { ...float, countMax: limits.foldedAtOnceMax }))
      while ((await fold()) === limits.foldedAtOnceMax);
    }
  },

  // Safe to run twice, for the same reason.
  async 'fold-cycle-changes'({ db }) {
    const countMax = limits.foldedAtOnceMax
    for (const partnerId of await cyclesToFold(db, { countMin: limits.unfoldedMax })) {
      const fold = () => db.transaction().execute(tx => foldCycleChanges(tx, { partnerId, countMax }))
      while ((await fold()) === countMax);
    }
  },
} satisfies Partial<Tasks>
