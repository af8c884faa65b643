import type { Event } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ExportButton } from '../components/export.tsx'
import { FilterBar, TextFilter, useFilters } from '../components/filters.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Id, Time } from '../components/values.tsx'
import { useList } from '../query.ts'

export default function Events() {
  const filters = useFilters()
  const resourceId = filters.get('resource') || undefined
  const after = (filters.get('after') || undefined) as Event['id'] | undefined
  const type = (filters.get('type') || undefined) as Event['type'] | undefined
  const query = { resourceId, after, ...(type === undefined ? {} : { types: [type] }) }
  const listed = useList(
    `events?${filters.text}`,
    () => api.events.list({ ...query, take: 100 }),
    page => page.events,
  )
  return (
    <Page
      title="Events"
      actions={
        <ExportButton name="events" columns={csvColumns} rows={() => api.events.list({ ...query, take: 1_000 })} />
      }
    >
      <FilterBar>
        <TextFilter label="Event type" name="type" />
        <TextFilter label="Record id" name="resource" isSearch />
        <TextFilter label="After event" name="after" />
        <span class="quiet">Last 30 days, oldest first, in the order your server reads them</span>
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Events"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          empty={
            <Empty title="No events" curl={`curl ${location.origin}/v1/events -H "x-api-key: $MIDMONTH_API_KEY"`}>
              Every state change emits one event. Your server reads events with this request or receives them by
              webhook.
            </Empty>
          }
        />
      </Panel>
    </Page>
  )
}

const columns: Column<Event>[] = [
  { title: 'When', cell: ({ timestamp }) => <Time at={timestamp} /> },
  { title: 'Type', cell: ({ type }) => <code>{type}</code> },
  { title: 'Event', cell: ({ id }) => <Id id={id} isLink={false} />, isMinor: true },
  {
    title: 'About',
    cell: ({ data }) =>
      Object.entries(data)
        .filter(([name, value]) => name.endsWith('Id') && typeof value === 'string')
        .slice(0, 2)
        .map(([name, value]) => <Id key={name} id={String(value)} />),
  },
  { title: 'Sequence', cell: ({ sequence }) => sequence, isFigure: true, isMinor: true },
]

const csvColumns: [string, (row: Event) => string | number][] = [
  ['id', row => row.id],
  ['timestamp', row => row.timestamp],
  ['type', row => row.type],
  ['sequence', row => row.sequence],
  ['data', row => JSON.stringify(row.data)],
]
