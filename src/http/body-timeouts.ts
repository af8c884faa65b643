import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem } from '../errors.ts'

/**
 * The requests whose bodies are still arriving. Node has one limit for all requests, and a large file may take longer than
 * anybody should wait for a small body; a timer for each request would cost more than most requests do.
 */
export class BodyTimeouts {
  private readonly arriving = new Map<IncomingMessage, { reply: FastifyReply; dueMs: number }>()
  private readonly msMax: number
  // Once the service is stopping: when all of them are due at the latest.
  private closingDueMs = Number.POSITIVE_INFINITY

  /** @param msMax milliseconds that a body may take, unless its route says otherwise */
  constructor({ msMax }: { msMax: number }) {
    this.msMax = msMax
  }

  expect({ raw, routeOptions }: FastifyRequest, reply: FastifyReply): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = raw.headers
    if ((length === undefined || length === '0') && encoding === undefined) return
    const dueMs = performance.now() + (routeOptions.config.arrivalMsMax ?? this.msMax)
    this.arriving.set(raw, { reply, dueMs: Math.min(dueMs, this.closingDueMs) })
  }

  arrived({ raw }: FastifyRequest): void {
    this.arriving.delete(raw)
  }

  /** The service is stopping: bodies that have not arrived by then, such as one without end, are refused. */
  closeWithin(msMax: number): void {
    this.closingDueMs = performance.now() + msMax
    for (const each of this.arriving.values()) each.dueMs = Math.min(each.dueMs, this.closingDueMs)
  }

  /** Cuts off those that have taken too long. */
  sweep(): void {
    const nowMs = performance.now()
    for (const [raw, { reply, dueMs }] of this.arriving) {
      // Those that were refused before their body was read end here.
      if (raw.complete || raw.destroyed || (dueMs <= nowMs && cutOff(raw, reply, this.refusal(dueMs))))
        this.arriving.delete(raw)
    }
  }

  private refusal(dueMs: number): Problem {
    if (dueMs !== this.closingDueMs) return problem('RequestTimeout', 'The body took too long to arrive')
    const headers = { 'retry-after': '1' }
    return problem('ServiceUnavailable', 'The service is stopping; nothing was done, try again', {}, headers)
  }
}

/** A signal for when the caller has hung up, or has been answered. */
export function disconnectSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  raw.once('close', () => gone.abort())
  if (raw.destroyed) gone.abort()
  return gone.signal
}

/** @returns false when it cannot be cut off yet */
function cutOff(raw: IncomingMessage, reply: FastifyReply, refusal: Problem): boolean {
  if (!reply.raw.writableFinished) return refuseBody(raw, refusal)
  // Answered already; what still comes is nobody's.
  raw.destroy()
  return true
}

/**
 * Lets whoever reads the body have this refusal instead of the rest, and answer with it.
 * @returns false when nobody reads it; an error that nobody listens to would be the end of the process
 */
export function refuseBody(raw: IncomingMessage, refusal: Problem): boolean {
  if (raw.listenerCount('error') === 0) return false
  return raw.emit('error', refusal)
}
