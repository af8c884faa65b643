import { type TSchema, Type } from 'typebox'
import type { ProblemName } from '../kernel/errors.ts'
import { Id, type IdKind } from '../kernel/ids.ts'

/** The kinds of the ids in paths, by the names of their parameters. */
const kinds: Record<string, IdKind> = {
  batchId: 'payoutBatch',
  deliveryId: 'event',
  exceptionId: 'payoutException',
  invitationId: 'invitation',
  invoiceId: 'invoice',
  jobId: 'memberJob',
  keyId: 'apiKey',
  memberId: 'member',
  partnerId: 'partner',
  payCycleId: 'payCycle',
  payRunId: 'payRun',
  requestId: 'request',
  ruleId: 'payoutRule',
  sessionId: 'userSession',
  userId: 'user',
  verificationId: 'ledgerVerification',
  webhookId: 'webhook',
  withdrawalId: 'withdrawal',
  withdrawalIntentId: 'withdrawalIntent',
}

/** The parameters of a route, such as `GET /v1/members/:memberId`. */
export type PathParams<Route extends string> = Route extends `${string}/:${infer Name}/${infer Rest}`
  ? Record<Name, string> & PathParams<`/${Rest}`>
  : Route extends `${string}/:${infer Name}`
    ? Record<Name, string>
    : unknown

// Operations with the same parameters share one schema, which is compiled once.
const schemas = new Map<string, TSchema>()

/** The schema of the ids in a path; undefined for a path without parameters. */
export function idsIn(path: string): TSchema | undefined {
  const names = namesIn(path)
  if (names.length === 0) return undefined
  const known = schemas.get(names.join())
  if (known !== undefined) return known
  const schema = Type.Object(Object.fromEntries(names.map(name => [name, Id(kindOf(name, path))])))
  schemas.set(names.join(), schema)
  return schema
}

/** The problem of a path that names a resource which the caller does not have. */
export function notFoundIn(path: string): ProblemName[] {
  const names = namesIn(path)
  if (names.length === 0) return []
  return [names.at(-1) === 'memberId' ? 'MemberNotFound' : 'NotFound']
}

function namesIn(path: string): string[] {
  return [...path.matchAll(/\/:(\w+)/g)].map(([, name = '']) => name)
}

function kindOf(name: string, path: string): IdKind {
  const kind = kinds[name]
  if (kind === undefined) throw new Error(`${path} needs params: ${name} is not the name of an id`)
  return kind
}
