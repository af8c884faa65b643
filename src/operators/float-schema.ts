import { Type } from 'typebox'
import type * as float from '../float/float.ts'
import { Id } from '../kernel/ids.ts'
import { allToWire, CurrencyCode, type Money, signedMoney, toWire, WireMoney } from '../kernel/money.ts'
import { namedObject, nullable, wordOf } from '../kernel/schemas.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import type { AccountDay } from '../payouts/books/balances.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import * as dues from '../settlements/dues.ts'

export const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })

export const Float = namedObject('Float', {
  currency: CurrencyCode,
  float: signedMoney('Funded or repaid by payroll, less what banks have paid out. Negative if it is underfunded.'),
  pending: signedMoney('Pending payouts.'),
  free: signedMoney('The float less the pending payouts.'),
  uncovered: signedMoney('Costs that the operator bears and has not covered, so that the float lacks them.'),
  floor: nullable(WireMoney, 'While less than this is free, members cannot withdraw. Null disables the floor.'),
  lowSince: InstantOrNull,
})

const SettlementDue = namedObject('SettlementDue', {
  payCycleId: Id('payCycle'),
  reference: Type.String({
    description: 'The reference that the transfer must bear.',
    examples: ['MMS4R8V2M6T0X9Y3B'],
  }),
  amount: signedMoney('Negative if the employer is owed money.'),
  due: signedMoney('The amount that has not arrived.'),
  settledAt: Instant,
})

export const AccountDays = Type.Array(
  namedObject('AccountDay', {
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
  }),
  { description: 'By account, newest day first.' },
)

/** The open exceptions from the comparison of an account. */
export const AccountDifferences = Type.Array(
  namedObject('AccountDifference', {
    id: Id('payoutException'),
    rail: Type.String({ examples: ['sepa'] }),
    kind: wordOf(exceptions.reconciliationKinds),
    reason: Type.String(),
  }),
  { description: 'The open exceptions about differences between the bank’s statements and the books, oldest first.' },
)

export const Floats = namedObject('Floats', {
  floats: Type.Array(Float),
  settlements: Type.Array(SettlementDue, {
    description: 'The settlements whose money has not arrived, oldest first.',
  }),
  accountDays: AccountDays,
})

/** A movement of the float that an operator has recorded. */
export const RecordedMovement = namedObject('RecordedMovement', {
  id: Id('floatMovement'),
  amount: signedMoney('Negative if the employer was paid.'),
  reference: nullable(Type.String()),
  at: Instant,
  hasMoved: Type.Boolean({ description: 'False if the reference was recorded before, at `at`: nothing moved now.' }),
})

export const FloatsAfterMovement = namedObject('FloatsAfterMovement', {
  movement: RecordedMovement,
  ...Floats.properties,
})

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
