import type { Tasks } from '../worker/task.ts'
import { foldChanges, partnersToFold } from './counts.ts'

const limits = {
  // Summing this many rows takes well under a millisecond.
  unfoldedMax: 500,
  // A transaction of this many deletes takes some ten milliseconds.
  foldedAtOnceMax: 5_000,
}

export const memberTasks = {
  // Safe to run twice: the statement that adds a change to its count also deletes the change.
  async 'fold-member-counts'({ db }) {
    const countMax = limits.foldedAtOnceMax
    for (const partnerId of await partnersToFold(db, { countMin: limits.unfoldedMax })) {
      const fold = () => db.transaction().execute(tx => foldChanges(tx, { partnerId, countMax }))
      while ((await fold()) === countMax);
    }
  },
} satisfies Partial<Tasks>
