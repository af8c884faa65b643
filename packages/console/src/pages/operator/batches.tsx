import { admin } from '../../admin.ts'
import { act } from '../../components/act.ts'
import { DropZone } from '../../components/drop-zone.tsx'
import { ExportButton } from '../../components/export.tsx'
import { ChoiceFilter, FilterBar, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Day, Id, State } from '../../components/values.tsx'
import { formatNumber, inWords, plural } from '../../format.ts'
import type { PayoutBatchStatus, PayoutBatchSummary } from '../../generated/admin.ts'
import { hrefOfId } from '../../places.ts'
import { useList, useLoaded } from '../../query.ts'

const statuses = [
  'building',
  'approved',
  'sent',
  'acknowledged',
  'settled',
  'rejected',
  'cancelled',
] as const satisfies PayoutBatchStatus[]

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

/** Takes files that the bank has given by hand: statements, reports, returns. */
function BankFiles() {
  const rails = useLoaded('operator-rails', () => admin.listRails()).value?.rails ?? []
  const upload = async (rail: string, file: File) => {
    await act(
      () => admin.importBankFile(rail, file, { name: file.name }),
      ({ result, records }) => `${inWords(result)}: ${plural(records, 'record')}`,
      'operator-',
    )
  }
  const byHand = rails.filter(({ isByHand }) => isByHand)
  if (byHand.length === 0) return null
  return (
    <div class="halves below-s">
      {byHand.map(({ name, currency }) => (
        <DropZone
          key={name}
          label={`Drop a file of the bank for ${name} (${currency}) here`}
          kinds={null}
          onFile={file => void upload(name, file)}
        />
      ))}
    </div>
  )
}

export default function BatchesPage() {
  const filters = useFilters()
  const chosen = filters.all('status') as PayoutBatchStatus[]
  const list = () => admin.listPayoutBatches({ take: 50, statuses: chosen })
  const listed = useList(`operator-batches?${filters.text}`, list, page => page.batches)
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
            ['total_minor_units', row => row.total.amount],
            ['currency', row => row.total.currency],
          ]}
          rows={list}
        />
      }
    >
      <BankFiles />
      <FilterBar>
        <ChoiceFilter
          label="State"
          values={statuses}
          chosen={chosen}
          onChange={values => filters.set('status', ...values)}
        />
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
              Banks that take files are paid in batches. The simulated bank of a sandbox is paid at once, without any.
            </Empty>
          }
        />
      </Panel>
    </Page>
  )
}
