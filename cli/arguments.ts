import { InvalidArgumentError } from 'commander'
import { exampleId, type IdKind, isIdOf } from '../src/kernel/ids.ts'
import { amountMax, type Currency, currencies } from '../src/kernel/money.ts'
import { type Day, isDay } from '../src/kernel/time.ts'

export { whole } from './whole.ts'

/** Parses an amount in minor units. */
export function minorUnits(text: string): bigint {
  // JSON cannot hold a larger amount exactly.
  if (!/^[0-9]{1,16}$/.test(text) || BigInt(text) > BigInt(amountMax))
    throw new InvalidArgumentError(`Use a whole number of minor units up to ${amountMax}, for example 1000 for 10.00.`)
  return BigInt(text)
}

/** Parses a display name: one line, not empty, no longer than its database column. */
export function name({ lengthMax }: { lengthMax: number }): (text: string) => string {
  return text => {
    // Counts characters as PostgreSQL does; JavaScript's `length` counts some as two.
    // Files lose leading and trailing spaces, so a tier name with them would never match.
    if (text !== text.trim() || text === '' || [...text].length > lengthMax || /\p{Cc}/u.test(text)) {
      throw new InvalidArgumentError(
        `Use one line of 1 to ${lengthMax} characters, without leading or trailing spaces.`,
      )
    }
    return text
  }
}

export function currency(text: string): Currency {
  const known = currencies.find(code => code === text)
  if (known === undefined) throw new InvalidArgumentError('Use an ISO 4217 currency code, for example GBP.')
  return known
}

/** Parses an id of this kind. */
export function id(kind: IdKind): (text: string) => string {
  return text => {
    if (!isIdOf(kind, text)) throw new InvalidArgumentError(`Use an id such as ${exampleId(kind)}.`)
    return text
  }
}

/** Parses a calendar day, '2026-03-31'. */
export function day(text: string): Day {
  if (!isDay(text)) throw new InvalidArgumentError('Use a date, for example 2026-03-31.')
  return text
}

/** Parses a month, '2026-03'. */
export function month(text: string): string {
  if (!/^20[0-9]{2}-(0[1-9]|1[0-2])$/.test(text)) throw new InvalidArgumentError('Use a month such as 2026-03.')
  return text
}
