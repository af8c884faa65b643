import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem } from '../errors.ts'

/**
 * The requests whose bodies are still arriving. Node has one limit for all requests, and a large file may take longer than
 * anybody should wait for a small body; a timer for each request would cost more than most requests do.
 */
export class Arrivals {
  private readonly arriving = new Map<IncomingMessage, { reply: FastifyReply; dueMs: number }>()
  private readonly msMax: number

  /** @param msMax milliseconds that a body may take, unless its route says otherwise */
  constructor({ msMax }: { msMax: number }) {
    this.msMax = msMax
  }

  expect({ raw, routeOptions }: FastifyRequest, reply: FastifyReply): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = raw.headers
    if ((length === undefined || length === '0') && encoding === undefined) return
    this.arriving.set(raw, { reply, dueMs: performance.now() + (routeOptions.config.arrivalMsMax ?? this.msMax) })
  }

  arrived({ raw }: FastifyRequest): void {
    this.arriving.delete(raw)
  }

  /** Cuts off those that have taken too long. */
  sweep(): void {
    const nowMs = performance.now()
    for (const [raw, { reply, dueMs }] of this.arriving) {
      // Those that were refused before their body was read end here.
      if (raw.complete || raw.destroyed || (dueMs <= nowMs && cutOff(raw, reply))) this.arriving.delete(raw)
    }
  }
}

/** @returns false when it cannot be cut off yet */
function cutOff(raw: IncomingMessage, reply: FastifyReply): boolean {
  if (!reply.raw.writableFinished) {
    return refuseBody(raw, problem('RequestTimeout', 'The body took too long to arrive'))
  }
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
