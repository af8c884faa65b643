import { type Static, Type } from 'typebox'
import * as invoices from '../fees/invoices.ts'
import type { Revenue } from '../fees/revenue.ts'
import type { FeeLine, FeeStatement, FeeSums } from '../fees/statement.ts'
import { Id } from '../kernel/ids.ts'
import { type Currency, CurrencyCode, inDecimals, SignedMoney, toWire } from '../kernel/money.ts'
import { Instant } from '../kernel/time.ts'
import { csvLines } from '../tabular/tabular.ts'

const strict = { additionalProperties: false }
export const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })
export const Month = Type.String({
  pattern: '^20[0-9]{2}-(0[1-9]|1[0-2])$',
  description: 'By the partner’s time zone.',
  examples: ['2026-03'],
})
const money = (description: string) => Type.Unsafe<Static<typeof SignedMoney>>({ ...SignedMoney, description })
const count = (description: string) => Type.Integer({ description })

const PartnerRevenue = Type.Object(
  {
    currency: CurrencyCode,
    inFloat: money(
      'Collected fees that are still in the float. Less than zero if fees were booked back after they were taken out.',
    ),
    collected: money('Fees of members that have become revenue, less those booked back.'),
    withdrawn: money('The part that was taken out of the float.'),
    arriving: money('Fees of members that settlements cover, and whose money has not arrived.'),
    invoiced: money('Employers’ fees that open invoices bill.'),
    paid: money('Employers’ fees whose invoices are paid.'),
  },
  { title: 'Revenue', ...strict },
)

export const Revenues = Type.Object({ revenue: Type.Array(PartnerRevenue) }, { title: 'Revenues', ...strict })

export function revenueOnWire({ currency, ...amounts }: Revenue) {
  const on = (amount: bigint) => toWire({ amount, currency })
  const { inFloat, collected, withdrawn, arriving, invoiced, paid } = amounts
  return {
    currency,
    inFloat: on(inFloat),
    collected: on(collected),
    withdrawn: on(withdrawn),
    arriving: on(arriving),
    invoiced: on(invoiced),
    paid: on(paid),
  }
}

export const InvoiceStatus = Type.Enum([...invoices.invoiceStatuses], {
  title: 'InvoiceStatus',
  type: 'string',
  description: 'The fees of a `void` invoice are billed by the next one.',
})

const summary = {
  id: Id('invoice'),
  partnerId: Id('partner'),
  number: Type.String({ description: 'The partner’s invoices are numbered without gaps.', examples: ['9Y3BDA-0001'] }),
  status: InvoiceStatus,
  firstDay: Type.Unsafe<string>({ ...Day, description: 'The first day with a fee.' }),
  lastDay: Type.Unsafe<string>({ ...Day, description: 'The last day that the invoice covers.' }),
  sum: money('The amount that the partner has to pay.'),
  issuedAt: Instant,
  paid: Type.Union(
    [Type.Object({ reference: Type.String(), on: Day }, { title: 'InvoicePaid', ...strict }), Type.Null()],
    { description: 'How the invoice was paid; null until then.' },
  ),
}

export const InvoiceSummary = Type.Object(summary, { title: 'InvoiceSummary', ...strict })

const InvoiceLine = Type.Object(
  {
    day: Day,
    tier: Type.String({ examples: ['Gold'] }),
    withdrawals: count('Withdrawals that were charged a fee on the day.'),
    fees: money('Their fees.'),
    givenBack: count('Withdrawals whose fee was given back on the day.'),
    feesGivenBack: money('Their fees.'),
  },
  { title: 'InvoiceLine', ...strict },
)

export const Invoice = Type.Object(
  { ...summary, lines: Type.Array(InvoiceLine, { description: 'By day and tier.' }) },
  { title: 'Invoice', ...strict },
)

export function invoiceSummaryOnWire(invoice: invoices.Invoice) {
  const { id, partnerId, status, firstDay, lastDay, sum: amount, currency, issuedAt } = invoice
  const { paidReference: reference, paidOn: on } = invoice
  return {
    ...{ id, partnerId, number: invoices.numberInWords(invoice), status, firstDay, lastDay },
    sum: toWire({ amount, currency }),
    issuedAt: issuedAt.toISOString(),
    paid: reference === null || on === null ? null : { reference, on },
  }
}

export function invoiceOnWire(invoice: invoices.Invoice, lines: invoices.InvoiceLine[]) {
  const on = (amount: bigint) => toWire({ amount, currency: invoice.currency })
  return {
    ...invoiceSummaryOnWire(invoice),
    lines: lines.map(({ day, tier, withdrawals, fees, givenBack, feesGivenBack }) => ({
      ...{ day, tier, withdrawals, givenBack, fees: on(fees), feesGivenBack: on(feesGivenBack) },
    })),
  }
}

const feeColumns = {
  withdrawals: count('Withdrawals that were charged a fee.'),
  memberFees: money('Their fees that members pay.'),
  employerFees: money('Their fees that the employer pays.'),
  givenBack: count('Withdrawals whose fee was given back.'),
  memberFeesGivenBack: money('Their fees that members had paid.'),
  employerFeesGivenBack: money('Their fees that the employer had to pay.'),
}

export const Statement = Type.Object(
  {
    month: Month,
    lines: Type.Array(
      Type.Object(
        { day: Day, tier: Type.String({ examples: ['Bronze'] }), ...feeColumns },
        { title: 'FeeLine', ...strict },
      ),
      { description: 'By day and tier.' },
    ),
    sums: Type.Array(
      Type.Object(
        {
          currency: CurrencyCode,
          ...feeColumns,
          collected: money('Fees of members that became revenue in the month, less those booked back.'),
        },
        { title: 'FeeSums', ...strict },
      ),
      { description: 'Per currency.' },
    ),
  },
  { title: 'FeeStatement', ...strict },
)

type FeeColumns = Omit<FeeLine, 'day' | 'tier'>

function feesOnWire({ currency, withdrawals, givenBack, ...fees }: FeeColumns) {
  const on = (amount: bigint) => toWire({ amount, currency })
  return {
    withdrawals,
    memberFees: on(fees.memberFees),
    employerFees: on(fees.employerFees),
    givenBack,
    memberFeesGivenBack: on(fees.memberFeesGivenBack),
    employerFeesGivenBack: on(fees.employerFeesGivenBack),
  }
}

export function statementOnWire({ month, lines, sums }: FeeStatement) {
  return {
    month,
    lines: lines.map(({ day, tier, ...line }) => ({ day, tier, ...feesOnWire(line) })),
    sums: sums.map(({ collected, ...sum }: FeeSums) => ({
      currency: sum.currency,
      ...feesOnWire(sum),
      collected: toWire({ amount: collected, currency: sum.currency }),
    })),
  }
}

const statementColumns = [
  'withdrawals',
  'member_fees',
  'employer_fees',
  'given_back',
  'member_fees_given_back',
  'employer_fees_given_back',
  'currency',
] as const

/** A fee statement as the lines of a file, with amounts in decimals. */
export function statementFile({ lines }: FeeStatement): string {
  return csvLines([
    ['day', 'tier', ...statementColumns],
    ...lines.map(({ day, tier, ...line }) => [day, tier, ...feeCells(line)]),
  ])
}

function feeCells({ currency, withdrawals, givenBack, ...fees }: FeeColumns) {
  const cell = (amount: bigint) => ({ number: inDecimals({ amount, currency }) })
  return [
    { number: String(withdrawals) },
    cell(fees.memberFees),
    cell(fees.employerFees),
    { number: String(givenBack) },
    cell(fees.memberFeesGivenBack),
    cell(fees.employerFeesGivenBack),
    currency satisfies Currency,
  ]
}
