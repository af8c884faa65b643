import { Type } from 'typebox'
import { Id } from '../kernel/ids.ts'
import { type Currency, CurrencyCode, SignedMoney, sumToWire, WireMoney } from '../kernel/money.ts'
import { described, namedObject, nullable, strict } from '../kernel/schemas.ts'
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

export const OverviewAnswer = namedObject('Overview', {
  isComplete: Type.Boolean({
    description: 'False if the totals lack the latest withdrawals, because there are many.',
  }),
  members: namedObject('MemberCounts', { active: count, invited: count, inactive: count }),
  openCycle: nullable(
    namedObject('OverviewPayCycle', {
      id: Id('payCycle'),
      startDate: Day,
      endDate: Day,
      daysLeft: Type.Integer({ minimum: 0, description: 'Including today.' }),
    }),
  ),
  currencies: Type.Array(
    namedObject('OverviewCurrency', {
      currency: CurrencyCode,
      available: described(WireMoney, 'The sum that all members can withdraw.'),
      today: WithdrawalTotals,
      cycle: WithdrawalTotals,
      inFlight: Type.Object(
        { withdrawals: count, netAmount: WireMoney },
        { title: 'InFlight', description: 'Held and submitted withdrawals.', ...strict },
      ),
      float: SignedMoney,
      free: SignedMoney,
      floor: nullable(WireMoney),
      lowSince: nullable(Instant),
    }),
  ),
  needsDecision: namedObject('NeedsDecision', {
    memberJobs: count,
    payoutExceptions: count,
    failingWebhooks: count,
    cyclesToSettle: count,
    lowFloats: count,
  }),
})

export const Series = namedObject('OverviewSeries', {
  currency: CurrencyCode,
  points: Type.Array(
    namedObject('OverviewPoint', {
      from: Day,
      to: Day,
      payCycleId: nullable(Id('payCycle')),
      totals: WithdrawalTotals,
    }),
    { description: 'Oldest first. Both days are included.' },
  ),
  isComplete: Type.Boolean(),
})

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
