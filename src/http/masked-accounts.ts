import type { AccountDetails } from '../bank-accounts/schema.ts'

// Users of the console see bank accounts masked; they are revealed one by one, for a reason that is recorded. The masking is here,
// at the end of every answer, so that no operation can forget it.

/** An account with only the last four characters of its number. */
export function maskAccount(account: AccountDetails): AccountDetails {
  if ('iban' in account) return { ...account, iban: masked(account.iban, visibleMax) }
  return { ...account, sortCode: masked(account.sortCode, 0), accountNumber: masked(account.accountNumber, visibleMax) }
}

/** Masks every account in the JSON of an answer. */
export function maskAccountsIn(json: string): string {
  if (!/"(accountNumber|iban)"/.test(json)) return json
  return JSON.stringify(
    JSON.parse(json, (name, value) => {
      const visible = visibleOf[name]
      return visible === undefined || typeof value !== 'string' ? value : masked(value, visible)
    }),
  )
}

const visibleMax = 4
const visibleOf: { readonly [name: string]: number } = { accountNumber: visibleMax, iban: visibleMax, sortCode: 0 }

// A file with such cells cannot be imported by mistake: an account has no dots.
function masked(text: string, visible: number): string {
  return '•'.repeat(Math.max(0, text.length - visible)) + (visible === 0 ? '' : text.slice(-visible))
}
