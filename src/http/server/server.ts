import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Fault } from '../../contract/faults.ts'
import type { Parts, Validated } from '../../contract/validation.ts'
import type { WithCopying } from '../../database/copy.ts'
import type { BatchDb, Db } from '../../database/database.ts'
import type { Deadline } from '../../kernel/deadline.ts'
import type { Problem } from '../../kernel/errors.ts'
import type { Lanes } from '../../kernel/lanes.ts'
import type { Currency } from '../../kernel/money.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Scope } from '../../partners/api-keys.ts'
import type { MemberSession, SessionScope } from '../../partners/member-sessions.ts'
import type { Operator } from '../../partners/operator-keys.ts'
import type { Mode, Partner } from '../../partners/partners.ts'
import type { RecordRequest } from '../../request-record.ts'
import type { Sealer } from '../../sealing/sealer.ts'
import type { Role } from '../../users/roles.ts'
import type { SignedIn } from '../../users/sessions.ts'
import type { ConsoleSettings } from '../../users/settings.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenAPI documents: of partners, of partners in the fuller shapes, and of operators. */
    documents: { partners(): object; representation(): object; operators(): object }
    /** The process is about to stop: /readyz answers 503, and every answer closes its connection. */
    isDraining: boolean
    /** Seals the answers that are replayed. */
    sealer: Sealer
    /** Looks the partner's keys up again, because its clock has just started to move. */
    forgetKeys(partnerId: string): void
  }
  interface FastifyRequest {
    /** The instant of the request. Everything it decides is decided as of this instant. */
    now: Date
    /** How far `now` is ahead of real time: on a sandbox, each partner's clock can be moved. */
    clockOffsetMs: number
    /** The real instant of the request, for logs. */
    receivedAt: Date
    deadline: Deadline
    partner: Partner
    /** The API key that the request was made with, or that created its member session. Not set for a user of the console. */
    keyId: string
    /** The user of the console whose session the request was made with. */
    user: SignedIn | undefined
    /** Only on routes for operators, which have no partner and no key of one. */
    operator: Operator | undefined
    /** Only on routes for member sessions. */
    memberSession: MemberSession | undefined
    idempotencyKey: string | undefined
    bodyFaults: Fault[]
    /** Only for a body that was read in a thread; see `withIdempotency`. */
    fingerprint: Buffer | undefined
    /** The resource that the request created or changed. */
    resourceId: string | null
    /** The error that the request was answered with. */
    refusal: Problem | undefined
  }
  interface FastifySchema {
    operationId?: string
    /** The operation is in no document. */
    hide?: boolean
  }
  interface FastifyContextConfig {
    /** See `Access`. */
    roles?: readonly Role[] | 'noLiveUser' | 'keysOnly'
    partnerRoles?: readonly Role[]
    /** The scope that the API key must have, or `any`. Routes without a scope need no key. */
    scope?: Scope | 'any'
    /**
     * The route is for pages of the console: for users by their session, for operators only, or for those who sign in; `founder`
     * is for what may lead to the first operator of an installation, and `visitor` for a page that another site leads to.
     */
    console?: 'user' | 'operator' | 'stranger' | 'founder' | 'visitor'
    /** Users of the console see bank accounts unmasked: those of the answer belong to no member. */
    showsAccounts?: true
    /** The route is for member sessions instead of API keys, and this is the scope that it needs. */
    session?: SessionScope
    /** The route is for operators instead of partners. */
    isForOperators?: true
    /** Days of the announcement and of the removal, and the path that replaces this one. */
    deprecated?: { since: string; sunset: string; successor: string }
    validate?: (parts: Parts) => Promise<Validated>
    /** How long the body may take to arrive, in milliseconds. Set where bodies are large. */
    arrivalMsMax?: number
    /** How long the answer may take once the body has arrived, in milliseconds. Set where it takes long. */
    answerMsMax?: number
    /** The request queues under overload instead of being refused: a probe must not report a busy process as broken. */
    isNeverShed?: boolean
  }
}

export type App = FastifyInstance<Server, IncomingMessage, ServerResponse, Logger, TypeBoxTypeProvider>

/** What the API runs on. */
export type ApiContext = {
  db: Db
  batchDb: BatchDb
  /** See `Batches`. */
  lanes?: Lanes
  withCopying: WithCopying
  /** Seals what the database must not show. */
  sealer: Sealer
  log: Logger
  now: Clock
  mode: Mode
  /** The bank through which the worker pays withdrawals in a currency; null if none is connected. */
  bankOf: (currency: Currency) => 'simulated' | 'connected' | null
  /** Addresses whose `x-forwarded-for` is trusted. */
  trustedProxies?: string
  /** Where browsers reach the API; by default where the request was sent to. */
  publicUrl?: string | undefined
  /** How users sign in to the console; by default with a password. */
  console?: ConsoleSettings | undefined
  /** Writes the request log; without it, there is none. */
  recordRequest?: RecordRequest | undefined
}
