import { toDecimal } from '@midmonth/sdk'
import { ExportButton } from '../../components/export.tsx'
import { FilterBar, ManyFilter, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Day, Id, State } from '../../components/values.tsx'
import { formatNumber } from '../../format.ts'
import { type PayoutBatchStatus, type PayoutBatchSummary, payoutBatchStatuses } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { hrefOfId } from '../../places.ts'
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

export function BatchState({ batch: { status, needsApproval, held } }: { batch: PayoutBatchSummary }) {
  if (held) return <State state="held" />
  return <State state={needsApproval && status === 'building' ? 'awaiting_approval' : status} />
}

export default function BatchesPage() {
  const filters = useFilters()
  const rails = useRails()
  const chosen = filters.all('status') as PayoutBatchStatus[]
  const rail = filters.get('rail')
  const list = (take: number) =>
    operators.listPayoutBatches({ take, statuses: chosen, ...(rail === '' ? {} : { rail }) })
  const listed = useList(
    `operator-batches?${filters.text}`,
    () => list(50),
    page => page.batches,
  )
  return (
    <Page
      title="Payouts"
      actions={
        <ExportButton
          name="payout-batches"
          columns={[
            ['id', (row: PayoutBatchSummary) => row.id],
            ['message_id', row => row.messageId],
            ['rail', row => row.rail],
            ['value_date', row => row.valueDate],
            ['status', row => row.status],
            ['payments', row => row.paymentCount],
            ['total', row => toDecimal(row.total)],
            ['currency', row => row.total.currency],
          ]}
          rows={() => list(1_000)}
        />
      }
    >
      <BankFiles rails={rails} />
      <FilterBar>
        <ManyFilter label="State" name="status" values={payoutBatchStatuses} />
        <RailFilter rails={rails} />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Batches"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={
            <Empty title="No batches">
              Only banks that accept files use batches. The simulated bank of a sandbox pays at once.
            </Empty>
          }
        />
      </Panel>
    </Page>
  )
}
