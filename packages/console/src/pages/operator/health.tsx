import { act } from '../../act.ts'
import { Button } from '../../components/button.tsx'
import { Decisions, Figure, KeyValues, KeyValuesPanel, Page, Panel, Pending } from '../../components/layout.tsx'
import { usePolling } from '../../components/polling.ts'
import { Code } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Id, State, Time } from '../../components/values.tsx'
import { formatNumber, plural } from '../../format.ts'
import type { LedgerVerification, Status } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'

/** The state of the installation: workers, queue, findings and verifications of the books. */
export default function Health() {
  const { value, error, reload } = useLoaded('operator-status', () => operators.getStatus())
  return (
    <Page title="Health">
      {value === undefined ? <Pending error={error} onRetry={reload} lines={6} /> : <LoadedHealth status={value} />}
    </Page>
  )
}

function LoadedHealth({ status }: { status: Status }) {
  const { workers, queue, batchesToApprove, openExceptions, database } = status
  return (
    <div class="stack">
      <Decisions label="Needs attention">{status.attention}</Decisions>
      <div class="figures">
        <Figure title="Workers alive">{formatNumber(workers.filter(({ isAlive }) => isAlive).length)}</Figure>
        <Figure title="Tasks due" note={queue.oldestDueAt === null ? undefined : <Time at={queue.oldestDueAt} />}>
          {formatNumber(queue.due)}
        </Figure>
        <Figure title="Tasks given up">{formatNumber(queue.givenUp.reduce((sum, { count }) => sum + count, 0))}</Figure>
        <Figure title="Batches to approve">
          <a href="/console/operator/batches?status=building">{formatNumber(batchesToApprove)}</a>
        </Figure>
        <Figure title="Open exceptions">
          <a href="/console/operator/exceptions?state=open">{formatNumber(openExceptions)}</a>
        </Figure>
      </div>
      <div class="columns">
        <div class="stack">
          <Books />
          <Workers status={status} />
          <Findings isSandbox={status.mode === 'sandbox'} />
        </div>
        <KeyValuesPanel
          title="Installation"
          entries={[
            ['Mode', status.mode],
            ['Bank', status.bank ?? '–'],
            ['PostgreSQL', database.postgres],
            ['Schema', database.schema],
            ['Rails', status.rails.map(({ name, currency }) => `${name} (${currency})`).join(', ') || '–'],
          ]}
        />
      </div>
    </div>
  )
}

const columns: Column<LedgerVerification>[] = [
  { title: 'Requested', cell: ({ requestedAt }) => <Time at={requestedAt} /> },
  { title: 'State', cell: ({ state, problem }) => <State state={state} title={problem ?? undefined} /> },
  { title: 'By', cell: ({ requestedBy }) => requestedBy, isMinor: true },
  {
    title: 'Checks',
    cell: ({ checksDone, checksTotal }) => `${formatNumber(checksDone)} of ${formatNumber(checksTotal)}`,
    isFigure: true,
  },
]

/** Starts a verification of the books, which the worker runs in the background. */
function Books() {
  const loaded = useLoaded('operator-verifications', () => operators.listLedgerVerifications())
  const { value, error, reload } = loaded
  const isRunning = value?.verifications.some(({ endedAt }) => endedAt === null) ?? false
  usePolling(isRunning, loaded)
  return (
    <Panel
      isFlush
      title="The books"
      aside={
        <Button
          disabled={isRunning}
          act={() => act(() => operators.verifyLedger(), 'The books are being verified', 'operator-verifications')}
        >
          Verify now
        </Button>
      }
    >
      <Table
        label="Verifications"
        columns={columns}
        list={{ rows: value?.verifications, error, reload }}
        empty="Not verified yet"
        hint="A verification recomputes every balance from the ledger entries."
      />
      <Disagreements verification={value?.verifications.find(({ endedAt }) => endedAt !== null)} />
    </Panel>
  )
}

/** The rules that the latest finished verification found broken, each with its first violation. */
function Disagreements({ verification }: { verification: LedgerVerification | undefined }) {
  const broken = verification?.checks?.filter(({ disagreement }) => disagreement !== null) ?? []
  if (broken.length === 0) return null
  return (
    <ul class="broken-rules" aria-label="Broken rules">
      {broken.map(({ name, rule, disagreement }) => (
        <li key={name}>
          <p>
            <State state="broken" tone="bad" /> {rule}
          </p>
          {disagreement && (
            <KeyValues
              entries={[
                ['Partner', <Id id={disagreement.partnerId} />],
                ['First violation', disagreement.subject],
                ['Expected', disagreement.expected],
                ['Found', disagreement.found],
              ]}
            />
          )}
        </li>
      ))}
    </ul>
  )
}

type Worker = Status['workers'][number]

const workerColumns: Column<Worker>[] = [
  { title: 'Host', cell: ({ host, processId }) => `${host}, process ${processId}` },
  {
    title: 'State',
    cell: ({ isAlive }) => <State state={isAlive ? 'alive' : 'gone'} tone={isAlive ? 'good' : 'calm'} />,
  },
  { title: 'Last seen', cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
  { title: 'Started', cell: ({ startedAt }) => <Time at={startedAt} />, isMinor: true },
]

function Workers({ status: { workers, queue } }: { status: Status }) {
  return (
    <Panel isFlush title="Workers">
      <Table
        label="Workers in the last seven days"
        columns={workerColumns}
        list={{ rows: workers }}
        empty="No worker has run for seven days"
        hint="Payouts, webhooks and imports need a worker."
        curl="midmonth start --worker"
      />
      {queue.givenUp.length > 0 && (
        <p class="panel-note">
          Given up: {queue.givenUp.map(({ task, count }) => `${task} (${formatNumber(count)})`).join(', ')}
        </p>
      )}
    </Panel>
  )
}

/** Passed checks are collapsed. A sandbox does not need them, so it only lists the requirements of live mode. */
function Findings({ isSandbox }: { isSandbox: boolean }) {
  const { value, error, reload } = useLoaded('operator-findings', () => operators.getFindings())
  if (value === undefined) return <Pending error={error} onRetry={reload} lines={3} />
  const open = value.findings.filter(({ level }) => level !== 'ok')
  const fine = value.findings.filter(({ level }) => level === 'ok')
  return (
    <Panel title={isSandbox ? 'Before live mode' : open.length === 0 ? 'No findings' : plural(open.length, 'finding')}>
      <ul class="stack">
        {open.map(({ check, level, sentence, command }) => (
          <li key={check + sentence} class="stack stack-s">
            <p class="finding">
              <State state={level} /> {sentence}
            </p>
            {command !== null && <Code text={command} label="Copy the command" />}
          </li>
        ))}
      </ul>
      <details class="fine-checks">
        <summary>{fine.length === 1 ? '1 check passed' : `${formatNumber(fine.length)} checks passed`}</summary>
        <ul>
          {fine.map(({ check, sentence }) => (
            <li key={check + sentence}>{sentence}</li>
          ))}
        </ul>
      </details>
    </Panel>
  )
}
