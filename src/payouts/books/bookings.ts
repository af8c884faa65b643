import { type Reader, sql } from '../../database/database.ts'
import { type Day, daysBetween } from '../../kernel/time.ts'
import type { BankMessage } from '../formats/bank-files.ts'

// Banks report a booking several times, in an intraday advice (camt.054) and in the statement of the day (camt.053), but can also
// book the same thing twice. These rules tell the two apart.

// The most days between an advice and a statement that book the same money: a weekend with holidays on both sides.
const daysApartMax = 5

/** A booking as a message of the bank reports it. `amount` is positive if money arrived. */
export type Booked = {
  /** The subject of the booking: a payment's reference, a batch's message id, or the reference of other money. */
  reference: string
  message: BankMessage
  messageId: string
  /** The account as the bank names it; null if the file names none. */
  account: string | null
  day: Day
  amount: bigint
  /** The bank's own reference, the same in all its messages; null if the bank gives none. */
  bankReference: string | null
}

/** The bookings of some references that earlier records have reported, in order. */
export async function listBooked(
  db: Reader,
  { rail, references }: { rail: string; references: string[] },
): Promise<Booked[]> {
  const { rows } = await sql<Booked>`
    select reference, message, message_id, account, booked_on as day, amount, bank_reference from bank_records
     where rail = ${rail} and reference = any(${references}::text[]) and booked_on is not null
     order by sequence`.execute(db)
  return rows
}

/** Loads the earlier bookings that share the bank's references with some new ones. */
export class AlikeBookings {
  readonly #alike: Map<string, Booked[]>
  readonly #onAnyDay: Map<string, Booked[]>

  private constructor(rows: Booked[]) {
    this.#alike = Map.groupBy(rows, keyOf)
    this.#onAnyDay = Map.groupBy(rows, keyOnAnyDay)
  }

  static async read(
    db: Reader,
    { rail, bookings }: { rail: string; bookings: readonly Booked[] },
  ): Promise<AlikeBookings> {
    const wanted = bookings.filter(({ bankReference }) => bankReference !== null)
    if (wanted.length === 0) return new AlikeBookings([])
    const alike = sql`r.rail = ${rail} and r.amount = w.amount and r.bank_reference = w.bank_reference`
    // A bank can give thousands of bookings of one day the same reference. Of the bookings with other sender references, only as many are
    // read as the rules need: one per message for a booking without a sender reference, otherwise one in total.
    const { rows } = await sql<Booked>`
      with wanted as (
        select distinct day, amount, bank_reference, reference
          from unnest(${wanted.map(({ day }) => day)}::date[], ${wanted.map(({ amount }) => amount)}::bigint[],
                      ${wanted.map(({ bankReference }) => bankReference)}::text[],
                      ${wanted.map(({ reference }) => reference)}::text[]) as w (day, amount, bank_reference, reference)
      )
      select r.reference, r.message, r.message_id, r.account, r.booked_on as day, w.amount, w.bank_reference
        from wanted w cross join lateral (
          select distinct r.reference, r.message, r.message_id, r.account, r.booked_on from bank_records r
           where ${alike} and r.reference = w.reference
             and r.booked_on between w.day - ${daysApartMax}::integer and w.day + ${daysApartMax}::integer
        ) r
      union all
      select r.reference, r.message, r.message_id, r.account, w.day, w.amount, w.bank_reference
        from wanted w cross join lateral (
          select distinct r.reference, r.message, r.message_id, r.account from bank_records r
           where ${alike} and r.reference = '' and r.booked_on = w.day
        ) r
       where w.reference <> ''
      union all
      select r.reference, r.message, r.message_id, r.account, w.day, w.amount, w.bank_reference
        from wanted w cross join lateral (
          select r.reference, r.message, r.message_id, r.account from bank_records r
           where ${alike} and r.reference > '' and r.booked_on = w.day
           order by r.reference limit 1
        ) r
       where w.reference <> ''
      union all
      select r.reference, r.message, r.message_id, r.account, w.day, w.amount, w.bank_reference
        from wanted w cross join lateral (
          select min(r.reference) as reference, r.message, r.message_id, r.account from bank_records r
           where ${alike} and r.reference > '' and r.booked_on = w.day
           group by r.message, r.message_id, r.account
        ) r
       where w.reference = ''`.execute(db)
    return new AlikeBookings(rows)
  }

  /** Adds a stored booking, so that the next bookings are compared with it. */
  add(booked: Booked): void {
    for (const [known, key] of [
      [this.#alike, keyOf(booked)],
      [this.#onAnyDay, keyOnAnyDay(booked)],
    ] as const)
      if (known.get(key)?.push(booked) === undefined) known.set(key, [booked])
  }

  /**
   * Whether another message has reported a booking under the same reference of the bank. One of the two may lack the sender's reference;
   * two different ones are two payments, even if the bank repeats its own reference.
   */
  isIdentified(booked: Booked): boolean {
    const { reference, bankReference } = booked
    if (bankReference === null) return false
    const rows = this.#alike.get(keyOf(booked)) ?? []
    const named = rows.filter(each => each.reference !== '')
    const isComparable = reference !== '' && named.length > 0
    return (
      isReportedAgain(booked, isComparable ? named.filter(each => each.reference === reference) : rows) ||
      isReportedOnOtherDay(booked, this.#onAnyDay.get(keyOnAnyDay(booked)) ?? [])
    )
  }
}

function keyOnAnyDay({ reference, amount, bankReference }: Booked): string {
  return `${amount} ${bankReference} ${reference}`
}

function keyOf({ day, amount, bankReference }: Booked): string {
  return `${day} ${amount} ${bankReference}`
}

/**
 * Whether another message has reported money of the same account, day and amount that is left to an operator. Both may be the same money,
 * whatever their references: an advice and a statement do not always give the same ones.
 */
export async function isUndecidedElsewhere(
  db: Reader,
  { rail, booked: { messageId, account, day, amount } }: { rail: string; booked: Booked },
): Promise<boolean> {
  // Money that is explained in one message is explained in all messages that give the same reference.
  const { rows } = await sql<{ account: string | null }>`
    select distinct r.account from bank_records r
     where r.rail = ${rail} and r.booked_on = ${day}::date and r.amount = ${amount} and r.message_id <> ${messageId}
       and r.movement_id is null and r.outcome is null
       and not exists (select from bank_records e
                        where e.rail = r.rail and e.booked_on = r.booked_on and e.amount = r.amount
                          and e.bank_reference = r.bank_reference and e.movement_id is not null)`.execute(db)
  return rows.some(each => canBeSameAccount(each.account, account))
}

/** Whether two names of an account, as the bank writes them, can mean the same account. */
function canBeSameAccount(one: string | null, other: string | null): boolean {
  const compact = (account: string) => account.replaceAll(/[ -]/g, '').toUpperCase()
  return one === null || other === null || compact(one) === compact(other)
}

/**
 * Whether another message has reported this booking. Bookings of one message are never the same. Without bank references, the first booking
 * of a day in one message is the first in another, and so on. With the same bank reference, an advice and a statement may name different
 * days.
 * @param known the bookings of the same reference, in order, including those of the same message
 */
export function isReportedAgain(booked: Booked, known: Booked[]): boolean {
  if (isReportedOnOtherDay(booked, known)) return true
  let alike = known.filter(
    each => each.day === booked.day && each.amount === booked.amount && canBeSameAccount(each.account, booked.account),
  )
  if (isSaidOfAnother(booked, alike)) alike = alike.filter(({ messageId }) => messageId !== saidByHand)
  const place = alike.filter(each => each.messageId === booked.messageId).length
  const ofOthers = Map.groupBy(
    alike.filter(each => each.messageId !== booked.messageId),
    each => each.messageId,
  )
  return [...ofOthers.values()].some(others =>
    others.some((other, index) =>
      booked.bankReference === null || other.bankReference === null
        ? index === place
        : other.bankReference === booked.bankReference,
    ),
  )
}

/** The message id of bookings that an operator has recorded, not a message of the bank. */
const saidByHand = 'operator'

/** Whether other bookings of the bank account for everything that operators recorded by hand: each explains one record. */
function isSaidOfAnother({ bankReference }: Booked, alike: Booked[]): boolean {
  if (bankReference === null) return false
  const others = alike.flatMap(each => (each.messageId === saidByHand ? [] : (each.bankReference ?? [])))
  const said = alike.filter(each => each.messageId === saidByHand)
  return new Set(others.filter(each => each !== bankReference)).size >= said.length
}

/**
 * Whether an advice has reported the booking of a statement, or vice versa, on another day within five. A second statement (or advice) of
 * that booking is another booking.
 */
function isReportedOnOtherDay(booked: Booked, known: Booked[]): boolean {
  const { reference, message, account, day, amount, bankReference } = booked
  if (bankReference === null || account === null || (message !== 'camt.053' && message !== 'camt.054')) return false
  const counterpart = message === 'camt.053' ? 'camt.054' : 'camt.053'
  const alike = known.filter(
    each =>
      each.bankReference === bankReference &&
      each.reference === reference &&
      each.amount === amount &&
      each.account !== null &&
      canBeSameAccount(each.account, account) &&
      each.day !== day &&
      Math.abs(daysBetween(each.day, day)) <= daysApartMax,
  )
  return alike.some(each => each.message === counterpart) && !alike.some(each => each.message === message)
}

/** Whether a booked payment is booked once more. Before its first booking, only a status reported it. */
export function isBookedAnew(booked: Booked, bookings: Map<string, Booked[]>): boolean {
  // An entry of another amount has an exception, and does not book the payment.
  const known = (bookings.get(booked.reference) ?? []).filter(({ amount }) => amount === booked.amount)
  return known.length > 0 && !isReportedAgain(booked, known)
}

/**
 * Whether a debit of a payment is later than its return. A debit of the same day or before is the payment itself, which the bank reports
 * late.
 * @param known the earlier bookings of the payment
 */
export function isAfterReturn({ day }: Booked, known: Booked[]): boolean {
  const returns = known.filter(({ amount }) => amount > 0n).map(each => each.day)
  return returns.length > 0 && returns.every(returnedOn => day > returnedOn)
}
