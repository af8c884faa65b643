import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Validated } from '../../contract/validation.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Callers } from '../admission/callers.ts'
import { type BodyTimeouts, disconnectSignal } from '../bodies/body-timeouts.ts'
import { fingerprintStart } from '../with-idempotency.ts'
import type { Connections } from './connections.ts'
import type { MethodTable } from './method-table.ts'
import { others, type Places } from './places.ts'
import {
  commonHeaders,
  readIdempotencyKey,
  requireHost,
  requirePlainEncoding,
  setDeprecation,
} from './request-headers.ts'

/** Nearly all responses take a hundredth of this. Clients retry after it, so waiting longer would only build up a backlog. */
export const answerMsMax = 5_000

type Desk = {
  callers: Callers
  places: Places
  bodyTimeouts: BodyTimeouts
  connections: Connections
  methodTable: MethodTable
  now: Clock
}

/**
 * What happens to a request between its arrival and its operation. Each step returns a promise only if it must wait: a promise costs
 * a request more than most steps do.
 */
export class Reception {
  readonly #desk: Desk

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /**
   * Identifies the caller, and refuses what can be refused before the body is read.
   * @throws Problem, also later
   */
  receive(request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const { bodyTimeouts, connections, now } = this.#desk
    bodyTimeouts.expect(request, reply)
    request.receivedAt = now()
    request.now = request.receivedAt
    request.bodyFaults = []
    reply.headers(commonHeaders(request.id))
    if (request.server.isDraining) reply.header('connection', 'close')
    if (connections.isRefused(request.raw.socket)) throw tooManyConnections()
    const { deprecated } = request.route.config
    if (deprecated !== undefined) setDeprecation(reply, deprecated)
    const admitted = this.#admitInTurn(request, reply)
    return admitted === undefined ? this.#requireReadable(request) : admitted.then(() => this.#requireReadable(request))
  }

  /** Gives up the place of a request that will not need it for a while. */
  awaitBody(request: FastifyRequest): void {
    if (!request.raw.complete || isLong(request)) this.#desk.places.leave(request)
  }

  /**
   * Validates a request whose body has arrived, once it has a place again.
   * @throws Problem, also later
   */
  validate(request: FastifyRequest): void | Promise<void> {
    this.#desk.bodyTimeouts.arrived(request)
    const needsPlace = request.placeOf === undefined && takesPlaces(request) && !isLong(request)
    const entered = needsPlace ? this.#desk.places.enter(request, ownerOf(request)) : undefined
    return entered === undefined ? validate(request) : entered.then(() => validate(request))
  }

  /** The request waits for a place of its partner, or, before that, for one in which the caller is looked up. */
  #admitInTurn(request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const { callers, places } = this.#desk
    if (!takesPlaces(request)) return callers.admit(request, reply)
    return callers.admitCached(request, reply)
      ? places.enter(request, request.partner.id)
      : this.#admitLookedUp(request, reply)
  }

  async #admitLookedUp(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { callers, places } = this.#desk
    await places.enter(request, callers.lastKnownPartner(request) ?? others)
    await callers.admit(request, reply)
    if (request.placeOf?.name !== others || ownerOf(request) === others) return
    places.leave(request)
    await places.enter(request, ownerOf(request))
  }

  #requireReadable(request: FastifyRequest): void {
    requireHost(request)
    // Refused before the body is read: reading it would be wasted work.
    if (request.is404) throw this.#desk.methodTable.refusalOf(request)
    requirePlainEncoding(request)
  }
}

/** Whose places the request of an identified caller takes: those of the partner if it has an API key. */
function ownerOf({ keyId, memberSession, partner }: FastifyRequest): string {
  return keyId === undefined || memberSession !== undefined ? others : partner.id
}

/** Whether the route identifies its caller, and may be refused in an overload. */
function takesPlaces(request: FastifyRequest): boolean {
  const { scope, session, console: who, isForOperators, isNeverShed } = request.route.config
  return !isNeverShed && ((scope ?? session ?? who ?? isForOperators) !== undefined || request.is404)
}

/** An operation that may take long has its own limits, and must not keep a place from others. */
function isLong({ route }: FastifyRequest): boolean {
  return (route.config.answerMsMax ?? 0) > answerMsMax
}

function validate(request: FastifyRequest): void | Promise<void> {
  const { params, query, body, bodyFaults } = request
  const { validate, console: who } = request.route.config
  // A page of the console is not repeated by key: a stored response would reveal an account again without recording it.
  if (who === undefined) request.idempotencyKey = readIdempotencyKey(request)
  if (validate === undefined) return
  const take = ({ query, body, fingerprint }: Validated) => {
    request.query = query
    request.body = body
    request.fingerprint = fingerprint
  }
  const start = (query: unknown) => fingerprintStart(request, query)
  const validated = validate({
    params,
    query,
    body,
    bodyFaults,
    disconnectSignal: () => disconnectSignal(request.reply),
    fingerprintStart: request.idempotencyKey === undefined ? undefined : start,
  })
  return validated instanceof Promise ? validated.then(take) : take(validated)
}

function tooManyConnections(): Problem {
  const headers = { 'retry-after': '1', connection: 'close' }
  return problem('ServiceUnavailable', 'Too many connections are open, so nothing was done; try again', {}, headers)
}
