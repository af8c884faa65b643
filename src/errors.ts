/**
 * The one table of everything that an answer can refuse with. The HTTP status, the documentation (docs/reference/errors.md),
 * the OpenAPI document and `GET /v1/errors` all come from here; no route maps errors.
 *
 * `order` is the precedence: when two rows apply to one request, the lower one is the answer. A row's name is what the
 * code throws; its `code` is what the caller sees, and one code can stand in several rows because a specific case shares
 * the code of the generic one. Codes are never reused for another meaning.
 */
export const problems = {
  ApiKeyRefused: {
    order: 1,
    code: 'HeaderValidation',
    status: 401,
    extra: ['path'],
    when: 'The `x-api-key` header is missing, or the key is unknown, revoked, expired, or of the other mode (`path` is `x-api-key`).',
  },
  RateLimitExceeded: {
    order: 2,
    code: 'RateLimitExceeded',
    status: 429,
    extra: [],
    when: 'More requests than the partner may send, or too many unknown API keys from one address; `retry-after` says when to come back.',
  },
  Forbidden: {
    order: 3,
    code: 'Forbidden',
    status: 403,
    extra: [],
    when: 'The partner is suspended, or the API key lacks the scope of the operation.',
  },
  UnknownPath: { order: 4, code: 'NotFound', status: 404, extra: [], when: 'No operation has this path.' },
  MethodNotAllowed: {
    order: 4,
    code: 'BadRequest',
    status: 405,
    extra: [],
    when: 'The path exists, but not with this method; `allow` lists the ones that do.',
  },
  RequestTimeout: {
    order: 4,
    code: 'BadRequest',
    status: 408,
    extra: [],
    when: 'The request took too long to arrive.',
  },
  PayloadTooLarge: {
    order: 4,
    code: 'BadRequest',
    status: 413,
    extra: [],
    when: 'The body is larger than the operation accepts.',
  },
  UnsupportedMediaType: {
    order: 4,
    code: 'BadRequest',
    status: 415,
    extra: [],
    when: 'The body is of another media type, or has a `content-encoding`.',
  },
  HeadersTooLarge: {
    order: 4,
    code: 'BadRequest',
    status: 431,
    extra: [],
    when: 'The request line and headers are larger than 16 KiB.',
  },
  BadRequest: { order: 4, code: 'BadRequest', status: 400, extra: [], when: 'The HTTP or the JSON is malformed.' },
  HeaderValidation: {
    order: 5,
    code: 'HeaderValidation',
    status: 400,
    extra: ['path'],
    when: 'A header other than `x-api-key` is malformed; `path` is its name.',
  },
  PathValidation: {
    order: 6,
    code: 'PathValidation',
    status: 400,
    extra: ['path'],
    when: 'A path parameter is malformed; `path` is its name.',
  },
  QueryValidation: {
    order: 6,
    code: 'QueryValidation',
    status: 400,
    extra: ['path'],
    when: 'A query parameter is unknown or malformed; `path` is its name.',
  },
  BodyValidation: {
    order: 6,
    code: 'BodyValidation',
    status: 400,
    extra: ['path'],
    when: 'A field of the body is missing, unknown or malformed; `path` is the way to it in dots.',
  },
  IdempotencyKeyReused: {
    order: 7,
    code: 'HeaderValidation',
    status: 422,
    extra: ['path'],
    when: 'The idempotency key was used for a different request (`path` is `x-idempotency-key`). Nothing was done.',
  },
  Conflict: {
    order: 8,
    code: 'Conflict',
    status: 409,
    extra: [],
    when: 'The same idempotency key is being processed right now (`retry-after: 1`), or the state of the resource does not allow this: an expired, cancelled or outdated intent, a pay cycle that has closed or is settled already, for example.',
  },
  MemberNotFound: {
    order: 9,
    code: 'MemberNotFound',
    status: 404,
    extra: ['memberId'],
    when: 'The partner has no such member.',
  },
  NotFound: { order: 9, code: 'NotFound', status: 404, extra: [], when: 'The partner has no such resource.' },
  UnprocessableEntity: {
    order: 10,
    code: 'UnprocessableEntity',
    status: 422,
    extra: [],
    when: 'No bank is connected to pay through, on-demand pay is paused, its float is low, or there is no open pay cycle; `retry-after` where it is known.',
  },
  MemberNotEligible: {
    order: 11,
    code: 'MemberNotEligible',
    status: 422,
    extra: ['memberId'],
    when: 'The member is not `active`, or may not withdraw again yet.',
  },
  PayRunMemberNotEligible: {
    order: 11,
    code: 'MemberNotEligible',
    status: 400,
    extra: ['memberId'],
    when: 'A pay run names members who are unknown or inactive; one issue per member, for the first 1,000 of them. Nothing was done.',
  },
  BankAccountInvalid: {
    order: 12,
    code: 'BankAccountInvalid',
    status: 422,
    extra: [],
    when: 'The member has no bank account, or it fails its checks.',
  },
  AmountBelowLowerLimit: {
    order: 13,
    code: 'AmountBelowLowerLimit',
    status: 422,
    extra: ['lowerLimit'],
    when: 'The amount is below the least that can be withdrawn.',
  },
  AmountAboveUpperLimit: {
    order: 13,
    code: 'AmountAboveUpperLimit',
    status: 422,
    extra: ['upperLimit'],
    when: 'The amount is above the most that can be withdrawn at once.',
  },
  MemberInsufficientFunds: {
    order: 14,
    code: 'MemberInsufficientFunds',
    status: 422,
    extra: ['memberId'],
    when: 'The amount is more than the member has available.',
  },
  MemberAlreadyInvited: {
    order: 15,
    code: 'MemberAlreadyInvited',
    status: 409,
    extra: ['memberId'],
    when: 'The e-mail belongs to an active or invited member, or the `workerId` to any member; `memberId` is that member.',
  },
  InvalidAddMemberPayload: {
    order: 15,
    code: 'InvalidAddMemberPayload',
    status: 400,
    extra: ['email'],
    when: 'A new member is well-formed but cannot be added: the tier does not exist, the account or phone fails its check.',
  },
  InvalidUpdateMemberPayload: {
    order: 15,
    code: 'InvalidUpdateMemberPayload',
    status: 400,
    extra: ['memberId'],
    when: 'A change is well-formed but cannot be made: the tier does not exist, the e-mail may not change any more, the account or phone fails its check.',
  },
  InvalidRemoveMemberPayload: {
    order: 15,
    code: 'InvalidRemoveMemberPayload',
    status: 400,
    extra: ['memberId'],
    when: 'A removal in a job of actions is well-formed but cannot be made: there is no such member.',
  },
  FileContent: {
    order: 15,
    code: 'FileContent',
    status: 400,
    extra: ['row'],
    when: 'A row of an uploaded file is at fault; the header is row "1". One issue per row, at most 1,000 and a closing one; nothing was done.',
  },
  ServiceUnavailable: {
    order: 16,
    code: 'InternalServerError',
    status: 503,
    extra: [],
    when: 'The service cannot answer just now; `retry-after` says when to try again, with the same idempotency key. The message says when it is not known whether the request took effect.',
  },
  InternalServerError: {
    order: 17,
    code: 'InternalServerError',
    status: 500,
    extra: [],
    when: 'An unexpected fault of ours. The answer’s `x-request-id` finds it in the log.',
  },
} as const satisfies Record<string, ProblemRow>

type ProblemRow = {
  order: number
  code: string
  status: number
  extra: readonly string[]
  when: string
}

export type ProblemName = keyof typeof problems
type ProblemCode = (typeof problems)[ProblemName]['code']

/** As many issues as one answer has: nobody reads more, and a hostile request could have a hundred thousand. */
export const issuesMax = 1_000

/** One entry of an answer's `issues`, as it goes over the wire. */
export type Issue = { code: ProblemCode; message: string; [extra: string]: unknown }

type Extra<N extends ProblemName> = { [K in (typeof problems)[N]['extra'][number]]: unknown }

/**
 * A refusal that the caller can act on. Throwing it undoes the transaction; a pure rule returns it instead.
 *
 * `message` is shown to the partner's developer: it names the way out and holds nothing of other partners or of our inside.
 */
export class Problem extends Error {
  override readonly name: ProblemName
  readonly status: number
  readonly issues: Issue[]
  /** Headers of the answer that go with it: `retry-after`, `allow`. */
  readonly headers: Record<string, string>

  constructor(name: ProblemName, issues: Issue[], headers: Record<string, string> = {}) {
    super(issues.map(issue => issue.message).join(' '))
    this.name = name
    this.status = problems[name].status
    this.issues = issues
    this.headers = headers
  }
}

/** A refusal with a single issue; `extra` are the further fields that the code promises. */
export function problem<N extends ProblemName>(
  name: N,
  message: string,
  ...[extra, headers]: keyof Extra<N> extends never
    ? [extra?: Record<string, never>, headers?: Record<string, string>]
    : [extra: Extra<N>, headers?: Record<string, string>]
): Problem {
  return new Problem(name, [issue(name, message, extra as Record<string, unknown>)], headers)
}

/** One issue of a row of the table, for refusals that carry several. */
export function issue(name: ProblemName, message: string, extra: Record<string, unknown> = {}): Issue {
  return { code: problems[name].code, message, ...extra }
}

/** The first `countMax` issues. If there are more, the next one stands for the rest. */
export function firstIssues(found: Iterable<Issue>, countMax = issuesMax): Issue[] {
  const issues = [...Iterator.from(found).take(countMax + 1)]
  const next = issues[countMax]
  if (next !== undefined) issues[countMax] = { ...next, message: 'and more; fix the others first' }
  return issues
}

/** The refusal that holds all of these issues; the row that comes first in the table gives the status. */
export function problemOf(found: { name: ProblemName; issue: Issue }[]): Problem {
  const first = found.toSorted((a, b) => problems[a.name].order - problems[b.name].order)[0]
  if (first === undefined) throw new Error('A refusal needs at least one issue')
  const { status } = problems[first.name]
  return new Problem(
    first.name,
    found.filter(({ name }) => problems[name].status === status).map(({ issue }) => issue),
  )
}
