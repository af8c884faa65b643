import { expect } from 'vitest'
import { type Reader, sql } from '../../src/database/database.ts'
import { citusUrl } from './citus.ts'

// On Citus, sessions wait on the nodes.
const activity = sql.table(citusUrl === undefined ? 'pg_stat_activity' : 'citus_stat_activity')

/** Waits until sessions of a database wait for a lock, by default one and however briefly. */
export async function whenWaiting(db: Reader, { count = 1, seconds = 0 } = {}): Promise<void> {
  const waiting = async () => {
    const { rows } = await sql`
      select from ${activity} where datname = current_database() and wait_event_type = 'Lock'
         and query_start <= clock_timestamp() - ${seconds} * interval '1 s'`.execute(db)
    return rows.length
  }
  await expect.poll(waiting, { interval: 10 }).toBeGreaterThanOrEqual(count)
}
