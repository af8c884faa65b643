import { createHash } from 'node:crypto'
import type { BankFileHead, BankRecord } from '../formats/bank-files.ts'
import type { FileRailSettings } from './file-rail-settings.ts'

/** An import, as the functions for single records need it. */
export type Context = {
  rail: FileRailSettings
  fileId: string
  /** The ids of the batches that the file rejects as a whole. */
  rejected: ReadonlySet<string>
  now: Date
}

/** A record with the key that recognises it within its message, also when the bank sends the message again. */
export type Keyed<T extends BankRecord = BankRecord> = T & { key: string }

/**
 * Gives the records of a file their keys: the account and the bank's reference of the entry or, without one, what the record
 * says. Bookings of a message with equal keys are told apart by their order, because money moved twice. A line is not part of a
 * key: a bank that sends a message again may break its lines differently.
 */
export function keysOfRecords(): (head: BankFileHead, record: BankRecord) => string {
  // Bounded by the number of records that a file may have.
  const bookings = new Map<string, number>()
  return ({ messageId, account, file = '' }, record) => {
    const content = contentKeyOf(record)
    const key = indexable(account === null ? content : `${account} ${content}`)
    if (!('booking' in record)) return key
    const inMessage = `${file} ${messageId} ${key}`
    const place = (bookings.get(inMessage) ?? 0) + 1
    bookings.set(inMessage, place)
    return place === 1 ? key : `${key} #${place}`
  }
}

function contentKeyOf(record: BankRecord): string {
  switch (record.type) {
    case 'payment': {
      const { reference, state, amount, reasonCodes } = record
      const entry = record.entryReference ?? `${amount?.amount ?? ''}${amount?.currency ?? ''} ${reasonCodes.join(' ')}`
      return `${entry} ${reference} ${state}`
    }
    case 'entry':
      return record.entryReference ?? `${record.reference ?? ''} ${record.amount.amount} ${record.booking.day}`
    case 'batch':
      return `${record.messageId} ${record.level} ${record.state} ${record.reasonCodes.join(' ')}`
    case 'name-check':
      return `${record.messageId} ${record.reference ?? ''} ${record.code}`
    case 'statement': {
      const { electronic, legal } = record.numbers
      return [record.day, electronic ?? '', legal ?? ''].join(' ')
    }
    default:
      return record satisfies never
  }
}

// Characters of an indexed text: PostgreSQL refuses an index row of more than 2,704 bytes, and three such texts fit.
const indexedCharsMax = 200

/** A text of a bank as it is kept where an index has it: unchanged if it is short, otherwise its beginning and its checksum. */
function indexable(text: string): string {
  if (text.length <= indexedCharsMax) return text
  return `${text.slice(0, 100)}… SHA-256 ${createHash('sha256').update(text).digest('hex')}`
}

/** Shortens the texts of a bank file to fit the indexes. Texts of a real bank have at most 35 characters. */
export function toIndexable<T extends BankRecord | { type: 'head'; head: BankFileHead }>(part: T): T {
  const orNull = (text: string | null) => (text === null ? null : indexable(text))
  switch (part.type) {
    case 'head':
      return { ...part, head: { ...part.head, messageId: indexable(part.head.messageId) } }
    case 'batch':
    case 'name-check':
      return { ...part, messageId: indexable(part.messageId) }
    case 'payment':
    case 'entry': {
      const { reference, entryReference, booking } = part
      return {
        ...part,
        reference: reference === null ? null : indexable(reference),
        entryReference: orNull(entryReference),
        ...(booking === undefined ? {} : { booking: { ...booking, bankReference: orNull(booking.bankReference) } }),
      }
    }
    case 'statement':
      return part
    default:
      return part satisfies never
  }
}

/** Recognises the exception of a record. */
export function fingerprintOf(head: BankFileHead, { key }: Keyed): string {
  return `${head.messageId} ${key}`
}
