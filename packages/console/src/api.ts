import { ApiError, Openwage } from '@openwage/sdk'
import { signal } from '@preact/signals'

/** The partner whose pages are shown. Every request to `/v1` names it. */
export const partnerId = signal<string | undefined>(undefined)

/** Set when a request is answered 401: the session has ended, and the sign-in page takes over. */
export const sessionEnded = signal(false)

/** Sends the session cookie instead of an API key. */
async function sessionFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.delete('x-api-key')
  if (partnerId.value !== undefined) headers.set('openwage-partner', partnerId.value)
  const response = await fetch(input, { ...init, headers, credentials: 'same-origin' })
  if (response.status === 401) sessionEnded.value = true
  return response
}

/** The operations of `/v1`, the same client that partners use. */
export const api = new Openwage({
  // The constructor demands a key; `sessionFetch` drops it.
  apiKey: 'session',
  baseUrl: location.origin,
  fetch: sessionFetch,
  retriesMax: 1,
})

/** Whether the service has refused a request because another one with the same idempotency key has taken effect. */
export function isOfEarlierAttempt(error: unknown): boolean {
  return error instanceof ApiError && error.issues.some(issue => 'path' in issue && issue.path === 'x-idempotency-key')
}

/**
 * Calls an operation of `/console/v1`, which the SDK does not have.
 * @throws ApiError as the SDK does
 */
export async function send<T>(method: string, path: string, { body }: { body?: unknown } = {}): Promise<T> {
  const isFile = body instanceof Blob || body instanceof FormData
  const response = await fetch(path, {
    method,
    credentials: 'same-origin',
    headers: {
      accept: 'application/json',
      // The browser itself says of which kind a file is.
      ...(body === undefined || isFile ? {} : { 'content-type': 'application/json' }),
      ...(partnerId.value === undefined ? {} : { 'openwage-partner': partnerId.value }),
    },
    ...(body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) }),
  })
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T
  const { issues = [] } = (await response.json().catch(() => ({}))) as { issues?: never[] }
  const { status, headers } = response
  if (status === 401 && !path.startsWith('/console/v1/sign-in')) sessionEnded.value = true
  throw new ApiError(issues, { status, headers, requestId: headers.get('x-request-id') ?? '' })
}

/** Sends a table as a form, so that the name of the file says of which kind it is. */
export async function sendTable<T>(path: string, file: File): Promise<T> {
  const body = new FormData()
  body.append('file', file)
  return await send<T>('POST', path, { body })
}

/** Sends a table where only CSV is taken. */
export async function sendCsv<T>(path: string, file: File): Promise<T> {
  return await send<T>('POST', path, { body: new Blob([file], { type: 'text/csv' }) })
}
