import { type Reader, sql } from '../database/database.ts'
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
      // What a slice joins and groups fits into the memory. Members are read in the order of an index, which is in the cache.
      await sql`
        select set_config('statement_timeout', '0', true), set_config('work_mem', '64MB', true),
               set_config('random_page_cost', '1.1', true)`.execute(tx)
      return await work(tx)
    })
}

// A snapshot of this age delays vacuum by less than autovacuum's own pauses.
const stepMs = { short: 1_000, long: 5_000 }

/** The size of the next step: twice as large after a short one, and half after a long one. */
async function paced<T>(size: number, work: () => Promise<T>): Promise<{ result: T; next: number }> {
  const startMs = performance.now()
  const result = await work()
  const tookMs = performance.now() - startMs
  const next = tookMs < stepMs.short ? size * 2 : tookMs > stepMs.long ? Math.ceil(size / 2) : size
  return { result, next }
}

const hourMs = 60 * 60_000

/** Walks through the transfers of the partners of a span by time, in snapshots of some seconds. */
export async function walkTimes(
  db: Reader,
  span: Span,
  work: (db: Reader, step: Span) => Promise<void>,
): Promise<void> {
  const { first, last } = await inSnapshot(db, reader => timesOf(reader, span))
  let step: Span = { ...span, to: span.from ?? first }
  for (let hours = 24; ; ) {
    if (step.from !== step.to) hours = (await paced(hours, () => inSnapshot(db, reader => work(reader, step)))).next
    if (step.to === null) return
    const to = new Date(step.to.getTime() + hours * hourMs)
    step = { ...span, from: step.to, to: to > last ? null : to }
  }
}

/** When the first and the last transfer of the partners were posted. */
async function timesOf(db: Reader, { partnerIds }: Span): Promise<{ first: Date; last: Date }> {
  const { rows } = await sql<{ first: Date | null; last: Date | null }>`
    select min(first.created_at) as first, max(last.created_at) as last
      from unnest(${partnerIds}::text[]) as p (id)
     cross join lateral (select created_at from ledger_transfers t where t.partner_id = p.id order by t.id limit 1) first
     cross join lateral (select created_at from ledger_transfers t where t.partner_id = p.id order by t.id desc limit 1) last`.execute(
    db,
  )
  const { first, last } = rows[0] ?? {}
  return { first: first ?? new Date(0), last: last ?? new Date(0) }
}

/** Walks through the members of the partners of a span, in snapshots of some seconds. */
export async function walkMembers(
  db: Reader,
  { partnerIds, from }: Span,
  work: (db: Reader, range: MemberRange) => Promise<void>,
): Promise<void> {
  let after: Key | null = null
  for (let count = 1_000; ; ) {
    const range: Omit<MemberRange, 'to'> = { partnerIds, from, after }
    const { result, next } = await paced(count, () =>
      inSnapshot(db, async reader => {
        const to = await findMember(reader, range, count)
        await work(reader, { ...range, to })
        return to
      }),
    )
    if (result === null) return
    after = result
    count = next
  }
}

/** Finds the member that is a number of balances after the first of a range, or null beyond the last. */
export async function findMember(db: Reader, range: Omit<MemberRange, 'to'>, count: number): Promise<Key | null> {
  const { rows } = await sql<Key>`
    select b.partner_id, b.member_id as id from ledger_balances b where ${inMembers('b', { ...range, to: null })}
     order by b.partner_id, b.member_id offset ${count} limit 1`.execute(db)
  return rows[0] ?? null
}

/** Walks through rows of one kind, in snapshots of some seconds. */
export async function walkKeys(
  db: Reader,
  keys: Key[],
  work: (db: Reader, keys: Key[]) => Promise<void>,
): Promise<void> {
  for (let done = 0, count = 1; done < keys.length; ) {
    const chunk = keys.slice(done, done + count)
    done += chunk.length
    count = Math.min((await paced(count, () => inSnapshot(db, reader => work(reader, chunk)))).next, 10_000)
  }
}
