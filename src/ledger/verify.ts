import { type Reader, sql } from '../db.ts'

/** One rule of the books that was recomputed from the rows; `disagreement` is the first row that breaks it. */
export type Check = { name: string; rule: string; disagreement: Disagreement | null }
type Disagreement = { partnerId: string; subject: string; expected: string; found: string }

const checks: { name: string; rule: string; broken: ReturnType<typeof sql<Disagreement>> }[] = [
  {
    name: 'member balances',
    rule: 'what a member has available and owes is what their transfers add up to',
    broken: sql<Disagreement>`
      with booked as (
        select partner_id, member_id, currency,
               sum(case when credit = 'member_available' then amount when debit = 'member_available' then -amount else 0 end) as available,
               sum(case when debit = 'member_owed' then amount when credit = 'member_owed' then -amount else 0 end) as owed
          from ledger_transfers where member_id is not null group by partner_id, member_id, currency
      )
      select coalesce(k.partner_id, b.partner_id) as partner_id,
             coalesce(k.member_id, b.member_id) || ' ' || coalesce(k.currency, b.currency) as subject,
             format('available %s, owed %s', coalesce(k.available, 0), coalesce(k.owed, 0)) as expected,
             format('available %s, owed %s', b.available, b.owed) as found
        from booked k full join ledger_balances b using (partner_id, member_id, currency)
       where (coalesce(k.available, 0), coalesce(k.owed, 0)) is distinct from (b.available, b.owed)
         and (k.member_id is not null or (b.available, b.owed) <> (0, 0))
       order by 1, 2 limit 1`,
  },
  {
    name: 'withdrawals',
    rule: 'every withdrawal has booked its net amount and its fee, once',
    broken: sql<Disagreement>`
      with booked as (
        select partner_id, movement_id,
               coalesce(sum(amount) filter (where debit = 'member_available' and credit = 'payouts_pending'), 0) as net,
               coalesce(sum(amount) filter (where debit = 'member_available' and credit = 'fees'), 0) as fee,
               coalesce(sum(amount) filter (where debit = 'partner_fees' and credit = 'fees'), 0) as employer_fee
          from ledger_transfers where reason = 'withdrawal.held' group by partner_id, movement_id
      )
      select coalesce(w.partner_id, k.partner_id) as partner_id, coalesce(w.id, k.movement_id) as subject,
             case when w.id is null then 'no such withdrawal' else format('net %s, fee %s, employer fee %s', w.net, w.fee, w.employer_fee) end as expected,
             case when k.movement_id is null then 'nothing booked' else format('net %s, fee %s, employer fee %s', k.net, k.fee, k.employer_fee) end as found
        from withdrawals w full join booked k on k.partner_id = w.partner_id and k.movement_id = w.id
       where (w.net, w.fee, w.employer_fee) is distinct from (k.net, k.fee, k.employer_fee)
       order by 1, 2 limit 1`,
  },
  {
    name: 'pay runs',
    rule: 'every available pay run has booked exactly its lines, and no other has booked anything',
    broken: sql<Disagreement>`
      with lines as (
        select partner_id, pay_run_id, currency, sum(amount) as amount from pay_run_lines group by partner_id, pay_run_id, currency
      ), expected as (
        select r.partner_id, r.id, l.currency, l.amount
          from pay_runs r join lines l on l.partner_id = r.partner_id and l.pay_run_id = r.id
         where r.status = 'Available'
      ), booked as (
        select partner_id, movement_id as id, currency,
               sum(case when debit = 'earned_pay' then amount else -amount end) as amount
          from ledger_transfers where reason = 'pay_run.available' group by partner_id, movement_id, currency
      )
      select coalesce(e.partner_id, b.partner_id) as partner_id, coalesce(e.id, b.id) || ' ' || coalesce(e.currency, b.currency) as subject,
             coalesce(e.amount, 0)::text as expected, coalesce(b.amount, 0)::text as found
        from expected e full join booked b using (partner_id, id, currency)
       where coalesce(e.amount, 0) <> coalesce(b.amount, 0)
       order by 1, 2 limit 1`,
  },
  {
    name: 'intents',
    rule: 'every completed intent became one withdrawal with the quoted amounts, and no other intent did',
    broken: sql<Disagreement>`
      select i.partner_id, i.id as subject,
             case when i.status = 'completed' then format('a withdrawal of %s %s', i.amount, i.currency) else 'no withdrawal' end as expected,
             case when w.id is null then 'no withdrawal' else format('a withdrawal of %s %s', w.amount, w.currency) end as found
        from withdrawal_intents i
        left join withdrawals w on w.partner_id = i.partner_id and w.withdrawal_intent_id = i.id
       where (i.status = 'completed') <> (w.id is not null)
          or (w.id is not null and (w.amount, w.net, w.fee, w.employer_fee, w.currency, w.member_id, w.pay_cycle_id)
                is distinct from (i.amount, i.net, i.fee, i.employer_fee, i.currency, i.member_id, i.pay_cycle_id))
       order by 1, 2 limit 1`,
  },
]

/** The rules hold together only within one view of the data: run this in a repeatable-read transaction. */
export async function verify(db: Reader): Promise<Check[]> {
  const results: Check[] = []
  for (const { name, rule, broken } of checks) {
    const { rows } = await broken.execute(db)
    results.push({ name, rule, disagreement: rows[0] ?? null })
  }
  return results
}

export type AccountTotal = { partnerId: string; account: string; currency: string; debits: bigint; credits: bigint }

/** What each account of each partner adds up to; `member_available` and `earned_pay` over all members and cycles. */
export async function totals(db: Reader): Promise<AccountTotal[]> {
  const { rows } = await sql<AccountTotal>`
    select partner_id, account, currency, sum(debits)::bigint as debits, sum(credits)::bigint as credits
      from (select partner_id, debit as account, currency, amount as debits, 0 as credits from ledger_transfers
             union all
            select partner_id, credit, currency, 0, amount from ledger_transfers) sides
     group by partner_id, account, currency
     order by partner_id, account, currency`.execute(db)
  return rows
}
