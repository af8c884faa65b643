import type { MemberJob, MemberJobPreview } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { api } from '../api.ts'
import { DropZone } from '../components/drop-zone.tsx'
import { Figure, Page, Panel } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { useNavigateIfHere } from '../components/navigate-if-here.ts'
import { SheetProblems } from '../components/sheet.tsx'
import { Empty, Skeleton } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { formatNumber, plural } from '../format.ts'
import { at, hrefOfId } from '../places.ts'
import { messageOf } from '../problems.ts'
import { useList } from '../query.ts'
import { may } from '../session.ts'
import { toast } from '../toasts.ts'

export default function MemberImports() {
  const listed = useList(
    'lists',
    () => api.memberJobs.list({ take: 50 }),
    page => page.jobs,
  )
  return (
    <Page title="Imports">
      <div class="stack">
        {may('payroll') && <Upload />}
        <Panel isFlush title="Earlier imports">
          <Table
            label="Earlier imports"
            columns={columns}
            list={listed}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => hrefOfId(id)}
            empty={
              <Empty title="No imports yet" curl={firstRequest()}>
                An import must contain every member: members missing from the file are offboarded.
              </Empty>
            }
          />
        </Panel>
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

type Checked = { file: File; preview?: MemberJobPreview; problem?: unknown }

/** Checks a dropped file in a dry run, shows the plan, and sends the file when the reader confirms. */
function Upload() {
  const navigateIfHere = useNavigateIfHere()
  const [checked, setChecked] = useState<Checked>()
  const [isSending, setIsSending] = useState(false)
  const check = async (file: File) => {
    setChecked({ file })
    // The reader may drop another file before the response arrives.
    const showIfCurrent = (result: Checked) => setChecked(now => (now?.file === file ? result : now))
    try {
      showIfCurrent({ file, preview: await api.memberJobs.createFromFileV2(file, { dryRun: true }) })
    } catch (problem) {
      showIfCurrent({ file, problem })
    }
  }
  const send = async () => {
    if (checked === undefined) return
    setIsSending(true)
    try {
      const { jobId } = await api.memberJobs.createFromFileV2(checked.file)
      navigateIfHere(at(`lists/${jobId}`))
    } catch (problem) {
      toast(messageOf(problem), { kind: 'bad' })
    }
    setIsSending(false)
  }
  return (
    <Panel>
      <div class="stack">
        <DropZone label="Drop a file here" pageAction="import-members" onFile={file => void check(file)} />
        <p class="quiet">
          The file is checked first. Nothing changes until you apply it. Start from{' '}
          <a href="/members-template.xlsx" download>
            the Excel template
          </a>{' '}
          or from an export of the members.
        </p>
        {checked?.problem !== undefined && <SheetProblems file={checked.file} error={checked.problem} />}
        {checked !== undefined && checked.problem === undefined && (
          <section class="stack" aria-label="Plan of the import">
            <h2>{checked.file.name}</h2>
            {checked.preview === undefined ? (
              <Skeleton lines={2} />
            ) : (
              <Plan preview={checked.preview} onApply={() => void send()} isSending={isSending} />
            )}
          </section>
        )}
      </div>
    </Panel>
  )
}

/** As many names as a person reads before applying an import. The results contain all of them. */
const offboardShown = 200

function Plan({ preview, onApply, isSending }: { preview: MemberJobPreview; onApply: () => void; isSending: boolean }) {
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
        <button type="button" class="button button-main" disabled={isSending || changes === 0} onClick={onApply}>
          {changes === 0
            ? 'Nothing to change'
            : needsReview
              ? 'Send for approval'
              : `Apply ${plural(changes, 'change')}`}
        </button>
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
