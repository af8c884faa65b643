import { foldAll, partnersToFold, unfoldedMax } from '../database/folding.ts'
import type { Tasks } from '../worker/task.ts'
import { floatsToFold, foldCycleChanges, foldFloatChanges } from './ledger.ts'

export const ledgerTasks = {
  // Safe to run twice: the statement that adds a change to the total also deletes the change.
  async 'fold-float-changes'({ db }) {
    await foldAll(db, await floatsToFold(db, { countMin: unfoldedMax }), foldFloatChanges)
  },

  // Safe to run twice, for the same reason.
  async 'fold-cycle-changes'({ db }) {
    await foldAll(db, await partnersToFold(db, 'ledger_cycle_changes'), foldCycleChanges)
  },
} satisfies Partial<Tasks>
