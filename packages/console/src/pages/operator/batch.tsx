import { useRoute } from 'preact-iso'
import { act, announce } from '../../act.ts'
import { MainButton, TextButton } from '../../components/button.tsx'
import { ExportButton, type ExportColumn } from '../../components/export.tsx'
import { Field } from '../../components/form.tsx'
import { Icon } from '../../components/icon.tsx'
import {
  DrawerButton,
  Figure,
  KeyValuesPanel,
  Page,
  Panel,
  PendingPage,
  RecordHead,
  type Step,
  Timeline,
} from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { FormButton, ReasonButton } from '../../components/reason.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Day, Id, State, Time } from '../../components/values.tsx'
import { formatInZone, formatWhole, plural } from '../../format.ts'
import type { AuditEntry, BatchPayment, PayoutBatch, PayoutBatchId, Rail } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useList, useLoaded } from '../../query.ts'
import { isSandbox, session } from '../../session.ts'
import { toast } from '../../toasts.ts'
import { BankAnswers } from './bank-answers.tsx'
import { BatchState } from './batches.tsx'
import { HeldBy, useRails } from './holds.tsx'
import { RecordOutcome } from './payment-outcome.tsx'

const reloadPrefix = 'operator-batch'

const isUnsent = (status: PayoutBatch['status']) => status === 'building' || status === 'approved'
const isOwn = ({ person }: { person: string }) => person === session.value?.user.id
/** A repeated approval looks the same as the first, so the page checks for the reader's own approval. */
const hasApproved = ({ approvals }: PayoutBatch) => approvals.some(isOwn)

export default function BatchPage() {
  const { id } = useRoute().params as { id: PayoutBatchId }
  const { value, error, reload: retry } = useLoaded(`operator-batch ${id}`, () => operators.getPayoutBatch(id))
  const rails = useRails()
  if (value === undefined) return <PendingPage title="Batch" error={error} onRetry={retry} />
  const rail = rails.find(({ name }) => name === value.rail)
  return (
    <Page title={`Batch ${value.messageId}`} actions={<Actions batch={value} rail={rail} />}>
      <RecordHead amount={value.total}>
        <BatchState batch={value} />
        <span class="record-to">
          {plural(value.paymentCount, 'payment')}, value date <Day day={value.valueDate} />
        </span>
      </RecordHead>
      <Notices batch={value} rail={rail} />
      {isUnsent(value.status) && (
        <div class="figures">
          <Approvals batch={value} />
          <CutOff batch={value} />
        </div>
      )}
      <div class="columns">
        <Payments batch={value} />
        <div class="stack">
          <Panel title="Timeline">
            <History batch={value} />
          </Panel>
          <KeyValuesPanel
            entries={[
              ['Batch', <Id key="id" id={id} isLink={false} />],
              ['Rail', value.rail],
              ['Paid from', value.debtor === 'default' ? 'The rail’s account' : <Id key="of" id={value.debtor} />],
              ['Speed', value.isInstant ? 'Instant' : 'Standard'],
              ['File', value.fileName ?? '–'],
              ['SHA-256 of the file', <Id key="sum" id={value.fileSha256} isWhole />],
              ['Payee names', value.nameCheck ?? 'Not checked by the bank'],
            ]}
          />
        </div>
      </div>
    </Page>
  )
}

function Approvals({ batch: { approvals, approvalsNeeded, approvedAutomatically } }: { batch: PayoutBatch }) {
  if (approvedAutomatically) {
    return (
      <Figure title="Approvals" note="Within the limits for automatic approval">
        None needed
      </Figure>
    )
  }
  const note =
    approvals.length === 0
      ? 'By different people, unless the batch is within the limits'
      : approvals.map(({ person, at }, index) => (
          <span key={person}>
            {index > 0 && ', '}
            <Person who={person} /> <Time at={at} />
          </span>
        ))
  return (
    <Figure title="Approvals" note={note}>
      {approvals.length} of {approvalsNeeded} approvals
    </Figure>
  )
}

/** In the time zone in which the cut-off is set; the reader's time on hover. */
function CutOff({ batch: { cutOffAt, cutOffTimeZone, closedAt } }: { batch: PayoutBatch }) {
  const note = (
    <>
      {cutOffTimeZone && `${cutOffTimeZone}. `}
      {closedAt === null ? (
        'Payments can join the batch until then'
      ) : (
        <>
          Closed <Time at={closedAt} />
        </>
      )}
    </>
  )
  return (
    <Figure title="Cut-off" note={note}>
      {cutOffTimeZone === null ? (
        <Time at={cutOffAt} />
      ) : (
        <time dateTime={cutOffAt} title={formatWhole(cutOffAt)}>
          {formatInZone(cutOffAt, cutOffTimeZone)}
        </time>
      )}
    </Figure>
  )
}

function Notices({ batch, rail }: { batch: PayoutBatch; rail: Rail | undefined }) {
  const { status, hold, needsApproval, proposal } = batch
  return (
    <>
      {proposal !== null && (
        <p class="notice below-s">
          <Person who={proposal.person} /> proposed on <Time at={proposal.proposedAt} /> that the batch be closed early:{' '}
          {proposal.note}. {isOwn(proposal) ? 'Another person must confirm.' : 'Close the batch early to confirm.'}{' '}
          <TextButton
            act={() =>
              act(
                () => operators.withdrawPayoutBatchClosing(batch.id),
                'The batch stays open until its cut-off',
                reloadPrefix,
              )
            }
          >
            Withdraw the proposal
          </TextButton>
        </p>
      )}
      {hold !== null && (
        <p class="notice below-s">
          Held <HeldBy hold={hold} />
        </p>
      )}
      {isUnsent(status) && rail?.hold != null && (
        <p class="notice below-s">
          The rail {rail.name} is held <HeldBy hold={rail.hold} />
        </p>
      )}
      {needsApproval && batch.brake !== null && (
        <p class="notice below-s">
          {batch.brake.reason} (<a href={`/console/operator/batches/${batch.brake.batchId}`}>that batch</a>)
        </p>
      )}
      {needsApproval && hasApproved(batch) && (
        <p class="notice below-s">You have approved this batch. Another person must also approve it.</p>
      )}
    </>
  )
}

function Actions({ batch, rail }: { batch: PayoutBatch; rail: Rail | undefined }) {
  const { id, status, held, needsApproval, fileSha256, closedAt, proposal } = batch
  const approve = async () => {
    // The reader may have approved it in another window. The server would accept the repeat.
    const latest = await operators.getPayoutBatch(id).catch(() => batch)
    if (hasApproved(latest)) {
      toast('You have already approved this batch. Another person must also approve it.', { kind: 'bad' })
      reload(reloadPrefix)
    } else await act(() => operators.approvePayoutBatch(id), approvalInWords, reloadPrefix)
  }
  const exportFile = () =>
    act(
      () => operators.exportPayoutBatch(id),
      'The file is final. Download it and submit it to the bank once.',
      reloadPrefix,
    )
  const isByHand = rail?.isByHand === true
  return (
    <>
      {fileSha256 !== null && <Download batch={batch} />}
      {isSandbox.value && isByHand && ['sent', 'acknowledged', 'rejected'].includes(status) && (
        <BankAnswers batch={batch} />
      )}
      {isUnsent(status) && (
        <ReasonButton
          text={held ? 'Release' : 'Hold'}
          title={held ? 'Release the batch' : 'Hold the batch'}
          note="For operators and the audit log; no personal data"
          change={given => (held ? operators.releasePayoutBatch(id, given) : operators.holdPayoutBatch(id, given))}
          done={held ? 'Released' : 'Held until it is released'}
          reloads={reloadPrefix}
        >
          {held
            ? 'The batch can be sent once it is approved.'
            : 'The batch is not sent until it is released. Payments that have been sent cannot be stopped here; call the bank.'}
        </ReasonButton>
      )}
      {closedAt === null && status === 'building' && rail?.kind === 'files' && !(proposal && isOwn(proposal)) && (
        <CloseEarly batch={batch} />
      )}
      {needsApproval && !hasApproved(batch) && <MainButton act={approve}>Approve</MainButton>}
      {isByHand && status === 'approved' && !held && rail.hold === null && (
        <MainButton act={exportFile}>Export the file</MainButton>
      )}
    </>
  )
}

function CloseEarly({ batch: { id, proposal } }: { batch: PayoutBatch }) {
  const about = (
    <>
      No more payments can join the batch, and it can be approved and sent. The value date stays the same; later
      payments go into another batch.{' '}
      {proposal === null ? 'Another person must confirm.' : 'You are the second person, so the batch closes now.'}
    </>
  )
  return (
    <FormButton
      text="Close early"
      title="Close the batch early"
      submit={proposal === null ? 'Propose closing' : 'Close the batch'}
      about={about}
      onSubmit={async ({ note = '' }) => {
        const closed = await operators.closePayoutBatch(id, { note })
        announce(closed.closedAt === null ? 'Proposed; another person must confirm' : 'Closed', reloadPrefix)
      }}
    >
      <Field label="Reason" name="note" note="For operators and the audit log" />
    </FormButton>
  )
}

/** A file must reach the bank only once, so the page asks for confirmation before another download. */
function Download({ batch: { id, copies } }: { batch: PayoutBatch }) {
  const file = `/operator/v1/payout-batches/${id}/file`
  // The server records the download when it begins, but the browser has no event for that.
  const reloadSoon = () => setTimeout(() => reload(reloadPrefix), reloadMs)
  if (copies.length === 0) {
    return (
      <a class="button" href={file} download onClick={reloadSoon}>
        <Icon name="download" />
        Download the file
      </a>
    )
  }
  return (
    <DrawerButton icon="download" text="Download the file again">
      {close => (
        <>
          <p>
            A bank that receives a file twice may pay all members twice. Download it again only if the bank does not
            have it.
          </p>
          <ul>
            {copies.map(({ kind, person, at }) => (
              <li key={at}>
                {copyVerbs[kind]} by {person === null ? 'the worker' : <Person who={person} />}, <Time at={at} />
              </li>
            ))}
          </ul>
          <a
            class="button button-main"
            href={`${file}?again=true`}
            download
            onClick={() => {
              close()
              reloadSoon()
            }}
          >
            The bank does not have it: download
          </a>
        </>
      )}
    </DrawerButton>
  )
}

const reloadMs = 1_500
const copyVerbs = { delivery: 'Delivered', export: 'Exported', download: 'Downloaded' } as const

function approvalInWords({ status, approvals, approvalsNeeded }: PayoutBatch): string {
  return status === 'approved'
    ? 'Approved; the batch can be sent'
    : `${approvals.length} of ${approvalsNeeded} approvals; another person must also approve it`
}

/** The history of a batch: its milestones and the operators' actions. */
function History({ batch }: { batch: PayoutBatch }) {
  const { id, status, held, fileSha256, closedAt, proposal } = batch
  const key = `operator-batch-log ${id} ${status} ${held} ${fileSha256} ${closedAt} ${proposal?.proposedAt}`
  const log = useLoaded(key, () => operators.listAuditEntries({ resourceId: id, take: 100 }))
  return <Timeline steps={stepsOf(batch, log.value?.entries ?? [])} />
}

const actionLabels: Record<string, { verb: string; tone: Step['tone'] }> = {
  'payout_batch.close': { verb: 'Closed early', tone: 'flow' },
  'payout_batch.withdraw': { verb: 'Proposal to close withdrawn', tone: 'calm' },
  'payout_batch.hold': { verb: 'Held', tone: 'wait' },
  'payout_batch.release': { verb: 'Released', tone: 'calm' },
  'payout_batch.export': { verb: 'File exported', tone: 'flow' },
  'payout_batch.download': { verb: 'File downloaded', tone: 'calm' },
}

function stepsOf(batch: PayoutBatch, entries: AuditEntry[]): Step[] {
  const { approvals, approvedAutomatically, status } = batch
  const step = (key: string, at: string | null, tone: Step['tone'], title: string): Step[] =>
    at === null ? [] : [{ key, at, tone, title }]
  // A change is recorded once per partner with payments in the batch.
  const entriesOnce = new Map(entries.map(entry => [`${entry.at} ${entry.action} ${entry.actor}`, entry]))
  const steps = [
    ...step('closed', batch.closedAt, 'calm', 'Closed to further payments'),
    ...approvals.map(
      ({ person, at }): Step => ({
        ...{ key: `by ${person}`, at, tone: 'flow' },
        title: (
          <>
            Approved by <Person who={person} />
          </>
        ),
      }),
    ),
    ...step(
      'approved',
      batch.approvedAt,
      'flow',
      approvedAutomatically ? 'Approved automatically: within the limits' : 'Approved',
    ),
    ...[...entriesOnce].flatMap(([key, { action, at, actor, details }]): Step[] => {
      const label = actionLabels[action]
      if (label === undefined) return []
      const { reason, note, isProposed } = details as { reason?: unknown; note?: unknown; isProposed?: unknown }
      const title = (
        <>
          {isProposed === true ? 'Closing proposed' : label.verb} by <Person who={actor} />
        </>
      )
      const why = reason ?? note
      return [{ key, at, tone: label.tone, title, children: typeof why === 'string' && <p>{why}</p> }]
    }),
    ...step('sent', batch.sentAt, 'good', 'Marked as sent to the bank'),
    ...step('acknowledged', batch.acknowledgedAt, 'good', 'Acknowledged by the bank'),
    ...(status === 'settled' ? step('ended', batch.endedAt, 'good', 'Settled: every payment has an answer') : []),
    ...(status === 'rejected' ? step('ended', batch.endedAt, 'bad', 'Rejected by the bank') : []),
    ...(status === 'cancelled' ? step('ended', batch.endedAt, 'calm', 'Cancelled: all payments were removed') : []),
  ]
  if (steps.length === 0) return [{ key: 'building', at: null, tone: 'wait', title: 'Payments are being added' }]
  return steps.sort((one, other) => (one.at ?? '').localeCompare(other.at ?? ''))
}

const csvColumns: ExportColumn<BatchPayment>[] = [
  'reference',
  ['payee', row => row.payee?.accountHolder ?? null],
  ['account_last_four', row => row.payee?.lastFour ?? null],
  'partnerId',
  ['partner', row => row.partnerName],
  'withdrawalId',
  'amount',
  ['currency', row => row.amount.currency],
  'outcome',
  'reason',
  'removedAt',
]

function Payments({ batch: { id, status, sentAt } }: { batch: PayoutBatch }) {
  const listed = useList(`operator-batch-payments ${id}`, take => operators.listBatchPayments(id, { take }))
  const actionColumn: Column<BatchPayment> = {
    title: 'Action',
    isTitleHidden: true,
    cell: payment =>
      sentAt !== null ? (
        <RecordOutcome payment={payment} />
      ) : (
        payment.removedAt === null && <Remove payment={payment} />
      ),
    isFigure: true,
  }
  const columns: Column<BatchPayment>[] = [
    {
      title: 'Payee',
      cell: ({ payee, partnerId, memberId }) => (
        <a class="link" href={`/console/${partnerId}/members/${memberId}`}>
          {payee?.accountHolder ?? 'Erased'}
        </a>
      ),
    },
    { title: 'Account', cell: ({ payee }) => (payee === null ? '–' : <code>…{payee.lastFour}</code>) },
    {
      title: 'Partner',
      cell: ({ partnerId, partnerName }) => (
        <a class="link" href={`/console/operator/partners/${partnerId}`}>
          {partnerName}
        </a>
      ),
      isMinor: true,
    },
    {
      title: 'Reference',
      cell: ({ reference, withdrawalId, partnerId }) => (
        <Id id={reference} isWhole href={`/console/${partnerId}/withdrawals/${withdrawalId}`} />
      ),
      isMinor: true,
    },
    {
      title: 'Answer',
      cell: ({ outcome, removedAt, reason }) => (
        <>
          <State state={removedAt === null ? (outcome ?? (isUnsent(status) ? 'not_sent' : 'pending')) : 'removed'} />{' '}
          {reason !== null && <span class="quiet">{reason}</span>}
        </>
      ),
      // Unsent batches have no answers.
      isMinor: isUnsent(status),
    },
    { title: 'Amount', cell: ({ amount }) => <Amount money={amount} />, isFigure: true },
    ...(isUnsent(status) || sentAt !== null ? [actionColumn] : []),
  ]
  return (
    <TablePanel
      title="Payments"
      aside={<ExportButton name={`payments-${id}`} columns={csvColumns} rows={listed.all} />}
      columns={columns}
      list={listed}
      keyOf={({ reference }) => reference}
      empty="No payments"
    />
  )
}

function Remove({ payment: { reference, amount } }: { payment: BatchPayment }) {
  return (
    <ReasonButton
      text="Remove"
      label={`Remove ${reference}`}
      title={`Remove ${reference} from the batch`}
      isFinal
      note="Shown to the partner and the member"
      change={({ reason = '' }) => operators.removePayment(reference, { reason })}
      done="Removed. The withdrawal fails within a minute, and the money is returned to the member."
      reloads={reloadPrefix}
    >
      The withdrawal of <Amount money={amount} /> fails, and the money is returned to the member. The payment cannot
      join another batch.
    </ReasonButton>
  )
}
