import { type Currency, decimalsOf, type Money } from '../../../kernel/money.ts'
import { beginsWithDay, type Day } from '../../../kernel/time.ts'
import { type BankFileHead, BankFileProblem, type BankRecord } from '../bank-files.ts'
import type { Unit } from './parse-xml.ts'

/** Receives the parts of a bank file as they are found. */
export type Emit = (part: { type: 'head'; head: BankFileHead } | BankRecord) => void

/** Reads an amount with its currency; undefined if the unit has none. Amounts are never negative: the direction is a field. */
export function moneyOf(unit: Unit, path: string): Money | undefined {
  const text = unit.get(path)
  if (text === undefined) return undefined
  const currency = (unit.get(`${path}@Ccy`) ?? '') as Currency
  const decimals = decimalsOf.get(currency)
  if (decimals === undefined) throw problem(unit, `${currency.slice(0, 20) || 'No'} currency is not an ISO 4217 code`)
  // At most 18 digits, as in the schemas.
  const [, whole = '', fraction = ''] = /^\+?(\d{0,18})(?:\.(\d{0,18}))?$/.exec(text) ?? []
  if (whole + fraction === '') throw problem(unit, `${text.slice(0, 40)} is not an amount`)
  if (/[^0]/.test(fraction.slice(decimals))) throw problem(unit, `${text} has more decimals than ${currency} allows`)
  const amount = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'))
  // As many minor units as the database can hold.
  if (amount >= 10n ** 18n) throw problem(unit, `${text.slice(0, 40)} is too large an amount`)
  return { amount, currency }
}

/** Reads a calendar day from a choice of `Dt` and `DtTm`, as the bank's clock shows it; undefined if the unit has none. */
export function dayOf(unit: Unit, path: string): Day | undefined {
  return dayAmong(unit, [`${path}/Dt`, `${path}/DtTm`])
}

/** Reads a calendar day from the first field that the unit has; undefined if it has none. */
export function dayAmong(unit: Unit, fields: string[]): Day | undefined {
  const text = fields.map(field => unit.get(field)).find(value => value !== undefined)
  if (text === undefined) return undefined
  const day = text.slice(0, 10)
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(day) || !beginsWithDay(day))
    throw problem(unit, `${text.slice(0, 40)} is not a day`)
  return day
}

/** Reads the head of a message. A time without a zone counts as UTC: it is shown, never computed with. */
export function headOf(unit: Unit, of: Pick<BankFileHead, 'message' | 'account'>): BankFileHead {
  const text = unit.get('CreDtTm')
  if (text === undefined) return { ...of, messageId: required(unit, 'MsgId'), createdAt: null }
  const createdAt = new Date(/(?:Z|[+-][0-9]{2}:[0-9]{2})$/.test(text) ? text : `${text}Z`)
  if (Number.isNaN(createdAt.getTime())) throw problem(unit, `${text.slice(0, 40)} is not a time`)
  return { ...of, messageId: required(unit, 'MsgId'), createdAt }
}

export const headFields = ['MsgId', 'CreDtTm']

/** A text of the bank; undefined if it is one of the placeholders that fill a field without a value. */
export function unlessPlaceholder(text: string | undefined): string | undefined {
  return text === undefined || /^(NONREF|NOT ?PROVIDED)$/i.test(text) ? undefined : text
}

/** @throws BankFileProblem if the unit lacks the field */
export function required(unit: Unit, path: string): string {
  const value = unit.get(path)
  if (value === undefined) throw problem(unit, `${path} is missing`)
  return value
}

export function problem(unit: Unit, message: string): BankFileProblem {
  return new BankFileProblem(message, { line: unit.line })
}
