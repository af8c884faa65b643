import { isValidIBAN } from 'ibantools'
import type { Currency } from '../kernel/money.ts'
import { checkModulus } from './modulus.ts'

/** A UK account. `sortCode` is 6 digits and `accountNumber` 8, without hyphens and spaces. */
type UkAccount = { accountHolder: string; sortCode: string; accountNumber: string }
/** An account by IBAN: upper case, no spaces. */
type EuAccount = { accountHolder: string; iban: string }
export type BankAccount = UkAccount | EuAccount

/**
 * The result of checking an account number. `unknown` means that no check is published for its sort code. Such an account
 * is accepted, since it may well exist.
 */
export type AccountCheck = 'valid' | 'invalid' | 'unknown'

/** Normalises an account: removes hyphens and spaces, pads short account numbers, and upper-cases the IBAN. */
export function normalised(account: BankAccount): BankAccount {
  const accountHolder = account.accountHolder.trim()
  if ('iban' in account) return { accountHolder, iban: account.iban.replaceAll(' ', '').toUpperCase() }
  return {
    accountHolder,
    sortCode: account.sortCode.replace(/[ -]/g, ''),
    // Some banks issue numbers of 6 or 7 digits; payments need them padded with leading zeros.
    accountNumber: account.accountNumber.padStart(8, '0'),
  }
}

/** Checks a normalised account: modulus rules for the UK, length, structure and mod 97 for an IBAN. No bank has sort code 000000. */
export function check(account: BankAccount): AccountCheck {
  if ('iban' in account) return isValidIBAN(account.iban) ? 'valid' : 'invalid'
  return account.sortCode === '000000' ? 'invalid' : checkModulus(account)
}

/** Returns the last four characters: enough to recognise an account, not enough to use it. */
export function lastFour(account: BankAccount): string {
  return ('iban' in account ? account.iban : account.accountNumber).slice(-4)
}

/** Whether two normalised accounts are equal, including the holder's name. */
export function isSame(a: BankAccount, b: BankAccount): boolean {
  if (a.accountHolder !== b.accountHolder) return false
  if ('iban' in a) return 'iban' in b && a.iban === b.iban
  return !('iban' in b) && a.sortCode === b.sortCode && a.accountNumber === b.accountNumber
}

/** The columns of an account in a file; all null if there is no account. */
export type AccountColumns = {
  accountHolder: string | null
  sortCode: string | null
  accountNumber: string | null
  iban: string | null
}

export function toColumns(account: BankAccount | null): AccountColumns {
  return { accountHolder: null, sortCode: null, accountNumber: null, iban: null, ...account }
}

/**
 * Stands for the account of a past payment whose key was destroyed. It has the shape of an account of the currency, so that clients can
 * still read the response, but no bank has such an account: see `check`.
 */
export function erasedAccount(currency: Currency): BankAccount {
  const accountHolder = '(erased)'
  return currency === 'GBP'
    ? { accountHolder, sortCode: '000000', accountNumber: '00000000' }
    : { accountHolder, iban: `XX00${'0'.repeat(14)}` }
}
