import type { MemberJob, MemberJobResult, MemberJobResultAction, MemberJobResultOutcome } from '@midmonth/sdk'
import { useRoute } from 'preact-iso'
import { act } from '../act.ts'
import { api } from '../api.ts'
import { Button, MainButton } from '../components/button.tsx'
import { DownloadButton } from '../components/export.tsx'
import { FilterBar, ManyFilter, useFilters } from '../components/filters.tsx'
import { Page, PendingPage } from '../components/layout.tsx'
import { usePolling } from '../components/polling.ts'
import { type Column, TablePanel } from '../components/table.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { formatNumber, inWords } from '../format.ts'
import { useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { PlanFigures } from './member-imports.tsx'

type JobId = MemberJob['id']

const actions = ['Invite', 'Update', 'Reinstate', 'Offboard', 'Unchanged'] as const
const outcomes = ['Pending', 'Done', 'Failed', 'NotDone'] as const

export default function MemberImportPage() {
  const { id } = useRoute().params as { id: JobId }
  const filters = useFilters()
  const filter = {
    actions: filters.all('action') as MemberJobResultAction[],
    outcomes: filters.all('outcome') as MemberJobResultOutcome[],
  }
  const job = useLoaded(`list ${id}`, () => api.memberJobs.get(id))
  const type = job.value?.progress.type
  const isMoving = type === 'Processing' || type === 'NotReady'
  usePolling(isMoving, job)
  if (job.value === undefined) return <PendingPage title="Member import" error={job.error} onRetry={job.reload} />
  const { progress, createdAt } = job.value
  return (
    <Page
      title="Member import"
      actions={
        <>
          <DownloadButton name={`results-${id}.csv`} file={() => api.memberJobs.exportResults(id, filter)}>
            Results as CSV
          </DownloadButton>
          {type === 'AwaitingReview' && may('payroll') && (
            <>
              <Button act={() => act(() => api.memberJobs.reject(id), 'Rejected; nothing was changed', 'list')}>
                Reject
              </Button>
              <MainButton act={() => act(() => api.memberJobs.approve(id), 'Approved', 'list', 'members')}>
                Approve
              </MainButton>
            </>
          )}
        </>
      }
    >
      <div class="row row-wrap above">
        <State state={progress.type} />
        <span class="record-to">
          sent <Time at={createdAt} />
        </span>
        <Id id={id} isLink={false} />
      </div>
      {isMoving && (
        <p class="progress row">
          <progress max={Math.max(progress.totalActions, 1)} value={progress.totalComplete} aria-label="Progress" />
          {formatNumber(progress.totalComplete)} of {formatNumber(progress.totalActions)}
        </p>
      )}
      {/* The results change while the import is processed. */}
      <Results id={id} filter={filter} version={`${type} ${progress.totalComplete}`} />
    </Page>
  )
}

const columns: Column<MemberJobResult>[] = [
  { title: 'Row', cell: ({ row }) => row ?? <span class="quiet">missing</span> },
  { title: 'Action', cell: ({ action }) => inWords(action) },
  { title: 'Outcome', cell: ({ outcome }) => <State state={outcome} /> },
  { title: 'E-mail', cell: ({ email }) => email ?? '–' },
  { title: 'Member', cell: ({ memberId }) => <Id id={memberId} />, isMinor: true },
  { title: 'Message', cell: ({ message }) => message ?? '', isMinor: true },
]

type ResultsFilter = { actions: MemberJobResultAction[]; outcomes: MemberJobResultOutcome[] }

/** @param props.version changes with the results */
function Results({ id, filter, version }: { id: JobId; filter: ResultsFilter; version: string }) {
  const listed = useList(`list-results ${id} ${useFilters().text} ${version}`, take =>
    api.memberJobs.listResults(id, { ...filter, take }),
  )
  return (
    <>
      {listed.first && <PlanFigures plan={listed.first.plan} />}
      <FilterBar>
        <ManyFilter label="Action" name="action" values={actions} />
        <ManyFilter label="Outcome" name="outcome" values={outcomes} />
      </FilterBar>
      <TablePanel
        label="Rows"
        columns={columns}
        list={listed}
        keyOf={({ row, memberId, email }) => `${row} ${memberId} ${email}`}
        empty="No rows"
      />
    </>
  )
}
