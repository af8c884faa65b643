import type { RawBuilder } from 'kysely'
import { lanesOf, type Reader, sql } from '../../database/database.ts'

// A bank names our reference only: `payout_references` finds the partner, and both find the payment.

/** SQL condition: a row of `payouts`, or of its alias `p`, is one of the payments. */
export type NamedPayments = (of?: 'payouts' | 'p') => RawBuilder<boolean>

/**
 * Finds the payments with some references, for statements that lock or change them. With shared lanes one condition is for all of them.
 * A distributed PostgreSQL locks and changes the rows of one partner in a statement, so each condition names one.
 */
export async function byReference(db: Reader, references: readonly string[]): Promise<NamedPayments[]> {
  if (lanesOf(db) === 'shared') return [of => hasReference(references, { of })]
  const { rows } = await sql<{ partnerId: string; references: string[] }>`
    select partner_id, array_agg(reference) as references from payout_references
     where reference = any(${[...references]}::text[]) group by partner_id order by partner_id`.execute(db)
  return rows.map(
    ({ partnerId, references }) =>
      (of = 'payouts') =>
        sql`(${sql.ref(of)}.partner_id = ${partnerId} and ${sql.ref(of)}.reference = any(${references}::text[]))`,
  )
}

// Names a partner too, so that a distributed PostgreSQL can lock what it finds.
const none: NamedPayments = (of = 'payouts') => sql`(${sql.ref(of)}.partner_id = '')`

/** Like `byReference`, for one payment. Without such a payment, the condition finds none. */
export async function byOneReference(db: Reader, reference: string): Promise<NamedPayments> {
  const [named] = await byReference(db, [reference])
  return named ?? none
}

/** SQL: whether a row of `payouts` has one of some references. */
export function hasReference(
  references: string | readonly string[],
  { of = 'payouts' }: { of?: 'payouts' | 'p' | undefined } = {},
) {
  const among = typeof references === 'string' ? [references] : [...references]
  return sql<boolean>`(${sql.ref(of)}.partner_id, ${sql.ref(of)}.reference) in (
    select f.partner_id, f.reference from payout_references f where f.reference = any(${among}::text[]))`
}

/** SQL: the payouts `p` with their references `f`, to be joined by `f.reference`. */
export const referencedPayouts = sql`payout_references f join payouts p on p.partner_id = f.partner_id and p.reference = f.reference`

/** Finds the payment with a reference, or of the withdrawal with an id, like `byReference`. */
export async function byName(db: Reader, name: string): Promise<NamedPayments> {
  const { rows } = await sql<{ partnerId: string; withdrawalId: string }>`
    select p.partner_id, p.withdrawal_id from ${referencedPayouts} where f.reference = ${name}
    union all
    select partner_id, id from withdrawals where id = ${name}`.execute(db)
  const [found] = rows
  if (found === undefined) return none
  return (of = 'payouts') =>
    sql`(${sql.ref(of)}.partner_id = ${found.partnerId} and ${sql.ref(of)}.withdrawal_id = ${found.withdrawalId})`
}
