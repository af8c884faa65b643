import type { FastifyReply, FastifyRequest } from 'fastify'
import { isGeneratedId } from '../kernel/ids.ts'
import type { RequestRecord } from '../request-record.ts'
import { requestIdOf } from './server/request-headers.ts'

// More than any route has. A hostile path has thousands.
const segmentsMax = 12

/** Describes answered requests for the request log. */
export class RequestRecords {
  readonly #routes = new Map<string, string>()
  // The segments of all routes, without parameters.
  readonly #words = new Set<string>([''])

  /** @param url the route's pattern: `/v1/members/:memberId` */
  addRoute(url: string): void {
    this.#routes.set(url, url.replace(/:([A-Za-z]+)/g, '{$1}'))
    for (const segment of url.split('/')) if (!segment.startsWith(':')) this.#words.add(segment)
  }

  /**
   * Undefined if the partner is not known, because the API key was refused or not yet looked up; for what users of the console only
   * look at, because each page that is opened would add a dozen lines to the log of the partner's servers; and for operations of the
   * console alone, which are in the audit log.
   */
  recordOf(request: FastifyRequest, reply: FastifyReply): RequestRecord | undefined {
    // Refused requests may lack what is declared for every request.
    const { partner, refusal, idempotencyKey } = request as Partial<FastifyRequest>
    if (partner === undefined) return undefined
    const { url, config } = request.route
    if (request.user !== undefined && (request.method === 'GET' || config.console !== undefined)) return undefined
    const route = url === undefined || request.is404 ? null : (this.#routes.get(url) ?? null)
    return {
      partnerId: partner.id,
      keyId: request.user?.user.id ?? request.keyId,
      requestId: request.id,
      isOwnRequestId: requestIdOf(request.headers['x-request-id']) !== undefined,
      receivedAt: request.receivedAt,
      method: request.method,
      route,
      path: route === null ? this.#redacted(request.url) : pathOf(route, request.params),
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
      idempotencyKey: idempotencyKey ?? null,
      isReplayed: reply.hasHeader('idempotency-replayed'),
      errorCodes: refusal === undefined ? [] : [...new Set(refusal.issues.map(issue => issue.code))],
      resourceId: request.resourceId ?? namedResource(request, refusal?.issues[0]?.memberId),
    }
  }

  // An unknown path may hold anything, even a name: only words of our routes and ids of ours are kept.
  #redacted(url: string): string {
    const segments = url.split(/[?#]/, 1)[0]?.split('/', segmentsMax + 1) ?? []
    return segments.map(segment => (this.#words.has(segment) || isGeneratedId(segment) ? segment : '…')).join('/')
  }
}

/** The path, with those parameters that are ids filled in. */
function pathOf(route: string, params: unknown): string {
  if (!route.includes('{')) return route
  const values = params as Record<string, unknown>
  return route.replace(/\{([A-Za-z]+)\}/g, (whole, name: string) => {
    const value = values[name]
    return isGeneratedId(value) ? value : whole
  })
}

/** The resource that the path names, or else the member that the refusal, the body or the session names. */
function namedResource({ params, body, memberSession }: FastifyRequest, memberId: unknown): string | null {
  const inBody = (body as { memberId?: unknown } | null | undefined)?.memberId
  const inPath = Object.values((params as object | undefined) ?? {}).toReversed()
  return [...inPath, memberId, inBody, memberSession?.memberId].find(isGeneratedId) ?? null
}
