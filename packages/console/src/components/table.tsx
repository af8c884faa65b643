import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { Button } from './button.tsx'
import { Panel } from './layout.tsx'
import { Empty, Failure, Skeleton } from './states.tsx'

export type Column<Row> = {
  title: string
  cell: (row: Row) => ComponentChildren
  /** Amounts and counts are right-aligned in tabular figures. */
  isFigure?: boolean
  /** On a phone, this figure is emphasised instead of the last one. */
  isLead?: boolean
  /** The column holds buttons with their own labels; only screen readers read its title. */
  isTitleHidden?: boolean
  /** Hidden on a narrow page. */
  isMinor?: boolean
}

type TableProps<Row> = {
  label: string
  columns: Column<Row>[]
  list: ListState<Row>
  /** Defaults to the id of the row. */
  keyOf?: (row: Row) => string
  hrefOf?: (row: Row) => string | undefined
  /** What to say instead of an empty table, with what leads to the first row. */
  empty?: string
  hint?: string
  curl?: string
  /** What to say if the table is empty because of the filters in the address. */
  noMatch?: string
  noMatchHint?: string
}

/** @throws Error unless the row has an id */
function idOf(row: unknown): string {
  if (typeof row === 'object' && row !== null && 'id' in row) return String(row.id)
  throw new Error('A table of rows without an id needs keyOf')
}

/** The loading state of a list, as returned by `useList`. Rows are undefined until they have loaded. */
type ListState<Row> = {
  rows: Row[] | undefined
  error?: unknown
  reload?: () => void
  hasMore?: boolean
  more?: () => void
}

/** The rows of a list. Enter opens a row; J and K, or the arrows, move from row to row. */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, keyOf = idOf, hrefOf, empty = 'Nothing here', hint, curl, noMatch, noMatchHint } = props
  const { error, reload, hasMore, more } = props.list
  const { route, url } = useLocation()
  const { rows, isStale, onPointerDown } = useStillRows(props.list.rows)
  const classOf = classesOf(columns)
  if (error !== undefined) return <Failure error={error} onRetry={reload} />
  if (rows === undefined) return <Skeleton lines={10} />
  if (rows.length === 0 && noMatch !== undefined && url.includes('?'))
    return <Empty title={noMatch}>{noMatchHint}</Empty>
  if (rows.length === 0)
    return (
      <Empty title={empty} curl={curl}>
        {hint}
      </Empty>
    )
  return (
    // On a narrow page, the table scrolls sideways; rows that open a page take the focus themselves.
    <section
      class="table-frame"
      tabIndex={hrefOf === undefined ? 0 : undefined}
      aria-label={label}
      aria-busy={isStale}
      onPointerDown={onPointerDown}
    >
      <table class="table table-cards" aria-label={label}>
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column.title} scope="col" class={classOf(column)}>
                <span class={column.isTitleHidden ? 'hidden-label' : undefined}>{column.title}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody onKeyDown={moveByKey}>
          {rows.map(row => {
            const href = hrefOf?.(row)
            return (
              <tr
                key={keyOf(row)}
                class={href ? 'row-link' : undefined}
                tabIndex={href ? 0 : undefined}
                data-href={href}
                onClick={event => {
                  if (href && !isInteractive(event.target)) route(href)
                }}
                onKeyDown={event => {
                  if (href && event.key === 'Enter' && event.target === event.currentTarget) route(href)
                }}
              >
                {columns.map(column => (
                  <td key={column.title} class={classOf(column)} data-title={column.title}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
      {hasMore && (
        <div class="table-more">
          <Button act={() => more?.()}>Show more</Button>
        </div>
      )}
    </section>
  )
}

type TablePanelProps<Row> = Omit<TableProps<Row>, 'label'> & {
  /** The anchor for links on the page. */
  id?: string
  title?: string
  /** Defaults to the title. */
  label?: string
  aside?: ComponentChildren
  /** Above the table. */
  children?: ComponentChildren
}

/** A panel with one table. */
export function TablePanel<Row>({ id, title, aside, children, ...table }: TablePanelProps<Row>) {
  return (
    <Panel id={id} isFlush title={title} aside={aside}>
      {children}
      <Table label={title ?? ''} {...table} />
    </Panel>
  )
}

/**
 * Keeps the rows in place until new ones have loaded, and while the pointer is pressed: a click must hit the row that the reader aimed
 * at, even if a response arrives between press and release.
 */
function useStillRows<Row>(rows: Row[] | undefined) {
  const shown = useRef<Row[]>(undefined)
  const [isPressed, setIsPressed] = useState(false)
  if (rows !== undefined && !isPressed) shown.current = rows
  const onPointerDown = () => {
    setIsPressed(true)
    // The click event follows the release of the pointer.
    const release = () => setTimeout(() => setIsPressed(false))
    addEventListener('pointerup', release, { once: true })
    addEventListener('pointercancel', release, { once: true })
  }
  return { rows: shown.current, isStale: rows === undefined, onPointerDown }
}

/** The classes of a column's cells. On a phone, one figure is emphasised. */
function classesOf<Row>(columns: Column<Row>[]): (column: Column<Row>) => string | undefined {
  const lead =
    columns.find(({ isLead }) => isLead) ??
    columns.findLast(({ isFigure, isMinor, isTitleHidden }) => isFigure && !isMinor && !isTitleHidden)
  return column => {
    const { isFigure, isMinor, isTitleHidden } = column
    const classes = [
      isFigure && 'figure',
      column === lead && 'figure-lead',
      isMinor && 'minor',
      isTitleHidden && 'row-buttons',
    ]
    return classes.filter(Boolean).join(' ') || undefined
  }
}

function isInteractive(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('a, button, input, select') !== null
}

/** Focuses the first row of the page, unless a row has the focus already. */
export function enterRows(event: Event): void {
  if (event.target instanceof Element && event.target.closest('tr') !== null) return
  const row = document.querySelector<HTMLElement>('tr.row-link')
  if (row === null) return
  event.preventDefault()
  row.focus()
}

function moveByKey(event: KeyboardEvent): void {
  const direction = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key]
  if (direction === undefined || !(event.target instanceof HTMLElement)) return
  // A row's drawer is part of the row, and its fields need these keys.
  if (event.target.closest('dialog') !== null) return
  const row = event.target.closest('tr')
  const next = direction === 1 ? row?.nextElementSibling : row?.previousElementSibling
  if (!(next instanceof HTMLElement)) return
  event.preventDefault()
  next.focus()
}
