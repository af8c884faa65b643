import { isValidIBAN } from 'ibantools'

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
