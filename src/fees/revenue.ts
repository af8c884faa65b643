import { type Reader, sql } from '../database/database.ts'
import type { Currency } from '../kernel/money.ts'

/** The fees of a partner in one currency, in minor units, and how much of them is revenue. */
export type Revenue = {
  currency: Currency
  /** Fees of members that settlements cover, but whose money has not arrived. */
  arriving: bigint
  /** Fees of members that have become revenue, less those booked back. */
  collected: bigint
  /** How much of the collected fees the operator has taken out of the float. */
  withdrawn: bigint
  /** How much of the collected fees is still in the float. Negative if fees were booked back after they were taken out. */
  inFloat: bigint
  /** Employers' fees on open invoices (`invoiced`) and on paid ones (`paid`). */
  invoiced: bigint
  paid: bigint
}

/** Reads a partner's revenue, one entry per currency with a tier or fees. */
export async function readRevenue(db: Reader, partnerId: string): Promise<Revenue[]> {
  const { rows } = await sql<Revenue>`
    select currency, sum(arriving)::bigint as arriving, sum(collected)::bigint as collected, sum(withdrawn)::bigint as withdrawn,
           sum(collected - withdrawn)::bigint as in_float, sum(invoiced)::bigint as invoiced, sum(paid)::bigint as paid
      from (select currency, 0 as arriving, 0 as collected, 0 as withdrawn, 0 as invoiced, 0 as paid
              from tiers where partner_id = ${partnerId}
             union all
            select currency, covered - collected, collected, 0, 0, 0 from fee_collections where partner_id = ${partnerId}
             union all
            select currency, 0, 0, amount, 0, 0 from float_references where partner_id = ${partnerId} and direction = 'revenue'
             union all
            select currency, 0, 0, 0, case when status = 'open' then sum else 0 end, case when status = 'paid' then sum else 0 end
              from invoices where partner_id = ${partnerId} and status <> 'void') parts
     group by currency order by currency`.execute(db)
  return rows
}

/** Reads the revenue that is still in the float. The operator can take out as much of it as is free in the float. */
export async function inFloatOf(
  db: Reader,
  { partnerId, currency }: { partnerId: string; currency: Currency },
): Promise<bigint> {
  const found = (await readRevenue(db, partnerId)).find(each => each.currency === currency)
  return found?.inFloat ?? 0n
}
