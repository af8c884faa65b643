import type { Tasks } from '../worker/task.ts'
import { destroyDueKeys } from './erasure.ts'

// Per transaction.
const keysMax = 1_000

export const erasureTasks = {
  // Running it twice is safe: a key is destroyed once.
  async 'destroy-payment-keys'({ db, now, scope }) {
    const destroy = () => db.transaction().execute(tx => destroyDueKeys(tx, { now: now(), countMax: keysMax, scope }))
    while ((await destroy()) === keysMax);
  },
} satisfies Partial<Tasks>
