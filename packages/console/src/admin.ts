import type { Answered, Call } from '../../sdk/src/call.ts'
import { Client, type Operation } from '../../sdk/src/client.ts'
import { isOfEarlierAttempt, sessionEnded } from './api.ts'
import { toast } from './components/toast.tsx'
import { type AdminOperations, operations } from './generated/admin.ts'

/** The operators' API by the ids of its operations, with the SDK's client: `admin.pausePartner(partnerId, { reason })`. */
export const admin = operatorsApi()

function operatorsApi(): AdminOperations {
  // The constructor demands a key; `sessionFetch` drops it.
  const client = new Client({ apiKey: 'session', baseUrl: location.origin, fetch: sessionFetch, retriesMax: 1 })
  const methods: Record<string, (...given: unknown[]) => unknown> = {}
  for (const [name, operation] of Object.entries(operations))
    methods[name] = (...given) =>
      operation.method === 'GET' ? client.call(operation, given) : callOnce(client, operation, given)
  return methods as typeof methods & AdminOperations
}

async function sessionFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.delete('x-api-key')
  // A bank’s file has its own type, whatever its first bytes.
  if (init.body instanceof Blob) headers.set('content-type', 'application/octet-stream')
  const response = await fetch(input, { ...init, headers, credentials: 'same-origin' })
  if (response.status === 401) sessionEnded.value = true
  return response
}

/**
 * Sends a change with an idempotency key that is held until the answer is final, so that pressing a button again after an
 * answer was lost does not repeat the change. The key is of the operation and what it changes, not of the body: if the
 * earlier request took effect, a corrected form is refused instead of taking effect a second time.
 */
function callOnce(client: Client, operation: Operation, given: unknown[]): Call<unknown> {
  const ids = operation.path.split('{').length - 1
  const places = ids + (operation.hasBody ? 1 : 0) + (operation.hasQuery ? 1 : 0)
  const takes = Array.from({ length: places }, (_, place) => given[place])
  const query = operation.hasQuery ? takes.at(-1) : undefined
  const name = JSON.stringify(['idempotency key', operation.method, operation.path, takes.slice(0, ids), query])
  // Of the tab: it outlives a reload, which is how many readers try again.
  const held = sessionStorage.getItem(name)
  const key = held ?? crypto.randomUUID()
  sessionStorage.setItem(name, key)
  const release = () => {
    if (sessionStorage.getItem(name) === key) sessionStorage.removeItem(name)
  }
  const call = client.call(operation, [...takes, { idempotencyKey: key }])
  void call.withResponse().then(
    ({ isReplayed }: Answered<unknown>) => {
      release()
      if (held !== null && isReplayed) toast('An earlier attempt had arrived; nothing was done twice')
    },
    // Any other refusal leaves the key unused, or says nothing about an earlier attempt.
    error => {
      if (isOfEarlierAttempt(error)) release()
    },
  )
  return call
}
