import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import Fastify, { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { compileValidation } from '../../contract/validation.ts'
import { Deadline } from '../../kernel/deadline.ts'
import { Problem, problem } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { Callers } from '../admission/callers.ts'
import { answerPreflight } from '../admission/session-admission.ts'
import { limits as bodyLimits, drainUnread, readBody, takeArrived } from '../bodies/bodies.ts'
import { BodyTimeouts } from '../bodies/body-timeouts.ts'
import { requireUtf8 } from '../bodies/csv.ts'
import { LargeJson } from '../bodies/large-json.ts'
import { parseStrictJson, refusalOf } from '../bodies/strict-json.ts'
import { maskAccountsIn } from '../masked-accounts.ts'
import { RequestRecords } from '../request-record.ts'
import { Connections, idleConnectionMsMax } from './connections.ts'
import { answerError } from './error-answers.ts'
import { MethodTable } from './method-table.ts'
import { others, Places, type limits as placesLimits } from './places.ts'
import { RawReplies } from './raw-replies.ts'
import { answerMsMax, Reception } from './reception.ts'
import { PacedRefusals } from './refusals.ts'
import { requestIdOf } from './request-headers.ts'
import type { ApiContext, App } from './server.ts'
import { addTracingHooks } from './tracing-hooks.ts'
import { UnavailabilityLog } from './unavailability-log.ts'

const limits = {
  // A member with every field set is a few kilobytes. Operations that take lists set their own limits.
  bodyBytesMax: bodyLimits.smallBytesMax,
  headerBytesMax: 16 * 1024,
  // Enough for 2 MB at 1 Mbit/s.
  arrivalMsMax: 15_000,
  answerMsMax,
  // More than any route allows for its body: applies only to bytes that never become a request.
  requestMsMax: 11 * 60_000,
  headersMsMax: 10_000,
  // A stop may take nine seconds; the rest of that time is for requests whose bodies have arrived.
  closingArrivalMsMax: 4_000,
  // How often slow bodies and connections are checked.
  checkEveryMs: 1_000,
  keepAliveMsMax: 72_000,
  // Each connection takes a file descriptor, about 20 KB, and up to one unread response.
  connectionsMax: 4_096,
  // Enough to send the excess clients of one second the reason and a retry-after.
  refusedConnectionsMax: 512,
  // A large list is 0.5 MB, which arrives in this time at 17 KB/s.
  unsentMsMax: 30_000,
  // A tenth of a core.
  refusalsPerSecond: 1_000,
}

/** Declared beforehand, so that V8 gives all requests one shape. */
const requestFields = [
  'now',
  'receivedAt',
  'deadline',
  'route',
  'reply',
  'placeOf',
  'partner',
  'keyId',
  'operator',
  'memberSession',
  'user',
  'idempotencyKey',
  'bodyFaults',
  'fingerprint',
  'refusal',
  'span',
] as const

type Overrides = Partial<typeof limits> & { places?: Partial<typeof placesLimits> }

/**
 * Builds the HTTP server without its operations: authentication, rate limit, strict reading and validation of requests, and one
 * shape for all errors.
 */
export function createServer(
  context: Omit<ApiContext, 'batchDb' | 'withCopying' | 'bankOf'>,
  overrides: Overrides = {},
): App {
  const { db, sealer, log, now, mode, trustedProxies = '', publicUrl, recordRequest, metrics, tracing } = context
  const max = { ...limits, ...overrides }
  const app: App = Fastify({
    loggerInstance: log,
    // `onResponse` below writes one line per request, without the query.
    logController: new LogController({ disableRequestLogging: true }),
    // Our log lines already name their request; a child logger per request would cost as much as its line.
    childLoggerFactory: logger => logger,
    // While the server closes, it still serves requests on open connections; Fastify's 503 does not have the contract's shape.
    return503OnClosing: false,
    bodyLimit: max.bodyBytesMax,
    requestTimeout: max.requestMsMax,
    connectionTimeout: idleConnectionMsMax,
    keepAliveTimeout: max.keepAliveMsMax,
    exposeHeadRoutes: false,
    trustProxy: trustedProxies === '' ? false : trustedProxies,
    // The schema validates path parameters of any length that fits into the request line.
    routerOptions: { maxParamLength: max.headerBytesMax, ignoreTrailingSlash: false },
    genReqId: request => requestIdOf(request.headers['x-request-id']) ?? newId('request', now()),
    clientErrorHandler: (error, socket) => rawReplies.refuse(socket, error),
    frameworkErrors: (error, request, reply) => {
      void refuseUrl(error, request as FastifyRequest, reply as FastifyReply)
    },
    http: {
      maxHeaderSize: max.headerBytesMax,
      headersTimeout: max.headersMsMax,
      connectionsCheckingInterval: max.checkEveryMs,
      // Node would respond to a missing Host with an empty body; `requireHost` responds in our shape.
      requireHostHeader: false,
    },
  })

  const callers = new Callers({ db, mode, now, publicUrl })
  const places = new Places(overrides.places)
  const refusals = new PacedRefusals({ perSecond: max.refusalsPerSecond })
  const bodyTimeouts = new BodyTimeouts({ msMax: max.arrivalMsMax })
  const connections = new Connections(app.server, max)
  const rawReplies = new RawReplies(connections, { headerBytesMax: max.headerBytesMax, now })
  const unavailabilityLog = new UnavailabilityLog(log)
  const methodTable = new MethodTable()
  const reception = new Reception({ callers, places, bodyTimeouts, connections, methodTable, now })
  const requestRecords = new RequestRecords()

  // Fastify would stop at the first of path, query and body; `validate` reports all issues. Responses are plain JSON.
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => JSON.stringify)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', readJson)

  app.server.on('connect', (_request, socket) => rawReplies.refuseConnect(socket as Socket))
  // Node would respond to an unknown `Expect` with an empty 417. Like any other unknown header, it is ignored.
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    app.server.emit('request', request, response)
  })

  app.decorate('isDraining', false)
  app.decorate('forgetKeys', partnerId => callers.forgetKeys(partnerId))
  app.decorate('sealer', sealer)
  for (const field of requestFields) app.decorateRequest(field)
  app.decorateRequest('clockOffsetMs', 0)
  app.decorateRequest('resourceId', null)

  const sweeping = setInterval(() => {
    bodyTimeouts.sweep()
    const count = connections.sweep()
    if (count > 0) log.info({ count }, 'connections closed: their clients did not read the response')
  }, max.checkEveryMs).unref()
  app.addHook('preClose', async () => {
    refusals.close()
    bodyTimeouts.closeWithin(max.closingArrivalMsMax)
  })
  app.addHook('onClose', () => {
    clearInterval(sweeping)
    places.close()
    unavailabilityLog.close()
  })

  app.addHook('onRoute', route => {
    if (route.schema?.operationId !== undefined)
      route.config = { ...route.config, validate: compileValidation(route.schema) }
    methodTable.add(route)
    requestRecords.addRoute(route.url)
    if (route.config?.session !== undefined) answerPreflight(app, route.url, String(route.method))
  })

  if (tracing !== undefined) addTracingHooks(app, tracing)
  app.addHook('onRequest', (request, reply, done) => {
    request.route = request.routeOptions
    request.reply = reply
    const { answerMsMax: ms = max.answerMsMax, isNeverShed = false } = request.route.config
    request.deadline = new Deadline({ ms, isSheddable: !isNeverShed })
    request.deadline.run(() =>
      continueAfter(
        () => reception.receive(request, reply),
        error => done(error ?? undefined),
      ),
    )
  })

  // The deadline pauses while the body arrives, because the caller controls that time. The body's events come from the socket,
  // outside the deadline's async context, which is therefore entered again below.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    request.deadline.pause()
    // In the next tick: Node announces a request before it looks at the bytes that came with the headers.
    process.nextTick(() => {
      reception.awaitBody(request)
      done(rawReplies.bodyRefusalOf(request.raw))
    })
  })
  app.addHook('preValidation', (request, _reply, done) => {
    request.deadline.run(() =>
      continueAfter(
        () => reception.validate(request),
        error => done(error ?? undefined),
      ),
    )
  })

  app.addHook('onSend', (request, reply, payload, done) => {
    // The work is done: how fast the caller reads the response must not matter to others.
    places.leave(request)
    done(null, isMasked(request, reply) && typeof payload === 'string' ? maskAccountsIn(payload) : payload)
  })

  // Never reached, because `onRequest` refuses first; without this handler Fastify would register its own.
  app.setNotFoundHandler(async request => {
    throw methodTable.refusalOf(request)
  })

  app.setErrorHandler(async (error, request, reply) => {
    places.leave(request)
    await drainUnread(request, reply)
    if (error instanceof Problem && isOfFloods(error)) await refusals.turn()
    return answerError(error, request, reply, unavailabilityLog)
  })

  app.addHook('onResponse', async (request, reply) => {
    log.info(
      {
        requestId: request.id,
        traceId: request.span?.spanContext().traceId,
        method: request.method,
        // The pattern, not the path: queries hold e-mail addresses.
        route: request.route.url ?? 'unknown',
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        partnerId: request.partner?.id,
        operatorId: request.operator?.id,
        // Lets an operator find and block the sender of forged keys.
        address:
          (request.partner ?? request.operator) === undefined && [401, 429].includes(reply.statusCode)
            ? request.ip
            : undefined,
      },
      'request',
    )
    recordAnswered(request, reply)
  })

  return app

  // The router refuses a malformed URL before any hook has run. The API key is still checked first.
  async function refuseUrl(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    request.route = request.routeOptions
    request.reply = reply
    request.receivedAt = now()
    request.now = request.receivedAt
    bodyTimeouts.expect(request, reply)
    const deadline = new Deadline({ ms: max.answerMsMax })
    const refusal = await deadline
      .run(async () => {
        await places.enter(request, others)
        await callers.admitByPath(request, reply)
      })
      .then(
        () => error,
        refused => refused,
      )
    places.leave(request)
    if (refusal instanceof Problem && isOfFloods(refusal)) await refusals.turn()
    // Fastify runs no hooks for a malformed URL.
    reply.raw.once('finish', () => recordAnswered(request, reply))
    answerError(refusal, request, reply, unavailabilityLog)
  }

  function recordAnswered(request: FastifyRequest, reply: FastifyReply): void {
    const operation = request.route.schema?.operationId
    metrics?.process.answered({ operation, status: reply.statusCode, ms: reply.elapsedTime })
    if (recordRequest === undefined) return
    const record = requestRecords.recordOf(request, reply)
    if (record !== undefined) recordRequest(record)
  }
}

/** The refusals of requests that clients send in thousands. */
function isOfFloods({ status }: Problem): boolean {
  return status === 401 || status === 429 || status === 503
}

/** Users of the console see accounts masked, except where a route is for showing them. */
function isMasked({ user, route }: FastifyRequest, reply: FastifyReply): boolean {
  if (user === undefined) return false
  const { console: users, showsAccounts } = route.config
  return users === undefined && !showsAccounts && /^application\/json/.test(String(reply.getHeader('content-type')))
}

/** Continues at once if the work need not wait: a promise would cost a request more than most of its hooks do. */
function continueAfter<T>(work: () => T | Promise<T>, done: (error: Error | null, result?: T) => void): void {
  let result: T | Promise<T>
  try {
    result = work()
  } catch (error) {
    done(error as Error)
    return
  }
  if (result instanceof Promise) result.then(value => done(null, value), done)
  else done(null, result)
}

function readJson(
  request: FastifyRequest,
  payload: Readable,
  done: (error: Error | null, body?: unknown) => void,
): void {
  continueAfter(() => {
    requireUtf8(request)
    const arrived = takeArrived(request, payload)
    return arrived === undefined
      ? readBody(request, payload).then(bytes => parseJson(request, bytes))
      : parseJson(request, arrived)
  }, done)
}

function parseJson(request: FastifyRequest, bytes: Buffer<ArrayBuffer>): unknown {
  // A request without a body may still name its media type. The schema decides whether a body is required.
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
