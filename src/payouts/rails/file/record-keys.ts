import type { BankFileHead, BankRecord } from '../bank-files.ts'
import type { FileRailSettings } from './format.ts'

/** An import, as the functions for single records need it. */
export type Context = { rail: FileRailSettings; fileId: string; now: Date }

/** A record with the key that recognises it within its message, also when the bank sends the message again. */
export type Keyed<T extends BankRecord = BankRecord> = T & { key: string }

/**
 * Gives the records of one message their keys: the bank's reference of the entry or, without one, what the record says. Bookings
 * with equal keys are told apart by their order, because money moved twice. A line is no part of a key: a bank that sends a
 * message again may break its lines differently.
 */
export function keysOfMessage(): (record: BankRecord) => string {
  // Bounded by the number of records that a file may have.
  const bookings = new Map<string, number>()
  return record => {
    const key = contentKeyOf(record)
    if (!('booking' in record)) return key
    const place = (bookings.get(key) ?? 0) + 1
    bookings.set(key, place)
    return place === 1 ? key : `${key} #${place}`
  }
}

function contentKeyOf(record: BankRecord): string {
  switch (record.type) {
    case 'payment': {
      const { reference, state, amount, reasonCode } = record
      const entry = record.entryReference ?? `${amount?.amount ?? ''}${amount?.currency ?? ''} ${reasonCode ?? ''}`
      return `${entry} ${reference} ${state}`
    }
    case 'entry':
      return record.entryReference ?? `${record.reference ?? ''} ${record.amount.amount} ${record.booking.day}`
    case 'batch':
      return `${record.messageId} ${record.state} ${record.reasonCode ?? ''}`
    case 'name-check':
      return `${record.messageId} ${record.reference ?? ''} ${record.code}`
    case 'balance':
      return record.day
    default:
      return record satisfies never
  }
}

/** Recognises the exception of a record. */
export function fingerprintOf(head: BankFileHead, { key }: Keyed): string {
  return `${head.messageId} ${key}`
}
