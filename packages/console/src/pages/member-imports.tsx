import type { MemberJob, MemberJobPreview } from '@midmonth/sdk'
import { act } from '../act.ts'
import { api } from '../api.ts'
import { MainButton } from '../components/button.tsx'
import { FileCheck } from '../components/file-check.tsx'
import { Figure, Page, Panel } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { useNavigateIfHere } from '../components/navigate-if-here.ts'
import { type Column, TablePanel } from '../components/table.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { formatNumber, plural } from '../format.ts'
import { at, hrefOfRecord } from '../places.ts'
import { useList } from '../query.ts'
import { may } from '../session.ts'

export default function MemberImports() {
  const listed = useList('lists', take => api.memberJobs.list({ take }))
  return (
    <Page title="Imports">
      <div class="stack">
        {may('payroll') && <Upload />}
        <TablePanel
          title="Earlier imports"
          columns={columns}
          list={listed}
          hrefOf={hrefOfRecord}
          empty="No imports yet"
          hint="An import must contain every member: members missing from the file are offboarded."
          curl={firstRequest()}
        />
      </div>
    </Page>
  )
}

const columns: Column<MemberJob>[] = [
  { title: 'Sent', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'State', cell: ({ progress }) => <State state={progress.type} /> },
  { title: 'Import', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Done', cell: ({ progress }) => formatNumber(progress.totalComplete), isFigure: true, isMinor: true },
  { title: 'Changes', cell: ({ progress }) => formatNumber(progress.totalActions), isFigure: true },
]

/** Checks a dropped file in a dry run, shows the plan, and sends the file when the reader confirms. */
function Upload() {
  const navigateIfHere = useNavigateIfHere()
  const send = async (file: File) => {
    const created = await act(() => api.memberJobs.createFromFileV2(file), undefined)
    if (created !== undefined) navigateIfHere(at(`lists/${created.jobId}`))
  }
  return (
    <Panel>
      <div class="stack">
        <FileCheck
          label="Plan of the import"
          pageAction="import-members"
          note={
            <p class="quiet">
              The file is checked first. Nothing changes until you apply it. Start from{' '}
              <a href="/members-template.xlsx" download>
                the Excel template
              </a>{' '}
              or from an export of the members.
            </p>
          }
          check={file => api.memberJobs.createFromFileV2(file, { dryRun: true })}
        >
          {({ file, result }) => <Plan preview={result} onApply={() => send(file)} />}
        </FileCheck>
      </div>
    </Panel>
  )
}

/** As many names as a person reads before applying an import. The results contain all of them. */
const offboardShown = 200

function Plan({ preview, onApply }: { preview: MemberJobPreview; onApply: () => Promise<void> }) {
  const { plan, needsReview, offboard } = preview
  const changes = plan.invite + plan.update + plan.reinstate + plan.offboard
  return (
    <>
      <PlanFigures plan={plan} />
      {offboard.length > 0 && (
        <details open={offboard.length <= 20}>
          <summary>{plural(plan.offboard, 'member')} would be offboarded, because they are not on the list</summary>
          <ul class="names">
            {offboard.slice(0, offboardShown).map(id => (
              <li key={id}>
                <MemberName id={id} />
              </li>
            ))}
          </ul>
          {plan.offboard > offboardShown && <p class="quiet">{plural(plan.offboard - offboardShown, 'more member')}</p>}
        </details>
      )}
      {needsReview && (
        <p class="notice">This offboards many members, so the import must be approved after it is sent.</p>
      )}
      <div>
        <MainButton disabled={changes === 0} act={onApply}>
          {changes === 0
            ? 'Nothing to change'
            : needsReview
              ? 'Send for approval'
              : `Apply ${plural(changes, 'change')}`}
        </MainButton>
      </div>
    </>
  )
}

export function PlanFigures({ plan }: { plan: MemberJobPreview['plan'] }) {
  return (
    <div class="figures">
      <Figure title="Invited">{formatNumber(plan.invite)}</Figure>
      <Figure title="Changed">{formatNumber(plan.update)}</Figure>
      <Figure title="Reinstated">{formatNumber(plan.reinstate)}</Figure>
      <Figure title="Offboarded">{formatNumber(plan.offboard)}</Figure>
      <Figure title="Unchanged">{formatNumber(plan.unchanged)}</Figure>
    </div>
  )
}

function firstRequest(): string {
  return `curl -X PUT '${location.origin}/v2/members/jobs/csv?dryRun=true' \\
  -H "x-api-key: $MIDMONTH_API_KEY" \\
  -H 'content-type: text/csv' \\
  --data-binary @members.csv`
}
