import { amountMax, type Currency, decimalsOf, fromDecimals } from '../kernel/money.ts'

/** The texts of a row's amount, by the columns of the file. If a file has both columns, the amounts must agree. */
export type AmountCells = { decimal?: { column: string; text: string }; minor?: string }

/**
 * Reads the amount of a row.
 * @returns in minor units, or a message that names the column
 */
export function readAmount({ decimal, minor }: AmountCells, currency: Currency): bigint | string {
  const inMajor = decimal === undefined ? undefined : (fromDecimals(decimal.text, currency) ?? null)
  if (inMajor === null)
    return decimal?.text === ''
      ? `${decimal.column}: is empty`
      : `${decimal?.column}: must be in ${currency}, such as ${exampleIn(currency)}, without a currency symbol or thousands separators`
  const inMinor = minor === undefined ? undefined : fromMinorUnits(minor)
  if (minor !== undefined && inMinor === undefined)
    return `amount_minor: must be a whole number of minor units, such as 12000`
  if (inMajor !== undefined && inMinor !== undefined && inMajor !== inMinor)
    return `${decimal?.column} is ${decimal?.text} and amount_minor is ${minor}, which is not the same amount; correct one, or delete its column`
  return inMajor ?? inMinor ?? 'the row has no amount'
}

function fromMinorUnits(text: string): bigint | undefined {
  if (!/^(0|-?[1-9][0-9]{0,15})$/.test(text)) return undefined
  const amount = BigInt(text)
  const largest = BigInt(amountMax)
  return amount <= largest && amount >= -largest ? amount : undefined
}

function exampleIn(currency: Currency): string {
  const decimals = decimalsOf.get(currency) ?? 0
  return decimals === 0 ? '120' : `120.${'0'.repeat(decimals)}`
}
