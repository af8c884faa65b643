import { type Static, Type } from 'typebox'
import type { Reader } from '../database/database.ts'
import { readRevenue } from '../fees/revenue.ts'
import { type FeeLine, type FeeStatement, readStatement } from '../fees/statement.ts'
import * as float from '../float/float.ts'
import { csvHeaders } from '../http/bodies/csv.ts'
import { named, operationWith } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { allToWire, CurrencyCode, fromWire, inDecimals, signedMoney, toWire, WireMoney } from '../kernel/money.ts'
import { namedObject, strictObject } from '../kernel/schemas.ts'
import { partnerNow } from '../partners/clocks.ts'
import { findState } from '../partners/partners.ts'
import { csvLines } from '../tabular/tabular.ts'
import { Day, movementOnWire, RecordedMovement } from './float-schema.ts'
import { line } from './partner-schema.ts'

const operation = operationWith({ tag: 'Finance', isForOperators: true })
const params = Type.Object({ partnerId: Id('partner') })

export const Month = Type.String({
  pattern: '^20[0-9]{2}-(0[1-9]|1[0-2])$',
  description: 'By the partner’s time zone.',
  examples: ['2026-03'],
})

const Revenues = namedObject('Revenues', {
  revenue: Type.Array(
    namedObject('Revenue', {
      currency: CurrencyCode,
      inFloat: signedMoney(
        'Collected fees that are still in the float. Less than zero if fees were booked back after they were taken out.',
      ),
      collected: signedMoney('Fees of members that have become revenue, less those booked back.'),
      withdrawn: signedMoney('The part that was taken out of the float.'),
      arriving: signedMoney('Fees of members that settlements cover, and whose money has not arrived.'),
      invoiced: signedMoney('Employers’ fees that open invoices bill.'),
      paid: signedMoney('Employers’ fees whose invoices are paid.'),
    }),
  ),
})

const RevenueAfterMovement = namedObject('RevenueAfterMovement', { movement: RecordedMovement, ...Revenues.properties })

const count = (description: string) => Type.Integer({ description })
const feeColumns = {
  withdrawals: count('Withdrawals that were charged a fee.'),
  memberFees: signedMoney('Their fees that members pay.'),
  employerFees: signedMoney('Their fees that the employer pays.'),
  givenBack: count('Withdrawals whose fee was given back.'),
  memberFeesGivenBack: signedMoney('Their fees that members had paid.'),
  employerFeesGivenBack: signedMoney('Their fees that the employer had to pay.'),
}

const Statement = namedObject('FeeStatement', {
  month: Month,
  lines: Type.Array(namedObject('FeeLine', { day: Day, tier: Type.String({ examples: ['Bronze'] }), ...feeColumns }), {
    description: 'By day and tier.',
  }),
  sums: Type.Array(
    namedObject('FeeSums', {
      currency: CurrencyCode,
      ...feeColumns,
      collected: signedMoney('Fees of members that became revenue in the month, less those booked back.'),
    }),
    { description: 'Per currency.' },
  ),
})

const getRevenue = operation({
  route: 'GET /operator/v1/partners/:partnerId/revenue',
  summary: 'Get the revenue of a partner',
  description: 'The fees that are the operator’s income, by currency, and where the money is.',
  success: { description: 'One entry per currency.', schema: Revenues },
  async read(reader, call) {
    return { body: await revenueOf(reader, call.params) }
  },
})

const withdrawRevenue = operation({
  route: 'POST /operator/v1/partners/:partnerId/revenue/withdraw',
  summary: 'Withdraw revenue from a float',
  description:
    'Records that collected fees were taken out of the float: at most the amount collected, and the amount that is free above the floor.',
  body: namedObject('RevenueMovement', {
    amount: WireMoney,
    reference: line(140, {
      description: 'Your reference, for example the bank’s. A second movement with it does nothing.',
      examples: ['fees 2026-03'],
    }),
  }),
  success: { description: 'The movement, and the revenue after it.', schema: RevenueAfterMovement },
  problems: ['UnprocessableEntity'],
  async write(tx, call) {
    const { partnerId } = call.params
    const { reference } = call.body
    const amount = fromWire(call.body.amount)
    const now = await partnerNow(tx, call, partnerId)
    const moved = await float.withdrawRevenue(tx, { partnerId, amount, reference, now })
    const { movementId, isRepeated } = moved
    const details = { amount: toWire(amount), reference, movementId }
    const audit = { action: 'revenue.withdraw', resourceId: amount.currency, details, partnerId, now } as const
    return {
      body: { movement: movementOnWire(moved, { amount, reference }), ...(await revenueOf(tx, call.params)) },
      resourceId: movementId,
      audit: isRepeated ? undefined : audit,
    }
  },
})

const getFeeStatement = operation({
  route: 'GET /operator/v1/partners/:partnerId/fee-statement',
  summary: 'Get the fee statement of a month',
  description:
    'The fees of a partner’s withdrawals by day and tier, and their sums per currency. A fee counts on the day of its withdrawal, and is given back on the day on which the withdrawal was cancelled, failed or was returned. With `accept: text/csv`, the response is a file of the lines.',
  query: strictObject({ month: Month }),
  success: {
    description: 'The statement, or its lines as a file.',
    schema: Statement,
    csv: {
      description: 'One line per day and tier, with amounts in decimals. Spreadsheets read no cell as a formula.',
      example:
        'day,tier,withdrawals,member_fees,employer_fees,given_back,member_fees_given_back,employer_fees_given_back,currency\r\n2026-03-10,Bronze,3,1.50,0.00,1,0.50,0.00,GBP\r\n',
    },
  },
  async read(reader, { params: { partnerId }, query: { month }, prefersCsv }) {
    const { timeZone } = await findState(reader, partnerId)
    const statement = await readStatement(reader, { partnerId, timeZone, month })
    return prefersCsv
      ? { body: fileOf(statement), headers: csvHeaders(`fees-${month}.csv`) }
      : { body: statementOnWire(statement) }
  },
})

export const revenueOperations = named({ getRevenue, withdrawRevenue, getFeeStatement })

/** @throws Problem `NotFound` */
async function revenueOf(reader: Reader, { partnerId }: Static<typeof params>) {
  await findState(reader, partnerId)
  const revenue = await readRevenue(reader, partnerId)
  return { revenue: revenue.map(({ currency, ...amounts }) => ({ currency, ...allToWire(amounts, currency) })) }
}

type Fees = Omit<FeeLine, 'day' | 'tier'>

function statementOnWire({ month, lines, sums }: FeeStatement) {
  const feesOnWire = ({ currency, withdrawals, givenBack, ...fees }: Fees) => ({
    ...{ withdrawals, givenBack },
    ...allToWire(fees, currency),
  })
  return {
    month,
    lines: lines.map(({ day, tier, ...fees }) => ({ day, tier, ...feesOnWire(fees) })),
    sums: sums.map(sum => ({ currency: sum.currency, ...feesOnWire(sum) })),
  }
}

/** A fee statement as the lines of a file, with amounts in decimals. */
function fileOf({ lines }: FeeStatement): string {
  const header = [
    ...['day', 'tier', 'withdrawals', 'member_fees', 'employer_fees'],
    ...['given_back', 'member_fees_given_back', 'employer_fees_given_back', 'currency'],
  ]
  return csvLines([
    header,
    ...lines.map(({ day, tier, currency, withdrawals, givenBack, ...fees }) => {
      const cell = (amount: bigint) => ({ number: inDecimals({ amount, currency }) })
      return [
        ...[day, tier, { number: String(withdrawals) }, cell(fees.memberFees), cell(fees.employerFees)],
        ...[{ number: String(givenBack) }, cell(fees.memberFeesGivenBack), cell(fees.employerFeesGivenBack)],
        currency,
      ]
    }),
  ])
}
