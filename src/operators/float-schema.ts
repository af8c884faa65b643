import { Type } from 'typebox'
import type * as float from '../float/float.ts'
import { Id } from '../kernel/ids.ts'
import { CurrencyCode, SignedMoney, toWire, WireMoney } from '../kernel/money.ts'
import { Instant } from '../kernel/time.ts'
import type { AccountDay } from '../payouts/books/balances.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import * as dues from '../settlements/dues.ts'

const strict = { additionalProperties: false }
const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })

const signed = (description: string) => Type.Unsafe<object>({ ...SignedMoney, description })

export const Float = Type.Object(
  {
    currency: CurrencyCode,
    float: signed('Funded or repaid by payroll, less what banks have paid out. Negative if it is underfunded.'),
    pending: signed('Pending payouts.'),
    free: signed('The float less what is pending.'),
    uncovered: signed('Costs that the operator bears and has not covered, so that the float lacks them.'),
    floor: Type.Union([WireMoney, Type.Null()], {
      description: 'While less than this is free, members cannot withdraw. Null disables the floor.',
    }),
    lowSince: Type.Union([Instant, Type.Null()]),
  },
  { title: 'Float', ...strict },
)

const SettlementDue = Type.Object(
  {
    payCycleId: Id('payCycle'),
    reference: Type.String({ description: 'What the transfer must bear.', examples: ['MMS4R8V2M6T0X9Y3B'] }),
    amount: signed('Negative if the employer is owed money.'),
    due: signed('What has not arrived.'),
    settledAt: Instant,
  },
  { title: 'SettlementDue', ...strict },
)

export const AccountDays = Type.Array(
  Type.Object(
    {
      rail: Type.String({ examples: ['sepa'] }),
      account: Type.String({ description: 'As the bank names it.' }),
      debtors: Type.Array(Type.String(), {
        description: 'Whose floats are on it: partners’ ids, and `default` for all partners without an own account.',
      }),
      day: Day,
      bank: signed('What the bank states for the end of the day.'),
      book: signed('What the floats on the account add up to.'),
      uncovered: signed('What these floats lack because the operator bears it and had not covered it.'),
      difference: signed('What the bank states, less the book.'),
    },
    { title: 'AccountDay', ...strict },
  ),
  { description: 'By account, newest day first.' },
)

/** What is open of the comparison of an account. */
export const AccountDifferences = Type.Array(
  Type.Object(
    {
      id: Id('payoutException'),
      rail: Type.String({ examples: ['sepa'] }),
      kind: Type.Enum([...exceptions.reconciliationKinds], { type: 'string' }),
      reason: Type.String(),
    },
    { title: 'AccountDifference', ...strict },
  ),
  { description: 'What the statements of the accounts do not add up to: the open exceptions about it, oldest first.' },
)

export const Floats = Type.Object(
  {
    floats: Type.Array(Float),
    settlements: Type.Array(SettlementDue, { description: 'Those whose money has not arrived, oldest first.' }),
    accountDays: AccountDays,
  },
  { title: 'Floats', ...strict },
)

/** A float with its amounts as Money objects. */
export function floatOnWire({ currency, float: there, pending, free, uncovered, floor, lowSince }: float.Float) {
  const money = (amount: bigint) => toWire({ amount, currency })
  return {
    currency,
    float: money(there),
    pending: money(pending),
    free: money(free),
    uncovered: money(uncovered),
    floor: floor === null ? null : money(floor),
    lowSince: lowSince?.toISOString() ?? null,
  }
}

/** A settlement whose money has not arrived, with its amounts as Money objects. */
export function dueOnWire({ payCycleId, currency, amount, received, settledAt }: dues.Due) {
  const money = (units: bigint) => toWire({ amount: units, currency })
  return {
    payCycleId,
    reference: dues.referenceOf(payCycleId),
    amount: money(amount),
    due: money(amount - received),
    settledAt: settledAt.toISOString(),
  }
}

/** A balance with its amounts as Money objects. */
export function accountDayOnWire({ bank, book, uncovered, currency, ...rest }: AccountDay) {
  const money = (amount: bigint) => toWire({ amount, currency })
  return { ...rest, bank: money(bank), book: money(book), uncovered: money(uncovered), difference: money(bank - book) }
}
