import type { Db } from '../database/database.ts'
import type { Tasks } from '../worker/task.ts'
import { forgetBrowsers } from './browsers.ts'
import { forgetInvitations } from './invitations.ts'
import { forgetLinks } from './links.ts'
import { forgetSessions } from './sessions.ts'
import { forgetFailures } from './throttle.ts'

// A chunk holds its locks for a few milliseconds, so that no request waits.
const countMax = 5_000

type Forget = (db: Db, limits: { now: Date; countMax: number }) => Promise<number>
const all: Forget[] = [forgetSessions, forgetLinks, forgetInvitations, forgetBrowsers, forgetFailures]

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
