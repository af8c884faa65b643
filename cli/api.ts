import { createReadStream } from 'node:fs'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream'
import { json } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import type { Issue } from '../src/errors.ts'
import { reasonOf } from '../src/main.ts'

/** A file on its way to the API, read from the disk as it goes. */
type Source = { path: string; bytes: number; mediaType: string }

export type Call = { method?: 'GET' | 'PUT' | 'POST'; path: string; headers?: Record<string, string>; file?: Source }

const limits = {
  /** A call is repeated for so long. A service that restarts, or reads other files, is back by then. */
  patienceMsMax: 60_000,
  /** Between two attempts where the service does not say, growing from a quarter of a second. */
  pauseMsMax: 5_000,
  /** The service may read a file for ten minutes; anything else is answered in seconds. */
  silenceMsMax: { file: 11 * 60_000, other: 30_000 },
}

/** The API said no. The message is its own sentence. */
export class Refusal extends Error {
  readonly status: number
  readonly issues: Issue[]

  constructor(message: string, { status, issues }: { status: number; issues: Issue[] }) {
    super(message)
    this.status = status
    this.issues = issues
  }
}

/**
 * The API of a running service, for one key. A call is repeated when the service asks for it or the connection is lost, so
 * every one must be harmless to repeat: one that has an effect carries an idempotency key.
 */
export class Api {
  private readonly url: string
  private readonly key: string
  private hasAnswered = false

  constructor({ url, key }: { url: string; key: string }) {
    this.url = url.replace(/\/+$/, '')
    this.key = key
  }

  /** @throws Refusal; Error with a sentence when there is nobody, or something else, at the address */
  async read<T>(call: Call): Promise<T> {
    const answer = await this.open(call)
    try {
      return (await json(answer)) as T
    } catch {
      throw new Error(`What answers at ${this.url} is not Openwage; name its address with --url or OPENWAGE_URL`)
    }
  }

  /** The body as it comes. @throws like `read` */
  async open(call: Call): Promise<IncomingMessage> {
    const patientUntilMs = performance.now() + limits.patienceMsMax
    let isRepeated = false
    for (let attempt = 1; ; attempt++) {
      const pauseMs = Math.min(limits.pauseMsMax, 250 * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2)
      const isPatient = performance.now() + pauseMs < patientUntilMs
      const answer = await this.send(call).catch((error: NodeJS.ErrnoException) => error)
      if (answer instanceof Error) {
        // Who has never been there is not waited for.
        if (!isPatient || !(this.hasAnswered || lostConnections.includes(answer.code ?? ''))) throw this.nobody(answer)
        isRepeated = true
        await wait(pauseMs)
        continue
      }
      this.hasAnswered = true
      const { statusCode: status = 0, headers } = answer
      if (status < 300) return answer
      const retryAfterMs = Number(headers['retry-after']) * 1_000
      // The conflict may be with the first attempt, which is still running and will have answered by then.
      const mayPass = status === 429 || status === 503 || (status === 409 && isRepeated)
      if (!mayPass || !isPatient) throw await this.refusal(answer)
      answer.resume()
      await wait(Math.max(pauseMs, retryAfterMs || 0))
    }
  }

  private async send({ method = 'GET', path, headers, file }: Call): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const request = (this.url.startsWith('https:') ? requestHttps : requestHttp)(`${this.url}${path}`, {
      method,
      timeout: file === undefined ? limits.silenceMsMax.other : limits.silenceMsMax.file,
      headers: {
        'x-api-key': this.key,
        ...headers,
        ...(file === undefined ? {} : { 'content-type': file.mediaType, 'content-length': file.bytes }),
      },
    })
    request.on('timeout', () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })))
    request.on('response', resolve).on('error', reject)
    if (file === undefined || file.bytes === 0) request.end()
    // No more than was announced, should somebody be writing the file.
    else pipeline(createReadStream(file.path, { end: file.bytes - 1 }), request, error => error && reject(error))
    return await promise
  }

  private async refusal(answer: IncomingMessage): Promise<Error> {
    const { statusCode: status = 0, headers } = answer
    const body = (await json(answer).catch(() => undefined)) as { issues?: Issue[] } | undefined
    const issues = body?.issues ?? []
    if (issues.length === 0) {
      return new Error(
        `What answers at ${this.url} (${status}) is not Openwage; name its address with --url or OPENWAGE_URL`,
      )
    }
    const message = issues.map(issue => issue.message).join('; ')
    const wayOut = { 401: '; the key comes from OPENWAGE_API_KEY or --key' }[status as number] ?? ''
    const name = status >= 500 ? ` (${headers['x-request-id']})` : ''
    return new Refusal(`${message}${wayOut}${name}`, { status, issues })
  }

  private nobody(error: NodeJS.ErrnoException): Error {
    if (error.code === 'ENOENT' && error.syscall === 'open') return error
    const reason = error.code === 'ECONNREFUSED' ? 'nothing listens there' : reasonOf(error)
    return new Error(
      `Openwage cannot be reached at ${this.url}: ${reason}. Start it, or name its address with --url or OPENWAGE_URL`,
      { cause: error },
    )
  }
}

// What a connection that was there says when it is gone.
const lostConnections = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT']
