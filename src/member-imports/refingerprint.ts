import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { renewFormerNames } from '../members/former-names.ts'
import { fingerprintColumn, fingerprintColumns, fingerprintsOf } from '../members/sealing.ts'
import { sealerOf } from '../sealing/held.ts'
import { openImportKey } from './import-key.ts'
import { openRow } from './rows.ts'
import type { OfImport } from './rules.ts'

const rowsAtOnce = 1_000

type StoredRow = { row: number; sealed: Buffer; emailFingerprint: Buffer | null; workerIdFingerprint: Buffer | null }

/** Makes the fingerprints of an import's rows with the key that is used now, if another was used when the file was read. Idempotent. */
export async function refingerprint(tx: Tx, { partnerId, importId }: OfImport): Promise<void> {
  const sealer = sealerOf(tx)
  const number = sealer.fingerprintKeyNumber
  const { rows: keys } = await sql`
    select from member_import_keys
     where partner_id = ${partnerId} and import_id = ${importId} and fingerprint_key <> ${number} for update`.execute(
    tx,
  )
  if (keys.length === 0) return
  const key = await openImportKey(tx, { partnerId, importId })
  const assignments = sql.raw(fingerprintColumns.map(name => `${name} = n.${name}`).join(', '))
  for (let after = 0; ; ) {
    const { rows } = await sql<StoredRow>`
      select row, sealed, email_fingerprint, worker_id_fingerprint from member_import_rows
       where partner_id = ${partnerId} and import_id = ${importId} and row > ${after}
       order by row limit ${rowsAtOnce}`.execute(tx)
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.row
    const fingerprints = rows.map(row => fingerprintsOf(sealer, partnerId, openRow(key, row)))
    const renewed = rows.flatMap((row, index) => [
      { old: row.emailFingerprint, renewed: fingerprints[index]?.[fingerprintColumn('email')] },
      { old: row.workerIdFingerprint, renewed: fingerprints[index]?.[fingerprintColumn('workerId')] },
    ])
    await renewFormerNames(tx, { partnerId, renewed })
    const lists = sql.join(fingerprintColumns.map(name => sql`${fingerprints.map(each => each[name])}::bytea[]`))
    await sql`
      update member_import_rows r set ${assignments}
        from unnest(${rows.map(({ row }) => row)}::integer[], ${lists}) as n (row, ${sql.raw(fingerprintColumns.join(', '))})
       where r.partner_id = ${partnerId} and r.import_id = ${importId} and r.row = n.row`.execute(tx)
  }
  await sql`
    update member_import_keys set fingerprint_key = ${number}
     where partner_id = ${partnerId} and import_id = ${importId}`.execute(tx)
}

/** Like `refingerprint`, for every import. */
export async function refingerprintAll(db: Db): Promise<void> {
  for (const ofImport of await listOutdated(db)) await db.transaction().execute(tx => refingerprint(tx, ofImport))
}

async function listOutdated(db: Reader): Promise<OfImport[]> {
  const { rows } = await sql<OfImport>`
    select partner_id, import_id from member_import_keys
     where fingerprint_key <> ${sealerOf(db).fingerprintKeyNumber} order by partner_id, import_id`.execute(db)
  return rows
}
