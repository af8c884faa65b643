import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { SettingsProblem } from '../config.ts'
import { type Db, type Reader, sql } from '../database/database.ts'
import { keyBytes } from './aes-gcm.ts'
import { holdSealer } from './held.ts'
import { type KeySource, openProvider, placeOf } from './key-providers.ts'
import { createKeyFile } from './providers/local-key.ts'
import type { KeyProvider } from './providers/provider.ts'
import { type InstallationKey, Sealer } from './sealer.ts'

/** A key of the installation as one provider has wrapped it. */
type KeyRow = { number: number; wrapped: Buffer; provider: string }

/**
 * Creates the first installation key of a database that has none, and the key file if it does not exist. Idempotent. Safe to run
 * from several processes at once.
 * @param db connected as the owner
 * @throws SettingsProblem if the configured key cannot be used
 */
export async function ensureInstallationKey(db: Db, { source, now }: { source: KeySource; now: Date }): Promise<void> {
  if ((await readRows(db)).length > 0) return
  // Before the transaction: the provider may be a service.
  const provider = await createProvider(source)
  const wrapped = await provider.wrap(randomBytes(keyBytes))
  await db.transaction().execute(async tx => {
    await sql`lock table installation_keys in exclusive mode`.execute(tx)
    await sql`
      insert into installation_keys (number, wrapped, provider, created_at)
      select 1, ${wrapped}, ${provider.id}, ${now}
       where not exists (select from installation_keys)`.execute(tx)
  })
}

/**
 * Opens the keys of the installation, and holds them for the database; see `sealerOf`.
 * @throws SettingsProblem if the configured key is missing, or belongs to another database
 */
export async function openSealer(db: Reader, source: KeySource): Promise<Sealer> {
  const { keys } = await openKeys(db, source)
  const sealer = new Sealer(keys)
  holdSealer(db, sealer)
  return sealer
}

/**
 * Unwraps the keys of the installation.
 * @throws SettingsProblem if the provider's key is missing, or belongs to another database
 */
export async function openKeys(
  db: Reader,
  source: KeySource,
): Promise<{ provider: KeyProvider; keys: [InstallationKey, ...InstallationKey[]] }> {
  const rows = await readRows(db)
  if (rows.length === 0) throw new SettingsProblem('The database has no key of the installation; run midmonth migrate')
  const provider = await openProvider(source)
  const own = rows.filter(row => row.provider === provider?.id)
  const [first, ...rest] = own
  if (provider === undefined || first === undefined) throw new SettingsProblem(missingKey(provider, { rows, source }))
  const uncopied = rows.find(({ number }) => !own.some(row => row.number === number))
  if (uncopied !== undefined)
    throw new SettingsProblem(
      `The key ${provider.id} at ${placeOf(source)} opens only earlier keys of this installation; use the key ` +
        `${uncopied.provider}, or run midmonth installation-key copy with it first`,
    )
  const unwrap = async ({ number, wrapped }: KeyRow): Promise<InstallationKey> => {
    const key = await provider.unwrap(wrapped)
    if (key.length !== keyBytes) throw new SettingsProblem(`${placeOf(source)} unwraps key ${number} to something else`)
    return { number, key }
  }
  return { provider, keys: [await unwrap(first), ...(await Promise.all(rest.map(unwrap)))] }
}

function missingKey(
  provider: KeyProvider | undefined,
  { rows, source }: { rows: KeyRow[]; source: KeySource },
): string {
  const needed = [...new Set(rows.map(row => row.provider))].join(' or ')
  const place = placeOf(source)
  const local = provider === undefined ? `${place} does not exist` : `${place} holds the key ${provider.id}`
  const found = 'key' in source || 'file' in source ? local : `the settings choose ${place}`
  return (
    `This database needs the installation’s key ${needed}, but ${found}; restore that key from its backup, or ` +
    'choose it in the settings (docs/operations/keys.md). A new key could not open the sealed values of the database, so none is created'
  )
}

/** Opens the provider, and creates the key file if it does not exist. */
export async function createProvider(source: KeySource): Promise<KeyProvider> {
  if ('file' in source && !existsSync(source.file)) await createKeyFile(source.file)
  const provider = await openProvider(source)
  if (provider === undefined) throw new Error(`${placeOf(source)} has just been created, but does not exist`)
  return provider
}

async function readRows(db: Reader): Promise<KeyRow[]> {
  const { rows } = await sql<KeyRow>`
    select number, wrapped, provider from installation_keys order by number, provider`.execute(db)
  return rows
}
