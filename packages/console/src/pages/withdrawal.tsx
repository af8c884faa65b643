import type {
  LoggedRequest,
  MemberStatementLine,
  WithdrawalDetails,
  WithdrawalIntentExplanation,
  WithdrawalStatus,
  WithdrawalTimeline,
} from '@midmonth/sdk'
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRoute } from 'preact-iso'
import { act, actUnlessUndone } from '../act.ts'
import { api } from '../api.ts'
import { authorName } from '../components/author.tsx'
import { BadButton, Button } from '../components/button.tsx'
import { KeyValuesPanel, Page, Panel, PendingPage, RecordHead, type Step, Timeline } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { MetadataPanel } from '../components/metadata.tsx'
import { Skeleton } from '../components/states.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { inWords, plural } from '../format.ts'
import type { Payout } from '../generated/operator.ts'
import { operators } from '../operators.ts'
import { at } from '../places.ts'
import { prefetch, useLoaded } from '../query.ts'
import { isSandbox, may, session } from '../session.ts'
import { RecordOutcome } from './operator/payment-outcome.tsx'
import { payoutSteps } from './operator/payout-steps.tsx'
import { Proposed } from './operator/proposals.tsx'

type WithdrawalId = WithdrawalDetails['id']
export function prefetchWithdrawal(id: string): void {
  prefetch(`withdrawal ${id}`, () => api.withdrawals.get(id as WithdrawalId))
}

export default function Withdrawal() {
  const { id } = useRoute().params as { id: WithdrawalId }
  const { value, error, reload: retry } = useLoaded(`withdrawal ${id}`, () => api.withdrawals.get(id))
  if (value === undefined) return <PendingPage title="Withdrawal" error={error} onRetry={retry} />
  return <LoadedWithdrawal withdrawal={value} />
}

/** Loads the timeline; for operators, with the payment, its batch and the bank's answers. */
function useTimeline({ id, status }: WithdrawalDetails): (WithdrawalTimeline & { payout?: Payout | null }) | undefined {
  const read = () =>
    session.value?.isOperator === true ? operators.getWithdrawalHistory(id) : api.withdrawals.getTimeline(id)
  return useLoaded(`withdrawal-timeline ${id} ${status}`, read).value
}

function LoadedWithdrawal({ withdrawal }: { withdrawal: WithdrawalDetails }) {
  const { id, status, amount, netAmount, fee, memberId, payCycleId, bankAccount } = withdrawal
  const timeline = useTimeline(withdrawal)
  const payout = timeline?.payout ?? undefined
  const isUndoable = cancelling.value.has(id)
  return (
    <Page title="Withdrawal" actions={<Actions withdrawal={withdrawal} payout={payout} />}>
      <RecordHead amount={netAmount}>
        <State state={isUndoable ? 'cancelled' : status} />
        <span class="record-to">
          to <MemberName id={memberId} />, account ending in {bankAccount.lastFour}
        </span>
      </RecordHead>
      <div class="columns">
        <Panel title="Timeline">
          {timeline === undefined ? <Skeleton lines={5} /> : <Timeline steps={stepsOf(withdrawal, timeline, payout)} />}
        </Panel>
        <div class="stack">
          {payout?.proposal != null && <Proposed subject={payout.reference} proposal={payout.proposal} />}
          <KeyValuesPanel
            title="Amounts"
            entries={[
              ['Taken from pay', <Amount key="amount" money={amount} />],
              ['Fee', <Amount key="fee" money={fee} />],
              ['Paid out', <Amount key="net" money={netAmount} />],
              ['Available after', <Amount key="after" money={withdrawal.balanceAfter} />],
            ]}
          />
          <KeyValuesPanel
            entries={[
              ['Withdrawal', <Id key="id" id={id} isLink={false} />],
              ['Intent', <Id key="intent" id={withdrawal.withdrawalIntentId} />],
              ['Member', <Id key="member" id={memberId} />],
              ['Pay cycle', <Id key="cycle" id={payCycleId} />],
              ['Bank reference', <Id key="reference" id={withdrawal.paymentReference} isWhole />],
              ['Expected', <Time key="expected" at={withdrawal.expectedAt} />],
              ...(payout === undefined
                ? []
                : ([
                    ['Rail', payout.rail],
                    ['Batch', payout.batch === null ? 'None' : <Id key="batch" id={payout.batch.id} />],
                  ] as [string, ComponentChildren][])),
            ]}
          />
          <MetadataPanel metadata={withdrawal.metadata} />
        </div>
      </div>
    </Page>
  )
}

/** Withdrawals whose cancellation can still be undone. */
const cancelling = signal<ReadonlySet<string>>(new Set())

type ActionsProps = { withdrawal: WithdrawalDetails; payout: Payout | undefined }

function Actions({ withdrawal: { id, status }, payout }: ActionsProps) {
  const isCancelling = cancelling.value.has(id)
  const mark = (isOn: boolean) => {
    const changed = new Set(cancelling.value)
    if (isOn) changed.add(id)
    else changed.delete(id)
    cancelling.value = changed
  }
  const cancel = () => {
    mark(true)
    actUnlessUndone('Cancelled. The money is returned to the member.', () => api.withdrawals.cancel(id), {
      changes: ['withdrawal'],
      onEnd: () => mark(false),
    })
  }
  return (
    <>
      {payout?.batch?.sentAt != null && <RecordOutcome payment={payout} />}
      {isSandbox.value && may('developer') && <BankButtons id={id} status={status} />}
      {status === 'held' && may('support', 'payroll') && (
        <BadButton disabled={isCancelling} act={cancel}>
          Cancel withdrawal
        </BadButton>
      )}
    </>
  )
}

/** Simulates the bank of a sandbox. */
function BankButtons({ id, status }: { id: WithdrawalId; status: WithdrawalDetails['status'] }) {
  const answers = (
    [
      { title: 'Pay', from: ['held', 'submitted'], answer: () => api.sandbox.withdrawals.pay(id, {}) },
      { title: 'Fail', from: ['held', 'submitted'], answer: () => api.sandbox.withdrawals.fail(id, {}) },
      { title: 'Return', from: ['held', 'submitted', 'paid'], answer: () => api.sandbox.withdrawals.return(id, {}) },
    ] as const
  ).filter(({ from }) => (from as readonly string[]).includes(status))
  if (answers.length === 0) return null
  return (
    <fieldset class="button-group">
      <legend class="hidden-label">Simulate the bank</legend>
      {answers.map(({ title, answer }) => (
        <Button key={title} act={() => act(answer, undefined, 'withdrawal', 'member')}>
          {title}
        </Button>
      ))}
    </fieldset>
  )
}

const tones: Record<WithdrawalStatus, Step['tone']> = {
  ...{ held: 'wait', submitted: 'flow', paid: 'good', failed: 'bad', returned: 'bad', cancelled: 'calm' },
}

const meanings = {
  held: 'Held: deducted from the member’s available balance',
  submitted: 'Submitted to the bank',
  paid: 'Paid: confirmed by the bank',
  failed: 'Failed: the money is returned to the member',
  returned: 'Returned by the receiving bank: the money is returned to the member',
  cancelled: 'Cancelled: the money is returned to the member',
} as const

/** The complete timeline of a withdrawal, from the first request to the last webhook. */
function stepsOf(
  withdrawal: WithdrawalDetails,
  { steps: entered, explanation, requests, deliveries }: WithdrawalTimeline,
  payout: Payout | undefined,
): Step[] {
  const steps: Step[] = []
  for (const request of requests ?? [])
    steps.push({
      key: request.id,
      at: request.createdAt,
      tone: request.status < 400 ? 'calm' : 'bad',
      title: (
        <>
          {request.status} from{' '}
          <code>
            {request.method} {request.route ?? request.path}
          </code>
        </>
      ),
      children: <RequestFacts request={request} />,
    })
  steps.push({
    key: 'decision',
    at: explanation.inputs.createdAt,
    tone: 'calm',
    title: `Decided by tier ${explanation.tier.name}, version ${explanation.tier.version}`,
    children: <Decision explanation={explanation} />,
  })
  for (const [index, { status, at: enteredAt, reason, actor, paymentReference, lines }] of entered.entries())
    steps.push({
      key: `${status} ${index}`,
      ...{ at: enteredAt, tone: tones[status], title: meanings[status] },
      children: (
        <>
          {status === 'cancelled' && actor !== null ? (
            <p>Cancelled by {authorName(actor)}</p>
          ) : (
            reason && <p>{reason}</p>
          )}
          {paymentReference !== null && (
            <p>
              Reference <Id id={paymentReference} isWhole />
            </p>
          )}
          {lines.length > 0 && <Bookings lines={lines} withdrawal={withdrawal} />}
        </>
      ),
    })
  if (payout !== undefined) steps.push(...payoutSteps(payout))
  for (const { webhookId, url, ...delivery } of deliveries ?? [])
    steps.push({
      key: `${webhookId} ${delivery.id}`,
      at: delivery.lastAttemptAt ?? delivery.createdAt,
      tone: delivery.state === 'delivered' ? 'good' : delivery.state === 'failed' ? 'bad' : 'wait',
      title: (
        <>
          Webhook <code>{delivery.type}</code>{' '}
          {delivery.state === 'pending' ? 'waits' : inWords(delivery.state).toLowerCase()}
        </>
      ),
      children: (
        <p>
          <a href={at(`webhooks/${webhookId}`)}>{new URL(url).host}</a>, {delivery.attemptCount}{' '}
          {delivery.attemptCount === 1 ? 'attempt' : 'attempts'}
        </p>
      ),
    })
  // The sort is stable: equal instants keep the order of cause and effect.
  return steps.sort((one, other) => (one.at ?? '').localeCompare(other.at ?? ''))
}

function RequestFacts({ request }: { request: LoggedRequest }) {
  return (
    <p class="facts row row-wrap">
      <Id id={request.id} />
      <span>
        {request.keyId.startsWith('usr_') ? 'User' : 'Key'} <Id id={request.keyId} />
      </span>
      {request.idempotencyKey && (
        <span>
          Idempotency key <code>{request.idempotencyKey}</code>
        </span>
      )}
      {request.replayed && <span>Replayed</span>}
    </p>
  )
}

function Decision({ explanation }: { explanation: WithdrawalIntentExplanation }) {
  return (
    <details>
      <summary>
        Fee <Amount money={explanation.result.fee} /> ({plural(explanation.rules.length, 'rule')})
      </summary>
      <Rules explanation={explanation} />
    </details>
  )
}

/** Lists the rules of a decision in order, each with its result. */
export function Rules({ explanation }: { explanation: WithdrawalIntentExplanation }) {
  return (
    <ol class="rules">
      {explanation.rules.map(({ rule, because, amount }) => (
        <li key={rule}>
          <span>{inWords(rule)}</span>
          <span class="quiet">{because}</span>
          <Amount money={amount} />
        </li>
      ))}
    </ol>
  )
}

type BookingsProps = { lines: MemberStatementLine[]; withdrawal: WithdrawalDetails }

function Bookings({ lines, withdrawal: { netAmount, fee } }: BookingsProps) {
  const titleOf = ({ amount }: { amount: number }) =>
    Math.abs(amount) === netAmount.amount ? 'Payout' : Math.abs(amount) === fee.amount ? 'Fee' : 'Available pay'
  return (
    <ul class="bookings">
      {lines.map(line => (
        <li key={line.id}>
          <span>{titleOf(line.change.available)}</span>
          <Amount money={line.change.available} signed />
          <span class="quiet">
            leaves <Amount money={line.balanceAfter.available} />
          </span>
        </li>
      ))}
    </ul>
  )
}
