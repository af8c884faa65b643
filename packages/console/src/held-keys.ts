import { ApiError } from '../../sdk/src/index.ts'

/** What a change does: its operation and what it names in the address, not its body. */
type Change = { method: string; path: string; ids: unknown[]; query: unknown; partnerId: string | undefined }

export type HeldKey = {
  value: string
  /** Whether an earlier attempt has used it, whose answer was lost. */
  wasHeld: boolean
  /** To be called once the answer is final. */
  release(): void
}

/**
 * The idempotency key of a change, held until its answer is final, so that pressing a button again after an answer was lost does
 * not repeat the change. It does not depend on the body: if the earlier request took effect, a corrected form is refused
 * instead of taking effect a second time.
 */
export function holdKey({ method, path, ids, query, partnerId }: Change): HeldKey {
  const name = JSON.stringify(['idempotency key', partnerId ?? null, method, path, ids, query])
  // Of the tab: it outlives a reload, which is how many readers try again.
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

/** Whether the service has refused a request because another one with the same idempotency key has taken effect. */
export function isOfEarlierAttempt(error: unknown): boolean {
  return error instanceof ApiError && error.issues.some(issue => 'path' in issue && issue.path === 'x-idempotency-key')
}
