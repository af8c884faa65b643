import { ExportButton, type ExportColumn } from '../../components/export.tsx'
import { FilterBar, ManyFilter, useFilters } from '../../components/filters.tsx'
import { Page } from '../../components/layout.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Day, Id, State } from '../../components/values.tsx'
import { formatNumber } from '../../format.ts'
import { type PayoutBatchStatus, type PayoutBatchSummary, payoutBatchStatuses } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { hrefOfRecord } from '../../places.ts'
import { useList } from '../../query.ts'
import { BankFiles } from './bank-files.tsx'
import { useRails } from './holds.tsx'
import { RailFilter } from './rail-filter.tsx'

const columns: Column<PayoutBatchSummary>[] = [
  { title: 'Value date', cell: ({ valueDate }) => <Day day={valueDate} /> },
  { title: 'State', cell: batch => <BatchState batch={batch} /> },
  { title: 'Rail', cell: ({ rail }) => rail, isMinor: true },
  { title: 'Batch', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Payments', cell: ({ paymentCount }) => formatNumber(paymentCount), isFigure: true, isMinor: true },
  { title: 'Total', cell: ({ total }) => <Amount money={total} />, isFigure: true },
]

const csvColumns: ExportColumn<PayoutBatchSummary>[] = [
  'id',
  'messageId',
  'rail',
  'valueDate',
  'status',
  ['payments', row => row.paymentCount],
  'total',
  ['currency', row => row.total.currency],
]

export function BatchState({ batch: { status, needsApproval, held } }: { batch: PayoutBatchSummary }) {
  if (held) return <State state="held" />
  return <State state={needsApproval && status === 'building' ? 'awaiting_approval' : status} />
}

export default function BatchesPage() {
  const filters = useFilters()
  const rails = useRails()
  const statuses = filters.all('status') as PayoutBatchStatus[]
  const listed = useList(`operator-batches?${filters.text}`, take =>
    operators.listPayoutBatches({ take, statuses, rail: filters.given('rail') }),
  )
  return (
    <Page title="Payouts" actions={<ExportButton name="payout-batches" columns={csvColumns} rows={listed.all} />}>
      <BankFiles rails={rails} />
      <FilterBar>
        <ManyFilter label="State" name="status" values={payoutBatchStatuses} />
        <RailFilter rails={rails} />
      </FilterBar>
      <TablePanel
        label="Batches"
        columns={columns}
        list={listed}
        hrefOf={hrefOfRecord}
        empty="No batches"
        hint="Only banks that accept files use batches. The simulated bank of a sandbox pays at once."
      />
    </Page>
  )
}
