import { ExportButton, type ExportColumn } from '../../components/export.tsx'
import { FilterBar, SpanFilter, TextFilter, useFilters } from '../../components/filters.tsx'
import { Page } from '../../components/layout.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
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

const csvColumns: ExportColumn<AuditEntry>[] = [
  'at',
  'actorKind',
  'actor',
  'action',
  'partnerId',
  'resourceId',
  'details',
  'address',
  'requestId',
]

export default function AuditLog() {
  const filters = useFilters()
  const { given } = filters
  const listed = useList(`operator-audit?${filters.text}`, take =>
    operators.listAuditEntries({
      take,
      actor: given('actor'),
      resourceId: given('resource'),
      fromDate: given('from'),
      toDate: given('to'),
      // The service rejects unknown actions with a message.
      partnerId: given('partner') as PartnerId | undefined,
      actions: filters.all('action') as AuditQuery['actions'],
    }),
  )
  return (
    <Page title="Audit log" actions={<ExportButton name="audit-log" columns={csvColumns} rows={listed.all} />}>
      <FilterBar>
        <TextFilter label="Who" name="actor" isSearch />
        <TextFilter label="Action" name="action" />
        <TextFilter label="Record id" name="resource" />
        <TextFilter label="Partner" name="partner" />
        <SpanFilter />
      </FilterBar>
      <TablePanel label="Audit log" columns={columns} list={listed} empty="No entries match" />
    </Page>
  )
}
