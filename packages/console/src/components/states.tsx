import type { ComponentChildren } from 'preact'
import { explain } from '../problems.ts'
import { Button } from './button.tsx'
import { CopyButton } from './values.tsx'

/** Grey bars in the shape of the content to come. */
export function Skeleton({ lines = 6 }: { lines?: number }) {
  return (
    <div class="skeleton stack" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="bar" />
      ))}
    </div>
  )
}

export function Empty({ title, children, curl }: { title: string; children?: ComponentChildren; curl?: string }) {
  return (
    <div class="empty stack">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {curl && <Code text={curl} label="Copy the request" />}
    </div>
  )
}

/** An example request to copy, shown while a list is empty. */
export function exampleRequest(path: string, body?: unknown): string {
  const request = `curl ${location.origin}${path}`
  const key = '-H "x-api-key: $MIDMONTH_API_KEY"'
  if (body === undefined) return `${request} ${key}`
  return [request, key, `-H 'content-type: application/json'`, `-d '${JSON.stringify(body)}'`].join(' \\\n  ')
}

/** A text to copy, such as a request, a key or a secret. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  )
}

/** A secret or a link that is shown only once. */
export function Secret({ text, label, children }: { text: string; label: string; children: ComponentChildren }) {
  return (
    <>
      <p>{children}</p>
      <Code text={text} label={label} />
    </>
  )
}

/** Says what went wrong and what to do, with the request id. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { title, advice, requestId } = explain(error)
  return (
    <div class="empty failure stack" role="alert">
      <h2>{title}</h2>
      <p>{advice}</p>
      {requestId && (
        <p class="quiet">
          Request <code>{requestId}</code> <CopyButton text={requestId} label="Copy the request id" />
        </p>
      )}
      {onRetry && <Button act={onRetry}>Try again</Button>}
    </div>
  )
}
