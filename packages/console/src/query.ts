import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { partnerId } from './api.ts'

export type Loaded<T> = { value?: T; error?: unknown; isLoading: boolean }

type Entry = {
  state: Signal<Loaded<unknown>>
  load: () => Promise<unknown>
  sequence: number
  /** How many components of the page show it. */
  shownBy: number
}

/** Answers by key. A page that is opened again shows what it showed, and is then brought up to date. */
const entries = new Map<string, Entry>()
// A reader who goes through many records need not keep all of them.
const entriesMax = 300

function entryOf(key: string, load: () => Promise<unknown>): Entry {
  const found = entries.get(key)
  if (found !== undefined) {
    found.load = load
    return found
  }
  if (entries.size >= entriesMax) forgetOldest()
  const entry: Entry = { state: signal({ isLoading: true }), load, sequence: 0, shownBy: 0 }
  entries.set(key, entry)
  return entry
}

function forgetOldest(): void {
  for (const [key, { shownBy }] of entries) {
    if (shownBy > 0) continue
    entries.delete(key)
    return
  }
}

async function fill(entry: Entry): Promise<void> {
  entry.sequence++
  const { sequence } = entry
  const { value } = entry.state.peek()
  entry.state.value = { ...(value === undefined ? {} : { value }), isLoading: true }
  let outcome: Loaded<unknown>
  try {
    outcome = { value: await entry.load(), isLoading: false }
  } catch (error) {
    outcome = { error, isLoading: false }
  }
  // A later request has the newer answer.
  if (sequence === entry.sequence) entry.state.value = outcome
}

/** Loads something of the partner shown, and again whenever the key changes. A key of null loads nothing. */
export function useLoaded<T>(key: string | null, load: () => Promise<T>): Loaded<T> & { reload: () => void } {
  const full = key === null ? null : `${partnerId.value ?? ''} ${key}`
  const entry = useMemo(() => (full === null ? null : entryOf(full, load)), [full])
  useEffect(() => {
    if (entry === null) return
    entry.shownBy++
    void fill(entry)
    return () => {
      entry.shownBy--
    }
  }, [entry])
  if (entry === null) return { isLoading: false, reload: () => undefined }
  return { ...(entry.state.value as Loaded<T>), reload: () => void fill(entry) }
}

/** After a change: brings up to date what the page shows under keys that begin so, and forgets what earlier pages showed. */
export function reload(...prefixes: string[]): void {
  for (const [key, entry] of entries) {
    const name = key.slice(key.indexOf(' ') + 1)
    if (!prefixes.some(prefix => name.startsWith(prefix))) continue
    if (entry.shownBy > 0) void fill(entry)
    else entries.delete(key)
  }
}

/** Empties everything, for another reader. */
export function forget(): void {
  entries.clear()
}

export type Listed<Page, Row> = {
  rows: Row[] | undefined
  first: Page | undefined
  error: unknown
  isLoading: boolean
  hasMore: boolean
  more: () => void
  reload: () => void
}

type Pages<Page, Row> = { rows: Row[]; first: Page; next: AsyncGenerator<Page, void, undefined>; hasMore: boolean }

/** Loads the first page of a list, and the next ones when asked to. */
export function useList<Page extends PageEnd, Row>(
  key: string | null,
  list: () => { pages(): AsyncGenerator<Page, void, undefined> },
  rowsOf: (page: Page) => Row[],
): Listed<Page, Row> {
  const loaded = useLoaded<Pages<Page, Row>>(key, async () => {
    const next = list().pages()
    const { value: first } = await next.next()
    if (first === undefined) throw new Error('A list has at least one page')
    return { rows: rowsOf(first), first, next, hasMore: hasMoreAfter(first, rowsOf(first).length) }
  })
  const { value, error, isLoading } = loaded
  return {
    rows: value?.rows,
    first: value?.first,
    error,
    isLoading,
    hasMore: value?.hasMore ?? false,
    reload: loaded.reload,
    async more() {
      if (value === undefined) return
      const { value: page } = await value.next.next()
      const rows = page === undefined ? [] : rowsOf(page)
      const entry = entries.get(`${partnerId.value ?? ''} ${key}`)
      if (entry === undefined) return
      const hasMore = page !== undefined && hasMoreAfter(page, rows.length)
      entry.state.value = { value: { ...value, rows: [...value.rows, ...rows], hasMore }, isLoading: false }
    },
  }
}

/** A page says whether there are more, or how many entries it would have if there were. */
type PageEnd = { take?: number; hasMore?: boolean }

function hasMoreAfter(page: PageEnd, count: number): boolean {
  return page.hasMore ?? count === page.take
}
