import { foldAll, partnersToFold } from '../database/folding.ts'
import type { Tasks } from '../worker/task.ts'
import { foldChanges } from './counts.ts'

export const memberTasks = {
  // Safe to run twice: the statement that adds a change to its count also deletes the change.
  async 'fold-member-counts'({ db }) {
    await foldAll(db, await partnersToFold(db, 'member_count_changes'), foldChanges)
  },
} satisfies Partial<Tasks>
