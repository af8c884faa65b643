import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'
import { Failure, Skeleton } from './states.tsx'
import { drawersOpen, Toasts } from './toast.tsx'
import { Time } from './values.tsx'

/** A page with its title, actions and content. */
export function Page({
  title,
  back,
  actions,
  children,
}: {
  title: string
  /** The list that contains the record. */
  back?: { href: string; title: string }
  actions?: ComponentChildren
  children: ComponentChildren
}) {
  useEffect(() => {
    document.title = `${title} · Midmonth`
  }, [title])
  return (
    <div class="page">
      <header class="page-head">
        <div>
          {back && (
            <a class="back" href={back.href}>
              {back.title}
            </a>
          )}
          <h1>{title}</h1>
        </div>
        <div class="actions">{actions}</div>
      </header>
      {children}
    </div>
  )
}

/** The page of a record that is still loading or failed to load. */
export function PendingPage({
  title,
  back,
  error,
  onRetry,
}: {
  title: string
  back: { href: string; title: string }
  error: unknown
  onRetry: () => void
}) {
  return (
    <Page title={title} back={back}>
      {error === undefined ? <Skeleton lines={8} /> : <Failure error={error} onRetry={onRetry} />}
    </Page>
  )
}

export function Panel({
  id,
  title,
  aside,
  isFlush = false,
  children,
}: {
  /** The anchor for links on the page. */
  id?: string
  title?: string
  aside?: ComponentChildren
  /** Without padding, for tables. */
  isFlush?: boolean
  children: ComponentChildren
}) {
  return (
    <section id={id} class={`panel${isFlush ? ' panel-flush' : ''}`}>
      {title && (
        <header class="panel-head">
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  )
}

export function KeyValues({ entries }: { entries: [string, ComponentChildren][] }) {
  return (
    <dl class="key-values">
      {entries.map(([key, value]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A prominent figure with its name. */
export function Figure({
  title,
  children,
  note,
  isLeading = false,
}: {
  title: string
  children: ComponentChildren
  note?: ComponentChildren
  /** The most important figure of its group. */
  isLeading?: boolean
}) {
  return (
    <div class={`figure-card${isLeading ? ' figure-leading' : ''}`}>
      <span class="figure-title">{title}</span>
      <span class="figure-value">{children}</span>
      {note && <span class="figure-note">{note}</span>}
    </div>
  )
}

export type Step = {
  key: string
  at: string | null
  tone: 'good' | 'wait' | 'bad' | 'flow' | 'calm'
  title: ComponentChildren
  children?: ComponentChildren
}

/** The history of one record, from top to bottom. */
export function Timeline({ steps }: { steps: Step[] }) {
  return (
    <ol class="timeline">
      {steps.map(({ key, at, tone, title, children }) => (
        <li key={key} class={`step step-${tone}`}>
          <span class="step-dot" aria-hidden="true" />
          <div class="step-head">
            <span class="step-title">{title}</span>
            {at && (
              <span class="step-time">
                <Time at={at} />
              </span>
            )}
          </div>
          {children && <div class="step-body">{children}</div>}
        </li>
      ))}
    </ol>
  )
}

/** Focuses a field. By default, the browser would focus the button that closes the drawer. */
function focusField(dialog: HTMLDialogElement, name: string): void {
  const fields = [...dialog.querySelectorAll<HTMLElement>('.drawer-body :is(input, select, textarea)')]
  const field = fields.find(each => each.getAttribute('name') === name) ?? fields[0]
  field?.focus()
}

/** A panel at the side of the page. On a narrow screen, it covers the page. Escape closes it. */
export function Drawer({
  title,
  isOpen,
  focus = '',
  onClose,
  children,
}: {
  title: string
  isOpen: boolean
  /** The name of the field to focus; defaults to the first. */
  focus?: string | undefined
  onClose: () => void
  children: ComponentChildren
}) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    if (dialog === null) return
    if (isOpen && !dialog.open) {
      dialog.showModal()
      focusField(dialog, focus)
    }
    if (!isOpen && dialog.open) dialog.close()
    if (!isOpen) return
    drawersOpen.value++
    return () => {
      drawersOpen.value--
    }
  }, [isOpen])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a dialog closes by Escape without a handler.
    <dialog
      ref={ref}
      class="drawer"
      aria-label={title}
      // The drawer may be open again by the time the event arrives.
      onClose={() => {
        if (!ref.current?.open) onClose()
      }}
      onClick={event => {
        if (event.target === ref.current) onClose()
      }}
    >
      {isOpen && (
        <div class="drawer-box">
          <header class="drawer-head">
            <h2>{title}</h2>
            <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          </header>
          <div class="drawer-body">{children}</div>
          <Toasts isInDrawer />
        </div>
      )}
    </dialog>
  )
}
