import type { FastifyRequest } from 'fastify'
import type * as auditLog from '../audit-log/audit-log.ts'
import { prefersRepresentation } from '../contract/prefer.ts'
import type { MemberSession } from '../partners/member-sessions.ts'
import type { Operator } from '../partners/operator-keys.ts'
import type { Partner } from '../partners/partners.ts'
import type { SignedIn } from '../users/sessions.ts'
import { prefers } from './bodies/csv.ts'
import { UploadedFile } from './bodies/uploaded-file.ts'
import type { BrowserRequest, Call } from './operation.ts'

/** The facts that a request and a command have in common. */
export type CallFacts = Pick<FastifyRequest, 'params' | 'query' | 'body' | 'headers' | 'now' | 'receivedAt'> &
  Pick<FastifyRequest, 'clockOffsetMs'> &
  Partial<Pick<FastifyRequest, 'partner' | 'operator' | 'memberSession' | 'user' | 'keyId'>>

/** A call without what depends on whether it came over HTTP or from a command. */
export abstract class BaseCall<Context, Facts extends CallFacts = CallFacts>
  implements Call<unknown, unknown, unknown, Context>
{
  readonly context: Context
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly headers: CallFacts['headers']
  readonly receivedAt: Date
  readonly clockOffsetMs: number
  readonly user: SignedIn | undefined
  protected readonly facts: Facts

  constructor(context: Context, facts: Facts) {
    this.context = context
    this.facts = facts
    this.params = facts.params
    this.query = facts.query
    this.body = facts.body
    this.headers = facts.headers
    this.receivedAt = facts.receivedAt
    this.clockOffsetMs = facts.clockOffsetMs
    this.user = facts.user
  }

  abstract get actor(): auditLog.Actor
  abstract get browser(): BrowserRequest
  abstract get ownOrigin(): string
  abstract get signal(): AbortSignal

  get file(): UploadedFile {
    return known(this.body instanceof UploadedFile ? this.body : undefined, 'files')
  }

  get now(): Date {
    return this.facts.now
  }

  get partner(): Partner {
    return known(this.facts.partner, 'partners')
  }

  get operator(): Operator {
    return known(this.facts.operator, 'operators')
  }

  get memberSession(): MemberSession {
    return known(this.facts.memberSession, 'member sessions')
  }

  get signedIn(): SignedIn {
    return known(this.facts.user, 'users of the console')
  }

  get keyId(): string {
    return known(this.facts.keyId, 'API keys')
  }

  get prefersRepresentation(): boolean {
    return prefersRepresentation(this.facts)
  }

  get prefersCsv(): boolean {
    return prefers('text/csv', this.facts.headers.accept)
  }

  get prefersHtml(): boolean {
    return prefers('text/html', this.facts.headers.accept)
  }

  moveTo(now: Date): void {
    this.facts.now = now
  }
}

function known<T>(value: T | undefined, whom: string): T {
  if (value === undefined) throw new Error(`The operation is not for ${whom}`)
  return value
}
