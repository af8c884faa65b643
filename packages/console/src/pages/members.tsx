import type { Member, MemberStatus } from '@midmonth/sdk'
import { announce } from '../act.ts'
import { api } from '../api.ts'
import { MainButton } from '../components/button.tsx'
import { DownloadButton } from '../components/export.tsx'
import { FilterBar, isSearchable, ManyFilter, TextFilter, useFilters } from '../components/filters.tsx'
import { DrawerButton, Page } from '../components/layout.tsx'
import { MemberForm } from '../components/member-form.tsx'
import { useNavigateIfHere } from '../components/navigate-if-here.ts'
import { exampleRequest } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { State } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { memberOf } from '../member-fields.ts'
import { at, hrefOfId } from '../places.ts'
import { prefetchList, useList } from '../query.ts'
import { may } from '../session.ts'

const statuses = ['active', 'invited', 'inactive'] as const

export function prefetchMembers(): void {
  prefetchList('members?', take => api.members.list({ take }))
}

export default function Members() {
  const filters = useFilters()
  const navigateIfHere = useNavigateIfHere()
  const chosen = filters.all('status') as MemberStatus[]
  const search = filters.get('search')
  const query = { statuses: chosen, ...(isSearchable(search) ? { search } : {}) }
  const listed = useList(`members?${filters.text}`, take => api.members.list({ ...query, take }))
  return (
    <Page
      title="Members"
      actions={
        <>
          <DownloadButton name="members.csv" file={() => api.members.export(query)}>
            Export CSV
          </DownloadButton>
          {may('payroll') && (
            <DrawerButton look={MainButton} icon="plus" text="Invite a member" pageAction="invite-member">
              {close => (
                <MemberForm
                  submit="Invite"
                  onSubmit={async entered => {
                    const { memberId, firstName } = await api.members.invite(memberOf(entered))
                    announce(`${firstName} has been invited`, 'members')
                    close()
                    navigateIfHere(at(`members/${memberId}`))
                  }}
                />
              )}
            </DrawerButton>
          )}
        </>
      }
    >
      <FilterBar>
        <ManyFilter label="State" name="status" values={statuses} />
        <TextFilter label="Beginning of name, or full e-mail or worker id" name="search" isSearch />
        {listed.first !== undefined && <span class="quiet">{foundOf(listed.first.total, search)}</span>}
      </FilterBar>
      <TablePanel
        label="Members"
        columns={columns}
        list={listed}
        keyOf={({ memberId }) => memberId}
        hrefOf={({ memberId }) => hrefOfId(memberId)}
        empty="No members yet"
        hint="Invite the first member here, import a file under Imports, or invite members from your server."
        curl={exampleRequest('/v1/members', {
          email: 'sam@example.com',
          firstName: 'Sam',
          lastName: 'Okafor',
          tier: 'Bronze',
        })}
        noMatch="No members match"
        noMatchHint="Search by the beginning of the name, or by the full e-mail address, worker id or member id."
      />
    </Page>
  )
}

/** A search by name counts at most a thousand members. */
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
