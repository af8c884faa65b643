import { InvalidArgumentError } from 'commander'

/** Parses a whole number; both bounds are inclusive. */
export function whole({ min, max }: { min: number; max: number }): (text: string) => number {
  return text => {
    const value = Number(text)
    if (!/^[0-9]{1,16}$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`Use a whole number from ${min} to ${max}.`)
    }
    return value
  }
}
