import type { Money, PayRunDetails } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { api, partnerHeaders, partnerId, sendTable } from '../api.ts'
import { Button, MainButton } from '../components/button.tsx'
import { FileCheck } from '../components/file-check.tsx'
import { Figure, Panel } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Failure } from '../components/states.tsx'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { formatMoney, formatNumber, plural } from '../format.ts'
import { messageOf } from '../problems.ts'
import { reload, useLoaded } from '../query.ts'
import { toast } from '../toasts.ts'
import { Revert } from './pay-run.tsx'

type PayRunId = PayRunDetails['id']
type PayDetail = { memberId: `mem_${string}`; money: Money }
type Part = {
  idempotencyKey: string
  sent: { payRunId: PayRunId | null; at: string } | null
  payDetails: PayDetail[]
}
/** The contents of a file as read by the service. Each part is the body of one pay run. */
type Checked = { lineCount: number; memberCount: number; totals: Money[]; parts: Part[] }

// A full pay run takes seconds on a busy service, and uploading its body takes longer on a slow connection.
const uploadMsMax = 120_000
/** Enough to see that the file was understood. */
const linesShown = 20

/** Reads a pay file, shows a preview, and creates pay runs when the reader confirms. */
export function PayRunUpload() {
  return (
    <Panel>
      <div class="stack">
        <FileCheck
          label="Preview of the pay"
          pageAction="add-pay"
          note={<Columns />}
          check={file => sendTable<Checked>('/console/v1/pay-run-files', file)}
        >
          {({ file, result, discard, hold }) => (
            <Preview file={file} checked={result} onDiscard={discard} onSending={hold} />
          )}
        </FileCheck>
      </div>
    </Panel>
  )
}

function Preview({ file, checked, onDiscard, onSending }: PreviewProps) {
  const [parts, setParts] = useState(checked.parts)
  const [step, setStep] = useState<'checked' | 'sending' | 'sent'>('checked')
  const [problem, setProblem] = useState<unknown>()
  /** Sends the parts that have not been sent. Idempotent: each part has its own idempotency key. */
  const send = async (unsent: Part[]) => {
    const parts = [...unsent]
    // The reader may switch to another partner before the last part.
    const headers = {
      ...partnerHeaders(partnerId.peek()),
      'midmonth-file-name': encodeURIComponent(file.name.slice(-200)),
    }
    onSending(true)
    setStep('sending')
    setProblem(undefined)
    try {
      for (const [index, part] of parts.entries()) {
        setParts([...parts])
        if (part.sent === null) parts[index] = { ...part, sent: await upload(part, headers) }
      }
      reload('pay-run', 'member')
      setStep('sent')
    } catch (error) {
      setProblem(error)
      setStep('checked')
      toast(messageOf(error), { kind: 'bad' })
    }
    setParts(parts)
    onSending(false)
  }
  if (step === 'sent') return <Sent payRunIds={parts.flatMap(({ sent }) => sent?.payRunId ?? [])} />
  return (
    <>
      <Summary checked={checked} />
      {step === 'sending' ? (
        <Sending parts={parts} />
      ) : (
        <Confirm checked={{ ...checked, parts }} problem={problem} onSend={send} onDiscard={onDiscard} />
      )}
    </>
  )
}

type PreviewProps = { file: File; checked: Checked; onDiscard: () => void; onSending: (isSending: boolean) => void }

async function upload({ payDetails, idempotencyKey }: Part, headers: Record<string, string>): Promise<Part['sent']> {
  const options = { idempotencyKey, timeoutMs: uploadMsMax, headers }
  const { id } = await api.payRuns.create({ payDetails }, options)
  return { payRunId: id, at: new Date().toISOString() }
}

function Columns() {
  return (
    <p class="quiet">
      One line per member: <code>member_id</code>, <code>worker_id</code> or <code>email</code>, and <code>amount</code>{' '}
      such as 120.00 in the member’s currency. A negative amount corrects earlier pay. A pay run reports what members
      have earned, so that they can withdraw it; nothing is added until you confirm.
    </p>
  )
}

function Summary({ checked: { lineCount, memberCount, totals, parts } }: { checked: Checked }) {
  const last = useLastPayRun()
  const lines = parts[0]?.payDetails.slice(0, linesShown) ?? []
  return (
    <>
      <div class="figures">
        <Figure title="Members">{formatNumber(memberCount)}</Figure>
        <Figure title="Lines" note={last && `${formatNumber(last.lineCount)} in the last pay run`}>
          {formatNumber(lineCount)}
        </Figure>
        {totals.map(total => (
          <Figure
            key={total.currency}
            title={`Total in ${total.currency}`}
            note={<Against total={total} last={last} />}
            money={total}
          />
        ))}
      </div>
      <details>
        <summary>{lineCount > lines.length ? `Preview: the first ${lines.length} lines` : 'Preview'}</summary>
        <ul class="lines">
          {lines.map(({ memberId, money }, index) => (
            <li key={index}>
              <MemberName id={memberId} />
              <Amount money={money} />
            </li>
          ))}
        </ul>
      </details>
    </>
  )
}

/** The newest pay run that has not been reverted, for comparison. */
function useLastPayRun(): PayRunDetails | undefined {
  const { value } = useLoaded('pay-run-last', async () => {
    const { payRuns } = await api.payRuns.list({ statuses: ['Scheduled', 'Available'], take: 1 })
    const [newest] = payRuns
    return newest === undefined ? null : await api.payRuns.get(newest.id)
  })
  return value ?? undefined
}

const percent = new Intl.NumberFormat(navigator.languages as string[], {
  style: 'percent',
  maximumFractionDigits: 0,
  signDisplay: 'exceptZero',
})

function Against({ total, last }: { total: Money; last: PayRunDetails | undefined }) {
  const before = last?.totals.find(({ currency }) => currency === total.currency)
  if (before === undefined) return null
  const change =
    before.amount > 0 && before.amount !== total.amount
      ? ` (${percent.format((total.amount - before.amount) / before.amount)})`
      : ''
  return (
    <>
      {formatMoney(before)} in the last pay run{change}
    </>
  )
}

type ConfirmProps = {
  checked: Checked
  problem?: unknown
  onSend: (parts: Part[]) => Promise<void>
  onDiscard: () => void
}

/** Asks for confirmation. If the file has already been sent, sending it again is a separate choice. */
function Confirm({ checked, problem, onSend, onDiscard }: ConfirmProps) {
  const { parts, totals, memberCount } = checked
  const sent = parts.flatMap(part => part.sent ?? [])
  const isSent = sent.length === parts.length
  const added = totals.map(formatMoney).join(' and ')
  return (
    <>
      {problem !== undefined && <Failure error={problem} />}
      {sent.length > 0 && (
        <div class="notice">
          {isSent
            ? 'These lines have already been sent'
            : `${sent.length} of ${parts.length} parts have already been sent`}
          :{' '}
          {sent.map(({ payRunId, at }) => (
            <span key={at} class="notice-line">
              {payRunId !== null && <Id id={payRunId} />} <Time at={at} />
            </span>
          ))}
          {isSent && ' Sending them again adds the pay a second time.'}
        </div>
      )}
      {parts.length > 1 && (
        <p>The file becomes {parts.length} pay runs, because a pay run can have at most 100,000 lines.</p>
      )}
      <div class="button-list">
        {isSent ? (
          <Button act={() => onSend(parts.map(part => ({ ...part, sent: null })))}>Add {added} of pay again</Button>
        ) : (
          <MainButton act={() => onSend(parts)}>
            {sent.length > 0 ? 'Send the rest' : `Add ${added} of pay for ${plural(memberCount, 'member')}`}
          </MainButton>
        )}
        <Button act={onDiscard}>Discard</Button>
      </div>
    </>
  )
}

function Sending({ parts }: { parts: Part[] }) {
  const done = parts.filter(({ sent }) => sent !== null).length
  return (
    <p class="progress row" role="status">
      {parts.length > 1 ? (
        <progress max={parts.length} value={done} aria-label="Progress" />
      ) : (
        <progress aria-label="Progress" />
      )}
      {parts.length > 1 ? `Sending part ${done + 1} of ${parts.length}` : 'Sending'}
    </p>
  )
}

function Sent({ payRunIds }: { payRunIds: PayRunId[] }) {
  return (
    <section class="stack stack-s" aria-label="Uploaded pay runs">
      <div role="status">
        <h2>{payRunIds.length === 1 ? 'The pay run was uploaded' : `${payRunIds.length} pay runs were uploaded`}</h2>
      </div>
      <ul class="lines">
        {payRunIds.map(id => (
          <li key={id}>
            <SentPayRun id={id} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function SentPayRun({ id }: { id: PayRunId }) {
  const { value } = useLoaded(`pay-run ${id}`, () => api.payRuns.get(id))
  return (
    <>
      <span class="facts row row-wrap">
        <Id id={id} />
        {value && <State state={value.status} />}
        {value?.totals.map(total => (
          <Amount key={total.currency} money={total} />
        ))}
        {value?.status === 'Scheduled' && (
          <span>
            available from <Time at={value.scheduledFor} />
          </span>
        )}
      </span>
      {value && <Revert payRun={value} />}
    </>
  )
}
