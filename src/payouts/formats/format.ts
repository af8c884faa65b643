import type { BankAccount } from '../../bank-accounts/rules.ts'
import type { AnswerFormat, WriteAnswers } from './answers.ts'
import type { ReadBankFile, WriteBatch } from './bank-files.ts'

/** A kind of bank file, as a rail uses it. */
export type FileFormat = {
  /** The name that operators know: 'pain.001.001.09', 'Standard 18'. */
  name: string
  /** The extension of the files that it writes, without the dot. */
  extension: string
  write: WriteBatch
  read: ReadBankFile
  /** Whether it reads money that arrives on the account, not only the outcomes of payments. */
  readsStatements: boolean
  /** Whether it reads which payments came back. Otherwise a member never gets back the money of a returned payment. */
  readsReturns: boolean
  /** Writes files that `read` accepts, for a sandbox's bank. */
  answers?: Partial<Record<AnswerFormat, WriteAnswers>>
  /** Writes the name of a payee in the characters of the file, cut to its length. */
  payeeName(accountHolder: string): string
  /** Why no payment to an account can be written, as a member reads it; undefined if a payment can be written. */
  accountRefusal(account: BankAccount): string | undefined
  /** Why a payment cannot be written; undefined if it can. The member gets the money back with this reason. */
  refusal(payment: { account: BankAccount; amount: bigint; isInstant: boolean }): string | undefined
  /** The most payments in one file. */
  paymentsMax: number
  /** The largest sum of one file, in minor units. */
  totalMax: bigint
}
