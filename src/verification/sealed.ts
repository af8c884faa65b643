import { type Reader, sql } from '../database/database.ts'
import { type Disagreement, sealedAccounts } from './rules.ts'
import { inMembers, type MemberRange, type Span, transfersIn } from './slices.ts'

// Recomputes what the seals cover.

/** Finds the first seal of some members that is not the sum of the transfers that it covers, or covers more or fewer than exist. */
export async function brokenMemberSeal(
  db: Reader,
  range: MemberRange,
  { hasDetached }: { hasDetached: boolean },
): Promise<Disagreement | undefined> {
  const sumOf = (account: string) => sql`
    coalesce(sum(t.amount) filter (where t.credit = ${sql.lit(account)}), 0)
      - coalesce(sum(t.amount) filter (where t.debit = ${sql.lit(account)}), 0)`
  const withDetached = (column: string) => sql`coalesce(f.${sql.ref(column)}, 0) + coalesce(d.${sql.ref(column)}, 0)`
  const found = sql.join(['transfers', ...sealedAccounts].map(withDetached))
  const { rows } = await sql<Disagreement>`
    with detached as (${hasDetached ? detachedSums(range) : noSums}), lines as (
      select s.partner_id, s.member_id, s.currency, s.pay_cycle_id as sealed_cycle_id, t.pay_cycle_id, t.debit, t.credit, t.amount, t.member_sequence,
             -- Around the end of a month, numbers and ids may not have the same order.
             t.member_sequence > coalesce(d.sequence, 0) as is_ordered,
             row_number() over member + coalesce(d.transfers, 0) as place,
             sum(case when t.credit = 'member_available' then t.amount when t.debit = 'member_available' then -t.amount else 0 end::float8) over member
               + coalesce(d.member_available, 0) as available,
             sum(case when t.debit = 'member_owed' then t.amount when t.credit = 'member_owed' then -t.amount else 0 end::float8) over member
               - coalesce(d.member_owed, 0) as owed
        from ledger_member_seals s
        join ledger_transfers t on t.partner_id = s.partner_id and t.member_id = s.member_id and t.currency = s.currency
             and t.member_sequence <= s.sequence
        left join detached d on d.partner_id = s.partner_id and d.member_id = s.member_id and d.currency = s.currency
       where ${inMembers('s', range)}
      window member as (partition by s.partner_id, s.member_id, s.currency order by t.member_sequence)
    ), found as (
      select partner_id, member_id, currency, count(*) as transfers,
             count(*) filter (where is_ordered and (place <> member_sequence or available < 0 or owed < 0)) as misplaced,
             coalesce(sum(case when credit = 'member_available' then amount when debit = 'member_available' then -amount end)
                        filter (where pay_cycle_id is distinct from sealed_cycle_id), 0) as of_other_cycles,
             ${sql.join(sealedAccounts.map(account => sql`${sumOf(account)} as ${sql.ref(account)}`))}
        from lines t group by partner_id, member_id, currency
    ), compared as (
      select s.partner_id, s.member_id || ' ' || s.currency as subject,
             (s.sequence, ${accountsOf('s')}) is distinct from (${found}) as differs,
             f.misplaced > 0
             or coalesce(f.of_other_cycles, 0)
                + case when d.pay_cycle_id is distinct from s.pay_cycle_id then coalesce(d.member_available, 0) else 0 end <> 0 as is_misplaced,
             format('%s transfers: ' || ${shape}, ${found}) as expected,
             format('%s transfers: ' || ${shape}, s.sequence, ${accountsOf('s')}) as found
        from ledger_member_seals s
        left join found f on f.partner_id = s.partner_id and f.member_id = s.member_id and f.currency = s.currency
        left join detached d on d.partner_id = s.partner_id and d.member_id = s.member_id and d.currency = s.currency
       where ${inMembers('s', range)}
    )
    select partner_id, subject, expected || case when is_misplaced then ', each in its order and cycle' else '' end as expected, found
      from compared where differs or is_misplaced
     order by 1, 2 limit 1`.execute(db)
  return rows[0]
}

const shape = sql.lit(sealedAccounts.map(account => `${account} %s`).join(', '))
const accountsOf = (row: string) => sql.join(sealedAccounts.map(account => sql.ref(`${row}.${account}`)))

/** The sums of the members' detached transfers. */
const detachedSums = (range: MemberRange) => sql`
  select d.partner_id, d.member_id, d.currency, sum(d.transfers)::bigint as transfers, max(d.sequence) as sequence,
         (array_agg(d.pay_cycle_id order by d.year desc) filter (where d.pay_cycle_id is not null))[1] as pay_cycle_id,
         ${sql.join(sealedAccounts.map(account => sql`sum(d.${sql.ref(account)})::bigint as ${sql.ref(account)}`))}
    from detached_member_sums d where ${inMembers('d', range)}
   group by d.partner_id, d.member_id, d.currency`

const noSums = sql`
  select s.partner_id, s.member_id, s.currency, 0::bigint as transfers, s.sequence, s.pay_cycle_id, ${accountsOf('s')}
    from ledger_member_seals s where false`

/** The payments that seals cover, summed by partner, cycle and currency. */
export class SealedPayments {
  readonly #amounts = new Map<string, { partnerId: string; subject: string; sealed: string; found: bigint }>()

  /** Reads the seals. Those made later could cover payments of steps that have been read. */
  async readSeals(db: Reader, partnerIds: string[], { hasDetached }: { hasDetached: boolean }): Promise<void> {
    const { rows } = await sql<{ partnerId: string; subject: string; sealed: string }>`
      select m.partner_id, m.pay_cycle_id || ' ' || m.currency as subject,
             string_agg(format('%s %s to %s', m.account, m.debits, m.credits), ', ' order by m.account) as sealed
        from ledger_seals c
        join ledger_seal_sums m on m.partner_id = c.partner_id and m.pay_cycle_id = c.pay_cycle_id and m.part = 'paid'
       where c.partner_id = any(${partnerIds}::text[]) and c.sealed_at is not null
       group by m.partner_id, m.pay_cycle_id, m.currency`.execute(db)
    for (const row of rows) this.#amounts.set(`${row.partnerId} ${row.subject}`, { ...row, found: 0n })
    if (!hasDetached) return
    const { rows: detached } = await sql<{ partnerId: string; subject: string; amount: bigint }>`
      select partner_id, pay_cycle_id || ' ' || currency as subject, sum(amount)::bigint as amount
        from detached_payment_sums where partner_id = any(${partnerIds}::text[])
       group by partner_id, pay_cycle_id, currency`.execute(db)
    this.#count(detached)
  }

  async add(db: Reader, step: Span): Promise<void> {
    const { rows } = await sql<{ partnerId: string; subject: string; amount: bigint }>`
      select t.partner_id, t.pay_cycle_id || ' ' || t.currency as subject, sum(t.amount)::bigint as amount
        from ledger_transfers t
        join ledger_seals c on c.partner_id = t.partner_id and c.pay_cycle_id = t.pay_cycle_id and c.sealed_at is not null
       where ${transfersIn(step)} and t.member_id is null and t.reason = 'withdrawal.paid'
         and t.movement_id <> all(c.unfinished_withdrawals)
       group by t.partner_id, t.pay_cycle_id, t.currency`.execute(db)
    this.#count(rows)
  }

  #count(payments: { partnerId: string; subject: string; amount: bigint }[]): void {
    for (const { partnerId, subject, amount } of payments) {
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
