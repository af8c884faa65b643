import { type Static, Type } from 'typebox'
import { pageFields, totalField } from '../contract/list.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { SignedMoney, signedMoney } from '../kernel/money.ts'
import { namedObject, nullable, wordOf } from '../kernel/schemas.ts'
import { referenceOf } from './dues.ts'
import { linesMax } from './file.ts'

const Taken = signedMoney(
  'Amount that payroll took. Negative if payroll gave money back, which is allowed only for a negative deduction.',
)

export const NewSettlement = namedObject('NewSettlement', {
  deductions: Type.Array(namedObject('DeductionTaken', { memberId: Id('member'), taken: Taken }), {
    maxItems: linesMax,
    description: 'Payroll took nothing from a member who is left out.',
  }),
})
export type NewSettlement = Static<typeof NewSettlement>

const count = (description: string) => Type.Integer({ minimum: 0, description })

const settlementFields = {
  payCycleId: Id('payCycle'),
  settledAt: Type.String({ format: 'date-time', examples: ['2026-04-02T10:00:00.000Z'] }),
  matched: count('Members from whom payroll took exactly the deduction.'),
  short: count('Members from whom payroll took less.'),
  over: count('Members from whom payroll took more.'),
  unknown: count('Members in the settlement who had no deduction.'),
  paymentReference: nullable(
    Type.String({ pattern: '^MMS[0-9A-Z]{14}$', examples: [referenceOf(exampleId('payCycle'))] }),
    'The reference that the transfer of this money to the float’s account must carry. Null if no transfer is expected, because the money is already in the float.',
  ),
  totals: Type.Array(
    namedObject('SettlementTotals', {
      ...{ deducted: SignedMoney, taken: SignedMoney, carried: SignedMoney, writtenOff: SignedMoney },
      due: signedMoney('The part of `taken` that has not arrived yet. Negative if it is to be paid to the employer.'),
    }),
    { description: 'One entry per currency. In each one, deducted = taken + carried + writtenOff.' },
  ),
}

/** The result of a settlement, without its lines. */
export const SettlementSummary = namedObject('SettlementSummary', settlementFields)

export const Settlement = namedObject('Settlement', {
  ...settlementFields,
  lines: Type.Array(
    namedObject('SettlementLine', {
      memberId: Id('member'),
      deducted: SignedMoney,
      taken: SignedMoney,
      outcome: wordOf(['matched', 'short', 'over', 'unknown']),
      carried: signedMoney('Amount carried to the open cycle. Negative if it is to be given back there.'),
      writtenOff: SignedMoney,
    }),
  ),
  ...totalField,
  ...pageFields,
})
