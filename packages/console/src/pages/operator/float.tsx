import { ExportButton, type ExportColumn } from '../../components/export.tsx'
import { FilterBar, OneFilter, useFilters } from '../../components/filters.tsx'
import { Page } from '../../components/layout.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Day, Id } from '../../components/values.tsx'
import type { AccountDay } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'
import { useRails } from './holds.tsx'
import { RailFilter } from './rail-filter.tsx'

const columns: Column<AccountDay>[] = [
  { title: 'Day', cell: ({ day }) => <Day day={day} /> },
  { title: 'Rail', cell: ({ rail }) => rail, isMinor: true },
  { title: 'Account', cell: ({ account }) => <code>{account}</code>, isMinor: true },
  { title: 'Floats of', cell: ({ debtors }) => <Owners debtors={debtors} />, isMinor: true },
  { title: 'Bank balance', cell: ({ bank }) => <Amount money={bank} />, isFigure: true },
  { title: 'Book balance', cell: ({ book }) => <Amount money={book} />, isFigure: true, isMinor: true },
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

const csvColumns: ExportColumn<AccountDay>[] = [
  'day',
  'rail',
  'account',
  'bank',
  'book',
  'difference',
  ['currency', row => row.bank.currency],
]

function Owners({ debtors }: { debtors: string[] }) {
  const others = debtors.filter(debtor => debtor !== 'default')
  return (
    <>
      {debtors.includes('default') && 'all partners without a separate account'}{' '}
      {others.map(id => (
        <Id key={id} id={id} />
      ))}
    </>
  )
}

const spans = ['31', '92', '366']

/** Compares the closing balance of each day's bank statement with the books. */
export default function Float() {
  const filters = useFilters()
  const rails = useRails().filter(({ kind }) => kind === 'files')
  const days = filters.get('days') || '31'
  const load = () => operators.listAccountDays({ days: Number(days), rail: filters.given('rail') })
  const { value, error, reload } = useLoaded(`operator-account-days ${filters.text}`, load)
  const readAll = async () => (await load()).accountDays
  return (
    <Page title="Float history" actions={<ExportButton name="float-by-day" columns={csvColumns} rows={readAll} />}>
      <FilterBar>
        <OneFilter label="Period" name="days" values={spans} labelOf={span => `${span} days`} shown={days} />
        <RailFilter rails={rails} />
      </FilterBar>
      {value?.accountDays.some(({ difference }) => difference.amount !== 0) && (
        <p class="notice below-s">
          A difference is caused by payments that the bank has booked but not yet reported, or by{' '}
          <a class="link" href="/console/operator/exceptions">
            open exceptions
          </a>
          .
        </p>
      )}
      <TablePanel
        label="Float history"
        columns={columns}
        list={{ rows: value?.accountDays, error, reload }}
        keyOf={({ rail, account, day }) => `${rail} ${account} ${day}`}
        empty="No statements yet"
        hint="The daily statements of connected banks are compared with the books. The simulated bank has no statements."
      />
    </Page>
  )
}
