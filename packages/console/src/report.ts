/** A page that fails again and again must not fill the log. */
const reportsMax = 10
const textMax = 2_000

/** Reports errors of this page to the service's log. No answer is awaited: an error about errors helps no reader. */
export function reportErrors(): void {
  let reports = 0
  const report = (message: string, stack: string | undefined) => {
    reports++
    if (reports > reportsMax) return
    const body = JSON.stringify({
      message: message.slice(0, textMax),
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
  addEventListener('error', ({ message, error }) => report(message, error?.stack))
  addEventListener('unhandledrejection', ({ reason }) => report(String(reason?.message ?? reason), reason?.stack))
}
