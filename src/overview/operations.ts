import { Type } from 'typebox'
import type { Reader } from '../database/database.ts'
import { named, operationWith } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { type Currency, CurrencyCode } from '../kernel/money.ts'
import { described, strictObject, wordOf } from '../kernel/schemas.ts'
import { addDays, dayIn, daysBetween } from '../kernel/time.ts'
import { listCurrencies } from '../tiers/tiers.ts'
import { readers } from '../users/roles.ts'
import { readOverview, seriesByCycle, seriesByDay } from './overview.ts'
import { OverviewAnswer, overviewOnWire, pointOnWire, Series } from './schema.ts'
import { addUpLatest } from './totals.ts'

const operation = operationWith({ tag: 'Service', scope: 'pay:read', roles: readers })

const limits = {
  daysDefault: 30,
  daysMax: 366,
  // Two years of the shortest cycles.
  cyclesMax: 104,
  cyclesDefault: 12,
}

const GivenDay = Type.String({ format: 'date', pattern: '^(19|[2-9][0-9])', examples: ['2026-03-31'] })

const getOverview = operation({
  route: 'GET /v1/overview',
  mayReadReplica: true,
  sdk: 'overview.get',
  summary: 'Get an overview',
  description:
    'Available and withdrawn money, payouts in flight, the float, and pending decisions. Days are days in your time zone. A sum beyond 9007199254740991 is shown as that number.',
  success: { description: 'The overview.', schema: OverviewAnswer },
  async run({ partner, now, context }, { read }) {
    const isComplete = await addUpLatest(context.db, partner.id)
    return await read(async reader => ({
      body: overviewOnWire(await readOverview(reader, { partner, now }), isComplete),
    }))
  },
})

const getOverviewSeries = operation({
  route: 'GET /v1/overview/series',
  mayReadReplica: true,
  sdk: 'overview.getSeries',
  summary: 'Get withdrawals over time',
  description: `By day, for up to ${limits.daysMax} days (by default the last ${limits.daysDefault}), or by pay cycle, for the last cycles.`,
  query: strictObject({
    currency: Type.Optional(described(CurrencyCode, 'The default is the currency of your first tier.')),
    by: Type.Optional(wordOf(['day', 'cycle'], { default: 'day' })),
    from: Type.Optional(described(GivenDay, 'First day. Only with `by=day`.')),
    to: Type.Optional(described(GivenDay, 'Last day. Only with `by=day`.')),
    cycles: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.cyclesMax,
        default: limits.cyclesDefault,
        description: 'How many pay cycles, including the open one. Only with `by=cycle`.',
      }),
    ),
  }),
  success: { description: 'The series.', schema: Series },
  async run({ partner, now, query, context }, { read }) {
    const { by = 'day', cycles } = query
    const days = by === 'day' ? daysOf(query, dayIn(partner.timeZone, now)) : undefined
    if (days !== undefined && cycles !== undefined)
      throw problem('QueryValidation', 'cycles requires by=cycle; omit cycles', { path: 'cycles' })
    const isComplete = await addUpLatest(context.db, partner.id)
    return await read(async reader => {
      const currency = query.currency ?? (await firstCurrency(reader, partner.id))
      const asked = { partnerId: partner.id, currency }
      const points =
        days === undefined
          ? await seriesByCycle(reader, { ...asked, countMax: cycles ?? limits.cyclesDefault })
          : await seriesByDay(reader, { ...asked, ...days })
      return { body: { currency, points: points.map(each => pointOnWire(each, currency)), isComplete } }
    })
  },
})

export const overviewOperations = named({ getOverview, getOverviewSeries })

/** @throws Problem `QueryValidation` if the partner has no tier yet */
async function firstCurrency(db: Reader, partnerId: string): Promise<Currency> {
  const [currency] = [...(await listCurrencies(db, partnerId)).values()].sort()
  if (currency === undefined)
    throw problem('QueryValidation', 'You have no tier yet; name a currency', { path: 'currency' })
  return currency
}

/** @throws Problem `QueryValidation` */
function daysOf({ from, to }: { from?: string; to?: string }, today: string): { from: string; to: string } {
  const last = to ?? today
  const first = from ?? addDays(last, 1 - limits.daysDefault)
  const length = daysBetween(first, last) + 1
  if (length < 1) throw problem('QueryValidation', 'from must not be after to', { path: 'from' })
  if (length > limits.daysMax)
    throw problem('QueryValidation', `from and to may span up to ${limits.daysMax} days`, { path: 'from' })
  return { from: first, to: last }
}
