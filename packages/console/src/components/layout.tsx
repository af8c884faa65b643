import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { listAbove } from '../places.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import { type PageAction, usePageAction } from './page-action.ts'
import { Failure, Skeleton } from './states.tsx'
import { drawersOpen, Toasts } from './toast.tsx'
import { Time } from './values.tsx'

type Back = { href: string; title: string }

/** A page with its title, actions and content. */
export function Page({
  title,
  back = listAbove(useLocation().path),
  actions,
  children,
}: {
  title: string
  /** The list that contains the record. Defaults to the page of the menu whose address contains this one. */
  back?: Back | undefined
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
export function PendingPage({ title, back, ...state }: PendingProps & { title: string; back?: Back | undefined }) {
  return (
    <Page title={title} back={back}>
      <Pending {...state} lines={8} />
    </Page>
  )
}

type PendingProps = { error: unknown; onRetry?: () => void; lines?: number }

/** Shown instead of a response that is still loading or failed to load. */
export function Pending({ error, onRetry, lines }: PendingProps) {
  return error === undefined ? <Skeleton lines={lines} /> : <Failure error={error} onRetry={onRetry} />
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

/**
 * A button that opens a drawer.
 * @param props.children receives the function that closes the drawer
 */
export function DrawerButton({
  text,
  title = text,
  look: Look = Button,
  icon,
  label,
  pageAction,
  children,
}: {
  text: string
  /** The title of the drawer; defaults to the button's text. */
  title?: string
  look?: typeof Button
  icon?: IconName
  label?: string
  /** The palette's action that opens the drawer. */
  pageAction?: PageAction
  children: (close: () => void) => ComponentChildren
}) {
  const [isOpen, setIsOpen] = useState(false)
  const close = () => setIsOpen(false)
  usePageAction(pageAction, () => setIsOpen(true))
  return (
    <>
      <Look act={() => setIsOpen(true)} icon={icon} label={label}>
        {text}
      </Look>
      <Drawer title={title} isOpen={isOpen} onClose={close}>
        {isOpen && children(close)}
      </Drawer>
    </>
  )
}
