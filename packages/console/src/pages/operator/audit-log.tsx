import { type AuditEntry, adminList } from '../../admin.ts'
import { ExportButton } from '../../components/export.tsx'
import { DayFilter, FilterBar, TextFilter, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Id, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import { useList } from '../../query.ts'

type Entries = { entries: AuditEntry[]; hasMore: boolean }

const columns: Column<AuditEntry>[] = [
  { title: 'When', cell: ({ at }) => <Time at={at} /> },
  { title: 'Who', cell: ({ actorKind, actor }) => `${inWords(actorKind)} ${actor}` },
  { title: 'What', cell: ({ action }) => <code>{action}</code> },
  { title: 'Record', cell: ({ resourceId }) => <Id id={resourceId} />, isMinor: true },
  {
    title: 'Details',
    cell: ({ details }) => (
      <code class="audit-details" title={JSON.stringify(details, null, 2)}>
        {JSON.stringify(details)}
      </code>
    ),
    isMinor: true,
  },
  { title: 'From', cell: ({ address }) => address ?? <span class="quiet">–</span>, isMinor: true },
]

export default function AuditLog() {
  const filters = useFilters()
  const query = new URLSearchParams({ take: '50' })
  const names = { actor: 'actor', actions: 'action', resourceId: 'resource', partnerId: 'partner' }
  for (const [name, filter] of Object.entries(names))
    if (filters.get(filter) !== '') query.append(name, filters.get(filter))
  for (const [name, filter] of Object.entries({ fromDate: 'from', toDate: 'to' }))
    if (filters.get(filter) !== '') query.set(name, filters.get(filter))
  const list = () =>
    adminList<Entries, AuditEntry>(
      'audit-log',
      query,
      page => page.entries,
      entry => entry.id,
    )
  const listed = useList(`operator-audit?${filters.text}`, list, page => page.entries)
  return (
    <Page
      title="Audit log"
      actions={
        <ExportButton
          name="audit-log"
          columns={[
            ['at', (row: AuditEntry) => row.at],
            ['actor_kind', row => row.actorKind],
            ['actor', row => row.actor],
            ['action', row => row.action],
            ['partner_id', row => row.partnerId],
            ['resource_id', row => row.resourceId],
            ['details', row => JSON.stringify(row.details)],
            ['address', row => row.address],
            ['request_id', row => row.requestId],
          ]}
          rows={list}
        />
      }
    >
      <FilterBar>
        <TextFilter label="Who" value={filters.get('actor')} isSearch onChange={text => filters.set('actor', text)} />
        <TextFilter label="Action" value={filters.get('action')} onChange={text => filters.set('action', text)} />
        <TextFilter
          label="Id of a record"
          value={filters.get('resource')}
          onChange={text => filters.set('resource', text)}
        />
        <TextFilter label="Partner" value={filters.get('partner')} onChange={text => filters.set('partner', text)} />
        <DayFilter label="From" value={filters.get('from')} onChange={text => filters.set('from', text)} />
        <DayFilter label="Before" value={filters.get('to')} onChange={text => filters.set('to', text)} />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Audit log"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          empty={<Empty title="No entry matches" />}
        />
      </Panel>
    </Page>
  )
}
