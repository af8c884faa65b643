import { type Reader, sql } from '../database/database.ts'
import { type Disagreement, sealedAccounts } from './rules.ts'
import { inMembers, type MemberRange, type Span, transfersIn } from './slices.ts'

// Recomputes what the seals cover.

/** Finds the first seal of some members that is not the sum of the transfers that it covers, or covers more or fewer than exist. */
export async function brokenMemberSeal(db: Reader, range: MemberRange): Promise<Disagreement | undefined> {
  const sumOf = (account: string) => sql`
    coalesce(sum(t.amount) filter (where t.credit = ${sql.lit(account)}), 0)
      - coalesce(sum(t.amount) filter (where t.debit = ${sql.lit(account)}), 0)`
  const { rows } = await sql<Disagreement>`
    with lines as (
      select s.partner_id, s.member_id, s.currency, s.pay_cycle_id as sealed_cycle_id, t.pay_cycle_id, t.debit, t.credit, t.amount, t.member_sequence,
             row_number() over member as place,
             sum(case when t.credit = 'member_available' then t.amount when t.debit = 'member_available' then -t.amount else 0 end::float8) over member as available,
             sum(case when t.debit = 'member_owed' then t.amount when t.credit = 'member_owed' then -t.amount else 0 end::float8) over member as owed
        from ledger_member_seals s
        join ledger_transfers t on t.partner_id = s.partner_id and t.member_id = s.member_id and t.currency = s.currency
             and t.member_sequence <= s.sequence
       where ${inMembers('s', range)}
      window member as (partition by s.partner_id, s.member_id, s.currency order by t.member_sequence)
    ), found as (
      select partner_id, member_id, currency, count(*) as sequence,
             count(*) filter (where place <> member_sequence or available < 0 or owed < 0) as misplaced,
             coalesce(sum(case when credit = 'member_available' then amount when debit = 'member_available' then -amount end)
                        filter (where pay_cycle_id is distinct from sealed_cycle_id), 0) as of_other_cycles,
             ${sql.join(sealedAccounts.map(account => sql`${sumOf(account)} as ${sql.ref(account)}`))}
        from lines t group by partner_id, member_id, currency
    )
    select s.partner_id, s.member_id || ' ' || s.currency as subject,
           format('%s transfers: ' || ${shape}, f.sequence, ${accountsOf('f')})
             || case when f.misplaced > 0 or f.of_other_cycles <> 0 then ', each in its order and cycle' else '' end as expected,
           format('%s transfers: ' || ${shape}, s.sequence, ${accountsOf('s')}) as found
      from ledger_member_seals s
      left join found f on f.partner_id = s.partner_id and f.member_id = s.member_id and f.currency = s.currency
     where ${inMembers('s', range)}
       and ((s.sequence, ${accountsOf('s')}) is distinct from (f.sequence, ${accountsOf('f')}) or f.misplaced > 0 or f.of_other_cycles <> 0)
     order by 1, 2 limit 1`.execute(db)
  return rows[0]
}

const shape = sql.lit(sealedAccounts.map(account => `${account} %s`).join(', '))
const accountsOf = (row: string) => sql.join(sealedAccounts.map(account => sql.ref(`${row}.${account}`)))

/** The payments that seals cover, summed by partner, cycle and currency. */
export class SealedPayments {
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
