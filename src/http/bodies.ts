import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem } from '../errors.ts'

const mebibyte = 1024 * 1024

export const limits = {
  /** A body of this size is parsed and validated in 20 ms at the worst; a larger one goes to a thread. */
  smallBytesMax: 64 * 1024,
  /** Small bodies in flight, of all partners: 512 of the largest, and a hundred thousand ordinary ones. */
  allSmallBytesMax: 32 * mebibyte,
  /** Large ones: three of the largest kind. As values they take several times as much. */
  allLargeBytesMax: 96 * mebibyte,
  /** What one partner may take of either, so that another always has room. */
  partnerShare: 0.5,
  /** For so long the rest of a refused body is read to nothing: a caller that is still sending does not read the answer. */
  drainMsMax: 1_000,
}

/** The bytes of bodies that one process holds at a time. */
class Budget {
  private readonly bytesMax: number
  private bytes = 0
  private readonly ofPartner = new Map<string, number>()

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** @throws Problem `ServiceUnavailable` */
  take(partnerId: string, bytes: number): void {
    const mine = (this.ofPartner.get(partnerId) ?? 0) + bytes
    if (this.bytes + bytes > this.bytesMax || mine > this.bytesMax * limits.partnerShare) throw full()
    this.bytes += bytes
    this.ofPartner.set(partnerId, mine)
  }

  give(partnerId: string, bytes: number): void {
    const mine = (this.ofPartner.get(partnerId) ?? 0) - bytes
    this.bytes -= bytes
    if (mine > 0) this.ofPartner.set(partnerId, mine)
    else this.ofPartner.delete(partnerId)
  }
}

const budgets = { small: new Budget(limits.allSmallBytesMax), large: new Budget(limits.allLargeBytesMax) }

/** The bytes that one request holds, from the first of them until its answer is sent. */
class Held {
  private readonly partnerId: string
  private bytes = 0
  private isReleased = false

  constructor(partnerId: string) {
    this.partnerId = partnerId
  }

  /** @throws Problem `ServiceUnavailable`, or `BadRequest` when the caller has hung up */
  growTo(bytes: number): void {
    if (this.isReleased) throw problem('BadRequest', 'The caller has disconnected')
    const before = this.bytes
    if (kindOf(before) === kindOf(bytes)) budgets[kindOf(bytes)].take(this.partnerId, bytes - before)
    else {
      budgets.large.take(this.partnerId, bytes)
      budgets.small.give(this.partnerId, before)
    }
    this.bytes = bytes
  }

  release(): void {
    if (this.isReleased) return
    this.isReleased = true
    budgets[kindOf(this.bytes)].give(this.partnerId, this.bytes)
  }
}

function kindOf(bytes: number): keyof typeof budgets {
  return bytes > limits.smallBytesMax ? 'large' : 'small'
}

const replies = new WeakMap<FastifyRequest, FastifyReply>()

/** Call it for each request before `readBody`. */
export function expectBody(request: FastifyRequest, reply: FastifyReply): void {
  replies.set(request, reply)
}

/**
 * Reads a body into memory, within what its route and the process allow. A declared length counts at once, before anything
 * is read; chunks count as they arrive.
 * @throws Problem `PayloadTooLarge`, `ServiceUnavailable` when too much is held already, `BadRequest` for a wrong length
 */
export async function readBody(request: FastifyRequest, payload: Readable): Promise<Buffer<ArrayBuffer>> {
  const { bodyLimit: bytesMax } = request.routeOptions
  const declared = request.headers['content-length']
  const length = declared === undefined ? undefined : Number(declared)
  const held = new Held(request.partner?.id ?? '')
  replies.get(request)?.raw.once('close', () => held.release())
  // Hung up, or too slow: there is no rest to wait for.
  let isBrokenOff = false
  const breakOff = () => {
    isBrokenOff = true
  }
  payload.on('error', breakOff)
  try {
    if (length !== undefined && length > bytesMax) throw tooLarge(bytesMax)
    held.growTo(length ?? 0)
    return length === undefined
      ? await readChunks(payload, bytes => {
          if (bytes > bytesMax) throw tooLarge(bytesMax)
          held.growTo(bytes)
        })
      : await readWhole(payload, length)
  } catch (error) {
    held.release()
    if (!isBrokenOff) await drain(payload)
    throw error
  } finally {
    payload.off('error', breakOff)
  }
}

async function readWhole(payload: Readable, length: number): Promise<Buffer<ArrayBuffer>> {
  // Not from the pool that Node cuts small buffers of: it is handed over to a thread.
  const body = Buffer.allocUnsafeSlow(length)
  let filled = 0
  await eachChunk(payload, chunk => {
    if (filled + chunk.length > length) throw wrongLength()
    filled += chunk.copy(body, filled)
  })
  if (filled < length) throw wrongLength()
  return body
}

async function readChunks(payload: Readable, onBytes: (bytes: number) => void): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let bytes = 0
  await eachChunk(payload, chunk => {
    bytes += chunk.length
    onBytes(bytes)
    chunks.push(chunk)
  })
  const body = Buffer.allocUnsafeSlow(bytes)
  let filled = 0
  for (const chunk of chunks) filled += chunk.copy(body, filled)
  return body
}

// By hand, since an iterator destroys the request when it is left early, and then there is no answer.
function eachChunk(payload: Readable, onChunk: (chunk: Buffer) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onData = (chunk: Buffer) => {
    try {
      onChunk(chunk)
    } catch (error) {
      reject(error)
    }
  }
  payload.on('data', onData).on('end', resolve).on('error', reject)
  return promise.finally(() => payload.off('data', onData).off('end', resolve).off('error', reject))
}

/** Reads the rest of a refused body to nothing, for a moment. */
export async function drain(payload: Readable): Promise<void> {
  if (payload.readableEnded || payload.destroyed) return
  payload.resume()
  // Whether it ends, breaks off or goes on too long does not matter.
  await finished(payload, { signal: AbortSignal.timeout(limits.drainMsMax), cleanup: true }).catch(() => {})
}

function full(): Problem {
  const message = 'Too many bodies are being read already; nothing was done, try again in a moment'
  return problem('ServiceUnavailable', message, {}, { 'retry-after': '2' })
}

function tooLarge(bytesMax: number): Problem {
  return problem('PayloadTooLarge', `The body must not exceed ${bytesMax} bytes`)
}

function wrongLength(): Problem {
  return problem('BadRequest', 'The body is not as long as content-length says')
}
