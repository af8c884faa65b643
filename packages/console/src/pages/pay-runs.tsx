import type { PayRun, PayRunStatus } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ExportButton } from '../components/export.tsx'
import { FilterBar, ManyFilter, useFilters } from '../components/filters.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { type ShownPayRun, useSummaries } from '../components/pay-run-summaries.ts'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { hrefOfId } from '../places.ts'
import { useList } from '../query.ts'
import { may } from '../session.ts'
import { PayRunUpload } from './pay-run-upload.tsx'

const statuses = ['Scheduled', 'Available', 'Reverted'] as const

export const payRunColumns: Column<ShownPayRun>[] = [
  {
    title: 'From',
    cell: ({ summary }) => {
      if (summary === undefined) return <span class="quiet">–</span>
      const { fileName, author } = summary
      return (
        <span class="two-lines">
          <b>{fileName ?? (author === null ? 'Pay run' : author.kind === 'api_key' ? 'API' : 'Pay run')}</b>
          {author?.name && <span class="quiet">{author.name}</span>}
        </span>
      )
    },
  },
  { title: 'Sent', cell: ({ summary }) => <Time at={summary?.createdAt} /> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Available from', cell: ({ scheduledFor }) => <Time at={scheduledFor} />, isMinor: true },
  { title: 'Pay run', cell: ({ id }) => <Id id={id} />, isMinor: true },
  {
    title: 'Members',
    cell: ({ summary }) => (summary === undefined ? '' : formatNumber(summary.memberCount)),
    isFigure: true,
    isMinor: true,
  },
  {
    title: 'Lines',
    cell: ({ summary }) => (summary === undefined ? '' : formatNumber(summary.lineCount)),
    isFigure: true,
    isMinor: true,
  },
  {
    title: 'Total',
    cell: ({ summary }) => summary?.totals.map(total => <Amount key={total.currency} money={total} />),
    isFigure: true,
  },
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
          list={{ ...listed, rows: useSummaries(listed.rows) }}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={
            filters.text === '' ? (
              <Empty title="No pay runs yet" curl={firstRequest()}>
                A pay run reports what members have earned. The pay becomes available after the grace period.
              </Empty>
            ) : (
              <Empty title="No pay runs match these filters" />
            )
          }
        />
      </Panel>
    </Page>
  )
}

function firstRequest(): string {
  return `curl ${location.origin}/v1/pay/run \\
  -H "x-api-key: $MIDMONTH_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"payDetails":[{"memberId":"mem_…","money":{"amount":12000,"currency":"GBP"}}]}'`
}
