import { type Reader, sql, type Tx } from '../../database/database.ts'
import * as float from '../../float/float.ts'
import { conflict } from '../../kernel/errors.ts'
import { inWords } from '../../kernel/money.ts'
import { keepWrittenOff, recordMovement } from './bank-records.ts'
import { lockPayout } from './decided-payments.ts'
import type * as exceptions from './exceptions.ts'
import { isOf, listNamed, refuseIfNamed, refuseIfOnlyDebit } from './named-payments.ts'
import { lockGivenBack } from './recoveries.ts'

type WriteOff = {
  exception: exceptions.Decided
  references: readonly string[] | undefined
  partnerId: string | undefined
  now: Date
}

/**
 * Books money that left the account at the operator's cost, in the floats that it left: of the partners whose payments the bank made,
 * or of the partner that is named. Nothing changes for members.
 * @throws Problem `Conflict` if no money left, or the payments do not explain how much
 */
export async function writeOff(tx: Tx, { exception, references, partnerId, now }: WriteOff): Promise<void> {
  const { id, rail, kind, currency, reference } = exception
  const left = debitOf(exception)
  if (left === null || currency === null) throw conflict('Only money that left the account is written off')
  const costs = new Map<string, bigint>()
  const writtenOff: string[] = []
  // A debit that nothing given back explains is written off whole.
  const isWhole =
    kind !== 'paid_after_give_back' || partnerId !== undefined || (await isOtherDebit(tx, { exception, debit: left }))
  if (isWhole) {
    if (references !== undefined && references.length > 0)
      throw conflict('Payments are named only if what was given back of a batch is written off')
    const whose = partnerId ?? exception.partnerId ?? (await onlyPartnerOf(tx, exception))
    if (whose === null) throw conflict('Name the partner whose float the money left')
    await refuseIfNamed(tx, exception, 'write_off')
    await refuseIfOnlyDebit(tx, exception)
    costs.set(whose, left)
    writtenOff.push(...(await listGivenBack(tx, exception)), ...(await listNamedGivenBack(tx, exception)))
  } else {
    const { payments } = await lockGivenBack(tx, { exception, references })
    for (const payment of payments) {
      costs.set(payment.partnerId, (costs.get(payment.partnerId) ?? 0n) + payment.netAmount)
      writtenOff.push(payment.reference)
    }
    const total = payments.reduce((sum, payment) => sum + payment.netAmount, 0n)
    if (total !== left)
      throw conflict(
        `The bank debited ${inWords({ amount: left, currency })}, of which ${inWords({ amount: total, currency })} were given back; recover the payments, so that the others are paid, or name the partner whose float bears all of it`,
      )
  }
  for (const [whose, units] of [...costs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const cost = { partnerId: whose, amount: { amount: units, currency }, exceptionId: id, now }
    const { movementId } = await float.bearCost(tx, cost)
    await recordMovement(tx, { rail, key: `${id} ${whose}`, reference: reference ?? '', movementId, now })
  }
  await keepWrittenOff(tx, { rail, exceptionId: id, references: writtenOff, now })
}

/** What left the account by a booked entry; null if none did. The entry of a payment of another amount has no sign. */
export function debitOf({ amount, outcome, bookedOn }: exceptions.Decided): bigint | null {
  if (amount === null || bookedOn === null) return null
  if (amount < 0n) return -amount
  return outcome === 'paid' ? amount : null
}

/** Whether a debit of a single payment is not for its money that was given back. */
async function isOtherDebit(
  tx: Tx,
  { exception: { partnerId, reference }, debit }: { exception: exceptions.Decided; debit: bigint },
): Promise<boolean> {
  if (partnerId === null || reference === null) return false
  const { netAmount, outcome } = await lockPayout(tx, reference)
  return netAmount !== debit || (outcome !== 'failed' && outcome !== 'returned')
}

/** The given-back payments of the payment or batch that an exception names. */
async function listGivenBack(
  db: Reader,
  { rail, reference }: Pick<exceptions.Decided, 'rail' | 'reference'>,
): Promise<string[]> {
  const { rows } = await sql<{ reference: string }>`
    select reference from payouts where rail = ${rail} and ${isOf({ rail, reference: reference ?? '' })}
       and outcome in ('failed', 'returned') and removed_at is null`.execute(db)
  return rows.map(each => each.reference)
}

/** The given-back payments that only the words of an exception name. */
async function listNamedGivenBack(db: Reader, exception: exceptions.Decided): Promise<string[]> {
  const named = exception.reference === null ? await listNamed(db, exception) : []
  return named.flatMap(({ reference, outcome }) => (outcome === 'failed' || outcome === 'returned' ? [reference] : []))
}

/** The partner of a batch; null if it has payments of several. */
async function onlyPartnerOf(
  db: Reader,
  { rail, reference }: Pick<exceptions.Decided, 'rail' | 'reference'>,
): Promise<string | null> {
  const { rows } = await sql<{ partnerId: string }>`
    select distinct p.partner_id from payouts p join payout_batches b on b.id = p.batch_id
     where b.rail = ${rail} and b.message_id = ${reference} limit 2`.execute(db)
  return rows.length === 1 ? (rows[0]?.partnerId ?? null) : null
}
