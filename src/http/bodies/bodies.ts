import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problem } from '../../kernel/errors.ts'

const mebibyte = 1024 * 1024

export const limits = {
  /** Parsing and validating a body of this size takes at most 20 ms; larger bodies go to a thread. */
  smallBytesMax: 64 * 1024,
  /** Not reserved, because Node holds it in any case: 16 MiB with the most connections. */
  unreservedBytesMax: 4 * 1024,
  /** Small bodies in flight, of all partners: 512 of the largest, or a hundred thousand ordinary ones. */
  allSmallBytesMax: 32 * mebibyte,
  /** Large bodies in flight: three of the largest. Parsed bodies take several times as much memory. */
  allLargeBytesMax: 96 * mebibyte,
  /** One partner's maximum share of either budget, so that the others always have room. */
  partnerShare: 0.5,
  /** How long to drain a refused body: a caller that is still sending does not read the response. */
  drainMsMax: 1_000,
}

/** Bounds the bytes of request bodies that the process holds at a time. */
class Budget {
  private readonly bytesMax: number
  private bytes = 0
  private readonly ofPartner = new Map<string, number>()

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** @throws Problem `ServiceUnavailable` */
  reserve(partnerId: string, bytes: number): void {
    const partnerBytes = (this.ofPartner.get(partnerId) ?? 0) + bytes
    if (this.bytes + bytes > this.bytesMax || partnerBytes > this.bytesMax * limits.partnerShare) throw full()
    this.bytes += bytes
    this.ofPartner.set(partnerId, partnerBytes)
  }

  release(partnerId: string, bytes: number): void {
    const partnerBytes = (this.ofPartner.get(partnerId) ?? 0) - bytes
    this.bytes -= bytes
    if (partnerBytes > 0) this.ofPartner.set(partnerId, partnerBytes)
    else this.ofPartner.delete(partnerId)
  }
}

const budgets = { small: new Budget(limits.allSmallBytesMax), large: new Budget(limits.allLargeBytesMax) }

/** The bytes that one request has reserved, from its first byte until its response is sent. */
class Reservation {
  private readonly partnerId: string
  private bytes = 0
  private isReleased = false

  constructor(partnerId: string) {
    this.partnerId = partnerId
  }

  /** @throws Problem `ServiceUnavailable`, or `BadRequest` if the caller has disconnected */
  growTo(bytes: number): void {
    if (this.isReleased) throw problem('BadRequest', 'The caller has disconnected')
    const before = this.bytes
    if (kindOf(before) === kindOf(bytes)) budgets[kindOf(bytes)].reserve(this.partnerId, bytes - before)
    else {
      budgets.large.reserve(this.partnerId, bytes)
      budgets.small.release(this.partnerId, before)
    }
    this.bytes = bytes
  }

  release(): void {
    if (this.isReleased) return
    this.isReleased = true
    budgets[kindOf(this.bytes)].release(this.partnerId, this.bytes)
  }
}

function kindOf(bytes: number): keyof typeof budgets {
  return bytes > limits.smallBytesMax ? 'large' : 'small'
}

/**
 * Takes a body that is small enough to need no reservation and that Node has already received whole. Most bodies of the API are such,
 * and taking one costs a tenth of listening to its stream.
 * @returns undefined if the body must be read
 */
export function takeArrived({ headers, route }: FastifyRequest, payload: Readable): Buffer<ArrayBuffer> | undefined {
  const length = Number(headers['content-length'])
  const fits = length > 0 && length <= Math.min(limits.unreservedBytesMax, route.bodyLimit)
  return fits && payload.readableLength === length ? payload.read() : undefined
}

/**
 * Reads a body into memory, within the limits of its route and of the process. A declared length is reserved before the body
 * is read; a chunked body is counted as it arrives.
 * @throws Problem `PayloadTooLarge`, `ServiceUnavailable` if the budget is exhausted, `BadRequest` for a wrong length
 */
export async function readBody(request: FastifyRequest, payload: Readable): Promise<Buffer<ArrayBuffer>> {
  const { bodyLimit: bytesMax } = request.route
  const declared = request.headers['content-length']
  const length = declared === undefined ? undefined : Number(declared)
  const reservation = new Reservation(request.partner?.id ?? '')
  request.reply.raw.once('close', () => reservation.release())
  // The caller has disconnected or is too slow: there is nothing left to drain.
  let isAborted = false
  const abort = () => {
    isAborted = true
  }
  payload.on('error', abort)
  try {
    if (length !== undefined && length > bytesMax) throw tooLarge(bytesMax)
    reservation.growTo(length ?? 0)
    return length === undefined
      ? await readChunks(payload, bytes => {
          if (bytes > bytesMax) throw tooLarge(bytesMax)
          reservation.growTo(bytes)
        })
      : await readWhole(payload, length)
  } catch (error) {
    reservation.release()
    if (!isAborted) await drain(payload)
    throw error
  } finally {
    payload.off('error', abort)
  }
}

async function readWhole(payload: Readable, length: number): Promise<Buffer<ArrayBuffer>> {
  // Not from Node's shared pool of small buffers: this buffer is transferred to a thread.
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

// Not an async iterator: leaving one early destroys the request, so no response could be sent.
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

/** Discards the rest of a refused body, for at most `drainMsMax`. */
export async function drain(payload: Readable): Promise<void> {
  if (payload.readableEnded || payload.destroyed) return
  payload.resume()
  // Best effort: the body may end, fail or time out.
  await finished(payload, { signal: AbortSignal.timeout(limits.drainMsMax), cleanup: true }).catch(() => {})
}

/**
 * Drains a body that is refused before it is read, if the connection closes after the response: a client that sends the whole
 * body first would find the connection reset. On a connection that stays open, Node discards the rest.
 */
export async function drainUnread(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { raw, headers } = request
  const isClosing = /\bclose\b/i.test(`${headers.connection} ${reply.getHeader('connection')}`)
  if (isClosing && hasBody(request) && !raw.readableDidRead) await drain(raw)
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

function full(): Problem {
  const message = 'Too many request bodies are in flight, so nothing was done; try again in a moment'
  return problem('ServiceUnavailable', message, {}, { 'retry-after': '2' })
}

function tooLarge(bytesMax: number): Problem {
  return problem('PayloadTooLarge', `The body must not exceed ${bytesMax} bytes`)
}

function wrongLength(): Problem {
  return problem('BadRequest', 'The length of the body differs from content-length')
}
