import type { Money, PayCycle, WithdrawalWithStatus } from '@openwage/sdk'
import { lazy } from 'preact-iso'
import { api } from '../api.ts'
import { Figure, Page, Panel } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Empty, Failure, Skeleton } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Amount, State, Time } from '../components/values.tsx'
import { formatDay, formatNumber, plural } from '../format.ts'
import { at, hrefOfId } from '../places.ts'
import { useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { daysLeft } from './cycles.tsx'

const Plot = lazy(() => import('../components/plot.tsx'))

/** More withdrawals than this are not added up here. */
const withdrawalsMax = 10_000

type Totals = { currency: Money['currency']; gross: number; fees: number; count: number; byDay: Map<string, number> }
type CycleSoFar = { cycle: PayCycle; totals: Totals[]; inFlight: number; isPartial: boolean }

export default function Overview() {
  const soFar = useLoaded('withdrawals-of-cycle', loadCycleSoFar)
  return (
    <Page title="Overview">
      <Decisions />
      {soFar.error !== undefined ? (
        <Failure error={soFar.error} onRetry={soFar.reload} />
      ) : soFar.value === undefined ? (
        <Skeleton lines={6} />
      ) : soFar.value === null ? (
        <Empty title="No pay cycle is open" />
      ) : (
        <SoFar soFar={soFar.value} />
      )}
      <Latest />
    </Page>
  )
}

async function loadCycleSoFar(): Promise<CycleSoFar | null> {
  const { payCycles } = await api.payCycles.list({ statuses: ['Open'], take: 1 })
  const [cycle] = payCycles
  if (cycle === undefined) return null
  const totals = new Map<string, Totals>()
  let inFlight = 0
  let read = 0
  const list = api.withdrawals.list({ payCycleId: cycle.id, statuses: ['held', 'submitted', 'paid'], take: 1_000 })
  for await (const { amount, fee, status, createdAt } of list) {
    read++
    if (read > withdrawalsMax) break
    const { currency } = amount
    const sums = totals.get(currency) ?? { currency, gross: 0, fees: 0, count: 0, byDay: new Map() }
    totals.set(currency, sums)
    sums.gross += amount.amount
    sums.fees += fee.amount
    sums.count++
    const day = createdAt.slice(0, 10)
    sums.byDay.set(day, (sums.byDay.get(day) ?? 0) + amount.amount)
    if (status !== 'paid') inFlight++
  }
  const busiest = [...totals.values()].sort((one, other) => other.count - one.count)
  return { cycle, totals: busiest, inFlight, isPartial: read > withdrawalsMax }
}

function SoFar({ soFar: { cycle, totals, inFlight, isPartial } }: { soFar: CycleSoFar }) {
  const members = useLoaded(
    'members-active',
    async () => (await api.members.list({ statuses: ['active'], take: 1 })).total,
  )
  const invited = useLoaded(
    'members-invited',
    async () => (await api.members.list({ statuses: ['invited'], take: 1 })).total,
  )
  const [main] = totals
  return (
    <>
      <div class="figures">
        {totals.map(({ currency, gross, fees, count }) => (
          <Figure
            key={currency}
            title={`Withdrawn this cycle${totals.length > 1 ? `, ${currency}` : ''}`}
            note={
              <>
                {plural(count, 'withdrawal')}, fees <Amount money={{ amount: fees, currency }} />
              </>
            }
          >
            <Amount money={{ amount: gross, currency }} />
          </Figure>
        ))}
        <Figure title="In flight" note="Held, or at the bank">
          <a href={`${at('withdrawals')}?status=held&status=submitted`}>{formatNumber(inFlight)}</a>
        </Figure>
        {members.value !== undefined && (
          <Figure title="Active members" note={invited.value ? `${formatNumber(invited.value)} invited` : undefined}>
            <a href={`${at('members')}?status=active`}>{formatNumber(members.value)}</a>
          </Figure>
        )}
        <Figure title="Pay cycle" note={`until ${formatDay(cycle.endDate)}`}>
          <a href={hrefOfId(cycle.id)}>{daysLeft(cycle)}</a>
        </Figure>
      </div>
      {isPartial && <p class="notice">The first {formatNumber(withdrawalsMax)} withdrawals are added up.</p>}
      {main !== undefined && (
        <Panel title={`Withdrawn by day, ${main.currency}`}>
          <Plot days={daysOf(cycle)} byDay={main.byDay} currency={main.currency} />
        </Panel>
      )}
    </>
  )
}

function daysOf({ startDate, endDate }: PayCycle): string[] {
  const days: string[] = []
  const end = Date.parse(endDate)
  for (let at = Date.parse(startDate); at <= end; at += 86_400_000) days.push(new Date(at).toISOString().slice(0, 10))
  return days
}

/** What waits for a person. */
function Decisions() {
  const waiting = useLoaded('decisions', async () => {
    const found: { key: string; href: string | undefined; text: string }[] = []
    if (may('payroll')) {
      const [{ jobs }, { payCycles }] = await Promise.all([
        api.memberJobs.list({ take: 50 }),
        api.payCycles.list({ statuses: ['Closed'], take: 3 }),
      ])
      for (const { id, progress } of jobs)
        if (progress.type === 'AwaitingReview')
          found.push({
            key: id,
            href: hrefOfId(id),
            text: `A list of members with ${plural(progress.totalActions, 'change')} waits for approval`,
          })
      for (const cycle of payCycles) {
        const isSettled = await api.payCycles.listSettlementLines(cycle.id, { take: 1 }).then(
          () => true,
          () => false,
        )
        if (!isSettled)
          found.push({
            key: cycle.id,
            href: hrefOfId(cycle.id),
            text: `The cycle that ended on ${formatDay(cycle.endDate)} is not settled`,
          })
      }
    }
    if (may('developer')) {
      const { webhooks } = await api.webhooks.list({ take: 50 })
      for (const { id, status, url } of webhooks)
        if (status !== 'active')
          found.push({ key: id, href: hrefOfId(id), text: `The webhook to ${new URL(url).host} is ${status}` })
    }
    return found
  })
  if (waiting.value === undefined || waiting.value.length === 0) return null
  return (
    <section class="decisions" aria-label="Waiting for you">
      <ul>
        {waiting.value.map(({ key, href, text }) => (
          <li key={key}>
            <a href={href}>{text}</a>
          </li>
        ))}
      </ul>
    </section>
  )
}

const columns: Column<WithdrawalWithStatus>[] = [
  { title: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'Paid out', cell: ({ netAmount }) => <Amount money={netAmount} />, isFigure: true },
]

function Latest() {
  const statuses = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled'] as const
  const { rows, error } = useList(
    'withdrawals-latest',
    () => api.withdrawals.list({ statuses: [...statuses], take: 8 }),
    page => page.withdrawals,
  )
  return (
    <div class="below">
      <Panel
        isFlush
        title="Latest withdrawals"
        aside={
          <a class="link" href={at('withdrawals')}>
            All withdrawals
          </a>
        }
      >
        <Table
          label="Latest withdrawals"
          columns={columns}
          rows={rows}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          error={error}
          empty={<Empty title="No withdrawals yet" />}
        />
      </Panel>
    </div>
  )
}
