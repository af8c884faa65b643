import { sql } from '../db.ts'
import type { Jobs } from '../jobs.ts'

// A chunk holds its locks for a few milliseconds, so that nobody waits.
const keysMax = 5_000

export const httpJobs: Jobs = {
  // Twice is safe: an expired record is of no use to anybody, and a key in use again is no longer expired.
  async 'forget-idempotency-keys'({ db, now }) {
    let count: number
    do {
      const { rows } = await sql`
        delete from idempotency_keys k
         using (select partner_id, key from idempotency_keys where expires_at <= ${now()}
                 order by expires_at limit ${keysMax} for update skip locked) expired
         where k.partner_id = expired.partner_id and k.key = expired.key
        returning 1`.execute(db)
      count = rows.length
    } while (count === keysMax)
  },
}
