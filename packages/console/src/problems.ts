import { ApiError, ConnectionError } from '../../sdk/src/index.ts'
import { isOfEarlierAttempt } from './held-keys.ts'

/** Says what went wrong and what to do, with the request id. */
export function explain(error: unknown): { title: string; advice: string; requestId?: string } {
  if (error instanceof ApiError) {
    const { status, requestId, issues } = error
    const messages = issues.map(({ message }) => message).join('; ')
    if (isOfEarlierAttempt(error))
      return {
        title: 'An earlier attempt took effect',
        advice:
          'Its response was lost, and it had other values than these. Check what it changed before you try again.',
      }
    if (status === 404)
      return {
        title: 'Not found',
        advice: 'This record does not exist here. It may belong to another partner, or the address may be incomplete.',
      }
    if (status === 403)
      return {
        title: 'Not allowed',
        advice: messages || 'Your role does not allow this. Ask an administrator for access.',
        requestId,
      }
    if (status === 429) return { title: 'Too many requests', advice: 'Wait a moment, then try again.', requestId }
    if (status >= 500)
      return {
        title: 'Something went wrong',
        advice:
          'Try again. If the error persists, give the operator the request id so that they can find the cause in the log.',
        requestId,
      }
    return { title: 'Request rejected', advice: messages || error.message, requestId }
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
