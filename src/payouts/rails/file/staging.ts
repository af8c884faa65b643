import { type Reader, sql, type Tx } from '../../../database/database.ts'
import type { BankFileHead } from '../bank-files.ts'
import type { Keyed } from './record-keys.ts'

// The records of a file wait here between being read and being applied, so that a file is checked whole before any of it is
// applied, and a killed import goes on where it stopped.

/** A record with its turn: steps follow each other, and the records of one step are applied partner by partner. */
export type Staged = {
  step: number
  /** Empty if it is about no partner's payment or money. */
  partnerId: string
  /** In the file. */
  place: number
  said: Said
}

/** A record, and the head of the message that it is in. */
export type Said = { head: BankFileHead; record: Keyed }

/** Stages some records of a file. */
export async function stage(tx: Tx, { fileId, staged }: { fileId: string; staged: Staged[] }): Promise<void> {
  await sql`
    insert into staged_bank_records (bank_file_id, step, partner_id, place, record)
    select ${fileId}, step, partner_id, place, record
      from unnest(${staged.map(({ step }) => step)}::integer[], ${staged.map(({ partnerId }) => partnerId)}::text[],
                  ${staged.map(({ place }) => place)}::integer[], ${staged.map(({ said }) => toText(said))}::text[])
        as s (step, partner_id, place, record)`.execute(tx)
}

/** The next records of a file in the order of application. @param after those at and before it are skipped; undefined: none */
export async function readStaged(
  db: Reader,
  { fileId, after, countMax }: { fileId: string; after: Staged | undefined; countMax: number },
): Promise<Staged[]> {
  const { step, partnerId, place } = after ?? { step: -1, partnerId: '', place: -1 }
  const { rows } = await sql<Omit<Staged, 'said'> & { record: string }>`
    select step, partner_id, place, record from staged_bank_records
     where bank_file_id = ${fileId} and (step, partner_id, place) > (${step}, ${partnerId}, ${place})
     order by step, partner_id, place limit ${countMax}`.execute(db)
  return rows.map(({ record, ...turn }) => ({ ...turn, said: fromText(record) }))
}

/** Deletes records of one step and partner that are being applied, and counts them as applied. */
export async function finishStaged(tx: Tx, { fileId, staged }: { fileId: string; staged: Staged[] }): Promise<void> {
  const [first, last] = [staged[0], staged.at(-1)]
  if (first === undefined || last === undefined) return
  await sql`
    with deleted as (
      delete from staged_bank_records
       where bank_file_id = ${fileId} and step = ${first.step} and partner_id = ${first.partnerId}
         and place between ${first.place} and ${last.place}
      returning 1
    )
    update bank_files set applied_count = applied_count + (select count(*) from deleted) where id = ${fileId}`.execute(
    tx,
  )
}

function toText(said: Said): string {
  return JSON.stringify(mapValues(said, value => (typeof value === 'bigint' ? { bigint: `${value}` } : value)))
}

function fromText(text: string): Said {
  return mapValues(JSON.parse(text), value => (isMarked(value) ? BigInt(value.bigint) : value)) as Said
}

function isMarked(value: unknown): value is { bigint: string } {
  return typeof value === 'object' && value !== null && 'bigint' in value
}

/** Copies a value with other leaves. A replacer and a reviver of JSON take three times as long. */
function mapValues(value: unknown, leaf: (value: unknown) => unknown): unknown {
  const mapped = leaf(value)
  if (mapped !== value || typeof value !== 'object' || value === null || value instanceof Date) return mapped
  if (Array.isArray(value)) return value.map(each => mapValues(each, leaf))
  const copy: Record<string, unknown> = {}
  for (const [key, each] of Object.entries(value)) copy[key] = mapValues(each, leaf)
  return copy
}
