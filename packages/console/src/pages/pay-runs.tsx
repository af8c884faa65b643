import type { PayRun, PayRunStatus } from '@openwage/sdk'
import { api } from '../api.ts'
import { ExportButton } from '../components/export.tsx'
import { FilterBar, ManyFilter, useFilters } from '../components/filters.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { hrefOfId } from '../places.ts'
import { useList } from '../query.ts'
import { may } from '../session.ts'
import { PayRunUpload } from './pay-run-upload.tsx'

const statuses = ['Scheduled', 'Available', 'Reverted'] as const

export const payRunColumns: Column<PayRun>[] = [
  { title: 'Available from', cell: ({ scheduledFor }) => <Time at={scheduledFor} /> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Pay run', cell: ({ id }) => <Id id={id} /> },
  { title: 'Pay cycle', cell: ({ payCycleId }) => <Id id={payCycleId} />, isMinor: true },
]

export default function PayRuns() {
  const filters = useFilters()
  const chosen = filters.all('status') as PayRunStatus[]
  const query = chosen.length > 0 ? { statuses: chosen } : {}
  const listed = useList(
    `pay-runs?${filters.text}`,
    () => api.payRuns.list({ ...query, take: 50 }),
    page => page.payRuns,
  )
  return (
    <Page
      title="Pay runs"
      actions={
        <ExportButton
          name="pay-runs"
          columns={[
            ['id', (row: PayRun) => row.id],
            ['status', row => row.status],
            ['scheduled_for', row => row.scheduledFor],
            ['pay_cycle_id', row => row.payCycleId],
          ]}
          rows={() => api.payRuns.list({ ...query, take: 1_000 })}
        />
      }
    >
      {may('payroll') && (
        <div class="above">
          <PayRunUpload />
        </div>
      )}
      <FilterBar>
        <ManyFilter label="State" name="status" values={statuses} />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Pay runs"
          columns={payRunColumns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={
            filters.text === '' ? (
              <Empty title="No pay runs yet" curl={firstRequest()}>
                A pay run says what members have earned. It becomes available after the grace period.
              </Empty>
            ) : (
              <Empty title="No pay run matches these filters" />
            )
          }
        />
      </Panel>
    </Page>
  )
}

function firstRequest(): string {
  return `curl ${location.origin}/v1/pay/run \\
  -H "x-api-key: $OPENWAGE_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"payDetails":[{"memberId":"mem_…","money":{"amount":12000,"currency":"GBP"}}]}'`
}
