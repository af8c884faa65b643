import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type pg from 'pg'
import type { Logger } from 'pino'
import { systemClock } from '../src/clock.ts'
import type { Settings } from '../src/config.ts'
import type { Database } from '../src/open-database.ts'
import { findHolder } from '../src/partners/api-keys.ts'
import { listPartners } from '../src/partners/partners.ts'
import { readDemoRail } from '../src/rails.ts'
import { seedDemo } from '../src/sandbox/demo.ts'

/**
 * Seeds an empty sandbox with the demo partner and returns its API key. The database holds only the key's hash, so with the
 * embedded PostgreSQL the key is kept in a file next to the data, and every start can print the same example request.
 * @returns undefined if the key is unknown or no longer valid
 */
export async function sandboxKey(
  { db, pool, dataDir }: Database,
  { settings, log }: { settings: Settings; log: Logger },
): Promise<string | undefined> {
  return await withSeedLock(pool, async () => {
    if ((await listPartners(db)).length === 0) log.info('adding demo data')
    const seeded = await seedDemo(db, systemClock(), { rail: await readDemoRail(settings) })
    if (dataDir === undefined) return seeded?.secret
    const file = path.join(dataDir, 'sandbox-api-key')
    if (seeded !== undefined) {
      await writeFile(file, `${seeded.secret}\n`, { mode: 0o600 })
      return seeded.secret
    }
    const secret = (await readFile(file, 'utf8').catch(() => '')).trim()
    const holder = await findHolder(db, { secret, mode: 'sandbox', now: systemClock() })
    return holder === undefined ? undefined : secret
  })
}

// Two concurrent first starts must create one demo partner, and the second must find the key that the first wrote. A lock of the
// session, because a transaction that is idle while the demo is seeded would be ended by its time-out.
async function withSeedLock<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query(`set lock_timeout = ${seedMsMax}; set statement_timeout = ${seedMsMax}`)
    await client.query(`select pg_advisory_lock(hashtext('midmonth sandbox'))`)
    return await work()
  } finally {
    // Closing the connection releases the lock in any case.
    client.release(true)
  }
}

// Seeding takes seconds; on a machine that is busy with other work, many.
const seedMsMax = 120_000
