import type { Member, MemberStatus } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { api } from '../api.ts'
import { useAsked } from '../components/asked.ts'
import { DownloadButton } from '../components/export.tsx'
import { FilterBar, isSearchable, ManyFilter, TextFilter, useFilters } from '../components/filters.tsx'
import { Icon } from '../components/icon.tsx'
import { Drawer, Page, Panel } from '../components/layout.tsx'
import { MemberForm } from '../components/member-form.tsx'
import { useNavigateIfHere } from '../components/navigate-if-here.ts'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { State } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { memberOf } from '../member-fields.ts'
import { at, hrefOfId } from '../places.ts'
import { prefetchList, reload as reloadKey, useList } from '../query.ts'
import { may } from '../session.ts'
import { toast } from '../toasts.ts'

const statuses = ['active', 'invited', 'inactive'] as const

export function prefetchMembers(): void {
  prefetchList(
    'members?',
    () => api.members.list({ take: 50 }),
    page => page.members,
  )
}

export default function Members() {
  const filters = useFilters()
  const navigateIfHere = useNavigateIfHere()
  const [isInviting, setIsInviting] = useState(false)
  useAsked('invite-member', () => setIsInviting(true))
  const chosen = filters.all('status') as MemberStatus[]
  const search = filters.get('search')
  const query = {
    ...(chosen.length > 0 ? { statuses: chosen } : {}),
    ...(isSearchable(search) ? { search } : {}),
  }
  const listed = useList(
    `members?${filters.text}`,
    () => api.members.list({ ...query, take: 50 }),
    page => page.members,
  )
  return (
    <Page
      title="Members"
      actions={
        <>
          <DownloadButton name="members.csv" file={() => api.members.export(query)}>
            Export CSV
          </DownloadButton>
          {may('payroll') && (
            <button type="button" class="button button-main" onClick={() => setIsInviting(true)}>
              <Icon name="plus" />
              Invite a member
            </button>
          )}
        </>
      }
    >
      <FilterBar>
        <ManyFilter label="State" name="status" values={statuses} />
        <TextFilter label="Start of name, whole e-mail or worker id" name="search" isSearch />
        {listed.first !== undefined && <span class="quiet">{foundOf(listed.first.total, search)}</span>}
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Members"
          columns={columns}
          list={listed}
          keyOf={({ memberId }) => memberId}
          hrefOf={({ memberId }) => hrefOfId(memberId)}
          empty={
            filters.text === '' ? (
              <Empty title="No members yet" curl={firstRequest()}>
                Invite the first one here, drop a list of all of them under Imports, or let your server do it.
              </Empty>
            ) : (
              <Empty title="No member matches">
                A member is found by the beginning of the name, or by the whole e-mail address, worker id or id.
              </Empty>
            )
          }
        />
      </Panel>
      <Drawer title="Invite a member" isOpen={isInviting} onClose={() => setIsInviting(false)}>
        <MemberForm
          submit="Invite"
          onSubmit={async entered => {
            const { memberId, firstName } = await api.members.invite(memberOf(entered))
            toast(`${firstName} is invited`)
            reloadKey('members')
            setIsInviting(false)
            navigateIfHere(at(`members/${memberId}`))
          }}
        />
      </Drawer>
    </Page>
  )
}

/** A search by name ends at a thousand members. */
const foundMax = 1_000

function foundOf(total: number, search: string): string {
  if (search !== '' && !isSearchable(search)) return 'Type one more letter'
  return search !== '' && total >= foundMax ? `${formatNumber(foundMax)}+ found` : `${formatNumber(total)} found`
}

const columns: Column<Member>[] = [
  { title: 'Name', cell: ({ firstName, lastName }) => <b>{`${firstName} ${lastName}`}</b> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'E-mail', cell: ({ email }) => email, isMinor: true },
  { title: 'Worker id', cell: ({ workerId }) => workerId ?? <span class="quiet">–</span>, isMinor: true },
  { title: 'Tier', cell: ({ tier }) => tier },
]

function firstRequest(): string {
  return `curl ${location.origin}/v1/members \\
  -H "x-api-key: $MIDMONTH_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"email":"sam@example.com","firstName":"Sam","lastName":"Okafor","tier":"Bronze"}'`
}
