-- One statement per intent: it reads the member, the tier and the cycle, decides, and writes the intent and its event.
-- Ids begin with the time, like the product's, so that they are appended to the indexes and not scattered over them.
\set member random(0, :members - 1)
\set lot random(0, 999999)
with fact as (
  select m.partner_id, m.id as member_id, c.id as pay_cycle_id, t.currency, t.name as tier, t.version,
         m.account, v.fee_payer, 5000::bigint as gross_amount,
         least(greatest(v.fee_fixed + 5000::bigint * v.fee_bps / 10000, coalesce(v.fee_min, 0)),
               coalesce(v.fee_max, 9007199254740991)) as fee,
         lpad((extract(epoch from clock_timestamp()) * 1000000)::bigint::text || lpad(:client_id::text, 3, '0')
                || lpad(:lot::text, 6, '0'), 26, '0') as number
    from partners p
    join pay_cycles c on c.partner_id = p.id and c.status = 'Open'
    join members m on m.partner_id = p.id and m.id = 'mem_' || lpad(:member::text, 26, '0')
    join tiers t on t.partner_id = p.id and t.name = m.tier
    join tier_versions v on v.partner_id = p.id and v.tier = t.name and v.version = t.version
    join ledger_balances b on b.partner_id = p.id and b.member_id = m.id and b.currency = t.currency
   where p.id = :partner::text and not p.paused and m.status = 'active' and m.account is not null
     and 5000 between v.lower_limit and v.upper_limit and 5000 <= b.available
), intent as (
  insert into withdrawal_intents (partner_id, id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee, employer_fee,
                                  tier, tier_version, account, created_at, expires_at)
  select partner_id, 'wi_' || number, member_id, pay_cycle_id, 'pending', currency, gross_amount,
         case when fee_payer = 'member' then gross_amount - fee else gross_amount end,
         case when fee_payer = 'member' then fee else 0 end, case when fee_payer = 'member' then 0 else fee end,
         tier, version, account, now(), now() + interval '15 minutes'
    from fact
  returning partner_id, id, member_id, pay_cycle_id, currency, gross_amount, net_amount, fee, created_at
)
insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
select partner_id, 'evt' || substr(id, 3), 'intent.created', id, 1,
       jsonb_build_object('withdrawalIntentId', id, 'memberId', member_id, 'payCycleId', pay_cycle_id,
                          'amount', jsonb_build_object('amount', gross_amount, 'currency', currency),
                          'fee', jsonb_build_object('amount', fee, 'currency', currency),
                          'netAmount', jsonb_build_object('amount', net_amount, 'currency', currency)),
       created_at
  from intent;
