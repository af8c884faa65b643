import { type Reader, sql, type Tx } from '../database/database.ts'
import { DataKey, newKey } from '../sealing/data-key.ts'
import { sealerOf } from '../sealing/held.ts'
import type { SealedTable } from '../sealing/rewrap.ts'
import type { OfImport } from './rules.ts'

/** The key of an import, which seals its commands, and each row as the one with its number. */
export type ImportKey = DataKey<'command' | `row ${number}`>

/** The table with the keys of imports. */
export const importKeysTable: SealedTable = {
  table: 'member_import_keys',
  key: [
    ['partner_id', 'text'],
    ['import_id', 'text'],
  ],
  columns: [{ name: 'wrapped', kind: 'import-key' }],
  owner: "partner_id || ' ' || import_id",
}

/** Creates the key of a new import. @returns its bytes, with which another thread can seal */
export async function createImportKey(tx: Tx, ofImport: OfImport): Promise<Buffer> {
  const key = newKey()
  const wrapped = sealerOf(tx).seal(key, wrapping(ofImport))
  await tx
    .insertInto('memberImportKeys')
    .values({ ...ofImport, wrapped, fingerprintKey: sealerOf(tx).fingerprintKeyNumber })
    .execute()
  return key
}

/** Opens the key of an import whose rows and commands are kept. */
export async function openImportKey(db: Reader, { partnerId, importId }: OfImport): Promise<ImportKey> {
  const { wrapped } = await db
    .selectFrom('memberImportKeys')
    .select('wrapped')
    .where('partnerId', '=', partnerId)
    .where('importId', '=', importId)
    .executeTakeFirstOrThrow()
  return importKey(sealerOf(db).open(wrapped, wrapping({ partnerId, importId })), { partnerId, importId })
}

export function importKey(key: Buffer, ofImport: OfImport): ImportKey {
  return new DataKey(key, nameOf(ofImport))
}

/** Destroys the key of an import whose rows and commands were deleted. */
export async function destroyImportKey(tx: Tx, { partnerId, importId }: OfImport): Promise<void> {
  await sql`delete from member_import_keys where partner_id = ${partnerId} and import_id = ${importId}`.execute(tx)
}

const wrapping = (ofImport: OfImport) => ({ kind: 'import-key' as const, owner: nameOf(ofImport) })

function nameOf({ partnerId, importId }: OfImport): string {
  return `${partnerId} ${importId}`
}
