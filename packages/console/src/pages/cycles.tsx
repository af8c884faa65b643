import { ApiError, type PayCycle } from '@midmonth/sdk'
import { useLocation } from 'preact-iso'
import { api } from '../api.ts'
import { authorName, useAuthors } from '../components/author.tsx'
import { CycleCalendar } from '../components/cycle-calendar.tsx'
import { ExportButton } from '../components/export.tsx'
import { useFilters } from '../components/filters.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { exampleRequest } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { useToday } from '../components/today.ts'
import { Day, Id, State, Time } from '../components/values.tsx'
import { daysBetween } from '../days.ts'
import { plural } from '../format.ts'
import { hrefOfRecord } from '../places.ts'
import { useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'

// Four years of weekly cycles.
const cyclesMax = 200
// Several months of pay runs.
const payRunsMax = 500
/** Loads the settlement state of only this many cycles: older cycles rarely change. */
const withSettlementMax = 12

export default function Cycles() {
  const filters = useFilters()
  const { path } = useLocation()
  const today = useToday()
  const listed = useList('pay-cycles', take => api.payCycles.list({ take }), { take: cyclesMax })
  const cycles = listed.rows ?? []
  const { value: payRuns = [] } = useLoaded('pay-runs-of-calendar', async () => {
    const page = await api.payRuns.list({ statuses: ['Available', 'Scheduled'], take: payRunsMax })
    return page.payRuns
  })
  const hrefOfMonth = (month: string) => `${path}?month=${month}`
  const closed = cycles.filter(({ status }) => status === 'Closed').slice(0, withSettlementMax)
  return (
    <Page
      title="Pay cycles"
      actions={<ExportButton name="pay-cycles" columns={['id', 'startDate', 'endDate', 'status']} rows={listed.all} />}
    >
      <div class="stack">
        {cycles.length > 0 && (
          <Panel>
            <CycleCalendar
              month={monthOf(filters.get('month'), { cycles, today })}
              today={today}
              cycles={cycles}
              payRuns={payRuns}
              hrefOfMonth={hrefOfMonth}
            />
          </Panel>
        )}
        <TablePanel
          label="Pay cycles"
          columns={columnsFor({ mayBeSettled: new Set(may('payroll', 'support', 'viewer') ? closed : []), today })}
          list={listed}
          hrefOf={hrefOfRecord}
          empty="No pay cycles yet"
          hint="The operator sets the partner’s pay schedule."
          curl={exampleRequest('/v1/pay/cycles')}
        />
      </div>
    </Page>
  )
}

type ColumnsForProps = { mayBeSettled: ReadonlySet<PayCycle>; today: string }

function columnsFor({ mayBeSettled, today }: ColumnsForProps): Column<PayCycle>[] {
  return [
    {
      title: 'Days',
      cell: ({ startDate, endDate }) => (
        <>
          <Day day={startDate} short /> – <Day day={endDate} />
        </>
      ),
    },
    { title: 'State', cell: ({ status }) => <State state={status} /> },
    {
      title: 'Next',
      cell: cycle => (mayBeSettled.has(cycle) ? <SettlementState cycle={cycle} /> : daysLeft(cycle, today)),
    },
    { title: 'Pay cycle', cell: ({ id }) => <Id id={id} />, isMinor: true },
  ]
}

function SettlementState({ cycle: { id } }: { cycle: PayCycle }) {
  const { value, error } = useLoaded(`cycle-settled ${id}`, () => api.payCycles.listSettlementLines(id, { take: 1 }))
  const settled = useAuthors('pay_cycle.settle', [id]).get(id)
  if (error instanceof ApiError && error.status === 404) return <State state="to settle" tone="wait" />
  if (value === undefined) return null
  return (
    <span class="facts row row-wrap">
      <State state="settled" />
      {settled && (
        <span class="quiet">
          <Time at={settled.at} />, by {authorName(settled)}
        </span>
      )}
    </span>
  )
}

/** The month in the address; by default today's month if today is in the open cycle, otherwise the month in which the open cycle ends. */
function monthOf(asked: string, { cycles, today }: { cycles: PayCycle[]; today: string }): string {
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(asked)) return asked
  const open = cycles.find(({ status }) => status === 'Open')
  if (open === undefined || (open.startDate <= today && today <= open.endDate)) return today.slice(0, 7)
  return open.endDate.slice(0, 7)
}

export function daysLeft({ endDate, status }: Pick<PayCycle, 'endDate' | 'status'>, today: string): string {
  const days = daysBetween(today, endDate)
  if (status === 'Closed' || days < 0) return ''
  return days === 0 ? 'ends today' : `${plural(days, 'day')} left`
}
