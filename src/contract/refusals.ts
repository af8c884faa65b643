import { type TSchema, Type } from 'typebox'
import { type ProblemName, problems } from '../kernel/errors.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { WireMoney } from '../kernel/money.ts'
import { strictObject } from '../kernel/schemas.ts'
import { responseHeaders, retryHeader, shouldRetryHeader } from './headers.ts'
import { nameHints } from './shared-parts.ts'

/** Any operation can respond with these. */
export const commonProblems: ProblemName[] = [
  'RateLimitExceeded',
  'BadRequest',
  'RequestTimeout',
  'HeadersTooLarge',
  'PayloadTooLarge',
  'UnsupportedMediaType',
  'HeaderValidation',
  'QueryValidation',
  'BodyValidation',
  'InternalServerError',
  'ServiceUnavailable',
  'OutcomeUnknown',
]
/** And those that need an API key with these. */
export const keyProblems: ProblemName[] = ['ApiKeyRefused', 'Forbidden', 'IdempotencyKeyReused', 'Conflict']
const extraFields: Record<string, { schema: TSchema; example: unknown }> = {
  path: {
    schema: Type.String({ description: 'Name of the header or parameter, or path of the field with dots.' }),
    example: 'memberId',
  },
  memberId: { schema: Id('member'), example: exampleId('member') },
  lowerLimit: { schema: WireMoney, example: { amount: 1000, currency: 'GBP' } },
  upperLimit: { schema: WireMoney, example: { amount: 20000, currency: 'GBP' } },
  email: { schema: Type.String(), example: 'sam.okafor@example.com' },
  row: { schema: Type.String({ description: 'Row of the file. The header is row "1".' }), example: '2' },
}

const examplePaths: Partial<Record<ProblemName, string>> = {
  ApiKeyRefused: 'x-api-key',
  SessionRefused: 'authorization',
  HeaderValidation: 'x-idempotency-key',
  IdempotencyKeyReused: 'x-idempotency-key',
  QueryValidation: 'take',
}

const messageField = Type.String({
  title: 'IssueMessage',
  description: 'For developers and logs. It may change, so branch on `code`.',
})

// The reason phrases of HTTP in one word, by which responses are named.
const reasonPhrases: Record<string, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  408: 'RequestTimeout',
  409: 'Conflict',
  413: 'PayloadTooLarge',
  415: 'UnsupportedMediaType',
  422: 'UnprocessableEntity',
  429: 'TooManyRequests',
  431: 'RequestHeaderFieldsTooLarge',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
}

/** The problem that a code is named after, or this one. */
function standardOf(name: ProblemName): ProblemName {
  const { code } = problems[name]
  return code in problems ? (code as ProblemName) : name
}

/** The wire shape of an issue of this problem. */
function issueSchema(name: ProblemName): TSchema {
  const { code, extra } = problems[name]
  return Type.Object(
    {
      code: Type.Literal(code),
      message: messageField,
      ...Object.fromEntries(extra.map(field => [field, extraFields[field]?.schema ?? Type.String()])),
    },
    { title: `${code}Issue`, additionalProperties: false, examples: [exampleIssue(standardOf(name))] },
  )
}

export function exampleIssue(name: ProblemName): Record<string, unknown> {
  const { code, extra, message } = problems[name]
  const path = examplePaths[name]
  return {
    code,
    message,
    ...Object.fromEntries(extra.map(field => [field, field === 'path' && path ? path : extraFields[field]?.example])),
  }
}

/** The error responses of an operation, by status. */
export function refusals(names: ProblemName[]): Record<string, object> {
  const inOrder = (Object.keys(problems) as ProblemName[]).filter(name => names.includes(name))
  const byStatus = Object.groupBy(inOrder, name => problems[name].status)
  return Object.fromEntries(Object.entries(byStatus).map(([status, rows = []]) => [status, refusal(status, rows)]))
}

// Most operations share theirs, and building them was half of the time that the API takes to start.
const builtRefusals = new Map<string, object>()

function refusal(status: string, rows: ProblemName[]): object {
  const known = builtRefusals.get(rows.join())
  if (known !== undefined) return known
  const built = {
    description: rows.map(describeProblem).join('\n\n'),
    headers: {
      ...responseHeaders,
      ...shouldRetryHeader,
      ...(['409', '422', '429', '503'].includes(status) ? retryHeader : {}),
    },
    content: {
      'application/json': {
        schema: issuesSchema(rows),
        ...exampleOf(rows),
        [nameHints]: refusalNames(status, rows),
      },
    },
  }
  builtRefusals.set(rows.join(), built)
  return built
}

function describeProblem(name: ProblemName): string {
  return `\`${problems[name].code}\`: ${problems[name].when}`
}

/** An example, unless the one of the code's schema will do. */
function exampleOf([first]: ProblemName[]): object {
  return first === undefined || first === standardOf(first) ? {} : { example: { issues: [exampleIssue(first)] } }
}

/** Names for a refusal that operations share: its status, and as a second choice the problems that not every operation has. */
function refusalNames(status: string, rows: ProblemName[]): string[] {
  const reason = reasonPhrases[status] ?? status
  const special = rows.filter(name => !commonProblems.includes(name) && !keyProblems.includes(name))
  const isPlain = special.length === 0 || special.join() === reason
  return isPlain
    ? [reason, `${reason}_${reason}`]
    : [special.slice(0, 2), special].map(some => `${reason}_${some.join('_')}`)
}

function issuesSchema(rows: ProblemName[]): TSchema {
  const onePerCode = [...new Map(rows.map(name => [problems[name].code, name])).values()]
  const shapes = onePerCode.map(issueSchema)
  const [only] = shapes
  return strictObject({ issues: Type.Array(shapes.length === 1 && only ? only : Type.Union(shapes), { minItems: 1 }) })
}
