import { type Reader, sql, type Tx } from '../database/database.ts'
import { newId } from '../ids.ts'
import type { Money } from '../money.ts'

/** Why an answer of a bank did not fit. */
export type ExceptionKind =
  /** It names no payment of ours. */
  | 'unmatched'
  /** It names another amount or currency than we paid. */
  | 'amount'
  /** It contradicts what the bank said before. */
  | 'contradiction'
  /** The bank takes the payment for a duplicate. */
  | 'duplicate'
  /** It could not be recorded, for example because no pay cycle was open. */
  | 'refused'
  /** Money arrived on our account that no return explains. */
  | 'money_in'
  /** Money left our account without a payment of ours. */
  | 'money_out'
  /** Our account lacked the money for a payment. */
  | 'float'

/** An answer to open an exception for. */
export type NewException = {
  rail: string
  kind: ExceptionKind
  /** Recognises the same answer when it is read again. */
  fingerprint: string
  /** A sentence for the operator, without bank details and names. */
  reason: string
  file?: { id: string; line: number | null } | undefined
  reference?: string | null
  payout?: { partnerId: string; withdrawalId: string } | undefined
  outcome?: 'paid' | 'failed' | 'returned' | null
  amount?: Money | null
  reasonCode?: string | null
}

/** Opens exceptions. An answer that has one already, open or closed, gets no second one. */
export async function open(tx: Tx, all: NewException[], now: Date): Promise<void> {
  if (all.length === 0) return
  await tx
    .insertInto('payoutExceptions')
    .values(
      all.map(each => ({
        id: newId('payoutException', now),
        rail: each.rail,
        kind: each.kind,
        fingerprint: each.fingerprint,
        reason: each.reason,
        bankFileId: each.file?.id ?? null,
        line: each.file?.line ?? null,
        reference: each.reference ?? null,
        partnerId: each.payout?.partnerId ?? null,
        withdrawalId: each.payout?.withdrawalId ?? null,
        outcome: each.outcome ?? null,
        amount: each.amount?.amount ?? null,
        currency: each.amount?.currency ?? null,
        reasonCode: each.reasonCode ?? null,
        openedAt: now,
      })),
    )
    .onConflict(conflict => conflict.constraint('each_exception_opens_once').doNothing())
    .execute()
}

export async function countOpen(db: Reader): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from payout_exceptions where closed_at is null`.execute(db)
  return rows[0]?.count ?? 0
}
