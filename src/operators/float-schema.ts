import { Type } from 'typebox'
import { strict } from '../contract/strict.ts'
import type * as float from '../float/float.ts'
import { Id } from '../kernel/ids.ts'
import { allToWire, CurrencyCode, type Money, signedMoney, toWire, WireMoney } from '../kernel/money.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import type { AccountDay } from '../payouts/books/balances.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import * as dues from '../settlements/dues.ts'

export const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })

export const Float = Type.Object(
  {
    currency: CurrencyCode,
    float: signedMoney('Funded or repaid by payroll, less what banks have paid out. Negative if it is underfunded.'),
    pending: signedMoney('Pending payouts.'),
    free: signedMoney('The float less the pending payouts.'),
    uncovered: signedMoney('Costs that the operator bears and has not covered, so that the float lacks them.'),
    floor: Type.Union([WireMoney, Type.Null()], {
      description: 'While less than this is free, members cannot withdraw. Null disables the floor.',
    }),
    lowSince: InstantOrNull,
  },
  { title: 'Float', ...strict },
)

const SettlementDue = Type.Object(
  {
    payCycleId: Id('payCycle'),
    reference: Type.String({
      description: 'The reference that the transfer must bear.',
      examples: ['MMS4R8V2M6T0X9Y3B'],
    }),
    amount: signedMoney('Negative if the employer is owed money.'),
    due: signedMoney('The amount that has not arrived.'),
    settledAt: Instant,
  },
  { title: 'SettlementDue', ...strict },
)

export const AccountDays = Type.Array(
  Type.Object(
    {
      rail: Type.String({ examples: ['sepa'] }),
      account: Type.String({ description: 'The account as the bank names it.' }),
      debtors: Type.Array(Type.String(), {
        description:
          'The ids of the partners whose floats are on the account, and `default` for all partners without a separate account.',
      }),
      day: Day,
      bank: signedMoney('The balance that the bank states for the end of the day.'),
      book: signedMoney('The sum of the floats on the account.'),
      uncovered: signedMoney(
        'The part that these floats lack because the operator bears a cost that was not covered yet.',
      ),
      difference: signedMoney('The balance that the bank states, less the balance in the books.'),
    },
    { title: 'AccountDay', ...strict },
  ),
  { description: 'By account, newest day first.' },
)

/** The open exceptions from the comparison of an account. */
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
  { description: 'The open exceptions about differences between the bank’s statements and the books, oldest first.' },
)

export const Floats = Type.Object(
  {
    floats: Type.Array(Float),
    settlements: Type.Array(SettlementDue, {
      description: 'The settlements whose money has not arrived, oldest first.',
    }),
    accountDays: AccountDays,
  },
  { title: 'Floats', ...strict },
)

/** A movement of the float that an operator has recorded. */
export const RecordedMovement = Type.Object(
  {
    id: Id('floatMovement'),
    amount: signedMoney('Negative if the employer was paid.'),
    reference: Type.Union([Type.String(), Type.Null()]),
    at: Instant,
    hasMoved: Type.Boolean({ description: 'False if the reference was recorded before, at `at`: nothing moved now.' }),
  },
  { title: 'RecordedMovement', ...strict },
)

export const FloatsAfterMovement = Type.Object(
  { movement: RecordedMovement, ...Floats.properties },
  { title: 'FloatsAfterMovement', ...strict },
)

/** A float with its amounts as Money objects. */
export function floatOnWire({ currency, floor, lowSince, ...amounts }: float.Float) {
  return {
    currency,
    ...allToWire(amounts, currency),
    floor: floor === null ? null : toWire({ amount: floor, currency }),
    lowSince,
  }
}

/** A movement with its amount as a Money object. */
export function movementOnWire(
  { movementId: id, at, isRepeated }: float.Moved,
  { amount, reference = null }: { amount: Money; reference?: string | null | undefined },
) {
  return { id, amount: toWire(amount), reference, at, hasMoved: !isRepeated }
}

/** A settlement whose money has not arrived, with its amounts as Money objects. */
export function dueOnWire({ payCycleId, currency, amount, received, settledAt }: dues.Due) {
  return {
    payCycleId,
    reference: dues.referenceOf(payCycleId),
    ...allToWire({ amount, due: amount - received }, currency),
    settledAt,
  }
}

/** A balance with its amounts as Money objects. */
export function accountDayOnWire({ bank, book, uncovered, currency, ...rest }: AccountDay) {
  return { ...rest, ...allToWire({ bank, book, uncovered, difference: bank - book }, currency) }
}
