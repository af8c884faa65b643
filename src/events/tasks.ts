import { isLockTimeout } from '../database/errors.ts'
import { dropOldEvents, makePartitions } from '../database/partitions.ts'
import type { Tasks } from '../worker/task.ts'
import * as events from './events.ts'

// A transaction of this many updates takes a few hundred milliseconds.
const numberedAtOnceMax = 5_000

export const eventTasks = {
  // For feeds that are seldom read: a reader numbers its own feed. Safe to run twice: a position is assigned once, under the
  // lock of the feed. A locked feed is skipped, so that it delays no other feed.
  async 'number-event-feeds'({ db }) {
    for (const partnerId of await events.partnersToNumber(db)) {
      const number = () =>
        db.transaction().execute(tx => events.numberFeed(tx, { partnerId, countMax: numberedAtOnceMax, waits: false }))
      try {
        while ((await number()) >= numberedAtOnceMax);
      } catch (error) {
        // A feed that another transaction numbers for the first time cannot be skipped, only waited for. It is retried next time.
        if (!isLockTimeout(error)) throw error
      }
    }
  },

  // Safe to run twice: it makes what is missing, and drops what is old. Real time on purpose: so does the database.
  async 'maintain-partitions'({ db, log, now }) {
    await makePartitions(db)
    const partitions = await dropOldEvents(db, { writtenBefore: events.oldestAt(now()) })
    if (partitions.length > 0) log.info({ partitions }, 'dropped old events')
  },
} satisfies Partial<Tasks>
