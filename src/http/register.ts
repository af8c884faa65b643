import type { FastifyReply, FastifyRequest } from 'fastify'
import type * as auditLog from '../audit-log/audit-log.ts'
import { DisclosureLog } from '../audit-log/disclosures.ts'
import { type Declaration, describe } from '../contract/description.ts'
import { representationApplied } from '../contract/prefer.ts'
import { actorOf } from './admission/actor.ts'
import { ownOrigin } from './admission/session-admission.ts'
import { disconnectSignal } from './bodies/body-timeouts.ts'
import { sendParts } from './bodies/csv.ts'
import { acceptUploads, anyFile } from './bodies/upload.ts'
import { BaseCall } from './call.ts'
import type { BrowserRequest, Call, Done, Operation, OperationResponse } from './operation.ts'
import { idleConnectionMsMax, keepOpenFor } from './server/connections.ts'
import type { ApiContext, App } from './server/server.ts'
import {
  type CompleteResponse,
  disclosureOf,
  type ReadFrom,
  read,
  withBatchIdempotency,
  withIdempotency,
  withStartedWork,
} from './with-idempotency.ts'

/** What serving operations needs. A process without batches has no connections for them. */
type ServedContext = Pick<ApiContext, 'db' | 'publicUrl'> & Partial<Pick<ApiContext, 'batchDb' | 'replica'>>

/** Serves operations over HTTP. */
export function registerOperations<Context extends ServedContext>(
  app: App,
  context: Context,
  operations: readonly Operation<Context>[],
): void {
  const disclosures = new DisclosureLog(context.db)
  for (const each of operations) {
    const route = routeOf(each, { context, disclosures })
    const { fileBody, csvBody, bytesBody, fileBytesMax = anyFile.fileBytesMax } = each
    if ((fileBody ?? csvBody ?? bytesBody) === undefined) app.route(route)
    else
      void app.register(async (scope: App) => {
        const kinds = bytesBody ? (['bytes'] as const) : csvBody ? (['csv'] as const) : anyFile.kinds
        acceptUploads(scope, { kinds, fileBytesMax })
        scope.route(route)
      })
  }
}

type Route = Parameters<App['route']>[0]

type Serving<Context> = { context: Context; disclosures: DisclosureLog }

function routeOf<Context extends ServedContext>(operation: Operation<Context>, serving: Serving<Context>): Route {
  const { method, path, deprecated } = operation
  const { scope, roles, session, isForOperators, partnerRoles, console, isPublic } = operation
  const { arrivalMsMax, answerMsMax, isNeverShed, showsAccounts, bodyBytesMax: bodyLimit } = operation
  const isOfConsole = path.startsWith('/console/')
  const credential = isPublic || isOfConsole ? 'none' : session ? 'session' : 'key'
  const schema = describe(operation as Declaration, { credential, isDeprecated: deprecated !== undefined })
  const handler = handlerOf(operation, serving)
  const config = {
    ...{ scope, roles, session, isForOperators, partnerRoles, console, deprecated },
    ...{ arrivalMsMax, answerMsMax, isNeverShed, showsAccounts, isBatched: 'batch' in operation || undefined },
  }
  return {
    method,
    url: path,
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    schema: { ...schema, ...(isOfConsole ? { hide: true } : {}) } as NonNullable<Route['schema']>,
    // Without what is not set: Fastify merges the limits of a scope into it.
    config: Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)),
    ...(answerMsMax === undefined || answerMsMax <= idleConnectionMsMax
      ? {}
      : { preHandler: async (request: FastifyRequest) => keepOpenFor(request, answerMsMax) }),
    handler: isPublic || isOfConsole ? withoutIdempotency(handler) : handler,
  }
}

function withoutIdempotency(handler: Handler): Handler {
  return async (request, reply) => {
    request.idempotencyKey = undefined
    return await handler(request, reply)
  }
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

function handlerOf<Context extends ServedContext>(
  operation: Operation<Context>,
  { context, disclosures }: Serving<Context>,
): Handler {
  const { db, batchDb = db } = context
  const replica = operation.mayReadReplica ? context.replica : undefined
  const reader = 'isPrepared' in operation ? batchDb : db
  const readFrom: ReadFrom = async work => await (replica === undefined ? work(reader) : replica.read(work))
  const reading = { db, readFrom, disclosures }
  const complete = completion(operation)
  if ('batch' in operation) {
    const { submit, respond } = operation.batch
    return async (request, reply) => {
      const call = new RequestCall(context, request, reply)
      return await withBatchIdempotency(request, reply, {
        submit: claim => submit(call, claim),
        responseOf: result => complete(respond(result, call), call),
      })
    }
  }
  if ('start' in operation) {
    return async (request, reply) => {
      const call = new RequestCall(context, request, reply)
      return await withStartedWork(db, request, reply, {
        start: (tx, claim) => operation.start(tx, call, claim),
        respond: async (tx, result) => complete(await operation.respond(tx, call, result), call),
      })
    }
  }
  const respond: Handler =
    'run' in operation
      ? async (request, reply) => {
          const call = new RequestCall(context, request, reply)
          const done = await operation.run(call, {
            write: async (work, writeDb = db) => ({
              done: await withIdempotency(writeDb, request, reply, async tx => complete(await work(tx), call)),
            }),
            read: async work => ({
              done: await read(reading, request, reply, async from => complete(await work(from), call)),
            }),
            source: async () => (await replica?.upToDate()) ?? db,
            download: async file => {
              if (file.disclosed !== undefined) await disclosures.record(disclosureOf(request, file.disclosed))
              return { done: sendParts(request, reply, file) }
            },
          })
          return sentBy(done)
        }
      : 'write' in operation
        ? async (request, reply) => {
            const call = new RequestCall(context, request, reply)
            return await withIdempotency(db, request, reply, async tx =>
              complete(await operation.write(tx, call), call),
            )
          }
        : async (request, reply) => {
            const call = new RequestCall(context, request, reply)
            return await read(reading, request, reply, async from => complete(await operation.read(from, call), call))
          }
  const { csv, html, schema } = operation.success
  // Only where the caller's preference decides between JSON and a file.
  if ((csv ?? html) === undefined || schema === undefined) return respond
  return async (request, reply) => await respond(request, reply.header('vary', 'accept'))
}

function sentBy({ done }: Done): FastifyReply {
  return done as FastifyReply
}

/** Fills in what follows from the declaration. */
function completion({ success: { representation, ...success } }: Pick<Operation, 'success'>) {
  const status: number = success.status ?? 200
  return (response: OperationResponse, call: Pick<Call, 'prefersRepresentation'>): CompleteResponse =>
    representation !== undefined && call.prefersRepresentation
      ? { status, ...response, headers: { ...response.headers, ...representationApplied } }
      : { status, ...response }
}

/** The call that a request makes. */
class RequestCall<Context extends ServedContext> extends BaseCall<Context, FastifyRequest> {
  readonly #reply: FastifyReply

  constructor(context: Context, request: FastifyRequest, reply: FastifyReply) {
    super(context, request)
    this.#reply = reply
  }

  get actor(): auditLog.Actor {
    return actorOf(this.facts)
  }

  get browser(): BrowserRequest {
    return this.facts
  }

  get ownOrigin(): string {
    return ownOrigin(this.facts, this.context.publicUrl)
  }

  get signal(): AbortSignal {
    return disconnectSignal(this.#reply)
  }
}
