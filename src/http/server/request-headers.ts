import type { FastifyReply, FastifyRequest } from 'fastify'
import { idempotencyKeyPattern } from '../../contract/headers.ts'
import { problem } from '../../kernel/errors.ts'
import { rateLimitHeaders } from './rate-limit.ts'

const defaultRateLimit = { perSecond: 100, burst: 200 }

/** The headers of every response, including refusals. Admission overwrites the quota with the partner's own. */
export function commonHeaders(requestId: string): Record<string, string> {
  return {
    'x-request-id': requestId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...defaultRateLimitHeaders,
  }
}

const defaultRateLimitHeaders = rateLimitHeaders(defaultRateLimit, defaultRateLimit.burst)

/** The caller's own request id, if it is fit for a log line. */
export function requestIdOf(header: unknown): string | undefined {
  return typeof header === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(header) ? header : undefined
}

/** Announces that the route is deprecated. Sources: RFC 9745 and RFC 8594. */
export function setDeprecation(
  reply: FastifyReply,
  { since, sunset, successor }: { since: string; sunset: string; successor: string },
): void {
  reply.headers({
    deprecation: `@${Date.parse(since) / 1000}`,
    sunset: new Date(sunset).toUTCString(),
    link: `<${successor}>; rel="successor-version"`,
  })
}

/**
 * Checks the headers that HTTP leaves to the server.
 * @throws Problem `BadRequest`
 */
export function requireHost(request: FastifyRequest): void {
  if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
    throw problem('BadRequest', 'The Host header is missing')
  }
  for (const name of ['host', 'content-type']) {
    if (isRepeated(request, name)) throw problem('BadRequest', `The ${name} header must be sent once`)
  }
}

/** @throws Problem `UnsupportedMediaType`, `BadRequest` */
export function requirePlainEncoding({ headers }: FastifyRequest): void {
  if (headers['content-encoding'] !== undefined) {
    throw problem('UnsupportedMediaType', 'The body must not have a content-encoding; send it uncompressed')
  }
  const transferEncoding = headers['transfer-encoding']
  if (transferEncoding !== undefined && transferEncoding.toLowerCase() !== 'chunked') {
    throw problem('BadRequest', 'The only supported transfer-encoding is chunked')
  }
}

const idempotencyKeyForm = new RegExp(idempotencyKeyPattern)

/** @throws Problem `HeaderValidation` */
export function readIdempotencyKey(request: FastifyRequest): string | undefined {
  const name = 'x-idempotency-key'
  const key = request.headers[name]
  // Node joins repeated headers, which would turn two keys into a third.
  if (isRepeated(request, name)) throw problem('HeaderValidation', `${name} must be sent once`, { path: name })
  if (key === undefined) return undefined
  if (typeof key !== 'string' || !idempotencyKeyForm.test(key)) {
    throw problem('HeaderValidation', `${name} must be 1 to 1024 characters of Latin-1 without control characters`, {
      path: name,
    })
  }
  return key
}

function isRepeated({ raw }: FastifyRequest, name: string): boolean {
  let count = 0
  for (let index = 0; index < raw.rawHeaders.length; index += 2) {
    const header = raw.rawHeaders[index]
    if (header?.length === name.length && header.toLowerCase() === name) count += 1
  }
  return count > 1
}
