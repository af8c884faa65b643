import { sql, type Tx } from '../database/database.ts'
import type { Currency } from '../kernel/money.ts'
import * as ledger from '../ledger/ledger.ts'
import { collectable } from './rules.ts'

// Fees that members pay, from their settlement to revenue (docs/internals/ledger.md).

type OfCycle = { partnerId: string; payCycleId: string }

/** The members whose fees the settlement of a pay cycle can cover, in id order: charged in the cycle, or carried into it. */
export async function listMembersWithFees(tx: Tx, { partnerId, payCycleId }: OfCycle): Promise<string[]> {
  const { rows } = await sql<{ memberId: string }>`
    select member_id from ledger_transfers
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId} and credit = 'fees' and member_id is not null
           and debit <> 'partner_fees'
     union
    select w.member_id
      from settlement_fees s join withdrawals w on w.partner_id = s.partner_id and w.id = s.withdrawal_id
     where s.partner_id = ${partnerId} and s.carried_to = ${payCycleId} and s.released_at is null
     order by 1`.execute(tx)
  return rows.map(row => row.memberId)
}

/**
 * Records how much of some members' fees a settlement covers. A shortfall is taken from the advance first, and from the fees
 * last, latest first. The amount that a member owes is taken in the same order. The caller has locked the members and written
 * their settlement lines.
 * @param carriedTo the cycle that the uncovered parts are due in next, unless the partner bears them
 */
export async function cover(
  tx: Tx,
  { partnerId, payCycleId, carriedTo, memberIds }: OfCycle & { carriedTo: string; memberIds: string[] },
): Promise<void> {
  if (memberIds.length === 0) return
  await sql`
    -- Materialized, because the planner would otherwise read all withdrawals of the partner for each piece of the members.
    with charged as materialized (
      select t.movement_id, max(t.id) as last_id
        from ledger_transfers t
       where t.partner_id = ${partnerId} and t.pay_cycle_id = ${payCycleId} and t.member_id = any(${memberIds}::text[])
         and t.credit = 'fees' and t.debit <> 'partner_fees'
       group by t.movement_id
    ), standing as (
      select w.id, w.member_id, w.currency, w.fee
        from charged c
        join withdrawals w on w.partner_id = ${partnerId} and w.id = c.movement_id
       where w.status in ('held', 'submitted', 'paid')
         -- A payment that was made after its refund is charged again, in a later cycle.
         and not exists (select from ledger_transfers again
                          where again.partner_id = ${partnerId} and again.movement_id = c.movement_id and again.credit = 'fees'
                            and again.pay_cycle_id <> ${payCycleId} and again.id > c.last_id)
    ), due as (
      select id, member_id, currency, fee, fee as due,
             coalesce((select max(s.part) from settlement_fees s
                        where s.partner_id = ${partnerId} and s.withdrawal_id = standing.id), 0) + 1 as part
        from standing
       union all
      select s.withdrawal_id, w.member_id, s.currency, s.fee, s.carried, s.part + 1
        from settlement_fees s
        join withdrawals w on w.partner_id = s.partner_id and w.id = s.withdrawal_id
       where s.partner_id = ${partnerId} and s.carried_to = ${payCycleId} and s.released_at is null
         and w.member_id = any(${memberIds}::text[])
    ), summed as (
      select due.*, sum(due) over member as total, sum(due) over (member order by id) - due as before
        from due window member as (partition by member_id, currency)
    ), missing as (
      select s.*, coalesce(l.written_off, 0) as borne, coalesce(b.owed, 0) as owed, coalesce(l.deducted, 0) as deducted,
             greatest(coalesce(l.deducted - l.taken, 0), 0) as shortfall
        from summed s
        left join settlement_lines l on l.partner_id = ${partnerId} and l.pay_cycle_id = ${payCycleId}
                                    and l.member_id = s.member_id and l.currency = s.currency
        left join ledger_balances b on b.partner_id = ${partnerId} and b.member_id = s.member_id and b.currency = s.currency
    ), uncovered as (
      select m.*, least(total, greatest(0, shortfall + owed - greatest(0, deducted + owed - total))) as lost from missing m
    ), split as (
      select u.*, least(due, greatest(0, total - lost - before)) as covered,
             least(due, greatest(0, total - lost + least(lost, borne) - before)) as covered_or_borne
        from uncovered u
    )
    insert into settlement_fees
           (partner_id, withdrawal_id, part, pay_cycle_id, currency, fee, due, covered, written_off, carried, carried_to)
    select ${partnerId}, id, part, ${payCycleId}, currency, fee, due, covered, covered_or_borne - covered,
           due - covered_or_borne, case when due > covered_or_borne then ${carriedTo} end
      from split`.execute(tx)
}

/**
 * Collects the fees that a settlement covers, as far as its money has arrived. The caller has recorded everything that the
 * settlement covers.
 */
export async function collectSettled(tx: Tx, { partnerId, payCycleId, now }: OfCycle & { now: Date }): Promise<void> {
  const { rows } = await sql<{ currency: Currency }>`
    insert into fee_collections (partner_id, pay_cycle_id, currency, covered, collected)
    select partner_id, pay_cycle_id, currency, sum(covered), 0 from settlement_fees
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId} and released_at is null
     group by partner_id, pay_cycle_id, currency
    returning currency`.execute(tx)
  for (const { currency } of rows) await collect(tx, { partnerId, payCycleId, currency, movementId: payCycleId, now })
}

type FeesToCollect = OfCycle & { currency: Currency; released?: bigint; movementId: string; now: Date }

/**
 * Books fees to revenue, or back, so that the fees collected for a settlement are the fees that it covers, as far as its money
 * has arrived. Idempotent.
 * @param released the part of the fees that the settlement no longer covers
 * @param movementId the cause: the settlement, money that arrived, or a withdrawal that was returned
 */
export async function collect(
  tx: Tx,
  { partnerId, payCycleId, currency, released = 0n, movementId, now }: FeesToCollect,
): Promise<void> {
  const collection = await tx
    .selectFrom('feeCollections')
    .select(['covered', 'collected'])
    .where('partnerId', '=', partnerId)
    .where('payCycleId', '=', payCycleId)
    .where('currency', '=', currency)
    .forUpdate()
    .executeTakeFirst()
  if (collection === undefined) return
  // Read after the lock: money that arrives at the same time waits for the lock and then collects.
  const due = await tx
    .selectFrom('settlementDues')
    .select(['amount', 'received'])
    .where('partnerId', '=', partnerId)
    .where('payCycleId', '=', payCycleId)
    .where('currency', '=', currency)
    .executeTakeFirst()
  const covered = collection.covered - released
  const collected = collectable({ covered, due })
  const change = collected - collection.collected
  const about = { currency, payCycleId }
  if (change > 0n) {
    const transfers = [{ debit: 'fees' as const, credit: 'revenue' as const, amount: change, ...about }]
    await ledger.post(tx, { partnerId, movementId, reason: 'fees.collected', transfers, now })
  } else if (change < 0n) {
    const transfers = [{ debit: 'revenue' as const, credit: 'fees' as const, amount: -change, ...about }]
    await ledger.post(tx, { partnerId, movementId, reason: 'fees.booked_back', transfers, now })
  }
  if (released === 0n && change === 0n) return
  await tx
    .updateTable('feeCollections')
    .set({ covered, collected })
    .where('partnerId', '=', partnerId)
    .where('payCycleId', '=', payCycleId)
    .where('currency', '=', currency)
    .execute()
}

/**
 * Releases the fee of a refunded withdrawal: the collected part is booked back, and the rest is not collected. The caller has
 * locked the member.
 */
export async function release(
  tx: Tx,
  { partnerId, withdrawalId, now }: { partnerId: string; withdrawalId: string; now: Date },
): Promise<void> {
  const { rows } = await sql<{ payCycleId: string; currency: Currency; covered: bigint }>`
    update settlement_fees set released_at = ${now}
     where partner_id = ${partnerId} and withdrawal_id = ${withdrawalId} and released_at is null
    returning pay_cycle_id, currency, covered`.execute(tx)
  const covering = rows.filter(({ covered }) => covered > 0n)
  for (const { covered, ...of } of covering.toSorted((a, b) => (a.payCycleId < b.payCycleId ? -1 : 1)))
    await collect(tx, { partnerId, ...of, released: covered, movementId: withdrawalId, now })
}
