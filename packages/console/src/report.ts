/** A page that fails again and again must not fill the log. */
const reportsMax = 10
const textMax = 2_000

// The same failure once is enough.
const reported = new Set<string>()

/** Reports an error of this page to the service's log. No answer is awaited: an error about errors helps no reader. */
export function report(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined }
  const shown = message.slice(0, textMax)
  if (reported.size >= reportsMax || reported.has(shown)) return
  reported.add(shown)
  const body = JSON.stringify({
    message: shown,
    stack: (stack ?? '').slice(0, textMax),
    // Without the query, which can have what the reader searched for.
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

/** Reports what no page catches: thrown errors and rejected promises. */
export function reportErrors(): void {
  addEventListener('error', ({ message, error }) => report(error ?? message))
  addEventListener('unhandledrejection', ({ reason }) => report(reason))
}
