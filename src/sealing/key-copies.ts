import { SettingsProblem } from '../config.ts'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { createProvider, type KeyRow, openKeys, readRows, unwrapKey, wrapKey } from './installation-keys.ts'
import type { KeySource } from './key-providers.ts'
import type { KeyProvider } from './providers/provider.ts'
import type { InstallationKey } from './sealer.ts'

/** The keys of the installation as one provider has wrapped them. */
export type KeyCopy = {
  provider: string
  /** The numbers of the keys that the provider can open. */
  numbers: number[]
  /** Whether these are all keys of the installation. A copy that is older than the latest rotation lacks the new key. */
  isComplete: boolean
  createdAt: Date
}

/** Lists the providers that can open this database, the earliest first. */
export async function listCopies(db: Reader): Promise<KeyCopy[]> {
  const { rows } = await sql<KeyCopy>`
    select provider, array_agg(number order by number) as numbers, min(created_at) as created_at,
           count(*) = (select count(distinct number) from installation_keys) as is_complete
      from installation_keys group by provider order by created_at, provider`.execute(db)
  return rows
}

/**
 * Wraps the keys of the installation with the key of another provider too, so that either opens the database. Running processes have
 * unwrapped the keys and notice nothing. Idempotent, and repeated after a rotation. A copy that the other key does not open is replaced:
 * it is another key with the same id, such as one in another Vault, and if that id is also the configured key's, only the other opens
 * the database from then on.
 * @param db connected as the owner
 * @param record runs in the same transaction
 * @throws SettingsProblem if one of the providers cannot be used
 */
export async function copyKeys(
  db: Db,
  {
    from,
    to,
    now,
    record,
  }: { from: KeySource; to: KeySource; now: Date; record: (tx: Tx, id: string) => Promise<void> },
): Promise<{ from: string; to: string; hasChanged: boolean }> {
  const { provider, keys } = await openKeys(db, from)
  const other = await createProvider(to)
  const stored = (await readRows(db)).filter(row => row.provider === other.id)
  const lacking = await Promise.all(
    keys.map(async ({ number, key }) => {
      const row = stored.find(each => each.number === number)
      if (row !== undefined && (await opens(other, row, key))) return []
      return [{ number, wrapped: await wrapSurely(other, { number, key }) }]
    }),
  )
  const copies = lacking.flat()
  if (other.id === provider.id && copies.length === 0)
    throw new SettingsProblem(`Both settings name the key ${other.id}, so nothing needs to be copied`)
  const hasChanged = await db.transaction().execute(async tx => {
    await sql`lock table installation_keys in exclusive mode`.execute(tx)
    let added = 0n
    for (const { number, wrapped } of copies) {
      // A key that a rotation has removed since is not added again.
      const { numAffectedRows } = await sql`
        insert into installation_keys (number, provider, wrapped, created_at)
        select number, ${other.id}, ${wrapped}, ${now} from installation_keys
         where number = ${number} and provider = ${provider.id}
            on conflict (number, provider) do update set wrapped = excluded.wrapped`.execute(tx)
      added += numAffectedRows ?? 0n
    }
    if (added > 0n) await record(tx, other.id)
    return added > 0n
  })
  return { from: provider.id, to: other.id, hasChanged }
}

/**
 * Wraps the keys again with the configured key. A key service may have rotated its own key since, and need not open forever what an
 * earlier version has wrapped. Idempotent.
 * @param db connected as the owner
 */
export async function wrapAgain(db: Reader, source: KeySource): Promise<void> {
  const provider = await createProvider(source)
  for (const { number, provider: wrappedBy, wrapped } of await readRows(db)) {
    if (wrappedBy !== provider.id) continue
    const key = await unwrapKey(provider, { number, wrapped })
    if (key === undefined) throw new SettingsProblem(`The key ${provider.id} does not open the stored key ${number}`)
    await sql`
      update installation_keys set wrapped = ${await wrapSurely(provider, { number, key })}
       where number = ${number} and provider = ${provider.id} and wrapped = ${wrapped}`.execute(db)
  }
}

async function opens(provider: KeyProvider, row: KeyRow, key: Buffer): Promise<boolean> {
  return await unwrapKey(provider, row).then(
    unwrapped => unwrapped?.equals(key) === true,
    () => false,
  )
}

/** A provider that cannot decrypt what it encrypts would otherwise only be noticed once the old key is gone. */
async function wrapSurely(
  provider: KeyProvider,
  { number, key }: Pick<InstallationKey, 'number' | 'key'>,
): Promise<Buffer> {
  const wrapped = await wrapKey(provider, { number, key })
  if (!(await unwrapKey(provider, { number, wrapped }))?.equals(key))
    throw new SettingsProblem(`The key ${provider.id} does not open what it has wrapped; nothing was changed`)
  return wrapped
}

/**
 * Removes the copy of one provider, whose key then no longer opens this database. Idempotent.
 * @param db connected as the owner
 * @param source opened before, so that a database never loses the last key that is at hand
 * @throws SettingsProblem if the id is of the configured provider
 */
export async function removeCopy(
  db: Db,
  { id, source, record }: { id: string; source: KeySource; record: (tx: Tx) => Promise<void> },
): Promise<{ hasChanged: boolean }> {
  const { provider } = await openKeys(db, source)
  if (provider.id === id)
    throw new SettingsProblem(
      `The key ${id} is the one in use; change the settings to the other key first, and run the command with them`,
    )
  return await db.transaction().execute(async tx => {
    await sql`lock table installation_keys in exclusive mode`.execute(tx)
    if ((await listCopies(tx)).some(copy => copy.provider === provider.id && !copy.isComplete))
      throw new SettingsProblem(
        `The key ${provider.id} does not open the key that a rotation has added; run midmonth installation-key copy for it first`,
      )
    const { numAffectedRows = 0n } = await sql`
      delete from installation_keys where provider = ${id}`.execute(tx)
    if (numAffectedRows > 0n) await record(tx)
    return { hasChanged: numAffectedRows > 0n }
  })
}
