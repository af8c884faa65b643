import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem, problems } from '../../kernel/errors.ts'

/**
 * Enforces how long each body may take to arrive. Node has one limit for all requests, but a large file may take longer than a
 * small body. A timer per request would cost more than most requests, so a periodic sweep checks all bodies.
 */
export class BodyTimeouts {
  private readonly arriving = new Map<IncomingMessage, { reply: FastifyReply; dueMs: number }>()
  private readonly msMax: number
  // The latest due time of any body once the service is stopping.
  private closingDueMs = Number.POSITIVE_INFINITY

  /** @param msMax milliseconds that a body may take to arrive, unless its route sets another limit */
  constructor({ msMax }: { msMax: number }) {
    this.msMax = msMax
  }

  expect({ raw, route }: FastifyRequest, reply: FastifyReply): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = raw.headers
    if ((length === undefined || length === '0') && encoding === undefined) return
    const dueMs = performance.now() + (route.config.arrivalMsMax ?? this.msMax)
    this.arriving.set(raw, { reply, dueMs: Math.min(dueMs, this.closingDueMs) })
  }

  arrived({ raw }: FastifyRequest): void {
    this.arriving.delete(raw)
  }

  /** Called when the service is stopping. Refuses bodies that do not arrive in time, such as endless ones. */
  closeWithin(msMax: number): void {
    this.closingDueMs = performance.now() + msMax
    for (const each of this.arriving.values()) each.dueMs = Math.min(each.dueMs, this.closingDueMs)
  }

  /** Cuts off the bodies that have taken too long. */
  sweep(): void {
    const nowMs = performance.now()
    for (const [raw, { reply, dueMs }] of this.arriving) {
      // A request that was refused before its body was read is dropped here.
      if (raw.complete || raw.destroyed || (dueMs <= nowMs && cutOff(raw, reply, this.refusal(dueMs))))
        this.arriving.delete(raw)
    }
  }

  private refusal(dueMs: number): Problem {
    if (dueMs !== this.closingDueMs) return problem('RequestTimeout', problems.RequestTimeout.message)
    const headers = { 'retry-after': '1' }
    return problem('ServiceUnavailable', 'The service is stopping, so nothing was done; try again', {}, headers)
  }
}

/** Aborts when the caller has disconnected or the response has been sent. */
export function disconnectSignal({ raw }: FastifyReply): AbortSignal {
  const disconnected = new AbortController()
  raw.once('close', () => disconnected.abort())
  if (raw.destroyed) disconnected.abort()
  return disconnected.signal
}

/** @returns false if the request cannot be cut off yet */
function cutOff(raw: IncomingMessage, reply: FastifyReply, refusal: Problem): boolean {
  if (!reply.raw.writableFinished) return refuseBody(raw, refusal)
  // The response has been sent: the rest of the body is discarded.
  raw.destroy()
  return true
}

/**
 * Fails the reading of the body with this refusal, which becomes the response.
 * @returns false if the body has no reader; an error without a listener would end the process
 */
export function refuseBody(raw: IncomingMessage, refusal: Problem): boolean {
  if (raw.listenerCount('error') === 0) return false
  return raw.emit('error', refusal)
}
