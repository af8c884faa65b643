import type { KnownApiError, LoggedRequest } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ErrorPlot } from '../components/error-plot.tsx'
import { ExportButton } from '../components/export.tsx'
import { FilterBar, SpanFilter, TextFilter, useFilters } from '../components/filters.tsx'
import { KeyValues, Page, Panel } from '../components/layout.tsx'
import { Empty, Failure } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { HttpStatus, Id, Time } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { hrefOfId } from '../places.ts'
import { useList, useLoaded } from '../query.ts'

type ErrorCode = KnownApiError['code'] | undefined

export default function Requests() {
  const filters = useFilters()
  const value = (name: string) => filters.get(name) || undefined
  const query = {
    status: value('status'),
    errorCode: value('code') as ErrorCode,
    idempotencyKey: value('key'),
    resourceId: value('resource'),
    requestId: value('request'),
    fromDate: value('from'),
    toDate: value('to'),
  }
  const listed = useList(
    `requests?${filters.text}`,
    () => api.requests.list({ ...query, take: 50 }),
    page => page.requests,
  )
  return (
    <Page
      title="Requests"
      actions={
        <ExportButton name="requests" columns={csvColumns} rows={() => api.requests.list({ ...query, take: 1_000 })} />
      }
    >
      <FilterBar>
        <TextFilter label="Status" name="status" />
        <TextFilter label="Error code" name="code" />
        <TextFilter label="Idempotency key" name="key" isSearch />
        <TextFilter label="Record id" name="resource" />
        <TextFilter label="Request id" name="request" />
        <SpanFilter />
      </FilterBar>
      {filters.get('key') !== '' && <KeyInspector idempotencyKey={filters.get('key')} />}
      <ErrorPlot />
      <Panel isFlush>
        <Table
          label="Requests"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={
            filters.text === '' ? (
              <Empty
                title="No requests yet"
                curl={`curl ${location.origin}/v1/tiers -H "x-api-key: $MIDMONTH_API_KEY"`}
              >
                This page lists the requests of the last seven days, without their bodies.
              </Empty>
            ) : (
              <Empty title="No requests match these filters" />
            )
          }
        />
      </Panel>
    </Page>
  )
}

const columns: Column<LoggedRequest>[] = [
  { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Status', cell: ({ status }) => <HttpStatus status={status} /> },
  {
    title: 'Request',
    cell: ({ method, route, path }) => (
      <code class="route">
        {method} {route ?? path}
      </code>
    ),
  },
  { title: 'Errors', cell: ({ errorCodes }) => errorCodes.join(', '), isMinor: true },
  { title: 'Record', cell: ({ resourceId }) => resourceId && <Id id={resourceId} />, isMinor: true },
  { title: 'Duration', cell: ({ durationMs }) => `${formatNumber(durationMs)} ms`, isFigure: true, isMinor: true },
]

const csvColumns: [string, (row: LoggedRequest) => string | number | boolean | null][] = [
  ['id', row => row.id],
  ['request_id', row => row.requestId],
  ['created_at', row => row.createdAt],
  ['method', row => row.method],
  ['path', row => row.path],
  ['status', row => row.status],
  ['duration_ms', row => row.durationMs],
  ['key_id', row => row.keyId],
  ['idempotency_key', row => row.idempotencyKey],
  ['replayed', row => row.replayed],
  ['error_codes', row => row.errorCodes.join(' ')],
  ['resource_id', row => row.resourceId],
]

/** Shows the use of an idempotency key: the operation, the response, and how long repeats are replayed. */
function KeyInspector({ idempotencyKey }: { idempotencyKey: string }) {
  const { value, error } = useLoaded(`idempotency-key ${idempotencyKey}`, () => api.idempotencyKeys.get(idempotencyKey))
  if (error !== undefined) return <Failure error={error} />
  if (value === undefined) return null
  return (
    <div class="aside-panel">
      <Panel title="Idempotency key">
        <KeyValues
          entries={[
            ['Key', <Id key="key" id={value.key} isWhole isLink={false} />],
            ['Operation', <code key="operation">{value.operation}</code>],
            ['Response', <HttpStatus key="status" status={value.status} />],
            ['Record', value.resourceId === null ? '–' : <Id key="resource" id={value.resourceId} />],
            ['First used', <Time key="created" at={value.createdAt} />],
            ['Replayed until', <Time key="expires" at={value.expiresAt} />],
          ]}
        />
      </Panel>
    </div>
  )
}
