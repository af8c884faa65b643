import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { inWords } from '../format.ts'
import { enterRows } from './table.tsx'

/** The filters of a list. They are the query of the page's address, so that a link shows the same list. */
export function useFilters() {
  const { url, path, route } = useLocation()
  const query = new URL(url, location.origin).searchParams
  return {
    get: (name: string) => query.get(name) ?? '',
    all: (name: string) => query.getAll(name),
    /** The query as it stands in the address. */
    text: query.toString(),
    set(name: string, ...values: string[]) {
      const changed = new URLSearchParams(query)
      changed.delete(name)
      for (const value of values) if (value !== '') changed.append(name, value)
      route(changed.size === 0 ? path : `${path}?${changed}`, true)
    },
    clear: () => route(path, true),
  }
}

export function FilterBar({ children }: { children: ComponentChildren }) {
  return <search class="filters">{children}</search>
}

/** Several of a few values. None chosen is all. */
export function ChoiceFilter({
  label,
  values,
  chosen,
  labelOf = inWords,
  onChange,
}: {
  label: string
  values: readonly string[]
  chosen: readonly string[]
  labelOf?: (value: string) => string
  onChange: (chosen: string[]) => void
}) {
  return (
    <fieldset class="chips">
      <legend class="hidden-label">{label}</legend>
      {values.map(value => {
        const isChosen = chosen.includes(value)
        return (
          <button
            key={value}
            type="button"
            class="chip"
            aria-pressed={isChosen}
            onClick={() => onChange(isChosen ? chosen.filter(each => each !== value) : [...chosen, value])}
          >
            {labelOf(value)}
          </button>
        )
      })}
    </fieldset>
  )
}

type FieldProps = { label: string; value: string; onChange: (value: string) => void }

/** @param props.isSearch whether `/` goes to this field */
export function TextFilter({ label, value, onChange, isSearch = false }: FieldProps & { isSearch?: boolean }) {
  const input = useRef<HTMLInputElement>(null)
  // Only when the filter changes: what is being typed must not go when the list arrives.
  useLayoutEffect(() => {
    if (input.current !== null) input.current.value = value
  }, [value])
  return (
    <label class="filter-field">
      <span class="hidden-label">{label}</span>
      <input
        ref={input}
        type="search"
        placeholder={label}
        data-search={isSearch ? '' : undefined}
        onChange={event => onChange(event.currentTarget.value.trim())}
        onKeyDown={event => {
          if (event.key === 'ArrowDown') enterRows(event)
          // Then the keys of the page work again.
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
      />
    </label>
  )
}

/** From one day, and before another one. */
export function SpanFilter() {
  const filters = useFilters()
  return (
    <>
      <DayFilter label="From" value={filters.get('from')} onChange={day => filters.set('from', day)} />
      <DayFilter label="Before" value={filters.get('to')} onChange={day => filters.set('to', day)} />
    </>
  )
}

export function DayFilter({ label, value, onChange }: FieldProps) {
  return (
    <label class="filter-field">
      <span>{label}</span>
      <input type="date" value={value} onChange={event => onChange(event.currentTarget.value)} />
    </label>
  )
}
