import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type pg from 'pg'
import type { Logger } from 'pino'
import type { Lanes } from '../batch.ts'
import { brokenConstraint, type Db, outageOutcome } from '../db.ts'
import { Deadline } from '../deadline.ts'
import { issue, Problem, type ProblemName, problem } from '../errors.ts'
import { newId } from '../ids.ts'
import type { KeyHolder, Scope } from '../partners/api-keys.ts'
import type { Mode, Partner } from '../partners/partners.ts'
import type { Clock } from '../time.ts'
import { authenticator } from './auth.ts'
import { limits as bodyLimits, expectBody, readBody } from './bodies.ts'
import { BodyTimeouts, disconnectSignal, refuseBody } from './body-timeouts.ts'
import { Connections } from './connections.ts'
import { requireUtf8 } from './csv.ts'
import { LargeJson } from './large-json.ts'
import { idempotencyKeyPattern } from './operation.ts'
import { RateLimiter, rateLimitHeaders } from './rate-limit.ts'
import { type Fault, parseStrictJson, refusalOf } from './strict-json.ts'
import { UnavailabilityLog } from './unavailability-log.ts'
import { compileValidation, type Parts, type Validated } from './validation.ts'
import { fingerprintStart } from './with-idempotency.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The process is about to stop: /readyz answers 503, and every answer closes its connection. */
    isDraining: boolean
  }
  interface FastifyRequest {
    /** The moment of this request: whatever it decides, it decides as of this instant. */
    now: Date
    deadline: Deadline
    partner: Partner
    /** The API key that the request was made with. */
    keyId: string
    idempotencyKey: string | undefined
    bodyFaults: Fault[]
    /** Of a request whose body was read in a thread; see `once`. */
    fingerprint: Buffer | undefined
  }
  interface FastifyContextConfig {
    /** What the API key must be allowed to do, or `any`; routes without a scope need no key. */
    scope?: Scope | 'any'
    /** Days of the announcement and of the removal, and the path that takes over. */
    deprecated?: { since: string; sunset: string; successor: string }
    validate?: (parts: Parts) => Promise<Validated>
    /** How long the body may take to arrive, in milliseconds; for those that are large. */
    arrivalMsMax?: number
    /** How long the answer may take, in milliseconds, without the arrival of the body; for what is known to take longer. */
    answerMsMax?: number
    /** Waits its turn under overload, which must not make a process look as if it were out of order. */
    isNeverShed?: boolean
  }
}

export type App = FastifyInstance<
  import('node:http').Server,
  IncomingMessage,
  ServerResponse,
  Logger,
  TypeBoxTypeProvider
>

/**
 * What the API runs on. `batchDb` is the same database, over the connections that batches run on, and `pool` has those of
 * `db`. `lanes`: see `Batches`. `hasRail`: a bank is connected, through which the worker pays withdrawals. `trustedProxies` are the addresses whose
 * `x-forwarded-for` is believed.
 */
export type ApiContext = {
  db: Db
  batchDb: Db
  lanes?: Lanes
  pool: pg.Pool
  log: Logger
  now: Clock
  mode: Mode
  hasRail: boolean
  trustedProxies?: string
}

const limits = {
  // The largest ordinary body is a member with all that can be said of one, a few kilobytes. An operation with a list says
  // what it takes.
  bodyBytesMax: bodyLimits.smallBytesMax,
  headerBytesMax: 16 * 1024,
  // Two megabytes arrive in this time on any line that is worth waiting for.
  arrivalMsMax: 15_000,
  // Nearly all answers take a hundredth of it. After it a client retries, and waiting on would only pile requests up.
  answerMsMax: 5_000,
  // More than any route allows its body: it ends only what has never become a request.
  requestMsMax: 11 * 60_000,
  headersMsMax: 10_000,
  // Of the nine seconds that a stop may take, the rest is for what has arrived.
  closingArrivalMsMax: 4_000,
  // Slow ones are looked for this often.
  checkEveryMs: 1_000,
  idleConnectionMsMax: 60_000,
  keepAliveMsMax: 72_000,
  // Each is a file descriptor, some 20 KB, and up to one unread answer.
  connectionsMax: 4_096,
  // Enough for the clients of one second to be told why, and when to come back.
  refusedConnectionsMax: 512,
  // A large list is 0.5 MB, which arrives in this time at 17 KB a second.
  unsentMsMax: 30_000,
}

type Overrides = Partial<
  Pick<
    typeof limits,
    'arrivalMsMax' | 'closingArrivalMsMax' | 'checkEveryMs' | 'connectionsMax' | 'refusedConnectionsMax' | 'unsentMsMax'
  >
>

const defaultRateLimit = { perSecond: 100, burst: 200 }
const defaultRateLimitHeaders = rateLimitHeaders(defaultRateLimit, defaultRateLimit.burst)

/**
 * The HTTP server without its operations: what every request goes through before one (who is calling, how often, is the
 * request exactly right), and the one shape of everything that goes wrong.
 */
export function createServer(
  { db, log, now, mode, trustedProxies = '' }: Omit<ApiContext, 'batchDb' | 'lanes' | 'pool' | 'hasRail'>,
  overrides: Overrides = {},
): App {
  const { arrivalMsMax, closingArrivalMsMax, checkEveryMs, connectionsMax, refusedConnectionsMax, unsentMsMax } = {
    ...limits,
    ...overrides,
  }
  const app: App = Fastify({
    loggerInstance: log,
    // One line per request is enough, and it must not hold the query.
    logController: new LogController({ disableRequestLogging: true }),
    // Our lines name their request themselves; a logger for each would cost as much as its line.
    childLoggerFactory: logger => logger,
    // A request on an open connection is still answered while the others end; Fastify's 503 would have its own shape.
    return503OnClosing: false,
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.requestMsMax,
    connectionTimeout: limits.idleConnectionMsMax,
    keepAliveTimeout: limits.keepAliveMsMax,
    exposeHeadRoutes: false,
    trustProxy: trustedProxies === '' ? false : trustedProxies,
    // Whatever fits into the request line is for the schema to judge.
    routerOptions: { maxParamLength: limits.headerBytesMax, ignoreTrailingSlash: false },
    genReqId: request => saneRequestId(request.headers['x-request-id']) ?? newId('request', now()),
    clientErrorHandler: (error, socket) => refuseConnection(socket, error, now),
    frameworkErrors: (error, request, reply) => {
      void refuseUrl(error, request as FastifyRequest, reply as FastifyReply)
    },
    http: {
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersMsMax,
      connectionsCheckingInterval: checkEveryMs,
      // Node would answer a missing Host with an empty body; we say it in our shape instead.
      requireHostHeader: false,
    },
  }).withTypeProvider<TypeBoxTypeProvider>()

  // Validation is ours, since Fastify stops at the first of path, query and body; answers are plain JSON.
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => JSON.stringify)
  app.server.on('checkExpectation', answerExpectation(app))

  app.decorate('isDraining', false)
  app.server.on('connect', (_request, socket) => refuseConnection(socket as Socket, connectRefused(), now))

  app.decorateRequest('now')
  app.decorateRequest('deadline')
  app.decorateRequest('partner')
  app.decorateRequest('keyId')
  app.decorateRequest('idempotencyKey')
  app.decorateRequest('bodyFaults')
  app.decorateRequest('fingerprint')

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', readJson)

  const authenticate = authenticator(db, { mode, now })
  const rateLimiter = new RateLimiter()

  const bodyTimeouts = new BodyTimeouts({ msMax: arrivalMsMax })
  const connections = new Connections(app.server, { connectionsMax, refusedConnectionsMax, unsentMsMax })
  const sweeping = setInterval(() => {
    bodyTimeouts.sweep()
    const count = connections.sweep()
    if (count > 0) log.info({ count }, 'connections closed: their clients did not read the answer')
  }, checkEveryMs).unref()
  app.addHook('preClose', async () => bodyTimeouts.closeWithin(closingArrivalMsMax))
  app.addHook('onClose', () => clearInterval(sweeping))

  const unavailabilityLog = new UnavailabilityLog(log)
  app.addHook('onClose', () => unavailabilityLog.close())

  app.addHook('onRequest', (request, _reply, done) => {
    const { answerMsMax: ms = limits.answerMsMax, isNeverShed = false } = request.routeOptions.config
    request.deadline = new Deadline({ ms, isSheddable: !isNeverShed })
    request.deadline.run(done)
  })

  app.addHook('onRequest', async (request, reply) => {
    bodyTimeouts.expect(request, reply)
    expectBody(request, reply)
    request.now = now()
    request.bodyFaults = []
    setCommonHeaders(request, reply)
    if (app.isDraining) reply.header('connection', 'close')
    if (connections.isRefused(request.raw.socket)) throw tooManyConnections()
    // Asked for once: Fastify makes it anew each time.
    const { deprecated, scope } = request.routeOptions.config
    if (deprecated !== undefined) {
      reply.headers({
        deprecation: `@${Date.parse(deprecated.since) / 1000}`,
        sunset: new Date(deprecated.sunset).toUTCString(),
        link: `<${deprecated.successor}>; rel="successor-version"`,
      })
    }
    if (needsKey(request, scope)) await admit(request, reply, scope)
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      throw problem('BadRequest', 'The Host header is missing')
    }
    for (const name of ['host', 'content-type']) {
      if (isRepeated(request, name)) throw problem('BadRequest', `The ${name} header must be sent once`)
    }
    // Before the body is read, which for a path that does not exist nobody needs.
    if (request.is404) throw refuseRoute(request)
    if (request.headers['content-encoding'] !== undefined) {
      throw problem('UnsupportedMediaType', 'The body must not have a content-encoding; send it as plain JSON')
    }
    const transferEncoding = request.headers['transfer-encoding']
    if (transferEncoding !== undefined && transferEncoding.toLowerCase() !== 'chunked') {
      throw problem('BadRequest', 'The only supported transfer-encoding is chunked')
    }
  })

  // While the body arrives, the time is the caller's. Its events come from the socket, which knows no deadline.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    request.deadline.pause()
    done(unreadableBodies.get(request.raw))
  })
  app.addHook('preValidation', (request, _reply, done) => request.deadline.run(done))

  app.addHook('preValidation', async (request, reply) => {
    bodyTimeouts.arrived(request)
    if (isRepeated(request, 'x-idempotency-key')) {
      throw problem('HeaderValidation', 'x-idempotency-key must be sent once', { path: 'x-idempotency-key' })
    }
    request.idempotencyKey = readIdempotencyKey(request)
    const { params, query, body, bodyFaults } = request
    const { validate } = request.routeOptions.config
    if (validate === undefined) return
    const start = (query: unknown) => fingerprintStart(request, query)
    const read = await validate({
      ...{ params, query, body, bodyFaults },
      disconnectSignal: () => disconnectSignal(reply),
      fingerprintStart: request.idempotencyKey === undefined ? undefined : start,
    })
    request.query = read.query
    request.body = read.body
    request.fingerprint = read.fingerprint
  })

  const routes: { method: string; pattern: RegExp }[] = []
  app.addHook('onRoute', route => {
    if (route.schema?.operationId !== undefined)
      route.config = { ...route.config, validate: compileValidation(route.schema) }
    const pattern = new RegExp(`^${route.url.replace(/:[A-Za-z]+/g, '[^/]+').replace('*', '.*')}$`)
    for (const method of [route.method].flat()) routes.push({ method, pattern })
  })

  // Refused in onRequest already; Fastify wants to have one.
  app.setNotFoundHandler(async request => {
    throw refuseRoute(request)
  })

  app.setErrorHandler((error, request, reply) => answerError(error, request, reply, unavailabilityLog))

  app.addHook('onResponse', async (request, reply) => {
    log.info(
      {
        requestId: request.id,
        method: request.method,
        // The pattern, not the path: queries hold e-mail addresses.
        route: request.routeOptions.url ?? 'unknown',
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        partnerId: request.partner?.id,
        // Lets an operator find and block the sender of forged keys.
        address: request.partner === undefined && [401, 429].includes(reply.statusCode) ? request.ip : undefined,
      },
      'request',
    )
  })

  return app

  function refuseRoute(request: FastifyRequest): Problem {
    const path = request.url.split('?', 1)[0] ?? ''
    const allowed = routes.filter(route => route.pattern.test(path)).map(route => route.method)
    if (allowed.length === 0) {
      return problem('UnknownPath', `There is no ${path.slice(0, 200)}; /openapi.json lists what there is`)
    }
    const allow = [...new Set(allowed)].sort().join(', ')
    return problem(
      'MethodNotAllowed',
      `${request.method} is not possible here; this path knows ${allow}`,
      {},
      { allow },
    )
  }

  // The router refuses a malformed URL before any hook has run; who is calling comes first all the same.
  async function refuseUrl(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    request.now = now()
    bodyTimeouts.expect(request, reply)
    const deadline = new Deadline({ ms: limits.answerMsMax })
    const refusal = isVersioned(request.url)
      ? await deadline
          .run(() => admit(request, reply, undefined))
          .then(
            () => error,
            (refused: unknown) => refused,
          )
      : error
    answerError(refusal, request, reply, unavailabilityLog)
  }

  async function admit(request: FastifyRequest, reply: FastifyReply, scope: Scope | 'any' | undefined): Promise<void> {
    const holder = await authenticate(request.headers['x-api-key'], () => request.ip)
    const { partner } = holder
    request.partner = partner
    request.keyId = holder.keyId
    const limit = { perSecond: partner.requestsPerSecond, burst: partner.requestsBurst }
    const { allowed, remaining, retryAfterSeconds } = rateLimiter.take(partner.id, limit, request.now)
    reply.headers(rateLimitHeaders(limit, remaining))
    if (!allowed) {
      throw problem(
        'RateLimitExceeded',
        `More than ${limit.perSecond} requests a second; wait and try again`,
        {},
        {
          'retry-after': String(retryAfterSeconds),
        },
      )
    }
    requirePermission(holder, scope)
  }
}

function tooManyConnections(): Problem {
  return problem(
    'ServiceUnavailable',
    'Too many connections are open; nothing was done, try again',
    {},
    { 'retry-after': '1', connection: 'close' },
  )
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({
    'x-request-id': request.id,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...defaultRateLimitHeaders,
  })
}

function requirePermission({ partner, scopes }: KeyHolder, scope: Scope | 'any' | undefined): void {
  if (partner.suspendedAt !== null)
    throw problem('Forbidden', 'The partner is suspended; ask the operator of this service')
  if (scope !== undefined && scope !== 'any' && !scopes.has(scope))
    throw problem('Forbidden', `The API key lacks the scope ${scope}`)
}

// A path that does not exist is nobody's business without a key either.
function needsKey(request: FastifyRequest, scope: Scope | 'any' | undefined): boolean {
  if (scope !== undefined) return true
  return request.is404 && isVersioned(request.url)
}

function isVersioned(url: string): boolean {
  return /^\/v[0-9]+(\/|\?|$)/.test(url)
}

const idempotencyKeyForm = new RegExp(idempotencyKeyPattern)

function readIdempotencyKey({ headers, raw }: FastifyRequest): string | undefined {
  const key = headers['x-idempotency-key']
  if (key === undefined) return undefined
  const refuse = (message: string) => problem('HeaderValidation', message, { path: 'x-idempotency-key' })
  if (typeof key !== 'string' || !idempotencyKeyForm.test(key))
    throw refuse('x-idempotency-key must be 1 to 1024 characters of Latin-1 without control characters')
  // Node joins repeated headers, which would make a third key of two.
  if (key.includes(', ') && raw.rawHeaders.filter(name => name.toLowerCase() === 'x-idempotency-key').length > 1)
    throw refuse('x-idempotency-key must be sent once')
  return key
}

async function readJson(request: FastifyRequest, payload: Readable): Promise<unknown> {
  requireUtf8(request)
  const bytes = await readBody(request, payload)
  // A request without a body may still name its media type; whether a body is needed is the schema's to say.
  if (bytes.length === 0) return undefined
  if (bytes.length > bodyLimits.smallBytesMax) return new LargeJson(bytes)
  try {
    const { value, faults } = parseStrictJson(bytes)
    request.bodyFaults = faults
    return value
  } catch (error) {
    throw problem('BadRequest', refusalOf(error))
  }
}

function answerError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  unavailabilityLog: UnavailabilityLog,
): FastifyReply {
  const refusal = error instanceof Problem ? error : problemOfError(error, request)
  if (refusal.status === 503) unavailabilityLog.note(error, request.id)
  else if (refusal.status >= 500) request.log.error({ err: error, requestId: request.id }, 'request failed')
  // A bad URL is refused before any hook has run.
  if (!reply.hasHeader('x-request-id')) setCommonHeaders(request, reply)
  return reply
    .code(refusal.status)
    .headers(refusal.headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ issues: refusal.issues }))
}

const frameworkProblems: Record<string, { name: ProblemName; message: (request: FastifyRequest) => string }> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { name: 'UnsupportedMediaType', message: wrongMediaType },
  FST_ERR_CTP_INVALID_TYPE: { name: 'UnsupportedMediaType', message: wrongMediaType },
  FST_ERR_BAD_URL: { name: 'BadRequest', message: () => 'The path is not a valid URL path' },
}

function wrongMediaType({ routeOptions }: FastifyRequest): string {
  const { content } = (routeOptions.schema?.body ?? {}) as { content?: object }
  const taken = Object.keys(content ?? { 'application/json': {} })
  return `The body is of a media type that this operation does not take; send ${taken.join(' or ')}`
}

function problemOfError(error: unknown, request: FastifyRequest): Problem {
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  const known = code === undefined ? undefined : frameworkProblems[code]
  if (known !== undefined) return new Problem(known.name, [issue(known.name, known.message(request))])
  // The caller has hung up in the middle of the body; nobody is there to read this.
  if (code === 'ECONNRESET' && (error as Error).message === 'aborted')
    return problem('BadRequest', 'The body ended early')
  if (brokenConstraint(error) === 'balance_fits_the_wire') {
    return problem('Conflict', 'The member would have or owe more than a number in an answer can hold')
  }
  const isOutOfRoom = /^(ENOSPC|EDQUOT|EROFS|EMFILE|ENFILE)$/.test(code ?? '')
  const outcome = isOutOfRoom ? 'nothing-done' : outageOutcome(error)
  if (outcome !== undefined) {
    // A read has no effect, and neither has a request whose caller was not known yet.
    const isHarmless = request.method === 'GET' || request.partner === undefined
    const message =
      outcome === 'nothing-done' || isHarmless
        ? 'The service is busy or restarting; nothing was done, try again'
        : 'The database was lost on the way, and whether the request took effect is not known; repeat it with the same idempotency key'
    return problem('ServiceUnavailable', message, {}, { 'retry-after': '1' })
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return problem('BadRequest', 'The request is malformed')
  return problem('InternalServerError', 'An unexpected fault; quote the x-request-id of this answer to the operator')
}

function isRepeated({ raw }: FastifyRequest, name: string): boolean {
  let count = 0
  for (let index = 0; index < raw.rawHeaders.length; index += 2) {
    const header = raw.rawHeaders[index]
    if (header?.length === name.length && header.toLowerCase() === name) count += 1
  }
  return count > 1
}

// What was wrong with a body before anything was there to read it.
const unreadableBodies = new WeakMap<IncomingMessage, Problem>()

// What is not even HTTP never becomes a request: the answer is written to the socket by hand.
function refuseConnection(socket: Socket, error: NodeJS.ErrnoException, now: Clock): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const refusal = error instanceof Problem ? error : unreadable(error.code)
  // What came before the unreadable bytes is a request like any other: its answer goes out first, and is the last one.
  const answering = (socket as Socket & { _httpMessage?: ServerResponse })._httpMessage
  if (answering != null && !answering.writableFinished) {
    answering.shouldKeepAlive = false
    answering.once('finish', () => socket.destroySoon())
    // When it is its own body that cannot be read, it would wait for the rest of it; or the refusal waits to be asked for.
    if (!answering.req.complete && !refuseBody(answering.req, refusal)) unreadableBodies.set(answering.req, refusal)
    return
  }
  const body = JSON.stringify({ issues: refusal.issues })
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': newId('request', now()),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...defaultRateLimitHeaders,
    ...refusal.headers,
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end(`HTTP/1.1 ${refusal.status} ${reasons[refusal.status] ?? ''}\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
}

function connectRefused(): Problem {
  return problem(
    'MethodNotAllowed',
    'CONNECT is not supported; this is not a proxy',
    {},
    { allow: 'DELETE, GET, PATCH, POST, PUT' },
  )
}

const reasons: Record<number, string> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}

function unreadable(code: string | undefined): Problem {
  if (code === 'HPE_HEADER_OVERFLOW')
    return problem('HeadersTooLarge', `The headers must not exceed ${limits.headerBytesMax} bytes`)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return problem('RequestTimeout', 'The request took too long to arrive')
  if (code === 'HPE_INVALID_EOF_STATE') return problem('BadRequest', 'The body ended early')
  return problem('BadRequest', 'The request is not well-formed HTTP/1.1')
}

// Node would answer an unknown `Expect` with an empty 417; to us it is one more header that we do not know.
function answerExpectation(app: App) {
  return (request: IncomingMessage, response: ServerResponse) => {
    app.server.emit('request', request, response)
  }
}

function saneRequestId(header: unknown): string | undefined {
  return typeof header === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(header) ? header : undefined
}
