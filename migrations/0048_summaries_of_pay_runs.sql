-- The list of pay runs shows how much each one adds and for whom, and where it came from. Summing up the lines of a page of pay runs
-- would read millions of rows.

set local lock_timeout = '5s';

alter table pay_runs
  add column line_count integer not null default 0,
  add column member_count integer not null default 0,
  -- The sum of the lines in minor units, by currency.
  add column totals jsonb not null default '{}',
  -- The file in the console that the lines are from; null for a pay run of the partner's server.
  add column file_name text check (length(file_name) between 1 and 200);

update pay_runs r
   set line_count = s.line_count, member_count = s.member_count, totals = s.totals
  from (select partner_id, pay_run_id, sum(line_count)::integer as line_count, max(member_count) as member_count,
               jsonb_object_agg(currency, amount::text) as totals
          from (select partner_id, pay_run_id, currency, sum(amount) as amount, count(*) as line_count,
                       (select count(distinct m.member_id)::integer from pay_run_lines m
                         where m.partner_id = l.partner_id and m.pay_run_id = l.pay_run_id) as member_count
                  from pay_run_lines l group by partner_id, pay_run_id, currency) by_currency
         group by partner_id, pay_run_id) s
 where s.partner_id = r.partner_id and s.pay_run_id = r.id;

alter table pay_runs alter column line_count drop default, alter column member_count drop default, alter column totals drop default;
