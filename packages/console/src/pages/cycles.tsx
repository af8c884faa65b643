import type { PayCycle } from '@openwage/sdk'
import { api } from '../api.ts'
import { Page, Panel } from '../components/layout.tsx'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Day, Id, State } from '../components/values.tsx'
import { plural } from '../format.ts'
import { hrefOfId } from '../places.ts'
import { useList } from '../query.ts'

const columns: Column<PayCycle>[] = [
  {
    title: 'Days',
    cell: ({ startDate, endDate }) => (
      <>
        <Day day={startDate} short /> – <Day day={endDate} />
      </>
    ),
  },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Left', cell: cycle => daysLeft(cycle), isMinor: true },
  { title: 'Pay cycle', cell: ({ id }) => <Id id={id} />, isMinor: true },
]

export default function Cycles() {
  const listed = useList(
    'pay-cycles',
    () => api.payCycles.list({ take: 50 }),
    page => page.payCycles,
  )
  return (
    <Page title="Pay cycles">
      <Panel isFlush>
        <Table
          label="Pay cycles"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={<Empty title="No pay cycle is open">The operator sets the schedule of the partner.</Empty>}
        />
      </Panel>
    </Page>
  )
}

export function daysLeft({ endDate, status }: PayCycle): string {
  if (status === 'Closed') return ''
  const days = Math.ceil((Date.parse(`${endDate}T23:59:59Z`) - Date.now()) / 86_400_000)
  return days < 1 ? 'ends today' : `${plural(days, 'day')} left`
}
