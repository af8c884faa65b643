import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Logger } from 'pino'
import { type Db, sql } from '../src/database/database.ts'
import { type Database, systemClock } from '../src/main.ts'
import { findHolder } from '../src/partners/api-keys.ts'
import { listPartners } from '../src/partners/partners.ts'
import { seedDemo } from '../src/sandbox/demo.ts'

/**
 * Seeds an empty sandbox with the demo partner and returns its API key. The database holds only the key's hash, so with the
 * embedded PostgreSQL the key is kept in a file next to the data, and every start can print the same example request.
 * @returns undefined if the key is unknown or no longer valid
 */
export async function sandboxKey({ db, dataDir }: Database, log: Logger): Promise<string | undefined> {
  return await withSeedLock(db, async () => {
    if ((await listPartners(db)).length === 0) log.info('adding demo data')
    const seeded = await seedDemo(db, systemClock())
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

// Two concurrent first starts must create one demo partner, and the second must find the key that the first wrote.
async function withSeedLock<T>(db: Db, work: () => Promise<T>): Promise<T> {
  return await db.transaction().execute(async tx => {
    await sql`set local lock_timeout = '10s'`.execute(tx)
    // The lock's transaction is idle while another one seeds, which takes a busy machine longer than a request may.
    await sql`set local idle_in_transaction_session_timeout = '60s'`.execute(tx)
    await sql`select pg_advisory_xact_lock(hashtext('openwage sandbox'))`.execute(tx)
    return await work()
  })
}
