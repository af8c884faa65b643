import { Type } from 'typebox'
import { strict } from '../contract/strict.ts'
import { Id } from '../kernel/ids.ts'
import { type Currency, CurrencyCode, SignedMoney, sumToWire, WireMoney } from '../kernel/money.ts'
import { Day, Instant } from '../kernel/time.ts'
import type { Overview, Point } from './overview.ts'
import type { Totals } from './totals.ts'

const count = Type.Integer({ minimum: 0 })

const WithdrawalTotals = Type.Object(
  {
    withdrawals: count,
    amount: WireMoney,
    fees: WireMoney,
    employerFees: WireMoney,
    givenBack: count,
    givenBackAmount: WireMoney,
  },
  {
    title: 'WithdrawalTotals',
    description:
      'Withdrawals and their gross amount, the part of it that is fees paid by members, the fees paid by the employer, and cancelled, failed and returned withdrawals. These count on the day on which the money was given back, and in the pay cycle of the withdrawal.',
    ...strict,
  },
)

export const OverviewAnswer = Type.Object(
  {
    isComplete: Type.Boolean({
      description: 'False if the totals lack the latest withdrawals, because there are many.',
    }),
    members: Type.Object({ active: count, invited: count, inactive: count }, { title: 'MemberCounts', ...strict }),
    openCycle: Type.Union([
      Type.Object(
        {
          id: Id('payCycle'),
          startDate: Day,
          endDate: Day,
          daysLeft: Type.Integer({ minimum: 0, description: 'Including today.' }),
        },
        { title: 'OverviewPayCycle', ...strict },
      ),
      Type.Null(),
    ]),
    currencies: Type.Array(
      Type.Object(
        {
          currency: CurrencyCode,
          available: Type.Unsafe<object>({ ...WireMoney, description: 'The sum that all members can withdraw.' }),
          today: WithdrawalTotals,
          cycle: WithdrawalTotals,
          inFlight: Type.Object(
            { withdrawals: count, netAmount: WireMoney },
            { title: 'InFlight', description: 'Held and submitted withdrawals.', ...strict },
          ),
          float: SignedMoney,
          free: SignedMoney,
          floor: Type.Union([WireMoney, Type.Null()]),
          lowSince: Type.Union([Instant, Type.Null()]),
        },
        { title: 'OverviewCurrency', ...strict },
      ),
    ),
    needsDecision: Type.Object(
      { memberJobs: count, payoutExceptions: count, failingWebhooks: count, cyclesToSettle: count, lowFloats: count },
      { title: 'NeedsDecision', ...strict },
    ),
  },
  { title: 'Overview', ...strict },
)

export const Series = Type.Object(
  {
    currency: CurrencyCode,
    points: Type.Array(
      Type.Object(
        { from: Day, to: Day, payCycleId: Type.Union([Id('payCycle'), Type.Null()]), totals: WithdrawalTotals },
        { title: 'OverviewPoint', ...strict },
      ),
      { description: 'Oldest first. Both days are included.' },
    ),
    isComplete: Type.Boolean(),
  },
  { title: 'OverviewSeries', ...strict },
)

export function overviewOnWire({ members, openCycle, currencies, needsDecision }: Overview, isComplete: boolean) {
  return {
    isComplete,
    members,
    openCycle: openCycle
      ? {
          id: openCycle.id,
          startDate: openCycle.startDate,
          endDate: openCycle.endDate,
          daysLeft: openCycle.daysLeft,
        }
      : null,
    currencies: currencies.map(({ currency, available, inFlight, today, cycle, float, free, floor, lowSince }) => {
      const money = (amount: bigint) => sumToWire({ amount, currency })
      return {
        currency,
        available: money(available),
        today: totalsOnWire(today, currency),
        cycle: totalsOnWire(cycle, currency),
        inFlight: { withdrawals: inFlight.count, netAmount: money(inFlight.netAmount) },
        float: money(float),
        free: money(free),
        floor: floor === null ? null : money(floor),
        lowSince,
      }
    }),
    needsDecision: {
      ...needsDecision,
      lowFloats: currencies.filter(({ lowSince }) => lowSince !== null).length,
    },
  }
}

export function pointOnWire({ from, to, payCycleId, ...point }: Point, currency: Currency) {
  return { from, to, payCycleId, totals: totalsOnWire(point, currency) }
}

function totalsOnWire({ withdrawals, givenBack, ...amounts }: Totals, currency: Currency) {
  const money = (amount: bigint) => sumToWire({ amount, currency })
  return {
    withdrawals,
    amount: money(amounts.grossAmount),
    fees: money(amounts.fees),
    employerFees: money(amounts.employerFees),
    givenBack,
    givenBackAmount: money(amounts.givenBackGrossAmount),
  }
}
