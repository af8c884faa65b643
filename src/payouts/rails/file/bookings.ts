import { type Reader, sql } from '../../../database/database.ts'
import type { Day } from '../../../time.ts'

// Banks report a booking several times, in an intraday notice (camt.054) and in the statement of the day (camt.053), but can also
// book the same thing twice. These rules tell the two apart.

/** A booking as a message of the bank reports it. `amount` is positive if money arrived. */
export type Booked = {
  /** What it is about: a payment's reference, a batch's message id, or the reference of other money. */
  reference: string
  messageId: string
  /** As the bank names it; null if the file does not. */
  account: string | null
  day: Day
  amount: bigint
  /** The bank's own, the same in all its messages; null if it gives none. */
  bankReference: string | null
}

/** The bookings of some references that earlier records have reported, in order. @param day only those of this day */
export async function listBooked(
  db: Reader,
  { rail, references, day }: { rail: string; references: string[]; day?: Day },
): Promise<Booked[]> {
  const { rows } = await sql<Booked>`
    select reference, message_id, account, booked_on as day, amount, bank_reference from bank_records
     where rail = ${rail} and reference = any(${references}::text[]) and booked_on is not null
           ${day === undefined ? sql`` : sql`and booked_on = ${day}::date`}
     order by sequence`.execute(db)
  return rows
}

/**
 * Whether another message has reported this booking. Bookings of one message are never the same. Without references of the
 * bank, the first of a day in one message is the first in another, and so on.
 * @param known about the same reference, in order, with those of the same message
 */
export function isReportedAgain(booked: Booked, known: Booked[]): boolean {
  const alike = known.filter(
    each =>
      each.day === booked.day &&
      each.amount === booked.amount &&
      (each.account === null || booked.account === null || each.account === booked.account),
  )
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
