import { admin } from '../../admin.ts'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Day } from '../../components/values.tsx'
import type { AccountDay } from '../../generated/admin.ts'
import { useLoaded } from '../../query.ts'

const columns: Column<AccountDay>[] = [
  { title: 'Day', cell: ({ day }) => <Day day={day} /> },
  { title: 'Rail', cell: ({ rail }) => rail, isMinor: true },
  { title: 'Account', cell: ({ account }) => <code>{account}</code>, isMinor: true },
  { title: 'The bank says', cell: ({ bank }) => <Amount money={bank} />, isFigure: true },
  { title: 'The books say', cell: ({ book }) => <Amount money={book} />, isFigure: true, isMinor: true },
  {
    title: 'Difference',
    cell: ({ difference }) => (
      <span class={difference.amount === 0 ? undefined : 'bad'}>
        <Amount money={difference} signed />
      </span>
    ),
    isFigure: true,
  },
]

/** What the bank's statements say at the end of each day, beside what the books say. */
export default function Float() {
  const { value, error, reload } = useLoaded('operator-account-days', () => admin.listAccountDays())
  return (
    <Page title="Float by day">
      <Panel isFlush>
        <Table
          label="Float by day"
          columns={columns}
          list={{ rows: value?.accountDays, error, reload }}
          keyOf={({ rail, account, day }) => `${rail} ${account} ${day}`}
          empty={
            <Empty title="No statements yet">
              Banks that give statements are compared with the books, day by day. The simulated bank gives none.
            </Empty>
          }
        />
      </Panel>
    </Page>
  )
}
