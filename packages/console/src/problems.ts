import { ApiError, ConnectionError } from '../../sdk/src/index.ts'
import { isOfEarlierAttempt } from './held-keys.ts'

/** What went wrong, what to do about it, and the id by which the log knows the request. */
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
        title: 'Something went wrong',
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
