import type { BankAccount } from '../../bank-accounts/rules.ts'
import type { Currency, Money } from '../../kernel/money.ts'
import type { Day } from '../../kernel/time.ts'

/** Whose account a batch is paid from. */
export type Debtor = { name: string; account: BankAccount; bic?: string | undefined }

/** One payment of a batch. `reference` is unique over all payouts: `MM` and 14 characters of [A-Z2-7]. */
export type PaymentOrder = {
  reference: string
  amount: bigint
  account: BankAccount
  /** The text that the payee reads beside the reference, if the format has room for it. */
  remittanceText?: string | undefined
}

/** A batch as a format writes it. */
export type BatchToWrite = {
  /** Unique over all batches, at most 35 characters of [A-Z0-9]: the bank's answers name it. */
  messageId: string
  createdAt: Date
  /** SEPA: when the bank executes it. Bacs: the processing day. */
  valueDate: Day
  currency: Currency
  debtor: Debtor
  paymentCount: number
  /** Sum of the amounts, in minor units. */
  controlTotal: bigint
  isInstant: boolean
  /** In the order in which they are written. Read once, so a batch of 100,000 is never in memory whole. */
  payments: AsyncIterable<PaymentOrder>
}

/** The state of one of our payments at the bank, as a bank file reports it. */
export type PaymentState = 'accepted' | 'pending' | 'paid' | 'failed' | 'returned'

/** The levels of pain.002 that are about a whole batch. */
export const batchLevels = ['group', 'payment-information'] as const
export type BatchLevel = (typeof batchLevels)[number]

/** A movement of money on the account, with the bank's other details about it. Flags and words explain the movement; they prove nothing. */
export type Booking = {
  day: Day
  /** The bank's own reference, the same in all its messages; null if it gives none. */
  bankReference: string | null
  /** The bank reverses an earlier booking (`RvslInd`). */
  isReversal: boolean
  /** The bank calls the movement a return (`RRTN` or `RtrInf`). */
  isReturn: boolean
  /** The bank's words, each text whole: the remittance (`Ustrd`), then `AddtlTxInf` and `AddtlNtryInf`. */
  texts: readonly string[]
  /** The charge that the bank kept or took besides, positive; null if the bank names no charge in the currency of the entry. */
  charges: bigint | null
}

/** The reasons for a bank's answer. */
export type GivenReasons = {
  /** Every code of the answer, verbatim and in order, except the codes of a name check. */
  reasonCodes: readonly string[]
  /** All texts of the answer, joined; null if there are none. They may hold names. */
  reasonText: string | null
}

/** One statement of a bank file, in the order of the file. `line` is where it begins, from 1. */
export type BankRecord =
  /** About a whole batch. */
  | ({
      type: 'batch'
      line: number
      messageId: string
      level: BatchLevel
      state: 'acknowledged' | 'partly' | 'pending' | 'rejected'
    } & GivenReasons)
  /** Of one payment. `entryReference` is unique within the bank's message, where the format has such a reference. */
  | ({
      type: 'payment'
      line: number
      reference: string
      state: PaymentState
      amount: Money | null
      entryReference: string | null
      /** Only for a booked entry of the account, which moves money; a status does not. */
      booking?: Booking
    } & GivenReasons)
  /** Verification of payee: a name check, which says nothing about the payment itself. */
  | { type: 'name-check'; line: number; messageId: string; reference: string | null; code: string }
  /** A booked entry of the account that is not one of our payments: money that arrived, a batch booked as a whole, a charge. */
  | ({
      type: 'entry'
      line: number
      entryReference: string | null
      /** Positive if money arrived. */
      amount: Money
      booking: Booking
      /** The sender's end-to-end reference, or the message id of a batch that was booked as a whole. */
      reference: string | null
    } & GivenReasons)
  /** A whole account statement, after its entries: its booked balances and its numbers, as far as the bank gives them. */
  | {
      type: 'statement'
      line: number
      /** The day at whose end the closing balance stands. */
      day: Day
      /** The first day that the statement covers completely; null unless it has a closing balance. */
      coversFrom: Day | null
      opening: Money | null
      closing: Money | null
      numbers: { electronic: bigint | null; legal: bigint | null }
    }

/** The messages of banks: a status report, an interim report, a statement, a notification of entries, and returned Bacs credits. */
export type BankMessage = 'pain.002' | 'camt.052' | 'camt.053' | 'camt.054' | 'ARUCS'

/** The head of a bank file, known before its first record. `account` is null where the format does not name it. */
export type BankFileHead = {
  message: BankMessage
  messageId: string
  createdAt: Date | null
  account: string | null
  /** The currency of the account, if the bank names it. */
  currency?: string | null
  /** Only in an archive: the name of the file there. */
  file?: string
}

/** A bank file that was refused whole. `line` counts from 1; null if the fault is not in a line. */
export class BankFileProblem extends Error {
  readonly line: number | null

  constructor(message: string, { line = null }: { line?: number | null } = {}) {
    super(line === null ? message : `Line ${line}: ${message}`)
    this.line = line
  }
}

/** Limits on a file that a bank, or an attacker in its name, sends. */
export type ReadLimits = { bytesMax: number; recordsMax: number }

/**
 * Reads a bank file as a stream; memory stays flat. The caller must not act on a record before the reader has ended: a
 * file that turns out to be broken is refused whole.
 * @throws BankFileProblem
 */
export type ReadBankFile = (
  bytes: AsyncIterable<Uint8Array>,
  limits: ReadLimits,
) => AsyncGenerator<{ type: 'head'; head: BankFileHead } | BankRecord>

/**
 * Writes a batch as the bank takes it.
 * @throws Error if the batch does not fit the format, or its payments do not add up to its control total: nothing of the file may be sent
 *   then
 */
export type WriteBatch = (batch: BatchToWrite) => AsyncGenerator<string>
