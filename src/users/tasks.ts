import { type Db, sql } from '../database/database.ts'
import type { Tasks } from '../worker/task.ts'
import { forgetBrowsers } from './browsers.ts'
import { forgetFailures } from './throttle.ts'

// A chunk holds its locks for a few milliseconds, so that no request waits.
const countMax = 5_000

type Forget = (db: Db, limits: { now: Date; countMax: number }) => Promise<number>
const all: Forget[] = [
  expiredIn('user_sessions', 'id'),
  expiredIn('user_links', 'hash'),
  expiredIn('user_invitations', 'id'),
  forgetBrowsers,
  forgetFailures,
]

export const userTasks = {
  // Safe to run twice: expired rows are no longer used.
  async 'forget-user-sessions'({ db, now }) {
    for (const forget of all) {
      let count: number
      do count = await forget(db, { now: now(), countMax })
      while (count === countMax)
    }
  },
} satisfies Partial<Tasks>

/** Deletes at most `countMax` rows of a table that have expired. @returns the number of deleted rows */
function expiredIn(table: string, key: string): Forget {
  return async (db, { now, countMax }) => {
    const { rows } = await sql`
      delete from ${sql.table(table)} t
       using (select ${sql.ref(key)} from ${sql.table(table)}
               where expires_at <= ${now} order by expires_at limit ${countMax}) old
       where ${sql.ref(`t.${key}`)} = ${sql.ref(`old.${key}`)}
      returning 1`.execute(db)
    return rows.length
  }
}
