-- The first schema: partners and their keys, tiers, members, pay cycles, pay runs, intents, withdrawals, the books,
-- idempotency records and events.
--
-- Every table's key and foreign keys begin with partner_id: a row can only ever refer to rows of its own partner, and
-- the schema can be distributed by partner. Ids are readable text ('mem_…'), compared byte by byte whatever the
-- database's locale. A rule that must never be broken is a constraint whose name is the rule.

set local lock_timeout = '5s';

create domain id as text collate "C";
create domain currency as text collate "C" check (length(value) = 3);

-- What this database is for. The program refuses to serve live keys from a sandbox, and the other way round.
create table installation (
  one boolean primary key default true check (one),
  mode text not null check (mode in ('sandbox', 'live')),
  created_at timestamptz not null
);

-- The edges that a state may take. Everything else is impossible, whatever the application believes.
create table state_edges (
  entity text not null,
  from_state text not null,
  to_state text not null,
  primary key (entity, from_state, to_state)
);

-- From 'new' are the states that a row can be born in.
insert into state_edges (entity, from_state, to_state) values
  ('members', 'new', 'invited'),
  ('pay_cycles', 'new', 'Open'),
  ('pay_runs', 'new', 'Scheduled'),
  ('withdrawal_intents', 'new', 'pending'),
  ('withdrawals', 'new', 'held'),
  ('members', 'invited', 'active'),
  ('members', 'active', 'inactive'),
  ('members', 'invited', 'inactive'),
  ('members', 'inactive', 'invited'),
  ('pay_cycles', 'Open', 'Closed'),
  ('pay_runs', 'Scheduled', 'Available'),
  ('pay_runs', 'Scheduled', 'Reverted'),
  ('pay_runs', 'Available', 'Reverted'),
  ('withdrawal_intents', 'pending', 'completed'),
  ('withdrawal_intents', 'pending', 'expired'),
  ('withdrawal_intents', 'pending', 'cancelled'),
  ('withdrawals', 'held', 'submitted'),
  ('withdrawals', 'held', 'cancelled'),
  ('withdrawals', 'submitted', 'paid'),
  ('withdrawals', 'submitted', 'failed'),
  ('withdrawals', 'paid', 'returned');

create function refuse_unlisted_edge() returns trigger language plpgsql as $$
declare
  was text := case tg_op when 'INSERT' then 'new' else old.status end;
begin
  if not exists (
    select from state_edges where entity = tg_table_name and from_state = was and to_state = new.status
  ) then
    raise exception '% may not go from % to %', tg_table_name, was, new.status
      using errcode = 'check_violation', constraint = 'only_listed_edges', table = tg_table_name;
  end if;
  return new;
end $$;

create function refuse_other_money() returns trigger language plpgsql as $$
begin
  raise exception '% keeps the amounts, the member and the currency that it was made with', tg_table_name
    using errcode = 'check_violation', constraint = 'amounts_never_change', table = tg_table_name;
end $$;

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name
    using errcode = 'check_violation', constraint = 'append_only', table = tg_table_name;
end $$;

create table partners (
  id id primary key,
  name text not null check (length(name) between 1 and 140),
  -- For phone numbers that are written without their country.
  country text not null check (country ~ '^[A-Z]{2}$'),
  time_zone text not null,
  -- Invited members become active at once.
  auto_activate boolean not null default false,
  -- How long a pay run can still be taken back before it becomes available.
  grace_minutes integer not null default 10 check (grace_minutes between 0 and 10080),
  -- How long a quote holds.
  intent_minutes integer not null default 15 check (intent_minutes between 1 and 1440),
  requests_per_second integer not null default 100 check (requests_per_second > 0),
  requests_burst integer not null default 200 check (requests_burst > 0),
  -- On-demand pay is temporarily unavailable.
  paused boolean not null default false,
  suspended_at timestamptz,
  created_at timestamptz not null
);

create table api_keys (
  partner_id id not null references partners,
  id id not null,
  mode text not null check (mode in ('sandbox', 'live')),
  -- SHA-256 of the whole key. The key itself is shown once and stored nowhere.
  hash bytea not null check (length(hash) = 32),
  -- The first characters, so that a person can tell two keys apart.
  hint text not null,
  scopes text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  primary key (partner_id, id),
  constraint one_key_one_partner unique (hash)
);

create table tiers (
  partner_id id not null references partners,
  name text not null check (length(name) between 1 and 60),
  currency currency not null,
  version integer not null check (version > 0),
  created_at timestamptz not null,
  primary key (partner_id, name)
);

create table tier_versions (
  partner_id id not null,
  tier text not null,
  version integer not null check (version > 0),
  fee_fixed bigint not null check (fee_fixed >= 0),
  fee_bps integer not null check (fee_bps between 0 and 9999),
  fee_min bigint check (fee_min >= 0),
  fee_max bigint check (fee_max >= coalesce(fee_min, 0)),
  fee_payer text not null check (fee_payer in ('member', 'employer')),
  lower_limit bigint not null check (lower_limit >= 1),
  upper_limit bigint not null check (upper_limit >= lower_limit),
  withdrawals_per_day integer check (withdrawals_per_day > 0),
  withdrawals_per_cycle integer check (withdrawals_per_cycle > 0),
  created_at timestamptz not null,
  primary key (partner_id, tier, version),
  foreign key (partner_id, tier) references tiers
);
create trigger tier_versions_append_only before update or delete on tier_versions
  for each row execute function refuse_change();

create table members (
  partner_id id not null references partners,
  id id not null,
  status text not null check (status in ('invited', 'active', 'inactive')),
  email text not null check (length(email) <= 254),
  first_name text not null,
  last_name text not null,
  phone text,
  tier text not null,
  worker_id text,
  account_holder text,
  sort_code text check (sort_code ~ '^[0-9]{6}$'),
  account_number text check (account_number ~ '^[0-9]{8}$'),
  iban text check (iban ~ '^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$'),
  enable_payroll boolean not null,
  dob date,
  gender text check (gender in ('Female', 'Male', 'NonBinary')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (partner_id, id),
  foreign key (partner_id, tier) references tiers,
  constraint one_member_per_worker_id unique (partner_id, worker_id),
  constraint account_is_uk_or_eu_or_none check (
    num_nulls(account_holder, sort_code, account_number, iban) = 4
    or (num_nulls(account_holder, sort_code, account_number) = 0 and iban is null)
    or (num_nulls(account_holder, iban) = 0 and num_nulls(sort_code, account_number) = 2)
  )
);
create unique index one_member_per_email on members (partner_id, lower(email)) where status in ('active', 'invited');
-- The unique index leaves the inactive out; a filter by e-mail does not.
create index members_by_email on members (partner_id, lower(email), id desc);
create index members_by_status on members (partner_id, status, id desc);
create trigger members_births before insert on members
  for each row execute function refuse_unlisted_edge();
create trigger members_edges before update of status on members
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_edge();

create table pay_cycles (
  partner_id id not null references partners,
  id id not null,
  start_date date not null,
  end_date date not null,
  status text not null check (status in ('Open', 'Closed')),
  created_at timestamptz not null,
  primary key (partner_id, id),
  check (start_date <= end_date),
  unique (partner_id, start_date)
);
create unique index one_open_cycle on pay_cycles (partner_id) where status = 'Open';
create trigger pay_cycles_births before insert on pay_cycles
  for each row execute function refuse_unlisted_edge();
create trigger pay_cycles_edges before update of status on pay_cycles
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_edge();

create table pay_runs (
  partner_id id not null references partners,
  id id not null,
  pay_cycle_id id not null,
  status text not null check (status in ('Scheduled', 'Available', 'Reverted')),
  scheduled_for timestamptz not null,
  available_at timestamptz,
  created_at timestamptz not null,
  primary key (partner_id, id),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint available_has_its_time check ((status = 'Available') <= (available_at is not null))
);
create index pay_runs_due on pay_runs (scheduled_for) where status = 'Scheduled';
create index pay_runs_by_cycle on pay_runs (partner_id, pay_cycle_id, available_at);
create trigger pay_runs_births before insert on pay_runs
  for each row execute function refuse_unlisted_edge();
create trigger pay_runs_edges before update of status on pay_runs
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_edge();

create table pay_run_lines (
  partner_id id not null,
  pay_run_id id not null,
  line integer not null,
  member_id id not null,
  amount bigint not null check (amount <> 0),
  currency currency not null,
  primary key (partner_id, pay_run_id, line),
  foreign key (partner_id, pay_run_id) references pay_runs,
  foreign key (partner_id, member_id) references members
);

create table withdrawal_intents (
  partner_id id not null references partners,
  id id not null,
  member_id id not null,
  pay_cycle_id id not null,
  status text not null check (status in ('pending', 'completed', 'expired', 'cancelled')),
  currency currency not null,
  -- What the member asked for: net plus their fee.
  amount bigint not null check (amount > 0),
  net bigint not null check (net > 0),
  fee bigint not null check (fee >= 0),
  employer_fee bigint not null check (employer_fee >= 0),
  tier text not null,
  tier_version integer not null,
  account_holder text not null,
  sort_code text,
  account_number text,
  iban text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (partner_id, id),
  foreign key (partner_id, member_id) references members,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  foreign key (partner_id, tier, tier_version) references tier_versions,
  constraint net_and_fee_are_the_amount check (amount = net + fee),
  constraint one_pays_the_fee check (fee = 0 or employer_fee = 0),
  check (num_nulls(sort_code, account_number) = 0 and iban is null or num_nulls(sort_code, account_number) = 2 and iban is not null)
);
create index withdrawal_intents_due on withdrawal_intents (expires_at) where status = 'pending';
create trigger withdrawal_intents_money before update on withdrawal_intents
  for each row when ((old.partner_id, old.id, old.member_id, old.currency, old.amount, old.net, old.fee, old.employer_fee)
    is distinct from (new.partner_id, new.id, new.member_id, new.currency, new.amount, new.net, new.fee, new.employer_fee))
  execute function refuse_other_money();
create trigger withdrawal_intents_births before insert on withdrawal_intents
  for each row execute function refuse_unlisted_edge();
create trigger withdrawal_intents_edges before update of status on withdrawal_intents
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_edge();

create table withdrawals (
  partner_id id not null,
  id id not null,
  withdrawal_intent_id id not null,
  member_id id not null,
  pay_cycle_id id not null,
  status text not null check (status in ('held', 'submitted', 'paid', 'failed', 'returned', 'cancelled')),
  currency currency not null,
  amount bigint not null check (amount > 0),
  net bigint not null check (net > 0),
  fee bigint not null check (fee >= 0),
  employer_fee bigint not null check (employer_fee >= 0),
  created_at timestamptz not null,
  primary key (partner_id, id),
  foreign key (partner_id, withdrawal_intent_id) references withdrawal_intents,
  foreign key (partner_id, member_id) references members,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  -- For ever, so that an idempotency key that has expired cannot pay twice.
  constraint one_withdrawal_per_intent unique (partner_id, withdrawal_intent_id),
  constraint net_and_fee_are_the_amount check (amount = net + fee),
  constraint one_pays_the_fee check (fee = 0 or employer_fee = 0)
);
create index withdrawals_newest on withdrawals (partner_id, created_at desc, id desc);
create index withdrawals_by_member on withdrawals (partner_id, member_id, created_at desc, id desc);
create index withdrawals_by_cycle on withdrawals (partner_id, pay_cycle_id, created_at desc, id desc);
create trigger withdrawals_money before update on withdrawals
  for each row when ((old.partner_id, old.id, old.member_id, old.currency, old.amount, old.net, old.fee, old.employer_fee)
    is distinct from (new.partner_id, new.id, new.member_id, new.currency, new.amount, new.net, new.fee, new.employer_fee))
  execute function refuse_other_money();
create trigger withdrawals_births before insert on withdrawals
  for each row execute function refuse_unlisted_edge();
create trigger withdrawals_edges before update of status on withdrawals
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_edge();

-- The books. A row names one account to debit and one to credit, so every row balances by itself. An account is a
-- name, and, where its name says so, the row's member or pay cycle: the account that 'member_available' means here is
-- the one of this row's member.
create table ledger_transfers (
  partner_id id not null references partners,
  id id not null,
  -- The transfers of one movement share its id: the pay run, the withdrawal.
  movement_id id not null,
  reason text not null,
  debit text not null,
  credit text not null,
  amount bigint not null check (amount > 0),
  currency currency not null,
  member_id id,
  pay_cycle_id id,
  created_at timestamptz not null,
  primary key (partner_id, id),
  foreign key (partner_id, member_id) references members,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint accounts_exist check (
    debit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees')
    and credit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees')
  ),
  constraint two_accounts check (debit <> credit),
  constraint member_is_named check (
    member_id is not null
    or (debit not in ('member_available', 'member_owed') and credit not in ('member_available', 'member_owed'))
  ),
  constraint cycle_is_named check (pay_cycle_id is not null or (debit <> 'earned_pay' and credit <> 'earned_pay'))
);
create index ledger_transfers_by_movement on ledger_transfers (partner_id, movement_id);
create index ledger_transfers_by_member on ledger_transfers (partner_id, member_id, id) where member_id is not null;
create trigger ledger_transfers_append_only before update or delete on ledger_transfers
  for each row execute function refuse_change();
create trigger ledger_transfers_not_emptied before truncate on ledger_transfers
  for each statement execute function refuse_change();

-- What the transfers of a member add up to, kept in the transaction that posts them.
create table ledger_balances (
  partner_id id not null,
  member_id id not null,
  currency currency not null,
  available bigint not null default 0,
  owed bigint not null default 0,
  primary key (partner_id, member_id, currency),
  foreign key (partner_id, member_id) references members,
  constraint member_not_overdrawn check (available >= 0),
  constraint nothing_owed_to_nobody check (owed >= 0),
  -- Beyond it JSON could not hold the amount exactly.
  constraint balance_fits_the_wire check (available <= 9007199254740991 and owed <= 9007199254740991)
);

-- Written in the transaction of the effect: neither exists without the other.
create table idempotency_keys (
  partner_id id not null references partners,
  key text collate "C" not null check (length(key) between 1 and 255),
  -- SHA-256 of method, route, path parameters, query and the body with its keys sorted.
  fingerprint bytea not null,
  operation text not null,
  status integer,
  headers jsonb,
  body text,
  resource_id text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (partner_id, key)
);
create index idempotency_keys_expired on idempotency_keys (expires_at);

create table events (
  partner_id id not null references partners,
  id id not null,
  type text not null,
  resource_id text not null,
  sequence integer not null check (sequence > 0),
  data jsonb not null,
  created_at timestamptz not null,
  -- Commits are not in the order of ids; a reader stops before the oldest transaction that is still open.
  transaction_id xid8 not null default pg_current_xact_id(),
  primary key (partner_id, id),
  constraint one_event_per_step unique (partner_id, resource_id, sequence)
);
create index events_feed on events (partner_id, transaction_id, id);
create trigger events_append_only before update on events
  for each row execute function refuse_change();
