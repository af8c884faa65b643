import { type ApiResponse, Call, type CallOptions, List } from './call.ts'
import { ApiError, ConnectionError, type ErrorResponse, type Issue, MidmonthError, TimeoutError } from './errors.ts'
import { type FileSource, isFile, isStream, mediaTypeOf } from './files.ts'
import { errorClasses } from './generated/errors.ts'
import { pause, waitMsOf } from './retries.ts'
import { randomId } from './web-crypto.ts'

const version = '0.1.0'

/** Describes an operation. Its method takes the ids in the path, then a body, a query and options. */
export type Operation = {
  method: string
  path: string
  hasBody?: true
  /** Whether the body can be a file; the media type, if it does not follow from the file. */
  takesFile?: true | string
  hasQuery?: true
  /** Whether to request the fuller of two representations. */
  prefers?: true
  /** The media type of a response that is a file. */
  accepts?: string
  /** The field of a page that contains its entries. */
  entries?: string
  /** The field of the page, or otherwise of its last entry, to pass as `after` for the next page. */
  cursor?: string
}

/** A finished attempt. Contains no key, query or body, which can be secret or personal. */
export type LogEntry = {
  method: string
  path: string
  requestId: string
  attempt: number
  durationMs: number
  status?: number
  /** The name of the error, if the attempt failed. */
  error?: string
  /** How long the SDK waits before the next attempt, if any. */
  retryInMs?: number
}

export type Settings = {
  /** `mm_test_…` for a sandbox, `mm_live_…` for real wages. */
  apiKey: string
  /** The address of your Midmonth, for example `https://pay.example.com`. */
  baseUrl: string
  /** Time limit of one attempt. Defaults to 30 seconds, or 11 minutes for a file. */
  timeoutMs?: number | undefined
  /** Attempts after the first. Defaults to 2. */
  retriesMax?: number | undefined
  fetch?: typeof globalThis.fetch | undefined
  /** The clock for verifying webhooks. */
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
/** What a method was called with. @property path with its ids filled in */
export type Arguments = { path: string; body: unknown; query: Query | undefined; options: CallOptions }

/** The parts of a request that are the same in each attempt. */
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
    // fetch would reject such a key with an error that shows it.
    if (!/^[\x21-\x7e]+$/.test(settings.apiKey ?? '')) throw new TypeError('apiKey is missing or has a space in it')
    this.#settings = settings
    if (!/^https?:\/\/[^/]/i.test(settings.baseUrl ?? ''))
      throw new TypeError('baseUrl must be an address with its scheme, for example https://pay.example.com')
    const { href, username, password, search, hash } = new URL(settings.baseUrl)
    // fetch rejects a user and a password in an address, and errors show the address.
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
      this.send(operation, { path, body, query, options })
    if (operation.entries === undefined) return new Call(send(query, options))
    // An idempotency key belongs to one request, and each further page is a new request.
    const { idempotencyKey: _, ...optionsOfFurtherPages } = options
    const sendNext = (query: Query) => send(query, optionsOfFurtherPages)
    return list(operation, query ?? {}, send(query, options), sendNext)
  }

  protected async send(
    operation: Operation,
    { path, body, query = {}, options }: Arguments,
  ): Promise<ApiResponse<unknown>> {
    const settings = this.#settings
    const { takesFile } = operation
    const file = takesFile !== undefined && isFile(body) ? body : undefined
    const fileType = file !== undefined && takesFile === true ? await mediaTypeOf(file) : takesFile
    const json = file !== undefined || body === undefined ? undefined : JSON.stringify(body)
    const requestId = await randomId()
    const idempotencyKey = options.idempotencyKey ?? (operation.method === 'GET' ? undefined : await randomId())
    return await this.#attempts({
      operation,
      path,
      url: this.#baseUrl + path + search(query),
      // Rejects an invalid header at once, instead of treating each attempt as a lost connection.
      headers: new Headers({
        accept: operation.accepts ?? 'application/json',
        'user-agent': `midmonth-sdk/${version}`,
        ...options.headers,
        ...(file === undefined ? {} : { 'content-type': String(fileType) }),
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
   * Sends a request until it succeeds or fails permanently. Retrying is safe: a GET changes nothing, and every other request has
   * the same idempotency key in each attempt.
   */
  async #attempts(request: Request): Promise<ApiResponse<unknown>> {
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

  async #attempt(request: Request): Promise<Omit<ApiResponse<unknown>, 'attempts'>> {
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
        // Following a redirect would send the key to another address.
        redirect: 'manual',
        ...(body === undefined ? {} : { body: body as NonNullable<RequestInit['body']> }),
        ...(isStream(body) ? { duplex: 'half' } : {}),
      })
      const { status, headers: responseHeaders, ok } = response
      const answer = { status, headers: responseHeaders, requestId: responseHeaders.get('x-request-id') ?? requestId }
      if (!ok) throw apiError(await response.text(), { ...answer, idempotencyKey })
      isStreaming = operation.accepts !== undefined
      return {
        body: isStreaming ? response : JSON.parse(await response.text()),
        ...answer,
        isReplayed: responseHeaders.get('idempotency-replayed') === 'true',
      }
    } catch (cause) {
      if (cause instanceof MidmonthError) throw cause
      if (signal?.aborted) throw signal.reason
      const context = { requestId, idempotencyKey, cause }
      if (hasTimedOut) throw new TimeoutError(`No response within ${timeoutMs} ms`, context)
      throw new ConnectionError(`No response from ${this.#baseUrl}: ${reasonOf(cause)}`, context)
    } finally {
      clearTimeout(timer)
      // The caller can still abort a file download.
      if (!isStreaming) signal?.removeEventListener('abort', abort)
    }
  }
}

/**
 * A list whose further pages use the same query. Pages are read by cursor, so that changes do not shift entries, unless the
 * caller skips entries.
 */
function list(
  operation: Operation,
  query: Query,
  response: Promise<ApiResponse<unknown>>,
  sendNext: (query: Query) => Promise<ApiResponse<unknown>>,
): List<Query, unknown> {
  const { entries: field = '', cursor } = operation
  const entriesOf = (page: Query) => page[field] as Query[]
  return new List(response as Promise<ApiResponse<Query>>, {
    entriesOf,
    nextOf(page) {
      const entries = entriesOf(page)
      const last = entries.at(-1)
      const hasMore = page.hasMore ?? entries.length >= Number(page.take)
      // With `before`, pages would move to newer entries while each page is ordered from newer to older. So it is a single page.
      if (!hasMore || last === undefined || query.before !== undefined) return undefined
      const { skip = 0, from: _, ...same } = query
      // A page requested by number may end within entries that share a cursor, so the next page is also requested by number.
      const position =
        cursor === undefined || query.skip !== undefined
          ? { skip: Number(skip) + entries.length }
          : { after: cursor in page ? page[cursor] : last[cursor] }
      const next = { ...same, ...position }
      return list(operation, next, sendNext(next), sendNext)
    },
  })
}

/** A segment of a path. An empty segment or dots would lead to another operation. */
function pathSegment(name: string, value: unknown): string {
  if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) throw new TypeError(`${name} must be an id`)
  return encodeURIComponent(value)
}

/** Encodes a list as a repeated parameter, and an object as one parameter per key: `name[key]`. */
function search(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).map(([key, each]): [string, string] => [`${name}[${key}]`, String(each)])
      : [value ?? []].flat().map((each): [string, string] => [name, String(each)]),
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
}

function apiError(text: string, answer: ErrorResponse): ApiError {
  const issues = issuesOf(text)
  const Class = errorClasses[issues[0]?.code ?? ''] ?? ApiError
  // Each code's class is typed with the issues of that code.
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

/** The reason for a failed fetch is in its cause; the message is only "fetch failed". */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'the response is not JSON'
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message || error.message : error.message
}
