import type { AccountDetails } from '../bank-accounts/schema.ts'

// Users of the console see bank accounts and dates of birth masked; they are revealed one by one, for a reason that is recorded. The masking is here,
// at the end of every answer, so that no operation can forget it.

/** Stands for a date of birth. */
export const maskedDay = '••••-••-••'

/** An account with only the last four characters of its number. */
export function maskAccount(account: AccountDetails): AccountDetails {
  if ('iban' in account) return { ...account, iban: masked(account.iban, visibleMax) }
  return { ...account, sortCode: masked(account.sortCode, 0), accountNumber: masked(account.accountNumber, visibleMax) }
}

/** The cells of a row of a file that users see masked. */
const maskedCells = ['sortCode', 'accountNumber', 'iban', 'dob'] as const

/** A row of a file of members with its account and date of birth masked. */
export function maskRow<Row extends { readonly [Cell in (typeof maskedCells)[number]]: string | null }>(row: Row): Row {
  const cells = maskedCells.map(name => [name, maskedValue(name, row[name])])
  return { ...row, ...Object.fromEntries(cells) }
}

/** Masks every account and every date of birth in the JSON of an answer. */
export function maskAccountsIn(json: string): string {
  if (!/"(accountNumber|iban|dob)"/.test(json)) return json
  return JSON.stringify(JSON.parse(json, maskedValue))
}

function maskedValue(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (name === 'dob') return maskedDay
  const visible = visibleOf[name]
  return visible === undefined ? value : masked(value, visible)
}

const visibleMax = 4
const visibleOf: { readonly [name: string]: number } = { accountNumber: visibleMax, iban: visibleMax, sortCode: 0 }

// A file with such cells cannot be imported by mistake: an account has no dots.
function masked(text: string, visible: number): string {
  return '•'.repeat(Math.max(0, text.length - visible)) + (visible === 0 ? '' : text.slice(-visible))
}
