import type { Event } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ExportButton } from '../components/export.tsx'
import { FilterBar, TextFilter, useFilters } from '../components/filters.tsx'
import { Page } from '../components/layout.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { Id, Time } from '../components/values.tsx'
import { useList } from '../query.ts'

export default function Events() {
  const filters = useFilters()
  const type = filters.given('type') as Event['type'] | undefined
  const query = {
    resourceId: filters.given('resource'),
    after: filters.given('after') as Event['id'] | undefined,
    types: type && [type],
  }
  const listed = useList(`events?${filters.text}`, take => api.events.list({ ...query, take }), { take: 100 })
  return (
    <Page
      title="Events"
      actions={
        <ExportButton name="events" columns={['id', 'timestamp', 'type', 'sequence', 'data']} rows={listed.all} />
      }
    >
      <FilterBar>
        <TextFilter label="Event type" name="type" />
        <TextFilter label="Record id" name="resource" isSearch />
        <TextFilter label="After event" name="after" />
        <span class="quiet">Last 30 days, oldest first, in the order your server reads them</span>
      </FilterBar>
      <TablePanel
        label="Events"
        columns={columns}
        list={listed}
        empty="No events"
        hint="Every state change emits one event. Your server reads events with this request or receives them by webhook."
        curl={`curl ${location.origin}/v1/events -H "x-api-key: $MIDMONTH_API_KEY"`}
      />
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
