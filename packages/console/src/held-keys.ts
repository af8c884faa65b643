import { ApiError } from '../../sdk/src/index.ts'

/** Identifies a change by its operation and address, not by its body. */
type Change = { method: string; path: string; ids: unknown[]; query: unknown; partnerId: string | undefined }

type HeldKey = {
  value: string
  /** Whether an earlier attempt has used the key and its response was lost. */
  wasHeld: boolean
  /** Call this once the response is final. */
  release(): void
}

/**
 * Returns the idempotency key of a change. The key is held until the response is final, so that pressing a button again after a lost
 * response does not repeat the change. It does not depend on the body: if the earlier request took effect, a corrected form is
 * rejected instead of taking effect a second time.
 */
export function holdKey({ method, path, ids, query, partnerId }: Change): HeldKey {
  const name = JSON.stringify(['idempotency key', partnerId ?? null, method, path, ids, query])
  // Session storage survives a reload, which is how many readers try again.
  const held = sessionStorage.getItem(name)
  const value = held ?? crypto.randomUUID()
  sessionStorage.setItem(name, value)
  return {
    value,
    wasHeld: held !== null,
    release() {
      if (sessionStorage.getItem(name) === value) sessionStorage.removeItem(name)
    },
  }
}

/** Whether the service rejected a request because an earlier one with the same idempotency key took effect. */
export function isOfEarlierAttempt(error: unknown): boolean {
  return error instanceof ApiError && error.issues.some(issue => 'path' in issue && issue.path === 'x-idempotency-key')
}
