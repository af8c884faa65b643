import { type Columns, sql, type Tx } from '../../database/database.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import type { BankFileHead, BankRecord, PaymentState } from '../formats/bank-files.ts'
import { type Kept, keepRecords } from './bank-records.ts'
import * as batches from './batches.ts'
import { type Booked, isAfterReturn, isBookedAnew, isReportedAgain, listBooked } from './bookings.ts'
import { byReference, hasReference, type NamedPayments } from './by-reference.ts'
import * as exceptions from './exceptions.ts'
import { type KnownPayout, type Match, match } from './matching.ts'
import { gravestOf, isAboutPayee, reasonInWords, restrictionOf } from './reasons.ts'
import { type Context, fingerprintOf, type Keyed } from './record-keys.ts'
import { applyRules } from './rules.ts'

export type PaymentRecord = Keyed<Extract<BankRecord, { type: 'payment' }>>

type PayoutRow = KnownPayout &
  Columns<'payouts', 'reference' | 'partnerId' | 'withdrawalId' | 'batchId'> & {
    /** Its batch, if this is the first answer to it. */
    firstAnswered: string | null
    /** Its batch, if the bank has not shown yet that it took a copy of the file. */
    untaken: string | null
  }

/** Applies what a message says about single payments. */
export async function answerPayments(
  tx: Tx,
  context: Context,
  { head, records }: { head: BankFileHead; records: PaymentRecord[] },
): Promise<void> {
  const { rail, fileId, now } = context
  const rows: PayoutRow[] = []
  for (const isNamed of await byReference(
    tx,
    records.map(({ reference }) => reference),
  ))
    rows.push(...(await lockPayouts(tx, { rail: rail.name, isNamed })))
  const payouts = new Map(rows.map(row => [row.reference, row]))
  const firstAnswered = new Set(rows.map(row => row.firstAnswered).filter(id => id !== null))
  await batches.recordAnswered(tx, { batchIds: [...firstAnswered], now })
  const bookings = await bookingsOf(tx, { rail: rail.name, records })
  const outstanding = await countDuplicates(tx, { rail: rail.name, records })
  const kept: Kept[] = []
  const changed = new Map<string, { outcome: FinalOutcome; code: string | null; reason: string | null }>()
  const opened: exceptions.NewException[] = []
  const taken = new Set<string>()
  for (const record of records) {
    const { reference, line, amount } = record
    const reasonCode = gravestOf(record.reasonCodes)
    const payout = payouts.get(reference)
    const isRejection = record.state === 'failed' && context.rejected.has(payout?.batchId ?? '')
    if (payout?.untaken && !isRejection) taken.add(payout.untaken)
    const answer = match(payout, record)
    // Decided with the whole batch.
    const isOfWhole = isRejection && !payout?.isRemoved && !isAboutPayee(record) && !isMismatch(answer)
    const found: Match = isOfWhole ? { result: 'known' } : answer
    const booked = bookedOf(record, { head, payout })
    const matched = booked === null ? found : matchBooking(found, { payout, booked, bookings, record, outstanding })
    if (booked !== null) bookings.set(reference, [...(bookings.get(reference) ?? []), booked])
    const reason = reasonInWords(reasonCode)
    if (matched.result === 'changed' && payout !== undefined) {
      // The next record about the same payment is matched against this one.
      payout.outcome = matched.outcome
      changed.set(reference, { outcome: matched.outcome, code: reasonCode, reason })
    }
    if (matched.result === 'exception') {
      const { kind } = matched
      if (kind === 'money_out') outstanding.set(reference, (outstanding.get(reference) ?? 0) + 1)
      if (kind === 'money_in') outstanding.set(reference, (outstanding.get(reference) ?? 0) - 1)
      const isBookedTwice = kind === 'money_in' || kind === 'money_out'
      const isMoney = isBookedTwice || kind === 'paid_after_give_back'
      opened.push({
        ...{ rail: rail.name, kind, reason: matched.reason, reference, reasonCode, payout },
        fingerprint:
          kind === 'paid_after_give_back' && booked === null
            ? acceptanceOf(reference, record.state)
            : fingerprintOf(head, record),
        file: { id: fileId, line },
        outcome: isBookedTwice || record.state === 'accepted' || record.state === 'pending' ? null : record.state,
        account: head.account,
        bookedOn: record.booking?.day ?? null,
        bankText: record.booking?.texts.join(' ') || null,
        amount:
          booked !== null && (isMoney || amount === null) ? { amount: booked.amount, currency: rail.currency } : amount,
      })
    }
    kept.push({ record, reference, outcome: matched.result === 'changed' ? matched.outcome : null, reason, booked })
  }
  await keepRecords(tx, context, { head, kept })
  const changes = [...changed]
  const changedReferences = changes.map(([reference]) => reference)
  for (const isNamed of changes.length === 0 ? [] : await byReference(tx, changedReferences))
    await sql`
      update payouts p set outcome = c.outcome, reason_code = c.code, reason = c.reason, restriction = c.restriction
        from unnest(${changedReferences}::text[], ${changes.map(([, { outcome }]) => outcome)}::text[],
                    ${changes.map(([, { code }]) => code)}::text[], ${changes.map(([, { reason }]) => reason)}::text[],
                    ${changes.map(([, { outcome, code }]) => (outcome === 'paid' ? null : restrictionOf(code)))}::text[])
          as c (reference, outcome, code, reason, restriction)
       where p.reference = c.reference and ${isNamed('p')}`.execute(tx)
  await exceptions.open(tx, opened, now)
  await applyRules(tx, { rail: rail.name, fingerprints: opened.map(({ fingerprint }) => fingerprint), now })
  await batches.recordSignOfCopy(tx, { batchIds: [...taken], now })
}

async function lockPayouts(tx: Tx, { rail, isNamed }: { rail: string; isNamed: NamedPayments }): Promise<PayoutRow[]> {
  const { rows } = await sql<PayoutRow>`
    select p.reference, p.partner_id, p.withdrawal_id, p.net_amount, p.currency, p.outcome,
           p.removed_at is not null as is_removed,
           coalesce(b.status in ('sent', 'acknowledged', 'settled', 'rejected') or b.sending_at is not null, false)
             or p.sent_at is not null as is_sent,
           p.batch_id, case when b.sending_at is not null and b.answered_at is null then b.id end as first_answered,
           case when b.sending_at is not null and b.copy_taken_at is null then b.id end as untaken
      from payouts p left join payout_batches b on b.id = p.batch_id
     where p.rail = ${rail} and ${isNamed('p')} order by p.reference for update of p`.execute(tx)
  return rows
}

/** Whether an answer is about another payment or sum. */
function isMismatch(answer: Match): boolean {
  return answer.result === 'exception' && (answer.kind === 'amount' || answer.kind === 'unmatched')
}

/** The earlier bookings of the payments that some records say are booked, by reference. */
async function bookingsOf(
  tx: Tx,
  { rail, records }: { rail: string; records: PaymentRecord[] },
): Promise<Map<string, Booked[]>> {
  const references = records.flatMap(({ booking, reference }) => (booking === undefined ? [] : [reference]))
  if (references.length === 0) return new Map()
  return Map.groupBy(await listBooked(tx, { rail, references }), ({ reference }) => reference)
}

/** The booking that a record tells of, with the amount that the bank booked; null if it tells of none. */
function bookedOf(
  { reference, state, booking, amount: said }: PaymentRecord,
  { head: { message, messageId, account }, payout }: { head: BankFileHead; payout: PayoutRow | undefined },
): Booked | null {
  const amount = said?.amount ?? payout?.netAmount
  if (booking === undefined || amount === undefined) return null
  const { day, bankReference } = booking
  return { reference, message, messageId, account, day, bankReference, amount: state === 'returned' ? amount : -amount }
}

type BookingToMatch = {
  payout: PayoutRow | undefined
  booked: Booked
  bookings: Map<string, Booked[]>
  record: PaymentRecord
  outstanding: ReadonlyMap<string, number>
}

/** Decides what a booking of a payment means, given its earlier bookings. */
function matchBooking(found: Match, { payout, booked, bookings, record, outstanding }: BookingToMatch): Match {
  const known = bookings.get(booked.reference) ?? []
  if (found.result === 'changed') {
    if (found.outcome !== 'returned') return found
    // An earlier message reported the credit, which was left to an operator.
    if (isReportedAgain(booked, known)) return { result: 'known' }
    return (outstanding.get(booked.reference) ?? 0) > 0 ? duplicateReturned : found
  }
  // The statement of the day repeats the advice.
  if (found.result === 'exception') return isReportedAgain(booked, known) ? { result: 'known' } : found
  if (payout?.outcome === 'returned' && booked.amount < 0n && !isReportedAgain(booked, known)) {
    const isReversal = record.booking?.isReversal ?? false
    if (known.length === 0) return { result: 'exception', kind: 'paid_after_give_back', reason: debitedAfterGiveBack }
    if (isReversal || isAfterReturn(booked, known)) return paidAfterReturn(isReversal)
  }
  // The money comes back after it was given back, and the operator bears the debit.
  const isCredited = known.some(({ amount }) => amount > 0n)
  if (
    payout?.outcome === 'returned' &&
    booked.amount > 0n &&
    !isCredited &&
    (outstanding.get(booked.reference) ?? 0) > 0
  )
    return bookedTwice(booked)
  return isBookedAnew(booked, bookings) ? bookedTwice(booked) : found
}

/**
 * Counts the surplus debits of some payments, or of their batches, for which no credit has been left to an operator: the next credit may
 * give such a debit back. A debit that the operator bears counts, and a debit that was attached to another payment does not.
 */
async function countDuplicates(
  tx: Tx,
  { rail, records }: { rail: string; records: PaymentRecord[] },
): Promise<Map<string, number>> {
  const references = records.flatMap(({ booking, state, reference }) =>
    booking !== undefined && state === 'returned' ? [reference] : [],
  )
  if (references.length === 0) return new Map()
  const { rows } = await sql<{ reference: string; count: number }>`
    select p.reference, sum(case e.kind when 'money_in' then -1 else 1 end)::integer as count
      from payouts p left join payout_batches b on b.id = p.batch_id
      join payout_exceptions e on e.rail = p.rail and (e.reference = p.reference or (e.reference = b.message_id and e.kind <> 'money_in'))
     where p.rail = ${rail} and ${hasReference(references, { of: 'p' })}
       and (e.kind in ('money_out', 'money_in') or (e.kind = 'paid_after_give_back' and e.decision = 'write_off'))
       and e.decision is distinct from 'attach' and e.decision is distinct from 'applied'
     group by p.reference`.execute(tx)
  return new Map(rows.map(({ reference, count }) => [reference, count]))
}

const debitedAfterGiveBack =
  'The bank debited the payment, but its money was given back to the member; find out whether the payee has it'

const duplicateReturned: Match = {
  result: 'exception',
  kind: 'money_in',
  reason:
    'The bank debited the payment twice, and gives one debit back: the second one, or the payment itself. Ask the bank; attach this only if the payee has not kept the money',
}

function paidAfterReturn(isReversal: boolean): Match {
  const said = isReversal
    ? 'The bank reversed the return of the payment'
    : 'The bank debited the payment after its return'
  return {
    result: 'exception',
    kind: 'paid_after_give_back',
    reason: `${said}, but its money was given back to the member; find out whether the payee has it`,
  }
}

/** Banks accept a payment in several messages, which share one exception. */
function acceptanceOf(reference: string, state: PaymentState): string {
  return `given back ${reference} ${state}`
}

function bookedTwice({ amount }: Booked): Extract<Match, { result: 'exception' }> {
  return amount < 0n
    ? {
        result: 'exception',
        kind: 'money_out',
        reason: 'The bank debited the payment a second time; ask the bank to refund the second debit',
      }
    : { result: 'exception', kind: 'money_in', reason: 'The bank returned the payment a second time; ask it why' }
}
