import type { Reader } from '../database/database.ts'
import * as float from '../float/float.ts'
import type { Currency } from '../kernel/money.ts'
import { addDays, type Day, dayIn, daysBetween } from '../kernel/time.ts'
import * as ledger from '../ledger/ledger.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import * as members from '../members/members.ts'
import type { Partner } from '../partners/partners.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import * as webhooks from '../webhooks/webhooks.ts'
import * as withdrawals from '../withdrawals/inspection.ts'
import { noTotals, ofDays, ofPeriods, type Totals } from './totals.ts'

/** A programme at a glance. Reads nothing that grows with its history. */
export type Overview = Awaited<ReturnType<typeof readOverview>>

export async function readOverview(
  db: Reader,
  { partner, now }: { partner: Pick<Partner, 'id' | 'timeZone'>; now: Date },
) {
  const { id: partnerId, timeZone } = partner
  const today = dayIn(timeZone, now)
  const cycle = await payCycles.findOpen(db, partnerId)
  const floats = await float.read(db, partnerId)
  const available = cycle === undefined ? [] : await ledger.sumCycle(db, { partnerId, payCycleId: cycle.id })
  const inFlight = await withdrawals.sumUnfinished(db, partnerId)
  const ofToday = await ofPeriods(db, { partnerId, kind: 'day', periods: [today] })
  const ofCycle = cycle === undefined ? [] : await ofPeriods(db, { partnerId, kind: 'cycle', periods: [cycle.id] })
  const inCurrency = <T extends { currency: Currency }>(rows: T[], currency: Currency) =>
    rows.find(each => each.currency === currency)
  return {
    members: await members.countByStatus(db, { partnerId }),
    openCycle: cycle && { ...cycle, daysLeft: Math.max(0, daysBetween(today, cycle.endDate) + 1) },
    currencies: floats.map(each => ({
      ...each,
      available: inCurrency(available, each.currency)?.available ?? 0n,
      inFlight: inCurrency(inFlight, each.currency) ?? { count: 0, netAmount: 0n },
      today: inCurrency(ofToday, each.currency) ?? noTotals,
      cycle: inCurrency(ofCycle, each.currency) ?? noTotals,
    })),
    needsDecision: {
      memberJobs: await memberImports.countInReview(db, partnerId),
      payoutExceptions: await exceptions.countOpen(db, { partnerId }),
      failingWebhooks: await webhooks.countFailing(db, partnerId),
      cyclesToSettle: await payCycles.countUnsettled(db, partnerId),
    },
  }
}

/** The totals of one day or one pay cycle, both days included. */
export type Point = Totals & { from: Day; to: Day; payCycleId: string | null }

/** The totals of each day of a range, first and last included, oldest first. */
export async function seriesByDay(
  db: Reader,
  { from, to, ...asked }: { partnerId: string; currency: Currency; from: Day; to: Day },
): Promise<Point[]> {
  const known = new Map((await ofDays(db, { ...asked, from, to })).map(({ period, ...totals }) => [period, totals]))
  return Array.from({ length: daysBetween(from, to) + 1 }, (_, index) => {
    const day = addDays(from, index)
    return { ...noTotals, ...known.get(day), from: day, to: day, payCycleId: null }
  })
}

/** The totals of the last pay cycles, oldest first. */
export async function seriesByCycle(
  db: Reader,
  { partnerId, currency, countMax }: { partnerId: string; currency: Currency; countMax: number },
): Promise<Point[]> {
  const page = { skip: 0, take: countMax }
  const { payCycles: cycles } = await payCycles.list(db, { partnerId, statuses: [], page })
  const asked = { partnerId, currency, kind: 'cycle', periods: cycles.map(({ id }) => id) } as const
  const known = new Map((await ofPeriods(db, asked)).map(({ period, ...totals }) => [period, totals]))
  return cycles
    .map(({ id, startDate, endDate }) => ({
      ...noTotals,
      ...known.get(id),
      from: startDate,
      to: endDate,
      payCycleId: id,
    }))
    .toReversed()
}
