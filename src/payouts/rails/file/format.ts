import type { BankAccount } from '../../../bank-accounts/rules.ts'
import type { Currency } from '../../../money.ts'
import type { Debtor, ReadBankFile, WriteBatch } from '../bank-files.ts'
import type { Schedule } from '../calendars/cut-off.ts'

/** A kind of bank file, as a rail of files uses it. */
export type FileFormat = {
  /** What operators call it: 'pain.001.001.09', 'Standard 18'. */
  name: string
  /** Of the files that it writes, without the dot. */
  extension: string
  write: WriteBatch
  read: ReadBankFile
  /** Why a payment cannot be written; undefined if it can. The money goes back to the member with this reason. */
  refusal(payment: { account: BankAccount; amount: bigint }): string | undefined
  /** Of one file. */
  paymentsMax: number
  /** Largest sum of one file, in minor units. */
  totalMax: bigint
  /**
   * Whether the bank confirms the payments that it has made. Without, a payment counts as paid once the payee should have it,
   * unless the bank has said otherwise.
   */
  confirms: boolean
}

/** Limits, in minor units, up to which a batch needs no person. */
type AutomaticApproval = { paymentMax: bigint; batchMax: bigint; dayMax: bigint }

/** How files reach the bank and come back. */
export type FileDelivery = {
  /** Delivers a file under its name, whole and once, however often it is called. */
  put(name: string, bytes: AsyncIterable<string | Uint8Array>): Promise<{ sha256: string }>
  list(now: Date): Promise<{ files: { name: string }[]; skipped: { name: string; reason: string }[] }>
  get(name: string): AsyncIterable<Uint8Array>
  archive(name: string, day: string): Promise<void>
  reject(name: string, report: string): Promise<void>
}

/** One configured rail of files. */
export type FileRailSettings = {
  name: string
  currency: Currency
  format: FileFormat
  /** Whose account pays, by partner; `default` pays for all others. */
  debtors: Readonly<Record<string, Debtor>> & { readonly default: Debtor }
  isInstant: boolean
  /** The bank's. */
  timeZone: string
  /** Plans the batch that payments join at an instant. */
  schedule(now: Date): Schedule
  /** Null: two people approve every batch. */
  automatic: AutomaticApproval | null
  /** Null: an operator exports and imports the files. */
  delivery: FileDelivery | null
}
