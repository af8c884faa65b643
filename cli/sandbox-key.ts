import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Logger } from 'pino'
import { type Db, sql } from '../src/database/database.ts'
import { type Database, systemClock } from '../src/main.ts'
import { findHolder } from '../src/partners/api-keys.ts'
import { listPartners } from '../src/partners/partners.ts'
import { seedDemo } from '../src/sandbox/demo.ts'

/**
 * Fills an empty sandbox with the demo partner, and tells its API key. A database holds a key's hash only; so on the
 * embedded PostgreSQL the key is kept beside the data, for every start to print the same request.
 * @returns undefined when the key is not known (any more), or no longer valid
 */
export async function sandboxKey({ db, dataDir }: Database, log: Logger): Promise<string | undefined> {
  return await inTurn(db, async () => {
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

// Two first starts at once must make one demo partner, and the later one must find the key of the earlier.
async function inTurn<T>(db: Db, work: () => Promise<T>): Promise<T> {
  return await db.transaction().execute(async tx => {
    await sql`set local lock_timeout = '10s'`.execute(tx)
    await sql`select pg_advisory_xact_lock(hashtext('openwage sandbox'))`.execute(tx)
    return await work()
  })
}
