import { type Db, type Reader, sql } from '../../database/database.ts'
import { addDays } from '../../kernel/time.ts'
import { newKey } from '../../sealing/data-key.ts'
import { sealerOf } from '../../sealing/held.ts'
import type { SealedTable } from '../../sealing/rewrap.ts'
import type { Sealed } from '../../sealing/sealer.ts'
import type { Old } from '../../worker/task.ts'
import { type ArchiveDay, type SealFile, sealedFile } from '../delivery/sealed-file.ts'

// Files of banks name payers and payees. The archive of a rail keeps them sealed with a key of the day, which is destroyed at the end of their
// retention: no copy of the archive can then be opened.

// A backup that is restored within so many days has the keys of the files that arrived after it.
const daysAhead = 40

/** Makes the keys of a day and of the next 40, before the files arrive: a file of the inbox is deleted once it is archived. */
export async function prepareArchiveKeys(db: Db, { rail, day }: ArchiveDay): Promise<void> {
  const made = await db
    .selectFrom('bankArchiveKeys')
    .select('day')
    .where('rail', '=', rail)
    .where('day', '>=', day)
    .execute()
  const days = new Set(Array.from({ length: daysAhead + 1 }, (_, index) => addDays(day, index)))
  for (const missing of days.difference(new Set(made.map(key => key.day))))
    await ensureArchiveKey(db, { rail, day: missing })
}

/** Seals files for the archive of a day. */
export function sealFor(db: Db, of: ArchiveDay): SealFile {
  return async function* (bytes) {
    yield* sealedFile(bytes, { ...of, key: await ensureArchiveKey(db, of) })
  }
}

async function ensureArchiveKey(db: Db, { rail, day }: ArchiveDay): Promise<Buffer> {
  await sql`
    insert into bank_archive_keys (rail, day, key)
    values (${rail}, ${day}, ${sealerOf(db).seal(newKey(), contextOf({ rail, day }))}) on conflict (rail, day) do nothing`.execute(
    db,
  )
  const key = await findArchiveKey(db, { rail, day })
  if (key === undefined)
    throw new Error(`The key of the archive of ${rail} on ${day} has just been created, but is gone`)
  return key
}

/** @returns undefined once it was destroyed */
export async function findArchiveKey(db: Reader, of: ArchiveDay): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('bankArchiveKeys')
    .select('key')
    .where('rail', '=', of.rail)
    .where('day', '=', of.day)
    .executeTakeFirst()
  return row && sealerOf(db).open(row.key, contextOf(of))
}

/** SQL that finds the keys of days that began before an instant. */
export const oldArchiveKeys = ({ before, countMax }: Old) => sql`
  select rail, day from bank_archive_keys where day <= (${before}::timestamptz at time zone 'UTC')::date order by day limit ${countMax}`

/** @returns how many were destroyed */
export async function removeOldArchiveKeys(db: Db, old: Old): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from bank_archive_keys k using (${oldArchiveKeys(old)}) old
     where k.rail = old.rail and k.day = old.day`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

/** For rotating the installation's key. */
export const archiveKeysTable: SealedTable = {
  table: 'bank_archive_keys',
  key: [
    ['rail', 'text'],
    ['day', 'date'],
  ],
  columns: [{ name: 'key', kind: 'archive-key' }],
  owner: `rail || ' ' || to_char(day, 'YYYY-MM-DD')`,
}

function contextOf({ rail, day }: ArchiveDay): Sealed {
  return { kind: 'archive-key', owner: `${rail} ${day}` }
}
