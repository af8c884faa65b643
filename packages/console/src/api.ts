import { signal } from '@preact/signals'
import type { Call, CallOptions } from '../../sdk/src/call.ts'
import { Client, type Operation } from '../../sdk/src/client.ts'
import { ApiError, ConnectionError } from '../../sdk/src/index.ts'
import { resourcesOf } from '../../sdk/src/midmonth.ts'
import { holdKey, isOfEarlierAttempt } from './held-keys.ts'
import { flushDeferred, toast } from './toasts.ts'

/** The partner whose pages are shown. Every request to `/v1` names it. */
export const partnerId = signal<string | undefined>(undefined)

/** Shows another partner. First makes the deferred changes, which belong to the previous partner. */
export function showPartner(id: string | undefined): void {
  if (partnerId.peek() === id) return
  void flushDeferred()
  partnerId.value = id
}

/** Set when a request is rejected because the session has ended. Shows the sign-in page. */
export const sessionEnded = signal(false)

/** The SDK's client for the operations of partners and operators, with the reader's session instead of an API key. */
class SessionClient extends Client {
  constructor() {
    // The constructor requires a key; `sessionFetch` drops it.
    super({ apiKey: 'session', baseUrl: location.origin, fetch: sessionFetch, retriesMax: 1 })
  }

  override call(operation: Operation, given: readonly unknown[]): Call<unknown> {
    const { ids, body, query, options } = argumentsOf(operation, given)
    const call = (options: CallOptions) => super.call(operation, [...ids, ...body, ...query, options])
    // Read now: the reader may switch to another partner before the next attempt or page.
    const partner = operation.path.startsWith('/operator/') ? undefined : partnerId.peek()
    const headers = { ...partnerHeaders(partner), ...options.headers }
    const isHeld = isChange(operation, query[0]) && !isSwitch(operation)
    if (!isHeld || options.idempotencyKey !== undefined) return call({ ...options, headers })

    const { method, path } = operation
    const key = holdKey({ method, path, ids, query: query[0], partnerId: headers['midmonth-partner'] })
    const response = call({ ...options, headers, idempotencyKey: key.value })
    void response.withResponse().then(
      ({ isReplayed }) => {
        key.release()
        if (key.wasHeld && isReplayed) toast('An earlier attempt already succeeded; nothing was done twice')
      },
      // Any other error leaves the key unused, or says nothing about an earlier attempt.
      error => {
        if (isOfEarlierAttempt(error)) key.release()
      },
    )
    return response
  }
}

export const client = new SessionClient()

/** The operations of `/v1`, by the same methods that partners use. */
export const api = resourcesOf(client)

/** Headers that name the partner of a request. */
export function partnerHeaders(partner: string | undefined): Record<string, string> {
  return partner === undefined ? {} : { 'midmonth-partner': partner }
}

/** Splits a method's arguments: path ids, body and query, as far as the operation takes them, then the options. */
function argumentsOf({ path, hasBody, hasQuery }: Operation, given: readonly unknown[]) {
  const left = [...given]
  const take = (count: number) => Array.from({ length: count }, () => left.shift())
  const ids = take(path.split('{').length - 1)
  const body = take(hasBody ? 1 : 0)
  const query = take(hasQuery ? 1 : 0)
  return { ids, body, query, options: (left.shift() ?? {}) as CallOptions }
}

/** Whether a call may change something. Previews and dry runs do not. */
function isChange({ method, path }: Operation, query: unknown): boolean {
  const isTrial = path.endsWith('/preview') || (query as { dryRun?: boolean } | undefined)?.dryRun === true
  return method !== 'GET' && !isTrial
}

/**
 * Whether an operation is idempotent and sets a state that another operation reverses. It must not hold a key: a replayed response
 * would say that a rail is held although it has been released since.
 */
function isSwitch({ method, path }: Operation): boolean {
  return method === 'DELETE' || /\/(hold|release|pause|resume|suspend|restore)$/.test(path)
}

// Browsers limit keepalive bodies to 64 KiB over all requests in flight.
const keptAliveLengthMax = 10_000

async function sessionFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.delete('x-api-key')
  const response = await fetch(input, { ...init, headers, credentials: 'same-origin', keepalive: isKeptAlive(init) })
  if (response.status === 401) sessionEnded.value = true
  return response
}

/** Whether the browser sends the request even if the reader closes the page at once. */
function isKeptAlive({ method, body }: RequestInit): boolean {
  const isSmall = body == null || (typeof body === 'string' && body.length <= keptAliveLengthMax)
  return method !== 'GET' && isSmall
}

/**
 * Calls an operation of `/console/v1`, which the SDK does not cover.
 * @param options.isOfInstallation whether the request concerns the installation rather than the partner shown
 * @throws ApiError and ConnectionError as the SDK does
 */
export async function send<T>(
  method: string,
  path: string,
  { body, isOfInstallation = false }: { body?: unknown; isOfInstallation?: boolean } = {},
): Promise<T> {
  const isFile = body instanceof Blob || body instanceof FormData
  const init: RequestInit = {
    method,
    credentials: 'same-origin',
    headers: {
      accept: 'application/json',
      // The browser sets the content type of a file.
      ...(body === undefined || isFile ? {} : { 'content-type': 'application/json' }),
      ...(isOfInstallation ? {} : partnerHeaders(partnerId.peek())),
    },
    ...(body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) }),
  }
  try {
    const response = await fetch(path, { ...init, keepalive: isKeptAlive(init) })
    if (response.ok) return (await contentOf(response)) as T
    const { issues = [] } = (await response.json().catch(() => ({}))) as { issues?: never[] }
    const { status, headers } = response
    throw new ApiError(issues, { status, headers, requestId: headers.get('x-request-id') ?? '' })
  } catch (error) {
    if (!(error instanceof ApiError))
      throw new ConnectionError('No response', { requestId: '', idempotencyKey: undefined, cause: error })
    if (isWithoutSession(error)) sessionEnded.value = true
    throw error
  }
}

async function contentOf(response: Response): Promise<unknown> {
  if (response.status === 204) return undefined
  return response.headers.get('content-type')?.includes('json') ? await response.json() : await response.blob()
}

/** Whether a request was rejected because there is no session, rather than for a wrong password or a used link. */
export function isWithoutSession(error: unknown): boolean {
  return error instanceof ApiError && error.issues.some(issue => 'path' in issue && issue.path === 'cookie')
}

/** Sends a table as a form, so that the file name tells its type. */
export async function sendTable<T>(path: string, file: File): Promise<T> {
  const body = new FormData()
  body.append('file', file)
  return await send<T>('POST', path, { body })
}

/** Sends a table to an operation that accepts only CSV. */
export async function sendCsv<T>(path: string, file: File): Promise<T> {
  return await send<T>('POST', path, { body: new Blob([file], { type: 'text/csv' }) })
}
