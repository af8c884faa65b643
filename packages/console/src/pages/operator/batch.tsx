import { useRoute } from 'preact-iso'
import { admin } from '../../admin.ts'
import { act } from '../../components/act.ts'
import { Icon } from '../../components/icon.tsx'
import { Figure, KeyValues, Page, Panel, type Step, Timeline } from '../../components/layout.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Day, Id, State, Time } from '../../components/values.tsx'
import { formatNumber } from '../../format.ts'
import type { BatchPayment, PayoutBatch, PayoutBatchId } from '../../generated/admin.ts'
import { useList, useLoaded } from '../../query.ts'
import { BatchState } from './batches.tsx'

const back = { href: '/console/operator/batches', title: 'Payouts' }

export default function BatchPage() {
  const { id } = useRoute().params as { id: PayoutBatchId }
  const { value, error, reload } = useLoaded(`operator-batch ${id}`, () => admin.getPayoutBatch(id))
  if (value === undefined)
    return (
      <Page title="Batch" back={back}>
        {error === undefined ? <Skeleton lines={8} /> : <Failure error={error} onRetry={reload} />}
      </Page>
    )
  const change = (operation: (batchId: PayoutBatchId) => PromiseLike<unknown>, done: string) =>
    void act(() => operation(id), done, 'operator-batch')
  return (
    <Page
      title={`Batch ${value.messageId}`}
      back={back}
      actions={
        <>
          {value.fileName !== null && (
            <a class="button" href={`/admin/v1/payout-batches/${id}/file`} download>
              <Icon name="download" />
              File
            </a>
          )}
          {(value.status === 'building' || value.status === 'approved') && (
            <button
              type="button"
              class="button"
              onClick={() =>
                value.held
                  ? change(admin.releasePayoutBatch, 'Released')
                  : change(admin.holdPayoutBatch, 'Held until it is released')
              }
            >
              {value.held ? 'Release' : 'Hold'}
            </button>
          )}
          {value.needsApproval && (
            <button
              type="button"
              class="button button-main"
              onClick={() => change(admin.approvePayoutBatch, 'Your approval is recorded')}
            >
              Approve
            </button>
          )}
        </>
      }
    >
      <div class="record-head">
        <span class="record-amount">
          <Amount money={value.total} />
        </span>
        <BatchState batch={value} />
        <span class="record-to">
          {formatNumber(value.paymentCount)} payments, value date <Day day={value.valueDate} />
        </span>
      </div>
      {value.needsApproval && (
        <div class="figures">
          <Figure title="Approvals" note="Different people must approve">
            {formatNumber(value.approvals.length)} of {formatNumber(value.approvalsNeeded)}
          </Figure>
          <Figure title="Cut-off">
            <Time at={value.cutOffAt} />
          </Figure>
        </div>
      )}
      <div class="columns">
        <Payments id={id} />
        <div class="stack">
          <Panel title="Timeline">
            <Timeline steps={stepsOf(value)} timeOf={at => <Time at={at} />} />
          </Panel>
          <Panel title="Details">
            <KeyValues
              entries={[
                ['Batch', <Id key="id" id={id} isLink={false} />],
                ['Rail', value.rail],
                ['Paid from', value.debtor],
                ['File', value.fileName ?? '–'],
              ]}
            />
          </Panel>
        </div>
      </div>
    </Page>
  )
}

function stepsOf(batch: PayoutBatch): Step[] {
  const steps: (Step | undefined)[] = [
    batch.closedAt === null
      ? undefined
      : { key: 'closed', at: batch.closedAt, tone: 'calm', title: 'Closed: no payment is added any longer' },
    ...batch.approvals.map(
      ({ person, at }): Step => ({ key: person, at, tone: 'flow', title: `Approved by ${person}` }),
    ),
    batch.approvedAt === null
      ? undefined
      : {
          ...{ key: 'approved', at: batch.approvedAt, tone: 'flow' },
          title: batch.approvedAutomatically ? 'Approved: within the limits' : 'Approved',
        },
    batch.sentAt === null ? undefined : { key: 'sent', at: batch.sentAt, tone: 'good', title: 'Sent to the bank' },
  ]
  const known = steps.filter(step => step !== undefined)
  return known.length > 0 ? known : [{ key: 'building', at: null, tone: 'wait', title: 'Payments are being added' }]
}

const columns: Column<BatchPayment>[] = [
  { title: 'Reference', cell: ({ reference }) => <Id id={reference} isWhole isLink={false} /> },
  { title: 'Withdrawal', cell: ({ withdrawalId }) => <Id id={withdrawalId} isLink={false} />, isMinor: true },
  {
    title: 'Answer',
    cell: ({ outcome, removedAt, reason }) => (
      <State state={removedAt === null ? (outcome ?? 'pending') : 'removed'} title={reason ?? undefined} />
    ),
  },
  { title: 'Amount', cell: ({ amount }) => <Amount money={amount} />, isFigure: true },
]

function Payments({ id }: { id: PayoutBatchId }) {
  const listed = useList(
    `operator-batch-payments ${id}`,
    () => admin.listBatchPayments(id, { take: 50 }),
    page => page.payments,
  )
  return (
    <Panel isFlush title="Payments">
      <Table
        label="Payments"
        columns={columns}
        list={listed}
        keyOf={({ reference }) => reference}
        empty={<Empty title="No payments" />}
      />
    </Panel>
  )
}
