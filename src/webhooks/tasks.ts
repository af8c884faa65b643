import type { Tasks } from '../worker/task.ts'
import { forget } from './deliveries.ts'

// A chunk of some hundred milliseconds.
const deliveriesMax = 5_000

export const webhookTasks = {
  // Safe to run twice: deleting is idempotent.
  async 'forget-webhook-deliveries'({ db, now }) {
    let count: number
    do count = await forget(db, { now: now(), countMax: deliveriesMax })
    while (count === deliveriesMax)
  },
} satisfies Partial<Tasks>
