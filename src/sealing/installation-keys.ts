import { randomBytes } from 'node:crypto'
import { SettingsProblem } from '../config.ts'
import { type Db, type Reader, sql } from '../database/database.ts'
import { keyBytes } from './aes-gcm.ts'
import { holdSealer } from './held.ts'
import { createKeyFile, type KeyProvider, type KeySource, openProvider, placeOf } from './key-providers.ts'
import { type InstallationKey, Sealer } from './sealer.ts'

type KeyRow = { number: number; wrapped: Buffer; provider: string }

/**
 * Creates the first installation key of a database that has none, and the key file if it does not exist. Idempotent. Safe to run
 * from several processes at once, which take turns.
 * @param db connected as the owner
 * @throws SettingsProblem if the configured key cannot be used
 */
export async function ensureInstallationKey(db: Db, { source, now }: { source: KeySource; now: Date }): Promise<void> {
  if ((await readRows(db)).length > 0) return
  await db.transaction().execute(async tx => {
    await sql`lock table installation_keys in exclusive mode`.execute(tx)
    if ((await readRows(tx)).length > 0) return
    const provider = (await openProvider(source)) ?? (await createProvider(source))
    const wrapped = await provider.wrap(randomBytes(keyBytes))
    await sql`
      insert into installation_keys (number, wrapped, provider, created_at)
      values (1, ${wrapped}, ${provider.id}, ${now})`.execute(tx)
  })
}

/**
 * Opens the keys of the installation, and holds them for the database; see `sealerOf`.
 * @throws SettingsProblem if the configured key is missing, or belongs to another database
 */
export async function openSealer(db: Reader, source: KeySource): Promise<Sealer> {
  const [first, ...rest] = await readRows(db)
  if (first === undefined)
    throw new SettingsProblem('The database has no key of the installation; run midmonth migrate')
  const provider = await openProvider(source)
  const fault = faultOf(provider, { rows: [first, ...rest], place: placeOf(source) })
  if (fault !== undefined || provider === undefined) throw new SettingsProblem(fault)
  const unwrap = async ({ number, wrapped }: KeyRow): Promise<InstallationKey> => ({
    number,
    key: await provider.unwrap(wrapped),
  })
  const sealer = new Sealer([await unwrap(first), ...(await Promise.all(rest.map(unwrap)))])
  holdSealer(db, sealer)
  return sealer
}

function faultOf(
  provider: KeyProvider | undefined,
  { rows, place }: { rows: KeyRow[]; place: string },
): string | undefined {
  const expected = rows.find(row => row.provider !== provider?.id)
  if (expected === undefined) return undefined
  const found = provider === undefined ? `${place} does not exist` : `${place} holds the key ${provider.id}`
  return (
    `This database needs the installation’s key ${expected.provider}, but ${found}; restore that key from its backup, or ` +
    'set MIDMONTH_INSTALLATION_KEY_FILE to its path. A new key could not open the sealed values of the database, so none is created'
  )
}

async function createProvider(source: KeySource): Promise<KeyProvider> {
  if ('file' in source) await createKeyFile(source.file)
  const provider = await openProvider(source)
  if (provider === undefined) throw new Error(`${placeOf(source)} has just been created, but does not exist`)
  return provider
}

async function readRows(db: Reader): Promise<KeyRow[]> {
  const { rows } = await sql<KeyRow>`select number, wrapped, provider from installation_keys order by number`.execute(
    db,
  )
  return rows
}
