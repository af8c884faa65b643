import { createReadStream } from 'node:fs'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream'
import { json } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import type { Issue } from '../src/errors.ts'
import { reasonOf } from '../src/main.ts'

/** A file to upload, streamed from disk. */
type Source = { path: string; bytes: number; mediaType: string }

export type Call = {
  method?: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  headers?: Record<string, string>
  file?: Source
  /** A JSON body. */
  json?: object
  /** A CSV file as text. */
  csv?: string
}

const limits = {
  /** How long to keep retrying. Covers a restart, and uploads that are ahead of ours. */
  retryMsMax: 60_000,
  /** Longest wait between attempts when there is no Retry-After; backs off from 250 ms. */
  backoffMsMax: 5_000,
  /** Idle timeout of the connection. Processing a file may take ten minutes; anything else takes seconds. */
  idleMsMax: { file: 11 * 60_000, other: 30_000 },
}

/** The API rejected the request. The message is the API's own. */
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
 * Client for the API of a running service, with one key. Calls are retried when the service asks for it or the connection
 * is lost, so every call must be idempotent: one with side effects carries an idempotency key.
 */
export class Api {
  private readonly url: string
  private readonly key: string
  private hasAnswered = false

  constructor({ url, key }: { url: string; key: string }) {
    this.url = url.replace(/\/+$/, '')
    this.key = key
  }

  /** @throws Refusal; Error when the address is unreachable or is not Openwage */
  async read<T>(call: Call): Promise<T> {
    const answer = await this.open(call)
    try {
      return (await json(answer)) as T
    } catch {
      throw new Error(`${this.url} is not an Openwage API; set the right address with --url or OPENWAGE_URL`)
    }
  }

  /** Returns the response with its body still unread. @throws like `read` */
  async open(call: Call): Promise<IncomingMessage> {
    const deadlineMs = performance.now() + limits.retryMsMax
    let isRetry = false
    for (let attempt = 1; ; attempt++) {
      const backoffMs = Math.min(limits.backoffMsMax, 250 * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2)
      const hasTime = performance.now() + backoffMs < deadlineMs
      const answer = await this.send(call).catch((error: NodeJS.ErrnoException) => error)
      if (answer instanceof Error) {
        // Don't retry a host that has never answered.
        if (!hasTime || !(this.hasAnswered || lostConnectionCodes.includes(answer.code ?? '')))
          throw this.unreachable(answer)
        isRetry = true
        await wait(backoffMs)
        continue
      }
      this.hasAnswered = true
      const { statusCode: status = 0, headers } = answer
      if (status < 300) return answer
      const retryAfterMs = Number(headers['retry-after']) * 1_000
      // A retry can conflict with our own first attempt, which may still be running.
      const isRetryable = status === 429 || status === 503 || (status === 409 && isRetry)
      if (!isRetryable || !hasTime) throw await this.refusal(answer)
      answer.resume()
      await wait(Math.max(backoffMs, retryAfterMs || 0))
    }
  }

  private async send({ method = 'GET', path, headers, file, json, csv }: Call): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const request = (this.url.startsWith('https:') ? requestHttps : requestHttp)(`${this.url}${path}`, {
      method,
      timeout: file === undefined ? limits.idleMsMax.other : limits.idleMsMax.file,
      headers: {
        'x-api-key': this.key,
        ...headers,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(csv === undefined ? {} : { 'content-type': 'text/csv' }),
        ...(file === undefined ? {} : { 'content-type': file.mediaType, 'content-length': file.bytes }),
      },
    })
    request.on('timeout', () =>
      request.destroy(Object.assign(new Error('the request timed out'), { code: 'ETIMEDOUT' })),
    )
    request.on('response', resolve).on('error', reject)
    const text = json === undefined ? csv : JSON.stringify(json)
    if (text !== undefined) request.end(text)
    else if (file === undefined || file.bytes === 0) request.end()
    // Never more than content-length, even if the file is growing.
    else pipeline(createReadStream(file.path, { end: file.bytes - 1 }), request, error => error && reject(error))
    return await promise
  }

  private async refusal(answer: IncomingMessage): Promise<Error> {
    const { statusCode: status = 0, headers } = answer
    const body = (await json(answer).catch(() => undefined)) as { issues?: Issue[] } | undefined
    const issues = body?.issues ?? []
    if (issues.length === 0) {
      return new Error(
        `${this.url} is not an Openwage API (HTTP ${status}); set the right address with --url or OPENWAGE_URL`,
      )
    }
    const message = issues.map(issue => issue.message).join('; ')
    const hint = status === 401 ? '; set the key with OPENWAGE_API_KEY or --key' : ''
    const requestId = status >= 500 ? ` (request ${headers['x-request-id']})` : ''
    return new Refusal(`${message}${hint}${requestId}`, { status, issues })
  }

  private unreachable(error: NodeJS.ErrnoException): Error {
    if (error.code === 'ENOENT' && error.syscall === 'open') return error
    const reason = error.code === 'ECONNREFUSED' ? 'connection refused' : reasonOf(error)
    return new Error(
      `Cannot reach Openwage at ${this.url}: ${reason}. Start it, or set its address with --url or OPENWAGE_URL`,
      { cause: error },
    )
  }
}

const lostConnectionCodes = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT']
