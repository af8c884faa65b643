import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { type Static, type TSchema, Type } from 'typebox'
import type * as auditLog from '../audit-log/audit-log.ts'
import type { Declaration } from '../contract/description.ts'
import { idsIn, notFoundIn, type PathParams } from '../contract/path.ts'
import type { Db, Reader, Tx } from '../database/database.ts'
import type { BatchClaim, Claim, Replay } from '../idempotency/idempotency.ts'
import type { MemberSession } from '../partners/member-sessions.ts'
import type { Operator } from '../partners/operator-keys.ts'
import type { Partner } from '../partners/partners.ts'
import type { SignedIn } from '../users/sessions.ts'
import type { Access, Limits, Notes } from './access.ts'
import type { UploadedFile } from './bodies/uploaded-file.ts'
import type { ApiContext } from './server/server.ts'

/**
 * A call of an operation, whether it came over HTTP or from a command.
 * @template Context what the operation runs on, if it needs more than the API's
 */
export type Call<P = unknown, Q = unknown, B = unknown, Context = ApiContext> = {
  readonly context: Context
  readonly params: P
  readonly query: Q
  readonly body: B
  /** The file in the body. Throws if the body is not a file. */
  readonly file: UploadedFile
  readonly headers: IncomingHttpHeaders
  /** The request of a browser. Throws for commands. */
  readonly browser: BrowserRequest
  /** Everything is decided as of this instant. On a sandbox, it follows the partner's clock. */
  readonly now: Date
  /** The same instant in real time, for what operators do and for logs. */
  readonly receivedAt: Date
  /** How far `now` is ahead of real time. */
  readonly clockOffsetMs: number
  /** Who calls, for the audit log. */
  readonly actor: auditLog.Actor
  /** Throws unless the operation is for partners, or for member sessions. */
  readonly partner: Partner
  /** Throws unless the operation is for operators. */
  readonly operator: Operator
  /** Throws unless the operation is for member sessions. */
  readonly memberSession: MemberSession
  /** The user of the console who calls; undefined if it is not a user. */
  readonly user: SignedIn | undefined
  /** The user of the console who calls, and the session. Throws unless the operation is for users of the console. */
  readonly signedIn: SignedIn
  /** The API key of the call. Throws for users of the console. */
  readonly keyId: string
  /** Whether the caller asks for the fuller shape. */
  readonly prefersRepresentation: boolean
  /** Whether the caller asks for the file instead of JSON. */
  readonly prefersCsv: boolean
  /** Whether the caller asks for the page instead of JSON. */
  readonly prefersHtml: boolean
  /** The origin at which browsers reach this server. */
  readonly ownOrigin: string
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal
  /** Continues at another instant, which `now` then returns: the call has moved the partner’s clock. */
  moveTo(now: Date): void
}

/** What the operations of the console know of a request: the browser's address, its connection and its cookies. */
export type BrowserRequest = Pick<FastifyRequest, 'id' | 'ip' | 'protocol' | 'hostname' | 'url' | 'headers'>

/** What an operation responds with. */
export type OperationResponse = {
  /** Sent as JSON, unless the headers set another `content-type`; then as text. Undefined for a response without a body. */
  body: unknown
  /** The status, if it is not that of the declared success. */
  status?: number
  /** A header may be sent several times: one `set-cookie` for each cookie. */
  headers?: Record<string, string | string[]>
  /** The resource that was created or changed: what the lookup of an idempotency key returns. */
  resourceId?: string | null
  /** Stored for a replay instead of the body, which has a secret that is shown once. */
  storedBody?: unknown
  /** Recorded in the same transaction; omitted if nothing changed. */
  audit?: Audit | readonly Audit[] | undefined
  /** Recorded before the response is sent: the response shows bank accounts or dates of birth. */
  disclosed?: Disclosed | undefined
}

/**
 * A change for the audit log.
 * @property resourceId if it is not that of the response
 * @property partnerId if it is not that of the caller; null if the change concerns no partner
 * @property now if the change has another time than the call: by the clock of the partner that it concerns
 */
export type Audit = Omit<auditLog.Change, 'resourceId'> & {
  resourceId?: string
  partnerId?: string | null
  now?: Date
}

/** What a response shows of people, for the trace; see `Disclosure`. @property partnerId if it is not that of the caller */
export type Disclosed = auditLog.Change & { partnerId?: string | null }

/** A file that is streamed. Its response is not stored for an idempotency key: it may be large, and reading again is harmless. */
export type Download = {
  headers: Record<string, string>
  parts: AsyncIterable<string>
  disclosed?: Disclosed | undefined
}

/** How an operation that is more than one read or write is carried out: in reads and writes, of which the last one responds. */
type Steps = {
  /** See `Work.write`. @param db by default the one of the context */
  write(work: (tx: Tx) => Promise<OperationResponse>, db?: Db): Promise<Done>
  /** See `Work.read`. */
  read(work: (reader: Reader) => Promise<OperationResponse>): Promise<Done>
  /** What a file is read with: as for `read`, but for as long as it is streamed. */
  source(): Promise<Db>
  download(file: Download): Promise<Done>
}
/** The response that was sent, or returned to a command. */
export type Done = { readonly done: unknown }

/** The function of an operation, in one of these forms. */
type Work<C, Result> =
  | {
      /** Needs no transaction, unless its response is stored for an idempotency key. */
      read: (reader: Reader, call: C) => Promise<OperationResponse>
      /** Uses prepared statements on the connections of batches, because it is called as often as the hot path. */
      isPrepared?: true
    }
  | {
      /** Runs in one transaction, with the idempotency record and the audit log. Throwing rolls all of it back. */
      write: (tx: Tx, call: C) => Promise<OperationResponse>
    }
  | {
      run: (call: C, steps: Steps) => Promise<Done>
    }
  | {
      // biome-ignore lint/suspicious/noExplicitAny: each operation has its own result; `batched` ties the two functions.
      batch: Batched<C, any>
    }
  | {
      /** Commits the start of some work, waits for its result, then responds; see `withStartedWork`. */
      start: (tx: Tx, call: C, claim: Claim | undefined) => Promise<() => Promise<Result>>
      respond: (tx: Tx, call: C, result: Result) => Promise<OperationResponse>
    }

/** A command that is decided and written together with those of other calls. */
type Batched<C, Result extends object> = {
  submit: (call: C, claim: BatchClaim<Result> | undefined) => Promise<Result | Replay>
  respond: (result: Result, call: C) => OperationResponse
}
export const batched = <C, Result extends object>(batch: Batched<C, Result>): Batched<C, Result> => batch

type About = Omit<Declaration, 'params' | 'query' | 'body'> &
  Access &
  Limits &
  Notes & {
    /** The response decides nothing, so a replica that has every acknowledged write may give it. */
    mayReadReplica?: true
    /** The name of the method in the SDK, and that of its form which returns a file. */
    sdk?: string | { json: string; file: string }
  }

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** An operation of the API, as a value: what it takes and returns, who may call it, and the function that does it. */
export type Operation<Context = ApiContext> = About &
  // biome-ignore lint/suspicious/noExplicitAny: each operation has its own result; `operation` ties the functions that share it.
  Work<Call<unknown, unknown, unknown, Context>, any> & {
    method: Method
    path: string
    params?: TSchema
    query?: TSchema
    body?: TSchema
  }

/** What the documents say of an operation, for functions that declare several like it. */
export type Words = { summary: string; description: string }

type Given<S> = S extends TSchema ? Static<S> : undefined

export type Route = `${Method} /${string}`
/** @property params if the path has more than the ids of resources */
type Fields<R, P, Q, B> = Omit<About, 'id'> & { route: R; params?: P; query?: Q; body?: B }
/** A declaration, without the fields that are `Implied` by the function that it is given to. */
export type Declared<Implied extends PropertyKey, R extends Route, P, Q, B, Context, Result> = Omit<
  Fields<R, P, Q, B>,
  Implied
> &
  Work<Call<P extends TSchema ? Static<P> : PathParams<R>, Given<Q>, Given<B>, Context>, Result>

/** A declared operation, which `named` gives its id. */
type Unnamed<Context> = (id: string) => Operation<Context>

type Derivable = Pick<Fields<Route, TSchema, never, never>, 'route' | 'params' | 'problems'>

/**
 * Completes a declaration: the ids in its path, and the problem of unknown ones, derive from its route. Its function is only ever called
 * with what its own schemas have accepted.
 */
export function declaredAs<Context>(declared: object): Unnamed<Context> {
  const { route, params, problems = [], ...rest } = declared as Derivable
  const [method, path = ''] = route.split(' ')
  const derived = { method, path, params: params ?? idsIn(path), problems: [...notFoundIn(path), ...problems] }
  return id => ({ ...rest, id, ...derived }) as Operation<Context>
}

/** Gives each operation its key as its id, which is the `operationId` of the documents. */
export function named<Declared extends Record<string, Unnamed<never>>>(declared: Declared) {
  return Object.entries(declared).map(([id, unnamed]) => unnamed(id)) as ReturnType<Declared[keyof Declared]>[]
}

/** The functions that declare operations which run on more than the API's context. */
export function operationsOn<Context>() {
  const operationWith =
    <const Common extends Partial<Operation>>(common: Common) =>
    <
      R extends Route,
      P extends TSchema | undefined = undefined,
      Q extends TSchema | undefined = undefined,
      B extends TSchema | undefined = undefined,
      Result = unknown,
    >(
      declared: Declared<keyof Common, R, P, Q, B, Context, Result>,
    ) =>
      declaredAs<Context>({ ...common, ...declared })
  return {
    operationWith,
    operation: operationWith({}),
    consoleOperation: <
      R extends Route,
      P extends TSchema | undefined = undefined,
      Q extends TSchema | undefined = undefined,
      B extends TSchema | undefined = undefined,
      Result = unknown,
    >(
      declared: Declared<'tag' | 'summary' | 'success', R, P, Q, B, Context, Result>,
    ) => {
      const success = { description: 'Done.', schema: Type.Unknown() } as const
      return (id: string) => declaredAs<Context>({ ...declared, tag: 'Console', summary: id, success })(id)
    },
  }
}

/**
 * `operation` declares an operation. Routes, validation, the OpenAPI documents with every status and code, the methods of the SDK, and
 * who may call it derive from the declaration. `consoleOperation` declares one of the console's pages: validated like any other, but
 * neither in a document nor idempotent by key. `operationWith` takes the fields that several operations have in common.
 */
export const { operation, operationWith, consoleOperation } = operationsOn<ApiContext>()
