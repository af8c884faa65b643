-- The schema, in the order in which money moves: partners, members and their imports, pay, the ledger, withdrawals, payouts,
-- settlements, the bank's files and exceptions, events and webhooks, users, requests, the audit logs and the sandbox.
--
-- Keys and foreign keys begin with partner_id: a row can refer only to rows of the same partner, and the schema can be
-- distributed by partner. Only what belongs to the operator, such as batches, bank files and users, has no partner. Ids are
-- readable text ('mem_…'), compared byte by byte whatever the database's locale, and so is every text that is in an index. A
-- rule that must never be broken is a constraint or a trigger whose name is the rule. Nothing is ordered by transaction ids:
-- they start again on another server.
--
-- The app role owns nothing; src/database/table-rules.ts gives its rights. Rules that grants cannot express are triggers, which
-- bind the owner too.

create domain id as text collate "C";
create domain currency as text collate "C" check (length(value) = 3);


-- The installation

-- The program refuses to serve live keys from a sandbox, and sandbox keys from a live database.
create table installation (
  one boolean primary key default true check (one),
  mode text not null check (mode in ('sandbox', 'live')),
  created_at timestamptz not null
);

-- The keys that seal what the program must be able to read back, such as the secrets that sign webhooks. They are stored only
-- wrapped by a key from outside the database, so that a copy of the database reveals nothing.
create table installation_keys (
  number integer not null check (number between 1 and 255),
  -- Identifies the key outside the database that wraps this one. A copy of a key is wrapped by another provider.
  provider text collate "C" not null,
  -- The number and the key, encrypted by the provider.
  wrapped bytea not null,
  created_at timestamptz not null,
  primary key (number, provider)
);

-- For what the key of a number serves. A key that replaces another is known to every process before one uses it, and a retired key only
-- opens, until nothing names it; see docs/decisions/0063-rotating-keys.md.
create table installation_key_uses (
  number integer primary key check (number between 1 and 255),
  purpose text collate "C" not null check (purpose in ('sealing', 'fingerprints', 'receipts', 'browsers')),
  stage text collate "C" not null check (stage in ('known', 'used', 'retired'))
);
-- At most one replaces the key of a purpose.
create unique index one_rotation_at_a_time on installation_key_uses (purpose, stage) where stage <> 'used';

-- The migrations that have begun, each with its steps; see docs/operations/upgrading.md. Decides whether a program that does not know a
-- migration may run: it may if it knows `compatible_with`. Null means that only programs that know the migration may.
create table migrations (
  name text collate "C" primary key,
  -- SHA-256 of the file. A file that was applied never changes.
  checksum text not null check (checksum ~ '^[0-9a-f]{64}$'),
  compatible_with text check (compatible_with ~ '^[0-9]{4}$'),
  begun_at timestamptz not null
);

-- A step that was interrupted is run again, or continued where its back-fill has arrived.
create table migration_steps (
  migration text collate "C" not null references migrations,
  number integer not null check (number > 0),
  -- Steps that contract the schema run once no older program is running.
  phase text not null check (phase in ('expand', 'contract')),
  -- The key of the last row that a back-fill has passed.
  passed_key text[],
  row_count bigint not null default 0,
  finished_at timestamptz,
  primary key (migration, number)
);

-- What operators were told by a webhook or by e-mail: a message is sent when what needs attention differs from it.
create table operator_notices (
  channel text collate "C" primary key check (channel in ('webhook', 'email')),
  -- A list of { kind, subject, notice, since }: what needed attention in the last message that arrived.
  reported jsonb not null,
  reported_at timestamptz,
  -- The message that is being sent, with its id; repeated attempts send the same.
  message jsonb,
  attempts integer not null check (attempts >= 0),
  -- Null when no message is being sent.
  next_attempt_at timestamptz,
  -- When a worker that has this channel last decided whether there is something to say.
  checked_at timestamptz not null,
  -- Why the last attempt failed.
  fault text
);

-- Without heartbeats an API process cannot tell that no worker is alive. Written every few seconds by the database's clock, since
-- the clocks of several machines need not agree.
create table worker_heartbeats (
  worker_id text collate "C" primary key,
  host text not null,
  process_id integer not null,
  started_at timestamptz not null,
  beat_at timestamptz not null
);


-- State transitions and rows that never change

-- The allowed transitions. Those from 'new' give the states in which a row may be created.
create table state_transitions (
  entity text collate "C" not null,
  from_state text collate "C" not null,
  to_state text collate "C" not null,
  primary key (entity, from_state, to_state)
);

insert into state_transitions (entity, from_state, to_state) values
  ('members', 'new', 'invited'),
  ('members', 'invited', 'active'),
  ('members', 'invited', 'inactive'),
  ('members', 'active', 'inactive'),
  ('members', 'inactive', 'invited'),
  ('member_imports', 'new', 'NotReady'),
  ('member_imports', 'new', 'AwaitingReview'),
  ('member_imports', 'new', 'Processing'),
  ('member_imports', 'NotReady', 'AwaitingReview'),
  ('member_imports', 'NotReady', 'Processing'),
  ('member_imports', 'NotReady', 'Rejected'),
  ('member_imports', 'AwaitingReview', 'Processing'),
  ('member_imports', 'AwaitingReview', 'Rejected'),
  ('member_imports', 'Processing', 'Completed'),
  ('member_imports', 'Processing', 'Rejected'),
  ('pay_cycles', 'new', 'Open'),
  ('pay_cycles', 'Open', 'Closed'),
  ('pay_runs', 'new', 'Scheduled'),
  ('pay_runs', 'Scheduled', 'Available'),
  ('pay_runs', 'Scheduled', 'Reverted'),
  ('pay_runs', 'Available', 'Reverted'),
  ('withdrawal_intents', 'new', 'pending'),
  ('withdrawal_intents', 'pending', 'completed'),
  ('withdrawal_intents', 'pending', 'expired'),
  ('withdrawal_intents', 'pending', 'cancelled'),
  ('withdrawals', 'new', 'held'),
  ('withdrawals', 'held', 'submitted'),
  ('withdrawals', 'held', 'cancelled'),
  ('withdrawals', 'submitted', 'paid'),
  ('withdrawals', 'submitted', 'failed'),
  ('withdrawals', 'paid', 'returned'),
  -- Only by a decision that recovers the money: see withdrawals_recoveries.
  ('withdrawals', 'failed', 'paid'),
  ('withdrawals', 'returned', 'paid'),
  ('payout_batches', 'new', 'building'),
  ('payout_batches', 'building', 'approved'),
  -- When every payment was removed.
  ('payout_batches', 'building', 'cancelled'),
  ('payout_batches', 'approved', 'cancelled'),
  ('payout_batches', 'approved', 'sent'),
  ('payout_batches', 'sent', 'acknowledged'),
  ('payout_batches', 'sent', 'settled'),
  ('payout_batches', 'sent', 'rejected'),
  ('payout_batches', 'acknowledged', 'settled'),
  ('payout_batches', 'acknowledged', 'rejected'),
  ('invoices', 'new', 'open'),
  ('invoices', 'open', 'paid'),
  ('invoices', 'open', 'void'),
  ('invoices', 'paid', 'open');

-- Triggers name their entity: on a distributed PostgreSQL the name of a table is the name of a shard. The schema is written out
-- before state_transitions: a temporary table of that name would be found first, and could allow any transition.
create function refuse_unlisted_transition() returns trigger language plpgsql as $$
declare
  was text := case tg_op when 'INSERT' then 'new' else old.status end;
begin
  if not exists (
    select from public.state_transitions where entity = tg_argv[0] and from_state = was and to_state = new.status
  ) then
    raise exception '% may not go from % to %', tg_argv[0], was, new.status
      using errcode = 'check_violation', constraint = 'only_listed_transitions', table = tg_argv[0];
  end if;
  return new;
end $$;

create function refuse_other_terms() returns trigger language plpgsql as $$
begin
  raise exception '% keeps the terms that it was made with', tg_argv[0]
    using errcode = 'check_violation', constraint = 'terms_never_change', table = tg_argv[0];
end $$;

-- Only the reset of a sandbox deletes rows that are kept forever, through its function, which runs as the owner. The setting alone
-- would not do: every role can make one.
create function refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.partner_id = current_setting('midmonth.resetting', true)
     and current_user = (select pg_catalog.pg_get_userbyid(relowner) from pg_catalog.pg_class where oid = tg_relid)
     and exists (select from public.installation where mode = 'sandbox')
  then
    return old;
  end if;
  raise exception '% is append-only', tg_argv[0]
    using errcode = 'check_violation', constraint = 'append_only', table = tg_argv[0];
end $$;

-- For tables without a partner.
create function refuse_change_of_installation() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name
    using errcode = 'check_violation', constraint = 'append_only', table = tg_table_name;
end $$;

-- A key only ever loses rights: a revoked key stays revoked, an expiry is never postponed, and scopes never change.
create function refuse_key_revival() returns trigger language plpgsql as $$
begin
  raise exception 'an API key cannot be revived or changed; create another one'
    using errcode = 'check_violation', constraint = 'keys_are_never_revived', table = tg_table_name;
end $$;


-- Partners

create table partners (
  id id primary key,
  name text not null check (length(name) between 1 and 140),
  -- The default country of phone numbers.
  country text not null check (country ~ '^[A-Z]{2}$'),
  time_zone text not null,
  -- Invited members become active at once.
  auto_activate boolean not null default false,
  -- How long a pay run can be reverted before it becomes available.
  grace_minutes integer not null default 10 check (grace_minutes between 0 and 10080),
  -- How long an intent can be completed.
  intent_minutes integer not null default 15 check (intent_minutes between 1 and 1440),
  -- How long a withdrawal can be cancelled before it is submitted to the bank.
  hold_seconds integer not null default 30 check (hold_seconds between 0 and 86400),
  requests_per_second integer not null default 100 check (requests_per_second > 0),
  requests_burst integer not null default 200 check (requests_burst > 0),
  cycle_schedule text not null default 'monthly'
    check (cycle_schedule in ('weekly', 'two_weekly', 'four_weekly', 'semi_monthly', 'monthly')),
  -- A day on which a cycle starts. For 'monthly' only the day of the month counts; 'semi_monthly' ignores it.
  cycle_anchor date not null default '2024-01-01',
  -- What happens to a deduction that payroll could not take.
  shortfall_policy text not null default 'carry' check (shortfall_policy in ('carry', 'write_off')),
  -- A file that would offboard more than this share of the members waits for a review.
  offboard_review_percent integer not null default 10 check (offboard_review_percent between 0 and 100),
  -- A review blocks the partner's later imports, so the import is rejected after this time.
  review_days integer not null default 14 check (review_days between 1 and 365),
  -- Shown to members with a payment, in the characters of SEPA; may be empty.
  remittance_text text not null default ''
    constraint remittance_text_in_sepa_characters check (remittance_text ~ '^[A-Za-z0-9/?:().,''+ -]{0,140}$'),
  metadata_in_events boolean not null default false,
  -- Events about the partner itself: the sequence of the latest. Old events are dropped, so they cannot give it.
  event_count integer not null default 0,
  -- On-demand pay is temporarily unavailable.
  paused boolean not null default false,
  suspended_at timestamptz,
  created_at timestamptz not null,
  constraint monthly_anchor_is_in_every_month check (cycle_schedule <> 'monthly' or extract(day from cycle_anchor) <= 28)
);

-- Shown to members on the hosted page. A separate table, because every request reads the partner's row.
create table partner_logos (
  partner_id id primary key references partners (id),
  media_type text not null check (media_type in ('image/png', 'image/jpeg', 'image/webp')),
  bytes bytea not null,
  changed_at timestamptz not null,
  constraint logo_is_small check (length(bytes) between 1 and 102400)
);

create table api_keys (
  partner_id id not null references partners,
  id id not null,
  mode text not null check (mode in ('sandbox', 'live')),
  -- SHA-256 of the whole key, which is shown once and not stored.
  hash bytea not null check (length(hash) = 32),
  -- The first characters, by which a person tells two keys apart.
  hint text not null,
  scopes text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  primary key (partner_id, id),
  constraint one_key_one_partner unique (hash)
);
create trigger api_keys_never_revived before update on api_keys
  for each row when (
    (old.partner_id, old.id, old.mode, old.hash, old.hint, old.scopes, old.created_at)
    is distinct from (new.partner_id, new.id, new.mode, new.hash, new.hint, new.scopes, new.created_at)
    or (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at)
    or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity'))
  execute function refuse_key_revival();

create table tiers (
  partner_id id not null references partners,
  name text collate "C" not null check (length(name) between 1 and 60),
  currency currency not null,
  version integer not null check (version > 0),
  created_at timestamptz not null,
  primary key (partner_id, name)
);

create table tier_versions (
  partner_id id not null,
  tier text collate "C" not null,
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
  -- Null leaves the choice to the rail.
  payout_speed text check (payout_speed in ('standard', 'instant')),
  created_at timestamptz not null,
  primary key (partner_id, tier, version),
  foreign key (partner_id, tier) references tiers
);
create trigger tier_versions_append_only before update or delete on tier_versions
  for each row execute function refuse_change('tier_versions');
-- Row triggers do not see `truncate`.
create trigger tier_versions_not_emptied before truncate on tier_versions
  for each statement execute function refuse_change('tier_versions');


-- Members

-- No foreign key into partners, as for intents, transfers, events and idempotency keys: an import or a withdrawal would pay for
-- the check on each row, and the partner is known from the API key or is locked. The state in which nearly all rows are created,
-- or which nearly all reach, stands in the triggers' conditions, which cost nothing.
create table members (
  partner_id id not null,
  id id not null,
  status text collate "C" not null check (status in ('invited', 'active', 'inactive')),
  first_name text not null,
  last_name text not null,
  tier text not null,
  -- The e-mail, the phone number, the worker id, the day of birth and the gender, sealed with the member's profile key.
  profile bytea,
  -- Sealed with the member's payment key; null if there is none.
  account bytea,
  -- By which values are found and compared without being opened; see Fingerprints.
  email_fingerprint bytea check (octet_length(email_fingerprint) = 16),
  worker_id_fingerprint bytea check (octet_length(worker_id_fingerprint) = 16),
  account_details_fingerprint bytea check (octet_length(account_details_fingerprint) = 16),
  phone_fingerprint bytea check (octet_length(phone_fingerprint) = 16),
  dob_fingerprint bytea check (octet_length(dob_fingerprint) = 16),
  gender_fingerprint bytea check (octet_length(gender_fingerprint) = 16),
  -- The same with the next key, while the key of fingerprints is rotated.
  email_fingerprint_next bytea,
  worker_id_fingerprint_next bytea,
  account_details_fingerprint_next bytea,
  phone_fingerprint_next bytea,
  dob_fingerprint_next bytea,
  gender_fingerprint_next bytea,
  enable_payroll boolean not null,
  -- Why the bank refused the account, until it is changed. Refuses withdrawals.
  account_refused text,
  -- Why the member is held for review, until the operator releases the member. Refuses withdrawals.
  review_reason text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- When the partner gave the instruction behind the latest change: the instant of the request, or at which the import was sent. A
  -- queued import is applied long after it was sent, and a file that was sent later still wins over it.
  instructed_at timestamptz not null,
  -- The sequence of the latest event. The member is inserted together with the first.
  event_count integer not null default 1,
  -- When everything that identifies the member was destroyed. The row stays, because the books refer to it.
  erased_at timestamptz,
  primary key (partner_id, id),
  foreign key (partner_id, tier) references tiers,
  constraint erased_or_complete check (
    case when erased_at is null then profile is not null and email_fingerprint is not null
         else status = 'inactive' and first_name = '' and last_name = ''
              and num_nonnulls(profile, account, email_fingerprint, worker_id_fingerprint, account_details_fingerprint,
                               phone_fingerprint, dob_fingerprint, gender_fingerprint, email_fingerprint_next,
                               worker_id_fingerprint_next, account_details_fingerprint_next, phone_fingerprint_next,
                               dob_fingerprint_next, gender_fingerprint_next, account_refused, review_reason) = 0
    end),
  constraint one_member_per_worker_id unique (partner_id, worker_id_fingerprint),
  constraint account_has_a_fingerprint check ((account is null) = (account_details_fingerprint is null))
);
create unique index one_member_per_email on members (partner_id, email_fingerprint) where status in ('active', 'invited');
-- In every phase of a rotation, all members have a fingerprint with the same key, in one of the columns or the other; see
-- docs/decisions/0063-rotating-keys.md.
create unique index one_member_per_next_email on members (partner_id, email_fingerprint_next)
  where email_fingerprint_next is not null and status in ('active', 'invited');
create unique index one_member_per_next_worker_id on members (partner_id, worker_id_fingerprint_next)
  where worker_id_fingerprint_next is not null;
-- The unique index finds the other members. A new member is in only one of the two.
create index inactive_members_by_email on members (partner_id, email_fingerprint, id desc) where status = 'inactive';
create index members_by_status on members (partner_id, status, id desc);
-- A prefix is a range of these whatever the locale. The partner is part of the text: as a separate column it drew look-ups by
-- partner and id into these indexes while the statistics were old, and each then read all names of the partner.
create index members_by_full_name on members ((partner_id || ' ' || lower(first_name || ' ' || last_name)) collate "C");
create index members_by_last_name on members ((partner_id || ' ' || lower(last_name)) collate "C");
-- Planning an import analyzes the members. No query compares these columns.
alter table members
  alter column first_name set statistics 0,
  alter column last_name set statistics 0,
  alter column profile set statistics 0,
  alter column account set statistics 0,
  alter column account_details_fingerprint set statistics 0,
  alter column phone_fingerprint set statistics 0,
  alter column dob_fingerprint set statistics 0,
  alter column gender_fingerprint set statistics 0,
  alter column email_fingerprint_next set statistics 0,
  alter column worker_id_fingerprint_next set statistics 0,
  alter column account_details_fingerprint_next set statistics 0,
  alter column phone_fingerprint_next set statistics 0,
  alter column dob_fingerprint_next set statistics 0,
  alter column gender_fingerprint_next set statistics 0,
  alter column account_refused set statistics 0,
  alter column review_reason set statistics 0;
create trigger members_initial_state before insert on members
  for each row when (new.status <> 'invited') execute function refuse_unlisted_transition('members');
create trigger members_transitions before update of status on members
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_transition('members');

-- The program does the same; the trigger covers every other way of changing an account. During a rotation of the key of fingerprints,
-- an account is the same if any two of its fingerprints are equal.
create function clear_refused_account() returns trigger language plpgsql as $$
begin
  new.account_refused := null;
  return new;
end $$;
create trigger changed_account_is_not_refused before update of account_details_fingerprint on members
  for each row when (
    old.account_refused is not null
    and old.account_details_fingerprint is distinct from new.account_details_fingerprint
    and (old.account_details_fingerprint = new.account_details_fingerprint_next) is not true
    and (old.account_details_fingerprint_next = new.account_details_fingerprint_next) is not true)
  execute function clear_refused_account();

create function refuse_change_of_erased() returns trigger language plpgsql as $$
begin
  raise exception 'an erased member never changes'
    using errcode = 'check_violation', constraint = 'erased_members_never_change', table = tg_table_name;
end $$;
create trigger members_stay_erased before update on members
  for each row when (old.erased_at is not null) execute function refuse_change_of_erased();

-- The keys of members, wrapped with the installation's key. A sealed value is lost in every copy and backup of the other tables once its
-- key is destroyed, so dumps of the data leave this table out.
create table member_keys (
  partner_id id not null,
  member_id id not null,
  -- Seals the profile. Null once destroyed.
  profile_key bytea,
  -- Seals the accounts that the member is paid to, in members and in their intents. Null once destroyed.
  payment_key bytea,
  primary key (partner_id, member_id)
);

-- The key of the stored fingerprints. It is in the dump of the members, and the keys are in another: a restore that combines dumps from
-- before and after a rotation of this key is noticed.
create table member_fingerprint_key (
  one boolean primary key default true check (one),
  number integer not null
);

-- Fingerprints of e-mails and worker ids that members no longer have: rows of imports may still name them so.
create table member_former_names (
  partner_id id not null,
  member_id id not null,
  fingerprint bytea not null,
  changed_at timestamptz not null,
  primary key (partner_id, member_id, fingerprint)
);
create index member_former_names_by_fingerprint on member_former_names (partner_id, fingerprint);

-- What is left to know of an erased member: the receipt, and since when the payment key is kept.
create table member_erasures (
  partner_id id not null,
  member_id id not null,
  erased_at timestamptz not null,
  -- Signed; a repeated erasure returns it again.
  receipt text not null,
  -- The evidence of payments is kept for a time after the last withdrawal. Null if there was none, and the payment key was destroyed
  -- with the rest.
  last_paid_at timestamptz,
  payment_key_destroyed_at timestamptz,
  primary key (partner_id, member_id),
  foreign key (partner_id, member_id) references members
);
create index member_erasures_due on member_erasures (last_paid_at) where payment_key_destroyed_at is null;

-- A partner's members by tier and status: counts, and the changes not yet added to them. Counting a million members takes a quarter of
-- a second. A change is a separate row, so that concurrent writes to a partner's members do not wait for each other.
create table member_counts (
  partner_id id not null references partners,
  tier text collate "C" not null,
  status text collate "C" not null,
  count bigint not null,
  primary key (partner_id, tier, status)
);
create table member_count_changes (
  partner_id id not null,
  id uuid not null default gen_random_uuid(),
  tier text not null,
  status text not null,
  change integer not null,
  primary key (partner_id, id)
);

-- A short-lived token for one member's browser, which must not have the partner's key, bound to the origin of one web page. Deleted
-- soon after it expires.
create table member_sessions (
  partner_id id not null references partners,
  id id not null,
  member_id id not null,
  -- The API key that created it; the session ends when the key is revoked.
  key_id id not null,
  -- SHA-256 of the whole token, which is shown once.
  hash bytea not null check (length(hash) = 32),
  scope text not null check (scope in ('read', 'withdraw')),
  -- The web page that may use it; null for the hosted page.
  origin text collate "C" check (length(origin) <= 255),
  -- By real time, even on a sandbox whose clock was moved.
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (partner_id, id),
  constraint one_token_one_session unique (partner_id, hash),
  foreign key (partner_id, member_id) references members,
  foreign key (partner_id, key_id) references api_keys,
  constraint sessions_are_short check (expires_at > created_at and expires_at <= created_at + interval '15 minutes')
);
create index member_sessions_of_member on member_sessions (partner_id, member_id, id);
create index member_sessions_expired on member_sessions (expires_at);


-- Member imports

-- A batch of actions, or a file that is the complete list of members; the API calls it a job. A partner's imports are applied one
-- after another: a queued import is 'NotReady', and is planned against the members as the imports ahead have left them.
create table member_imports (
  partner_id id not null,
  id id not null,
  kind text not null check (kind in ('actions', 'file')),
  -- The file's columns in their order, and whether empty bank cells remove an account.
  columns text[] not null,
  removes_accounts boolean not null,
  -- The last row of the file; 0 without one.
  row_to integer not null,
  status text not null check (status in ('NotReady', 'AwaitingReview', 'Processing', 'Completed', 'Rejected')),
  -- The plan in numbers.
  invite integer not null,
  update integer not null,
  reinstate integer not null,
  offboard integer not null,
  unchanged integer not null,
  -- The limit that was sent with the file, kept until the file is planned.
  offboard_max integer check (offboard_max >= 0),
  -- The action of the file's rows without a step.
  rest_action text not null default 'Unchanged' check (rest_action in ('Invite', 'Unchanged')),
  steps_done integer not null default 0,
  -- The last step applied. It moves in the transaction that applies the steps, so a killed import resumes after it.
  applied_through integer not null default 0,
  created_at timestamptz not null,
  -- Since when the import waits for a review; null if it never had to.
  review_since timestamptz,
  reviewed_at timestamptz,
  ended_at timestamptz,
  -- When its rows and steps were deleted; the numbers stay.
  forgotten_at timestamptz,
  -- The sequence of the latest event.
  event_count integer not null default 0,
  primary key (partner_id, id),
  -- A batch of actions reports every action, a file only the changes.
  constraint steps_done_are_of_the_plan check (
    steps_done between 0 and invite + update + reinstate + offboard + case kind when 'actions' then unchanged else 0 end
  ),
  constraint import_ends_once check ((ended_at is not null) = (status in ('Completed', 'Rejected')))
);
create unique index one_member_import_at_a_time on member_imports (partner_id) where status in ('AwaitingReview', 'Processing');
create index member_imports_unfinished on member_imports (partner_id, created_at, id) where ended_at is null;
create index member_imports_to_forget on member_imports (ended_at) where forgotten_at is null;
create trigger member_imports_initial_state before insert on member_imports
  for each row execute function refuse_unlisted_transition('member_imports');
create trigger member_imports_transitions before update of status on member_imports
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_transition('member_imports');

-- How many actions of a running batch are done. The batch is one transaction, so member_imports shows nothing until it commits; this
-- row is written over another connection. Only what the API shows depends on it.
create table member_import_progress (
  partner_id id not null,
  import_id id not null,
  steps_done integer not null check (steps_done >= 0),
  primary key (partner_id, import_id)
);

-- The key of an import, wrapped with the installation's key. It seals the rows and the commands, and is deleted with them.
create table member_import_keys (
  partner_id id not null,
  import_id id not null,
  wrapped bytea not null,
  -- The number of the key of the fingerprints in the rows.
  fingerprint_key integer not null,
  primary key (partner_id, import_id)
);

-- The parsed rows of a file, by which it is planned and applied by set; null where a column is absent or a cell empty. Rows and
-- steps are written by the million, before their import and in its transaction, so they have no foreign key into it.
create table member_import_rows (
  partner_id id not null,
  import_id id not null,
  -- As a spreadsheet counts: the header is 1.
  row integer not null,
  -- The id of the member that the row would create.
  new_member_id id not null,
  first_name text not null,
  last_name text not null,
  tier text not null,
  -- The fields that are sealed in members, as one value, sealed with the import's key.
  sealed bytea not null,
  -- As in members. The e-mail has none if it could not be read.
  email_fingerprint bytea,
  worker_id_fingerprint bytea,
  account_details_fingerprint bytea,
  phone_fingerprint bytea,
  dob_fingerprint bytea,
  gender_fingerprint bytea,
  enable_payroll boolean,
  -- Why the row is refused, unless the member already has these values.
  faults text,
  primary key (partner_id, import_id, row)
);
-- An erasure finds the rows that name a member by this. A bloom filter for some hundred rows costs half a microsecond per row; a B-tree
-- for each of the columns costs more than a tenth of an import.
create index member_import_rows_by_name on member_import_rows using brin (
  email_fingerprint bytea_bloom_ops, worker_id_fingerprint bytea_bloom_ops, new_member_id text_bloom_ops
) with (pages_per_range = 32, autosummarize = on);
-- Planning analyzes the rows. No query compares these columns.
alter table member_import_rows
  alter column first_name set statistics 0,
  alter column last_name set statistics 0,
  alter column tier set statistics 0,
  alter column sealed set statistics 0,
  alter column account_details_fingerprint set statistics 0,
  alter column phone_fingerprint set statistics 0,
  alter column dob_fingerprint set statistics 0,
  alter column gender_fingerprint set statistics 0,
  alter column enable_payroll set statistics 0;

-- What to do with one member. A step has the number of its row or action; members missing from a file come after all rows. Rows
-- that need the import's rest_action have no step.
create table member_import_steps (
  partner_id id not null,
  import_id id not null,
  step integer not null,
  action text not null check (action in ('Invite', 'Update', 'Reinstate', 'Offboard', 'Unchanged')),
  member_id id not null,
  -- The action as it was requested, sealed with the import's key; null for a row of a file, or if the member was erased.
  command bytea,
  -- Why it was refused when it was applied.
  fault text,
  primary key (partner_id, import_id, step)
);
-- An erasure deletes what was requested about a member.
create index member_import_commands_by_member on member_import_steps (partner_id, member_id) where command is not null;
-- Like the index of the rows. Steps are short, so that a page holds many members.
create index member_import_steps_by_member on member_import_steps using brin (member_id text_bloom_ops (n_distinct_per_range = -0.5))
  with (pages_per_range = 32, autosummarize = on);

-- The rows of imports that name a member by one of these fingerprints, created the member, or have a step for the member; also the steps
-- without a row. The planner does not know how few pages the bloom filters leave, and would read all rows.
create function member_import_rows_naming(of_partner text, of_member text, fingerprints bytea[])
  returns table (import_id text, place integer) language sql stable rows 10
  set enable_seqscan = off set enable_indexscan = off as $$
  select r.import_id, r.row from public.member_import_rows r
   where r.partner_id = of_partner
     and (r.new_member_id = of_member or r.email_fingerprint = any(fingerprints) or r.worker_id_fingerprint = any(fingerprints))
   union
  select s.import_id, s.step from public.member_import_steps s where s.partner_id = of_partner and s.member_id = of_member
$$;


-- Pay

create table pay_cycles (
  partner_id id not null references partners,
  id id not null,
  start_date date not null,
  end_date date not null,
  status text not null check (status in ('Open', 'Closed')),
  created_at timestamptz not null,
  -- When it ended: from then on the next cycle is open.
  closed_at timestamptz,
  -- When the last member's unused pay had been released. Only then are the deductions final.
  released_at timestamptz,
  settled_at timestamptz,
  primary key (partner_id, id),
  constraint cycle_starts_before_it_ends check (start_date <= end_date),
  constraint one_cycle_per_start_date unique (partner_id, start_date),
  constraint closed_has_its_time check ((status = 'Closed') = (closed_at is not null)),
  constraint only_closed_is_released check (released_at is null or status = 'Closed'),
  constraint only_released_is_settled check (settled_at is null or released_at is not null)
);
create unique index one_open_cycle on pay_cycles (partner_id) where status = 'Open';
-- Members may still have unused pay of only one ended cycle: the next cycle ends after it is released.
create unique index one_cycle_releases on pay_cycles (partner_id) where status = 'Closed' and released_at is null;
-- The reference of payroll's transfer is MMS and these characters.
create index pay_cycles_by_reference on pay_cycles (upper(right(id, 14)));
create trigger pay_cycles_initial_state before insert on pay_cycles
  for each row execute function refuse_unlisted_transition('pay_cycles');
create trigger pay_cycles_transitions before update of status on pay_cycles
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_transition('pay_cycles');

create table pay_runs (
  partner_id id not null references partners,
  id id not null,
  pay_cycle_id id not null,
  status text not null check (status in ('Scheduled', 'Available', 'Reverted')),
  scheduled_for timestamptz not null,
  available_at timestamptz,
  reverted_at timestamptz,
  created_at timestamptz not null,
  -- Totals of the lines, for lists: summing the lines of a page of pay runs would read millions of rows.
  line_count integer not null,
  member_count integer not null,
  -- The sum of the lines in minor units, by currency.
  totals jsonb not null,
  -- The file uploaded in the console; null for a pay run sent through the API.
  file_name text check (length(file_name) between 1 and 200),
  primary key (partner_id, id),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint available_has_its_time check ((status = 'Available') <= (available_at is not null)),
  constraint reverted_has_its_time check ((status = 'Reverted') = (reverted_at is not null))
);
create index pay_runs_due on pay_runs (scheduled_for) where status = 'Scheduled';
create index pay_runs_by_cycle on pay_runs (partner_id, pay_cycle_id, available_at);
create trigger pay_runs_initial_state before insert on pay_runs
  for each row execute function refuse_unlisted_transition('pay_runs');
create trigger pay_runs_transitions before update of status on pay_runs
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_transition('pay_runs');

create table pay_run_lines (
  partner_id id not null,
  pay_run_id id not null,
  line integer not null,
  member_id id not null,
  -- May be zero: payroll exports have such lines.
  amount bigint not null,
  currency currency not null,
  primary key (partner_id, pay_run_id, line),
  foreign key (partner_id, pay_run_id) references pay_runs,
  foreign key (partner_id, member_id) references members
);


-- The ledger

-- Partitioned by month, like events; see make_partition, which also has the unique index and the storage of a partition.
-- A transfer names one account to debit and one to credit, so every row balances. An account is a name and, where the name says
-- so, the row's member or pay cycle: 'member_available' is the account of this row's member.
create table ledger_transfers (
  partner_id id not null,
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
  -- Counts the member's transfers in the currency from 1, in the order in which the member's lock was held.
  member_sequence bigint check (member_sequence > 0),
  created_at timestamptz not null,
  -- No foreign keys: they were half the cost of a transfer. A member's number comes from the member's balance, which refers to the
  -- member, and `ledger verify` compares each transfer with what required it.
  primary key (partner_id, id),
  constraint accounts_exist check (
    debit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off', 'payroll_receivable', 'operator_costs', 'revenue', 'fees_receivable', 'operator_account')
    and credit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off', 'payroll_receivable', 'operator_costs', 'revenue', 'fees_receivable', 'operator_account')
  ),
  constraint two_accounts check (debit <> credit),
  constraint member_is_named check (
    member_id is not null
    or (debit not in ('member_available', 'member_owed', 'earned_pay', 'carried')
        and credit not in ('member_available', 'member_owed', 'earned_pay', 'carried'))
  ),
  constraint members_transfers_are_numbered check ((member_id is null) = (member_sequence is null)),
  constraint cycle_is_named check (pay_cycle_id is not null or (debit <> 'earned_pay' and credit <> 'earned_pay'))
) partition by range (id);
create index ledger_transfers_by_movement on ledger_transfers (partner_id, movement_id);
create index ledger_transfers_by_cycle on ledger_transfers (partner_id, pay_cycle_id, member_id)
  where debit = 'earned_pay' or credit = 'earned_pay';
-- Fees that were given back, charged again, collected or paid. The charge of a withdrawal is found by its time.
create index ledger_transfers_of_fees on ledger_transfers (partner_id, id)
  where debit = 'fees' or (credit = 'fees' and reason <> 'withdrawal.held');
create index ledger_transfers_of_operator_costs on ledger_transfers (partner_id, currency, id)
  where debit = 'operator_costs' or credit = 'operator_costs';
-- What moves the partner's money without a member. Only payments of withdrawals are many.
create index ledger_transfers_of_partner on ledger_transfers (partner_id, id)
  where member_id is null and reason <> 'withdrawal.paid';
create trigger ledger_transfers_append_only before update or delete on ledger_transfers
  for each row execute function refuse_change('ledger_transfers');
create trigger ledger_transfers_not_emptied before truncate on ledger_transfers
  for each statement execute function refuse_change('ledger_transfers');

-- The sums of a member's transfers, kept in the transaction that posts them.
create table ledger_balances (
  partner_id id not null,
  member_id id not null,
  currency currency not null,
  available bigint not null default 0,
  -- The pay cycle that `available` was earned in. Once that has ended, the member cannot withdraw it, and it is released.
  pay_cycle_id id,
  owed bigint not null default 0,
  -- The latest member_sequence.
  transfer_count bigint not null default 0,
  primary key (partner_id, member_id, currency),
  foreign key (partner_id, member_id) references members,
  constraint member_not_overdrawn check (available >= 0),
  constraint owed_is_not_negative check (owed >= 0),
  -- The largest integer that every JSON parser reads exactly.
  constraint balance_fits_the_wire check (available <= 9007199254740991 and owed <= 9007199254740991),
  constraint available_is_of_a_cycle check (available = 0 or pay_cycle_id is not null)
);
-- Unused pay of one cycle must be released before pay of another is added: no one spends old pay in a new cycle.
create function refuse_pay_of_two_cycles() returns trigger language plpgsql as $$
begin
  raise exception 'pay of another cycle must be released first'
    using errcode = 'check_violation', constraint = 'available_is_of_one_cycle', table = 'ledger_balances';
end $$;
create trigger ledger_balances_of_one_cycle before update on ledger_balances
  for each row when (old.available > 0 and old.pay_cycle_id is distinct from new.pay_cycle_id)
  execute function refuse_pay_of_two_cycles();

-- The float of a partner: totals, and the changes not yet added to them. A change is a separate row, so that concurrent withdrawals
-- of a partner do not wait for each other.
create table ledger_float_totals (
  partner_id id not null references partners,
  currency currency not null,
  -- Debits less credits of the account `float`.
  float_balance bigint not null,
  -- Credits less debits of the account `payouts_pending`.
  pending_balance bigint not null,
  primary key (partner_id, currency)
);
create table ledger_float_changes (
  partner_id id not null,
  currency currency not null,
  -- The id of the first transfer in the change.
  id id not null,
  float_change bigint not null,
  pending_change bigint not null,
  primary key (partner_id, currency, id)
);

-- What payroll deducts from a member for a pay cycle, kept in the transaction that posts the transfers. Zero after a withdrawal that
-- was given back. Like transfers, without foreign keys.
create table ledger_deductions (
  partner_id id not null,
  pay_cycle_id id not null,
  member_id id not null,
  currency currency not null,
  -- Negative if payroll has to give money back.
  amount bigint not null,
  primary key (partner_id, pay_cycle_id, member_id, currency)
);

-- What all members can withdraw in a pay cycle, and how many deductions are not zero: totals, and the changes not yet added to them,
-- as for floats.
create table ledger_cycle_totals (
  partner_id id not null references partners,
  pay_cycle_id id not null,
  currency currency not null,
  available bigint not null,
  deductions bigint not null,
  primary key (partner_id, pay_cycle_id, currency)
);
create table ledger_cycle_changes (
  partner_id id not null,
  pay_cycle_id id not null,
  currency currency not null,
  -- The id of the first transfer in the change.
  id id not null,
  available_change bigint not null,
  deductions_change bigint not null,
  primary key (partner_id, pay_cycle_id, currency, id)
);

-- The operator's watch over a float. Without a row the float is not watched.
create table float_limits (
  partner_id id not null references partners,
  currency currency not null,
  floor bigint not null check (floor >= 0),
  -- Since when the float has been below the floor; null while it is not.
  low_since timestamptz,
  primary key (partner_id, currency)
);

-- Seals: the verified beginning of the books, with its sums, so that a verification reads only what is newer. A partner's books
-- are sealed after each pay cycle. What is sealed can get no more transfers, also from transactions that are still open:
--   * a member's transfers up to a number that is visible. Numbers are given under the lock of the balance.
--   * `withdrawal.paid` of a cycle that has closed, but for withdrawals that were unfinished when sealing began. No other withdrawal
--     of the cycle can still be paid.
-- Other transfers without a member are few, and are never sealed.
create table ledger_seals (
  partner_id id not null,
  pay_cycle_id id not null,
  started_at timestamptz not null,
  unfinished_withdrawals text[] not null,
  -- Transfers that are not sealed have ids from this time on. It narrows what is read, but does not decide what is sealed: a clock
  -- can be wrong.
  unsealed_from timestamptz not null,
  -- Progress: the last member sealed, null after all of them; and the time up to which payments are summed.
  members_after text default '',
  paid_until timestamptz,
  -- When the books last disagreed, so that nothing was sealed.
  refused_at timestamptz,
  sealed_at timestamptz,
  primary key (partner_id, pay_cycle_id),
  foreign key (partner_id, pay_cycle_id) references pay_cycles
);
create trigger ledger_seals_terms before update on ledger_seals
  for each row when (
    old.sealed_at is not null or (old.partner_id, old.pay_cycle_id, old.started_at, old.unfinished_withdrawals, old.unsealed_from)
      is distinct from (new.partner_id, new.pay_cycle_id, new.started_at, new.unfinished_withdrawals, new.unsealed_from))
  execute function refuse_other_terms('ledger_seals');
create trigger ledger_seals_kept before delete on ledger_seals for each row execute function refuse_change('ledger_seals');
create trigger ledger_seals_not_emptied before truncate on ledger_seals
  for each statement execute function refuse_change('ledger_seals');

-- The sealed debits and credits of each account that a cycle's seal has added, of members' transfers and of payments.
create table ledger_seal_sums (
  partner_id id not null,
  pay_cycle_id id not null,
  part text collate "C" not null check (part in ('members', 'paid')),
  currency currency not null,
  account text collate "C" not null,
  debits bigint not null check (debits >= 0),
  credits bigint not null check (credits >= 0),
  primary key (partner_id, pay_cycle_id, part, currency, account),
  foreign key (partner_id, pay_cycle_id) references ledger_seals,
  constraint payments_leave_the_float check (
    part <> 'paid' or (account = 'payouts_pending' and credits = 0) or (account = 'float' and debits = 0))
);
create function refuse_unsealing() returns trigger language plpgsql as $$
begin
  raise exception 'a seal only advances'
    using errcode = 'check_violation', constraint = 'seals_only_advance', table = tg_table_name;
end $$;
create trigger ledger_seal_sums_only_grow before update on ledger_seal_sums
  for each row when (new.debits < old.debits or new.credits < old.credits) execute function refuse_unsealing();
create trigger ledger_seal_sums_kept before delete on ledger_seal_sums
  for each row execute function refuse_change('ledger_seal_sums');
create trigger ledger_seal_sums_not_emptied before truncate on ledger_seal_sums
  for each statement execute function refuse_change('ledger_seal_sums');

-- A member's transfers up to a number: the balance of each account that they change, credits less debits.
create table ledger_member_seals (
  partner_id id not null,
  member_id id not null,
  currency currency not null,
  -- The last sealed member_sequence.
  sequence bigint not null check (sequence > 0),
  -- The cycle of what was available then.
  pay_cycle_id id,
  earned_pay bigint not null,
  member_available bigint not null,
  member_owed bigint not null,
  carried bigint not null,
  written_off bigint not null,
  payouts_pending bigint not null,
  "float" bigint not null,
  fees bigint not null,
  partner_fees bigint not null,
  payroll_receivable bigint not null,
  primary key (partner_id, member_id, currency),
  foreign key (partner_id, member_id, currency) references ledger_balances,
  constraint accounts_balance check (
    earned_pay + member_available + member_owed + carried + written_off + payouts_pending + "float" + fees + partner_fees
      + payroll_receivable = 0)
);
create trigger ledger_member_seals_only_advance before update on ledger_member_seals
  for each row when (new.sequence <= old.sequence) execute function refuse_unsealing();
create trigger ledger_member_seals_kept before delete on ledger_member_seals
  for each row execute function refuse_change('ledger_member_seals');
create trigger ledger_member_seals_not_emptied before truncate on ledger_member_seals
  for each statement execute function refuse_change('ledger_member_seals');

-- The books, recomputed in the background. One verification at a time: each reads the whole ledger.
create table ledger_verifications (
  id id primary key,
  -- The operator, or user@host of a command.
  requested_by text not null check (length(requested_by) between 1 and 200),
  requested_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz,
  checks_done integer not null default 0 check (checks_done >= 0),
  checks_total integer not null check (checks_total > 0),
  -- The checks with the first row that breaks each; null until the verification ends, and if it could not end.
  checks jsonb,
  -- Why the verification could not end.
  problem text,
  constraint ended_with_checks_or_a_problem check ((ended_at is null) = (checks is null and problem is null))
);
create unique index one_verification_at_a_time on ledger_verifications ((true)) where ended_at is null;


-- Withdrawals

create table withdrawal_intents (
  partner_id id not null,
  id id not null,
  member_id id not null,
  pay_cycle_id id not null,
  status text not null check (status in ('pending', 'completed', 'expired', 'cancelled')),
  currency currency not null,
  gross_amount bigint not null check (gross_amount > 0),
  net_amount bigint not null check (net_amount > 0),
  fee bigint not null check (fee >= 0),
  employer_fee bigint not null check (employer_fee >= 0),
  tier text not null,
  tier_version integer not null,
  -- A copy of the member's sealed account.
  account bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (partner_id, id),
  foreign key (partner_id, member_id) references members,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  foreign key (partner_id, tier, tier_version) references tier_versions,
  constraint gross_is_net_and_fee check (gross_amount = net_amount + fee),
  constraint one_pays_the_fee check (fee = 0 or employer_fee = 0)
);
-- Not only of pending ones: an index with the status, also in its condition, would get an entry in all indexes at every change of
-- the status. The history is not read again: see withdrawal_intent_expiry.
create index withdrawal_intents_by_expiry on withdrawal_intents (expires_at);
-- An intent is a snapshot of what the member was promised: the amounts, and the account that they are paid to.
create trigger withdrawal_intents_terms before update on withdrawal_intents
  for each row when (
    (old.partner_id, old.id, old.member_id, old.pay_cycle_id, old.currency, old.gross_amount, old.net_amount, old.fee,
     old.employer_fee, old.tier, old.tier_version, old.account,
     old.created_at, old.expires_at)
    is distinct from
    (new.partner_id, new.id, new.member_id, new.pay_cycle_id, new.currency, new.gross_amount, new.net_amount, new.fee,
     new.employer_fee, new.tier, new.tier_version, new.account,
     new.created_at, new.expires_at))
  execute function refuse_other_terms('withdrawal_intents');
create trigger withdrawal_intents_initial_state before insert on withdrawal_intents
  for each row when (new.status <> 'pending') execute function refuse_unlisted_transition('withdrawal_intents');
create trigger withdrawal_intents_transitions before update of status on withdrawal_intents
  for each row when (old.status is distinct from new.status and (old.status <> 'pending' or new.status <> 'completed'))
  execute function refuse_unlisted_transition('withdrawal_intents');

-- How far intents have been expired, and those that never became a withdrawal removed, by the real clock.
create table withdrawal_intent_expiry (
  one boolean primary key default true check (one),
  -- No intent that expires before this is pending.
  expired_until timestamptz not null,
  -- All intents that expire before this became withdrawals.
  removed_until timestamptz not null
);
insert into withdrawal_intent_expiry (expired_until, removed_until) values ('-infinity', '-infinity');

create table withdrawals (
  partner_id id not null,
  id id not null,
  withdrawal_intent_id id not null,
  member_id id not null,
  pay_cycle_id id not null,
  status text not null check (status in ('held', 'submitted', 'paid', 'failed', 'returned', 'cancelled')),
  currency currency not null,
  gross_amount bigint not null check (gross_amount > 0),
  net_amount bigint not null check (net_amount > 0),
  fee bigint not null check (fee >= 0),
  employer_fee bigint not null check (employer_fee >= 0),
  -- The member's available balance after this withdrawal. Only its booking knows the order of concurrent ones.
  balance_after bigint not null constraint member_not_overdrawn check (balance_after >= 0),
  created_at timestamptz not null,
  -- When to submit it, or to ask the bank about it; null if nothing is to be done.
  due_at timestamptz,
  attempts integer not null default 0 check (attempts >= 0),
  -- Why the last transition happened, in the words of the bank or the caller.
  reason text,
  -- The reasons of the final states before the present one, oldest first, for the timeline: events, which have them too, expire.
  earlier_reasons text[] not null default '{}',
  -- The cycle in which a late failure or return was given back, if the withdrawal's own cycle was closed by then.
  adjusted_in_cycle_id id,
  -- The exception whose decision recovered it last; see withdrawals_recoveries.
  recovered_by id,
  primary key (partner_id, id),
  foreign key (partner_id, withdrawal_intent_id) references withdrawal_intents,
  foreign key (partner_id, member_id) references members,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  foreign key (partner_id, adjusted_in_cycle_id) references pay_cycles,
  -- Forever, so that an expired idempotency key cannot pay twice.
  constraint one_withdrawal_per_intent unique (partner_id, withdrawal_intent_id),
  constraint gross_is_net_and_fee check (gross_amount = net_amount + fee),
  constraint one_pays_the_fee check (fee = 0 or employer_fee = 0),
  -- An unfinished withdrawal is never forgotten, and a finished one is never due.
  constraint unfinished_is_due check ((due_at is not null) = (status in ('held', 'submitted')))
);
-- None of these indexes has a column that changes, also not in its condition: status and due time are in unpaid_withdrawals.
-- Operators and commands name a withdrawal without its partner.
create index withdrawals_by_reference on withdrawals (id);
-- An id begins with the time of creation, so lists by time are in the order of the key, and these are too.
create index withdrawals_by_member on withdrawals (partner_id, member_id, id);
create index withdrawals_by_cycle on withdrawals (partner_id, pay_cycle_id, id);
-- At most partners the members pay the fees, so billing has no withdrawal to read.
create index withdrawals_of_employers on withdrawals (partner_id, id) where employer_fee > 0;
-- A withdrawal is paid to the account of its intent, so the intent never changes. One trigger, because each costs every withdrawal time.
create trigger withdrawals_terms before update on withdrawals
  for each row when (
    (old.partner_id, old.id, old.withdrawal_intent_id, old.member_id, old.pay_cycle_id, old.currency, old.gross_amount,
     old.net_amount, old.fee, old.employer_fee, old.balance_after, old.created_at)
    is distinct from
    (new.partner_id, new.id, new.withdrawal_intent_id, new.member_id, new.pay_cycle_id, new.currency, new.gross_amount,
     new.net_amount, new.fee, new.employer_fee, new.balance_after, new.created_at))
  execute function refuse_other_terms('withdrawals');
create trigger withdrawals_initial_state before insert on withdrawals
  for each row when (new.status <> 'held') execute function refuse_unlisted_transition('withdrawals');
create trigger withdrawals_transitions before update of status on withdrawals
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_transition('withdrawals');

-- The withdrawals that are not paid: those that wait for the bank, and those whose money was given back. Nearly all withdrawals end
-- as paid, so the table is small, and finds both without an index on all withdrawals. Only triggers write it, so that no
-- withdrawal is forgotten while it waits.
create table unpaid_withdrawals (
  partner_id id not null,
  withdrawal_id id not null,
  status text collate "C" not null check (status <> 'paid'),
  due_at timestamptz,
  primary key (partner_id, withdrawal_id)
);
create index unpaid_withdrawals_due on unpaid_withdrawals (status, due_at) where due_at is not null;

create function add_unpaid_withdrawals() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into public.unpaid_withdrawals (partner_id, withdrawal_id, status, due_at)
  select partner_id, id, status, due_at from made;
  return null;
end $$;
create trigger withdrawals_begin_unpaid after insert on withdrawals
  referencing new table as made
  for each statement execute function add_unpaid_withdrawals();

-- Its plans are kept, and one that was made while the table was nearly empty would later read the whole table for each row.
create function update_unpaid_withdrawal() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
  if new.status = 'paid' then
    delete from public.unpaid_withdrawals where partner_id = new.partner_id and withdrawal_id = new.id;
  elsif old.status = 'paid' then
    insert into public.unpaid_withdrawals (partner_id, withdrawal_id, status, due_at)
    values (new.partner_id, new.id, new.status, new.due_at);
    return null;
  else
    update public.unpaid_withdrawals set status = new.status, due_at = new.due_at
     where partner_id = new.partner_id and withdrawal_id = new.id;
  end if;
  if not found then
    raise exception 'the withdrawal % is not among the unpaid ones', new.id
      using errcode = 'check_violation', constraint = 'unpaid_are_listed', table = 'unpaid_withdrawals';
  end if;
  return null;
end $$;
create trigger withdrawals_stay_unpaid after update of status, due_at on withdrawals
  for each row when ((old.status, old.due_at) is distinct from (new.status, new.due_at))
  execute function update_unpaid_withdrawal();

-- Withdrawals per calendar day and per pay cycle, added up from the event feed in its order; summing a million withdrawals per
-- request would be slow. The position reached is kept beside the sums, in the same transaction. The foreign key keeps a concurrent
-- reset from leaving sums without it.
create table withdrawal_total_feeds (
  partner_id id primary key references partners,
  -- The last event in the sums.
  position bigint not null check (position >= 0)
);
create table withdrawal_totals (
  partner_id id not null references withdrawal_total_feeds,
  currency currency not null,
  kind text collate "C" not null check (kind in ('day', 'cycle')),
  -- The day in the partner's time zone, '2026-03-31', or the id of the pay cycle.
  period text collate "C" not null,
  withdrawals bigint not null,
  gross_amount bigint not null,
  -- What members paid, as part of the gross amount, and what the employer paid.
  fees bigint not null,
  employer_fees bigint not null,
  -- Withdrawals that were cancelled, failed or were returned, and their gross amounts.
  given_back bigint not null,
  given_back_gross_amount bigint not null,
  primary key (partner_id, currency, kind, period)
);


-- Payouts

-- The file of payments for a bank. Batches, bank files, exceptions and statements belong to the operator, whose accounts pay.
create table payout_batches (
  id id primary key,
  -- What the bank's answers name.
  message_id text collate "C" not null unique check (message_id ~ '^[A-Z0-9]{1,35}$'),
  rail text collate "C" not null,
  currency currency not null,
  -- The account that pays: 'default', or the partner whose own account it is.
  debtor text collate "C" not null,
  value_date date not null,
  is_instant boolean not null,
  cut_off_at timestamptz not null,
  status text not null check (status in ('building', 'approved', 'sent', 'acknowledged', 'settled', 'rejected', 'cancelled')),
  held boolean not null default false,
  payment_count integer not null default 0,
  -- The sum of its payments, in minor units.
  control_total bigint not null default 0,
  file_name text,
  -- SHA-256 of the delivered file.
  file_sha256 text collate "C",
  -- The result of a check of the payees' names, which says nothing about the payments.
  name_check text,
  created_at timestamptz not null,
  -- No payment joins the batch after this.
  closed_at timestamptz,
  -- Closed because its file could take no more.
  is_full boolean not null default false,
  approved_at timestamptz,
  approved_automatically boolean not null default false,
  -- No payment leaves the batch after this, and it can no longer be held.
  sending_at timestamptz,
  -- Machine and folder of the first export by hand. A killed export may have left its file, which an operator may have carried to
  -- the bank; a second export would pay again. Null if none began.
  exported_to text check (length(exported_to) between 1 and 5000),
  sent_at timestamptz,
  acknowledged_at timestamptz,
  -- When the bank first answered the batch or one of its payments: it has the file, even if its delivery is not recorded.
  answered_at timestamptz,
  ended_at timestamptz,
  -- When the bank first showed that it took a copy of the file; null if it has not.
  copy_taken_at timestamptz,
  -- When the whole batch was given back because the bank rejected it.
  given_back_at timestamptz,
  -- When a statement showed that the bank did not pay a batch that was given back. Until then people approve the rail's batches.
  brake_released_at timestamptz,
  constraint sums_are_not_negative check (payment_count >= 0 and control_total >= payment_count),
  constraint delivered_file_has_a_name check (file_sha256 is null or file_name is not null),
  constraint open_batch_is_building check (closed_at is not null or status in ('building', 'cancelled')),
  constraint sent_batch_was_fixed check (status not in ('sent', 'acknowledged', 'settled', 'rejected') or sending_at is not null),
  constraint only_sent_copies_are_taken check (copy_taken_at is null or sending_at is not null),
  constraint only_sent_batches_are_given_back check (given_back_at is null or sending_at is not null),
  constraint brake_follows_give_back check (brake_released_at is null or given_back_at is not null)
);
create unique index one_open_batch on payout_batches (rail, debtor, value_date, is_instant)
  where status = 'building' and closed_at is null;
create index payout_batches_unsent on payout_batches (rail, cut_off_at) where status in ('building', 'approved');
create index payout_batches_unanswered on payout_batches (rail) where status in ('sent', 'acknowledged');
create index payout_batches_with_brake on payout_batches (rail) where given_back_at is not null and brake_released_at is null;
create trigger payout_batches_transitions before insert or update of status on payout_batches
  for each row execute function refuse_unlisted_transition('payout_batches');

-- The payment of a withdrawal, from when the withdrawal is claimed for a rail.
create table payouts (
  partner_id id not null,
  withdrawal_id id not null,
  -- The end-to-end reference at the bank.
  reference text collate "C" not null,
  rail text collate "C" not null,
  -- What the member's account receives.
  net_amount bigint not null check (net_amount > 0),
  currency currency not null,
  created_at timestamptz not null,
  -- On a rail of files: set once, and never changed.
  batch_id id references payout_batches,
  -- The partner's text when the payment joined the batch, whose file never changes.
  remittance_text text not null default '',
  -- When the member's account should have the money.
  expected_at timestamptz,
  -- The bank's latest answer, with its code verbatim. The withdrawal follows by the rail's reports.
  outcome text check (outcome in ('paid', 'failed', 'returned')),
  reason_code text,
  reason text,
  -- The consequence of the bank's reason for the member; null if there is none.
  restriction text check (restriction in ('account_refused', 'review')),
  -- Removed from its batch before the batch was sent, and so never paid.
  removed_at timestamptz,
  -- On a rail by API: when the first request that may have made the payment was sent; null if none was.
  sent_at timestamptz,
  -- When the latest request of unknown effect was sent: neither answered nor certainly refused, and no look-up has shown that the
  -- bank lacks the payment. It may have been made, so the money must not be given back. Null if there is none.
  request_open_at timestamptz,
  -- The bank's ids of transfers that it refused because the account lacked the money, oldest first. The next request has a new
  -- idempotency key, and is not sent before retry_at.
  refused_transfers text[] not null default '{}',
  retry_at timestamptz,
  -- The bank's id of the payment, once it has answered.
  transfer_id text collate "C",
  -- The bank's number of the latest change that was applied: notifications may arrive out of order, and older ones are ignored.
  transfer_sequence integer,
  primary key (partner_id, withdrawal_id),
  foreign key (partner_id, withdrawal_id) references withdrawals,
  constraint reference_is_unique unique (partner_id, reference),
  constraint reference_fits_every_rail check (reference ~ '^MM[A-Z2-7]{14}$'),
  constraint removed_payout_failed check (removed_at is null or outcome = 'failed'),
  constraint transfer_was_sent check (transfer_id is null or sent_at is not null),
  constraint transfer_has_a_sequence check ((transfer_id is null) = (transfer_sequence is null)),
  constraint open_request_was_sent check (request_open_at is null or sent_at is not null),
  constraint answered_request_is_not_open check (request_open_at is null or transfer_id is null)
);
create index payouts_in_batch on payouts (batch_id, reference) where batch_id is not null;
-- By partner, as they are answered.
create index payouts_unanswered on payouts (batch_id, partner_id, reference) where batch_id is not null and outcome is null;
-- Finds the payments and batches that an entry of the same amount may be about.
create index payouts_not_paid on payouts (currency, net_amount) where outcome is distinct from 'paid';
create index payout_batches_by_amount on payout_batches (currency, control_total);

create function refuse_other_batch() returns trigger language plpgsql as $$
begin
  raise exception 'a payout keeps its reference, its amount and its batch'
    using errcode = 'check_violation', constraint = 'payouts_never_change', table = tg_table_name;
end $$;
create trigger payouts_keep_their_terms before update of reference, rail, net_amount, currency, batch_id, removed_at on payouts
  for each row when (
    old.reference <> new.reference or old.rail <> new.rail or old.net_amount <> new.net_amount or old.currency <> new.currency
    or (old.batch_id is not null and new.batch_id is distinct from old.batch_id)
    or (old.removed_at is not null and new.removed_at is distinct from old.removed_at))
  execute function refuse_other_batch();

-- The reset of a sandbox deletes payouts; the sums of their batches follow.
create function leave_batch() returns trigger language plpgsql as $$
begin
  update public.payout_batches set payment_count = payment_count - 1, control_total = control_total - old.net_amount
   where id = old.batch_id;
  return null;
end $$;
create trigger payouts_leave_their_batch after delete on payouts
  for each row when (old.batch_id is not null and old.removed_at is null) execute function leave_batch();

-- Keeps references unique over all partners, and finds their partner: a bank names the reference only. Written by the statement that
-- creates the payout.
create table payout_references (
  reference text collate "C" constraint one_payment_per_reference primary key,
  partner_id id not null
);

-- People who approved a batch above the limits for automatic approval.
create table payout_batch_approvals (
  batch_id id not null references payout_batches,
  person text collate "C" not null check (length(person) between 1 and 200),
  -- The login at the operating system, as far as the machine can tell; null for an approval in the console.
  login text collate "C" check (length(login) between 1 and 200),
  at timestamptz not null,
  constraint one_approval_per_person primary key (batch_id, person)
);

-- Each time the file of a batch left or may have left; a killed delivery counts. A bank that gets a file twice pays the first copy
-- and rejects the second, so the meaning of a rejection depends on the copies.
create table payout_batch_copies (
  batch_id id not null references payout_batches,
  number integer not null check (number > 0),
  kind text not null check (kind in ('delivery', 'export', 'download')),
  -- Null: the worker.
  person text check (length(person) between 1 and 200),
  at timestamptz not null,
  -- At the bank.
  day date not null,
  primary key (batch_id, number),
  constraint worker_delivers check ((kind = 'delivery') = (person is null))
);

-- Nothing is sent through a held rail. One row per hold, as a record of who stopped what.
create table payout_rail_holds (
  sequence bigint generated always as identity primary key,
  rail text collate "C" not null,
  held_at timestamptz not null,
  held_by text not null check (length(held_by) between 1 and 200),
  released_at timestamptz,
  released_by text check (length(released_by) between 1 and 200),
  constraint released_by_a_person check ((released_at is null) = (released_by is null))
);
create unique index rail_is_held_once on payout_rail_holds (rail) where released_at is null;

-- Each time the database was restored from a backup: what was sent to banks after the backup is not known here, so nothing is sent through
-- any rail until a person has compared with the banks.
create table restores (
  sequence bigint generated always as identity primary key,
  detected_at timestamptz not null,
  how text not null check (length(how) between 1 and 200),
  -- The last commit that the backup has; null if that is unknown.
  recovered_until timestamptz,
  compared_at timestamptz,
  compared_by text check (length(compared_by) between 1 and 200),
  constraint compared_by_a_person check ((compared_at is null) = (compared_by is null))
);

-- Where a process last found the database, so that a restore by another tool is detected.
create table database_places (
  one boolean primary key default true check (one),
  system_identifier text not null,
  database_oid bigint not null,
  -- Of this table, which is created anew by pg_restore --clean.
  table_oid bigint not null,
  timeline text not null,
  seen_at timestamptz not null
);

-- How far the reports of a rail have been read.
create table rail_cursors (
  rail text collate "C" primary key,
  cursor text not null,
  read_at timestamptz not null
);


-- Settlements and invoices

-- What payroll took, once per cycle, line by line as it was reported.
create table settlement_lines (
  partner_id id not null,
  pay_cycle_id id not null,
  member_id id not null,
  currency currency not null,
  deducted bigint not null,
  taken bigint not null,
  outcome text not null check (outcome in ('matched', 'short', 'over', 'unknown')),
  -- Positive: still to be taken, in the next cycle; negative: to be given back there.
  carried bigint not null default 0,
  written_off bigint not null default 0,
  primary key (partner_id, pay_cycle_id, member_id, currency),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  foreign key (partner_id, member_id) references members
);

-- Money due for a settlement: a receivable until it arrives. A settlement whose money was in the float at once has no row.
create table settlement_dues (
  partner_id id not null,
  pay_cycle_id id not null,
  currency currency not null,
  -- What payroll took. Negative if it gave back more than it took: the operator owes that.
  amount bigint not null check (amount <> 0),
  received bigint not null default 0,
  -- The part that an operator recorded without an entry of the bank. A later entry may report that money.
  received_by_hand bigint not null default 0,
  settled_at timestamptz not null,
  -- When the last of it arrived.
  received_at timestamptz,
  primary key (partner_id, pay_cycle_id, currency),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint received_at_most_what_is_due check (received between least(amount, 0) and greatest(amount, 0)),
  constraint received_by_hand_was_received check (received_by_hand between least(received, 0) and greatest(received, 0))
);

-- A fee is the operator's once the money of its settlement has arrived. This is what the settlement of a cycle covers of the fee of
-- a withdrawal: a shortfall leaves a rest, which the next cycle carries or the partner bears, so a fee has consecutive parts.
create table settlement_fees (
  partner_id id not null,
  withdrawal_id id not null,
  part integer not null check (part >= 1),
  pay_cycle_id id not null,
  currency currency not null,
  fee bigint not null check (fee > 0),
  -- The most that this settlement could cover.
  due bigint not null check (due > 0),
  covered bigint not null check (covered >= 0),
  written_off bigint not null check (written_off >= 0),
  carried bigint not null check (carried >= 0),
  carried_to id,
  -- When the member got the fee back.
  released_at timestamptz,
  primary key (partner_id, withdrawal_id, part),
  foreign key (partner_id, withdrawal_id) references withdrawals,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  foreign key (partner_id, carried_to) references pay_cycles,
  constraint the_whole_fee_is_due_first check (part > 1 or due = fee),
  constraint at_most_the_fee_is_due check (due <= fee),
  constraint covered_written_off_and_carried_are_due check (due = covered + written_off + carried),
  constraint carried_to_a_cycle check ((carried > 0) = (carried_to is not null))
);
create index settlement_fees_carried on settlement_fees (partner_id, carried_to) where carried_to is not null;
create index settlement_fees_by_cycle on settlement_fees (partner_id, pay_cycle_id, withdrawal_id);

create function refuse_other_part_of_fee() returns trigger language plpgsql as $$
declare
  earlier record;
begin
  select s.* into earlier from public.settlement_fees s
   where s.partner_id = new.partner_id and s.withdrawal_id = new.withdrawal_id and s.part = new.part - 1;
  if not found or new.fee <> earlier.fee
     or (earlier.released_at is not null and new.due <> new.fee)
     or (earlier.released_at is null and (new.due, new.pay_cycle_id) is distinct from (earlier.carried, earlier.carried_to)) then
    raise exception 'a fee is covered once: what is due after another part is what that carried'
      using errcode = 'check_violation', constraint = 'a_fee_is_covered_once', table = 'settlement_fees';
  end if;
  return new;
end $$;
create trigger settlement_fees_parts before insert on settlement_fees
  for each row when (new.part > 1) execute function refuse_other_part_of_fee();
create trigger settlement_fees_keep before update on settlement_fees
  for each row when (
    old.released_at is not null
    or (old.partner_id, old.withdrawal_id, old.part, old.pay_cycle_id, old.currency, old.fee, old.due, old.covered, old.written_off, old.carried, old.carried_to)
       is distinct from
       (new.partner_id, new.withdrawal_id, new.part, new.pay_cycle_id, new.currency, new.fee, new.due, new.covered, new.written_off, new.carried, new.carried_to))
  execute function refuse_change('settlement_fees');

-- The fees that the settlement of a cycle covers, and the part that has become revenue.
create table fee_collections (
  partner_id id not null,
  pay_cycle_id id not null,
  currency currency not null,
  covered bigint not null,
  collected bigint not null,
  primary key (partner_id, pay_cycle_id, currency),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint collected_at_most_what_is_covered check (collected between 0 and covered)
);

-- What was moved under a reference, in the transaction that books it: a repeated command moves nothing.
create table float_references (
  partner_id id not null references partners,
  reference text collate "C" not null check (length(reference) between 1 and 140),
  direction text not null check (direction in ('fund', 'withdraw', 'cover', 'revenue')),
  currency currency not null,
  amount bigint not null check (amount > 0),
  -- Its transfers in the ledger.
  movement_id id not null,
  created_at timestamptz not null,
  constraint one_movement_per_reference primary key (partner_id, reference)
);
create index float_references_by_reference on float_references (reference);
create trigger float_references_append_only before update or delete on float_references
  for each row execute function refuse_change('float_references');
create trigger float_references_not_emptied before truncate on float_references
  for each statement execute function refuse_change('float_references');

-- The lock on the partner makes these take turns. A fee may be given back after it was taken out.
create function refuse_uncollected_revenue() returns trigger language plpgsql as $$
begin
  if new.amount > (select coalesce(sum(f.collected), 0) from public.fee_collections f
                    where f.partner_id = new.partner_id and f.currency = new.currency)
                - (select coalesce(sum(r.amount), 0) from public.float_references r
                    where r.partner_id = new.partner_id and r.currency = new.currency and r.direction = 'revenue') then
    raise exception 'more than the collected fees cannot be taken out of the float'
      using errcode = 'check_violation', constraint = 'revenue_was_collected', table = 'float_references';
  end if;
  return new;
end $$;
create trigger float_references_of_revenue before insert on float_references
  for each row when (new.direction = 'revenue') execute function refuse_uncollected_revenue();

-- Employers' fees are a receivable, paid by invoice.
create table invoices (
  partner_id id not null references partners,
  id id not null,
  -- Counts the partner's invoices, without gaps.
  number integer not null check (number >= 1),
  currency currency not null,
  status text not null check (status in ('open', 'paid', 'void')),
  -- The first day with a fee, and the last day of the period.
  first_day date not null,
  last_day date not null,
  sum bigint not null constraint an_invoice_has_a_sum check (sum > 0),
  issued_at timestamptz not null,
  -- How it was paid.
  paid_reference text check (length(paid_reference) between 1 and 140),
  paid_on date,
  primary key (partner_id, id),
  constraint one_invoice_per_number unique (partner_id, number),
  constraint a_paid_invoice_says_how check ((status = 'paid') = (paid_on is not null) and (paid_on is null) = (paid_reference is null)),
  constraint invoice_starts_before_it_ends check (first_day <= last_day)
);
create trigger invoices_transitions before insert or update of status on invoices
  for each row execute function refuse_unlisted_transition('invoices');
create trigger invoices_keep before update on invoices
  for each row when (
    (old.partner_id, old.id, old.number, old.currency, old.first_day, old.last_day, old.sum, old.issued_at)
    is distinct from (new.partner_id, new.id, new.number, new.currency, new.first_day, new.last_day, new.sum, new.issued_at))
  execute function refuse_change('invoices');

create table invoice_lines (
  partner_id id not null,
  invoice_id id not null,
  day date not null,
  tier text collate "C" not null,
  -- Charged and given back. Negative where an earlier invoice named another day.
  withdrawals integer not null,
  fees bigint not null,
  given_back integer not null,
  fees_given_back bigint not null,
  primary key (partner_id, invoice_id, day, tier),
  foreign key (partner_id, invoice_id) references invoices
);
create trigger invoice_lines_append_only before update or delete on invoice_lines
  for each row execute function refuse_change('invoice_lines');


-- Bank files

-- Each file of a bank, imported once: checked whole, then applied in chunks, so that payouts need not wait for all of it.
create table bank_files (
  id id primary key,
  rail text collate "C" not null,
  sha256 text collate "C" not null,
  name text not null,
  message_id text,
  status text not null check (status in ('importing', 'imported', 'rejected')),
  record_count integer not null default 0,
  applied_count integer not null default 0,
  -- The batches that the file rejects as a whole, with the reasons. Only the whole file shows that.
  rejected_batches text not null default '[]',
  -- The accounts in the file that are not the rail's. Once the rail has one of them, the file is imported for it.
  skipped_accounts text[] not null default '{}',
  -- Why the file was refused.
  problem text,
  received_at timestamptz not null,
  constraint one_import_per_file unique (rail, sha256),
  constraint imported_means_all_applied check (applied_count <= record_count and (status <> 'imported' or applied_count = record_count))
);
create index bank_files_importing on bank_files (rail, received_at, id) where status = 'importing';

-- Records to be applied, step by step and within a step by partner, deleted in the transaction that applies them. A row holds
-- many: writing and reading a row for each record cost more than parsing the file.
create table staged_bank_records (
  bank_file_id id not null,
  step integer not null,
  -- The partner whose payments or money they are about; may be empty.
  partner_id id not null,
  -- The place of the first record in the file.
  place integer not null,
  -- The header of their message, as JSON.
  head text not null,
  record_count integer not null check (record_count > 0),
  -- A JSON array in the order of the file, sealed, since banks name people in it.
  records bytea not null,
  primary key (bank_file_id, step, partner_id, place)
);
-- Sealed values do not compress.
alter table staged_bank_records alter column records set storage external;

-- The records of bank files, each once. Those with an outcome are the reports of the rail, in this order.
create table bank_records (
  sequence bigint generated always as identity primary key,
  rail text collate "C" not null,
  -- Null if an operator took the payment out of its batch.
  bank_file_id id references bank_files,
  -- A notice and a statement may book the same money on different days, two statements never do.
  message text check (message in ('pain.002', 'camt.052', 'camt.053', 'camt.054', 'ARUCS')),
  message_id text collate "C" not null,
  entry_key text collate "C" not null,
  line integer,
  reference text collate "C" not null,
  outcome text check (outcome in ('paid', 'failed', 'returned')),
  reason text,
  -- What identifies a booking. A bank reports it in a notice and again in the statement, but can also debit a payment twice.
  -- The account, as the bank names it.
  account text,
  booked_on date,
  -- Positive if money arrived.
  amount bigint,
  -- The bank's own reference of the booking, the same in all its messages.
  bank_reference text collate "C",
  -- The float movement that the entry is.
  movement_id id,
  -- The exception whose decision recovers the payment by this record.
  recovery_id id,
  created_at timestamptz not null,
  constraint each_entry_counts_once unique (rail, message_id, entry_key),
  constraint booked_record_has_an_amount check ((booked_on is null) = (amount is null)),
  -- An interim report books nothing.
  constraint booked_finally check (message <> 'camt.052' or booked_on is null)
);
create unique index one_entry_per_movement on bank_records (movement_id) where movement_id is not null;
create index bank_records_to_report on bank_records (rail, sequence) where outcome is not null;
create index bank_records_of_reference on bank_records (rail, reference, booked_on);
-- The reference separates thousands of bookings with the same bank reference.
create index bank_records_alike on bank_records (rail, amount, bank_reference, reference, booked_on) where booked_on is not null;
create index bank_records_recoveries on bank_records (rail, reference, sequence) where recovery_id is not null;
create index bank_records_of_recovery on bank_records (recovery_id) where recovery_id is not null;

-- The keys of the bank files in the archives of rails, by the day on which they were archived, sealed. At the end of their retention they are
-- destroyed, and the files of the day cannot be opened in any copy.
create table bank_archive_keys (
  rail text collate "C" not null,
  day date not null,
  key bytea not null,
  primary key (rail, day)
);

-- Batches whose unanswered payments all end the same way, while some are left: a batch can have 100,000, and payouts must not wait
-- until the last is recorded.
create table payout_batch_endings (
  batch_id id primary key references payout_batches,
  rail text collate "C" not null,
  outcome text not null check (outcome in ('paid', 'failed')),
  reason_code text,
  -- For the records of the payments, whose keys are the prefix and the reference.
  message_id text not null,
  key_prefix text not null,
  bank_file_id id references bank_files,
  line integer,
  decided_at timestamptz not null
);

-- A statement of an account. Kept with its opening balance and its numbers, so that a missing statement is noticed. A day has
-- several if their numbers differ.
create table bank_statements (
  sequence bigint generated always as identity primary key,
  rail text collate "C" not null,
  account text collate "C" not null,
  day date not null,
  -- The first of the days that it covers whole, up to its day; null without a closing balance.
  covers_from date check (covers_from <= day),
  electronic_number bigint,
  legal_number bigint,
  opening bigint,
  closing bigint,
  currency currency not null,
  bank_file_id id not null references bank_files,
  constraint one_statement_per_day_and_number unique nulls not distinct (rail, account, day, electronic_number, legal_number)
);

-- When the accounts of a rail were last compared with the books.
create table bank_reconciliations (
  rail text collate "C" primary key,
  at timestamptz not null
);


-- Exceptions and the decisions of two people

-- Texts of entries that are not about payments, which are closed as they come.
create table payout_rules (
  id id primary key,
  rail text collate "C" not null,
  -- Folded: lower case, single spaces.
  text text collate "C" not null check (length(text) between 5 and 140),
  note text not null,
  status text not null check (status in ('proposed', 'active', 'paused', 'ended')),
  proposed_by text not null check (length(proposed_by) between 1 and 200),
  proposed_at timestamptz not null,
  confirmed_by text check (length(confirmed_by) between 1 and 200),
  confirmed_at timestamptz,
  ended_at timestamptz,
  constraint a_rule_takes_two_people check (
    (confirmed_by is null) = (confirmed_at is null) and confirmed_by is distinct from proposed_by
    and (status in ('proposed', 'ended') or confirmed_by is not null)),
  constraint ended_rule_has_its_time check ((status = 'ended') = (ended_at is not null))
);
create unique index one_live_rule_per_text on payout_rules (rail, text) where status <> 'ended';

-- A bank's answers that do not match our books, each closed by a decision.
create table payout_exceptions (
  id id primary key,
  rail text collate "C" not null,
  kind text not null check (kind in
    ('unmatched', 'amount', 'contradiction', 'paid_after_give_back', 'duplicate', 'rejected', 'refused', 'money_in', 'money_out', 'float',
     'blocked', 'unreadable', 'statement_gap', 'opening_balance', 'bank_balance')),
  bank_file_id id references bank_files,
  line integer,
  -- Recognises the same answer when it is read again.
  fingerprint text collate "C" not null,
  -- The account, as the bank names it.
  account text collate "C",
  reference text collate "C",
  partner_id id,
  withdrawal_id id,
  -- What happened to the payment, according to the bank.
  outcome text check (outcome in ('paid', 'failed', 'returned')),
  -- As in payouts: applied when a report that could not be recorded is tried again.
  restriction text check (restriction in ('account_refused', 'review')),
  amount bigint,
  currency currency,
  -- The day on which the bank booked the money; null if the answer moved none.
  booked_on date,
  reason_code text,
  -- A sentence for the operator.
  reason text not null,
  -- The bank's own words about the money, sealed with the installation's key or, about a payment of ours, with the payment key of its
  -- member. Destroyed some time after the exception is closed.
  bank_text bytea,
  bank_text_about_member bytea,
  -- Whether the text or the reference had a reference of ours when the exception was opened; see holds_reference_of_ours.
  names_ours boolean not null default false,
  -- If a report could not be recorded: the exception whose decision recovers the payment.
  recovery_id id,
  opened_at timestamptz not null,
  closed_at timestamptz,
  closed_by text,
  decision text check (decision in ('attach', 'ignore', 'give_back', 'book', 'applied', 'recover', 'write_off')),
  note text,
  -- The text by which it was closed together with others, and the rule, if one did it.
  closed_by_text text,
  rule_id id references payout_rules,
  constraint each_exception_opens_once unique (rail, fingerprint),
  constraint one_key_seals_the_text check (num_nonnulls(bank_text, bank_text_about_member) <= 1),
  constraint text_about_a_member_names_the_payment check (bank_text_about_member is null or withdrawal_id is not null),
  constraint closed_by_a_decision check ((closed_at is null) = (decision is null) and (closed_at is null) = (closed_by is null)),
  constraint closed_by_text_is_ignored_money check (
    closed_by_text is null or (decision = 'ignore' and kind in ('money_in', 'money_out', 'unmatched') and amount is not null
                               and partner_id is null and withdrawal_id is null)),
  constraint rules_close_by_text check (rule_id is null or closed_by_text is not null)
);
create index payout_exceptions_open on payout_exceptions (id) where closed_at is null;
create index payout_exceptions_with_text on payout_exceptions (closed_at)
  where bank_text is not null or bank_text_about_member is not null;
create index payout_exceptions_of_rules on payout_exceptions (rule_id) where rule_id is not null;

-- Returns the amounts among some that a payment, batch or settlement of ours has. A payment or batch that was paid, and of which
-- nothing came back, explains no other entry.
create function amounts_of_ours(of_currency text, among bigint[]) returns setof bigint language sql stable as $$
  with open_batches as (
    select b.control_total, coalesce(sum(p.net_amount), 0)::bigint as failed
      from public.payout_batches b
      left join public.payouts p on p.batch_id = b.id and p.outcome = 'failed' and p.removed_at is null
     where b.currency = of_currency and b.status in ('building', 'approved', 'sent', 'acknowledged')
     group by b.id
  )
  select a.amount from unnest(among) as a (amount)
   where exists (select from public.payouts p
                  where p.currency = of_currency and p.net_amount = a.amount and p.outcome is distinct from 'paid')
      or exists (select from public.payout_batches b
                  where b.currency = of_currency and b.control_total = a.amount and b.status <> 'cancelled'
                    and (b.status <> 'settled' or b.given_back_at is not null
                         or exists (select from public.payouts p
                                     where p.batch_id = b.id and p.outcome in ('failed', 'returned'))))
      or a.amount in (select unnest(array[failed, control_total - failed]) from open_batches)
      or a.amount in (select unnest(array[abs(d.amount), abs(d.amount - d.received)])
                        from public.settlement_dues d where d.currency = of_currency)
$$;

-- Whether a text has a reference of a payment, batch or settlement of ours; letter case, blanks and punctuation are ignored.
create function holds_reference_of_ours(words text) returns boolean language sql stable as $$
  with plain as materialized (select regexp_replace(upper(words), '[^A-Z0-9]', '', 'g') as text)
  select exists (
    select from plain, generate_series(1, length(plain.text) - 15) as at
     where substr(plain.text, at, 2) = 'MM'
       and (exists (select from public.payout_references where reference = substr(plain.text, at, 16))
            or exists (select from public.payout_batches where message_id = substr(plain.text, at, 17))
            or (substr(plain.text, at, 3) = 'MMS'
                and exists (select from public.pay_cycles where upper(right(id, 14)) = substr(plain.text, at + 3, 14)))))
$$;

-- Once per statement, since a statement closes up to 20,000 entries. An entry is opened before it is closed by its text.
create function refuse_closing_ours_by_text() returns trigger language plpgsql as $$
begin
  if exists (
       select from (select c.currency, array_agg(distinct abs(c.amount)) as amounts
                      from closed c join opened o on o.id = c.id
                     where c.closed_by_text is distinct from o.closed_by_text and c.closed_by_text is not null
                     group by c.currency) as c,
                   public.amounts_of_ours(c.currency, c.amounts))
     or exists (
       select from closed c join opened o on o.id = c.id
        where c.closed_by_text is distinct from o.closed_by_text and c.closed_by_text is not null
          and (c.names_ours or public.holds_reference_of_ours(c.reference))) then
    raise exception 'an entry that may be about a payment, batch or settlement of ours is not closed by its text'
      using errcode = 'check_violation', constraint = 'nothing_of_ours_is_closed_by_text', table = 'payout_exceptions';
  end if;
  return null;
end $$;
create trigger payout_exceptions_not_ours after update on payout_exceptions
  referencing old table as opened new table as closed
  for each statement execute function refuse_closing_ours_by_text();

create function refuse_opening_as_closed() returns trigger language plpgsql as $$
begin
  raise exception 'an entry is opened before it is closed by its text'
    using errcode = 'check_violation', constraint = 'nothing_of_ours_is_closed_by_text', table = 'payout_exceptions';
end $$;
create trigger payout_exceptions_open_first before insert on payout_exceptions
  for each row when (new.closed_by_text is not null) execute function refuse_opening_as_closed();

-- Compares two spellings of a name as the program does; a login may follow in brackets.
create function same_person(a text, b text) returns boolean language sql immutable as $$
  select lower(btrim(regexp_replace(normalize(regexp_replace(a, ' \([^()]*\)$', ''), nfkc), '\s+', ' ', 'g')))
       = lower(btrim(regexp_replace(normalize(regexp_replace(b, ' \([^()]*\)$', ''), nfkc), '\s+', ' ', 'g')))
$$;

-- A decision for two people: one proposes it, another confirms exactly this one, or it is withdrawn. It ends when its exception is
-- closed or its payment is answered, and is kept with the reason, which a late confirmation is told.
create table payout_proposals (
  sequence bigint generated always as identity primary key,
  -- The exception, or the reference of the payment.
  subject text collate "C" not null,
  -- JSON as text, so that a confirmation compares it unchanged.
  decision text not null,
  note text not null,
  person text not null check (length(person) between 1 and 200),
  -- The login at the operating system; null for a user of the console.
  login text collate "C" check (length(login) between 1 and 200),
  proposed_at timestamptz not null,
  confirmed_by text check (length(confirmed_by) between 1 and 300),
  confirmed_login text collate "C" check (length(confirmed_login) between 1 and 200),
  -- The transaction that carries the decision out.
  confirmed_in xid8,
  ended_at timestamptz,
  -- A sentence for operators.
  ended_because text check (length(ended_because) between 1 and 500),
  constraint confirmed_by_another_person check (
    (confirmed_by is null) = (confirmed_in is null)
    and (confirmed_login is null or confirmed_by is not null)
    and (confirmed_by is null
         or (not public.same_person(person, confirmed_by) and (login is null) = (confirmed_login is null)))),
  constraint ended_with_a_reason check ((ended_at is null) = (ended_because is null)),
  constraint ended_or_confirmed check (ended_at is null or confirmed_in is null)
);
create unique index one_open_proposal_per_subject on payout_proposals (subject) where confirmed_in is null and ended_at is null;
create index payout_proposals_confirmed on payout_proposals (subject) where confirmed_in is not null;
create index payout_proposals_ended on payout_proposals (subject, ended_at) where ended_at is not null;

create function end_proposal_of_exception() returns trigger language plpgsql as $$
begin
  update public.payout_proposals set ended_at = new.closed_at, ended_because =
         case when new.closed_by <> 'system' then format('%s has closed the exception with %s', new.closed_by, new.decision)
              when new.decision = 'ignore' then 'A rule has closed the exception'
              else 'A later answer of the bank or another decision has closed the exception' end
   where subject = new.id and confirmed_in is null and ended_at is null;
  return null;
end $$;
create trigger payout_exceptions_end_proposals after update of closed_at on payout_exceptions
  for each row when (old.closed_at is null and new.closed_at is not null)
  execute function end_proposal_of_exception();

-- By statement: an answer can end 100,000 payments, and proposals are few.
create function end_proposals_of_payments() returns trigger language plpgsql as $$
begin
  if not exists (select from public.payout_proposals where confirmed_in is null and ended_at is null) then
    return null;
  end if;
  update public.payout_proposals proposed set ended_at = now(), ended_because =
         format('A file of the bank or another decision has said that the payment is %s', changed.outcome)
    from changed join earlier on earlier.reference = changed.reference
   where proposed.subject = changed.reference and proposed.confirmed_in is null and proposed.ended_at is null
     and changed.outcome is distinct from earlier.outcome;
  return null;
end $$;
create trigger payouts_end_proposals after update on payouts
  referencing old table as earlier new table as changed
  for each statement execute function end_proposals_of_payments();

-- Two people decide what gives back a batch, writes money off, or is about a payment that two people had to approve. The program
-- asks them; the triggers below refuse such a decision unless its transaction has recorded who proposed and who confirmed it.
-- `field` is the field of the decision that says what is decided.
create function is_confirmed_now(of_subject text, field text, decided text) returns boolean language sql stable as $$
  select exists (select from public.payout_proposals
                  where subject = of_subject and decision::jsonb ->> field = decided
                    and confirmed_in = pg_current_xact_id_if_assigned())
$$;

create function refuse_decision_of_one() returns trigger language plpgsql as $$
begin
  if (new.closed_by = 'system' and new.decision in ('applied', 'ignore')) or public.is_confirmed_now(new.id, 'decision', new.decision) then
    return new;
  end if;
  if new.closed_by = 'system' or new.decision = 'write_off'
     or (new.decision = 'give_back' and exists (
       select from public.payout_batches b where b.rail = new.rail and b.message_id = new.reference))
     or (new.decision in ('give_back', 'recover', 'attach') and exists (
       select from public.payout_batches b
        where b.rail = new.rail and not b.approved_automatically
          and (b.message_id = new.reference
               or b.id in (select p.batch_id from public.payout_references f join public.payouts p using (partner_id, reference)
                            where f.reference = new.reference and p.rail = new.rail)
               -- An answer without a reference of ours is attached, or recovers payments, by records.
               or b.id in (select p.batch_id from public.bank_records r join public.payout_references f using (reference)
                            join public.payouts p using (partner_id, reference)
                            where r.rail = new.rail and r.message_id = 'operator' and r.entry_key = new.id)
               or b.id in (select p.batch_id from public.bank_records r join public.payout_references f using (reference)
                            join public.payouts p using (partner_id, reference)
                            where r.recovery_id = new.id)))) then
    raise exception 'two people must decide %', new.decision
      using errcode = 'check_violation', constraint = 'decided_by_two_people', table = 'payout_exceptions';
  end if;
  return new;
end $$;
create trigger payout_exceptions_two_people before update of decision on payout_exceptions
  for each row when (new.decision is not null and new.decision is distinct from old.decision)
  execute function refuse_decision_of_one();

create function refuse_outcome_of_one() returns trigger language plpgsql as $$
begin
  if not public.is_confirmed_now(new.reference, 'outcome', new.outcome) and exists (
    select from public.payout_references f join public.payouts p using (partner_id, reference)
                join public.payout_batches b on b.id = p.batch_id
     where f.reference = new.reference and not b.approved_automatically
  ) then
    raise exception 'two people must decide that % is %', new.reference, new.outcome
      using errcode = 'check_violation', constraint = 'decided_by_two_people', table = 'bank_records';
  end if;
  return new;
end $$;
create trigger bank_records_two_people before insert on bank_records
  for each row when (new.message_id = 'operator' and new.entry_key like 'by hand %')
  execute function refuse_outcome_of_one();

-- Only two people close a batch before its cut-off, unless it is full.
create function refuse_change_of_closed_batch() returns trigger language plpgsql as $$
begin
  if old.closed_at is not null then
    if new.closed_at is distinct from old.closed_at
       or new.payment_count > old.payment_count or new.control_total > old.control_total then
      raise exception 'a closed batch takes no payments'
        using errcode = 'check_violation', constraint = 'closed_batch_takes_no_payments', table = 'payout_batches';
    end if;
  elsif new.closed_at < new.cut_off_at and not new.is_full and not public.is_confirmed_now(new.id, 'decision', 'close') then
    raise exception 'two people must close a batch before its cut-off'
      using errcode = 'check_violation', constraint = 'closed_early_by_two_people', table = 'payout_batches';
  end if;
  return new;
end $$;
create trigger payout_batches_stay_closed before update of closed_at, payment_count, control_total on payout_batches
  for each row execute function refuse_change_of_closed_batch();

-- A withdrawal that the bank paid although the member had the money again.
create table withdrawal_recoveries (
  partner_id id not null,
  withdrawal_id id not null,
  -- The exception that this decision closed.
  exception_id id not null references payout_exceptions,
  -- From the first two nothing is taken: the member did not have the money again yet.
  from_status text not null check (from_status in ('submitted', 'paid', 'failed', 'returned')),
  -- The cycle in which the money was given back, and the one in which it is taken again.
  given_back_in_cycle_id id,
  pay_cycle_id id,
  -- The part that was available; the rest of net and fee is owed.
  taken_amount bigint not null check (taken_amount >= 0),
  recovered_at timestamptz not null,
  primary key (partner_id, withdrawal_id, exception_id),
  foreign key (partner_id, withdrawal_id) references withdrawals,
  foreign key (partner_id, given_back_in_cycle_id) references pay_cycles,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint only_what_was_given_back_is_taken check (
    (from_status in ('failed', 'returned')) = (given_back_in_cycle_id is not null)
    and (given_back_in_cycle_id is null) = (pay_cycle_id is null)
    and (pay_cycle_id is not null or taken_amount = 0))
);
create trigger withdrawal_recoveries_append_only before update or delete on withdrawal_recoveries
  for each row execute function refuse_change('withdrawal_recoveries');

-- A withdrawal becomes paid again only by a decision that recovers it, and each decision counts once.
create function refuse_recovery_without_decision() returns trigger language plpgsql as $$
begin
  if new.recovered_by is null or new.recovered_by is not distinct from old.recovered_by or not exists (
    select from public.withdrawal_recoveries r join public.payout_exceptions e on e.id = r.exception_id
     where r.partner_id = new.partner_id and r.withdrawal_id = new.id and r.exception_id = new.recovered_by and e.decision = 'recover'
  ) then
    raise exception 'a withdrawal becomes paid after % only by a decision that recovers it', old.status
      using errcode = 'check_violation', constraint = 'recovered_by_a_decision', table = 'withdrawals';
  end if;
  return new;
end $$;
create trigger withdrawals_recoveries before update of status on withdrawals
  for each row when (old.status in ('failed', 'returned') and new.status = 'paid')
  execute function refuse_recovery_without_decision();

-- Costs that the operator bears. The float lacks the money until the operator covers the cost.
create table float_costs (
  partner_id id not null references partners,
  movement_id id not null,
  exception_id id references payout_exceptions,
  amount bigint not null check (amount > 0),
  currency currency not null,
  created_at timestamptz not null,
  primary key (partner_id, movement_id),
  constraint one_cost_per_exception_and_partner unique (partner_id, exception_id)
);
create trigger float_costs_append_only before update or delete on float_costs
  for each row execute function refuse_change('float_costs');

create function refuse_cost_of_one() returns trigger language plpgsql as $$
begin
  if not exists (
    select from public.payout_proposals
     where confirmed_in = pg_current_xact_id_if_assigned() and (new.exception_id is null or subject = new.exception_id)
  ) then
    raise exception 'two people must decide that the operator bears a cost'
      using errcode = 'check_violation', constraint = 'decided_by_two_people', table = 'float_costs';
  end if;
  return new;
end $$;
create trigger float_costs_two_people before insert on float_costs for each row execute function refuse_cost_of_one();


-- Events and webhooks

-- Partitioned by month, like ledger_transfers. Old partitions are dropped; see drop_old_events.
create table events (
  partner_id id not null,
  id id not null,
  type text collate "C" not null,
  -- Collated like the ids that it is compared with. With another collation the index is not used.
  resource_id text collate "C" not null,
  -- Counts the events of the resource from 1. It comes from the resource's row, never from its events.
  sequence integer not null check (sequence > 0),
  data jsonb not null,
  created_at timestamptz not null,
  -- The place in the partner's feed, given once, after the commit of the event; null until then.
  position bigint check (position > 0),
  -- The metadata of the event's object at that moment, if the partner wants it in events.
  metadata jsonb,
  primary key (partner_id, id)
) partition by range (id);
-- Each type is a range, however rare.
create index events_feed_of_type on events (partner_id, type, position) where position is not null;
create index events_without_position on events (partner_id, id) where position is null;
alter table events alter column data set statistics 0;
-- An event changes once: it gets its position, and its metadata with it.
create trigger events_append_only before update on events
  for each row when (
    old.position is not null or new.position is null
    or (old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at)
       is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at)
  )
  execute function refuse_change('events');
create trigger events_not_emptied before truncate on events
  for each statement execute function refuse_change('events');

-- How far the feed of a partner is numbered. Numbering locks the row.
create table event_feeds (
  partner_id id primary key references partners,
  last_position bigint not null check (last_position >= 0)
);

create table webhook_endpoints (
  partner_id id not null references partners,
  id id not null,
  url text not null check (char_length(url) <= 2048),
  description text check (char_length(description) <= 200),
  types text[] not null check (cardinality(types) between 1 and 50),
  -- Further headers of each request, by name, sealed.
  headers bytea not null,
  enabled boolean not null default true,
  -- Why the endpoint is disabled; null if it is enabled.
  disabled_reason text check (disabled_reason in ('requested', 'failing', 'gone')),
  created_at timestamptz not null,
  -- Deleted endpoints are kept until their deliveries have been deleted.
  deleted_at timestamptz,
  -- Only events after this position of the feed are delivered.
  since_position bigint not null,
  -- Flow control: failed attempts since the last success, and until when no attempt is made.
  failure_count integer not null default 0,
  blocked_until timestamptz,
  -- Health: since when there has been no success, the number of days with failures since then, and the last of them.
  failing_since timestamptz,
  failing_days integer not null default 0,
  last_failing_day date,
  -- The service has disabled the endpoint, and no attempt has succeeded since.
  is_recovering boolean not null default false,
  -- When the next delivery or replay is due; null if there is none.
  due_at timestamptz,
  -- When the lease of the process that makes the deliveries expires, by real time.
  leased_until timestamptz,
  -- The sequence of the latest event about the endpoint.
  event_count integer not null default 0,
  primary key (partner_id, id),
  constraint disabled_for_a_reason check (enabled = (disabled_reason is null))
);
create index webhook_endpoints_due on webhook_endpoints (due_at) where due_at is not null;
create index webhook_endpoints_deleted on webhook_endpoints (deleted_at) where deleted_at is not null;

-- The secrets that sign. During a rotation there are several.
create table webhook_secrets (
  partner_id id not null,
  endpoint_id id not null,
  -- Sealed.
  secret bytea not null,
  created_at timestamptz not null,
  -- Null for the current one.
  expires_at timestamptz,
  primary key (partner_id, endpoint_id, secret),
  foreign key (partner_id, endpoint_id) references webhook_endpoints
);
create unique index one_current_webhook_secret on webhook_secrets (partner_id, endpoint_id) where expires_at is null;

-- How far the feed of a partner with endpoints has been fanned out. Fanning out locks the row.
create table webhook_feeds (
  partner_id id primary key references partners,
  position bigint not null check (position >= 0)
);

-- An event for an endpoint, fanned out from the numbered feed, so that no operation writes more for it. No foreign keys: rows are
-- written under the lock of their endpoint, and each check would lock it again.
create table webhook_deliveries (
  partner_id id not null,
  endpoint_id id not null,
  event_id id not null,
  type text collate "C" not null,
  state text collate "C" not null check (state in ('pending', 'delivered', 'failed', 'skipped')),
  -- The body of a test. Any other body is made from the event.
  sample jsonb,
  created_at timestamptz not null,
  -- All attempts, and those made by the retry schedule.
  attempt_count integer not null default 0,
  scheduled_count integer not null default 0,
  last_attempt_at timestamptz,
  -- The next attempt of the retry schedule.
  due_at timestamptz,
  -- A single attempt that was requested: a replay or a test.
  replay_at timestamptz,
  primary key (partner_id, endpoint_id, event_id),
  constraint only_pending_deliveries_are_due check (due_at is null or state = 'pending')
);
create index webhook_deliveries_due on webhook_deliveries (partner_id, endpoint_id, due_at) where due_at is not null;
create index webhook_deliveries_to_replay on webhook_deliveries (partner_id, endpoint_id, replay_at)
  where replay_at is not null;
create index webhook_deliveries_by_state on webhook_deliveries (partner_id, endpoint_id, state, event_id);
create index webhook_deliveries_by_type on webhook_deliveries (partner_id, endpoint_id, type, event_id);

create table webhook_attempts (
  partner_id id not null,
  endpoint_id id not null,
  event_id id not null,
  number integer not null check (number > 0),
  reason text not null check (reason in ('schedule', 'replay', 'test')),
  at timestamptz not null,
  duration_ms integer not null check (duration_ms >= 0),
  -- Null if there was no response.
  status integer,
  -- Null for a success.
  error text check (error in ('status', 'redirect', 'gone', 'timeout', 'dns', 'connection', 'tls', 'address', 'protocol')),
  -- The beginning of the response's body; null if there was no response.
  response text,
  primary key (partner_id, endpoint_id, event_id, number)
);

-- Keys and values that partners attach to objects. Not columns of the objects' tables, so that the hot path neither reads nor
-- writes them.
create table metadata (
  partner_id id not null references partners,
  kind text collate "C" not null check (kind in ('member', 'withdrawal_intent', 'pay_run', 'webhook')),
  resource_id id not null,
  key text collate "C" not null constraint keys_of_40_characters check (length(key) between 1 and 40),
  value text collate "C" not null constraint values_of_500_characters check (length(value) between 1 and 500),
  -- In the order in which the partner sent them.
  position integer not null constraint at_most_20_keys check (position between 1 and 20),
  -- For the foreign keys: metadata needs its object, and is deleted with it.
  member_id id generated always as (case when kind = 'member' then resource_id end) stored,
  withdrawal_intent_id id generated always as (case when kind = 'withdrawal_intent' then resource_id end) stored,
  pay_run_id id generated always as (case when kind = 'pay_run' then resource_id end) stored,
  webhook_id id generated always as (case when kind = 'webhook' then resource_id end) stored,
  primary key (partner_id, resource_id, key),
  unique (partner_id, resource_id, position),
  foreign key (partner_id, member_id) references members (partner_id, id) on delete cascade,
  foreign key (partner_id, withdrawal_intent_id) references withdrawal_intents (partner_id, id) on delete cascade,
  foreign key (partner_id, pay_run_id) references pay_runs (partner_id, id) on delete cascade,
  foreign key (partner_id, webhook_id) references webhook_endpoints (partner_id, id) on delete cascade
);
-- A filtered list is a range of it, in the order of the ids.
create index metadata_by_value on metadata (partner_id, kind, key, value, resource_id);
-- For deleting an object.
create index metadata_of_members on metadata (partner_id, member_id) where member_id is not null;
create index metadata_of_intents on metadata (partner_id, withdrawal_intent_id) where withdrawal_intent_id is not null;
create index metadata_of_pay_runs on metadata (partner_id, pay_run_id) where pay_run_id is not null;
create index metadata_of_webhooks on metadata (partner_id, webhook_id) where webhook_id is not null;


-- Users and operators

-- People who sign in to the console.
create table users (
  id id primary key,
  -- The sign-in name, in lower case.
  email text collate "C" not null constraint one_user_per_email unique
    check (length(email) between 3 and 254 and email = lower(email)),
  name text not null check (length(name) between 1 and 200),
  -- May do everything, for every partner.
  is_operator boolean not null,
  -- Argon2id with its parameters and salt, as a PHC string; null if the user has no password.
  password_hash text collate "C" check (password_hash like '$argon2id$%' and length(password_hash) <= 255),
  -- The secret of the second factor, sealed; null without one.
  totp_secret bytea,
  -- Null until the first code has proved that the user's device has the secret.
  totp_confirmed_at timestamptz,
  -- The time step of the last accepted code: a code counts once.
  totp_last_step bigint,
  created_at timestamptz not null,
  disabled_at timestamptz,
  constraint second_factor_has_a_secret check (totp_confirmed_at is null or totp_secret is not null)
);

-- An installation without an operator could be repaired only by a command. The lock makes two operators who demote each other
-- take turns; each statement of the function sees what was committed before it.
create function keep_an_operator() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtext('midmonth operators'));
  if not exists (select from users where is_operator and disabled_at is null) then
    raise exception 'the last operator cannot be removed'
      using errcode = 'check_violation', constraint = 'an_operator_remains', table = 'users';
  end if;
  return null;
end $$;
create trigger an_operator_remains after update of is_operator, disabled_at on users
  for each row when (old.is_operator and old.disabled_at is null and (not new.is_operator or new.disabled_at is not null))
  execute function keep_an_operator();

create table user_roles (
  partner_id id not null references partners,
  user_id id not null references users,
  role text collate "C" not null check (role in ('admin', 'payroll', 'support', 'developer', 'viewer')),
  primary key (partner_id, user_id, role)
);
create index user_roles_of_user on user_roles (user_id);

create table user_sessions (
  id id primary key,
  user_id id not null references users,
  -- SHA-256 of the token in the cookie.
  hash bytea not null constraint one_token_one_user_session unique check (length(hash) = 32),
  method text not null check (method in ('link', 'password', 'oidc')),
  address text check (length(address) <= 100),
  user_agent text check (length(user_agent) <= 200),
  created_at timestamptz not null,
  -- To the minute.
  last_used_at timestamptz not null,
  expires_at timestamptz not null,
  constraint user_sessions_are_short check (expires_at > created_at and expires_at <= created_at + interval '12 hours')
);
create index user_sessions_of_user on user_sessions (user_id, id);
create index user_sessions_expired on user_sessions (expires_at);

-- One-time links. A link signs in the user, lets the user choose a password, or creates the first operator.
create table user_links (
  -- SHA-256 of the token in the link.
  hash bytea primary key check (length(hash) = 32),
  purpose text not null check (purpose in ('sign_in', 'password', 'set_up')),
  user_id id references users,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint set_up_is_for_no_user check ((purpose = 'set_up') = (user_id is null)),
  constraint user_links_are_short check (expires_at > created_at and expires_at <= created_at + interval '7 days')
);
create index user_links_expired on user_links (expires_at);
create index user_links_of_user on user_links (user_id) where user_id is not null;

-- An invitation is for operators, or for roles with one partner.
create table user_invitations (
  id id primary key,
  hash bytea not null constraint one_token_one_invitation unique check (length(hash) = 32),
  email text collate "C" not null check (length(email) between 3 and 254 and email = lower(email)),
  partner_id id references partners,
  roles text[] not null,
  -- The user, or user@host of a command.
  invited_by text not null check (length(invited_by) between 1 and 200),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint invited_as_operator_or_with_roles check (
    (partner_id is null) = (cardinality(roles) = 0) and roles <@ '{admin,payroll,support,developer,viewer}'::text[]),
  constraint invitations_are_short check (expires_at > created_at and expires_at <= created_at + interval '7 days')
);
create index user_invitations_expired on user_invitations (expires_at);
create index user_invitations_of_partner on user_invitations (partner_id, id);

-- The user's account at the OpenID provider.
create table user_identities (
  issuer text collate "C" not null check (length(issuer) <= 255),
  subject text collate "C" not null check (length(subject) between 1 and 255),
  -- A second account with the same verified e-mail address must not become the same user.
  user_id id not null references users constraint one_identity_per_user unique,
  linked_at timestamptz not null,
  primary key (issuer, subject)
);

-- SHA-256 of the codes that replace a lost second factor. A used code is deleted.
create table user_recovery_codes (
  user_id id not null references users,
  hash bytea not null check (length(hash) = 32),
  primary key (user_id, hash)
);

-- Browsers in which a user has signed in. They have their own limit of sign-ins: failed attempts elsewhere do not slow them down.
-- A browser is admitted before the request names a user, so the hash does not include the user.
create table user_browsers (
  -- SHA-256 of the token in the browser's cookie, which is signed: a forged token costs no look-up.
  token_hash bytea not null check (length(token_hash) = 32),
  user_id id not null references users,
  last_used_at timestamptz not null,
  primary key (token_hash, user_id)
);
create index user_browsers_of_user on user_browsers (user_id, last_used_at);
create index user_browsers_unused on user_browsers (last_used_at);

-- Failed sign-ins, counted by network, by account and network, by account, and by account and browser.
create table sign_in_failures (
  -- SHA-256 of what is counted: an unknown e-mail address is counted like any other, and is not stored.
  counter bytea primary key check (length(counter) = 32),
  failures integer not null check (failures > 0),
  failed_at timestamptz not null,
  refused_until timestamptz not null
);
create index sign_in_failures_old on sign_in_failures (failed_at);

-- Keys of the operator API.
create table operator_keys (
  id id primary key,
  -- What the key is for: 'nightly reports'.
  name text not null check (length(name) between 1 and 100),
  -- SHA-256 of the whole key, which is shown once and not stored.
  hash bytea not null check (length(hash) = 32),
  hint text not null,
  created_by text not null check (length(created_by) between 1 and 200),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_by text check (length(revoked_by) between 1 and 200),
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint one_hash_one_operator_key unique (hash),
  constraint a_revocation_names_its_operator check ((revoked_at is null) = (revoked_by is null))
);
create trigger operator_keys_never_revived before update on operator_keys
  for each row when (
    (old.id, old.name, old.hash, old.hint, old.created_by, old.created_at)
    is distinct from (new.id, new.name, new.hash, new.hint, new.created_by, new.created_at)
    or (old.revoked_at is not null and (new.revoked_at, new.revoked_by) is distinct from (old.revoked_at, old.revoked_by))
    or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity'))
  execute function refuse_key_revival();


-- Requests

-- Written in the transaction of the effect: neither exists without the other.
create table idempotency_keys (
  partner_id id not null,
  -- Any header value. At most 2,048 bytes, so that an entry of the primary key fits into a page of its index (2,704 bytes).
  key text collate "C" not null check (length(key) between 1 and 1024),
  -- SHA-256 of method, route, path parameters, query and the body with its keys sorted.
  fingerprint bytea not null,
  operation text not null,
  status integer,
  -- The headers as JSON, a line feed and the body; sealed, since responses have personal data and tokens of member sessions. Null
  -- while the request runs, and after its member was erased: the request is then never run again.
  answer bytea,
  resource_id text collate "C",
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (partner_id, key),
  constraint an_answer_has_a_status check ((answer is null) = (status is null))
);
create index idempotency_keys_expired on idempotency_keys (expires_at);
-- For erasing a member: requests about members, and reads, which show members too. The frequent requests are in neither.
create index idempotency_keys_of_members on idempotency_keys (partner_id, resource_id) where resource_id like 'mem\_%';
create index idempotency_keys_of_reads on idempotency_keys (partner_id)
  where operation like 'get%' or operation like 'list%' or operation like 'inspect%';

-- The partner's requests of the last days, so that a developer can find one without asking the operator. No bodies, no queries,
-- nothing personal. Written in batches, deleted after a week, never updated. No foreign key: each batch would lock the partner.
create table request_log (
  partner_id id not null,
  id id not null,
  -- The caller's x-request-id, which need not be unique; null if it sent none, and then the id is ours.
  request_id text collate "C",
  created_at timestamptz not null,
  method text not null,
  -- Null if no operation has this path.
  route text,
  path text not null,
  status integer not null,
  duration_ms integer not null,
  key_id id not null,
  idempotency_key text collate "C",
  is_replayed boolean not null,
  error_codes text[] not null,
  resource_id id,
  primary key (partner_id, id)
);
-- Partial, so that an ordinary request costs few index entries.
create index request_log_of_errors on request_log (partner_id, id) where status >= 400;
create index request_log_of_resource on request_log (partner_id, resource_id, id) where resource_id is not null;
create index request_log_of_idempotency_key on request_log (partner_id, idempotency_key, id)
  where idempotency_key is not null;
create index request_log_of_request_id on request_log (partner_id, request_id, id) where request_id is not null;


-- Audit logs

-- Operators hold other people's wages and must be able to show who changed what. Each change to configuration or people has one
-- row, written in its transaction. Rows are kept forever, so they hold nothing that a person may ask to have erased: ids, states,
-- settings and amounts, never names, e-mail addresses, phone numbers, whole account numbers or secrets.
create table audit_log (
  partner_id id not null references partners,
  id id not null,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('api_key', 'cli', 'worker', 'user', 'operator_key')),
  -- The id of the key or user, or user@host of a command.
  actor text collate "C" not null check (length(actor) between 1 and 200),
  -- 'tier.set'
  action text collate "C" not null check (action ~ '^[a-z_]+\.[a-z_]+$' and length(action) <= 60),
  resource_kind text collate "C" not null generated always as (split_part(action, '.', 1)) stored,
  resource_id text collate "C" not null check (length(resource_id) between 1 and 200),
  details jsonb not null,
  -- Where the request or the operator came from, and the id of the request, if known.
  address text check (length(address) <= 100),
  request_id text check (length(request_id) <= 200),
  primary key (partner_id, id),
  -- The largest is a handful of settings; a list of members is one row with its numbers.
  constraint details_are_small check (octet_length(details::text) <= 65536)
);
create index audit_log_newest on audit_log (id);
create index audit_log_of_resource on audit_log (partner_id, resource_id, id);
create index audit_log_of_actor on audit_log (actor, id);
create index audit_log_of_action on audit_log (action, id);
create index audit_log_addresses on audit_log (at) where address is not null;

-- Who was shown bank accounts and dates of birth: entries like those of the audit log, but deleted after a time, since reads are many.
create table disclosures (
  -- Null for an operator who reads what concerns several partners.
  partner_id id,
  id id primary key,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('api_key', 'cli', 'user', 'operator_key')),
  actor text collate "C" not null check (length(actor) between 1 and 200),
  action text collate "C" not null check (action ~ '^[a-z_]+\.[a-z_]+$' and length(action) <= 60),
  resource_kind text collate "C" not null generated always as (split_part(action, '.', 1)) stored,
  resource_id text collate "C" not null check (length(resource_id) between 1 and 200),
  details jsonb not null,
  address text check (length(address) <= 100),
  request_id text check (length(request_id) <= 200),
  constraint disclosure_details_are_small check (octet_length(details::text) <= 65536)
);
create index disclosures_at on disclosures (at);
create index disclosures_of_partner on disclosures (partner_id, id);
create index disclosures_of_resource on disclosures (partner_id, resource_id, id);

-- What the worker has removed at the end of its retention, by kind and day: kept for ever, as the operator's proof.
create table removals (
  kind text collate "C" not null,
  day date not null,
  count bigint not null check (count > 0),
  at timestamptz not null,
  primary key (kind, day)
);

-- For what concerns no partner: users, sign-ins, operators.
create table installation_audit_log (
  id id primary key,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('cli', 'worker', 'user', 'operator_key')),
  actor text collate "C" not null check (length(actor) between 1 and 200),
  action text collate "C" not null check (action ~ '^[a-z_]+\.[a-z_]+$' and length(action) <= 60),
  resource_kind text collate "C" not null generated always as (split_part(action, '.', 1)) stored,
  resource_id text collate "C" not null check (length(resource_id) between 1 and 200),
  details jsonb not null,
  address text check (length(address) <= 100),
  request_id text check (length(request_id) <= 200),
  constraint installation_details_are_small check (octet_length(details::text) <= 65536)
);
create index installation_audit_log_of_resource on installation_audit_log (resource_id, id);
-- The resource of a recorded backup is the instant of its data.
create index installation_audit_log_backups on installation_audit_log (resource_id) where action = 'backup.record';
create index installation_audit_log_addresses on installation_audit_log (at) where address is not null;

-- An address identifies a person's connection and is needed only while an incident can be followed up. It is the only thing that
-- may be removed.
create function refuse_change_of_audit() returns trigger language plpgsql as $$
begin
  -- A generated column is not computed yet.
  if tg_op = 'UPDATE' and new.address is null
     and to_jsonb(new) - 'address' - 'resource_kind' = to_jsonb(old) - 'address' - 'resource_kind' then
    return new;
  end if;
  raise exception '% is append-only', tg_table_name
    using errcode = 'check_violation', constraint = 'append_only', table = tg_table_name;
end $$;
create trigger audit_log_append_only before update or delete on audit_log
  for each row execute function refuse_change_of_audit();
create trigger audit_log_not_emptied before truncate on audit_log
  for each statement execute function refuse_change('audit_log');
create trigger installation_audit_log_append_only before update or delete on installation_audit_log
  for each row execute function refuse_change_of_audit();
create trigger installation_audit_log_not_emptied before truncate on installation_audit_log
  for each statement execute function refuse_change_of_installation();

-- A trace is worth something only if who leaves it cannot remove it. By the database's clock, like the addresses.
create function refuse_change_of_disclosures() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.at < now() - interval '30 days' then
    return old;
  end if;
  raise exception '% is append-only', tg_table_name
    using errcode = 'check_violation', constraint = 'append_only', table = tg_table_name;
end $$;
create trigger disclosures_append_only before update or delete on disclosures
  for each row execute function refuse_change_of_disclosures();
create trigger disclosures_not_emptied before truncate on disclosures
  for each statement execute function refuse_change_of_installation();


-- The sandbox

-- How far a partner's clock is ahead of real time. A partner that never moved its clock has no row.
create table sandbox_clocks (
  partner_id id primary key references partners,
  offset_ms bigint not null,
  constraint clock_is_at_most_400_days_ahead check (offset_ms between 0 and 34560000000)
);

-- A move of a clock takes as long as the work that falls due on the way, so it is a row that any process can resume.
create table sandbox_clock_moves (
  partner_id id not null references partners,
  id id not null,
  -- The request that started it, with its SHA-256 as in idempotency_keys: a retry waits for this move, and the same key with
  -- another body is refused.
  idempotency_key text collate "C",
  fingerprint bytea,
  starts_at timestamptz not null,
  target timestamptz not null,
  -- For a move by a duration: how far the clock is ahead at the end, computed from one instant, since the clock moves on between
  -- two readings. Null for a move to an instant.
  offset_ms bigint,
  -- What fell due on the way, oldest first.
  ran jsonb not null default '[]',
  -- The lease of the process that moves the clock.
  leased_by text,
  leased_until timestamptz,
  ended_at timestamptz,
  primary key (partner_id, id),
  constraint clock_moves_forward check (target >= starts_at)
);
create unique index one_clock_move_at_a_time on sandbox_clock_moves (partner_id) where ended_at is null;
create index sandbox_clock_moves_by_key on sandbox_clock_moves (partner_id, idempotency_key) where idempotency_key is not null;

-- The simulated bank's own books: to us it is an outside system, and it must remember across restarts.
create table simulated_bank_payments (
  reference text collate "C" primary key,
  partner_id id not null,
  behaviour text not null,
  amount bigint not null,
  currency currency not null,
  submissions integer not null default 1,
  received_at timestamptz not null
);
create table simulated_bank_reports (
  sequence bigint generated always as identity primary key,
  partner_id id not null,
  reference text collate "C" not null,
  outcome text not null check (outcome in ('paid', 'failed', 'returned')),
  reason text,
  restriction text check (restriction in ('account_refused', 'review')),
  -- A report becomes visible at this instant of the partner's clock; the bank knows the future.
  reported_at timestamptz not null
);
create index simulated_bank_reports_of on simulated_bank_reports (reference, reported_at);
create index simulated_bank_reports_by_partner on simulated_bank_reports (partner_id, reported_at, sequence);

-- How the simulated bank treats one payment, whatever its account says. The payment may have no reference yet.
create table simulated_bank_instructions (
  partner_id id not null references partners,
  withdrawal_id text collate "C" not null,
  outcome text not null check (outcome in ('hold', 'paid', 'failed', 'returned')),
  reason text,
  restriction text check (restriction in ('account_refused', 'review')),
  primary key (partner_id, withdrawal_id)
);

-- How the simulated bank treats a partner's next payments, in order.
create table simulated_bank_faults (
  partner_id id not null references partners,
  sequence bigint generated always as identity,
  fault text not null check (fault in ('timeout', 'error', 'duplicate', 'late', 'contradiction', 'unknown_reference')),
  remaining integer not null check (remaining between 0 and 1000),
  primary key (partner_id, sequence)
);


-- Storage of the tables that grow or change all the time. PostgreSQL's defaults vacuum a table after a fifth of it has changed: for
-- events, that would be once in six months, and reading them would cost more every day.

-- Every movement of a member updates one row, and none of the changed columns is in an index. With room in the page, the new version
-- stays there, and no index gets an entry.
alter table ledger_balances set (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
alter table ledger_float_totals set (fillfactor = 50);
-- Rows live for seconds, and each sum reads all of them, also the dead ones.
alter table ledger_float_changes set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
alter table unpaid_withdrawals set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
alter table ledger_cycle_changes set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
alter table member_count_changes set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- Each row is updated once to three times within minutes, and then never again. None of the changed columns of an intent or a withdrawal is
-- in an index; a page needs room for all of its withdrawals that one batch submits.
alter table withdrawal_intents set (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
alter table withdrawals set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
alter table payouts set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
-- Each row is deleted after a week or a month.
alter table idempotency_keys set (autovacuum_vacuum_scale_factor = 0.02);
alter table request_log set (autovacuum_vacuum_scale_factor = 0.05);
alter table webhook_deliveries set (autovacuum_vacuum_scale_factor = 0.02);


-- Partitions

-- The ids of one kind begin with the time: the lowest id at an instant, without its random part. Like firstId in src/kernel/ids.ts.
create function first_id(prefix text, at timestamptz) returns text
  language sql immutable set search_path = pg_catalog, pg_temp as $$
  select prefix || '_' || string_agg(
           substr('0123456789abcdefghjkmnpqrstvwxyz', (floor(extract(epoch from at) * 1000)::bigint >> (5 * place) & 31)::integer + 1, 1),
           '' order by place desc)
    from generate_series(0, 9) as place
$$;

-- The lowest ids of a month and of the next, in a table with partitions.
create function ids_of_month(parent text, month timestamp, out first text, out next text)
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  prefix text := case parent when 'events' then 'evt' when 'ledger_transfers' then 'tr' end;
begin
  if prefix is null then
    raise exception '% has no partitions', parent using errcode = 'invalid_parameter_value';
  end if;
  first := public.first_id(prefix, month at time zone 'UTC');
  next := public.first_id(prefix, (month + interval '1 month') at time zone 'UTC');
end $$;

-- Makes the partition of a month, or the default partition if the month is null. Everything that a partition has and its table cannot
-- give it is here: unique indexes without the column that the table is partitioned by, storage, and the trigger against truncate.
create function make_partition(parent text, month date) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  suffix text := coalesce(to_char(month, 'YYYY_MM'), 'default');
  name text := parent || '_' || suffix;
  bounds text := 'default';
begin
  if month is not null then
    select format('for values from (%L) to (%L)', i.first, i.next) into bounds from public.ids_of_month(parent, month) i;
  end if;
  execute format('create table public.%I partition of public.%I %s', name, parent, bounds);
  execute format('create trigger %I before truncate on public.%I for each statement execute function public.refuse_change(%L)',
                 name || '_not_emptied', name, parent);
  if parent = 'events' then
    execute format('create unique index %I on public.%I (partner_id, resource_id, sequence)', 'one_event_per_step_' || suffix, name);
    execute format('create unique index %I on public.%I (partner_id, position) where position is not null', 'events_feed_' || suffix, name);
    -- Each row is updated once, when it gets its place in the feed.
    execute format('alter table public.%I set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)', name);
    execute format('alter table public.%I alter column data set statistics 0', name);
  else
    execute format('create unique index %I on public.%I (partner_id, member_id, currency, member_sequence) where member_id is not null',
                   'one_transfer_per_member_sequence_' || suffix, name);
    -- Never changed: vacuumed and frozen piece by piece, instead of all at once when transaction ids run out.
    execute format('alter table public.%I set (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)', name);
  end if;
end $$;

-- The default partitions take what no other partition covers: the clock of a sandbox runs ahead by more than a year.
select make_partition('events', null), make_partition('ledger_transfers', null);

-- Makes the partitions of this month and the next, unless they exist. A month with rows in the default partition stays there. Takes no
-- month, so that the app role cannot fill the schema with tables. Making a partition locks the whole table, so it fails rather than let
-- every writer wait behind a long transaction.
create function make_partitions(parent text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
  this_month timestamp := date_trunc('month', now() at time zone 'UTC');
  month timestamp;
  ids record;
  is_covered boolean;
begin
  foreach month in array array[this_month, this_month + interval '1 month'] loop
    continue when to_regclass(format('public.%I', parent || '_' || to_char(month, 'YYYY_MM'))) is not null;
    -- Another process makes it.
    exit when not pg_try_advisory_xact_lock(hashtext('midmonth partitions of ' || parent));
    select * into ids from public.ids_of_month(parent, month);
    -- By partner, because the key begins with it.
    execute format('select exists (
                      select from public.partners p
                       cross join lateral (select from public.%I d where d.partner_id = p.id and d.id >= $1 and d.id < $2 limit 1) found)',
                   parent || '_default')
       into is_covered using ids.first, ids.next;
    if not is_covered then
      perform public.make_partition(parent, month::date);
    end if;
  end loop;
end $$;

-- Drops partitions of events whose last event was written before an instant, and at least 30 days ago, and that nothing reads later: the
-- events are in the feed, added up and fanned out, and no delivery of them is due. The default partition is replaced by an empty one.
-- @returns the partitions that were dropped
create function drop_old_events(written_before timestamptz) returns text[]
  language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
  -- An hour for clocks that differ.
  last timestamptz := least(written_before, now() - interval '30 days') - interval '1 hour';
  name text;
  dropped text[] := '{}';
  is_kept boolean;
begin
  for name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'public.events'::regclass
       and (c.relname = 'events_default' and pg_relation_size(c.oid) > 0
            or c.relname <> 'events_default'
               and (to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month') at time zone 'UTC' <= last)
     order by c.relname
  loop
    execute format('
      select exists (select from public.%1$I where position is null)
          or exists (
               select from public.event_feeds f
                 left join public.withdrawal_total_feeds t on t.partner_id = f.partner_id
                 left join public.webhook_feeds w on w.partner_id = f.partner_id
                           and exists (select from public.webhook_endpoints e where e.partner_id = f.partner_id and e.deleted_at is null)
                cross join lateral (
                  select from public.%1$I e where e.partner_id = f.partner_id
                     and e.position > least(coalesce(t.position, 0), coalesce(w.position, f.last_position)) limit 1) unread)
          or exists (
               select from public.webhook_deliveries d
                 join public.webhook_endpoints w on w.partner_id = d.partner_id and w.id = d.endpoint_id and w.deleted_at is null
                 join public.%1$I e on e.partner_id = d.partner_id and e.id = d.event_id
                where d.due_at is not null or d.replay_at is not null)
          or exists (
               select from public.partners p
                cross join lateral (select from public.%1$I e where e.partner_id = p.id and e.id >= $1 limit 1) recent)', name)
       into is_kept
      using public.first_id('evt', last);
    continue when is_kept;
    execute format('drop table public.%I', name);
    dropped := dropped || name;
    if name = 'events_default' then
      perform public.make_partition('events', null);
    end if;
  end loop;
  return dropped;
end $$;


-- Functions that run as the owner

-- Only a table's owner may analyze it (there is no grant for that before PostgreSQL 17), and a large import cannot wait for
-- autovacuum.
create function analyze_tables(variadic names text[]) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  name text;
begin
  foreach name in array names loop
    execute format('analyze (skip_locked) public.%I', name);
  end loop;
end $$;

-- Removes the addresses of at most count_max rows per log that were written before an instant, and returns how many it removed. A
-- week is the least, so that an intruder cannot hide where they came from.
create function forget_audit_addresses(written_before timestamptz, count_max integer) returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  last timestamptz := least(written_before, now() - interval '7 days');
  of_partners integer;
  of_installation integer;
begin
  with old as (
    select partner_id, id from public.audit_log
     where address is not null and at < last order by at limit count_max for update skip locked)
  update public.audit_log a set address = null from old where a.partner_id = old.partner_id and a.id = old.id;
  get diagnostics of_partners = row_count;
  with old as (
    select id from public.installation_audit_log
     where address is not null and at < last order by at limit count_max for update skip locked)
  update public.installation_audit_log a set address = null from old where a.id = old.id;
  get diagnostics of_installation = row_count;
  return of_partners + of_installation;
end $$;

create function forget_disclosures(made_before timestamptz, count_max integer) returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  last timestamptz := least(made_before, now() - interval '30 days');
  deleted integer;
begin
  with old as (select id from public.disclosures where at < last order by at limit count_max for update skip locked)
  delete from public.disclosures d using old where d.id = old.id;
  get diagnostics deleted = row_count;
  return deleted;
end $$;

-- Deletes a sandbox partner's rows in every table with a partner_id, except configuration, users, logs and positions in the feed.
-- `metadata` is kept because webhook endpoints are; the rest of it is deleted with its objects.
create function reset_sandbox_partner(partner text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  kept constant text[] := array['api_keys', 'tiers', 'tier_versions', 'sandbox_clocks', 'audit_log', 'disclosures', 'event_feeds',
                                'idempotency_keys', 'webhook_endpoints', 'webhook_secrets', 'webhook_feeds', 'request_log',
                                'user_roles', 'user_invitations', 'metadata'];
  remaining text[];
  next_table text;
begin
  if not exists (select from public.installation where mode = 'sandbox') then
    raise exception 'only a partner of a sandbox can be reset' using errcode = 'insufficient_privilege';
  end if;
  perform set_config('midmonth.resetting', partner, true);
  select array_agg(c.relname::text) into remaining
    from pg_attribute a join pg_class c on c.oid = a.attrelid
   where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     and a.attname = 'partner_id' and not a.attisdropped and c.relname <> all(kept);
  while cardinality(remaining) > 0 loop
    -- The next table is one to which no other remaining table refers.
    select t.name into next_table from unnest(remaining) as t (name)
     where not exists (
       select from pg_constraint k
        where k.contype = 'f' and k.confrelid = format('public.%I', t.name)::regclass and k.conrelid <> k.confrelid
          and k.conrelid in (select format('public.%I', other.name)::regclass from unnest(remaining) as other (name)))
     limit 1;
    if next_table is null then
      raise exception 'the tables % refer to each other in a circle', remaining;
    end if;
    execute format('delete from public.%I where partner_id = $1', next_table) using partner;
    remaining := array_remove(remaining, next_table);
  end loop;
  -- The record of the request that resets is completed after this.
  delete from public.idempotency_keys where partner_id = partner and (status is not null or resource_id is not null);
  perform set_config('midmonth.resetting', '', true);
end $$;

revoke execute on function analyze_tables(text[]), forget_audit_addresses(timestamptz, integer),
  forget_disclosures(timestamptz, integer), reset_sandbox_partner(text), make_partition(text, date), make_partitions(text), drop_old_events(timestamptz) from public;
