import { lanesOf, type Reader, sql } from '../database/database.ts'
import { inMembers, type Key, type MemberRange, type Span } from './slices.ts'

/**
 * Runs work in a transaction with one snapshot, or in the transaction that `db` is. What is read is the same for all statements, and no
 * other transaction is blocked.
 */
export async function inSnapshot<T>(db: Reader, work: (db: Reader) => Promise<T>): Promise<T> {
  if (db.isTransaction) return await work(db)
  return await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async tx => {
      await allowLongReads(tx)
      return await work(tx)
    })
}

/** Lets a transaction read for as long as it takes. Most of what a rule joins and groups fits into the memory. */
export async function allowLongReads(tx: Reader): Promise<void> {
  await sql`select set_config('statement_timeout', '0', true), set_config('work_mem', '64MB', true)`.execute(tx)
}

// A snapshot of this age delays vacuum by less than autovacuum's own pauses. Long steps are faster: they read whole partitions in order.
// A part that begins while its predecessor's snapshot is young shares it: books that are small need few transactions.
const snapshotMs = { young: 1_000, short: 5_000, long: 20_000 }

/** Takes parts of the books in turn, in snapshots of some seconds. @returns how long the longest snapshot took, in milliseconds */
export async function inSnapshots(db: Reader, parts: Work[]): Promise<number> {
  let longestMs = 0
  const left = parts.values()
  for (let next = left.next(); !next.done; ) {
    const startMs = performance.now()
    await inSnapshot(db, async reader => {
      do {
        await next.value?.(reader)
        next = left.next()
      } while (!next.done && performance.now() - startMs < snapshotMs.young)
    })
    longestMs = Math.max(longestMs, performance.now() - startMs)
  }
  return longestMs
}

/** Takes the parts of a step. @returns the size of the next step, by the snapshot that took longest */
async function takeStep(db: Reader, size: number, parts: Work[]): Promise<number> {
  const longestMs = await inSnapshots(db, parts)
  return longestMs < snapshotMs.short ? size * 2 : longestMs > snapshotMs.long ? Math.ceil(size / 2) : size
}

/** Reads something in one snapshot. */
type Work = (db: Reader) => Promise<void>

// So many transfers are checked by a rule in some seconds.
const stepTransfers = 4_000_000

/** Finds how many steps the first should be one of, from the statistics of the tables, and how many members a step then has. */
async function findFirstStep(db: Reader): Promise<{ steps: number; members: number }> {
  const { rows } = await sql<{ transfers: number; balances: number }>`
    select sum(reltuples) filter (where relname <> 'ledger_balances') as transfers,
           sum(reltuples) filter (where relname = 'ledger_balances') as balances
      from pg_class
     where oid = 'ledger_balances'::regclass or oid in (select inhrelid from pg_inherits where inhparent = 'ledger_transfers'::regclass)`.execute(
    db,
  )
  const { transfers = 0, balances = 0 } = rows[0] ?? {}
  const steps = Math.max(1, transfers / stepTransfers)
  return { steps, members: Math.max(1_000, Math.ceil(balances / steps)) }
}

const hourMs = 60 * 60_000

/** Walks through the transfers of the partners of a span by time. */
export async function walkTimes(db: Reader, span: Span, partsOf: (step: Span) => Work[]): Promise<void> {
  const { steps } = await findFirstStep(db)
  const { first, last } = await inSnapshot(db, reader => timesOf(reader, span))
  let step: Span = { ...span, to: span.from ?? first }
  for (let hours = Math.ceil((last.getTime() - first.getTime()) / hourMs / steps) + 1; ; ) {
    if (step.from !== step.to) hours = await takeStep(db, hours, partsOf(step))
    if (step.to === null) return
    const to = new Date(step.to.getTime() + hours * hourMs)
    step = { ...span, from: step.to, to: to > last ? null : to }
  }
}

/** When the first and the last transfer of the partners were posted. */
async function timesOf(db: Reader, { partnerIds }: Span): Promise<{ first: Date; last: Date }> {
  // Nodes join no list of partners; each reads all its transfers, as the verification does anyway.
  const readTimes =
    lanesOf(db) === 'partner'
      ? sql`select min(created_at) as first, max(created_at) as last from ledger_transfers where partner_id = any(${partnerIds}::text[])`
      : sql`
    select min(first.created_at) as first, max(last.created_at) as last
      from unnest(${partnerIds}::text[]) as p (id)
     cross join lateral (select created_at from ledger_transfers t where t.partner_id = p.id order by t.id limit 1) first
     cross join lateral (select created_at from ledger_transfers t where t.partner_id = p.id order by t.id desc limit 1) last`
  const { rows } = await sql<{ first: Date | null; last: Date | null }>`${readTimes}`.execute(db)
  const { first, last } = rows[0] ?? {}
  return { first: first ?? new Date(0), last: last ?? new Date(0) }
}

/** Walks through the members of the partners of a span. */
export async function walkMembers(
  db: Reader,
  { partnerIds, from }: Span,
  partsOf: (range: MemberRange) => Work[],
): Promise<void> {
  const { members } = await findFirstStep(db)
  let after: Key | null = null
  for (let count = members; ; ) {
    const range: Omit<MemberRange, 'to'> = { partnerIds, from, after }
    const to: Key | null = await findMember(db, range, count)
    count = await takeStep(db, count, partsOf({ ...range, to }))
    if (to === null) return
    after = to
  }
}

/** Finds the member that is a number of balances after the first of a range, or null beyond the last. */
export async function findMember(db: Reader, range: Omit<MemberRange, 'to'>, count: number): Promise<Key | null> {
  const { rows } = await sql<Key>`
    select b.partner_id, b.member_id as id from ledger_balances b where ${inMembers('b', { ...range, to: null })}
     order by b.partner_id, b.member_id offset ${count} limit 1`.execute(db)
  return rows[0] ?? null
}

/** Walks through rows of one kind. */
export async function walkKeys(db: Reader, keys: Key[], partsOf: (keys: Key[]) => Work[]): Promise<void> {
  for (let done = 0, count = 1; done < keys.length; ) {
    const chunk = keys.slice(done, done + count)
    done += chunk.length
    count = Math.min(await takeStep(db, count, partsOf(chunk)), 10_000)
  }
}
