import type { MemberJob, MemberJobResult, MemberJobResultAction, MemberJobResultOutcome } from '@midmonth/sdk'
import { useRoute } from 'preact-iso'
import { act } from '../act.ts'
import { api } from '../api.ts'
import { ActButton } from '../components/act-button.tsx'
import { DownloadButton } from '../components/export.tsx'
import { FilterBar, ManyFilter, useFilters } from '../components/filters.tsx'
import { Page, Panel, PendingPage } from '../components/layout.tsx'
import { usePolling } from '../components/polling.ts'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { formatNumber, inWords } from '../format.ts'
import { at } from '../places.ts'
import { useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { PlanFigures } from './member-imports.tsx'

type JobId = MemberJob['id']

const back = () => ({ href: at('lists'), title: 'Imports' })
const actions = ['Invite', 'Update', 'Reinstate', 'Offboard', 'Unchanged'] as const
const outcomes = ['Pending', 'Done', 'Failed', 'NotDone'] as const

export default function MemberImportPage() {
  const { id } = useRoute().params as { id: JobId }
  const filters = useFilters()
  const filter = filterOf(filters)
  const job = useLoaded(`list ${id}`, () => api.memberJobs.get(id))
  const type = job.value?.progress.type
  const isMoving = type === 'Processing' || type === 'NotReady'
  usePolling(isMoving, job)
  if (job.value === undefined)
    return <PendingPage title="Member import" back={back()} error={job.error} onRetry={job.reload} />
  const { progress, createdAt } = job.value
  return (
    <Page
      title="Member import"
      back={back()}
      actions={
        <>
          <DownloadButton name={`results-${id}.csv`} file={() => api.memberJobs.exportResults(id, filter)}>
            Results as CSV
          </DownloadButton>
          {type === 'AwaitingReview' && may('payroll') && (
            <>
              <ActButton act={() => act(() => api.memberJobs.reject(id), 'Rejected; nothing was changed', 'list')}>
                Reject
              </ActButton>
              <ActButton
                look="button button-main"
                act={() => act(() => api.memberJobs.approve(id), 'Approved', 'list', 'members')}
              >
                Approve
              </ActButton>
            </>
          )}
        </>
      }
    >
      <div class="record-head">
        <State state={progress.type} />
        <span class="record-to">
          sent <Time at={createdAt} />
        </span>
        <Id id={id} isLink={false} />
      </div>
      {isMoving && (
        <p class="progress">
          <progress max={Math.max(progress.totalActions, 1)} value={progress.totalComplete} aria-label="Progress" />
          {formatNumber(progress.totalComplete)} of {formatNumber(progress.totalActions)}
        </p>
      )}
      {/* The results change while the import is processed. */}
      <Results id={id} filters={filters} filter={filter} version={`${type} ${progress.totalComplete}`} />
    </Page>
  )
}

const columns: Column<MemberJobResult>[] = [
  { title: 'Row', cell: ({ row }) => row ?? <span class="quiet">missing</span> },
  { title: 'Action', cell: ({ action }) => inWords(action) },
  { title: 'Outcome', cell: ({ outcome }) => <State state={outcome} /> },
  { title: 'E-mail', cell: ({ email }) => email ?? '–' },
  { title: 'Member', cell: ({ memberId }) => (memberId === null ? '–' : <Id id={memberId} />), isMinor: true },
  { title: 'Message', cell: ({ message }) => message ?? '', isMinor: true },
]

type ResultsFilter = { actions?: MemberJobResultAction[]; outcomes?: MemberJobResultOutcome[] }

function filterOf(filters: ReturnType<typeof useFilters>): ResultsFilter {
  const chosen = filters.all('action') as MemberJobResultAction[]
  const ended = filters.all('outcome') as MemberJobResultOutcome[]
  return {
    ...(chosen.length > 0 ? { actions: chosen } : {}),
    ...(ended.length > 0 ? { outcomes: ended } : {}),
  }
}

function Results({
  id,
  filters,
  filter,
  version,
}: {
  id: JobId
  filters: ReturnType<typeof useFilters>
  filter: ResultsFilter
  version: string
}) {
  const listed = useList(
    `list-results ${id} ${filters.text} ${version}`,
    () => api.memberJobs.listResults(id, { ...filter, take: 50 }),
    page => page.results,
  )
  return (
    <>
      {listed.first && <PlanFigures plan={listed.first.plan} />}
      <FilterBar>
        <ManyFilter label="Action" name="action" values={actions} />
        <ManyFilter label="Outcome" name="outcome" values={outcomes} />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Rows"
          columns={columns}
          list={listed}
          keyOf={({ row, memberId, email }) => `${row} ${memberId} ${email}`}
          empty={<Empty title="No rows" />}
        />
      </Panel>
    </>
  )
}
