/** Base of every error that the SDK throws, except the reason of an aborted signal. */
export class MidmonthError extends Error {
  override readonly name: string = 'MidmonthError'
}

export type Issue = { code: string; message: string }
export type ErrorResponse = {
  status: number
  headers: Headers
  requestId: string
  idempotencyKey?: string | undefined
}

/** The service rejected the request. Every code has a subclass; a code that is newer than the SDK uses this class. */
export class ApiError<I extends Issue = Issue> extends MidmonthError {
  override readonly name: string
  /** The code of the first issue. */
  readonly code: string
  /** All issues. Empty if the response came from a proxy instead of Midmonth. */
  readonly issues: I[]
  readonly status: number
  readonly headers: Headers
  readonly requestId: string
  /** With a status of 500 or above, the request may have taken effect. Retrying with this key has no second effect. */
  readonly idempotencyKey: string | undefined
  /** Whether the service says that the same request may succeed later. */
  readonly shouldRetry: boolean

  constructor(issues: I[], { status, headers, requestId, idempotencyKey }: ErrorResponse) {
    const [first] = issues
    const shown = issues.slice(0, 3).map(({ message }) => message)
    if (issues.length > shown.length) shown.push(`and ${issues.length - shown.length} more`)
    const what = first === undefined ? 'The response is not from Midmonth' : shown.join('; ')
    const code = first?.code ?? 'Unknown'
    super(`${what} (${first === undefined ? '' : `${code}, `}HTTP ${status}, request ${requestId})`)
    this.name = code.endsWith('Error') ? code : `${code}Error`
    this.code = code
    this.issues = issues
    this.status = status
    this.headers = headers
    this.requestId = requestId
    this.idempotencyKey = idempotencyKey
    this.shouldRetry = headers.get('x-should-retry') === 'true'
  }
}

/** The service was not reached, or the connection broke before the complete response arrived. The request may have taken effect. */
export class ConnectionError extends MidmonthError {
  override readonly name: string = 'ConnectionError'
  /** Sent with every attempt; appears in the service's request log if an attempt arrived. */
  readonly requestId: string
  /** Repeat the call with this key to learn the outcome without a second effect. */
  readonly idempotencyKey: string | undefined

  constructor(
    message: string,
    { requestId, idempotencyKey, cause }: { requestId: string; idempotencyKey: string | undefined; cause?: unknown },
  ) {
    super(`${message} (request ${requestId})`, { cause })
    this.requestId = requestId
    this.idempotencyKey = idempotencyKey
  }
}

/** No complete response arrived within `timeoutMs`. The request may have taken effect. */
export class TimeoutError extends ConnectionError {
  override readonly name = 'TimeoutError'
}

/** A webhook that must not be trusted: its signature or timestamp is wrong or missing. */
export class WebhookVerificationError extends MidmonthError {
  override readonly name = 'WebhookVerificationError'
}
