import { type Reader, sql } from '../database/database.ts'
import { type Disagreement, rules, sealedAccounts } from './rules.ts'
import { amongKeys, inSpan, type Key, type MemberRange, type Span, transfersIn, unsealedSpans } from './slices.ts'
import { type Check, queriesOf, verifyEach } from './verify.ts'

/** Runs work in a transaction with one snapshot. */
export type InSnapshot = <T>(work: (db: Reader) => Promise<T>) => Promise<T>

/**
 * Recomputes everything: first what the seals cover, in snapshots of some seconds, so that none keeps dead rows from being vacuumed
 * for long; then, in one snapshot, the seals' sums and what is newer. What a seal covers never changes, so the parts fit together
 * whatever is written meanwhile.
 */
export async function verifyAll(inSnapshot: InSnapshot): Promise<Check[]> {
  const found = new Map<string, Disagreement>()
  const note = (name: string, disagreement: Disagreement | undefined | null) => {
    if (disagreement && !found.has(name)) found.set(name, disagreement)
  }
  const spans = (await inSnapshot(db => unsealedSpans(db, {}))).filter(({ from }) => from !== null)
  for (const span of spans) {
    const payments = new SealedPayments()
    await inSnapshot(db => payments.readSeals(db, span.partnerIds))
    await walkTimes(inSnapshot, span, async (db, step) => {
      await payments.add(db, step)
      if (step.from !== null && span.from !== null && step.from >= span.from) return
      for (const rule of rules) {
        const parts = { transfers: [step], movements: [inSpan(step)], fees: [inSpan(step)] }
        for (const query of queriesOf(rule, parts)) note(rule.name, (await query.execute(db)).rows[0])
      }
    })
    note('seals', payments.findBroken())
    for (const partnerId of span.partnerIds) {
      await walkMembers(inSnapshot, partnerId, async (db, range) => note('seals', await brokenMemberSeal(db, range)))
      await walkCycles(inSnapshot, partnerId, async (db, cycle) => {
        for (const rule of rules) {
          for (const query of queriesOf(rule, { cycles: [amongKeys('payCycle', [cycle])] })) {
            note(rule.name, (await query.execute(db)).rows[0])
          }
        }
      })
    }
  }
  return await inSnapshot(async db => {
    for await (const { name, disagreement } of verifyEach(db)) note(name, disagreement)
    return rules.map(({ name, rule }) => ({ name, rule, disagreement: found.get(name) ?? null }))
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

/** Walks through all transfers of the partners of a span by time, with a new step at the start of the span. */
async function walkTimes(
  inSnapshot: InSnapshot,
  { partnerIds, from: newest }: Span,
  work: (db: Reader, step: Span) => Promise<void>,
): Promise<void> {
  const { first, last } = await inSnapshot(db => timesOf(db, partnerIds))
  let step: Span = { partnerIds, from: null, to: first }
  for (let hours = 1; ; ) {
    const { next } = await paced(hours, () => inSnapshot(db => work(db, step)))
    if (step.to === null) return
    hours = next
    const to = new Date(step.to.getTime() + hours * hourMs)
    const isAcross = newest !== null && step.to < newest && newest < to
    step = { partnerIds, from: step.to, to: isAcross ? newest : to > last ? null : to }
  }
}

/** When the first and the last transfer of the partners were posted. */
async function timesOf(db: Reader, partnerIds: string[]): Promise<{ first: Date; last: Date }> {
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

/** Walks through the members of a partner that have a seal. */
async function walkMembers(
  inSnapshot: InSnapshot,
  partnerId: string,
  work: (db: Reader, range: MemberRange) => Promise<void>,
) {
  let after = ''
  for (let count = 500; ; ) {
    const { result: last, next } = await paced(count, () =>
      inSnapshot(async db => {
        const { rows } = await sql<{ last: string | null }>`
          select max(member_id) as last
            from (select member_id from ledger_member_seals
                   where partner_id = ${partnerId} and member_id > ${after} order by member_id limit ${count}) m`.execute(
          db,
        )
        const to = rows[0]?.last ?? null
        if (to !== null) await work(db, { partnerId, after, to })
        return to
      }),
    )
    if (last === null) return
    after = last
    count = next
  }
}

/** Walks through the closed cycles of a partner. */
async function walkCycles(inSnapshot: InSnapshot, partnerId: string, work: (db: Reader, cycle: Key) => Promise<void>) {
  const cycles = await inSnapshot(async db => {
    const { rows } = await sql<Key>`
      select partner_id, id from pay_cycles where partner_id = ${partnerId} and released_at is not null order by start_date`.execute(
      db,
    )
    return rows
  })
  for (const cycle of cycles) await inSnapshot(db => work(db, cycle))
}

/** Finds the first seal of some members that is not the sum of the transfers that it covers, or covers more or fewer than exist. */
async function brokenMemberSeal(db: Reader, { partnerId, after, to }: MemberRange): Promise<Disagreement | undefined> {
  const sumOf = (account: string) => sql`
    coalesce(sum(t.amount) filter (where t.credit = ${sql.lit(account)}), 0)
      - coalesce(sum(t.amount) filter (where t.debit = ${sql.lit(account)}), 0)`
  const { rows } = await sql<Disagreement>`
    with lines as (
      select s.member_id, s.currency, s.pay_cycle_id as sealed_cycle_id, t.pay_cycle_id, t.debit, t.credit, t.amount, t.member_sequence,
             row_number() over member as place,
             sum(case when t.credit = 'member_available' then t.amount when t.debit = 'member_available' then -t.amount else 0 end) over member as available,
             sum(case when t.debit = 'member_owed' then t.amount when t.credit = 'member_owed' then -t.amount else 0 end) over member as owed
        from ledger_member_seals s
        join ledger_transfers t on t.partner_id = s.partner_id and t.member_id = s.member_id and t.currency = s.currency
             and t.member_sequence <= s.sequence
       where s.partner_id = ${partnerId} and s.member_id > ${after} and s.member_id <= ${to}
      window member as (partition by s.member_id, s.currency order by t.member_sequence)
    ), found as (
      select member_id, currency, count(*) as sequence,
             count(*) filter (where place <> member_sequence or available < 0 or owed < 0) as misplaced,
             coalesce(sum(case when credit = 'member_available' then amount when debit = 'member_available' then -amount end)
                        filter (where pay_cycle_id is distinct from sealed_cycle_id), 0) as of_other_cycles,
             ${sql.join(sealedAccounts.map(account => sql`${sumOf(account)} as ${sql.ref(account)}`))}
        from lines t group by member_id, currency
    )
    select s.partner_id, s.member_id || ' ' || s.currency as subject,
           format('%s transfers: ' || ${shape}, f.sequence, ${accountsOf('f')})
             || case when f.misplaced > 0 or f.of_other_cycles <> 0 then ', each in its order and cycle' else '' end as expected,
           format('%s transfers: ' || ${shape}, s.sequence, ${accountsOf('s')}) as found
      from ledger_member_seals s
      left join found f on f.member_id = s.member_id and f.currency = s.currency
     where s.partner_id = ${partnerId} and s.member_id > ${after} and s.member_id <= ${to}
       and ((s.sequence, ${accountsOf('s')}) is distinct from (f.sequence, ${accountsOf('f')}) or f.misplaced > 0 or f.of_other_cycles <> 0)
     order by 1, 2 limit 1`.execute(db)
  return rows[0]
}

const shape = sql.lit(sealedAccounts.map(account => `${account} %s`).join(', '))
const accountsOf = (row: string) => sql.join(sealedAccounts.map(account => sql.ref(`${row}.${account}`)))

/** The payments that seals cover, summed by partner, cycle and currency. */
class SealedPayments {
  readonly #amounts = new Map<string, { partnerId: string; subject: string; sealed: string; found: bigint }>()

  /** Reads the seals. Those made later could cover payments of steps that have been read. */
  async readSeals(db: Reader, partnerIds: string[]): Promise<void> {
    const { rows } = await sql<{ partnerId: string; subject: string; sealed: string }>`
      select m.partner_id, m.pay_cycle_id || ' ' || m.currency as subject,
             string_agg(format('%s %s to %s', m.account, m.debits, m.credits), ', ' order by m.account) as sealed
        from ledger_seals c
        join ledger_seal_sums m on m.partner_id = c.partner_id and m.pay_cycle_id = c.pay_cycle_id and m.part = 'paid'
       where c.partner_id = any(${partnerIds}::text[]) and c.sealed_at is not null
       group by m.partner_id, m.pay_cycle_id, m.currency`.execute(db)
    for (const row of rows) this.#amounts.set(`${row.partnerId} ${row.subject}`, { ...row, found: 0n })
  }

  async add(db: Reader, step: Span): Promise<void> {
    const { rows } = await sql<{ partnerId: string; subject: string; amount: bigint }>`
      select t.partner_id, t.pay_cycle_id || ' ' || t.currency as subject, sum(t.amount)::bigint as amount
        from ledger_transfers t
        join ledger_seals c on c.partner_id = t.partner_id and c.pay_cycle_id = t.pay_cycle_id and c.sealed_at is not null
       where ${transfersIn(step)} and t.member_id is null and t.reason = 'withdrawal.paid'
         and t.movement_id <> all(c.unfinished_withdrawals)
       group by t.partner_id, t.pay_cycle_id, t.currency`.execute(db)
    for (const { partnerId, subject, amount } of rows) {
      const sums = this.#amounts.get(`${partnerId} ${subject}`)
      if (sums !== undefined) sums.found += amount
    }
  }

  findBroken(): Disagreement | undefined {
    return [...this.#amounts.values()]
      .map(({ partnerId, subject, sealed, found }) => {
        const expected = `float 0 to ${found}, payouts_pending ${found} to 0`
        return { partnerId, subject, expected, found: sealed }
      })
      .find(({ expected, found }) => expected !== found)
  }
}
