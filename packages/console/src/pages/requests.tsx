import type { KnownApiError, LoggedRequest } from '@midmonth/sdk'
import { api } from '../api.ts'
import { ErrorPlot } from '../components/error-plot.tsx'
import { ExportButton, type ExportColumn } from '../components/export.tsx'
import { FilterBar, SpanFilter, TextFilter, useFilters } from '../components/filters.tsx'
import { KeyValuesPanel, Page } from '../components/layout.tsx'
import { Failure } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { HttpStatus, Id, Time } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { hrefOfRecord } from '../places.ts'
import { useList, useLoaded } from '../query.ts'

type ErrorCode = KnownApiError['code'] | undefined

export default function Requests() {
  const filters = useFilters()
  const { given } = filters
  const query = {
    status: given('status'),
    errorCode: given('code') as ErrorCode,
    idempotencyKey: given('key'),
    resourceId: given('resource'),
    requestId: given('request'),
    fromDate: given('from'),
    toDate: given('to'),
  }
  const listed = useList(`requests?${filters.text}`, take => api.requests.list({ ...query, take }))
  return (
    <Page title="Requests" actions={<ExportButton name="requests" columns={csvColumns} rows={listed.all} />}>
      <FilterBar>
        <TextFilter label="Status" name="status" />
        <TextFilter label="Error code" name="code" />
        <TextFilter label="Idempotency key" name="key" isSearch />
        <TextFilter label="Record id" name="resource" />
        <TextFilter label="Request id" name="request" />
        <SpanFilter />
      </FilterBar>
      {query.idempotencyKey && <KeyInspector idempotencyKey={query.idempotencyKey} />}
      <ErrorPlot />
      <TablePanel
        label="Requests"
        columns={columns}
        list={listed}
        hrefOf={hrefOfRecord}
        empty="No requests yet"
        hint="This page lists the requests of the last seven days, without their bodies."
        curl={`curl ${location.origin}/v1/tiers -H "x-api-key: $MIDMONTH_API_KEY"`}
        noMatch="No requests match these filters"
      />
    </Page>
  )
}

const columns: Column<LoggedRequest>[] = [
  { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Status', cell: ({ status }) => <HttpStatus status={status} /> },
  {
    title: 'Request',
    cell: ({ method, route, path }) => (
      <code>
        {method} {route ?? path}
      </code>
    ),
  },
  { title: 'Errors', cell: ({ errorCodes }) => errorCodes.join(', '), isMinor: true },
  { title: 'Record', cell: ({ resourceId }) => resourceId && <Id id={resourceId} />, isMinor: true },
  { title: 'Duration', cell: ({ durationMs }) => `${formatNumber(durationMs)} ms`, isFigure: true, isMinor: true },
]

const csvColumns: ExportColumn<LoggedRequest>[] = [
  'id',
  'requestId',
  'createdAt',
  'method',
  'path',
  'status',
  'durationMs',
  'keyId',
  'idempotencyKey',
  'replayed',
  ['error_codes', row => row.errorCodes.join(' ')],
  'resourceId',
]

/** Shows the use of an idempotency key: the operation, the response, and how long repeats are replayed. */
function KeyInspector({ idempotencyKey }: { idempotencyKey: string }) {
  const { value, error } = useLoaded(`idempotency-key ${idempotencyKey}`, () => api.idempotencyKeys.get(idempotencyKey))
  if (error !== undefined) return <Failure error={error} />
  if (value === undefined) return null
  return (
    <div class="aside-panel">
      <KeyValuesPanel
        title="Idempotency key"
        entries={[
          ['Key', <Id key="key" id={value.key} isWhole isLink={false} />],
          ['Operation', <code key="operation">{value.operation}</code>],
          ['Response', <HttpStatus key="status" status={value.status} />],
          ['Record', <Id key="resource" id={value.resourceId} />],
          ['First used', <Time key="created" at={value.createdAt} />],
          ['Replayed until', <Time key="expires" at={value.expiresAt} />],
        ]}
      />
    </div>
  )
}
