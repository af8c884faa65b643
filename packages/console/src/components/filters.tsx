import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { inWords } from '../format.ts'
import { enterRows } from './table.tsx'

/** The filters of a list, kept in the query of the page's address so that a link shows the same list. */
export function useFilters() {
  const { url, path, route } = useLocation()
  const query = new URL(url, location.origin).searchParams
  return {
    get: (name: string) => query.get(name) ?? '',
    /** The value of a filter; undefined if it is not set. */
    given: (name: string) => query.get(name) || undefined,
    all: (name: string) => query.getAll(name),
    /** The query as written in the address. */
    text: query.toString(),
    set(name: string, ...values: string[]) {
      const changed = new URLSearchParams(query)
      changed.delete(name)
      for (const value of values) if (value !== '') changed.append(name, value)
      route(changed.size === 0 ? path : `${path}?${changed}`, true)
    },
  }
}

export function FilterBar({ children }: { children: ComponentChildren }) {
  return <search class="filters row row-wrap below-s">{children}</search>
}

type ChoiceProps = {
  label: string
  /** The parameter in the address's query. */
  name: string
  values: readonly string[]
  labelOf?: (value: string) => string
}

/** Filters by any of a few values. Choosing none shows all. */
export function ManyFilter({ name, ...props }: ChoiceProps) {
  const filters = useFilters()
  const chosen = filters.all(name)
  const toggle = (value: string) => {
    const others = chosen.filter(each => each !== value)
    filters.set(name, ...others, ...(chosen.includes(value) ? [] : [value]))
  }
  return <Chips {...props} chosen={chosen} onPress={toggle} />
}

/** Filters by one of a few values. Choosing the same value again restores the default. */
export function OneFilter({ name, shown, ...props }: ChoiceProps & { shown: string | undefined }) {
  const filters = useFilters()
  const choose = (value: string) => filters.set(name, value === shown ? '' : value)
  return <Chips {...props} chosen={shown ? [shown] : []} onPress={choose} />
}

type ChipsProps = {
  label: string
  values: readonly string[]
  labelOf?: (value: string) => ComponentChildren
  chosen: readonly string[]
  onPress: (value: string) => void
}

/** Values to press, some of which are chosen. */
export function Chips({ label, values, labelOf = inWords, chosen, onPress }: ChipsProps) {
  return (
    <fieldset class="chips">
      <legend class="hidden-label">{label}</legend>
      {values.map(value => (
        <button
          key={value}
          type="button"
          class="chip"
          aria-pressed={chosen.includes(value)}
          onClick={() => onPress(value)}
        >
          {labelOf(value)}
        </button>
      ))}
    </fieldset>
  )
}

/** A prefix search needs more than one letter. */
const searchLengthMin = 2

/** Whether a text is long enough to search members by. A shorter text is not an error. */
export function isSearchable(text: string): boolean {
  return [...text].length >= searchLengthMin
}

// Long enough to type the next letter.
const pauseMs = 200

/**
 * Filters as the reader types.
 * @param props.isSearch whether `/` focuses this field
 */
export function TextFilter({ label, name, isSearch = false }: { label: string; name: string; isSearch?: boolean }) {
  const filters = useFilters()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const value = filters.get(name)
  const input = useRef<HTMLInputElement>(null)
  // Only when the filter changes: a list that arrives must not overwrite what the reader is typing.
  useLayoutEffect(() => {
    if (input.current !== null && input.current.value.trim() !== value) input.current.value = value
  }, [value])
  return (
    <label class="filter-field row">
      <span class="hidden-label">{label}</span>
      <input
        ref={input}
        type="search"
        placeholder={label}
        data-search={isSearch ? '' : undefined}
        onInput={event => {
          const typed = event.currentTarget.value.trim()
          clearTimeout(timer.current)
          timer.current = setTimeout(() => filters.set(name, typed), pauseMs)
        }}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            clearTimeout(timer.current)
            filters.set(name, event.currentTarget.value.trim())
          }
          if (event.key === 'ArrowDown') enterRows(event)
          // Makes the page's keyboard shortcuts work again.
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
      />
    </label>
  )
}

/** Filters from one day (inclusive) to another (exclusive). */
export function SpanFilter() {
  return (
    <div class="filter-span">
      <DayFilter label="From" name="from" />
      <DayFilter label="Before" name="to" />
    </div>
  )
}

export function DayFilter({ label, name }: { label: string; name: string }) {
  const filters = useFilters()
  return (
    <label class="filter-field row">
      <span>{label}</span>
      <input type="date" value={filters.get(name)} onChange={event => filters.set(name, event.currentTarget.value)} />
    </label>
  )
}
