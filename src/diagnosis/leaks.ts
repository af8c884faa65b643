import { isValidIBAN } from 'ibantools'
import pg from 'pg'
import { type Settings, secretValues } from '../config.ts'
import { addressesOf } from '../database/hosts.ts'

const patterns = {
  email: /[\w.+-]+@[\w-]+\.[\w-]/,
  iban: /\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b/g,
  address: /\b[a-z][a-z0-9+.-]*:\/\/[^\s/"@]*:[^\s/"@]+@/,
}

/**
 * A text that must not leave the installation, but does: a fence behind the list of what may.
 * @param secrets the values of settings that must not be in the text
 * @returns what was found, without the value
 */
export function leakIn(text: string, secrets: readonly string[]): string | undefined {
  if (secrets.some(secret => text.includes(secret))) return 'the value of a setting'
  if (patterns.address.test(text)) return 'an address with a password'
  if (patterns.email.test(text)) return 'an e-mail address'
  if (text.match(patterns.iban)?.some(found => isValidIBAN(found))) return 'a bank account'
  return undefined
}

/** The values of settings, and the passwords in addresses, that must not be in a text. */
export function secretsOf(settings: Settings): string[] {
  return secretValues(settings)
    .flatMap(value => [value, ...passwordsIn(value)])
    .filter(isDistinct)
}

/** The passwords in an address, as they are written and as they are sent. */
function passwordsIn(value: string): string[] {
  const [, written = ''] = /^[a-z]+:\/\/[^/]*?:([^?#]*)@/.exec(value) ?? []
  return [written, unescaped(written), ...(/^postgres(ql)?:/.test(value) ? databasePasswordsIn(value) : [])]
}

// The driver also reads `?password=…` and PGPASSWORD.
function databasePasswordsIn(value: string): string[] {
  try {
    return addressesOf(value).map(address => String(new pg.Client(address).password ?? ''))
  } catch {
    return []
  }
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// `midmonth` or `postgres` as a password is also a word that the program writes: finding it says nothing.
function isDistinct(secret: string): boolean {
  return secret.length >= 8 && !/^[a-z_]{1,16}$/.test(secret)
}
