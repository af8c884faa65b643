import type pg from 'pg'

/** One change that spreads the tables, and the statement that makes it. */
export type DistributionStep = { change: string; statement: string }

/**
 * A trigger or function that works on one PostgreSQL but not on nodes, and the form that it has there: the statement that makes it, the
 * parts of its definition that are replaced, or the statement that removes it.
 */
type NodeForm = { name: string; change: string } & (
  | { statement: string }
  | { edits: [from: string, to: string][] }
  | { removal: string }
)

const forgottenKeys =
  'delete from public.idempotency_keys where partner_id = partner and (status is not null or resource_id is not null);'

// A trigger on a shard runs on its node, in the transaction of the shard's row. There it finds the rows of the same partner, but no
// transition table, nothing of the coordinator's tables, and writes to a reference table deadlock with the transaction's own.
const forms: readonly NodeForm[] = [
  {
    name: 'payouts_leave_their_batch',
    change: 'payouts: no trigger subtracts deleted payments from their batches, which are on the coordinator',
    removal: 'drop trigger payouts_leave_their_batch on public.payouts',
  },
  {
    name: 'payouts_end_proposals',
    change: 'payouts: no trigger ends proposals, which are on the coordinator',
    removal: 'drop trigger payouts_end_proposals on public.payouts',
  },
  {
    name: 'end_proposals_of_payments',
    change: 'end_proposals_of_payments: takes the outcomes from the records of banks',
    statement: `
      create or replace function public.end_proposals_of_payments() returns trigger language plpgsql as $$
      begin
        update public.payout_proposals proposed set ended_at = now(), ended_because =
               format('A file of the bank or another decision has said that the payment is %s', changed.outcome)
          from changed
         where proposed.subject = changed.reference and proposed.confirmed_in is null and proposed.ended_at is null
           and changed.outcome is not null;
        return null;
      end $$`,
  },
  {
    name: 'bank_records_end_proposals',
    change: 'bank_records: a trigger ends the proposals about payments that have an outcome',
    statement: `
      create or replace trigger bank_records_end_proposals after insert on public.bank_records
        referencing new table as changed for each statement execute function public.end_proposals_of_payments()`,
  },
  ...['refuse_decision_of_one', 'refuse_outcome_of_one'].map(name => ({
    name,
    change: `${name}: looks at payments on all nodes`,
    edits: [['select from', 'select true from']] satisfies [string, string][],
  })),
  {
    name: 'refuse_recovery_without_decision',
    change: 'withdrawals: become paid again by a recovery, whose decision is on the coordinator',
    statement: `
      create or replace function public.refuse_recovery_without_decision() returns trigger language plpgsql as $$
      begin
        if new.recovered_by is null or new.recovered_by is not distinct from old.recovered_by or not exists (
          select from public.withdrawal_recoveries r
           where r.partner_id = new.partner_id and r.withdrawal_id = new.id and r.exception_id = new.recovered_by
        ) then
          raise exception 'a withdrawal becomes paid after % only by a decision that recovers it', old.status
            using errcode = 'check_violation', constraint = 'recovered_by_a_decision', table = 'withdrawals';
        end if;
        return new;
      end $$`,
  },
  {
    name: 'reset_sandbox_partner',
    change:
      'reset_sandbox_partner: deletes what the server has: the coordinator its own tables, a node those of the partner',
    edits: [
      [
        'join pg_class c on c.oid = a.attrelid\n',
        'join pg_class c on c.oid = a.attrelid left join pg_dist_partition d on d.logicalrelid = c.oid\n',
      ],
      [
        'c.relname <> all(kept);',
        `c.relname <> all(kept)
     and d.partmethod is not distinct from case when not citus_is_coordinator() then 'h'::"char" end;`,
      ],
      [
        `\n  ${forgottenKeys}`,
        `\n  if not citus_is_coordinator() then
    ${forgottenKeys}
  end if;`,
      ],
    ],
  },
  {
    name: 'reset_sandbox_on_node',
    change: 'event_feeds: a function resets a partner of a sandbox on its node',
    statement: `
      create or replace function public.reset_sandbox_on_node() returns trigger language plpgsql as $$
      begin
        perform public.reset_sandbox_partner(new.partner_id);
        new.last_position := old.last_position;
        return new;
      end $$`,
  },
  {
    name: 'event_feeds_reset',
    change: 'event_feeds: a position below zero resets the partner',
    statement: `
      create or replace trigger event_feeds_reset before update on public.event_feeds
        for each row when (new.last_position < 0) execute function public.reset_sandbox_on_node()`,
  },
  {
    name: 'refuse_deletion_unless_sandbox',
    change: 'payout_references: a function refuses to delete, except on a sandbox',
    statement: `
      create or replace function public.refuse_deletion_unless_sandbox() returns trigger language plpgsql as $$
      begin
        if exists (select from public.installation where mode = 'sandbox') then
          return old;
        end if;
        raise exception '% is append-only', tg_argv[0]
          using errcode = 'check_violation', constraint = 'append_only', table = tg_argv[0];
      end $$`,
  },
  {
    name: 'payout_references_deleted_on_sandboxes',
    change: 'payout_references: only a sandbox deletes rows',
    statement: `
      create or replace trigger payout_references_deleted_on_sandboxes before delete on public.payout_references
        for each row execute function public.refuse_deletion_unless_sandbox('payout_references')`,
  },
  {
    name: 'forget_audit_addresses',
    change: 'forget_audit_addresses: looks at one partner after the other',
    statement: `
      create or replace function public.forget_audit_addresses(written_before timestamptz, count_max integer) returns integer
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
      declare
        last timestamptz := least(written_before, now() - interval '7 days');
        of_partner text;
        of_one integer;
        of_all integer := 0;
      begin
        for of_partner in
          select distinct partner_id from public.audit_log where address is not null and at < last
        loop
          exit when of_all >= count_max;
          with old as (
            select id from public.audit_log
             where partner_id = of_partner and address is not null and at < last
             order by at limit count_max - of_all for update skip locked)
          update public.audit_log a set address = null from old where a.partner_id = of_partner and a.id = old.id;
          get diagnostics of_one = row_count;
          of_all := of_all + of_one;
        end loop;
        with old as (
          select id from public.installation_audit_log
           where address is not null and at < last order by at limit count_max for update skip locked)
        update public.installation_audit_log a set address = null from old where a.id = old.id;
        get diagnostics of_one = row_count;
        return of_all + of_one;
      end $$`,
  },
  {
    name: 'make_partition',
    change: 'make_partition: sets no statistics of a column',
    edits: [
      [
        "    execute format('alter table public.%I alter column data set statistics 0', name);\n",
        '    -- The statistics of columns are left as they are.\n',
      ],
    ],
  },
  {
    name: 'make_partitions',
    change: 'make_partitions: looks at the default partition on all nodes',
    edits: [
      ['select from', 'select 1 from'],
      ['d.id < $2 limit 1) ', 'd.id < $2) '],
    ],
  },
  {
    name: 'drop_old_events',
    change: 'drop_old_events: looks at partitions on all nodes',
    edits: [
      ['pg_relation_size(c.oid)', 'citus_relation_size(c.oid)'],
      ['select from', 'select 1 from'],
      ['f.last_position)) limit 1) ', 'f.last_position))) '],
      ['e.id >= $1 limit 1) ', 'e.id >= $1) '],
    ],
  },
  {
    name: 'add_unpaid_withdrawal',
    change: 'withdrawals: a function for one row lists those that are not paid',
    statement: `
      create or replace function public.add_unpaid_withdrawal() returns trigger
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
      begin
        insert into public.unpaid_withdrawals (partner_id, withdrawal_id, status, due_at)
        values (new.partner_id, new.id, new.status, new.due_at);
        return null;
      end $$`,
  },
  {
    name: 'withdrawals_begin_unpaid',
    change: 'withdrawals: a trigger per row lists those that are not paid',
    statement: `
      create or replace trigger withdrawals_begin_unpaid after insert on public.withdrawals
        for each row execute function public.add_unpaid_withdrawal()`,
  },
  {
    name: 'amounts_of_ours',
    change: 'amounts_of_ours: reads the payments of all nodes',
    statement: `
      create or replace function public.amounts_of_ours(of_currency text, among bigint[]) returns setof bigint
        language plpgsql stable as $$
      declare
        batches text[];
      begin
        return query select distinct p.net_amount from public.payouts p
          where p.currency = of_currency and p.net_amount = any(among) and p.outcome is distinct from 'paid';
        select array_agg(b.id) into batches from public.payout_batches b
         where b.currency = of_currency and b.status = 'settled' and b.control_total = any(among);
        return query select b.control_total from public.payout_batches b
          where b.currency = of_currency and b.control_total = any(among) and b.status <> 'cancelled'
            and (b.status <> 'settled' or b.given_back_at is not null);
        return query select b.control_total
           from (select distinct p.batch_id from public.payouts p
                  where p.batch_id = any(batches) and p.outcome in ('failed', 'returned')) p
           join public.payout_batches b on b.id = p.batch_id;
        select array_agg(b.id) into batches from public.payout_batches b
         where b.currency = of_currency and b.status in ('building', 'approved', 'sent', 'acknowledged');
        return query select amount
           from (select p.batch_id, sum(p.net_amount)::bigint as failed from public.payouts p
                  where p.batch_id = any(batches) and p.outcome = 'failed' and p.removed_at is null group by p.batch_id) p
           join public.payout_batches b on b.id = p.batch_id, unnest(array[p.failed, b.control_total - p.failed]) as amount
          where amount = any(among);
        return query select b.control_total from public.payout_batches b where b.id = any(batches) and b.control_total = any(among);
        return query select distinct abs(d.amount) from public.settlement_dues d
          where d.currency = of_currency and abs(d.amount) = any(among);
        return query select distinct abs(d.amount - d.received) from public.settlement_dues d
          where d.currency = of_currency and abs(d.amount - d.received) = any(among);
      end $$`,
  },
  {
    name: 'holds_reference_of_ours',
    change: 'holds_reference_of_ours: reads the pay cycles of all nodes',
    statement: `
      create or replace function public.holds_reference_of_ours(words text) returns boolean language plpgsql stable as $$
      declare
        plain text := regexp_replace(upper(words), '[^A-Z0-9]', '', 'g');
        starts integer[] := array(select at from generate_series(1, length(plain) - 15) as at where substr(plain, at, 2) = 'MM');
        payments text[] := array(select substr(plain, at, 16) from unnest(starts) as at);
        batches text[] := array(select substr(plain, at, 17) from unnest(starts) as at);
        cycles text[] := array(select substr(plain, at + 3, 14) from unnest(starts) as at where substr(plain, at, 3) = 'MMS');
      begin
        return exists (select true from public.payout_references where reference = any(payments))
            or exists (select true from public.payout_batches where message_id = any(batches))
            or (cardinality(cycles) > 0
                and exists (select true from public.pay_cycles where upper(right(id, 14)) = any(cycles)));
      end $$`,
  },
]

/**
 * Lists the triggers and functions that still have to be made, replaced or removed.
 * @throws if a function has neither a text that is to be replaced nor what replaces it: a migration has changed it
 */
export async function formsToReplace(client: pg.ClientBase): Promise<DistributionStep[]> {
  const { rows } = await client.query<{ name: string; body: string | null; definition: string }>(
    `select proname as name, prosrc as body, pg_get_functiondef(oid) as definition from pg_proc
      where pronamespace = 'public'::regnamespace
      union all
     select tgname, null, '' from pg_trigger
      where not tgisinternal and (tgnewtable is null or tgname <> 'withdrawals_begin_unpaid')`,
  )
  const present = new Map(rows.map(({ name, ...form }) => [name, form]))
  const replaced = forms.flatMap(({ name, change, ...form }): DistributionStep[] => {
    if ('removal' in form) return present.has(name) ? [{ change, statement: form.removal }] : []
    const { body, definition = '' } = present.get(name) ?? {}
    if ('statement' in form) {
      const statement = namingConstraints(form.statement)
      return bodyOf(statement) === body ? [] : [{ change, statement }]
    }
    const edited = form.edits.reduce((text, [from, to]) => {
      if (!text.includes(from) && !text.includes(to))
        throw new Error(`${name} does not contain ${JSON.stringify(from)}`)
      return text.replaceAll(from, () => to)
    }, definition)
    const statement = namingConstraints(edited)
    return statement === definition ? [] : [{ change, statement }]
  })
  const others = rows.flatMap(({ name, definition }) => {
    const statement = namingConstraints(definition)
    const isUnchanged = statement === definition || forms.some(form => form.name === name)
    return isUnchanged ? [] : [{ change: `${name}: the detail of its errors names the constraint`, statement }]
  })
  return [...replaced, ...others]
}

/** Citus does not pass on the constraint that a trigger on a node names; see `nameConstraint`. */
function namingConstraints(definition: string): string {
  return definition.replaceAll(/ constraint = '(\w+)'(?!, detail)/g, ` constraint = '$1', detail = 'constraint "$1"'`)
}

/** What is between the quotes of a function; null for a trigger. */
function bodyOf(statement: string): string | null {
  return /\$\$(.*)\$\$/s.exec(statement)?.[1] ?? null
}
