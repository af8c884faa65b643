import { toDecimal } from '@midmonth/sdk'
import { ExportButton } from '../../components/export.tsx'
import { FilterBar, OneFilter, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Id, State, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { PayoutException } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { hrefOfId } from '../../places.ts'
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

export default function ExceptionsPage() {
  const filters = useFilters()
  const state = states.find(each => each === filters.get('state')) ?? 'open'
  const list = (take: number) => operators.listPayoutExceptions({ take, state })
  const listed = useList(
    `operator-exceptions ${state}`,
    () => list(50),
    page => page.exceptions,
  )
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
            ['amount', row => row.amount && toDecimal(row.amount)],
            ['currency', row => row.amount?.currency ?? null],
            ['reason', row => row.reason],
            ['file', row => row.fileName],
            ['line', row => row.line],
            ['closed_at', row => row.closedAt],
            ['closed_by', row => row.closedBy],
            ['decision', row => row.decision],
            ['note', row => row.note],
          ]}
          rows={() => list(1_000)}
        />
      }
    >
      <WaitingProposals />
      <FilterBar>
        <OneFilter label="State" name="state" values={states} shown={state} />
      </FilterBar>
      <div class="stack">
        <Panel isFlush>
          <Table
            label="Exceptions"
            columns={columns}
            list={listed}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => hrefOfId(id)}
            empty={
              state === 'open' ? (
                <Empty title="Nothing to decide">
                  Every answer from the banks matches the books or has been decided.
                </Empty>
              ) : (
                <Empty title="No exceptions" />
              )
            }
          />
        </Panel>
        <CloseByText />
        <Rules />
      </div>
    </Page>
  )
}
