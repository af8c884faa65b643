import { DownloadButton, ExportButton, type ExportColumn } from '../../components/export.tsx'
import { DayFilter, FilterBar, ManyFilter, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Day, Id, State } from '../../components/values.tsx'
import { type InvoiceStatus, type InvoiceSummary, invoiceStatuses, type PartnerId } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useList } from '../../query.ts'

const columns: Column<InvoiceSummary>[] = [
  { title: 'Number', cell: ({ number }) => <b>{number}</b> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Through', cell: ({ lastDay }) => <Day day={lastDay} />, isMinor: true },
  { title: 'Paid on', cell: ({ paid }) => <Day day={paid === null ? null : paid.on} />, isMinor: true },
  { title: 'Total', cell: ({ sum }) => <Amount money={sum} />, isFigure: true },
]
const partnerColumn: Column<InvoiceSummary> = {
  title: 'Partner',
  cell: ({ partnerId }) => <Id id={partnerId} isLink={false} />,
  isMinor: true,
}

const csvColumns: ExportColumn<InvoiceSummary>[] = [
  'number',
  'partnerId',
  'status',
  'firstDay',
  'lastDay',
  'sum',
  ['currency', row => row.sum.currency],
  ['paid_on', row => row.paid?.on ?? null],
  ['reference', row => row.paid?.reference ?? null],
]

/** The invoices of one partner or of all partners. */
export function useInvoices(filter: { partnerId?: PartnerId; statuses?: InvoiceStatus[] }) {
  return useList(`operator-invoices ${filter.partnerId} ${filter.statuses}`, take =>
    operators.listInvoices({ take, ...filter }),
  )
}

export function InvoiceTable({ title, list, isOfPartner = false }: InvoiceTableProps) {
  return (
    <TablePanel
      title={title}
      label="Invoices"
      columns={isOfPartner ? columns : [...columns.slice(0, 1), partnerColumn, ...columns.slice(1)]}
      list={list}
      hrefOf={({ id, partnerId: of }) => `/console/operator/invoices/${of}/${id}`}
      empty="No invoices"
      hint="Invoices bill the fees that employers pay. Issue them on a partner’s Fees page."
    />
  )
}

type InvoiceTableProps = { title?: string; list: ReturnType<typeof useInvoices>; isOfPartner?: boolean }

/** The invoices and the journal of all partners, for accountants. */
export default function Invoices() {
  const filters = useFilters()
  const listed = useInvoices({ statuses: filters.all('status') as InvoiceStatus[] })
  const [from, to] = [filters.get('from'), filters.get('to')]
  return (
    <Page title="Invoices" actions={<ExportButton name="invoices" columns={csvColumns} rows={listed.all} />}>
      <FilterBar>
        <ManyFilter label="State" name="status" values={invoiceStatuses} />
      </FilterBar>
      <div class="stack">
        <InvoiceTable list={listed} />
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
