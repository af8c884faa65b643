import type { FastifyReply, FastifyRequest } from 'fastify'
import { brokenConstraint, outageOutcome } from '../../database/errors.ts'
import { issue, Problem, type ProblemName, problem, problems, shouldRetry } from '../../kernel/errors.ts'
import { commonHeaders } from './request-headers.ts'
import type { UnavailabilityLog } from './unavailability-log.ts'

/** Responds with an error, in the shape of every refusal, and logs the error if the request did not cause it. */
export function answerError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  unavailabilityLog: UnavailabilityLog,
): FastifyReply {
  const refusal = error instanceof Problem ? error : problemOf(error, request)
  request.refusal = refusal
  if (refusal.status === 503) unavailabilityLog.add(error, request.id)
  else if (refusal.status >= 500) request.log.error({ err: error, requestId: request.id }, 'request failed')
  // A malformed URL is refused before any hook has run.
  if (!reply.hasHeader('x-request-id')) reply.headers(commonHeaders(request.id))
  reply.header('x-should-retry', String(shouldRetry(refusal, { isRepeatable: isRepeatable(request) })))
  return reply
    .code(refusal.status)
    .headers(refusal.headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ issues: refusal.issues }))
}

// A read has no effect, and neither has a request whose caller was not identified yet.
function isHarmless({ method, partner, operator }: FastifyRequest): boolean {
  return method === 'GET' || (partner ?? operator) === undefined
}

function isRepeatable(request: FastifyRequest): boolean {
  return isHarmless(request) || request.idempotencyKey !== undefined
}

function problemOf(error: unknown, request: FastifyRequest): Problem {
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  const known = code === undefined ? undefined : frameworkProblems[code]
  if (known !== undefined) return new Problem(known.name, [issue(known.name, known.message(request))])
  // The caller has disconnected in the middle of the body, so this only reaches the log.
  if (code === 'ECONNRESET' && (error as Error).message === 'aborted')
    return problem('BadRequest', 'The body ended early')
  if (brokenConstraint(error) === 'balance_fits_the_wire') {
    return problem('Conflict', 'The member’s balance would exceed the largest amount that a response can hold')
  }
  if (/^(ENOSPC|EDQUOT|EFBIG|EROFS|EMFILE|ENFILE)$/.test(code ?? '')) {
    const message = 'The service has no room for the request at the moment, so nothing was done; try again in a minute'
    return problem('ServiceUnavailable', message, {}, { 'retry-after': '60' })
  }
  const outcome = outageOutcome(error)
  if (outcome !== undefined) {
    const headers = { 'retry-after': '1' }
    if (outcome === 'nothing-done' || isHarmless(request)) {
      return problem('ServiceUnavailable', problems.ServiceUnavailable.message, {}, headers)
    }
    return problem('OutcomeUnknown', problems.OutcomeUnknown.message, {}, headers)
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return problem('BadRequest', 'The request is malformed')
  return problem('InternalServerError', problems.InternalServerError.message)
}

const frameworkProblems: Record<string, { name: ProblemName; message: (request: FastifyRequest) => string }> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { name: 'UnsupportedMediaType', message: wrongMediaType },
  FST_ERR_CTP_INVALID_TYPE: { name: 'UnsupportedMediaType', message: wrongMediaType },
  FST_ERR_BAD_URL: { name: 'BadRequest', message: () => 'The path is not a valid URL path' },
}

function wrongMediaType({ route }: FastifyRequest): string {
  const { content } = (route.schema?.body ?? {}) as { content?: object }
  const accepted = Object.keys(content ?? { 'application/json': {} })
  return `The content-type is not supported here; send ${accepted.join(' or ')}`
}
