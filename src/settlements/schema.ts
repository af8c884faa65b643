import { type Static, Type } from 'typebox'
import { pageFields, totalField } from '../contract/list.ts'
import { strict } from '../contract/strict.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { SignedMoney, signedMoney } from '../kernel/money.ts'
import { referenceOf } from './dues.ts'
import { linesMax } from './file.ts'

const Taken = signedMoney(
  'Amount that payroll took. Negative if payroll gave money back, which is allowed only for a negative deduction.',
)

export const NewSettlement = Type.Object(
  {
    deductions: Type.Array(
      Type.Object({ memberId: Id('member'), taken: Taken }, { title: 'DeductionTaken', ...strict }),
      {
        maxItems: linesMax,
        description: 'Payroll took nothing from a member who is left out.',
      },
    ),
  },
  { title: 'NewSettlement', ...strict },
)
export type NewSettlement = Static<typeof NewSettlement>

const count = (description: string) => Type.Integer({ minimum: 0, description })

const settlementFields = {
  payCycleId: Id('payCycle'),
  settledAt: Type.String({ format: 'date-time', examples: ['2026-04-02T10:00:00.000Z'] }),
  matched: count('Members from whom payroll took exactly the deduction.'),
  short: count('Members from whom payroll took less.'),
  over: count('Members from whom payroll took more.'),
  unknown: count('Members in the settlement who had no deduction.'),
  paymentReference: Type.Union(
    [Type.String({ pattern: '^MMS[0-9A-Z]{14}$', examples: [referenceOf(exampleId('payCycle'))] }), Type.Null()],
    {
      description:
        'The reference that the transfer of this money to the float’s account must carry. Null if no transfer is expected, because the money is already in the float.',
    },
  ),
  totals: Type.Array(
    Type.Object(
      {
        ...{ deducted: SignedMoney, taken: SignedMoney, carried: SignedMoney, writtenOff: SignedMoney },
        due: signedMoney('The part of `taken` that has not arrived yet. Negative if it is to be paid to the employer.'),
      },
      { title: 'SettlementTotals', ...strict },
    ),
    { description: 'One entry per currency. In each one, deducted = taken + carried + writtenOff.' },
  ),
}

/** The result of a settlement, without its lines. */
export const SettlementSummary = Type.Object(settlementFields, { title: 'SettlementSummary', ...strict })

export const Settlement = Type.Object(
  {
    ...settlementFields,
    lines: Type.Array(
      Type.Object(
        {
          memberId: Id('member'),
          deducted: SignedMoney,
          taken: SignedMoney,
          outcome: Type.Enum(['matched', 'short', 'over', 'unknown'], { type: 'string' }),
          carried: signedMoney('Amount carried to the open cycle. Negative if it is to be given back there.'),
          writtenOff: SignedMoney,
        },
        { title: 'SettlementLine', ...strict },
      ),
    ),
    ...totalField,
    ...pageFields,
  },
  { title: 'Settlement', ...strict },
)
