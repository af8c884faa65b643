import { type Static, type TSchema, Type } from 'typebox'
import { type Currency, toWire, WireMoney } from '../kernel/money.ts'
import { nullable, wordOf } from '../kernel/schemas.ts'

const MoneyOrNull = nullable(WireMoney)
const CountOrNull = nullable(Type.Integer({ minimum: 1 }))

const feeBps = { min: 0, max: 9_999 }
const feePayers = { member: 'The member', employer: 'The employer' } as const
// In the day's batch, to arrive by the scheme's calendar, or at once and around the clock.
const payoutSpeeds = { standard: 'In the next batch', instant: 'Instantly' } as const

/**
 * The terms of a tier. The list of columns, the types, the schemas, the options of `tier set` and the console's form derive from
 * this table.
 */
export const tierTerms = {
  feeFixed: {
    schema: WireMoney,
    ...{ kind: 'amount', byDefault: 0, line: 'fee', label: 'Fee', row: 'fixed fee' },
    ...{ flags: '--fee <amount>', help: 'fixed part of the fee', removal: 'remove every part of the fee' },
  },
  /** Basis points of the gross amount, added to the fixed part. */
  feeBps: {
    schema: Type.Integer({
      minimum: feeBps.min,
      maximum: feeBps.max,
      description: 'The percentage part of the fee, in basis points of the amount.',
    }),
    ...{ kind: 'basisPoints', byDefault: 0, line: 'fee', label: 'Plus basis points', row: 'basis points' },
    note: 'Of the amount; 100 basis points are 1 %',
    ...{ flags: '--fee-bps <n>', help: 'variable part of the fee, in basis points of the amount' },
    bounds: feeBps,
  },
  feeMin: {
    schema: MoneyOrNull,
    ...{ kind: 'amount', ifNull: '–', line: 'bounds of the fee', label: 'Minimum fee' },
    ...{ flags: '--fee-min <amount>', help: 'minimum fee', removal: 'remove the minimum fee' },
  },
  feeMax: {
    schema: MoneyOrNull,
    ...{ kind: 'amount', ifNull: '–', line: 'bounds of the fee', label: 'Maximum fee' },
    ...{ flags: '--fee-max <amount>', help: 'maximum fee', removal: 'remove the maximum fee' },
  },
  /** Deducted from the member's pay, or charged to the employer. */
  feePayer: {
    schema: oneOf(feePayers),
    ...{ kind: 'choice', choices: feePayers, byDefault: 'member', line: 'payer' },
    ...{ label: 'Who pays the fee', row: 'fee paid by', flags: '--fee-payer <who>', help: 'who pays the fee' },
  },
  /** Per withdrawal, both inclusive. */
  lowerLimit: {
    schema: WireMoney,
    ...{ kind: 'amount', line: 'limits', label: 'Minimum withdrawal', row: 'lower limit' },
    ...{ flags: '--lower-limit <amount>', help: 'smallest withdrawal (required for a new tier)' },
  },
  upperLimit: {
    schema: WireMoney,
    ...{ kind: 'amount', line: 'limits', label: 'Maximum withdrawal', row: 'upper limit' },
    ...{ flags: '--upper-limit <amount>', help: 'largest withdrawal (required for a new tier)' },
  },
  withdrawalsPerDay: {
    schema: CountOrNull,
    ...{ kind: 'count', ifNull: 'No limit', line: 'counts', label: 'Withdrawals per day' },
    ...{ flags: '--per-day <n>', help: 'maximum withdrawals per day', removal: 'remove the daily maximum' },
    bounds: { min: 1, max: 1_000 },
  },
  withdrawalsPerCycle: {
    schema: CountOrNull,
    ...{ kind: 'count', ifNull: 'No limit', line: 'counts', label: 'Withdrawals per cycle' },
    ...{ flags: '--per-cycle <n>', help: 'maximum withdrawals per pay cycle' },
    removal: 'remove the maximum per pay cycle',
    bounds: { min: 1, max: 10_000 },
  },
  /** Null for the rail's setting. A rail without instant payments pays at its own speed. */
  payoutSpeed: {
    schema: nullable(
      oneOf(payoutSpeeds),
      'Whether payouts are sent in the bank’s next batch or instantly. Null for the setting of the bank.',
    ),
    ...{ kind: 'choice', choices: payoutSpeeds, ifNull: 'Default of the bank', line: 'speed', label: 'Payout speed' },
    ...{ flags: '--payout-speed <speed>', removal: 'use the rail’s speed' },
    help: 'how payouts are sent, if the bank can; by default, the rail’s setting',
  },
} as const satisfies Record<string, Term>

export type Term = {
  schema: TSchema
  kind: 'amount' | 'count' | 'basisPoints' | 'choice'
  /** The values of a choice, as the console words them. */
  choices?: Record<string, string>
  /** The value for a new tier, in minor units if it is an amount. Without it, the term is null or must be given. */
  byDefault?: string | number
  /** How the console words null. Other terms are never null. */
  ifNull?: string
  /** Terms of one line share a line of the console's form. */
  line: string
  label: string
  note?: string
  /** The term's name in the changes that `tier set` shows, if it is not the label. */
  row?: string
  /** The option of `tier set`, its help, and that of the option that removes the term. */
  flags: string
  help: string
  removal?: string
  /** What the option accepts, both inclusive. */
  bounds?: { min: number; max: number }
}

type Table = typeof tierTerms
export const termNames = Object.keys(tierTerms) as (keyof Table)[]

/** The schemas of the terms, as `termsToWire` returns them. */
export const termFields = Object.fromEntries(termNames.map(name => [name, tierTerms[name].schema])) as {
  -readonly [Name in keyof Table]: Table[Name]['schema']
}
export type WireTerms = { -readonly [Name in keyof Table]: Static<Table[Name]['schema']> }

type Stored<Value> = Value extends WireMoney ? bigint : Value
/** One version of a tier: everything that determines the fee, limits and speed of a withdrawal. Amounts in minor units. */
export type TierTerms = { -readonly [Name in keyof Table]: Stored<WireTerms[Name]> }
export type PayoutSpeed = NonNullable<TierTerms['payoutSpeed']>

/** Returns the terms with their amounts as Money objects. */
export function termsToWire(terms: TierTerms, currency: Currency): WireTerms {
  const entries = termNames.map(name => {
    const value = terms[name]
    return [name, typeof value === 'bigint' ? toWire({ amount: value, currency }) : value]
  })
  return Object.fromEntries(entries)
}

function oneOf<const Choices extends Record<string, string>>(choices: Choices) {
  return wordOf(Object.keys(choices) as (keyof Choices & string)[])
}
