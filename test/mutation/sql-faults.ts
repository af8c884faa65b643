// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of the sources
/** A fault made by hand in SQL. @property from a text that stands once in the file */
export type SqlFault = { what: string; file: string; from: string; to: string; tests: readonly string[] }

const schema = 'migrations/0001_schema.sql'
const ledger = { file: 'src/ledger/ledger.ts' }
const ofLedger = ['src/ledger', 'src/float', 'src/pay-runs/pay-runs.test.ts', 'src/verification']
const facts = {
  file: 'src/withdrawals/facts.ts',
  tests: ['src/withdrawals', 'src/float', 'test/properties/whole-life.test.ts'],
}
const keys = { file: 'src/idempotency/idempotency.ts', tests: ['src/http/with-idempotency.test.ts', 'src/withdrawals'] }
const fees = { file: 'src/fees/fees.ts', tests: ['src/fees', 'src/settlements', 'test/properties/whole-life.test.ts'] }
const batches = { file: 'src/payouts/books/batches.ts', tests: ['src/payouts/channels/files', 'src/payouts/books'] }
const reconciliation = {
  file: 'src/payouts/books/reconciliation.ts',
  tests: ['src/payouts/books', 'test/properties/bank-account.test.ts'],
}
const roles = ['test/roles.test.ts']

export const faults: readonly SqlFault[] = [
  {
    ...ledger,
    what: 'a debt shrinks by what is owed',
    from: 'owed = b.owed + moved.owed',
    to: 'owed = b.owed - moved.owed',
    tests: ofLedger,
  },
  {
    ...ledger,
    what: 'a balance counts one transfer per statement',
    from: 'transfer_count = b.transfer_count + moved.transfers',
    to: 'transfer_count = b.transfer_count + 1',
    tests: ofLedger,
  },
  {
    ...ledger,
    what: 'the transfers of a member are numbered in the opposite order',
    from: 'row_number() over (member order by place) - 1',
    to: 'row_number() over (member order by place desc) - 1',
    tests: [...ofLedger, 'src/statements'],
  },
  {
    ...ledger,
    what: 'what is pending counts as float',
    from: 'select ${partner}, currency, first_id, float_change, pending_change',
    to: 'select ${partner}, currency, first_id, pending_change, float_change',
    tests: ofLedger,
  },
  {
    ...ledger,
    what: 'the float of one currency includes the others',
    from: 'where unfolded.partner_id = ${partnerId} and unfolded.currency = ${currency}',
    to: 'where unfolded.partner_id = ${partnerId}',
    tests: [...ofLedger, 'src/withdrawals'],
  },
  {
    ...ledger,
    what: 'folding forgets what was folded before',
    from: 'float_balance = k.float_balance + summed.float,',
    to: 'float_balance = summed.float,',
    tests: ofLedger,
  },
  {
    ...ledger,
    what: 'folding reads changes that it does not delete',
    from: 'and c.currency = ${currency} and c.id = due.id',
    to: 'and c.currency = ${currency} and c.id < due.id',
    tests: ofLedger,
  },
  {
    ...facts,
    what: 'a day begins at midnight in UTC',
    from: "date_trunc('day', a.now at time zone p.time_zone) at time zone p.time_zone",
    to: "date_trunc('day', a.now at time zone 'UTC') at time zone 'UTC'",
  },
  {
    ...facts,
    what: 'the limit per cycle counts earlier cycles',
    from: "and w.pay_cycle_id = c.id and w.id >= first_id('w', c.created_at - interval '1 hour')",
    to: '',
  },
  {
    ...facts,
    what: 'a member may withdraw what they have in another currency',
    from: 'and b.member_id = m.id and b.currency = t.currency',
    to: 'and b.member_id = m.id',
  },
  {
    ...facts,
    what: 'money on its way to members counts as free',
    from: 's.float - s.pending as free',
    to: 's.float as free',
  },
  {
    ...keys,
    what: 'a valid key is taken again',
    from: 'where idempotency_keys.expires_at <= ${now}',
    to: 'where idempotency_keys.expires_at >= ${now}',
  },
  {
    ...keys,
    what: 'an expired key is replayed',
    from: 'k.expires_at <= c.now as is_expired',
    to: "k.expires_at < c.now - interval '1 year' as is_expired",
  },
  {
    ...keys,
    what: 'a key of another partner is replayed',
    from: 'on k.partner_id = c.partner_id and k.key = c.key',
    to: 'on k.key = c.key',
  },
  {
    ...fees,
    what: 'the fee of a returned withdrawal is covered',
    from: "where w.status in ('held', 'submitted', 'paid')",
    to: "where w.status in ('held', 'submitted', 'paid', 'returned')",
  },
  {
    ...fees,
    what: 'a shortfall is taken from the earliest fee',
    from: 'sum(due) over (member order by id) - due',
    to: 'sum(due) over (member order by id desc) - due',
  },
  {
    ...fees,
    what: 'the next settlement covers what the partner has borne',
    from: 'total - lost + least(lost, borne) - before',
    to: 'total - lost - before',
  },
  {
    ...fees,
    what: 'a released fee is released again',
    from: 'and withdrawal_id = ${withdrawalId} and released_at is null',
    to: 'and withdrawal_id = ${withdrawalId}',
    tests: [...fees.tests, 'src/payouts/books'],
  },
  {
    ...batches,
    what: 'a batch grows beyond what its format allows',
    from: 'b.payment_count + excluded.payment_count <= ${format.paymentsMax}',
    to: 'b.payment_count <= ${format.paymentsMax}',
  },
  {
    ...batches,
    what: 'the control total of a batch is that of its last payments',
    from: 'control_total = b.control_total + excluded.control_total,',
    to: 'control_total = excluded.control_total,',
  },
  {
    ...batches,
    what: 'a removed payment counts for the limit of one payment',
    from: 'where batch_id = ${id} and removed_at is null and net_amount > ${paymentMax} limit 1',
    to: 'where batch_id = ${id} and net_amount > ${paymentMax} limit 1',
  },
  {
    ...reconciliation,
    what: 'a returned payment stays debited',
    from: "case when outcome = 'returned' and is_credited then 1 else 0 end",
    to: "case when outcome = 'returned' and is_credited then 0 else 0 end",
  },
  {
    ...reconciliation,
    what: 'an accepted difference is asked for again',
    from: "coalesce(sum(amount) filter (where decision = 'ignore'), 0)::bigint as accepted",
    to: '0::bigint as accepted',
  },
  {
    what: 'an intent can be completed twice once its key has expired',
    file: schema,
    from: 'constraint one_withdrawal_per_intent unique (partner_id, withdrawal_intent_id)',
    to: 'constraint one_withdrawal_per_intent unique (partner_id, withdrawal_intent_id, id)',
    tests: [...roles, 'src/withdrawals', 'src/database'],
  },
  {
    what: 'the app role can delete transfers',
    file: schema,
    from: 'create trigger ledger_transfers_append_only before update or delete on ledger_transfers',
    to: 'create trigger ledger_transfers_append_only before update on ledger_transfers',
    tests: [...roles, 'src/ledger', 'src/verification'],
  },
  {
    what: 'the terms of an intent may change',
    file: schema,
    from: `is distinct from
    (new.partner_id, new.id, new.member_id, new.pay_cycle_id, new.currency, new.gross_amount, new.net_amount, new.fee,
     new.employer_fee, new.tier, new.tier_version, new.account,`,
    to: `is distinct from
    (new.partner_id, new.id, new.member_id, new.pay_cycle_id, new.currency, new.gross_amount, new.net_amount, new.fee,
     new.employer_fee, new.tier, new.tier_version, old.account,`,
    tests: [...roles, 'src/withdrawals', 'test/transitions.test.ts'],
  },
  {
    what: 'a withdrawal moves along any transition',
    file: schema,
    from: 'create trigger withdrawals_transitions before update of status on withdrawals\n  for each row when (old.status is distinct from new.status)',
    to: 'create trigger withdrawals_transitions before update of status on withdrawals\n  for each row when (old.status is null)',
    tests: ['test/transitions.test.ts', ...roles, 'src/withdrawals'],
  },
  {
    what: 'a partner has two open cycles',
    file: schema,
    from: "create unique index one_open_cycle on pay_cycles (partner_id) where status = 'Open'",
    to: "create index one_open_cycle on pay_cycles (partner_id) where status = 'Open'",
    tests: ['src/pay-cycles', 'src/closing', 'src/database', ...roles],
  },
  {
    what: 'one person decides for two',
    file: schema,
    from: 'not public.same_person(person, confirmed_by)',
    to: 'public.same_person(person, confirmed_by) is not null',
    tests: ['src/payouts/books', 'src/operators', 'src/payouts/channels/files'],
  },
  {
    what: 'the last operator is removed',
    file: schema,
    from: 'if not exists (select from users where is_operator and disabled_at is null)',
    to: 'if not exists (select from users where is_operator)',
    tests: ['src/users'],
  },
]
