import { type Db, lanesOf, type Reader, sql } from '../database/database.ts'
import { namingPartner } from '../database/one-partner.ts'
import type { Sealed, Sealer } from './sealer.ts'

/** Sealed columns of a table, in whose slice this is defined. */
export type SealedTable = {
  table: string
  /** The primary key, with its types: by which the table is read in parts. */
  key: readonly (readonly [column: string, type: 'text' | 'integer' | 'date' | 'bytea'])[]
  columns: readonly { name: string; kind: Sealed['kind'] }[]
  /** SQL of the owner that the values name. */
  owner: string
}

// A chunk locks its rows for some hundredths of a second. Staged records of banks are hundreds of kilobytes each.
const atOnce = { rows: 500, bytes: 4 * 1024 * 1024 }

/**
 * Seals the values of a table again that are not sealed with the current key. Safe to end at any point and to repeat. Rows that are
 * locked are left for the next time. A value that changes in the meantime is left as it is.
 * @returns how many rows were rewrapped
 */
export async function rewrap(
  db: Db,
  { table, sealer, onRead }: { table: SealedTable; sealer: Sealer; onRead: (count: number) => void },
): Promise<number> {
  let count = 0
  for (let after: unknown[] | undefined; ; ) {
    const rows = await readChunk(db, table, after)
    const last = rows.at(-1)
    if (last === undefined) return count
    after = table.key.map((_, index) => last[`k${index}`])
    const old = rows.filter(row => valuesIn(table, row).some(value => value !== null && !sealer.isCurrent(value)))
    for (const together of apart(db, table, old)) count += await writeChunk(db, table, { rows: together, sealer })
    onRead(rows.length)
  }
}

/** Whether a value of the table is sealed with a key of these numbers. Reads the whole table. */
export async function namesKey(
  db: Reader,
  { table, columns }: SealedTable,
  numbers: readonly number[],
): Promise<boolean> {
  const named = columns.map(({ name }) => sql`get_byte(${sql.ref(name)}, 1) = any(${numbers}::integer[])`)
  const { rows } = await sql`select from ${sql.ref(table)} where ${sql.join(named, sql` or `)} limit 1`.execute(db)
  return rows.length > 0
}

type Row = Record<string, unknown> & { owner: string }

/** Divides rows into those that one statement can write: on nodes, those of one partner. */
function apart(db: Db, table: SealedTable, rows: Row[]): Row[][] {
  const isApart = lanesOf(db) === 'partner' && isOfPartners(table)
  return [...Map.groupBy(rows, row => (isApart ? row.k0 : null)).values()]
}

function isOfPartners({ key }: SealedTable): boolean {
  return key[0]?.[0] === 'partner_id'
}

/** Reads rows until they have the bytes of a chunk, at least one. */
async function readChunk(db: Db, table: SealedTable, after: unknown[] | undefined): Promise<Row[]> {
  const keys = sql.join(table.key.map(([column]) => sql.ref(column)))
  const beyond =
    after === undefined
      ? sql``
      : sql`where (${keys}) > (${sql.join(table.key.map(([, type], index) => sql`${after[index]}::${sql.raw(type)}`))})`
  const selected = sql.join([
    ...table.key.map(([column], index) => sql`${sql.ref(column)} as ${sql.ref(`k${index}`)}`),
    ...table.columns.map(({ name }, index) => sql`${sql.ref(name)} as ${sql.ref(`v${index}`)}`),
  ])
  const bytes = sql.join(
    table.columns.map(({ name }) => sql`coalesce(octet_length(${sql.ref(name)}), 0)`),
    sql` + `,
  )
  // The length of a large value is known without reading the value.
  const { rows } = await sql<Row>`
    select ${selected}, owner
      from (select *, sum(${bytes}) over (order by ${keys} rows unbounded preceding) - (${bytes}) as bytes_before
              from (select *, ${sql.raw(table.owner)} as owner
                      from ${sql.ref(table.table)} ${beyond} order by ${keys} limit ${atOnce.rows}) next) chunk
     where bytes_before < ${atOnce.bytes} order by ${keys}`.execute(db)
  return rows
}

async function writeChunk(
  db: Db,
  table: SealedTable,
  { rows, sealer }: { rows: Row[]; sealer: Sealer },
): Promise<number> {
  const { key, columns } = table
  const again = (row: Row, index: number, kind: Sealed['kind']) => {
    const value = valueAt(row, index)
    if (value === null || sealer.isCurrent(value)) return value
    const sealed = { kind, owner: row.owner }
    return sealer.seal(sealer.open(value, sealed), sealed)
  }
  const lists = sql.join([
    ...key.map(([, type], index) => sql`${rows.map(row => row[`k${index}`])}::${sql.raw(type)}[]`),
    ...columns.map((_, index) => sql`${rows.map(row => valueAt(row, index))}::bytea[]`),
    ...columns.map(({ kind }, index) => sql`${rows.map(row => again(row, index, kind))}::bytea[]`),
  ])
  const names = sql.raw(
    [...key.map((_, i) => `k${i}`), ...columns.map((_, i) => `v${i}`), ...columns.map((_, i) => `w${i}`)].join(', '),
  )
  const isOnNode = isOfPartners(table) ? namingPartner(db, String(rows[0]?.k0)) : sql``
  const matches = key.map(([column], index) => `t.${column} = n.k${index}`).join(' and ')
  const isRow = sql`${sql.raw(matches)} ${isOnNode}`
  const isFree = sql.raw(key.map((_, index) => `free.k${index} = n.k${index}`).join(' and '))
  const set = sql.raw(
    columns.map(({ name }, i) => `${name} = case when t.${name} = n.v${i} then n.w${i} else t.${name} end`).join(', '),
  )
  const { numAffectedRows = 0n } = await sql`
    with n as materialized (select * from unnest(${lists}) as n (${names})),
         free as materialized (select ${sql.raw(key.map(([column], i) => `t.${column} as k${i}`).join(', '))}
                                 from n join ${sql.ref(table.table)} t on ${isRow} for no key update of t skip locked)
    update ${sql.ref(table.table)} t set ${set} from n join free on ${isFree} where ${isRow}`.execute(db)
  return Number(numAffectedRows)
}

function valuesIn({ columns }: SealedTable, row: Row): (Buffer | null)[] {
  return columns.map((_, index) => valueAt(row, index))
}

function valueAt(row: Row, index: number): Buffer | null {
  const value = row[`v${index}`]
  return value instanceof Buffer ? value : null
}
