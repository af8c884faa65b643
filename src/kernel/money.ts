import { type Static, Type } from 'typebox'
import { described } from './schemas.ts'

// ISO 4217, grouped by the number of decimals of the minor unit. `Intl` is wrong for about thirty of these. Codes without a
// minor unit in the standard (metals, funds, testing) have no decimals.
const codesByDecimals = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XAG XAU XBA XBB XBC XBD XDR XOF XPD XPF XPT XSU XTS XUA XXX',
  2: 'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VES WST XCD YER ZAR ZMW ZWL',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
} as const

// Uses an accumulator, because only a tail-recursive type may recurse 140 times.
type Codes<S extends string, Found = never> = S extends `${infer Code} ${infer Rest}`
  ? Codes<Rest, Found | Code>
  : Found | S
export type Currency = Codes<(typeof codesByDecimals)[0 | 2 | 3 | 4]>

/** The number of decimals of each of the 179 listed currencies. */
export const decimalsOf: ReadonlyMap<Currency, number> = new Map(
  Object.entries(codesByDecimals).flatMap(([decimals, codes]) =>
    codes.split(' ').map(code => [code as Currency, Number(decimals)] as const),
  ),
)

export const currencies: readonly Currency[] = [...decimalsOf.keys()].sort()

/** An amount in minor units (pence, cents). Never a `number`, so that it is exact at any size. */
export type Money = { amount: bigint; currency: Currency }

// One `enum`, because a union of 179 literals would become an `anyOf` with 179 branches.
export const CurrencyCode = Type.Unsafe<Currency>({
  title: 'Currency',
  type: 'string',
  enum: currencies,
  description: 'ISO 4217 code.',
  examples: ['GBP'],
})

/** In minor units. A larger JSON number is not exact. */
export const amountMax = Number.MAX_SAFE_INTEGER

/** Money of either sign, in a request or a response. */
export const SignedMoney = Type.Object(
  {
    amount: Type.Integer({
      minimum: -amountMax,
      maximum: amountMax,
      description: 'In minor units, for example pence.',
    }),
    currency: CurrencyCode,
  },
  { title: 'SignedMoney', additionalProperties: false, examples: [{ amount: -1250, currency: 'GBP' }] },
)

export const signedMoney = (description: string) => described(SignedMoney, description)

/** Money that is never negative. */
export const WireMoney = Type.Object(
  {
    amount: Type.Integer({ minimum: 0, maximum: amountMax, description: 'In minor units, for example pence.' }),
    currency: CurrencyCode,
  },
  { title: 'Money', additionalProperties: false, examples: [{ amount: 5000, currency: 'GBP' }] },
)
export type WireMoney = Static<typeof WireMoney>

export function fromWire(money: WireMoney): Money {
  return { amount: BigInt(money.amount), currency: money.currency }
}

/**
 * Converts money to its wire format.
 * @throws if the amount is beyond ±9007199254740991, which a JSON number cannot hold exactly
 */
export function toWire({ amount, currency }: Money): WireMoney {
  if (amount > BigInt(amountMax) || amount < -BigInt(amountMax))
    throw new Error(`A JSON number cannot hold ${amount} ${currency} exactly`)
  return { amount: Number(amount), currency }
}

/** Converts several amounts in one currency to their wire format. */
export function allToWire<Name extends string>(
  amounts: Record<Name, bigint>,
  currency: Currency,
): Record<Name, WireMoney> {
  const entries = Object.entries<bigint>(amounts).map(([name, amount]) => [name, toWire({ amount, currency })])
  return Object.fromEntries(entries)
}

/** Converts a sum of many amounts to its wire format. A larger sum becomes ±9007199254740991, so that its page can be shown. */
export function sumToWire({ amount, currency }: Money): WireMoney {
  const max = BigInt(amountMax)
  return toWire({ amount: amount > max ? max : amount < -max ? -max : amount, currency })
}

/** Adds up amounts, in the order of the currencies. */
export function sumsByCurrency(amounts: readonly Money[]): Money[] {
  const sums = new Map<Currency, bigint>()
  for (const { amount, currency } of amounts) sums.set(currency, (sums.get(currency) ?? 0n) + amount)
  return [...sums].map(([currency, amount]) => ({ currency, amount })).sort(byCurrency)
}

export function byCurrency(a: { currency: Currency }, b: { currency: Currency }): number {
  return a.currency < b.currency ? -1 : a.currency > b.currency ? 1 : 0
}

/** Formats money for a message: '12.50 GBP'. */
export function inWords(money: Money): string {
  return `${inDecimals(money)} ${money.currency}`
}

/** Formats an amount in major units with all decimals: '12.50'. */
export function inDecimals({ amount, currency }: Money): string {
  const decimals = decimalsOf.get(currency) ?? 0
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const sign = amount < 0n ? '-' : ''
  return decimals === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-decimals)}`
}

/**
 * Reads an amount in major units, such as '12.5' or '-3.00'.
 * @returns undefined if the text is not a decimal number, has more decimals than the currency, or is too large for the wire
 */
export function fromDecimals(text: string, currency: Currency): bigint | undefined {
  const [, sign, whole = '', fraction = ''] = /^(-?)([0-9]{1,16})(?:\.([0-9]{1,4}))?$/.exec(text) ?? []
  const decimals = decimalsOf.get(currency) ?? 0
  if (sign === undefined || fraction.length > decimals) return undefined
  const amount = BigInt(`${sign}${whole}${fraction.padEnd(decimals, '0')}`)
  return amount <= BigInt(amountMax) && amount >= -BigInt(amountMax) ? amount : undefined
}

/** Returns a share of an amount in basis points (1/10000), rounded down, so that a fee is never overstated. */
export function shareRoundedDown(amount: bigint, shareBps: number): bigint {
  return (amount * BigInt(shareBps)) / 10_000n
}
