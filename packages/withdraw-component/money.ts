import { currenciesByDecimals } from '../sdk/src/generated/decimals.ts'

/** An amount in minor units. On the wire, an integer up to 2^53; here, never a float. */
export type Money = { amount: bigint; currency: string }
export type WireMoney = { amount: number; currency: string }

// `Intl` is wrong for some currencies.
const decimalsOf: Record<string, number> = {}
for (const [decimals, codes] of Object.entries(currenciesByDecimals))
  for (const code of codes.split(' ')) decimalsOf[code] = Number(decimals)

export function decimals(currency: string): number {
  return decimalsOf[currency] ?? 2
}

export function fromWire({ amount, currency }: WireMoney): Money {
  return { amount: BigInt(amount), currency }
}

/** The amount as a decimal number without a currency: `12.50`. */
function toDecimal({ amount, currency }: Money): string {
  const places = decimals(currency)
  if (places === 0) return String(amount)
  const digits = String(amount < 0n ? -amount : amount).padStart(places + 1, '0')
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`
}

/**
 * Formats an amount for a locale: `£12.50`, `12,50 €`.
 * @param trailingZeroDisplay `stripIfInteger` for `£20` where space is short
 */
export function format(money: Money, locale: string, trailingZeroDisplay: 'auto' | 'stripIfInteger' = 'auto'): string {
  const places = decimals(money.currency)
  const style = { style: 'currency', currency: money.currency, minimumFractionDigits: places } as const
  // Passed as text, so that no digit is lost.
  const decimal = toDecimal(money) as `${number}`
  return new Intl.NumberFormat(locale, { ...style, maximumFractionDigits: places, trailingZeroDisplay }).format(decimal)
}

/** Formats an amount for the input field: without currency and grouping. */
export function formatForInput(money: Money, locale: string): string {
  return toDecimal(money).replace('.', marksOf(locale).decimal)
}

/** The symbol of a currency and whether it precedes the amount. */
export function symbolOf(currency: string, locale: string): { symbol: string; isFirst: boolean } {
  const parts = new Intl.NumberFormat(locale, { style: 'currency', currency }).formatToParts(1)
  const symbol = parts.find(({ type }) => type === 'currency')?.value ?? currency
  return { symbol, isFirst: parts[0]?.type === 'currency' }
}

/**
 * Parses a typed amount: `20`, `1,234.50`, `1 234,5`. Returns null if the text is not an amount or is ambiguous: in English,
 * `1.000` may be one or a thousand.
 */
export function parse(text: string, { currency, locale }: { currency: string; locale: string }): bigint | null {
  const places = decimals(currency)
  const bare = text.replace(/[\s'’\p{Sc}]/gu, '').replace(/^[A-Z]{3}|[A-Z]{3}$/g, '')
  const [, whole, fraction = ''] =
    new RegExp(`^(\\d+|\\d{1,3}(?:,\\d{3})+|\\d{1,3}(?:\\.\\d{3})+)(?:[.,](\\d{1,${Math.max(places, 1)}}))?$`).exec(
      bare,
    ) ?? []
  if (whole === undefined || fraction.length > places) return null
  const grouping = /[.,]/.exec(whole)?.[0]
  // Ambiguous if grouped by the locale's decimal separator, or by the separator that precedes the decimals in this text.
  if (
    grouping !== undefined &&
    (fraction === '' ? grouping === marksOf(locale).decimal : bare.at(-fraction.length - 1) === grouping)
  )
    return null
  const digits = whole.replace(/\D/g, '')
  const minor = digits + fraction.padEnd(places, '0')
  // The largest safe integer in JSON has 16 digits.
  return minor.length > 15 ? null : BigInt(minor)
}

function marksOf(locale: string): { decimal: string } {
  const parts = new Intl.NumberFormat(locale).formatToParts(1.5)
  return { decimal: parts.find(({ type }) => type === 'decimal')?.value ?? '.' }
}

/**
 * Suggests amounts: up to three round amounts, and the largest that can be withdrawn at once.
 * @returns an empty list if nothing can be withdrawn
 */
export function choices(available: Money, { lower, upper }: { lower: bigint; upper: bigint }): bigint[] {
  const largest = available.amount < upper ? available.amount : upper
  if (largest < lower) return []
  const unit = 10n ** BigInt(decimals(available.currency))
  const round: bigint[] = []
  for (let step = unit; step < largest; step *= 10n)
    round.push(...[step, 2n * step, 5n * step].filter(amount => amount >= lower && amount < largest))
  return [...round.slice(-3), largest]
}
