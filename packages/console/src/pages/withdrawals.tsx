import { toDecimal, type WithdrawalStatus, type WithdrawalWithStatus } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ExportButton } from '../components/export.tsx'
import { FilterBar, isSearchable, ManyFilter, SpanFilter, TextFilter, useFilters } from '../components/filters.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Empty, Failure, Skeleton } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { hrefOfId } from '../places.ts'
import { prefetchList, useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { withdrawalStatuses } from '../statuses.ts'

const rowsOf = (page: { withdrawals: WithdrawalWithStatus[] }) => page.withdrawals

export function prefetchWithdrawals(): void {
  prefetchList('withdrawals?', () => api.withdrawals.list({ statuses: withdrawalStatuses, take: 50 }), rowsOf)
}

export default function Withdrawals() {
  const filters = useFilters()
  const chosen = filters.all('status') as WithdrawalStatus[]
  const member = filters.get('member')
  // A text that is not an id is searched as a member's name.
  const memberId = member.startsWith('mem_') ? member : ''
  const isName = isSearchable(member) && memberId === '' && may('payroll', 'support', 'viewer')
  const query = {
    statuses: chosen.length > 0 ? chosen : withdrawalStatuses,
    ...(memberId === '' ? {} : { memberId: memberId as `mem_${string}` }),
    ...(filters.get('from') === '' ? {} : { fromDate: filters.get('from') }),
    ...(filters.get('to') === '' ? {} : { toDate: filters.get('to') }),
  }
  const listed = useList(
    isName ? null : `withdrawals?${filters.text}`,
    () => api.withdrawals.list({ ...query, take: 50 }),
    rowsOf,
  )
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
        <ManyFilter label="State" name="status" values={withdrawalStatuses} />
        <TextFilter label="Beginning of the member’s name" name="member" isSearch />
        {memberId !== '' && <MemberName id={memberId as `mem_${string}`} />}
        <SpanFilter />
      </FilterBar>
      {isName ? (
        <MemberChoices text={member} onChoose={id => filters.set('member', id)} />
      ) : (
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
                  Your server creates an intent for a member and then completes it. This is the first of the two
                  requests.
                </Empty>
              ) : (
                <Empty title="No withdrawals match these filters" />
              )
            }
          />
        </Panel>
      )}
    </Page>
  )
}

/** As many members as fit on a screen; a longer text narrows them down. */
const choicesMax = 12

/** Lists the members that match a name, to filter withdrawals by one of them. */
function MemberChoices({ text, onChoose }: { text: string; onChoose: (memberId: string) => void }) {
  const { value, error, reload } = useLoaded(`member-choices ${text}`, () =>
    api.members.list({ search: text, take: choicesMax }),
  )
  if (error !== undefined) return <Failure error={error} onRetry={reload} />
  if (value === undefined) return <Skeleton lines={2} />
  if (value.members.length === 0)
    return (
      <Panel>
        <Empty title="No members match">
          Search by the beginning of the name, or by the full e-mail address, worker id or member id.
        </Empty>
      </Panel>
    )
  return (
    <Panel title="Choose a member">
      <div class="button-list">
        {value.members.map(({ memberId, firstName, lastName, email }) => (
          <button key={memberId} type="button" class="button" onClick={() => onChoose(memberId)}>
            {firstName} {lastName} <span class="quiet">{email}</span>
          </button>
        ))}
      </div>
    </Panel>
  )
}

const columns: Column<WithdrawalWithStatus>[] = [
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'State', cell: ({ status, reason }) => <State state={status} title={reason ?? undefined} /> },
  { title: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Withdrawal', cell: ({ id }) => <Id id={id} />, isMinor: true },
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
  -H "x-api-key: $MIDMONTH_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"memberId":"mem_…","amount":{"amount":5000,"currency":"GBP"}}'`
}
