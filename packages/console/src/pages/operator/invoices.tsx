import { toDecimal } from '@midmonth/sdk'
import { DownloadButton, ExportButton } from '../../components/export.tsx'
import { DayFilter, FilterBar, ManyFilter, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Day, Id, State } from '../../components/values.tsx'
import { type InvoiceStatus, type InvoiceSummary, invoiceStatuses, type PartnerId } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useList } from '../../query.ts'

const columns: Column<InvoiceSummary>[] = [
  { title: 'Number', cell: ({ number }) => <b>{number}</b> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Through', cell: ({ lastDay }) => <Day day={lastDay} />, isMinor: true },
  { title: 'Paid on', cell: ({ paid }) => (paid === null ? '–' : <Day day={paid.on} />), isMinor: true },
  { title: 'Total', cell: ({ sum }) => <Amount money={sum} />, isFigure: true },
]
const partnerColumn: Column<InvoiceSummary> = {
  title: 'Partner',
  cell: ({ partnerId }) => <Id id={partnerId} isLink={false} />,
  isMinor: true,
}

/** The invoices of one partner or of all partners. */
export function InvoiceTable({ partnerId, statuses }: { partnerId?: PartnerId; statuses?: InvoiceStatus[] }) {
  const listed = useList(
    `operator-invoices ${partnerId} ${statuses}`,
    () => operators.listInvoices({ take: 50, partnerId, ...(statuses?.length ? { statuses } : {}) }),
    page => page.invoices,
  )
  return (
    <Table
      label="Invoices"
      columns={partnerId === undefined ? [...columns.slice(0, 1), partnerColumn, ...columns.slice(1)] : columns}
      list={listed}
      keyOf={({ id }) => id}
      hrefOf={({ id, partnerId: of }) => `/console/operator/invoices/${of}/${id}`}
      empty={
        <Empty title="No invoices">
          Invoices bill the fees that employers pay. Issue them on a partner’s Fees page.
        </Empty>
      }
    />
  )
}

/** The invoices and the journal of all partners, for accountants. */
export default function Invoices() {
  const filters = useFilters()
  const statuses = filters.all('status') as InvoiceStatus[]
  const [from, to] = [filters.get('from'), filters.get('to')]
  return (
    <Page
      title="Invoices"
      actions={
        <ExportButton
          name="invoices"
          columns={[
            ['number', (row: InvoiceSummary) => row.number],
            ['partner_id', row => row.partnerId],
            ['status', row => row.status],
            ['first_day', row => row.firstDay],
            ['last_day', row => row.lastDay],
            ['sum', row => toDecimal(row.sum)],
            ['currency', row => row.sum.currency],
            ['paid_on', row => row.paid?.on ?? null],
            ['reference', row => row.paid?.reference ?? null],
          ]}
          rows={() => operators.listInvoices({ take: 1_000, ...(statuses.length ? { statuses } : {}) })}
        />
      }
    >
      <FilterBar>
        <ManyFilter label="State" name="status" values={invoiceStatuses} />
      </FilterBar>
      <div class="stack">
        <Panel isFlush>
          <InvoiceTable statuses={statuses} />
        </Panel>
        <Panel title="Journal">
          <p class="below-s">
            Debits and credits of all partners by day and account, for your accounting software. Choose past days.
          </p>
          <FilterBar>
            <DayFilter label="From" name="from" />
            <DayFilter label="To" name="to" />
            {from !== '' && to !== '' && (
              <DownloadButton name={`journal-${from}-${to}.csv`} file={() => operators.exportJournal({ from, to })}>
                Download the journal
              </DownloadButton>
            )}
          </FilterBar>
        </Panel>
      </div>
    </Page>
  )
}
