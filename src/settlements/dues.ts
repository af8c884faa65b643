import { type Reader, sql, type Tx } from '../database/database.ts'
import * as fees from '../fees/fees.ts'
import { problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { type Currency, inWords, type Money } from '../kernel/money.ts'
import * as ledger from '../ledger/ledger.ts'
import type { OfCycle } from '../pay-cycles/pay-cycles.ts'

// If the bank reports money that arrives on the float's account, the money of a settlement is a receivable until it arrives:
// money that is still with the employer must not fund withdrawals.

/** The money of a settlement in one currency, in minor units. Negative amounts are owed to the employer. */
export type Due = OfCycle &
  Money & {
    received: bigint
    settledAt: Date
    /** When the last part of the money arrived. */
    receivedAt: Date | null
  }

const referencePrefix = 'MMS'
const referenceCharsOfId = 14

/**
 * The reference that the transfer for a settlement must carry: `MMS` and the last 14 characters of the pay cycle's id, in
 * capitals. Fits every payment scheme, including Bacs with its 18 characters, and is known before the cycle is settled.
 */
export function referenceOf(payCycleId: string): string {
  return `${referencePrefix}${payCycleId.slice(-referenceCharsOfId).toUpperCase()}`
}

// A bank's text has some hundred characters. If it has more references than this, they are not ours.
const referencesMax = 20
const spreadPrefix = new RegExp([...referencePrefix].join('[^A-Z0-9]*'), 'i')
const anyReference = new RegExp(`(?=${referencePrefix}([0-9A-Z]{${referenceCharsOfId}}))`, 'g')

/**
 * Finds references of settlements in some texts, whatever their spaces, punctuation and letter case. Returns them without the
 * prefix, as `listNamed` takes them.
 */
export function referencesIn(texts: readonly string[]): string[] {
  const found = texts.flatMap(text => {
    if (!spreadPrefix.test(text)) return []
    const plain = text.toUpperCase().replace(/[^A-Z0-9]/g, '')
    // At every position, because the characters before a reference can look like the beginning of one.
    return [...plain.matchAll(anyReference)].map(([, characters = '']) => characters)
  })
  return [...new Set(found)].slice(0, referencesMax)
}

/** Records that the money of a settlement is to arrive. The caller has posted it as a receivable. */
export async function record(
  tx: Tx,
  { partnerId, payCycleId, amount: money, now }: OfCycle & { amount: Money; now: Date },
): Promise<void> {
  await tx
    .insertInto('settlementDues')
    .values({ partnerId, payCycleId, ...money, settledAt: now })
    .execute()
}

/** Lists the amounts of a partner's settlements that have not arrived in full, oldest first. */
export async function listOpen(db: Reader, partnerId: string): Promise<Due[]> {
  return await select(db, sql`partner_id = ${partnerId} and received <> amount`)
}

/** Lists the amounts of a settlement, per currency, whether or not they have arrived. */
export async function listOfCycle(db: Reader, { partnerId, payCycleId }: OfCycle): Promise<Due[]> {
  return await select(db, sql`partner_id = ${partnerId} and pay_cycle_id = ${payCycleId}`)
}

async function select(db: Reader, where: ReturnType<typeof sql>): Promise<Due[]> {
  const { rows } = await sql<Due>`
    select partner_id, pay_cycle_id, currency, amount, received, settled_at, received_at
      from settlement_dues where ${where} order by settled_at, pay_cycle_id, currency`.execute(db)
  return rows
}

/** A pay cycle that a text names, and the amount that is still due for it in a currency. */
export type Named = OfCycle & {
  /** Without the prefix. */
  reference: string
  isSettled: boolean
  /** Null if nothing was to arrive in this currency. */
  due: bigint | null
  /** The amount that an operator recorded as received without a bank entry. */
  receivedByHand: bigint
}

/** Finds the pay cycles of all partners with these references. */
export async function listNamed(
  db: Reader,
  { references, currency }: { references: readonly string[]; currency: Currency },
): Promise<Named[]> {
  if (references.length === 0) return []
  const { rows } = await sql<Named>`
    select upper(right(c.id, 14)) as reference, c.partner_id, c.id as pay_cycle_id, c.settled_at is not null as is_settled,
           d.amount - d.received as due, coalesce(d.received_by_hand, 0)::bigint as received_by_hand
      from pay_cycles c
      left join settlement_dues d on d.partner_id = c.partner_id and d.pay_cycle_id = c.id and d.currency = ${currency}
     where upper(right(c.id, 14)) = any(${references}::text[])
     order by c.id`.execute(db)
  return rows
}

type Receipt = OfCycle & { amount: Money; isByHand: boolean; now: Date; movementId?: string }

/**
 * Books money that arrived for a settlement from the receivable to the float, and collects the fees that it pays; a negative
 * amount was paid to the employer.
 * @param isByHand whether an operator records the money, without a bank entry
 * @param movementId the movement of the transfer that this money is a part of
 * @throws Error with a message for the operator if the amount exceeds the amount due, or has the other sign
 */
export async function receive(
  tx: Tx,
  { partnerId, payCycleId, amount: money, isByHand, now, movementId = newId('floatMovement', now) }: Receipt,
): Promise<{ movementId: string }> {
  const { amount, currency } = money
  const { rows } = await sql<{ due: bigint }>`
    select amount - received as due from settlement_dues
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId} and currency = ${currency} for update`.execute(tx)
  const due = rows[0]?.due ?? 0n
  const isWithin = amount > 0n ? amount <= due : amount < 0n && amount >= due
  if (!isWithin) {
    throw problem(
      'Conflict',
      due === 0n
        ? `Nothing is due in ${currency} for the settlement of ${payCycleId}`
        : `For the settlement of ${payCycleId}, ${inWords({ amount: due, currency })} is due, so ${inWords(money)} does not fit`,
    )
  }
  const [debit, credit] =
    amount > 0n ? (['float', 'payroll_receivable'] as const) : (['payroll_receivable', 'float'] as const)
  const transfers = [{ debit, credit, amount: amount > 0n ? amount : -amount, currency, payCycleId }]
  await ledger.post(tx, { partnerId, movementId, reason: 'settlement.received', transfers, now })
  await sql`
    update settlement_dues
       set received = received + ${amount}, received_by_hand = received_by_hand + ${isByHand ? amount : 0n},
           received_at = case when received + ${amount} = amount then ${now}::timestamptz end
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId} and currency = ${currency}`.execute(tx)
  await fees.collect(tx, { partnerId, payCycleId, currency, movementId, now })
  return { movementId }
}

/** The part of a transfer that pays for one settlement, in minor units. */
export type Part = { payCycleId: string; amount: bigint }

/**
 * Books one transfer as the money of several settlements of a partner.
 * @throws Error as `receive`
 */
export async function receiveParts(
  tx: Tx,
  { partnerId, currency, parts, now }: { partnerId: string; currency: Currency; parts: Part[]; now: Date },
): Promise<{ movementId: string }> {
  const movementId = newId('floatMovement', now)
  // In a fixed order, because each part locks the amount due.
  for (const { payCycleId, amount } of parts.toSorted((a, b) => (a.payCycleId < b.payCycleId ? -1 : 1)))
    await receive(tx, { partnerId, payCycleId, amount: { amount, currency }, isByHand: false, movementId, now })
  return { movementId }
}
