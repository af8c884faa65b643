import { type Answered, Call, type CallOptions, List } from './call.ts'
import { ApiError, ConnectionError, type ErrorAnswer, type Issue, MidmonthError, TimeoutError } from './errors.ts'
import { type FileSource, isFile, isStream, mediaTypeOf } from './files.ts'
import { errorClasses } from './generated/errors.ts'
import { pause, waitMsOf } from './retries.ts'
import { randomId } from './web-crypto.ts'

const version = '0.1.0'

/** What is needed to call an operation. Its method takes the ids of the path, then a body, a query and options. */
export type Operation = {
  method: string
  path: string
  hasBody?: true
  takesFile?: true
  hasQuery?: true
  /** Whether to ask for the fuller of two shapes. */
  prefers?: true
  /** The media type of an answer that is a file. */
  accepts?: string
  /** The field of a page that has its entries. */
  entries?: string
  /** The field of the page, or else of its last entry, to pass as `after` for the next page. */
  cursor?: string
}

/** An attempt that has ended. Holds no key, query or body: they can be secret or personal. */
export type LogEntry = {
  method: string
  path: string
  requestId: string
  attempt: number
  durationMs: number
  status?: number
  /** The name of the error, if the attempt failed. */
  error?: string
  /** How long the SDK waits before the next attempt, if it makes one. */
  retryInMs?: number
}

export type Settings = {
  /** `mm_test_…` for a sandbox, `mm_live_…` for real wages. */
  apiKey: string
  /** The address of your Midmonth, for example `https://pay.example.com`. */
  baseUrl: string
  /** How long one attempt may take: 30 seconds unless given, 11 minutes for a file. */
  timeoutMs?: number | undefined
  /** Attempts after the first: 2 unless given. */
  retriesMax?: number | undefined
  fetch?: typeof globalThis.fetch | undefined
  /** The clock by which webhooks are verified. */
  now?: (() => Date) | undefined
  log?: ((entry: LogEntry) => void) | undefined
}

const defaults = {
  timeoutMs: 30_000,
  /** The service takes up to ten minutes for a file of a million rows. */
  fileTimeoutMs: 11 * 60_000,
  retriesMax: 2,
}

type Query = Record<string, unknown>
type Arguments = { path: string; body: unknown; query: Query | undefined; options: CallOptions }

/** A request with everything that stays the same over its attempts. */
type Request = {
  operation: Operation
  path: string
  url: string
  headers: Headers
  body: FileSource | undefined
  requestId: string
  idempotencyKey: string | undefined
  timeoutMs: number
  retriesMax: number
  signal: AbortSignal | undefined
}

export class Client {
  readonly #settings: Settings
  readonly #baseUrl: string

  constructor(settings: Settings) {
    // fetch would refuse such a key with an error that shows it.
    if (!/^[\x21-\x7e]+$/.test(settings.apiKey ?? '')) throw new TypeError('apiKey is missing or has a space in it')
    this.#settings = settings
    if (!/^https?:\/\/[^/]/i.test(settings.baseUrl ?? ''))
      throw new TypeError('baseUrl must be an address with its scheme, for example https://pay.example.com')
    const { href, username, password, search, hash } = new URL(settings.baseUrl)
    // fetch refuses a user and a password in an address, and errors show the address.
    if (`${username}${password}${search}${hash}` !== '')
      throw new TypeError('baseUrl must have no user, password, query or fragment')
    this.#baseUrl = href.replace(/\/+$/, '')
  }

  /** Calls an operation with the arguments of its method. */
  call(operation: Operation, given: readonly unknown[]): Call<unknown> {
    const left = [...given]
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => pathSegment(name, left.shift()))
    const body = operation.hasBody ? left.shift() : undefined
    const query = operation.hasQuery ? (left.shift() as Query | undefined) : undefined
    const options = (left.shift() ?? {}) as CallOptions
    const send = (query: Query | undefined, options: CallOptions) =>
      this.#send(operation, { path, body, query, options })
    if (operation.entries === undefined) return new Call(send(query, options))
    // An idempotency key is of one request, and each further page is another one.
    const { idempotencyKey: _, ...ofFurtherPages } = options
    const sendNext = (query: Query) => send(query, ofFurtherPages)
    return list(operation, query ?? {}, send(query, options), sendNext)
  }

  async #send(operation: Operation, { path, body, query = {}, options }: Arguments): Promise<Answered<unknown>> {
    const settings = this.#settings
    const file = operation.takesFile && isFile(body) ? body : undefined
    const json = file !== undefined || body === undefined ? undefined : JSON.stringify(body)
    const requestId = await randomId()
    const idempotencyKey = options.idempotencyKey ?? (operation.method === 'GET' ? undefined : await randomId())
    return await this.#attempts({
      operation,
      path,
      url: this.#baseUrl + path + search(query),
      // Refuses a header that cannot be sent at once, instead of taking each attempt for a lost connection.
      headers: new Headers({
        accept: operation.accepts ?? 'application/json',
        'user-agent': `midmonth-sdk/${version}`,
        ...options.headers,
        ...(file === undefined ? {} : { 'content-type': await mediaTypeOf(file) }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(operation.prefers ? { prefer: 'return=representation' } : {}),
        ...(idempotencyKey === undefined ? {} : { 'x-idempotency-key': idempotencyKey }),
        'x-request-id': requestId,
        'x-api-key': settings.apiKey,
      }),
      body: file ?? json,
      requestId,
      idempotencyKey,
      timeoutMs:
        options.timeoutMs ?? settings.timeoutMs ?? (file === undefined ? defaults.timeoutMs : defaults.fileTimeoutMs),
      // A stream cannot be read twice.
      retriesMax: isStream(file) ? 0 : (options.retriesMax ?? settings.retriesMax ?? defaults.retriesMax),
      signal: options.signal,
    })
  }

  /**
   * Sends a request until it succeeds, or fails for good. A repeat is safe: a GET changes nothing, and everything else has
   * an idempotency key, the same in each attempt.
   */
  async #attempts(request: Request): Promise<Answered<unknown>> {
    const { operation, path, requestId, retriesMax, signal } = request
    for (let attempt = 1; ; attempt++) {
      const startedMs = performance.now()
      const ended = (outcome: { status?: number; error?: string; retryInMs?: number }) => {
        const durationMs = Math.round(performance.now() - startedMs)
        this.#settings.log?.({ method: operation.method, path, requestId, attempt, durationMs, ...outcome })
      }
      try {
        const answer = await this.#attempt(request)
        ended({ status: answer.status })
        return { ...answer, attempts: attempt }
      } catch (error) {
        const retryInMs = attempt <= retriesMax ? waitMsOf(error, attempt) : undefined
        ended({
          ...(error instanceof ApiError ? { status: error.status } : {}),
          error: error instanceof Error ? error.name : String(error),
          ...(retryInMs === undefined ? {} : { retryInMs }),
        })
        if (retryInMs === undefined) throw error
        await pause(retryInMs, signal)
      }
    }
  }

  async #attempt(request: Request): Promise<Omit<Answered<unknown>, 'attempts'>> {
    const { operation, url, headers, body, requestId, idempotencyKey, timeoutMs, signal } = request
    signal?.throwIfAborted()
    const { fetch = globalThis.fetch } = this.#settings
    const controller = new AbortController()
    const abort = () => controller.abort(signal?.reason)
    signal?.addEventListener('abort', abort)
    let hasTimedOut = false
    const timer = setTimeout(() => {
      hasTimedOut = true
      controller.abort()
    }, timeoutMs)
    let isStreaming = false
    try {
      const response = await fetch(url, {
        method: operation.method,
        headers,
        signal: controller.signal,
        // Following it would hand the key to another address.
        redirect: 'manual',
        ...(body === undefined ? {} : { body: body as NonNullable<RequestInit['body']> }),
        ...(isStream(body) ? { duplex: 'half' } : {}),
      })
      const { status, headers: answered, ok } = response
      const answer = { status, headers: answered, requestId: answered.get('x-request-id') ?? requestId }
      if (!ok) throw apiError(await response.text(), { ...answer, idempotencyKey })
      isStreaming = operation.accepts !== undefined
      return {
        body: isStreaming ? response : JSON.parse(await response.text()),
        ...answer,
        isReplayed: answered.get('idempotency-replayed') === 'true',
      }
    } catch (cause) {
      if (cause instanceof MidmonthError) throw cause
      if (signal?.aborted) throw signal.reason
      const circumstances = { requestId, idempotencyKey, cause }
      if (hasTimedOut) throw new TimeoutError(`No answer within ${timeoutMs} ms`, circumstances)
      throw new ConnectionError(`No answer from ${this.#baseUrl}: ${reasonOf(cause)}`, circumstances)
    } finally {
      clearTimeout(timer)
      // The caller can still abort a file that is being read.
      if (!isStreaming) signal?.removeEventListener('abort', abort)
    }
  }
}

/**
 * A list whose further pages are read with the same query: by cursor, which no change of the list shifts, unless the caller skips
 * entries.
 */
function list(
  operation: Operation,
  query: Query,
  answered: Promise<Answered<unknown>>,
  sendNext: (query: Query) => Promise<Answered<unknown>>,
): List<Query, unknown> {
  const { entries: field = '', cursor } = operation
  const entriesOf = (page: Query) => page[field] as Query[]
  return new List(answered as Promise<Answered<Query>>, {
    entriesOf,
    nextOf(page) {
      const entries = entriesOf(page)
      const last = entries.at(-1)
      const hasMore = page.hasMore ?? entries.length >= Number(page.take)
      // Iterating with `before` would go to newer entries, while each page goes to older ones: it is one page.
      if (!hasMore || last === undefined || query.before !== undefined) return undefined
      const { skip = 0, from: _, ...same } = query
      // A page that was asked for by its number may end in the middle of what has one cursor, so the next one is, too.
      const position =
        cursor === undefined || query.skip !== undefined
          ? { skip: Number(skip) + entries.length }
          : { after: cursor in page ? page[cursor] : last[cursor] }
      const next = { ...same, ...position }
      return list(operation, next, sendNext(next), sendNext)
    },
  })
}

/** A part of a path. An empty one or dots would lead to another operation. */
function pathSegment(name: string, value: unknown): string {
  if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) throw new TypeError(`${name} must be an id`)
  return encodeURIComponent(value)
}

/** A list of values is a repeated parameter, and an object one parameter per key: `name[key]`. */
function search(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).map(([key, each]): [string, string] => [`${name}[${key}]`, String(each)])
      : [value ?? []].flat().map((each): [string, string] => [name, String(each)]),
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
}

function apiError(text: string, answer: ErrorAnswer): ApiError {
  const issues = issuesOf(text)
  const Class = errorClasses[issues[0]?.code ?? ''] ?? ApiError
  // The class of a code has the issues of that code.
  return new Class(issues as never[], answer)
}

function issuesOf(text: string): Issue[] {
  try {
    const { issues } = JSON.parse(text) as { issues?: Issue[] }
    return Array.isArray(issues) ? issues : []
  } catch {
    return []
  }
}

/** The reason of a failed fetch is in its cause; its own message is "fetch failed". */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'the answer is not JSON'
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message || error.message : error.message
}
