import type { AccountDetails } from '../bank-accounts/schema.ts'

// Users of the console see bank accounts and dates of birth masked; they are revealed one by one, for a reason that is recorded. The masking is here,
// at the end of every answer, so that no operation can forget it.

/** Stands for a date of birth. */
const maskedDay = '••••-••-••'

/** An account with only the last four characters of its number. */
function maskAccount(account: AccountDetails): AccountDetails {
  if ('iban' in account) return { ...account, iban: masked(account.iban, visibleMax) }
  return { ...account, sortCode: masked(account.sortCode, 0), accountNumber: masked(account.accountNumber, visibleMax) }
}

/** A member's profile with the account and the date of birth masked. */
export function maskProfile<Profile extends { accountDetails: AccountDetails | null; dob: string | null }>(
  profile: Profile,
): Profile {
  const { accountDetails, dob } = profile
  return { ...profile, accountDetails: accountDetails && maskAccount(accountDetails), dob: dob && maskedDay }
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
