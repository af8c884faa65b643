import { ExportButton } from '../../components/export.tsx'
import { FilterBar, SpanFilter, TextFilter, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Id, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { AuditEntry, OperatorOperations, PartnerId } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { idPattern } from '../../places.ts'
import { useList } from '../../query.ts'

type AuditQuery = NonNullable<Parameters<OperatorOperations['listAuditEntries']>[0]>

const columns: Column<AuditEntry>[] = [
  { title: 'When', cell: ({ at }) => <Time at={at} /> },
  {
    title: 'Who',
    cell: ({ actorKind, actor }) => (
      <>
        {inWords(actorKind)} {idPattern.test(actor) ? <Id id={actor} isLink={false} /> : actor}
      </>
    ),
  },
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
  const given = (filter: string) => filters.get(filter) || undefined
  const list = () =>
    operators.listAuditEntries({
      ...{ take: 50, actor: given('actor'), resourceId: given('resource') },
      ...{ fromDate: given('from'), toDate: given('to') },
      // The service rejects unknown actions with a message.
      partnerId: given('partner') as PartnerId | undefined,
      actions: filters.all('action') as AuditQuery['actions'],
    })
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
        <TextFilter label="Who" name="actor" isSearch />
        <TextFilter label="Action" name="action" />
        <TextFilter label="Record id" name="resource" />
        <TextFilter label="Partner" name="partner" />
        <SpanFilter />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Audit log"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          empty={<Empty title="No entries match" />}
        />
      </Panel>
    </Page>
  )
}
