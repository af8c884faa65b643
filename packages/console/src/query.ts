import { type Signal, signal } from '@preact/signals'
import { useLayoutEffect, useMemo } from 'preact/hooks'
import { ApiError, ConnectionError, type List } from '../../sdk/src/index.ts'
import { partnerId } from './api.ts'
import { messageOf } from './problems.ts'
import { toast } from './toasts.ts'

/** Neither is set until the first response, and while a request is retried after an error. */
type Loaded<T> = { value?: T; error?: unknown }

type CachedQuery = {
  key: string
  state: Signal<Loaded<unknown>>
  load: () => Promise<unknown>
  sequence: number
  /** When it was last requested, by the page's clock. */
  askedAt: number
  /** Whether it was requested before any page showed it. */
  isAhead: boolean
  /** The number of components that show it. */
  shownBy: number
}

/** Responses by partner and key. A page that is opened again shows the cached response, then the updated one. */
const entries = new Map<string, CachedQuery>()
// Bounds the cache of a reader who opens many records.
const entriesMax = 300
// A click does not repeat a request that was made while the pointer rested on the link.
const aheadMs = 2_000
// Two parts of a page that show the same response share one request.
const togetherMs = 50

/** The key of a response in `entries`, which differs by partner. */
function nameOf(key: string): string {
  return `${partnerId.value ?? ''} ${key}`
}

function entryOf(key: string, load: () => Promise<unknown>): CachedQuery {
  const name = nameOf(key)
  const found = entries.get(name)
  if (found !== undefined) {
    found.load = load
    return found
  }
  if (entries.size >= entriesMax) forgetOldest()
  const entry: CachedQuery = {
    key,
    state: signal({}),
    load,
    sequence: 0,
    askedAt: -aheadMs,
    isAhead: false,
    shownBy: 0,
  }
  entries.set(name, entry)
  return entry
}

function forgetOldest(): void {
  for (const [name, { shownBy }] of entries) {
    if (shownBy > 0) continue
    entries.delete(name)
    return
  }
}

/** @param options.isQuiet whether an error stays on the page until a response arrives */
async function fill(entry: CachedQuery, { isQuiet = false } = {}): Promise<void> {
  entry.sequence++
  entry.askedAt = performance.now()
  const { sequence } = entry
  // The page stays as it is, without rendering again, until a response arrives.
  if (!isQuiet && entry.state.peek().error !== undefined) entry.state.value = {}
  let outcome: Loaded<unknown>
  try {
    outcome = { value: await entry.load() }
  } catch (error) {
    outcome = { error }
  }
  // A later request has the newer response.
  if (sequence === entry.sequence) entry.state.value = outcome
}

/** Requests what a page will show, unless it has been requested before. */
export function prefetch(key: string, load: () => Promise<unknown>): void {
  const entry = entryOf(key, load)
  if (entry.sequence > 0) return
  entry.isAhead = true
  void fill(entry)
}

/** Loads a response for the partner shown, and again whenever the key changes. A key of null loads nothing. */
export function useLoaded<T>(key: string | null, load: () => Promise<T>): Loaded<T> & { reload: () => void } {
  const entry = useMemo(() => (key === null ? null : entryOf(key, load)), [key, partnerId.value])
  // A layout effect sends the request before the page is painted.
  useLayoutEffect(() => {
    if (entry === null) return
    entry.shownBy++
    const sinceMs = performance.now() - entry.askedAt
    if (sinceMs > (entry.isAhead ? aheadMs : togetherMs)) void fill(entry)
    entry.isAhead = false
    return () => {
      entry.shownBy--
    }
  }, [entry])
  if (entry === null) return { reload: () => undefined }
  return { ...(entry.state.value as Loaded<T>), reload: () => void fill(entry) }
}

/** Call this after a change: reloads what the page shows under keys with these prefixes, and drops what earlier pages showed. */
export function reload(...prefixes: string[]): void {
  for (const [name, entry] of entries) {
    if (!prefixes.some(prefix => entry.key.startsWith(prefix))) continue
    if (entry.shownBy > 0) void fill(entry)
    else entries.delete(name)
  }
}

// The browser reports when it is online again, but not when the service is.
const retryMs = 3_000

/** Retries failed requests until the connection or the service is back. */
export function followConnection(): void {
  const retry = () => {
    if (document.visibilityState === 'hidden') return
    for (const entry of entries.values())
      if (entry.shownBy > 0 && isUnreachable(entry.state.peek().error)) void fill(entry, { isQuiet: true })
  }
  addEventListener('online', retry)
  document.addEventListener('visibilitychange', retry)
  setInterval(retry, retryMs)
}

function isUnreachable(error: unknown): boolean {
  // While the service restarts, a proxy responds for it.
  return error instanceof ConnectionError || (error instanceof ApiError && [502, 503, 504].includes(error.status))
}

/** Clears the cache for another reader. */
export function forget(): void {
  entries.clear()
}

export type Listed<Page, Row> = {
  rows: Row[] | undefined
  first: Page | undefined
  error: unknown
  hasMore: boolean
  more: () => void
  reload: () => void
  /** Every row of every page, read anew. */
  all: () => AsyncIterable<Row>
}

/** Requests a list with so many entries per page. */
type LoadList<Page, Row> = (take: number) => List<Page, Row>

/** Lists whose next page has been requested. */
const asked = new WeakSet<object>()

type Pages<Page, Row> = {
  list: List<Page, Row>
  rows: Row[]
  first: Page
  next: AsyncGenerator<Page, void, undefined>
  hasMore: boolean
}

async function firstPage<Page extends PageEnd, Row>(list: List<Page, Row>): Promise<Pages<Page, Row>> {
  const next = list.pages()
  const { value: first } = await next.next()
  if (first === undefined) throw new Error('A list has at least one page')
  const rows = list.entriesOf(first)
  return { list, rows, first, next, hasMore: hasMoreAfter(first, rows.length) }
}

const rowsPerPage = 50
// The service's limit per request.
const rowsPerPageMax = 1_000

/** Like `prefetch`, for what `useList` shows. */
export function prefetchList<Page extends PageEnd, Row>(key: string, load: LoadList<Page, Row>): void {
  prefetch(key, () => firstPage(load(rowsPerPage)))
}

/** Loads the first page of a list, and the next ones when asked to. */
export function useList<Page extends PageEnd, Row>(
  key: string | null,
  load: LoadList<Page, Row>,
  { take = rowsPerPage } = {},
): Listed<Page, Row> {
  const { value, error, reload } = useLoaded<Pages<Page, Row>>(key, () => firstPage(load(take)))
  return {
    rows: value?.rows,
    first: value?.first,
    error,
    hasMore: value?.hasMore ?? false,
    reload,
    all: () => load(rowsPerPageMax),
    async more() {
      const entry = key === null ? undefined : entries.get(nameOf(key))
      const shown = entry?.state.peek().value as Pages<Page, Row> | undefined
      // A second press waits for the response to the first.
      if (entry === undefined || shown === undefined || asked.has(shown)) return
      asked.add(shown)
      try {
        const { value: page } = await shown.next.next()
        // The list may have been reloaded in the meantime.
        if (entry.state.peek().value !== shown) return
        const rows = page === undefined ? [] : shown.list.entriesOf(page)
        const hasMore = page !== undefined && hasMoreAfter(page, rows.length)
        entry.state.value = { value: { ...shown, rows: [...shown.rows, ...rows], hasMore } }
      } catch (error) {
        toast(messageOf(error), { kind: 'bad' })
        // After a failed page, the list can only be read again from the first page.
        void fill(entry)
      }
    },
  }
}

/** A page says whether there are more, or how many entries a full page has. */
type PageEnd = { take?: number; hasMore?: boolean }

function hasMoreAfter(page: PageEnd, count: number): boolean {
  return page.hasMore ?? count === page.take
}
