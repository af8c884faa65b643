/** A page that fails repeatedly must not fill the log. */
const reportsMax = 10
const textMax = 2_000

// Each error is reported once.
const reported = new Set<string>()

/** Reports an error of this page to the service's log. Best effort: does not wait for the response. */
export function report(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined }
  const shown = message.slice(0, textMax)
  if (reported.size >= reportsMax || reported.has(shown)) return
  reported.add(shown)
  const body = JSON.stringify({
    message: shown,
    stack: (stack ?? '').slice(0, textMax),
    // Without the query, which may contain what the reader searched for.
    page: location.pathname.slice(0, 200),
  })
  void fetch('/console/v1/errors', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    credentials: 'same-origin',
    keepalive: true,
    body,
  }).catch(() => undefined)
}

/** Reports uncaught errors and unhandled rejections. */
export function reportErrors(): void {
  addEventListener('error', ({ message, error }) => report(error ?? message))
  addEventListener('unhandledrejection', ({ reason }) => report(reason))
}
