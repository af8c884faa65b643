import { sql } from '../../database/database.ts'

/**
 * SQL: whether a row of `payouts` has one of some references. A bank names our reference only: `payout_references` finds the
 * partner, and both find the payment.
 */
export function hasReference(
  references: string | readonly string[],
  { of = 'payouts' }: { of?: 'payouts' | 'p' } = {},
) {
  const among = typeof references === 'string' ? [references] : [...references]
  return sql`(${sql.ref(of)}.partner_id, ${sql.ref(of)}.reference) in (
    select f.partner_id, f.reference from payout_references f where f.reference = any(${among}::text[]))`
}

/** SQL: the payouts `p` with their references `f`, to be joined by `f.reference`. */
export const referencedPayouts = sql`payout_references f join payouts p on p.partner_id = f.partner_id and p.reference = f.reference`

/** SQL: whether a row of `payouts` is the payment with a reference, or of the withdrawal with an id. */
export function isNamedBy(name: string) {
  return sql`(payouts.partner_id, payouts.withdrawal_id) in (
    select p.partner_id, p.withdrawal_id from ${referencedPayouts} where f.reference = ${name}
    union all
    select partner_id, id from withdrawals where id = ${name})`
}
