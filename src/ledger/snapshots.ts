import { type Db, firstOpenTransaction, sql } from '../db.ts'
import { floatChange, movesFloat, pendingChange } from './ledger.ts'

/**
 * Brings the snapshots of the floats up to date, so that a sum is a short range however long the past is.
 *
 * Transactions do not end in the order of their ids, so a snapshot ends before the oldest one that is still open: no row
 * of an earlier one can appear any more. Twice, or several at once, is safe: each computes from a snapshot that is
 * whole, and an older one never replaces a newer.
 * @param rowsMin a sum over fewer rows costs nothing, and is left alone
 * @returns how many were renewed
 */
export async function takeSnapshots(db: Db, { rowsMin }: { rowsMin: number }): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into ledger_snapshots as kept (partner_id, currency, before_transaction, float_balance, pending_balance)
    select p.partner_id, p.currency, ended.before, coalesce(s.float_balance, 0) + tail.float, coalesce(s.pending_balance, 0) + tail.pending
      from (select ${firstOpenTransaction} as before) ended
     -- Wherever pay can be withdrawn there is a tier in its currency.
     cross join (select partner_id, currency from tiers union select partner_id, currency from float_limits) p
      left join ledger_snapshots s on s.partner_id = p.partner_id and s.currency = p.currency
     cross join lateral (
       select count(*) as rows, ${floatChange} as float, ${pendingChange} as pending
         from ledger_transfers t
        where t.partner_id = p.partner_id and t.currency = p.currency
          and t.transaction_id >= coalesce(s.before_transaction, '0'::xid8) and t.transaction_id < ended.before
          and ${movesFloat}
     ) tail
     where tail.rows >= ${rowsMin}
        on conflict (partner_id, currency) do update
       set before_transaction = excluded.before_transaction, float_balance = excluded.float_balance,
           pending_balance = excluded.pending_balance
     where kept.before_transaction < excluded.before_transaction`.execute(db)
  return Number(numAffectedRows ?? 0)
}
