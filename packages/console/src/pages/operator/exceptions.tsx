import { ExportButton, type ExportColumn } from '../../components/export.tsx'
import { FilterBar, OneFilter, useFilters } from '../../components/filters.tsx'
import { Page } from '../../components/layout.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Id, State, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { PayoutException } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { hrefOfRecord } from '../../places.ts'
import { useList } from '../../query.ts'
import { CloseByText, Rules } from './not-ours.tsx'
import { WaitingProposals } from './proposals.tsx'

const states = ['open', 'closed', 'all'] as const

const columns: Column<PayoutException>[] = [
  { title: 'Since', cell: ({ openedAt }) => <Time at={openedAt} /> },
  {
    title: 'State',
    cell: ({ decision, proposedBy }) => <State state={decision ?? (proposedBy === null ? 'open' : 'proposed')} />,
  },
  { title: 'Kind', cell: ({ kind }) => inWords(kind) },
  { title: 'Reference', cell: ({ reference }) => reference ?? <span class="quiet">–</span>, isMinor: true },
  { title: 'Rail', cell: ({ rail }) => rail, isMinor: true },
  { title: 'Exception', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Amount', cell: ({ amount }) => <Amount money={amount} />, isFigure: true },
]

const csvColumns: ExportColumn<PayoutException>[] = [
  'id',
  'openedAt',
  'kind',
  'rail',
  'reference',
  'amount',
  ['currency', row => row.amount?.currency ?? null],
  'reason',
  ['file', row => row.fileName],
  'line',
  'closedAt',
  'closedBy',
  'decision',
  'note',
]

export default function ExceptionsPage() {
  const filters = useFilters()
  const state = states.find(each => each === filters.get('state')) ?? 'open'
  const listed = useList(`operator-exceptions ${state}`, take => operators.listPayoutExceptions({ take, state }))
  return (
    <Page title="Exceptions" actions={<ExportButton name="payout-exceptions" columns={csvColumns} rows={listed.all} />}>
      <WaitingProposals />
      <FilterBar>
        <OneFilter label="State" name="state" values={states} shown={state} />
      </FilterBar>
      <div class="stack">
        <TablePanel
          label="Exceptions"
          columns={columns}
          list={listed}
          hrefOf={hrefOfRecord}
          empty={state === 'open' ? 'Nothing to decide' : 'No exceptions'}
          hint={state === 'open' ? 'Every answer from the banks matches the books or has been decided.' : undefined}
        />
        <CloseByText />
        <Rules />
      </div>
    </Page>
  )
}
