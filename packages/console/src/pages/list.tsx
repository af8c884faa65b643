import type { MemberJob, MemberJobResult, MemberJobResultAction, MemberJobResultOutcome } from '@openwage/sdk'
import { useEffect } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { api } from '../api.ts'
import { act } from '../components/act.ts'
import { download } from '../components/export.tsx'
import { ChoiceFilter, FilterBar, useFilters } from '../components/filters.tsx'
import { Icon } from '../components/icon.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { Empty, Failure, messageOf, Skeleton } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { toast } from '../components/toast.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { formatNumber, inWords } from '../format.ts'
import { at } from '../places.ts'
import { useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { PlanFigures } from './lists.tsx'

type JobId = MemberJob['id']

const back = () => ({ href: at('lists'), title: 'Lists of members' })
const actions = ['Invite', 'Update', 'BringBack', 'Offboard', 'Unchanged'] as const
const outcomes = ['Pending', 'Done', 'Failed', 'NotDone'] as const
const pollMs = 1_000

export default function ListPage() {
  const { id } = useRoute().params as { id: JobId }
  const filters = useFilters()
  const filter = filterOf(filters)
  const job = useLoaded(`list ${id}`, () => api.memberJobs.get(id))
  const type = job.value?.progress.type
  const isMoving = type === 'Processing' || type === 'NotReady'
  const { reload } = job
  useEffect(() => {
    if (!isMoving) return
    const timer = setInterval(reload, pollMs)
    return () => clearInterval(timer)
  }, [isMoving, reload])
  if (job.value === undefined)
    return (
      <Page title="List of members" back={back()}>
        {job.error === undefined ? <Skeleton /> : <Failure error={job.error} onRetry={reload} />}
      </Page>
    )
  const { progress, createdAt } = job.value
  return (
    <Page
      title="List of members"
      back={back()}
      actions={
        <>
          <ResultsButton id={id} filter={filter} />
          {type === 'AwaitingReview' && may('payroll') && (
            <>
              <button
                type="button"
                class="button"
                onClick={() => void act(() => api.memberJobs.reject(id), 'Rejected: nothing changes', 'list')}
              >
                Reject
              </button>
              <button
                type="button"
                class="button button-main"
                onClick={() => void act(() => api.memberJobs.approve(id), 'Approved', 'list', 'members')}
              >
                Approve
              </button>
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
      {/* The results of a job change as it goes on. */}
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
        <ChoiceFilter
          label="Action"
          values={actions}
          chosen={filter.actions ?? []}
          onChange={values => filters.set('action', ...values)}
        />
        <ChoiceFilter
          label="Outcome"
          values={outcomes}
          chosen={filter.outcomes ?? []}
          onChange={values => filters.set('outcome', ...values)}
        />
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

function ResultsButton({ id, filter }: { id: JobId; filter: ResultsFilter }) {
  return (
    <button
      type="button"
      class="button"
      onClick={() =>
        void api.memberJobs
          .exportResults(id, filter)
          .then(async file => download(`results-${id}.csv`, await file.blob()))
          .catch(error => toast(messageOf(error), { kind: 'bad' }))
      }
    >
      <Icon name="download" />
      Results as CSV
    </button>
  )
}
