import { type Cursor, requireKnown } from '../database/cursor.ts'
import { type Page, type Reader, sql } from '../database/database.ts'
import type { Currency } from '../kernel/money.ts'
import type { PayCycle } from './pay-cycles.ts'

/**
 * The amount that payroll has to deduct from a member's pay for a cycle, in minor units: withdrawals including fees, and amounts
 * carried over. Negative if payroll has to give money back. Never zero.
 */
export type Deduction = { memberId: string; currency: Currency; amount: bigint }

type OfCycle = { partnerId: string; cycle: Pick<PayCycle, 'id' | 'status'> }

/**
 * Lists deductions by member, and by currency if a member's currency has changed. Provisional while the cycle is open.
 * @param options.skip given if the caller counts entries; otherwise a page ends with the last entry of a member
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function list(
  db: Reader,
  { page, skip, cursor, ...of }: OfCycle & { page: Page; skip?: number | undefined; cursor?: Cursor | undefined },
): Promise<Deduction[]> {
  await requireKnown(db, 'members', { partnerId: of.partnerId, cursor })
  const end = skip === undefined ? sql`fetch first ${page.take} rows with ties` : sql`limit ${page.take}`
  const { rows } = await sql<Deduction>`
    select member_id, currency, amount
      from (select member_id, currency, amount from ${deductionsOf(of, cursor?.id)} d
             order by member_id ${skip === undefined ? sql`` : sql`, currency`} offset ${page.skip} ${end}) p
     order by member_id, currency`.execute(db)
  return rows
}

export async function count(db: Reader, of: OfCycle): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select count(*)::integer as total from ${deductionsOf(of)} d`.execute(db)
  return rows[0]?.total ?? 0
}

export type DeductionWithWorker = Deduction & { workerId: string | null; email: string }

/** Yields the whole list in chunks that never split a member, so that the size of a statement is bounded. */
export async function* listAll(db: Reader, of: OfCycle): AsyncGenerator<DeductionWithWorker[]> {
  let after = ''
  for (;;) {
    const { rows } = await sql<DeductionWithWorker>`
      select d.member_id, d.currency, d.amount, m.worker_id, m.email
        from (select member_id, currency, amount from ${deductionsOf(of, after)} all_after
               order by member_id fetch first ${pieceMax} rows with ties) d
        join members m on m.partner_id = ${of.partnerId} and m.id = d.member_id
       order by d.member_id, d.currency`.execute(db)
    if (rows.length === 0) return
    yield rows
    after = rows.at(-1)?.memberId ?? after
  }
}

// Each chunk sums up all following members, so chunks are large. A statement of this size still takes about a second.
const pieceMax = 50_000

/**
 * Debits minus credits of the cycle's earned pay, excluding the settlement that brings it to zero. While the cycle is open,
 * its available balances are subtracted, as closing will do.
 */
function deductionsOf({ partnerId, cycle }: OfCycle, after = ''): ReturnType<typeof sql> {
  return sql`(
    select member_id, currency, sum(amount)::bigint as amount
      from (select member_id, currency, case when debit = 'earned_pay' then amount else -amount end as amount
              from ledger_transfers
             where partner_id = ${partnerId} and pay_cycle_id = ${cycle.id} and member_id > ${after}
               and (debit = 'earned_pay' or credit = 'earned_pay')
               and not (reason = 'pay_cycle.settled' and movement_id = pay_cycle_id)
             union all
            select member_id, currency, -available from ledger_balances
             where ${cycle.status === 'Open'} and partner_id = ${partnerId} and pay_cycle_id = ${cycle.id}
               and member_id > ${after} and available > 0
           ) booked
     group by member_id, currency
    having sum(amount) <> 0)`
}
