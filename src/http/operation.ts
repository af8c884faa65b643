import { STATUS_CODES } from 'node:http'
import type { FastifySchema } from 'fastify'
import { type TSchema, Type } from 'typebox'
import { type ProblemName, problems } from '../kernel/errors.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { WireMoney } from '../kernel/money.ts'
import { mediaTypes } from './bodies/file-kinds.ts'
import { preferenceAppliedHeader, preferHeader } from './prefer.ts'
import { nameHints } from './shared-parts.ts'

/** A file of text as the OpenAPI document describes it. */
type TextFile = { description: string; example: string }

/** The key of the fuller of two shapes, beside the published one. It does not reach a document. */
export const fullerShape = 'x-fuller'

type Operation<P extends TSchema | undefined, Q extends TSchema | undefined, B extends TSchema | undefined> = {
  /** The `operationId`, the name of the method in generated clients. */
  id: string
  summary: string
  description?: string
  tag: string
  params?: P
  query?: Q
  body?: B
  /** The body may be JSON or this file; see `acceptUploads`. */
  csvBody?: TextFile
  /** The body must be a file: CSV, XLSX, or a form that contains one; see `acceptUploads`. */
  fileBody?: TextFile & { name: string }
  /** The body must be a file of any kind; see `acceptUploads`. */
  bytesBody?: { name: string; description: string }
  success: {
    status: 200 | 201 | 202
    description: string
    /** Of the JSON; without it, the answer is one of the files. */
    schema?: TSchema
    headers?: Record<string, TSchema>
    csv?: TextFile
    xml?: TextFile
    /** A file of any kind. */
    bytes?: string
    /** The fuller shape, for callers that request it; see `prefersRepresentation`. `schema` is the published shape. */
    representation?: { description: string; schema: TSchema }
  }
  /** A second successful answer. */
  alternative?: { status: 200; description: string; schema: TSchema }
  /** The problems it can answer in addition to those of every operation. */
  problems?: ProblemName[]
  /** Operations outside `/v1` need no key. */
  public?: boolean
  /** The operation is for member sessions instead of API keys. */
  session?: true
  deprecated?: true
}

// Any operation can answer with these.
const commonProblems: ProblemName[] = [
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
const keyProblems: ProblemName[] = ['ApiKeyRefused', 'Forbidden', 'IdempotencyKeyReused', 'Conflict']
const sessionProblems = keyProblems.map(name => (name === 'ApiKeyRefused' ? 'SessionRefused' : name))

/**
 * Declares an operation once. Validation, the handler's types and the OpenAPI document, with every status and code that the
 * operation can answer, derive from it.
 */
export function operation<
  P extends TSchema | undefined = undefined,
  Q extends TSchema | undefined = undefined,
  B extends TSchema | undefined = undefined,
>(declared: Operation<P, Q, B>) {
  const names: ProblemName[] = [
    ...commonProblems,
    ...(declared.public ? [] : declared.session ? sessionProblems : keyProblems),
    ...(declared.params === undefined ? [] : (['PathValidation'] as const)),
    ...(declared.problems ?? []),
  ]
  const { status, representation, ...success } = declared.success
  const schema = {
    operationId: declared.id,
    summary: declared.summary,
    tags: [declared.tag],
    ...(declared.description === undefined ? {} : { description: declared.description }),
    ...(declared.deprecated === undefined ? {} : { deprecated: true }),
    ...(declared.session ? { security: [{ memberSession: [] }] } : {}),
    ...(declared.public ? { security: [] } : { headers: requestHeaders(representation !== undefined) }),
    response: {
      [status]: {
        description: [success.description, ...(representation ? [withPreference(representation)] : [])].join('\n\n'),
        headers: {
          ...answerHeaders,
          ...(declared.public ? {} : replayedHeader),
          ...(declared.deprecated ? deprecationHeaders : {}),
          ...(representation === undefined ? {} : preferenceAppliedHeader),
          ...success.headers,
        },
        content: {
          ...jsonContent(success.schema, representation?.schema),
          ...csvContent(success.csv),
          ...textContent('text/xml', success.xml),
          ...bytesContent(success.bytes),
        },
      },
      ...alternativeOf(declared.alternative),
      ...refusals(names),
    },
  }
  // Contains only what was declared, so that the handler's types derive from it.
  return {
    ...schema,
    ...(declared.params === undefined ? {} : { params: declared.params }),
    ...(declared.query === undefined ? {} : { querystring: declared.query }),
    ...(declared.body === undefined ? {} : { body: bodySchema(declared.body, declared.csvBody) }),
    ...(declared.fileBody === undefined ? {} : { body: fileSchema(declared.fileBody) }),
    ...(declared.bytesBody === undefined ? {} : { body: bytesSchema(declared.bytesBody) }),
  } as typeof schema & FastifySchema & Given<'params', P> & Given<'querystring', Q> & Given<'body', B>
}

function requestHeaders(hasRepresentation: boolean) {
  return hasRepresentation ? Type.Object({ ...IdempotencyHeader.properties, ...preferHeader }) : IdempotencyHeader
}

function withPreference({ description }: { description: string }): string {
  return `With \`Prefer: return=representation\`: ${description} Its schema is in \`/openapi.json?prefer=representation\`.`
}

function alternativeOf(alternative: { status: number; description: string; schema: TSchema } | undefined) {
  if (alternative === undefined) return {}
  const { status, description, schema } = alternative
  const headers = { ...answerHeaders, ...replayedHeader }
  return { [status]: { description, headers, content: jsonContent(schema, undefined) } }
}

function bodySchema(json: TSchema, csv: TextFile | undefined): object {
  return csv === undefined ? json : { content: { 'application/json': { schema: json }, ...csvContent(csv) } }
}

function fileSchema({ name, description, example }: TextFile & { name: string }): object {
  const file = { title: name, type: 'string', format: 'binary', description }
  const form = { type: 'object', required: ['file'], properties: { file }, additionalProperties: false }
  return {
    content: {
      [mediaTypes.csv]: { schema: { ...file, examples: [example] } },
      [mediaTypes.xlsx]: { schema: file },
      [mediaTypes.form]: { schema: form },
    },
  }
}

function bytesSchema({ name, description }: { name: string; description: string }): object {
  const schema = { title: name, type: 'string', format: 'binary', description }
  return { content: { [mediaTypes.bytes]: { schema } } }
}

function bytesContent(description: string | undefined) {
  if (description === undefined) return {}
  return { [mediaTypes.bytes]: { schema: Type.Unsafe<string>({ type: 'string', format: 'binary', description }) } }
}

function jsonContent(schema: TSchema | undefined, fuller: TSchema | undefined) {
  if (schema === undefined) return {}
  const hints = { [nameHints]: namesOf(schema) }
  return { 'application/json': { schema, ...(fuller === undefined ? {} : { [fullerShape]: fuller }), ...hints } }
}

function namesOf(schema: TSchema): string[] {
  return 'title' in schema ? [`${schema.title}`] : []
}

function csvContent(csv: TextFile | undefined) {
  return textContent('text/csv', csv)
}

function textContent(mediaType: string, file: TextFile | undefined) {
  if (file === undefined) return {}
  return { [mediaType]: { schema: Type.String({ description: file.description, examples: [file.example] }) } }
}

type Given<K extends string, S> = S extends TSchema ? { [key in K]: S } : unknown

/**
 * Any header value, including inner spaces and tabs; HTTP trims them at the ends, and octets beyond ASCII are Latin-1.
 * The check constraint on `idempotency_keys.key` has the same maximum length.
 */
export const idempotencyKeyPattern =
  '^[\\x21-\\x7e\\x80-\\xff]([\\t\\x20-\\x7e\\x80-\\xff]{0,1022}[\\x21-\\x7e\\x80-\\xff])?$'

const IdempotencyHeader = Type.Object({
  'x-idempotency-key': Type.Optional(
    Type.String({
      pattern: idempotencyKeyPattern,
      description:
        'Makes the request safe to retry: for 7 days, the same key with the same request returns the first answer again, without a second effect. 1 to 1,024 characters; spaces are allowed inside.',
      examples: ['3f0c1f6e-8f5d-4c1e-9a53-0a8f0f0a7f11'],
    }),
  ),
})

const answerHeaders = {
  'x-request-id': Type.String({ description: 'Identifies this request in the log. Quote it to support.' }),
  'ratelimit-policy': Type.String({ description: 'The quota: `q` requests in `w` seconds.' }),
  ratelimit: Type.String({
    description: 'The remaining quota (`r`), and the seconds until it is full again (`t`).',
  }),
}

const replayedHeader = {
  'idempotency-replayed': Type.String({
    description: '`true` if this is the stored answer to an earlier request with the same key.',
  }),
}
const shouldRetryHeader = {
  'x-should-retry': Type.Enum(['true', 'false'], {
    type: 'string',
    description:
      '`true` if you should repeat the request unchanged (after `retry-after`, if set): it can then succeed, and cannot take effect twice. Otherwise `false`.',
  }),
}
const retryHeader = { 'retry-after': Type.String({ description: 'Seconds to wait before a retry, if known.' }) }
const deprecationHeaders = {
  deprecation: Type.String({
    description: 'When the operation was deprecated: `@` and seconds since 1970 (RFC 9745).',
  }),
  sunset: Type.String({ description: 'When the operation will be removed (RFC 8594).' }),
  link: Type.String({ description: 'The operation that replaces this one.' }),
}

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

function refusals(names: ProblemName[]): Record<string, object> {
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
      ...answerHeaders,
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
  const reason = (STATUS_CODES[status] ?? status).replaceAll(/[^A-Za-z]/g, '')
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
  return Type.Object(
    { issues: Type.Array(shapes.length === 1 && only ? only : Type.Union(shapes), { minItems: 1 }) },
    { additionalProperties: false },
  )
}
