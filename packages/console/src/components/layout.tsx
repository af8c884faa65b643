import type { Money } from '@midmonth/sdk'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { listAbove } from '../places.ts'
import { Button, IconButton } from './button.tsx'
import type { IconName } from './icon.tsx'
import { type PageAction, usePageAction } from './page-action.ts'
import { Failure, Skeleton } from './states.tsx'
import { drawersOpen, Toasts } from './toast.tsx'
import { Amount, Time, type Tone } from './values.tsx'

type Back = { href: string; title: string }

type PageProps = {
  title: string
  /** The list that contains the record. Defaults to the page of the menu whose address contains this one. */
  back?: Back | undefined
  actions?: ComponentChildren
  children: ComponentChildren
}

/** A page with its title, actions and content. */
export function Page({ title, back = listAbove(useLocation().path), actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Midmonth`
  }, [title])
  return (
    <div class="page">
      <header class="page-head row row-wrap ends">
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

type PanelProps = {
  /** The anchor for links on the page. */
  id?: string
  title?: string
  aside?: ComponentChildren
  /** Without padding, for tables. */
  isFlush?: boolean
  children: ComponentChildren
}

export function Panel({ id, title, aside, isFlush = false, children }: PanelProps) {
  return (
    <section id={id} class={`panel${isFlush ? ' panel-flush' : ''}`}>
      {title && (
        <header class="panel-head row row-wrap ends">
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  )
}

/** The state of a record, after the amount if it has one. */
export function RecordHead({ amount, children }: { amount?: Money | null; children: ComponentChildren }) {
  return (
    <div class="row row-wrap above">
      {amount && (
        <span class="record-amount">
          <Amount money={amount} />
        </span>
      )}
      {children}
    </div>
  )
}

type KeyValuesProps = { entries: [string, ComponentChildren][] }

export function KeyValues({ entries }: KeyValuesProps) {
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

export function KeyValuesPanel({ title = 'Details', entries }: KeyValuesProps & { title?: string }) {
  return (
    <Panel title={title}>
      <KeyValues entries={entries} />
    </Panel>
  )
}

type FigureProps = {
  title: string
  money?: Money
  /** Defaults to the money. */
  children?: ComponentChildren
  note?: ComponentChildren
  /** The most important figure of its group. */
  isLeading?: boolean
}

/** A prominent figure with its name. */
export function Figure({ title, money, children = <Amount money={money} />, note, isLeading = false }: FigureProps) {
  return (
    <div class={`figure-card stack${isLeading ? ' figure-leading' : ''}`}>
      <span class="figure-title">{title}</span>
      <span class="figure-value">{children}</span>
      {note && <span class="figure-note">{note}</span>}
    </div>
  )
}

/** What needs a person, at the top of a page. */
export function Decisions({ label, children }: { label: string; children: ComponentChildren[] }) {
  if (children.length === 0) return null
  return (
    <section class="decisions" aria-label={label}>
      <ul>
        {children.map((each, index) => (
          <li key={index}>{each}</li>
        ))}
      </ul>
    </section>
  )
}

export type Step = {
  key: string
  at: string | null
  tone: Tone
  title: ComponentChildren
  children?: ComponentChildren
}

/** The history of one record, from top to bottom. */
export function Timeline({ steps }: { steps: Step[] }) {
  return (
    <ol class="timeline">
      {steps.map(({ key, at, tone, title, children }) => (
        <li key={key} class={`step tone-${tone}`}>
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
  const fields = [...dialog.querySelectorAll<HTMLElement>('.drawer-body :is(input, select)')]
  const field = fields.find(each => each.getAttribute('name') === name) ?? fields[0]
  field?.focus()
}

type DialogProps = {
  look: 'drawer' | 'palette'
  label: string
  isOpen: boolean
  onOpened: (dialog: HTMLDialogElement) => void
  onClose: () => void
  children: ComponentChildren
}

/** A modal dialog. Escape or a click beside it closes it. */
export function Dialog({ look, label, isOpen, onOpened, onClose, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  // A layout effect moves the focus before the next key arrives.
  useLayoutEffect(() => {
    const dialog = ref.current
    if (isOpen && dialog?.open === false) {
      dialog.showModal()
      onOpened(dialog)
    }
    if (!isOpen && dialog?.open) dialog.close()
  }, [isOpen])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a dialog closes by Escape without a handler.
    <dialog
      ref={ref}
      class={look}
      aria-label={label}
      // The dialog may be open again by the time the event arrives.
      onClose={() => {
        if (!ref.current?.open) onClose()
      }}
      onClick={event => {
        if (event.target === ref.current) onClose()
      }}
    >
      {children}
    </dialog>
  )
}

type DrawerProps = {
  title: string
  isOpen: boolean
  /** The name of the field to focus; defaults to the first. */
  focus?: string | undefined
  onClose: () => void
  children: ComponentChildren
}

/** A panel at the side of the page. On a narrow screen, it covers the page. */
export function Drawer({ title, isOpen, focus = '', onClose, children }: DrawerProps) {
  useEffect(() => {
    if (!isOpen) return
    drawersOpen.value++
    return () => {
      drawersOpen.value--
    }
  }, [isOpen])
  return (
    <Dialog
      look="drawer"
      label={title}
      isOpen={isOpen}
      onOpened={dialog => focusField(dialog, focus)}
      onClose={onClose}
    >
      {isOpen && (
        <div class="drawer-box">
          <header class="drawer-head row ends">
            <h2>{title}</h2>
            <IconButton icon="close" label="Close" act={onClose} />
          </header>
          <div class="drawer-body stack">{children}</div>
          <Toasts isInDrawer />
        </div>
      )}
    </Dialog>
  )
}

type DrawerButtonProps = {
  text: string
  /** The title of the drawer; defaults to the button's text. */
  title?: string
  look?: typeof Button
  icon?: IconName
  label?: string
  /** The palette's action that opens the drawer. */
  pageAction?: PageAction
  children: (close: () => void) => ComponentChildren
}

/**
 * A button that opens a drawer.
 * @param props.children receives the function that closes the drawer
 */
export function DrawerButton(props: DrawerButtonProps) {
  const { text, title = text, look: Look = Button, icon, label, pageAction, children } = props
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
