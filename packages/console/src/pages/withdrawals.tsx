import { toDecimal, type WithdrawalStatus, type WithdrawalWithStatus } from '@openwage/sdk'
import { api } from '../api.ts'
import { ExportButton } from '../components/export.tsx'
import { ChoiceFilter, DayFilter, FilterBar, TextFilter, useFilters } from '../components/filters.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { hrefOfId } from '../places.ts'
import { prefetchList, useList } from '../query.ts'

const statuses = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled'] as const

const rowsOf = (page: { withdrawals: WithdrawalWithStatus[] }) => page.withdrawals

export function prefetchWithdrawals(): void {
  prefetchList('withdrawals?', () => api.withdrawals.list({ statuses: [...statuses], take: 50 }), rowsOf)
}

export default function Withdrawals() {
  const filters = useFilters()
  const chosen = filters.all('status') as WithdrawalStatus[]
  const memberId = filters.get('member')
  const query = {
    statuses: chosen.length > 0 ? chosen : [...statuses],
    ...(memberId === '' ? {} : { memberId: memberId as `mem_${string}` }),
    ...(filters.get('from') === '' ? {} : { fromDate: filters.get('from') }),
    ...(filters.get('to') === '' ? {} : { toDate: filters.get('to') }),
  }
  const listed = useList(`withdrawals?${filters.text}`, () => api.withdrawals.list({ ...query, take: 50 }), rowsOf)
  return (
    <Page
      title="Withdrawals"
      actions={
        <ExportButton
          name="withdrawals"
          columns={csvColumns}
          rows={() => api.withdrawals.list({ ...query, take: 1_000 })}
        />
      }
    >
      <FilterBar>
        <ChoiceFilter
          label="State"
          values={statuses}
          chosen={chosen}
          onChange={values => filters.set('status', ...values)}
        />
        <TextFilter label="Member id" value={memberId} isSearch onChange={value => filters.set('member', value)} />
        <DayFilter label="From" value={filters.get('from')} onChange={value => filters.set('from', value)} />
        <DayFilter label="Before" value={filters.get('to')} onChange={value => filters.set('to', value)} />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Withdrawals"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={
            filters.text === '' ? (
              <Empty title="No withdrawals yet" curl={firstRequest()}>
                Your server asks for a quote on behalf of a member, then completes it. This is the first of the two
                requests.
              </Empty>
            ) : (
              <Empty title="No withdrawal matches these filters" />
            )
          }
        />
      </Panel>
    </Page>
  )
}

const columns: Column<WithdrawalWithStatus>[] = [
  { title: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'State', cell: ({ status, reason }) => <State state={status} title={reason ?? undefined} /> },
  { title: 'Withdrawal', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'Amount', cell: ({ amount }) => <Amount money={amount} />, isFigure: true, isMinor: true },
  { title: 'Fee', cell: ({ fee }) => <Amount money={fee} />, isFigure: true, isMinor: true },
  { title: 'Paid out', cell: ({ netAmount }) => <Amount money={netAmount} />, isFigure: true },
]

const csvColumns: [string, (row: WithdrawalWithStatus) => string | number | null][] = [
  ['id', row => row.id],
  ['created_at', row => row.createdAt],
  ['status', row => row.status],
  ['changed_at', row => row.changedAt],
  ['reason', row => row.reason],
  ['member_id', row => row.memberId],
  ['pay_cycle_id', row => row.payCycleId],
  ['amount', row => toDecimal(row.amount)],
  ['fee', row => toDecimal(row.fee)],
  ['net_amount', row => toDecimal(row.netAmount)],
  ['currency', row => row.amount.currency],
]

function firstRequest(): string {
  return `curl ${location.origin}/v1/pay/withdrawals/intent \\
  -H "x-api-key: $OPENWAGE_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"memberId":"mem_…","amount":{"amount":5000,"currency":"GBP"}}'`
}
