import { admin } from '../../admin.ts'
import { ExportButton } from '../../components/export.tsx'
import { ChoiceFilter, FilterBar, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Id, State, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { PayoutException } from '../../generated/admin.ts'
import { hrefOfId } from '../../places.ts'
import { useList } from '../../query.ts'

const columns: Column<PayoutException>[] = [
  { title: 'Since', cell: ({ openedAt }) => <Time at={openedAt} /> },
  { title: 'State', cell: ({ closedAt }) => <State state={closedAt === null ? 'open' : 'closed'} /> },
  { title: 'Kind', cell: ({ kind }) => inWords(kind) },
  { title: 'Rail', cell: ({ rail }) => rail, isMinor: true },
  { title: 'Exception', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Amount', cell: ({ amount }) => <Amount money={amount} />, isFigure: true },
]

export default function ExceptionsPage() {
  const filters = useFilters()
  const [state] = filters.all('state') as ('open' | 'all')[]
  const list = () => admin.listPayoutExceptions({ take: 50, state })
  const listed = useList(`operator-exceptions?${filters.text}`, list, page => page.exceptions)
  return (
    <Page
      title="Exceptions"
      actions={
        <ExportButton
          name="payout-exceptions"
          columns={[
            ['id', (row: PayoutException) => row.id],
            ['opened_at', row => row.openedAt],
            ['kind', row => row.kind],
            ['rail', row => row.rail],
            ['reference', row => row.reference],
            ['reason', row => row.reason],
            ['closed_at', row => row.closedAt],
            ['decision', row => row.decision],
          ]}
          rows={list}
        />
      }
    >
      <FilterBar>
        <ChoiceFilter
          label="State"
          values={['open', 'all']}
          chosen={filters.all('state')}
          onChange={values => filters.set('state', ...values.slice(-1))}
        />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Exceptions"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={<Empty title="Nothing to decide">Every answer of the banks fitted the books.</Empty>}
        />
      </Panel>
    </Page>
  )
}
