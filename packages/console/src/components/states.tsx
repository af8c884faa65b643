import { ApiError, ConnectionError } from '@openwage/sdk'
import type { ComponentChildren } from 'preact'
import { isOfEarlierAttempt } from '../api.ts'
import { CopyButton } from './values.tsx'

/** Grey bars in the shape of what is about to be shown. */
export function Skeleton({ lines = 6 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class={`bar bar-${index % 4}`} />
      ))}
    </div>
  )
}

export function Empty({ title, children, curl }: { title: string; children?: ComponentChildren; curl?: string }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {curl && <Code text={curl} label="Copy the request" />}
    </div>
  )
}

/** A text to copy: a request, a key, a secret. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  )
}

/** What went wrong, what to do about it, and the id by which the log knows it. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { title, advice, requestId } = explain(error)
  return (
    <div class="empty failure" role="alert">
      <h2>{title}</h2>
      <p>{advice}</p>
      {requestId && (
        <p class="quiet">
          Request <code>{requestId}</code> <CopyButton text={requestId} label="Copy the request id" />
        </p>
      )}
      {onRetry && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function explain(error: unknown): { title: string; advice: string; requestId?: string } {
  if (error instanceof ApiError) {
    const { status, requestId, issues } = error
    const messages = issues.map(({ message }) => message).join('; ')
    if (isOfEarlierAttempt(error))
      return {
        title: 'An earlier attempt took effect',
        advice: 'Its answer was lost, and it had other values than these. Look at what it did before you try again.',
      }
    if (status === 404)
      return {
        title: 'Not found',
        advice: 'There is no such record here. It may belong to another partner, or the address is incomplete.',
      }
    if (status === 403)
      return {
        title: 'Not allowed',
        advice: messages || 'Your role does not include this. Ask an administrator for it.',
        requestId,
      }
    if (status === 429) return { title: 'Too many requests', advice: 'Wait a moment, then try again.', requestId }
    if (status >= 500)
      return {
        title: 'The service failed',
        advice: 'Try again. If it fails again, give the operator the request id: the log has the cause.',
        requestId,
      }
    return { title: 'That was refused', advice: messages || error.message, requestId }
  }
  if (error instanceof ConnectionError)
    return {
      title: 'No connection',
      advice: 'The service did not answer. Check the connection, then try again.',
      requestId: error.requestId,
    }
  return { title: 'This page failed', advice: error instanceof Error ? error.message : String(error) }
}

export function messageOf(error: unknown): string {
  const { title, advice } = explain(error)
  return `${title}: ${advice}`
}
