import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { RawBuilder } from 'kysely'
import { SettingsProblem } from '../config.ts'
import { type Db, originOf, type Reader, sql } from '../database/database.ts'
import { keyBytes } from './aes-gcm.ts'
import { holdSealer } from './held.ts'
import { KeyLease } from './key-lease.ts'
import { type KeySource, openProvider, placeOf } from './key-providers.ts'
import { createKeyFile } from './providers/local-key.ts'
import type { KeyProvider } from './providers/provider.ts'
import { createKeys, type InstallationKey, Sealer } from './sealer.ts'

/** A key of the installation as one provider has wrapped it. */
export type KeyRow = Omit<InstallationKey, 'key'> & { wrapped: Buffer; provider: string }

/**
 * Creates the first installation keys of a database that has none, and the key file if it does not exist. Idempotent. Safe to run
 * from several processes at once.
 * @param db connected as the owner
 * @throws SettingsProblem if the configured key cannot be used
 */
export async function ensureInstallationKey(db: Db, { source, now }: { source: KeySource; now: Date }): Promise<void> {
  if ((await readRows(db)).length > 0) return await markUsed(source, now)
  refuseUsed(source)
  // Before the transaction: the provider may be a service.
  const provider = await createProvider(source)
  const wrapped = await Promise.all(
    createKeys().map(async ({ key, ...each }) => ({ ...each, wrapped: await wrapKey(provider, { ...each, key }) })),
  )
  await db.transaction().execute(async tx => {
    await sql`lock table installation_keys in exclusive mode`.execute(tx)
    if ((await readRows(tx)).length > 0) return
    for (const each of wrapped) await addKey(tx, { ...each, provider: provider.id, now })
    const number = wrapped.find(({ purpose }) => purpose === 'fingerprints')?.number
    await sql`insert into member_fingerprint_key (number) values (${number})
              on conflict (one) do update set number = excluded.number`.execute(tx)
  })
  await markUsed(source, now)
}

/** The file beside the key file that says that the key has sealed a database. */
const markOf = (keyFile: string) => `${keyFile}.used`

/** @throws SettingsProblem if the key has sealed a database: an empty one in its place would look like the loss of all data */
export function refuseUsed(source: KeySource): void {
  if (!('file' in source) || !existsSync(source.file) || !existsSync(markOf(source.file))) return
  throw new SettingsProblem(
    `The database is empty, but the key ${source.file} belongs to a database with data; restore that (docs/operations/backups.md), or check ` +
      `where the data is. To begin anew without it, move the folder ${path.dirname(source.file)} away`,
  )
}

/** Best effort: the folder of the key may be read-only. */
async function markUsed(source: KeySource, now: Date): Promise<void> {
  if (!('file' in source) || !existsSync(source.file)) return
  const text = `This key belongs to a database with data, at least since ${now.toISOString()}. A start with an empty database refuses it.\n`
  await writeFile(markOf(source.file), text, { flag: 'wx', mode: 0o600 }).catch(() => undefined)
}

/** @throws SettingsProblem if the database was restored without the dump of its keys: new ones would open nothing, and stand in the way */
export async function requireRestoredKeys(db: Reader): Promise<void> {
  const { rows } = await sql`
    select where not exists (select from installation_keys)
       and (exists (select from partners) or exists (select from users))`.execute(db)
  if (rows.length > 0)
    throw new SettingsProblem(
      'The database has partners or users, but no key of the installation; restore the dump of its keys (docs/operations/backups.md), ' +
        'then try again. New keys could not open what is sealed, so none are created',
    )
}

/** @throws SettingsProblem after a restore with keys from the other side of a rotation: no member would be found or be unique */
async function requireKeyOfFingerprints(db: Reader): Promise<void> {
  const { rows } = await sql`
    select from member_fingerprint_key where number not in (select number from installation_key_uses)`.execute(db)
  if (rows.length > 0)
    throw new SettingsProblem(
      'The members were dumped before a rotation of the key of fingerprints, and the keys after it, or the other way round; ' +
        'restore a dump of the keys from the same side of the rotation (docs/operations/backups.md)',
    )
}

/** Wraps a key together with its number, so that two stored keys cannot be swapped. */
export async function wrapKey(
  provider: KeyProvider,
  { number, key }: Pick<InstallationKey, 'number' | 'key'>,
): Promise<Buffer> {
  return await provider.wrap(Buffer.concat([Buffer.of(number), key]))
}

/** Reverses `wrapKey`. @returns undefined if the provider unwraps something else */
export async function unwrapKey(
  provider: KeyProvider,
  { number, wrapped }: Pick<KeyRow, 'number' | 'wrapped'>,
): Promise<Buffer | undefined> {
  const unwrapped = await provider.unwrap(wrapped)
  return unwrapped.length === keyBytes + 1 && unwrapped[0] === number ? unwrapped.subarray(1) : undefined
}

/** Stores a key, wrapped. */
export async function addKey(
  tx: Reader,
  { number, purpose, stage, wrapped, provider, now }: KeyRow & { now: Date },
): Promise<void> {
  await sql`insert into installation_key_uses (number, purpose, stage) values (${number}, ${purpose}, ${stage})`.execute(
    tx,
  )
  await sql`
    insert into installation_keys (number, provider, wrapped, created_at)
    values (${number}, ${provider}, ${wrapped}, ${now})`.execute(tx)
}

/**
 * Opens the keys of the installation, holds them for the database (see `sealerOf`), and reads them again every few seconds until the
 * database is closed, since a rotation may add one.
 * @param options.onStale called when the keys have not been read for 30 seconds, and nothing can be sealed
 * @throws SettingsProblem if the configured key is missing, or belongs to another database
 */
export async function openSealer(
  db: Reader,
  source: KeySource,
  { onStale = () => undefined, lease = new KeyLease() }: { onStale?: (error: unknown) => void; lease?: KeyLease } = {},
): Promise<Sealer> {
  const { provider, keys } = await openKeys(db, source)
  const sealer = new Sealer(keys, lease)
  holdSealer(db, sealer)
  const known = new Map(keys.map(({ number, key }) => [number, key]))
  const readAgain = async () => sealer.learn(await unwrapAll(await readRows(db), { provider, source, known }))
  void lease.keep(readAgain, { signal: originOf(db).closed, onStale })
  return sealer
}

/**
 * Unwraps the keys of the installation.
 * @throws SettingsProblem if the provider's key is missing, or belongs to another database
 */
export async function openKeys(
  db: Reader,
  source: KeySource,
): Promise<{ provider: KeyProvider; keys: InstallationKey[] }> {
  const rows = await readRows(db)
  if (rows.length === 0)
    throw new SettingsProblem(
      'The database has no key of the installation; run midmonth migrate, or after a restore, restore the dump of its keys (docs/operations/backups.md)',
    )
  const provider = await openProvider(source)
  if (provider === undefined || !rows.some(row => row.provider === provider.id))
    throw new SettingsProblem(missingKey(provider, { rows, source }))
  await requireKeyOfFingerprints(db)
  return { provider, keys: await unwrapAll(rows, { provider, source, known: new Map() }) }
}

/**
 * Unwraps the keys, each once: a provider may be a slow server. Leaves out a key that a rotation has added, and that the provider has not
 * wrapped: nothing is sealed with it before it is copied.
 * @param options.known keys by number that were unwrapped before, to which the others are added
 * @throws SettingsProblem if the provider has not wrapped all others
 */
async function unwrapAll(
  rows: KeyRow[],
  { provider, source, known }: { provider: KeyProvider; source: KeySource; known: Map<number, Buffer> },
): Promise<InstallationKey[]> {
  const keys = new Map(rows.map(row => [row.number, row]))
  for (const row of rows) if (row.provider === provider.id) keys.set(row.number, row)
  for (const { number, stage, provider: wrappedBy } of [...keys.values()])
    if (stage === 'known' && wrappedBy !== provider.id && !known.has(number)) keys.delete(number)
  return await Promise.all(
    [...keys.values()].map(async ({ number, purpose, stage, provider: wrappedBy, wrapped }) => {
      if (wrappedBy !== provider.id && !known.has(number))
        throw new SettingsProblem(
          `The key ${provider.id} at ${placeOf(source)} opens only earlier keys of this installation; use the key ` +
            `${wrappedBy}, or run midmonth installation-key copy with it first`,
        )
      const key = known.get(number) ?? (await unwrapKey(provider, { number, wrapped }))
      if (key === undefined)
        throw new SettingsProblem(
          `The stored key ${number} of the installation was changed: ${placeOf(source)} unwraps it to something else`,
        )
      known.set(number, key)
      return { number, purpose, stage, key }
    }),
  )
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

/** Reads the stored keys, each as often as it is wrapped. */
export async function readRows(db: Reader): Promise<KeyRow[]> {
  const { rows } = await sql<KeyRow>`
    select k.number, u.purpose, u.stage, k.wrapped, k.provider
      from installation_keys k join installation_key_uses u on u.number = k.number
     order by k.number, k.provider`.execute(db)
  return rows
}

/** Whether a sealed value names a key that the database still has. The second byte of a value is the number of its key. */
export function sealedWithKnownKey(column: string): RawBuilder<boolean> {
  return sql`get_byte(${sql.ref(column)}, 1) = any(array(select number from installation_keys))`
}
