import type { WithdrawalStatus, WithdrawalWithStatus } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ExportButton, type ExportColumn } from '../components/export.tsx'
import { FilterBar, isSearchable, ManyFilter, SpanFilter, TextFilter, useFilters } from '../components/filters.tsx'
import { Page, Panel, Pending } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Empty, exampleRequest } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { hrefOfRecord } from '../places.ts'
import { prefetchList, useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { withdrawalStatuses } from '../statuses.ts'

export function prefetchWithdrawals(): void {
  prefetchList('withdrawals?', take => api.withdrawals.list({ statuses: withdrawalStatuses, take }))
}

export default function Withdrawals() {
  const filters = useFilters()
  const chosen = filters.all('status') as WithdrawalStatus[]
  const member = filters.get('member')
  // A text that is not an id is searched as a member's name.
  const memberId = member.startsWith('mem_') ? (member as `mem_${string}`) : undefined
  const isName = isSearchable(member) && memberId === undefined && may('payroll', 'support', 'viewer')
  const query = {
    statuses: chosen.length > 0 ? chosen : withdrawalStatuses,
    memberId,
    fromDate: filters.given('from'),
    toDate: filters.given('to'),
  }
  const listed = useList(isName ? null : `withdrawals?${filters.text}`, take =>
    api.withdrawals.list({ ...query, take }),
  )
  return (
    <Page title="Withdrawals" actions={<ExportButton name="withdrawals" columns={csvColumns} rows={listed.all} />}>
      <FilterBar>
        <ManyFilter label="State" name="status" values={withdrawalStatuses} />
        <TextFilter label="Beginning of the member’s name" name="member" isSearch />
        {memberId !== undefined && <MemberName id={memberId} />}
        <SpanFilter />
      </FilterBar>
      {isName ? (
        <MemberChoices text={member} onChoose={id => filters.set('member', id)} />
      ) : (
        <TablePanel
          label="Withdrawals"
          columns={columns}
          list={listed}
          hrefOf={hrefOfRecord}
          empty="No withdrawals yet"
          hint="Your server creates an intent for a member and then completes it. This is the first of the two requests."
          curl={exampleRequest('/v1/pay/withdrawals/intent', {
            memberId: 'mem_…',
            amount: { amount: 5000, currency: 'GBP' },
          })}
          noMatch="No withdrawals match these filters"
        />
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
  if (value === undefined) return <Pending error={error} onRetry={reload} lines={2} />
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

const csvColumns: ExportColumn<WithdrawalWithStatus>[] = [
  'id',
  'createdAt',
  'status',
  'changedAt',
  'reason',
  'memberId',
  'payCycleId',
  'amount',
  'fee',
  'netAmount',
  ['currency', row => row.amount.currency],
]
