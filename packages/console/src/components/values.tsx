import type { Money } from '@midmonth/sdk'
import { formatDay, formatMoment, formatMoney, formatShortDay, formatWhole, inWords } from '../format.ts'
import { hrefOfId } from '../places.ts'
import { toast } from '../toasts.ts'
import { Icon } from './icon.tsx'

export function Amount({ money, signed = false }: { money: Money | null | undefined; signed?: boolean }) {
  if (money == null) return <span class="quiet">–</span>
  return (
    <span class="amount">
      {signed && money.amount > 0 ? '+' : ''}
      {formatMoney(money)}
    </span>
  )
}

/** An instant in the reader's time zone; the full date with its zone on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  if (at == null) return <span class="quiet">–</span>
  return (
    <time dateTime={at} title={formatWhole(at)}>
      {formatMoment(at)}
    </time>
  )
}

export function Day({ day, short = false }: { day: string | null; short?: boolean }) {
  if (day === null) return '–'
  return <time dateTime={day}>{short ? formatShortDay(day) : formatDay(day)}</time>
}

async function copy(text: string, what = 'Copied'): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toast(what)
  } catch {
    toast('The browser does not allow copying on this page', { kind: 'bad' })
  }
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  return (
    <button
      type="button"
      class="icon-button copy"
      aria-label={label}
      title={label}
      onClick={event => {
        event.stopPropagation()
        void copy(text)
      }}
    >
      <Icon name="copy" />
    </button>
  )
}

type IdProps = {
  id: string | null
  isLink?: boolean
  isWhole?: boolean
  /** The page of a record that belongs to another partner than the one shown. */
  href?: string | undefined
}

/** An id, shortened to its prefix and last characters; the full id on hover and in the clipboard. Links to the record's page, if any. */
export function Id({ id, isLink = true, isWhole = false, href = isLink ? hrefOfId(id ?? '') : undefined }: IdProps) {
  if (id === null) return '–'
  const [prefix = '', rest = ''] = id.split('_')
  const short = isWhole || rest.length < 10 ? id : `${prefix}_…${rest.slice(-6)}`
  return (
    <span class="id">
      {href === undefined ? (
        <code title={id}>{short}</code>
      ) : (
        <a class="link" href={href} title={id}>
          <code>{short}</code>
        </a>
      )}
      <CopyButton text={id} label={`Copy ${id}`} />
    </span>
  )
}

export type Tone = 'good' | 'wait' | 'bad' | 'flow' | 'calm'

const tones: Record<string, Tone> = {
  ...{ paid: 'good', active: 'good', Available: 'good', Completed: 'good', delivered: 'good', completed: 'good' },
  ...{ matched: 'good', Done: 'good', settled: 'good', ok: 'good', pass: 'good' },
  ...{ held: 'wait', pending: 'wait', Scheduled: 'wait', AwaitingReview: 'wait', invited: 'wait', short: 'wait' },
  ...{ failing: 'wait', warning: 'wait', building: 'wait', awaiting_approval: 'wait', open: 'wait' },
  ...{ submitted: 'flow', Processing: 'flow', Open: 'flow', sent: 'flow', acknowledged: 'flow', approved: 'flow' },
  ...{ agrees: 'good', disagrees: 'bad', waiting: 'wait', running: 'flow', interrupted: 'bad', missing: 'bad' },
  ...{ failed: 'bad', returned: 'bad', Failed: 'bad', disabled: 'bad', over: 'bad', unknown: 'bad', rejected: 'bad' },
}

/** A state in words and a matching colour. */
export function State({ state, title, tone = tones[state] ?? 'calm' }: { state: string; title?: string; tone?: Tone }) {
  return (
    <span class={`state tone-${tone}`} title={title}>
      {inWords(state)}
    </span>
  )
}

/** The status of an HTTP response. */
export function HttpStatus({ status }: { status: number | null }) {
  const tone = status === null || status >= 500 ? 'bad' : status >= 400 ? 'wait' : 'good'
  return <span class={`state tone-${tone}`}>{status ?? 'No response'}</span>
}
