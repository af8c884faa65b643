import type { BankAccount } from '../../bank-accounts/rules.ts'
import type { Currency } from '../../kernel/money.ts'
import type { Day } from '../../kernel/time.ts'
import type { BatchLevel, PaymentState } from './bank-files.ts'

// The answers that a sandbox's bank writes about a batch. A live installation's bank writes its own files.

/** The bank's answer about one payment. Only `failed` and `returned` have a reason. */
export type Answer = {
  reference: string
  amount: bigint
  state: PaymentState
  reasonCode: string | null
  reasonText: string | null
}

/** The bank's answer about a whole batch. Only `rejected` has a reason. */
type BatchAnswer = {
  level: BatchLevel
  state: 'accepted' | 'pending' | 'rejected'
  reasonCode: string | null
  reasonText: string | null
}

export type AnswersToWrite = {
  /** The bank's own id for this message. */
  messageId: string
  createdAt: Date
  bookedOn: Day
  /** The message id of the answered batch. */
  batchMessageId: string
  currency: Currency
  /** The account that the batch was paid from. */
  account: BankAccount
  batch?: BatchAnswer | undefined
  answers: AsyncIterable<Answer>
}

/** @throws Error for an answer that the format cannot express */
export type WriteAnswers = (answers: AnswersToWrite) => AsyncGenerator<string>

type AnswerRules = {
  /** The answers that the format can give about a payment. */
  states: readonly PaymentState[]
  reasonCharsMax: number
  /** Whether the format can answer for a whole batch. */
  answersBatches: boolean
  /** The default code of a payment that failed or was returned. */
  defaultReason: string
  mediaType: 'text/xml' | 'text/csv'
  extension: string
}

/** The kinds of files that answer a batch. */
export const answerFormats = {
  // A return comes days later, as a booking.
  'pain.002': {
    states: ['accepted', 'pending', 'paid', 'failed'],
    reasonCharsMax: 4,
    answersBatches: true,
    defaultReason: 'AC04',
    mediaType: 'text/xml',
    extension: 'xml',
  },
  // Nothing is booked for other payments.
  'camt.054': {
    states: ['paid', 'returned'],
    reasonCharsMax: 4,
    answersBatches: false,
    defaultReason: 'BE01',
    mediaType: 'text/xml',
    extension: 'xml',
  },
  // Bacs does not confirm payments.
  'arucs-csv': {
    states: ['returned'],
    reasonCharsMax: 1,
    answersBatches: false,
    defaultReason: 'B',
    mediaType: 'text/csv',
    extension: 'csv',
  },
} as const satisfies Record<string, AnswerRules>
export type AnswerFormat = keyof typeof answerFormats
