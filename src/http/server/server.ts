import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Span } from '@opentelemetry/api'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import type { Fault } from '../../contract/faults.ts'
import type { Parts, Validated } from '../../contract/validation.ts'
import type { WithCopying } from '../../database/copy.ts'
import type { BatchDb, Db } from '../../database/database.ts'
import type { Replica } from '../../database/replica.ts'
import type { Deadline } from '../../kernel/deadline.ts'
import type { Problem } from '../../kernel/errors.ts'
import type { Currency } from '../../kernel/money.ts'
import type { Clock } from '../../kernel/time.ts'
import type { MetricsSource } from '../../metrics/metrics-source.ts'
import type { MemberSession } from '../../partners/member-sessions.ts'
import type { Operator } from '../../partners/operator-keys.ts'
import type { Mode, Partner } from '../../partners/partners.ts'
import type { RecordRequest } from '../../request-record.ts'
import type { Sealer } from '../../sealing/sealer.ts'
import type { Tracing } from '../../tracing/tracing.ts'
import type { SignedIn } from '../../users/sessions.ts'
import type { ConsoleSettings } from '../../users/settings.ts'
import type { Access, Limits, Notes } from '../access.ts'
import type { Owner } from './places.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenAPI documents: for partners, for partners in the fuller shapes, and for operators. */
    documents: { partners(): object; representation(): object; operators(): object }
    /** The process is about to stop: /readyz responds with 503, and every response closes its connection. */
    isDraining: boolean
    /** Seals the responses that are stored for replay. */
    sealer: Sealer
    /** Drops the partner's cached keys, because its clock has just started to move. */
    forgetKeys(partnerId: string): void
  }
  interface FastifyRequest {
    /** The instant of the request. Every decision of the request is made as of this instant. */
    now: Date
    /** How far `now` is ahead of real time: in a sandbox, each partner's clock can be moved. */
    clockOffsetMs: number
    /** The real instant of the request, for logs. */
    receivedAt: Date
    deadline: Deadline
    /** What the route declares. Fastify builds `routeOptions` anew at each access. */
    route: FastifyRequest['routeOptions']
    /** The response to this request. */
    reply: FastifyReply
    /** Who owns the place that the request has while it is worked on; see `Places`. */
    placeOf: Owner | undefined
    partner: Partner
    /** The API key of the request, or the key that created its member session. Not set for a user of the console. */
    keyId: string
    /** The user of the console whose session the request was made with. */
    user: SignedIn | undefined
    /** Set only on routes for operators, which have no partner and no partner key. */
    operator: Operator | undefined
    /** Set only on routes for member sessions. */
    memberSession: MemberSession | undefined
    idempotencyKey: string | undefined
    bodyFaults: Fault[]
    /** Set only for a body that was read in a thread; see `withIdempotency`. */
    fingerprint: Buffer | undefined
    /** The resource that the request created or changed. */
    resourceId: string | null
    /** The span of the request, if traces are on. */
    span: Span | undefined
    /** The error in the response. */
    refusal: Problem | undefined
  }
  interface FastifySchema {
    operationId?: string
    /** The operation is in no document. */
    hide?: boolean
  }
  interface FastifyContextConfig extends Access, Limits, Notes {
    validate?: (parts: Parts) => Validated | Promise<Validated>
    /** Shares the statements of its work with other requests. */
    isBatched?: boolean
  }
}

export type App = FastifyInstance<Server, IncomingMessage, ServerResponse, Logger>

/** The dependencies of the API. */
export type ApiContext = {
  db: Db
  batchDb: BatchDb
  withCopying: WithCopying
  /** For reads that decide nothing; without it, they go to the primary. */
  replica?: Replica | undefined
  /** Seals values that must not be readable in the database. */
  sealer: Sealer
  log: Logger
  now: Clock
  mode: Mode
  /** The bank through which the worker pays withdrawals in a currency; null if none is connected. */
  bankOf: (currency: Currency) => 'simulated' | 'connected' | null
  /** Addresses whose `x-forwarded-for` is trusted. */
  trustedProxies?: string
  /** The address at which browsers reach the API; by default, the address that the request was sent to. */
  publicUrl?: string | undefined
  /** How users sign in to the console; by default with a password. */
  console?: ConsoleSettings | undefined
  /** Without these settings, no member can be erased. */
  erasures?: { journal: string; evidenceDays: number; backupDays: number } | undefined
  /** Writes the request log; without it, there is none. */
  recordRequest?: RecordRequest | undefined
  /** What is measured and served at `GET /metrics`; without it, nothing is measured. */
  metrics?: MetricsSource | undefined
  /** Makes spans; without it, nothing is traced. */
  tracing?: Tracing | undefined
}
