import type { Tasks } from '../tasks.ts'
import * as events from './events.ts'

// A transaction of this many updates takes some hundred milliseconds.
const numberedAtOnceMax = 5_000

export const eventTasks = {
  // For feeds that are seldom read: a reader numbers what is due itself. Twice is safe: a position is given once, under the
  // lock of the feed.
  async 'number-event-feeds'({ db }) {
    for (const partnerId of await events.partnersToNumber(db)) {
      const number = () =>
        db.transaction().execute(tx => events.numberFeed(tx, { partnerId, countMax: numberedAtOnceMax }))
      while ((await number()) >= numberedAtOnceMax);
    }
  },
} satisfies Partial<Tasks>
