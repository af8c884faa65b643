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

const octets = 'application/octet-stream'

/**
 * Calls an operation of `/console/v1` or `/admin/v1`, which the SDK does not have.
 * @param options.isOfInstallation whether it is about the installation, not about the partner shown
 * @throws ApiError as the SDK does
 */
export async function send<T>(
  method: string,
  path: string,
  { body, isOfInstallation = path.startsWith('/admin/') }: { body?: unknown; isOfInstallation?: boolean } = {},
): Promise<T> {
  const response = await fetch(path, {
    method,
    credentials: 'same-origin',
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': body instanceof Blob ? octets : 'application/json' }),
      ...(method === 'GET' || !path.startsWith('/admin/') ? {} : { 'x-idempotency-key': crypto.randomUUID() }),
      ...(partnerId.value === undefined || isOfInstallation ? {} : { 'openwage-partner': partnerId.value }),
    },
    ...(body === undefined ? {} : { body: body instanceof Blob ? body : JSON.stringify(body) }),
  })
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T
  const { issues = [] } = (await response.json().catch(() => ({}))) as { issues?: never[] }
  const { status, headers } = response
  if (status === 401 && !path.startsWith('/console/v1/sign-in')) sessionEnded.value = true
  throw new ApiError(issues, { status, headers, requestId: headers.get('x-request-id') ?? '' })
}
