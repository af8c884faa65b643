/**
 * Every problem that the API can respond with. The HTTP status, docs/reference/errors.md, the OpenAPI document and `GET /v1/errors`
 * derive from this table; no route maps errors.
 *
 * `order` is the precedence: if several rows apply to a request, the lowest wins. A row's name is what the code throws; its
 * `code` is what the caller sees. Several rows can share a code, when a specific case uses the code of the generic one. A
 * code is never reused for another meaning. `message` is a real message of the service, shown as the example of the code. `retry`
 * decides the header `x-should-retry`; see `shouldRetry`.
 */
const rows = {
  ApiKeyRefused: {
    order: 1,
    code: 'HeaderValidation',
    status: 401,
    extra: ['path'],
    message: 'The x-api-key header holds no valid API key; check that it was copied whole',
    when: 'The `x-api-key` header is missing, or the key is unknown, revoked, expired or for the other mode (`path` is `x-api-key`).',
  },
  SessionRefused: {
    order: 1,
    code: 'HeaderValidation',
    status: 401,
    extra: ['path'],
    message: 'The session is unknown or has expired; create a new one',
    when: 'The member session token in `authorization` is missing, unknown, expired or revoked (`path` is `authorization`); in the console, the user is not signed in (`path` is `cookie`), or a one-time link no longer works (`path` is `token`).',
  },
  SignInRefused: {
    order: 1,
    status: 401,
    isConsoleOnly: true,
    message: 'The e-mail address or the password is wrong',
    when: 'Only in the console: the e-mail address or the password is wrong.',
  },
  TotpRequired: {
    order: 1,
    status: 401,
    isConsoleOnly: true,
    message: 'Enter the code from your authenticator app, or a recovery code',
    when: 'Only in the console: the user has a second factor, and its code is missing, wrong or used.',
  },
  RateLimitExceeded: {
    order: 2,
    status: 429,
    retry: 'yes',
    message: 'More than 100 requests a second; slow down',
    when: 'The partner or the member session has exceeded its rate limit, or one address has sent too many unknown API keys or tokens; `retry-after` says when to retry.',
  },
  Forbidden: {
    order: 3,
    status: 403,
    message: 'The API key lacks the scope members:read',
    when: 'The partner is suspended, the API key or the member session lacks the required scope, or the session is bound to another origin.',
  },
  UnknownPath: {
    order: 4,
    code: 'NotFound',
    status: 404,
    message: '/v1/nothing does not exist; see /openapi.json for the paths',
    when: 'No operation has this path.',
  },
  MethodNotAllowed: {
    order: 4,
    code: 'BadRequest',
    status: 405,
    message: 'DELETE is not allowed here; use GET',
    when: 'The path does not support this method; `allow` lists the supported ones.',
  },
  RequestTimeout: {
    order: 4,
    code: 'BadRequest',
    status: 408,
    retry: 'yes',
    message: 'The body took too long to arrive',
    when: 'The request took too long to arrive.',
  },
  PayloadTooLarge: {
    order: 4,
    code: 'BadRequest',
    status: 413,
    message: 'The body must not exceed 65536 bytes',
    when: 'The body exceeds the size limit of the operation.',
  },
  UnsupportedMediaType: {
    order: 4,
    code: 'BadRequest',
    status: 415,
    message: 'The content-type is not supported here; send application/json',
    when: 'The media type of the body is not supported, or the request has a `content-encoding`.',
  },
  HeadersTooLarge: {
    order: 4,
    code: 'BadRequest',
    status: 431,
    message: 'The headers must not exceed 16384 bytes',
    when: 'The request line and headers exceed 16 KiB.',
  },
  BadRequest: {
    order: 4,
    status: 400,
    message: 'The body is not well-formed JSON',
    when: 'The HTTP request or its JSON is malformed.',
  },
  HeaderValidation: {
    order: 5,
    status: 400,
    extra: ['path'],
    message: 'x-idempotency-key must be 1 to 1024 characters of Latin-1 without control characters',
    when: 'A header other than `x-api-key` is malformed; `path` is its name.',
  },
  PathValidation: {
    order: 6,
    status: 400,
    extra: ['path'],
    message: 'memberId has the wrong format; example: mem_01kah4pzc5e4r8v2m6t0x9y3bd',
    when: 'A path parameter is malformed; `path` is its name.',
  },
  QueryValidation: {
    order: 6,
    status: 400,
    extra: ['path'],
    message: 'take must be >= 1',
    when: 'A query parameter is unknown or malformed; `path` is its name.',
  },
  BodyValidation: {
    order: 6,
    status: 400,
    extra: ['path'],
    message: 'memberId is required',
    when: 'A field of the body is missing, unknown or malformed; `path` is its dotted path.',
  },
  IdempotencyKeyReused: {
    order: 7,
    code: 'HeaderValidation',
    status: 422,
    extra: ['path'],
    message: 'This idempotency key was used for a different request; use a new key for a new request',
    when: 'The idempotency key was already used for a different request (`path` is `x-idempotency-key`). Nothing was changed.',
  },
  Conflict: {
    order: 8,
    status: 409,
    retry: 'if-retry-after',
    message: 'The withdrawal intent was cancelled; create a new one',
    when: 'A request with the same idempotency key is in progress (`retry-after: 1`), or the state of the resource does not allow the operation: for example, the intent has expired, or the pay cycle is closed, settled, or still closing (`retry-after: 5`).',
  },
  MemberNotFound: {
    order: 9,
    status: 404,
    extra: ['memberId'],
    message: 'There is no such member',
    when: 'The partner has no such member.',
  },
  NotFound: {
    order: 9,
    status: 404,
    message: 'There is no such withdrawal',
    when: 'The partner has no such resource.',
  },
  UnprocessableEntity: {
    order: 10,
    status: 422,
    retry: 'if-retry-after',
    message: 'The partner has no tier in VUV, so nothing is paid out in it',
    when: 'The operation is not possible at the moment: no bank is connected, the partner is paused, its float is low, or no pay cycle is open. `retry-after` is set if the wait is known.',
  },
  MemberNotEligible: {
    order: 11,
    status: 422,
    extra: ['memberId'],
    message: 'The member is invited; only active members can withdraw',
    when: 'The member is not `active`, is held for review after a bank returned a payment, or has reached the number of withdrawals that the tier allows.',
  },
  PayRunMemberNotEligible: {
    order: 11,
    code: 'MemberNotEligible',
    status: 400,
    extra: ['memberId'],
    message: 'There is no such member; check the memberId',
    when: 'The pay run contains unknown or inactive members; one issue per member, for the first 1,000. Nothing was changed.',
  },
  BankAccountInvalid: {
    order: 12,
    status: 422,
    message: 'The member has no bank account; add one to the member first',
    when: 'The member has no bank account, the account is invalid, or a bank refused it and it has not been changed since.',
  },
  AmountBelowLowerLimit: {
    order: 13,
    status: 422,
    extra: ['lowerLimit'],
    message: 'The lowest amount that can be withdrawn is 10.00 GBP',
    when: 'The amount is below the lower limit.',
  },
  AmountAboveUpperLimit: {
    order: 13,
    status: 422,
    extra: ['upperLimit'],
    message: 'The highest amount that can be withdrawn at once is 200.00 GBP',
    when: 'The amount is above the upper limit.',
  },
  MemberInsufficientFunds: {
    order: 14,
    status: 422,
    extra: ['memberId'],
    message: 'The amount exceeds the member’s available balance',
    when: 'The amount exceeds the member’s available balance.',
  },
  MemberAlreadyInvited: {
    order: 15,
    status: 409,
    extra: ['memberId'],
    message: 'Another member has this e-mail or workerId; `memberId` names that member',
    when: 'Another active or invited member has this email, or another member has this `workerId`; `memberId` is that member.',
  },
  InvalidAddMemberPayload: {
    order: 15,
    status: 400,
    extra: ['email'],
    message: 'There is no such tier; the tiers are: Bronze, Gold, Silver, Silver EU',
    when: 'The new member is well-formed but cannot be added: the tier does not exist, or the bank account or phone number is invalid.',
  },
  InvalidUpdateMemberPayload: {
    order: 15,
    status: 400,
    extra: ['memberId'],
    message: 'There is no such tier; the tiers are: Bronze, Gold, Silver, Silver EU',
    when: 'The update is well-formed but cannot be applied: the tier does not exist, the email can no longer change, or the bank account or phone number is invalid.',
  },
  InvalidRemoveMemberPayload: {
    order: 15,
    status: 400,
    extra: ['memberId'],
    message: 'actions.0: There is no such member',
    when: 'A remove action in a member job is well-formed but cannot be applied: the member does not exist.',
  },
  FileContent: {
    order: 15,
    status: 400,
    extra: ['row'],
    message: 'email: is empty; tier: is empty',
    when: 'A row of the uploaded file is invalid; the header is row "1". One issue per row, for the first 1,000, then one for the rest. Nothing was changed.',
  },
  ServiceUnavailable: {
    order: 16,
    code: 'InternalServerError',
    status: 503,
    retry: 'yes',
    message: 'The service is busy or restarting, so nothing was done; try again',
    when: 'The service is temporarily unavailable and did nothing; retry after `retry-after`.',
  },
  OutcomeUnknown: {
    order: 16,
    code: 'InternalServerError',
    status: 503,
    retry: 'if-repeatable',
    message:
      'The connection to the database was lost, and the request may have taken effect; repeat it with the same idempotency key',
    when: 'The connection to the database was lost, and the request may have taken effect; retry after `retry-after` with the same idempotency key.',
  },
  InternalServerError: {
    order: 17,
    status: 500,
    retry: 'if-repeatable',
    message: 'Unexpected error; quote the x-request-id of this response to the operator',
    when: 'An unexpected error in the service. Quote the `x-request-id` of the response to the operator.',
  },
} as const satisfies Record<string, ProblemRow>

type ProblemRow = {
  order: number
  /** By default the name of the row. */
  code?: string
  status: number
  /** By default `no`. */
  retry?: Retry
  /** The additional fields of an issue. */
  extra?: readonly string[]
  message: string
  /** The partner API never responds with this problem. */
  isConsoleOnly?: true
  when: string
}

/** When it makes sense to repeat the request unchanged: always, never, or under the condition that `shouldRetry` checks. */
type Retry = 'yes' | 'no' | 'if-retry-after' | 'if-repeatable'

type Rows = typeof rows
export type ProblemName = keyof Rows

type ProblemCode = { [N in ProblemName]: Rows[N] extends { code: infer Code } ? Code : N }[ProblemName]

type Completed = Required<Omit<ProblemRow, 'code' | 'isConsoleOnly'>> & { code: ProblemCode }
const completed = Object.entries<ProblemRow>(rows).map(([code, row]) => [
  code,
  { code, retry: 'no', extra: [], ...row },
])
/** The table, with its defaults. */
export const problems: Record<ProblemName, Completed> = Object.fromEntries(completed)

/** The problems that the partner API can respond with, in order. */
export const partnerProblems = (Object.keys(rows) as ProblemName[]).filter(name => !('isConsoleOnly' in rows[name]))

/** Issues per response. A hostile request could otherwise cause a hundred thousand. */
export const issuesMax = 1_000

/** One entry of `issues` in a response. */
export type Issue = { code: ProblemCode; message: string; [extra: string]: unknown }

type Extra<N extends ProblemName> = Rows[N] extends { extra: readonly (infer Name extends string)[] }
  ? Record<Name, unknown>
  : Record<never, unknown>

/**
 * An error that the caller can act on. Throwing it rolls back the transaction; a pure rule returns it instead.
 *
 * The partner's developer sees `message`: it says what to do, and reveals nothing about other partners or internals.
 */
export class Problem extends Error {
  override readonly name: ProblemName
  readonly status: number
  readonly issues: Issue[]
  /** Response headers of the problem: `retry-after`, `allow`. */
  readonly headers: Record<string, string>

  constructor(name: ProblemName, issues: Issue[], headers: Record<string, string> = {}) {
    super(issues.map(issue => issue.message).join(' '))
    this.name = name
    this.status = problems[name].status
    this.issues = issues
    this.headers = headers
  }
}

/**
 * Whether the caller should repeat the request unchanged: it can succeed, and cannot take effect twice.
 * @param isRepeatable whether a repeat is safe even if the request took effect: it only reads, or has an idempotency key
 */
export function shouldRetry({ name, headers }: Problem, { isRepeatable }: { isRepeatable: boolean }): boolean {
  const { retry } = problems[name]
  switch (retry) {
    case 'yes':
      return true
    case 'no':
      return false
    case 'if-retry-after':
      return 'retry-after' in headers
    case 'if-repeatable':
      return isRepeatable
    default:
      return retry satisfies never
  }
}

/** A problem with a single issue. `extra` holds the additional fields of its code. */
export function problem<N extends ProblemName>(
  name: N,
  message: string,
  ...[extra, headers]: keyof Extra<N> extends never
    ? [extra?: Record<string, never>, headers?: Record<string, string>]
    : [extra: Extra<N>, headers?: Record<string, string>]
): Problem {
  return new Problem(name, [issue(name, message, extra as Record<string, unknown>)], headers)
}

/** A request that the state of its subject does not allow. */
export function conflict(message: string): Problem {
  return problem('Conflict', message)
}

/** One issue, for problems that carry several. */
export function issue(name: ProblemName, message: string, extra: Record<string, unknown> = {}): Issue {
  return { code: problems[name].code, message, ...extra }
}

/** The first `countMax` issues, plus one that stands for the rest if there are more. */
export function firstIssues(found: Iterable<Issue>, countMax = issuesMax): Issue[] {
  const issues = [...Iterator.from(found).take(countMax + 1)]
  const next = issues[countMax]
  if (next !== undefined) issues[countMax] = { ...next, message: 'and more; fix these issues first' }
  return issues
}

/** Combines issues into one problem. The issue with the lowest order gives the status; issues with another status are dropped. */
export function problemOf(found: { name: ProblemName; issue: Issue }[]): Problem {
  const first = found.toSorted((a, b) => problems[a.name].order - problems[b.name].order)[0]
  if (first === undefined) throw new Error('A problem needs at least one issue')
  const { status } = problems[first.name]
  return new Problem(
    first.name,
    found.filter(({ name }) => problems[name].status === status).map(({ issue }) => issue),
  )
}
