import type { BankAccount } from '../../bank-accounts/rules.ts'
import type { AnswerFormat, WriteAnswers } from './answers.ts'
import type { ReadBankFile, WriteBatch } from './bank-files.ts'

/** A kind of bank file, as a rail of files uses it. */
export type FileFormat = {
  /** What operators call it: 'pain.001.001.09', 'Standard 18'. */
  name: string
  /** Of the files that it writes, without the dot. */
  extension: string
  write: WriteBatch
  read: ReadBankFile
  /** Whether it reads what arrives on the account, not only what becomes of payments. */
  readsStatements: boolean
  /** Whether it reads which payments came back. Without that, no member has the money of a returned payment again. */
  readsReturns: boolean
  /** Writes files that `read` takes, for the bank of a sandbox. */
  answers?: Partial<Record<AnswerFormat, WriteAnswers>>
  /** Writes the name of a payee in the characters of the file, cut to its length. */
  payeeName(accountHolder: string): string
  /** Why no payment to an account can be written, as a member reads it; undefined if one can. */
  accountRefusal(account: BankAccount): string | undefined
  /** Why a payment cannot be written; undefined if it can. The money goes back to the member with this reason. */
  refusal(payment: { account: BankAccount; amount: bigint; isInstant: boolean }): string | undefined
  /** Of one file. */
  paymentsMax: number
  /** Largest sum of one file, in minor units. */
  totalMax: bigint
}
