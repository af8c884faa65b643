import type { PayRunStatus } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ExportButton } from '../components/export.tsx'
import { FilterBar, ManyFilter, useFilters } from '../components/filters.tsx'
import { Page } from '../components/layout.tsx'
import { type ShownPayRun, useSummaries } from '../components/pay-run-summaries.ts'
import { exampleRequest } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { hrefOfRecord } from '../places.ts'
import { useList } from '../query.ts'
import { may } from '../session.ts'
import { PayRunUpload } from './pay-run-upload.tsx'

const payRunStatuses = ['Scheduled', 'Available', 'Reverted'] as const

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
  const statuses = filters.all('status') as PayRunStatus[]
  const listed = useList(`pay-runs?${filters.text}`, take => api.payRuns.list({ statuses, take }))
  return (
    <Page
      title="Pay runs"
      actions={
        <ExportButton name="pay-runs" columns={['id', 'status', 'scheduledFor', 'payCycleId']} rows={listed.all} />
      }
    >
      {may('payroll') && (
        <div class="above">
          <PayRunUpload />
        </div>
      )}
      <FilterBar>
        <ManyFilter label="State" name="status" values={payRunStatuses} />
      </FilterBar>
      <TablePanel
        label="Pay runs"
        columns={payRunColumns}
        list={{ ...listed, rows: useSummaries(listed.rows) }}
        hrefOf={hrefOfRecord}
        empty="No pay runs yet"
        hint="A pay run reports what members have earned. The pay becomes available after the grace period."
        curl={exampleRequest('/v1/pay/run', {
          payDetails: [{ memberId: 'mem_…', money: { amount: 12000, currency: 'GBP' } }],
        })}
        noMatch="No pay runs match these filters"
      />
    </Page>
  )
}
