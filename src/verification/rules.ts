import type { RawBuilder } from 'kysely'
import { sql } from '../database/database.ts'
import { feesByDay } from '../fees/statement.ts'
import { availableChange, floatChange, movesFloat, owedChange, pendingChange } from '../ledger/ledger.ts'
import { type Choice, inSpan, isOfPartner, type Members, type Span, sealedSums, transfersIn } from './slices.ts'

/** The first row that breaks a rule. */
export type Disagreement = { partnerId: string; subject: string; expected: string; found: string }

/** The reason, debit and credit of every permitted transfer. */
export const postingRules: [reason: string, debit: string, credit: string][] = [
  ...['pay_run.available', 'pay_run.reverted'].flatMap((reason): typeof postingRules => [
    [reason, 'earned_pay', 'member_available'],
    [reason, 'earned_pay', 'member_owed'],
    [reason, 'member_available', 'earned_pay'],
    [reason, 'member_owed', 'earned_pay'],
  ]),
  ['withdrawal.held', 'member_available', 'payouts_pending'],
  ['withdrawal.held', 'member_available', 'fees'],
  ['withdrawal.held', 'partner_fees', 'fees'],
  ['withdrawal.paid', 'payouts_pending', 'float'],
  ...['withdrawal.cancelled', 'withdrawal.failed', 'withdrawal.returned'].flatMap((reason): typeof postingRules => [
    [reason, reason === 'withdrawal.returned' ? 'float' : 'payouts_pending', 'member_available'],
    [reason, 'fees', 'member_available'],
    [reason, 'fees', 'partner_fees'],
  ]),
  ...['member_available', 'member_owed'].flatMap((debit): typeof postingRules => [
    ['withdrawal.recovered', debit, 'float'],
    ['withdrawal.recovered', debit, 'fees'],
  ]),
  ['withdrawal.recovered', 'partner_fees', 'fees'],
  ['float.cost', 'operator_costs', 'float'],
  ['float.charged', 'written_off', 'float'],
  ['float.charged', 'float', 'written_off'],
  ['float.covered', 'float', 'operator_costs'],
  ['pay_cycle.closed', 'member_available', 'earned_pay'],
  ['pay_cycle.settled', 'float', 'earned_pay'],
  ['pay_cycle.settled', 'earned_pay', 'float'],
  ['pay_cycle.settled', 'payroll_receivable', 'earned_pay'],
  ['pay_cycle.settled', 'earned_pay', 'payroll_receivable'],
  ['settlement.received', 'float', 'payroll_receivable'],
  ['settlement.received', 'payroll_receivable', 'float'],
  ['pay_cycle.settled', 'written_off', 'earned_pay'],
  ['pay_cycle.settled', 'carried', 'earned_pay'],
  ['pay_cycle.settled', 'earned_pay', 'carried'],
  ['fees.collected', 'fees', 'revenue'],
  ['fees.booked_back', 'revenue', 'fees'],
  ['invoice.issued', 'fees_receivable', 'partner_fees'],
  ['invoice.paid', 'operator_account', 'fees_receivable'],
  ['invoice.paid', 'fees', 'revenue'],
  ['invoice.reopened', 'fees_receivable', 'operator_account'],
  ['invoice.reopened', 'revenue', 'fees'],
  ['invoice.voided', 'partner_fees', 'fees_receivable'],
  ['revenue.withdrawn', 'operator_account', 'float'],
  ['float.funded', 'float', 'funding'],
  ['float.withdrawn', 'funding', 'float'],
]

// The rules below look for these transfers among the ids of withdrawals and pay runs. Changes of fees name a withdrawal too.
const isOfItsKind = sql`
  case when t.reason like 'withdrawal.%' then t.movement_id like 'w\\_%'
       when t.reason like 'pay_run.%' then t.movement_id like 'pr\\_%' else true end`

/**
 * Finds the first subject whose rows differ. Both sides give partner, subject, reason, debit, credit, amount, currency, member,
 * cycle and `true`. Repeated rows count separately.
 */
function differences({ expected, booked }: { expected: RawBuilder<unknown>; booked: RawBuilder<unknown> }): Query {
  return sql<Disagreement>`
    with sides as (
      select e.*, 1 as side from (${expected}) as e (partner_id, subject, reason, debit, credit, amount, currency, member_id, pay_cycle_id, is_booked)
       union all
      select b.*, -1 from (${booked}) as b
    ), wrong as (
      select partner_id, subject, sum(side) as side,
             format('%s: %s to %s %s %s for %s in %s', reason, debit, credit, amount, currency, coalesce(member_id, 'no member'), coalesce(pay_cycle_id, 'no cycle')) as line
        from sides
       group by partner_id, subject, reason, debit, credit, amount, currency, member_id, pay_cycle_id
      having sum(side) <> 0
    )
    select partner_id, subject, coalesce(string_agg(line, '; ' order by line) filter (where side > 0), 'nothing more') as expected,
           coalesce(string_agg(line, '; ' order by line) filter (where side < 0), 'nothing more') as found
      from wrong group by partner_id, subject order by 1, 2 limit 1`
}

/** The transfers of a withdrawal `w` without recoveries: reason, debit, credit, amount, member, cycle, and whether its states require it. */
const withdrawalLines = [
  [
    "'withdrawal.held'",
    "'member_available'",
    "'payouts_pending'",
    'w.net_amount',
    'w.member_id',
    'w.pay_cycle_id',
    'true',
  ],
  ["'withdrawal.held'", "'member_available'", "'fees'", 'w.fee', 'w.member_id', 'w.pay_cycle_id', 'true'],
  ["'withdrawal.held'", "'partner_fees'", "'fees'", 'w.employer_fee', 'w.member_id', 'w.pay_cycle_id', 'true'],
  ["'withdrawal.paid'", "'payouts_pending'", "'float'", 'w.net_amount', 'null', 'w.pay_cycle_id', 'w.was_paid'],
  [
    "'withdrawal.' || w.status",
    'w.back_from',
    "'member_available'",
    'w.net_amount',
    'w.member_id',
    'w.back_in',
    'w.went_back',
  ],
  ["'withdrawal.' || w.status", "'fees'", "'member_available'", 'w.fee', 'w.member_id', 'w.back_in', 'w.went_back'],
  [
    "'withdrawal.' || w.status",
    "'fees'",
    "'partner_fees'",
    'w.employer_fee',
    'w.member_id',
    'w.back_in',
    'w.went_back',
  ],
] as const

const statesOf = (firstStatus: string) => sql`
  coalesce(w.adjusted_in_cycle_id, w.pay_cycle_id) as back_in, ${sql.raw(firstStatus)} in ('paid', 'returned') as was_paid,
  w.status in ('cancelled', 'failed', 'returned') as went_back,
  case when w.status = 'returned' then 'float' else 'payouts_pending' end as back_from`

/**
 * The withdrawals whose transfers are not exactly the lines that their states require, and those with recoveries. Comparing the few that
 * this finds in full takes no time; comparing all in full takes four times as long as this. Each line is one bit, so a withdrawal is right
 * if it has all bits that are required, and as many transfers.
 */
function suspectWithdrawals(chosen: Choice): RawBuilder<unknown> {
  const bits = withdrawalLines.map((line, place) => ({
    line: line.map(each => sql.raw(each)),
    bit: sql.lit(1 << place),
  }))
  return sql`
    select partner_id, id
      from (select coalesce(w.partner_id, t.partner_id) as partner_id, coalesce(w.id, t.movement_id) as id, w.required,
                   case ${sql.join(
                     bits.map(
                       ({ line: [reason, debit, credit, amount, memberId, payCycleId], bit }) => sql`
                     when t.reason = ${reason} and t.debit = ${debit} and t.credit = ${credit} and t.amount = ${amount}
                      and t.member_id is not distinct from ${memberId} and t.pay_cycle_id = ${payCycleId} and t.currency = w.currency then ${bit}`,
                     ),
                     sql``,
                   )} end as bit
              from (select w.*, ${sql.join(
                bits.map(({ line, bit }) => sql`case when ${line[6]} and ${line[3]} > 0 then ${bit} else 0 end`),
                sql` + `,
              )} as required
                      from (select w.*, ${statesOf('w.status')} from withdrawals w where ${chosen('withdrawal', sql`w.partner_id`, sql`w.id`)}) w
                    -- Not once per transfer.
                    offset 0) w
              full join (select t.* from ledger_transfers t
                          where t.reason like 'withdrawal.%' and ${chosen('withdrawal', sql`t.partner_id`, sql`t.movement_id`)}) t
                on t.partner_id = w.partner_id and t.movement_id = w.id
            -- Groups bits, instead of all columns that they are computed from.
            offset 0) lines
     group by partner_id, id
    having bit_or(bit) is distinct from coalesce(min(required), 0)
        or count(*) <> bit_count(min(required)::bit(${sql.lit(bits.length)}))
     union
    select r.partner_id, r.withdrawal_id from withdrawal_recoveries r where ${chosen('withdrawal', sql`r.partner_id`, sql`r.withdrawal_id`)}`
}

function withdrawalDifferences(chosen: Choice): Query {
  return differences({
    expected: sql`
      with recovered as (
        select r.*, w.net_amount, w.fee, w.employer_fee, w.currency, w.member_id, least(r.taken_amount, w.net_amount) as taken_of_net,
               r.taken_amount - least(r.taken_amount, w.net_amount) as taken_of_fee,
               case when r.from_status = 'returned' then 'float' else 'payouts_pending' end as back_from,
               row_number() over (partition by r.partner_id, r.withdrawal_id order by r.recovered_at, r.exception_id) as number
          from withdrawal_recoveries r join withdrawals w on w.partner_id = r.partner_id and w.id = r.withdrawal_id
         where r.pay_cycle_id is not null and ${chosen('withdrawal', sql`r.partner_id`, sql`r.withdrawal_id`)}
      )
      select w.partner_id, w.id as subject, line.reason, line.debit, line.credit, line.amount, w.currency, line.member_id, line.pay_cycle_id, true
        from (select w.*, ${statesOf('coalesce(r.from_status, w.status)')}
                from withdrawals w
                left join recovered r on r.partner_id = w.partner_id and r.withdrawal_id = w.id and r.number = 1
               where ${chosen('withdrawal', sql`w.partner_id`, sql`w.id`)}) w
       cross join lateral (values ${sql.join(withdrawalLines.map(line => sql.raw(`(${line.join(', ')})`)))})
          as line (reason, debit, credit, amount, member_id, pay_cycle_id, is_booked)
       where line.is_booked and line.amount > 0
       union all
      -- The refund before a recovery, and the amounts taken by the recovery.
      select r.partner_id, r.withdrawal_id, line.reason, line.debit, line.credit, line.amount, r.currency, r.member_id, line.pay_cycle_id, true
        from recovered r cross join lateral (values
          ('withdrawal.' || r.from_status, r.back_from, 'member_available', r.net_amount, r.given_back_in_cycle_id),
          ('withdrawal.' || r.from_status, 'fees', 'member_available', r.fee, r.given_back_in_cycle_id),
          ('withdrawal.' || r.from_status, 'fees', 'partner_fees', r.employer_fee, r.given_back_in_cycle_id),
          ('withdrawal.recovered', 'member_available', 'float', r.taken_of_net, r.pay_cycle_id),
          ('withdrawal.recovered', 'member_owed', 'float', r.net_amount - r.taken_of_net, r.pay_cycle_id),
          ('withdrawal.recovered', 'member_available', 'fees', r.taken_of_fee, r.pay_cycle_id),
          ('withdrawal.recovered', 'member_owed', 'fees', r.fee - r.taken_of_fee, r.pay_cycle_id),
          ('withdrawal.recovered', 'partner_fees', 'fees', r.employer_fee, r.pay_cycle_id)
        ) as line (reason, debit, credit, amount, pay_cycle_id)
       where line.amount > 0`,
    booked: sql`
      select t.partner_id, t.movement_id, t.reason, t.debit, t.credit, t.amount, t.currency, t.member_id, t.pay_cycle_id, true
        from ledger_transfers t
       where t.reason like 'withdrawal.%' and ${chosen('withdrawal', sql`t.partner_id`, sql`t.movement_id`)}`,
  })
}

/** The accounts that transfers with a member change, as columns of `ledger_member_seals`. */
export const sealedAccounts = [
  'earned_pay',
  'member_available',
  'member_owed',
  'carried',
  'written_off',
  'payouts_pending',
  'float',
  'fees',
  'partner_fees',
  'payroll_receivable',
] as const

/** Finds the first subject whose sums differ. Both sides give partner, subject, currency, cycle and a signed amount. */
function sums({ expected, found }: { expected: RawBuilder<unknown>; found: RawBuilder<unknown> }): Query {
  return sql<Disagreement>`
    select partner_id, format('%s in %s', subject, pay_cycle_id) as subject,
           format('%s %s', coalesce(sum(amount) filter (where side), 0), currency) as expected,
           format('%s %s', coalesce(sum(amount) filter (where not side), 0), currency) as found
      from (select e.*, true as side from (${expected}) as e (partner_id, subject, currency, pay_cycle_id, amount)
             union all
            select f.*, false from (${found}) as f) sides
     group by partner_id, subject, currency, pay_cycle_id
    having coalesce(sum(amount) filter (where side), 0) <> coalesce(sum(amount) filter (where not side), 0)
     order by 1, 2 limit 1`
}

type Query = RawBuilder<Disagreement>

/** A rule of the books, and the SQL that finds the first row that breaks it, on a part of the books that the rule can be checked on. */
export type Rule = { name: string; rule: string } & (
  | { on: 'transfers'; broken: (span: Span) => Query }
  | { on: 'movements' | 'fees'; broken: (chosen: Choice) => Query }
  | { on: 'members'; broken: (members: Members) => Query }
  | { on: 'cycles'; broken: (chosen: Choice) => Query }
  /** What is few in number, or kept as sums. `ofPartner` is a condition of the rows' partner. */
  | {
      on: 'partners'
      broken: (parts: {
        ofPartner: (partnerId: RawBuilder<unknown>) => RawBuilder<unknown>
        unsealed: RawBuilder<unknown>
      }) => Query
    }
)

/** The rules of the books, as in docs/internals/ledger.md. Each is one pass over its rows. */
export const rules: Rule[] = [
  {
    name: 'member balances',
    rule: 'each member’s available and owed balances are the sums of their transfers',
    on: 'members',
    broken: ({ unsealed, balances }) => sql`
      with booked as (
        select partner_id, member_id, currency, ${availableChange} as available, ${owedChange} as owed
          from ${unsealed} t
         where t.debit in ('member_available', 'member_owed') or t.credit in ('member_available', 'member_owed')
         group by partner_id, member_id, currency
      ), kept as (
        select b.partner_id, b.member_id, b.currency, b.available, b.owed from ledger_balances b where ${balances}
      )
      select coalesce(k.partner_id, b.partner_id) as partner_id,
             coalesce(k.member_id, b.member_id) || ' ' || coalesce(k.currency, b.currency) as subject,
             format('available %s, owed %s', coalesce(k.available, 0), coalesce(k.owed, 0)) as expected,
             format('available %s, owed %s', coalesce(b.available, 0), coalesce(b.owed, 0)) as found
        from booked k full join kept b using (partner_id, member_id, currency)
       where (coalesce(k.available, 0), coalesce(k.owed, 0)) <> (coalesce(b.available, 0), coalesce(b.owed, 0))
       order by 1, 2 limit 1`,
  },
  {
    name: 'posting rules',
    rule: 'every transfer follows a posting rule',
    on: 'transfers',
    broken: span => sql`
      select t.partner_id, t.id as subject, 'a posting rule of docs/internals/ledger.md' as expected,
             format('%s: %s to %s', t.reason, t.debit, t.credit) || case when ${isOfItsKind} then '' else ' of ' || t.movement_id end as found
        from ledger_transfers t
       where (t.reason || ' ' || t.debit || ' ' || t.credit <> all (array[${sql.join(postingRules.map(words => sql.lit(words.join(' '))))}])
              or not ${isOfItsKind})
         and ${transfersIn(span)}
       order by 1, 2 limit 1`,
  },
  {
    name: 'withdrawals',
    rule: 'every withdrawal has posted exactly what its states require, once each, in the right cycle',
    on: 'movements',
    broken: chosen => sql`
      with suspects as materialized (${suspectWithdrawals(chosen)})
      select * from (${withdrawalDifferences((kind, partnerId, id) =>
        kind === 'withdrawal' ? sql`((${partnerId}, ${id}) in (select partner_id, id from suspects))` : sql`false`,
      )}) d`,
  },
  {
    name: 'intents',
    rule: 'every completed intent became one withdrawal with the quoted amounts, and no other intent did',
    on: 'movements',
    broken: chosen => sql`
      select i.partner_id, i.id as subject,
             case when i.status = 'completed' then format('a withdrawal of %s %s', i.gross_amount, i.currency) else 'no withdrawal' end as expected,
             case when w.id is null then 'no withdrawal' else format('a withdrawal of %s %s', w.gross_amount, w.currency) end as found
        from withdrawal_intents i
        left join withdrawals w on w.partner_id = i.partner_id and w.withdrawal_intent_id = i.id
       where ${chosen('withdrawalIntent', sql`i.partner_id`, sql`i.id`)} and ((i.status = 'completed') <> (w.id is not null)
          or (w.id is not null and (w.gross_amount, w.net_amount, w.fee, w.employer_fee, w.currency, w.member_id, w.pay_cycle_id)
                is distinct from (i.gross_amount, i.net_amount, i.fee, i.employer_fee, i.currency, i.member_id, i.pay_cycle_id)))
       order by 1, 2 limit 1`,
  },
  {
    name: 'pay runs',
    rule: 'every available pay run has posted its lines, every pay run reverted after that also their opposite, and no other pay run has posted anything',
    on: 'movements',
    broken: chosen =>
      sums({
        expected: sql`
        select r.partner_id, step.reason || ' of ' || r.id || ' for ' || l.member_id, l.currency, r.pay_cycle_id, step.sign * l.amount
          from pay_runs r
          join pay_run_lines l on l.partner_id = r.partner_id and l.pay_run_id = r.id
         cross join lateral (values
            ('pay_run.available', 1, r.available_at is not null), ('pay_run.reverted', -1, r.available_at is not null and r.status = 'Reverted')
          ) as step (reason, sign, is_booked)
         where step.is_booked and ${chosen('payRun', sql`r.partner_id`, sql`r.id`)}`,
        found: sql`
        select t.partner_id, t.reason || ' of ' || t.movement_id || ' for ' || t.member_id, t.currency, t.pay_cycle_id,
               case when t.debit = 'earned_pay' then t.amount else -t.amount end
          from ledger_transfers t
         where t.reason like 'pay_run.%' and ${chosen('payRun', sql`t.partner_id`, sql`t.movement_id`)}`,
      }),
  },
  {
    name: 'closed cycles',
    rule: 'a closed cycle leaves nothing available: what members have belongs to the open cycle, or to one that is still closing',
    on: 'members',
    broken: ({ unsealed, balances }) =>
      sums({
        expected: sql`
        select b.partner_id, 'available to ' || b.member_id, b.currency, c.id, b.available
          from ledger_balances b join pay_cycles c on c.partner_id = b.partner_id and c.id = b.pay_cycle_id and c.released_at is null
         where ${balances}`,
        found: sql`
        select t.partner_id, 'available to ' || t.member_id, t.currency, t.pay_cycle_id,
               sum(case when t.credit = 'member_available' then t.amount else -t.amount end)
          from ${unsealed} t
         where t.debit = 'member_available' or t.credit = 'member_available'
         group by t.partner_id, t.member_id, t.currency, t.pay_cycle_id`,
      }),
  },
  {
    name: 'settled cycles',
    rule: 'the earned pay of a settled cycle is zero for every member',
    on: 'cycles',
    broken: chosen => sql`
      select t.partner_id, format('%s for %s', t.pay_cycle_id, t.member_id) as subject, '0 ' || t.currency as expected,
             format('%s %s', sum(case when t.debit = 'earned_pay' then t.amount else -t.amount end), t.currency) as found
        from ledger_transfers t
        join pay_cycles c on c.partner_id = t.partner_id and c.id = t.pay_cycle_id and c.settled_at is not null
       where (t.debit = 'earned_pay' or t.credit = 'earned_pay') and ${chosen('payCycle', sql`t.partner_id`, sql`t.pay_cycle_id`)}
       group by t.partner_id, t.pay_cycle_id, t.member_id, t.currency
      having sum(case when t.debit = 'earned_pay' then t.amount else -t.amount end) <> 0
       order by 1, 2 limit 1`,
  },
  {
    name: 'settlements',
    rule: 'every settlement line equals the deduction, and has posted what was taken, carried and written off',
    on: 'cycles',
    broken: chosen =>
      sums({
        expected: sql`
        select l.partner_id, what.word || ' ' || l.member_id, l.currency, l.pay_cycle_id, what.amount
          from settlement_lines l cross join lateral (values
            ('deducted from', l.deducted), ('taken from', l.taken), ('written off for', l.written_off),
            ('carried for', l.carried), ('carried on for', l.carried)
          ) as what (word, amount)
         where ${chosen('payCycle', sql`l.partner_id`, sql`l.pay_cycle_id`)}`,
        found: sql`
        select t.partner_id,
               case when t.debit in ('float', 'payroll_receivable') or t.credit in ('float', 'payroll_receivable') then 'taken from'
                    when 'written_off' in (t.debit, t.credit) then 'written off for'
                    when t.pay_cycle_id = t.movement_id then 'carried for'
                    else 'carried on for' end || ' ' || t.member_id,
               t.currency, t.movement_id,
               -- A transfer of the settlement counts by its sign in the settled cycle; one carried on, by its sign in the other cycle.
               case when (t.credit = 'earned_pay') = (t.pay_cycle_id = t.movement_id) then t.amount else -t.amount end
          from ledger_transfers t
         where (t.debit = 'earned_pay' or t.credit = 'earned_pay') and t.reason = 'pay_cycle.settled'
           and ${chosen('payCycle', sql`t.partner_id`, sql`t.movement_id`)}
        union all
        select t.partner_id, 'deducted from ' || t.member_id, t.currency, t.pay_cycle_id,
               case when t.debit = 'earned_pay' then t.amount else -t.amount end
          from ledger_transfers t
          join pay_cycles c on c.partner_id = t.partner_id and c.id = t.pay_cycle_id and c.settled_at is not null
         where (t.debit = 'earned_pay' or t.credit = 'earned_pay') and t.reason <> 'pay_cycle.settled'
           and ${chosen('payCycle', sql`t.partner_id`, sql`t.pay_cycle_id`)}
        union all
        -- What an earlier settlement carried into a cycle is part of its deductions.
        select t.partner_id, 'deducted from ' || t.member_id, t.currency, t.pay_cycle_id,
               case when t.debit = 'earned_pay' then t.amount else -t.amount end
          from ledger_transfers t
          join pay_cycles c on c.partner_id = t.partner_id and c.id = t.pay_cycle_id and c.settled_at is not null
         where (t.debit = 'earned_pay' or t.credit = 'earned_pay') and t.reason = 'pay_cycle.settled' and t.pay_cycle_id <> t.movement_id
           and ${chosen('payCycle', sql`t.partner_id`, sql`t.pay_cycle_id`)}`,
      }),
  },
  {
    name: 'deductions',
    rule: 'what payroll is to deduct is the pay that was earned and is no longer available',
    on: 'cycles',
    broken: chosen =>
      sums({
        expected: sql`
        select t.partner_id, 'from ' || t.member_id, t.currency, t.pay_cycle_id,
               case when t.debit = 'earned_pay' then t.amount else -t.amount end
          from ledger_transfers t
         where (t.debit = 'earned_pay' or t.credit = 'earned_pay')
           -- The settlement of the cycle itself brings its earned pay to zero.
           and not (t.reason = 'pay_cycle.settled' and t.movement_id = t.pay_cycle_id)
           and ${chosen('payCycle', sql`t.partner_id`, sql`t.pay_cycle_id`)}
         union all
        select b.partner_id, 'from ' || b.member_id, b.currency, b.pay_cycle_id, -b.available
          from ledger_balances b
         where b.available > 0 and ${chosen('payCycle', sql`b.partner_id`, sql`b.pay_cycle_id`)}`,
        found: sql`
        select d.partner_id, 'from ' || d.member_id, d.currency, d.pay_cycle_id, d.amount
          from ledger_deductions d where ${chosen('payCycle', sql`d.partner_id`, sql`d.pay_cycle_id`)}`,
      }),
  },
  {
    name: 'sums of cycles',
    rule: 'what all members can withdraw in a cycle, and the number of its deductions, are kept as they are',
    on: 'cycles',
    broken: chosen =>
      sums({
        expected: sql`
        select b.partner_id, 'available', b.currency, b.pay_cycle_id, b.available
          from ledger_balances b
         where b.available > 0 and ${chosen('payCycle', sql`b.partner_id`, sql`b.pay_cycle_id`)}
         union all
        select d.partner_id, 'number of deductions', d.currency, d.pay_cycle_id, 1
          from ledger_deductions d
         where d.amount <> 0 and ${chosen('payCycle', sql`d.partner_id`, sql`d.pay_cycle_id`)}`,
        found: sql`
        select k.partner_id, kept.word, k.currency, k.pay_cycle_id, kept.amount
          from (select partner_id, currency, pay_cycle_id, available, deductions from ledger_cycle_totals
                 union all
                select partner_id, currency, pay_cycle_id, available_change, deductions_change from ledger_cycle_changes) k
         cross join lateral (values ('available', k.available), ('number of deductions', k.deductions)) as kept (word, amount)
         where ${chosen('payCycle', sql`k.partner_id`, sql`k.pay_cycle_id`)}`,
      }),
  },
  {
    name: 'settlement dues',
    rule: 'the amount due for a settlement is its posted receivable, and the amount received is what has left that account',
    on: 'cycles',
    broken: chosen =>
      sums({
        expected: sql`
        select d.partner_id, what.word, d.currency, d.pay_cycle_id, what.amount
          from settlement_dues d cross join lateral (values ('due', d.amount), ('received', d.received)) as what (word, amount)
         where ${chosen('payCycle', sql`d.partner_id`, sql`d.pay_cycle_id`)}`,
        found: sql`
        select t.partner_id, 'due', t.currency, t.pay_cycle_id, case when t.debit = 'payroll_receivable' then t.amount else -t.amount end
          from ledger_transfers t
         where (t.debit = 'earned_pay' or t.credit = 'earned_pay') and 'payroll_receivable' in (t.debit, t.credit)
           and ${chosen('payCycle', sql`t.partner_id`, sql`t.pay_cycle_id`)}
         union all
        select t.partner_id, 'received', t.currency, t.pay_cycle_id, case when t.credit = 'payroll_receivable' then t.amount else -t.amount end
          from ledger_transfers t
         where ${isOfPartner} and 'payroll_receivable' in (t.debit, t.credit)
           and ${chosen('payCycle', sql`t.partner_id`, sql`t.pay_cycle_id`)}`,
      }),
  },
  {
    name: 'fees of members',
    rule: 'the parts of a fee that settlements cover, carry on and leave to the partner add up to the whole fee, or to nothing for a fee that the member got back',
    on: 'fees',
    broken: chosen =>
      sums({
        expected: sql`
        select w.partner_id, 'the fee of ' || w.id, w.currency, charged.pay_cycle_id, w.fee
          from (select distinct on (partner_id, movement_id) partner_id, movement_id, pay_cycle_id
                  from ledger_transfers
                 where credit = 'fees' and debit in ('member_available', 'member_owed')
                   -- The charges of most withdrawals are in cycles that are not settled.
                   and (reason <> 'withdrawal.held'
                        or (partner_id, pay_cycle_id) in (select partner_id, id from pay_cycles where settled_at is not null))
                   and ${chosen('withdrawal', sql`partner_id`, sql`movement_id`)}
                 order by partner_id, movement_id, id desc) charged
          join withdrawals w on w.partner_id = charged.partner_id and w.id = charged.movement_id
          join pay_cycles c on c.partner_id = charged.partner_id and c.id = charged.pay_cycle_id
         where c.settled_at is not null and w.status in ('held', 'submitted', 'paid')`,
        found: sql`
        select s.partner_id, 'the fee of ' || s.withdrawal_id, s.currency,
               first_value(s.pay_cycle_id) over (partition by s.partner_id, s.withdrawal_id order by s.part),
               s.covered + s.written_off
               + case when lead(s.part) over (partition by s.partner_id, s.withdrawal_id order by s.part) is null and c.settled_at is null
                      then s.carried else 0 end
          from settlement_fees s left join pay_cycles c on c.partner_id = s.partner_id and c.id = s.carried_to
         where s.released_at is null and ${chosen('withdrawal', sql`s.partner_id`, sql`s.withdrawal_id`)}`,
      }),
  },
  {
    name: 'collected fees',
    rule: 'the fees collected for a settlement are posted as revenue, and are the fees that it covers, or at most those until its money has arrived',
    on: 'cycles',
    broken: chosen =>
      sums({
        expected: sql`
        select f.partner_id, what.word, f.currency, f.pay_cycle_id, what.amount
          from fee_collections f cross join lateral (values
            ('fees covered', f.covered), ('fees collected', f.collected), ('fees that can be collected', f.collected)
          ) as what (word, amount)
         where ${chosen('payCycle', sql`f.partner_id`, sql`f.pay_cycle_id`)}`,
        found: sql`
        select partner_id, 'fees covered', currency, pay_cycle_id, covered from settlement_fees
         where released_at is null and ${chosen('payCycle', sql`partner_id`, sql`pay_cycle_id`)}
         union all
        select partner_id, 'fees collected', currency, pay_cycle_id, case when credit = 'revenue' then amount else -amount end
          from ledger_transfers t
         where ${isOfPartner} and reason in ('fees.collected', 'fees.booked_back')
           and ${chosen('payCycle', sql`partner_id`, sql`pay_cycle_id`)}
         union all
        select f.partner_id, 'fees that can be collected', f.currency, f.pay_cycle_id,
               case when d.received < d.amount then least(f.covered, d.received) else f.covered end
          from fee_collections f
          left join settlement_dues d on (d.partner_id, d.pay_cycle_id, d.currency) = (f.partner_id, f.pay_cycle_id, f.currency)
         where ${chosen('payCycle', sql`f.partner_id`, sql`f.pay_cycle_id`)}`,
      }),
  },
  {
    name: 'ownership of money',
    rule: 'exactly the recorded amounts of fees have been collected, billed and paid, and the operator has taken out or been paid exactly the recorded amounts',
    on: 'partners',
    broken: ({ ofPartner }) =>
      sums({
        expected: sql`
        select f.partner_id, what.word, f.currency, 'all cycles', what.amount
          from fee_collections f cross join lateral (values ('fees', -f.collected), ('revenue', f.collected)) as what (word, amount)
         where ${ofPartner(sql`f.partner_id`)}
         union all
        select i.partner_id, what.word, i.currency, 'all cycles', what.amount
          from invoices i cross join lateral (values
            ('partner_fees', -i.sum, i.status <> 'void'), ('fees_receivable', i.sum, i.status = 'open'),
            ('operator_account', i.sum, i.status = 'paid'), ('revenue', i.sum, i.status = 'paid'), ('fees', -i.sum, i.status = 'paid')
          ) as what (word, amount, is_booked)
         where what.is_booked and ${ofPartner(sql`i.partner_id`)}
         union all
        select partner_id, 'operator_account', currency, 'all cycles', amount from float_references
         where direction = 'revenue' and ${ofPartner(sql`partner_id`)}`,
        found: sql`
        select t.partner_id, side.account, t.currency, 'all cycles',
               case when (side.account in ('fees', 'revenue')) = side.is_credit then t.amount else -t.amount end
          from ledger_transfers t cross join lateral (values (t.debit, false), (t.credit, true)) as side (account, is_credit)
         where ${isOfPartner} and ${ofPartner(sql`t.partner_id`)}
           and side.account in ('fees', 'partner_fees', 'fees_receivable', 'operator_account', 'revenue')`,
      }),
  },
  {
    name: 'invoices',
    rule: 'the amount of an invoice is the sum of its lines, and the invoice has posted what its state requires',
    on: 'partners',
    broken: ({ ofPartner }) =>
      sums({
        expected: sql`
        select i.partner_id, what.word || i.id, i.currency, 'its postings', what.amount
          from invoices i cross join lateral (values
            ('lines of ', i.sum), ('billed by ', case when i.status = 'void' then 0 else i.sum end),
            ('paid for ', case when i.status = 'paid' then i.sum else 0 end)
          ) as what (word, amount)
         where ${ofPartner(sql`i.partner_id`)}`,
        found: sql`
        select l.partner_id, 'lines of ' || l.invoice_id, i.currency, 'its postings', l.fees - l.fees_given_back
          from invoice_lines l join invoices i on i.partner_id = l.partner_id and i.id = l.invoice_id
         where ${ofPartner(sql`i.partner_id`)}
         union all
        select partner_id, 'billed by ' || movement_id, currency, 'its postings',
               case when reason = 'invoice.issued' then amount else -amount end
          from ledger_transfers t
         where ${isOfPartner} and ${ofPartner(sql`t.partner_id`)} and reason in ('invoice.issued', 'invoice.voided')
         union all
        select partner_id, 'paid for ' || movement_id, currency, 'its postings', case when credit = 'revenue' then amount else -amount end
          from ledger_transfers t
         where ${isOfPartner} and ${ofPartner(sql`t.partner_id`)} and reason in ('invoice.paid', 'invoice.reopened')
           and 'revenue' in (debit, credit)`,
      }),
  },
  {
    name: 'fee statements',
    rule: 'the statements show exactly the fees that the books charged and gave back on each day',
    on: 'transfers',
    broken: span =>
      sums({
        expected: sql`
        select partner_id, 'fees of ' || day, currency, 'the statement', amount
          from (select t.partner_id, (t.created_at at time zone p.time_zone)::date as day, t.currency,
                       sum(case when t.credit = 'fees' then t.amount else -t.amount end) as amount
                  from ledger_transfers t join partners p on p.id = t.partner_id
                 where (t.debit = 'fees' or t.credit = 'fees') and t.debit <> 'revenue' and t.credit <> 'revenue' and ${transfersIn(span)}
                 group by 1, 2, 3) d`,
        found: sql`
        select partner_id, 'fees of ' || day, currency, 'the statement',
               member_fees - member_fees_given_back + employer_fees - employer_fees_given_back
          from (${feesByDay({
            ofWithdrawals: inSpan(span)('withdrawal', sql`w.partner_id`, sql`w.id`),
            ofTransfers: transfersIn(span),
          })}) f`,
      }),
  },
  {
    name: 'journal',
    rule: 'transfers are numbered in the order of their times, so that the journal of a day is complete',
    on: 'transfers',
    broken: span => sql`
      select partner_id, id as subject, format('not before %s', before) as expected, created_at::text as found
        from (select t.partner_id, t.id, t.created_at,
                     greatest(${span.from}::timestamptz, max(t.created_at) over (partition by t.partner_id order by t.id rows between unbounded preceding and 1 preceding)) as before
                from ledger_transfers t where ${transfersIn(span)}) t
       where created_at < before
       order by 1, 2 limit 1`,
  },
  {
    name: 'costs of the operator',
    rule: 'the costs that the operator bears are those that decisions have booked, and no float is covered beyond them',
    on: 'partners',
    broken: ({ ofPartner }) => sql`
      with booked as (
        select partner_id, movement_id, currency, sum(amount) as amount from ledger_transfers
         where debit = 'operator_costs' and ${ofPartner(sql`partner_id`)} group by partner_id, movement_id, currency
      ), decided as (
        select partner_id, movement_id, currency, amount from float_costs where ${ofPartner(sql`partner_id`)}
      ), balance as (
        select partner_id, currency, sum(case when debit = 'operator_costs' then amount else -amount end) as amount
          from ledger_transfers where (debit = 'operator_costs' or credit = 'operator_costs') and ${ofPartner(sql`partner_id`)}
         group by partner_id, currency
      )
      select coalesce(b.partner_id, c.partner_id) as partner_id, coalesce(b.movement_id, c.movement_id) as subject,
             format('%s %s', coalesce(c.amount, 0), coalesce(c.currency, b.currency)) as expected,
             format('%s %s', coalesce(b.amount, 0), coalesce(b.currency, c.currency)) as found
        from booked b full join decided c on c.partner_id = b.partner_id and c.movement_id = b.movement_id
       where (b.amount, b.currency::text) is distinct from (c.amount, c.currency::text)
       union all
      select partner_id, 'operator_costs', 'nothing below 0', format('%s %s', amount, currency) from balance where amount < 0
       order by 1, 2 limit 1`,
  },
  {
    name: 'carried',
    rule: 'every amount carried out of one cycle is carried into another: each member’s carried account is zero',
    on: 'members',
    broken: ({ unsealed }) => sql`
      select t.partner_id, t.member_id || ' ' || t.currency as subject, '0' as expected,
             sum(case when t.debit = 'carried' then t.amount else -t.amount end)::text as found
        from ${unsealed} t
       where t.debit = 'carried' or t.credit = 'carried'
       group by t.partner_id, t.member_id, t.currency
      having sum(case when t.debit = 'carried' then t.amount else -t.amount end) <> 0
       order by 1, 2 limit 1`,
  },
  {
    name: 'member order',
    rule: 'a member’s transfers are numbered without gaps, and no balance after any of them was below zero',
    on: 'members',
    broken: ({ unsealed, balances }) => sql`
      with kept as materialized (
        select * from (
          select partner_id, member_id, currency, id, member_sequence, sum(numbers) over member as place,
                 sum(available_change) over member as available, sum(owed_change) over member as owed,
                 lead(member_sequence) over member is null as is_last
            -- A sum of bigint is numeric, and takes twice as long. Balances and counts are exact in double precision.
            from (select partner_id, member_id, currency, id, member_sequence, numbers::float8 as numbers,
                         case when credit = 'member_available' then amount when debit = 'member_available' then -amount else 0 end::float8
                           as available_change,
                         case when debit = 'member_owed' then amount when credit = 'member_owed' then -amount else 0 end::float8
                           as owed_change
                    from ${unsealed} t offset 0) t
          -- A number is faster to sort than ids, which begin with the same time.
          window member as (partition by hashtextextended(member_id, 0), partner_id, member_id, currency order by member_sequence)) lines
         where is_last or member_sequence <> place or available < 0 or owed < 0
      )
      select partner_id, id as subject, format('number %s, nothing below zero', place) as expected,
             format('number %s, available %s, owed %s', member_sequence, available::numeric, owed::numeric) as found
        from kept where member_sequence <> place or available < 0 or owed < 0
       union all
      select b.partner_id, b.member_id || ' ' || b.currency, format('%s transfers', coalesce(k.place, 0)), format('%s transfers', b.transfer_count)
        from ledger_balances b
        left join kept k on k.partner_id = b.partner_id and k.member_id = b.member_id and k.currency = b.currency and k.is_last
       where ${balances} and b.transfer_count <> coalesce(k.place, 0)
       order by 1, 2 limit 1`,
  },
  {
    name: 'empty payout batches',
    rule: 'a batch without payments counts none',
    on: 'partners',
    broken: () => sql`
      with filled as materialized (select distinct batch_id from payouts where batch_id is not null)
      select 'operator' as partner_id, b.id as subject, '0 payments, 0' as expected,
             format('%s payments, %s', b.payment_count, b.control_total) as found
        from payout_batches b
       where (b.payment_count, b.control_total) <> (0, 0) and not exists (select from filled f where f.batch_id = b.id)
       order by b.id limit 1`,
  },
  {
    name: 'payout batches',
    rule: 'a batch has the count and the sum of its payments; each payment has the net amount of its withdrawal, which was not held back or cancelled; the reference of a payment finds its partner',
    on: 'movements',
    broken: chosen => sql`
      with summed as materialized (
        select batch_id as id, count(*) filter (where removed_at is null) as payments,
               coalesce(sum(net_amount) filter (where removed_at is null), 0) as total
          from payouts
         where batch_id = any(array(select distinct p.batch_id from payouts p
                                     where p.batch_id is not null and ${chosen('withdrawal', sql`p.partner_id`, sql`p.withdrawal_id`)}))
         group by batch_id
      )
      select 'operator' as partner_id, b.id as subject, format('%s payments, %s', s.payments, s.total) as expected,
             format('%s payments, %s', b.payment_count, b.control_total) as found
        from summed s join payout_batches b using (id) where (b.payment_count, b.control_total) <> (s.payments, s.total)
       union all
      select p.partner_id, p.reference, format('%s %s, submitted', w.net_amount, w.currency),
             format('%s %s, %s', p.net_amount, p.currency, w.status)
        from payouts p join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
       where p.batch_id is not null and ${chosen('withdrawal', sql`p.partner_id`, sql`p.withdrawal_id`)}
         and ((p.net_amount, p.currency::text) <> (w.net_amount, w.currency::text) or w.status in ('held', 'cancelled'))
       union all
      select p.partner_id, p.reference, p.partner_id, coalesce(f.partner_id, 'no partner')
        from payouts p left join payout_references f on f.reference = p.reference
       where f.partner_id is distinct from p.partner_id and ${chosen('withdrawal', sql`p.partner_id`, sql`p.withdrawal_id`)}
       order by 1, 2 limit 1`,
  },
  {
    name: 'float totals',
    rule: 'a float’s total and its unfolded changes are the sums of its transfers',
    on: 'partners',
    broken: ({ ofPartner, unsealed }) => sql`
      with kept as (
        select partner_id, currency, sum(float_change) as float, sum(pending_change) as pending
          from (select partner_id, currency, float_change, pending_change from ledger_float_changes
                 union all
                select partner_id, currency, float_balance, pending_balance from ledger_float_totals) parts
         where ${ofPartner(sql`partner_id`)}
         group by partner_id, currency
      ), booked as (
        select partner_id, currency, sum(float) as float, sum(pending) as pending
          from (select t.partner_id, t.currency, ${floatChange} as float, ${pendingChange} as pending
                  from ${unsealed} t where ${movesFloat} group by t.partner_id, t.currency
                 union all
                select partner_id, currency, case when account = 'float' then debits - credits else 0 end,
                       case when account = 'payouts_pending' then credits - debits else 0 end
                  from ${sealedSums} s where ${ofPartner(sql`partner_id`)} and account in ('float', 'payouts_pending')) parts
         group by partner_id, currency
      )
      select coalesce(b.partner_id, k.partner_id) as partner_id, coalesce(b.currency, k.currency) as subject,
             format('float %s, pending %s', coalesce(b.float, 0), coalesce(b.pending, 0)) as expected,
             format('float %s, pending %s', coalesce(k.float, 0), coalesce(k.pending, 0)) as found
        from booked b full join kept k using (partner_id, currency)
       where (coalesce(b.float, 0), coalesce(b.pending, 0)) <> (coalesce(k.float, 0), coalesce(k.pending, 0))
       order by 1, 2 limit 1`,
  },
  {
    name: 'seals',
    rule: 'the seals are the sums of the transfers that they cover',
    on: 'partners',
    broken: ({ ofPartner }) =>
      sums({
        expected: sql`
        select s.partner_id, line.account, s.currency, 'the seals', line.balance
          from ledger_member_seals s cross join lateral (values
            ${sql.join(sealedAccounts.map(account => sql`(${sql.lit(account)}, ${sql.ref(`s.${account}`)})`))}) as line (account, balance)
         where ${ofPartner(sql`s.partner_id`)}`,
        found: sql`
        select m.partner_id, m.account, m.currency, 'the seals', m.credits - m.debits from ledger_seal_sums m
         where m.part = 'members' and ${ofPartner(sql`m.partner_id`)}`,
      }),
  },
]
