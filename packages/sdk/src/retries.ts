import { ApiError, ConnectionError } from './errors.ts'

const limits = {
  firstMs: 500,
  longestMs: 8_000,
  /** For a longer `retry-after`, the caller decides whether the user should wait. */
  retryAfterMsMax: 60_000,
}

/** Temporary statuses. Only a proxy's response has one of them without `x-should-retry`. */
const temporaryStatuses = [408, 429, 500, 502, 503, 504]

/**
 * How long to wait before the request is sent again; undefined if it would fail again, or only succeed much later.
 * @param attempt the number of attempts so far
 * @param random from 0 up to 1; spreads the retries of clients that failed together
 */
export function waitMsOf(error: unknown, attempt: number, random = Math.random()): number | undefined {
  const backoffMs = Math.min(limits.longestMs, limits.firstMs * 2 ** (attempt - 1)) * (1 - random / 4)
  if (error instanceof ConnectionError) return backoffMs
  if (!(error instanceof ApiError)) return undefined
  const shouldRetry = error.headers.get('x-should-retry')
  if (shouldRetry === null ? !temporaryStatuses.includes(error.status) : shouldRetry !== 'true') return undefined
  const retryAfter = error.headers.get('retry-after')
  if (retryAfter === null || !/^\d+$/.test(retryAfter)) return backoffMs
  const retryAfterMs = Number(retryAfter) * 1_000
  // Never earlier than `retry-after`.
  return retryAfterMs > limits.retryAfterMsMax ? undefined : retryAfterMs + (limits.firstMs * random) / 4
}

/** Waits. @throws the signal's reason as soon as the signal is aborted */
export async function pause(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, waitMs)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
