import { InvalidArgumentError } from 'commander'
import { amountMax, type Currency, currencies } from '../src/money.ts'

/** Reads a whole number within bounds, both included; anything else is wrong usage. */
export function whole({ min, max }: { min: number; max: number }): (text: string) => number {
  return text => {
    const value = Number(text)
    if (!/^[0-9]{1,16}$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
    }
    return value
  }
}

/** Reads an amount in minor units. */
export function minorUnits(text: string): bigint {
  // Beyond it JSON could not hold the amount exactly.
  if (!/^[0-9]{1,16}$/.test(text) || BigInt(text) > BigInt(amountMax))
    throw new InvalidArgumentError(
      `It must be a whole number of minor units, for example 1000 for 10.00, and at most ${amountMax}.`,
    )
  return BigInt(text)
}

/** Reads a name that people will see: one line, neither empty nor longer than the database takes. */
export function name({ lengthMax }: { lengthMax: number }): (text: string) => string {
  return text => {
    // PostgreSQL counts characters, JavaScript would count two for some of them.
    // And a blank at an end is lost in files, where a tier is named.
    if (text !== text.trim() || text === '' || [...text].length > lengthMax || /\p{Cc}/u.test(text)) {
      throw new InvalidArgumentError(`It must be one line of 1 to ${lengthMax} characters, without blanks at its ends.`)
    }
    return text
  }
}

export function currency(text: string): Currency {
  const known = currencies.find(code => code === text)
  if (known === undefined) throw new InvalidArgumentError('It must be an ISO 4217 code, for example GBP.')
  return known
}
