import { toDecimal } from '@openwage/sdk'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { act } from '../../act.ts'
import { admin } from '../../admin.ts'
import { ActButton } from '../../components/act-button.tsx'
import { ExportButton } from '../../components/export.tsx'
import { Icon } from '../../components/icon.tsx'
import { Drawer, Figure, KeyValues, Page, Panel, PendingPage, type Step, Timeline } from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { ReasonDrawer } from '../../components/reason.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Day, Id, State, Time } from '../../components/values.tsx'
import { plural } from '../../format.ts'
import type { AuditEntry, BatchPayment, PayoutBatch, PayoutBatchId, Rail } from '../../generated/admin.ts'
import { reload, useList, useLoaded } from '../../query.ts'
import { isSandbox, session } from '../../session.ts'
import { toast } from '../../toasts.ts'
import { BankAnswers } from './bank-answers.tsx'
import { BatchState } from './batches.tsx'
import { HeldBy, useRails } from './holds.tsx'
import { RecordOutcome } from './payment-outcome.tsx'

const back = { href: '/console/operator/batches', title: 'Payouts' }
const changes = 'operator-batch'

const unsent = (status: PayoutBatch['status']) => status === 'building' || status === 'approved'
/** Nothing tells two approvals of one person from one, so the page counts the reader's own. */
const hasApproved = ({ approvals }: PayoutBatch) => approvals.some(({ person }) => person === session.value?.user.id)

export default function BatchPage() {
  const { id } = useRoute().params as { id: PayoutBatchId }
  const { value, error, reload: retry } = useLoaded(`operator-batch ${id}`, () => admin.getPayoutBatch(id))
  const rails = useRails()
  if (value === undefined) return <PendingPage title="Batch" back={back} error={error} onRetry={retry} />
  const rail = rails.find(({ name }) => name === value.rail)
  return (
    <Page title={`Batch ${value.messageId}`} back={back} actions={<Actions batch={value} rail={rail} />}>
      <div class="record-head">
        <span class="record-amount">
          <Amount money={value.total} />
        </span>
        <BatchState batch={value} />
        <span class="record-to">
          {plural(value.paymentCount, 'payment')}, value date <Day day={value.valueDate} />
        </span>
      </div>
      <Notices batch={value} rail={rail} />
      {value.status === 'building' && (
        <div class="figures">
          {value.needsApproval && (
            <Figure title="Approvals" note="Different people must approve">
              {value.approvals.length} of {value.approvalsNeeded}
            </Figure>
          )}
          <Figure title="Cut-off" note={value.needsApproval ? undefined : 'Until then payments join the batch'}>
            <Time at={value.cutOffAt} />
          </Figure>
        </div>
      )}
      <div class="columns">
        <Payments batch={value} />
        <div class="stack">
          <Panel title="Timeline">
            <History batch={value} />
          </Panel>
          <Panel title="Details">
            <KeyValues
              entries={[
                ['Batch', <Id key="id" id={id} isLink={false} />],
                ['Rail', value.rail],
                ['Paid from', value.debtor === 'default' ? 'The rail’s account' : <Id key="of" id={value.debtor} />],
                ['Speed', value.isInstant ? 'Instant' : 'Standard'],
                ['File', value.fileName ?? '–'],
                [
                  'SHA-256 of the file',
                  value.fileSha256 === null ? '–' : <Id key="sum" id={value.fileSha256} isWhole />,
                ],
                ['Payee names', value.nameCheck ?? 'Not checked by the bank'],
              ]}
            />
          </Panel>
        </div>
      </div>
    </Page>
  )
}

function Notices({ batch, rail }: { batch: PayoutBatch; rail: Rail | undefined }) {
  const { status, hold, needsApproval } = batch
  return (
    <>
      {hold !== null && (
        <p class="notice below-s">
          Held <HeldBy hold={hold} />
        </p>
      )}
      {unsent(status) && rail?.hold != null && (
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
        <p class="notice below-s">You have approved this batch. Another person must approve it, too.</p>
      )}
    </>
  )
}

function Actions({ batch, rail }: { batch: PayoutBatch; rail: Rail | undefined }) {
  const [isAsking, setIsAsking] = useState(false)
  const { id, status, held, needsApproval, fileSha256 } = batch
  const approve = async () => {
    // In another window the reader may have approved it already, which the server takes as a repeat.
    const latest = await admin.getPayoutBatch(id).catch(() => batch)
    if (hasApproved(latest)) {
      toast('You approved this batch already. Another person must approve it, too.', { kind: 'bad' })
      reload(changes)
    } else await act(() => admin.approvePayoutBatch(id), approvalInWords, changes)
  }
  const isByHand = rail?.isByHand === true
  return (
    <>
      {fileSha256 !== null && <Download batch={batch} />}
      {isSandbox.value && isByHand && (status === 'sent' || status === 'acknowledged') && <BankAnswers batch={batch} />}
      {unsent(status) && (
        <button type="button" class="button" onClick={() => setIsAsking(true)}>
          {held ? 'Release' : 'Hold'}
        </button>
      )}
      {needsApproval && !hasApproved(batch) && (
        <ActButton look="button button-main" act={approve}>
          Approve
        </ActButton>
      )}
      {isByHand && status === 'approved' && !held && rail.hold === null && (
        <ActButton
          look="button button-main"
          act={() =>
            act(
              () => admin.exportPayoutBatch(id),
              'The file is fixed. Download it, and take it to the bank once.',
              changes,
            )
          }
        >
          Export the file
        </ActButton>
      )}
      <ReasonDrawer
        title={held ? 'Release the batch' : 'Hold the batch'}
        submit={held ? 'Release' : 'Hold'}
        note="For operators and the audit log; nothing personal"
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        onSubmit={async given => {
          await (held ? admin.releasePayoutBatch(id, given) : admin.holdPayoutBatch(id, given))
          toast(held ? 'Released' : 'Held until it is released')
          reload(changes)
        }}
      >
        {held
          ? 'Once it is approved, it can be sent.'
          : 'It is not sent until you release it. What has been sent cannot be stopped here; call the bank.'}
      </ReasonDrawer>
    </>
  )
}

/** A file goes to the bank once, so the page asks before it is downloaded again. */
function Download({ batch: { id, copies } }: { batch: PayoutBatch }) {
  const [isAsking, setIsAsking] = useState(false)
  const file = `/admin/v1/payout-batches/${id}/file`
  // The download is recorded when it begins, which no event tells.
  const reloadSoon = () => setTimeout(() => reload(changes), reloadMs)
  if (copies.length === 0) {
    return (
      <a class="button" href={file} download onClick={reloadSoon}>
        <Icon name="download" />
        Download the file
      </a>
    )
  }
  return (
    <>
      <button type="button" class="button" onClick={() => setIsAsking(true)}>
        <Icon name="download" />
        Download the file again
      </button>
      <Drawer title="Download the file again" isOpen={isAsking} onClose={() => setIsAsking(false)}>
        <p>
          A bank that gets a file twice may pay all members twice. Download it again only if the bank does not have it.
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
            setIsAsking(false)
            reloadSoon()
          }}
        >
          The bank does not have it: download
        </a>
      </Drawer>
    </>
  )
}

const reloadMs = 1_500
const copyVerbs = { delivery: 'Delivered', export: 'Exported', download: 'Downloaded' } as const

function approvalInWords({ status, approvals, approvalsNeeded }: PayoutBatch): string {
  return status === 'approved'
    ? 'Approved: the batch can be sent'
    : `${approvals.length} of ${approvalsNeeded} approvals; another person must approve it, too`
}

/** What happened to a batch: its own times, and what operators did with it. */
function History({ batch }: { batch: PayoutBatch }) {
  const { id, status, held, fileSha256 } = batch
  const key = `operator-batch-log ${id} ${status} ${held} ${fileSha256}`
  const log = useLoaded(key, () => admin.listAuditEntries({ resourceId: id, take: 100 }))
  return <Timeline steps={stepsOf(batch, log.value?.entries ?? [])} />
}

const deeds: Record<string, { verb: string; tone: Step['tone'] }> = {
  'payout_batch.hold': { verb: 'Held', tone: 'wait' },
  'payout_batch.release': { verb: 'Released', tone: 'calm' },
  'payout_batch.export': { verb: 'File exported', tone: 'flow' },
  'payout_batch.download': { verb: 'File downloaded', tone: 'calm' },
}

function stepsOf(batch: PayoutBatch, entries: AuditEntry[]): Step[] {
  const { approvals, approvedAutomatically, status } = batch
  const step = (key: string, at: string | null, tone: Step['tone'], title: string): Step[] =>
    at === null ? [] : [{ key, at, tone, title }]
  // A change is recorded once for each partner with payments in the batch.
  const deedsOnce = new Map(entries.map(entry => [`${entry.at} ${entry.action} ${entry.actor}`, entry]))
  const steps = [
    ...step('closed', batch.closedAt, 'calm', 'Closed: no payment joins it any longer'),
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
    ...step('approved', batch.approvedAt, 'flow', approvedAutomatically ? 'Approved: within the limits' : 'Approved'),
    ...[...deedsOnce].flatMap(([key, { action, at, actor, details }]): Step[] => {
      const deed = deeds[action]
      if (deed === undefined) return []
      const { reason } = details as { reason?: unknown }
      const title = (
        <>
          {deed.verb} by <Person who={actor} />
        </>
      )
      return [{ key, at, tone: deed.tone, title, children: typeof reason === 'string' && <p>{reason}</p> }]
    }),
    ...step('sent', batch.sentAt, 'good', 'Counts as sent to the bank'),
    ...step('acknowledged', batch.acknowledgedAt, 'good', 'The bank has the batch'),
    ...(status === 'settled' ? step('ended', batch.endedAt, 'good', 'Settled: every payment has an answer') : []),
    ...(status === 'rejected' ? step('ended', batch.endedAt, 'bad', 'Rejected by the bank') : []),
    ...(status === 'cancelled' ? step('ended', batch.endedAt, 'calm', 'Cancelled: no payment was left in it') : []),
  ]
  if (steps.length === 0) return [{ key: 'building', at: null, tone: 'wait', title: 'Payments are being added' }]
  return steps.sort((one, other) => (one.at ?? '').localeCompare(other.at ?? ''))
}

function Payments({ batch: { id, status, sentAt } }: { batch: PayoutBatch }) {
  const [removing, setRemoving] = useState<BatchPayment>()
  const list = (take: number) => admin.listBatchPayments(id, { take })
  const listed = useList(
    `operator-batch-payments ${id}`,
    () => list(50),
    page => page.payments,
  )
  const columns: Column<BatchPayment>[] = [
    { title: 'Reference', cell: ({ reference }) => <Id id={reference} isWhole isLink={false} /> },
    {
      title: 'Withdrawal',
      cell: ({ withdrawalId, partnerId }) => (
        <Id id={withdrawalId} href={`/console/${partnerId}/withdrawals/${withdrawalId}`} />
      ),
      isMinor: true,
    },
    {
      title: 'Answer',
      cell: ({ outcome, removedAt, reason }) => (
        <>
          <State state={removedAt === null ? (outcome ?? (unsent(status) ? 'not_sent' : 'pending')) : 'removed'} />{' '}
          {reason !== null && <span class="quiet">{reason}</span>}
        </>
      ),
      // Before the batch is sent there is none.
      isMinor: unsent(status),
    },
    { title: 'Amount', cell: ({ amount }) => <Amount money={amount} />, isFigure: true },
    ...(unsent(status) || sentAt !== null
      ? [
          {
            title: 'Action',
            cell: (payment: BatchPayment) =>
              sentAt !== null ? (
                <RecordOutcome payment={payment} />
              ) : (
                payment.removedAt === null && (
                  <button
                    type="button"
                    class="button"
                    aria-label={`Remove ${payment.reference}`}
                    onClick={() => setRemoving(payment)}
                  >
                    Remove
                  </button>
                )
              ),
            isFigure: true,
          },
        ]
      : []),
  ]
  return (
    <Panel
      isFlush
      title="Payments"
      aside={
        <ExportButton
          name={`payments-${id}`}
          columns={[
            ['reference', (row: BatchPayment) => row.reference],
            ['partner_id', row => row.partnerId],
            ['withdrawal_id', row => row.withdrawalId],
            ['amount', row => toDecimal(row.amount)],
            ['currency', row => row.amount.currency],
            ['outcome', row => row.outcome],
            ['reason', row => row.reason],
            ['removed_at', row => row.removedAt],
          ]}
          rows={() => list(1_000)}
        />
      }
    >
      <Table
        label="Payments"
        columns={columns}
        list={listed}
        keyOf={({ reference }) => reference}
        empty={<Empty title="No payments" />}
      />
      <ReasonDrawer
        title={`Remove ${removing?.reference ?? ''} from the batch`}
        submit="Remove"
        note="The partner and the member read it"
        isOpen={removing !== undefined}
        onClose={() => setRemoving(undefined)}
        onSubmit={async ({ reason = '' }) => {
          await admin.removePayment(removing?.reference ?? '', { reason })
          toast('Removed. The withdrawal fails within a minute, and the member has the money back.')
          reload(changes)
        }}
      >
        The withdrawal of <Amount money={removing?.amount} /> fails, and the member has the money back. It cannot join a
        batch again.
      </ReasonDrawer>
    </Panel>
  )
}
