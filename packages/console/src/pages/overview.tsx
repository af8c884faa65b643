import type { Money, Overview, OverviewSeries, WithdrawalWithStatus } from '@midmonth/sdk'
import { Fragment } from 'preact'
import { useMemo } from 'preact/hooks'
import { lazy } from 'preact-iso'
import { api } from '../api.ts'
import { OneFilter, useFilters } from '../components/filters.tsx'
import { Decisions, Figure, Page, Panel, Pending } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Spark } from '../components/spark.tsx'
import { Failure, Skeleton } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { useToday } from '../components/today.ts'
import { Amount, State, Time } from '../components/values.tsx'
import { daysBetween } from '../days.ts'
import { formatDay, formatMoney, formatNumber, formatShortDay, formatWholeMoney, plural } from '../format.ts'
import { at, hrefOfId, hrefOfRecord } from '../places.ts'
import { prefetch, useList, useLoaded } from '../query.ts'
import { session } from '../session.ts'
import { withdrawalStatuses } from '../statuses.ts'
import { daysLeft } from './cycles.tsx'

const Plot = lazy(() => import('../components/plot.tsx'))

export function prefetchOverview(): void {
  Plot.preload()
  prefetch('overview', () => api.overview.get())
}

export default function OverviewPage() {
  const { value, error, reload } = useLoaded('overview', () => api.overview.get())
  return (
    <Page title="Overview">
      {error !== undefined ? (
        <Failure error={error} onRetry={reload} />
      ) : value === undefined ? (
        <div class="tiles">
          <div class="panel tile stack">
            <Skeleton lines={6} />
          </div>
          <div class="panel">
            <Skeleton lines={6} />
          </div>
        </div>
      ) : (
        <Programme overview={value} />
      )}
      <Latest />
    </Page>
  )
}

function Programme({ overview }: { overview: Overview }) {
  const { members, openCycle, currencies, isComplete } = overview
  const today = useToday()
  const withdrawals = currencies.reduce((sum, { inFlight }) => sum + inFlight.withdrawals, 0)
  const sorted = busiestFirst(currencies)
  const cycles = useSeries(sorted[0]?.currency, 'cycle').value?.points ?? []
  const days = useSeries(sorted[0]?.currency, 'day').value?.points ?? []
  return (
    <>
      <Waiting overview={overview} />
      {!isComplete && <p class="notice">The figures are being updated.</p>}
      <div class="tiles">
        <div class="panel tile stack">
          <span class="figure-title">Withdrawn this cycle</span>
          <span class="figure-value">
            <Amount money={sorted[0]?.cycle.amount} />
          </span>
          <Others all={sorted.map(({ cycle }) => cycle.amount)} />
          <span class="figure-note">
            {plural(
              sorted.reduce((sum, { cycle }) => sum + cycle.withdrawals, 0),
              'withdrawal',
            )}
          </span>
          <LastCycle points={cycles} />
          {openCycle && (
            <div class="cycle-days">
              <a href={hrefOfId(openCycle.id)}>{daysLeft({ ...openCycle, status: 'Open' }, today)}</a>
              <span class="figure-note">until {formatDay(openCycle.endDate)}</span>
              <progress
                class="gauge"
                aria-label="Elapsed days of the cycle"
                max={daysBetween(openCycle.startDate, openCycle.endDate) + 1}
                value={daysBetween(openCycle.startDate, today)}
              />
            </div>
          )}
        </div>
        <OverTime overview={overview} />
      </div>
      <div class="figures">
        <Figure title="Available to members">
          <Amounts all={sorted.map(({ available }) => available)} />
        </Figure>
        <Figure title="Free float" note={<Floors currencies={sorted} />}>
          <Amounts all={sorted.map(({ free }) => free)} />
        </Figure>
        <Figure title="Fees this cycle">
          <Amounts all={sorted.map(({ cycle }) => cycle.fees)} />
          <Spark values={days.map(({ totals }) => totals.fees.amount)} />
        </Figure>
        <Figure title="Active members" note={`${formatNumber(members.invited)} invited`}>
          <a href={`${at('members')}?status=active`}>{formatNumber(members.active)}</a>
        </Figure>
        <Figure title="Payouts in flight" note="Held or at the bank">
          <a href={`${at('withdrawals')}?status=held&status=submitted`}>{formatNumber(withdrawals)}</a>
        </Figure>
      </div>
    </>
  )
}

function useSeries(currency: Money['currency'] | undefined, by: 'day' | 'cycle') {
  return useLoaded(currency === undefined ? null : `overview-series ${currency} ${by}`, () =>
    api.overview.getSeries({ currency: currency as Money['currency'], by }),
  )
}

/** Compares the amount withdrawn in the open cycle with the previous cycle. */
function LastCycle({ points }: { points: OverviewSeries['points'] }) {
  const [last, open] = points.slice(-2)
  if (last === undefined || open === undefined) return null
  const highest = Math.max(last.totals.amount.amount, open.totals.amount.amount, 1)
  return (
    <dl class="compared">
      {(
        [
          ['This cycle', open],
          ['Last cycle', last],
        ] as const
      ).map(([title, { totals }]) => (
        <Fragment key={title}>
          <dt>{title}</dt>
          <dd>
            <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect width={Math.max((totals.amount.amount / highest) * 100, 0.5)} height="8" />
            </svg>
          </dd>
          <dd>
            <Amount money={totals.amount} />
          </dd>
        </Fragment>
      ))}
    </dl>
  )
}

type Currencies = Overview['currencies']

function busiestFirst(currencies: Currencies): Currencies {
  return currencies.toSorted((one, other) => other.cycle.withdrawals - one.cycle.withdrawals)
}

/** One amount per currency; the first is emphasised. */
function Amounts({ all }: { all: Money[] }) {
  return (
    <>
      <Amount money={all[0]} />
      <Others all={all} />
    </>
  )
}

function Others({ all }: { all: Money[] }) {
  return (
    <>
      {all.slice(1).map(money => (
        <span key={money.currency} class="figure-second">
          <Amount money={money} />
        </span>
      ))}
    </>
  )
}

function Floors({ currencies }: { currencies: Currencies }) {
  const floors = currencies.flatMap(({ floor }) => floor ?? [])
  if (floors.length === 0) return null
  return (
    <>
      Floor{' '}
      {floors.map(floor => (
        <Amount key={floor.currency} money={floor} />
      ))}
    </>
  )
}

/** The amounts withdrawn by day, over the last weeks, or by cycle. The choice is part of the address. */
function OverTime({ overview: { currencies, openCycle } }: { overview: Overview }) {
  const filters = useFilters()
  const by = filters.get('by') === 'cycle' ? 'cycle' : 'day'
  const currency =
    currencies.find(each => each.currency === filters.get('currency'))?.currency ??
    busiestFirst(currencies)[0]?.currency
  const series = useSeries(currency, by)
  if (currency === undefined) return null
  const total = series.value?.points.reduce((sum, { totals }) => sum + totals.amount.amount, 0) ?? 0
  const count = series.value?.points.length ?? 0
  return (
    <Panel
      title={
        series.value === undefined
          ? 'Withdrawn'
          : `${formatMoney({ amount: total, currency })} withdrawn in ${plural(count, by)}`
      }
      aside={
        <div class="actions">
          {currencies.length > 1 && (
            <OneFilter
              label="Currency"
              name="currency"
              values={currencies.map(each => each.currency)}
              shown={currency}
            />
          )}
          <OneFilter label="By" name="by" values={['day', 'cycle']} shown={by} />
        </div>
      }
    >
      {series.value === undefined ? (
        <Pending error={series.error} onRetry={series.reload} lines={4} />
      ) : (
        <Withdrawn series={series.value} openFrom={openCycle?.startDate ?? ''} />
      )}
    </Panel>
  )
}

/** @param openFrom first day of the open cycle, which has a different colour from earlier days and cycles */
function Withdrawn({ series, openFrom }: { series: OverviewSeries; openFrom: string }) {
  const plot = useMemo(() => {
    const { points, currency } = series
    const valuesOf = (isShown: (from: string) => boolean) =>
      points.map(({ from, totals }) => (isShown(from) ? totals.amount.amount : 0))
    return {
      periods: points.map(({ from }) => formatShortDay(from)),
      bars: [
        { title: '', colour: '--accent-2' as const, values: valuesOf(from => from < openFrom) },
        { title: '', colour: '--accent' as const, values: valuesOf(from => from >= openFrom) },
      ],
      format: (amount: number) => formatMoney({ amount, currency }),
      formatTick: (amount: number) => formatWholeMoney({ amount, currency }),
    }
  }, [series, openFrom])
  return <Plot caption="Amounts over time" {...plot} />
}

/** Lists matters that need a person's decision. */
function Waiting({ overview: { needsDecision } }: { overview: Overview }) {
  const { memberJobs, failingWebhooks, cyclesToSettle, lowFloats, payoutExceptions } = needsDecision
  const exceptions = session.value?.isOperator ? '/console/operator/exceptions?state=open' : undefined
  const waiting: [number, string | undefined, string, string][] = [
    [memberJobs, at('lists'), 'import awaits approval', 'imports await approval'],
    [cyclesToSettle, at('cycles'), 'closed cycle is not settled', 'closed cycles are not settled'],
    [failingWebhooks, at('webhooks'), 'webhook is failing or disabled', 'webhooks are failing or disabled'],
    [lowFloats, undefined, 'float is below its floor', 'floats are below their floors'],
    [
      payoutExceptions,
      exceptions,
      'bank answer needs an operator’s decision',
      'bank answers need an operator’s decision',
    ],
  ]
  return (
    <Decisions label="Waiting for a decision">
      {waiting
        .filter(([count]) => count > 0)
        .map(([count, href, one, many]) => {
          const text = plural(count, one, many)
          return href === undefined ? text : <a href={href}>{text}</a>
        })}
    </Decisions>
  )
}

const columns: Column<WithdrawalWithStatus>[] = [
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Paid out', cell: ({ netAmount }) => <Amount money={netAmount} />, isFigure: true },
]

function Latest() {
  const load = (take: number) => api.withdrawals.list({ statuses: withdrawalStatuses, take })
  const { rows, error, reload } = useList('withdrawals-latest', load, { take: 8 })
  return (
    <div class="below">
      <TablePanel
        title="Latest withdrawals"
        aside={
          <a class="link" href={at('withdrawals')}>
            All withdrawals
          </a>
        }
        columns={columns}
        list={{ rows, error, reload }}
        hrefOf={hrefOfRecord}
        empty="No withdrawals yet"
      />
    </div>
  )
}
