import { type Reader, sql, type Tx } from '../../database/database.ts'
import { sealerOf } from '../../sealing/held.ts'
import type { SealedTable } from '../../sealing/rewrap.ts'
import type { BankFileHead } from '../formats/bank-files.ts'
import type { Keyed } from './record-keys.ts'

// The records of a file wait here between being read and being applied, so that a file is checked whole before any of it is
// applied, and a killed import continues where it stopped.

/** The turn of records: steps follow each other, and the records of one step are applied partner by partner. */
type Turn = {
  step: number
  /** Empty if the records are not about a partner's payment or money. */
  partnerId: string
  /** The position in the file; the first record's if there are several. */
  place: number
}

/** A record, and the head of the message that it is in. */
export type Said = { head: BankFileHead; record: Keyed }

/** A record with its turn. */
export type Staged = Turn & { said: Said }

/** Records of one message with the same turn. */
export type Block = Turn & { head: BankFileHead; records: Keyed[] }

// The records of a block, and of all blocks that are read at once.
const recordsMax = 1_000

/** Stages some records of a file, in blocks of up to 1,000. */
export async function stage(tx: Tx, { fileId, staged }: { fileId: string; staged: Staged[] }): Promise<void> {
  if (staged.length === 0) return
  const blocks = inBlocks(staged)
  const sealer = sealerOf(tx)
  // Texts without line breaks: as an array, every quotation mark in them would be escaped.
  const lines = (of: (block: Block) => string) => blocks.map(of).join('\n')
  const sealed = ({ records }: Block) =>
    sealer.seal(toText(records), { kind: 'bank-records', owner: fileId }).toString('hex')
  await sql`
    insert into staged_bank_records (bank_file_id, step, partner_id, place, record_count, head, records)
    select ${fileId}, step, partner_id, place, record_count, head, decode(records, 'hex')
      from rows from (unnest(${blocks.map(({ step }) => step)}::integer[]), unnest(${blocks.map(({ partnerId }) => partnerId)}::text[]),
                      unnest(${blocks.map(({ place }) => place)}::integer[]),
                      unnest(${blocks.map(({ records }) => records.length)}::integer[]),
                      string_to_table(${lines(({ head }) => toText(head))}, E'\n'), string_to_table(${lines(sealed)}, E'\n'))
        as s (step, partner_id, place, record_count, head, records)`.execute(tx)
}

function inBlocks(staged: Staged[]): Block[] {
  const blocks: Block[] = []
  const last = new Map<string, Block>()
  for (const { said, ...turn } of staged) {
    const { head, record } = said
    const key = `${turn.step} ${turn.partnerId}`
    const block = last.get(key)
    if (block?.head === head && block.records.length < recordsMax) block.records.push(record)
    else {
      const next = { ...turn, head, records: [record] }
      blocks.push(next)
      last.set(key, next)
    }
  }
  return blocks
}

/** The next up to 1,000 records of a file in the order of application. @param after this block; undefined: from the first */
export async function readStaged(
  db: Reader,
  { fileId, after }: { fileId: string; after: Block | undefined },
): Promise<Block[]> {
  const { step, partnerId, place } = after ?? { step: -1, partnerId: '', place: -1 }
  const { rows } = await sql<Turn & { head: string; records: Buffer }>`
    select step, partner_id, place, head, records
      from (select *, sum(record_count) over (order by step, partner_id, place) as count_until
              from (select step, partner_id, place, record_count, head, records from staged_bank_records
                     where bank_file_id = ${fileId} and (step, partner_id, place) > (${step}, ${partnerId}, ${place})
                     order by step, partner_id, place limit ${recordsMax}) next_ones) counted
     where count_until <= ${recordsMax}
     order by step, partner_id, place`.execute(db)
  const opened = (records: Buffer) => sealerOf(db).open(records, { kind: 'bank-records', owner: fileId }).toString()
  return rows.map(({ head, records, ...turn }) => ({
    ...turn,
    head: fromText(head),
    records: fromText(opened(records)),
  }))
}

/** Deletes blocks of one step and partner that are being applied, and counts their records as applied. */
export async function finishStaged(tx: Tx, { fileId, blocks }: { fileId: string; blocks: Block[] }): Promise<void> {
  const [first, last] = [blocks[0], blocks.at(-1)]
  if (first === undefined || last === undefined) return
  await sql`
    with deleted as (
      delete from staged_bank_records
       where bank_file_id = ${fileId} and step = ${first.step} and partner_id = ${first.partnerId}
         and place between ${first.place} and ${last.place}
      returning record_count
    )
    update bank_files set applied_count = applied_count + (select coalesce(sum(record_count), 0) from deleted)
     where id = ${fileId}`.execute(tx)
}

function toText(value: unknown): string {
  return JSON.stringify(withMarks(value))
}

function fromText<T>(text: string): T {
  const value: T = JSON.parse(text)
  restoreMarked(value)
  return value
}

// JSON has no bigint. A replacer and a reviver of JSON take three times as long.

function withMarks(value: unknown): unknown {
  if (typeof value === 'bigint') return { bigint: `${value}` }
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (Array.isArray(value)) return value.map(withMarks)
  const copy: Record<string, unknown> = {}
  for (const [key, each] of Object.entries(value)) copy[key] = withMarks(each)
  return copy
}

function restoreMarked(value: unknown): void {
  if (!isObject(value)) return
  for (const key in value) {
    const each = value[key]
    if (!isObject(each)) continue
    if (typeof each.bigint === 'string') value[key] = BigInt(each.bigint)
    else restoreMarked(each)
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** For rotating the installation's key. */
export const stagedRecordsTable: SealedTable = {
  table: 'staged_bank_records',
  key: [
    ['bank_file_id', 'text'],
    ['step', 'integer'],
    ['partner_id', 'text'],
    ['place', 'integer'],
  ],
  columns: [{ name: 'records', kind: 'bank-records' }],
  owner: 'bank_file_id',
}
