import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import type { FastifySchema } from 'fastify'
import { type Issue, issue, issuesMax, type ProblemName, problemOf } from '../errors.ts'
import { hasVisible, visibleFormat } from '../text.ts'
import { timeFormats } from '../time.ts'
import { type Fault, textFault } from './strict-json.ts'
import { UploadedFile } from './upload.ts'

// Nothing is coerced, defaulted or removed, and all problems are reported at once.
const ajv = new Ajv({
  allErrors: true,
  discriminator: true,
  verbose: true,
  strict: false,
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
})
formats.default(ajv)
for (const [name, validate] of Object.entries(timeFormats)) ajv.addFormat(name, validate)
ajv.addFormat(visibleFormat, hasVisible)

type Part = 'params' | 'querystring' | 'body'
export type Parts = { params: unknown; query: unknown; body: unknown; bodyFaults: Fault[] }

const partNames: Record<Part, { problem: ProblemName; whole: string }> = {
  params: { problem: 'PathValidation', whole: 'path' },
  querystring: { problem: 'QueryValidation', whole: 'query' },
  body: { problem: 'BodyValidation', whole: 'body' },
}

/**
 * Compiles a route's schema into a check of path, query and body that throws one `Problem` with all their issues.
 * A query arrives as text: its integers and lists are read by the schema first, and only when written canonically.
 */
export function compileValidation(schema: FastifySchema): (parts: Parts) => { query: unknown } {
  const validators = {
    params: ajv.compile((schema.params as object | undefined) ?? { type: 'object' }),
    querystring: ajv.compile(
      (schema.querystring as object | undefined) ?? { type: 'object', additionalProperties: false },
    ),
  }
  const checkBody = bodyChecker(schema.body)
  const readQuery = queryReader(schema.querystring)
  return parts => {
    const query = readQuery(parts.query)
    const found = [
      ...issuesOf('params', validators.params, parts.params, textFaults(parts.params)),
      ...issuesOf('querystring', validators.querystring, query, textFaults(query)),
      ...checkBody(parts),
    ]
    if (found.length > 0) throw problemOf(found.slice(0, issuesMax))
    return { query }
  }
}

type Found = { name: ProblemName; issue: Issue }[]

/** A body is JSON, a file, or either of them, as the schema says. */
function bodyChecker(schema: unknown): (parts: Parts) => Found {
  if (schema === undefined) return ({ body }) => (body === undefined ? [] : bodyRefused('This operation takes no body'))
  const { content } = schema as { content?: Record<string, { schema: object }> }
  const json = content === undefined ? (schema as object) : content['application/json']?.schema
  const takesFile = content?.['text/csv'] !== undefined
  const validate = json === undefined ? undefined : ajv.compile(json)
  return ({ body, bodyFaults }) => {
    const isFile = body instanceof UploadedFile
    // What is wrong with a file is for its reader to say, row by row.
    if (isFile && takesFile) return []
    if (validate === undefined) return bodyRefused('The body must be a file: CSV (.csv) or an Excel workbook (.xlsx)')
    if (isFile) return bodyRefused('The body must be JSON')
    return issuesOf('body', validate, body, bodyFaults)
  }
}

function bodyRefused(message: string): Found {
  return [{ name: 'BodyValidation', issue: issue('BodyValidation', message, { path: 'body' }) }]
}

function issuesOf(part: Part, validate: ValidateFunction, value: unknown, faults: Fault[]): Found {
  const isValid = validate(value)
  if (isValid && faults.length === 0) return []
  const { problem: name, whole } = partNames[part]
  const errors = isValid ? [] : chooseBranches(validate.errors ?? [])
  const issues = new Map<string, Issue>()
  for (const { path, message } of [...faults, ...errors.map(error => describe(error, whole))]) {
    // The first fault of a field is the one to mend first; a second one about the same place only confuses.
    if (!issues.has(path)) issues.set(path, issue(name, message, { path }))
  }
  return [...issues.values()].map(issue => ({ name, issue }))
}

// A failing union reports the errors of every branch, and itself right behind them. Only those of the branch that the caller
// meant help them: one of the right type, with the fewest errors.
function chooseBranches(errors: ErrorObject[]): ErrorObject[] {
  const kept: ErrorObject[] = []
  for (const error of errors) {
    if (error.keyword !== 'anyOf') {
      kept.push(error)
      continue
    }
    const inside = kept.splice(kept.findLastIndex(each => !isInside(each, error)) + 1)
    const branches = Object.values(Object.groupBy(inside, each => branchOf(each, error))).filter(b => b !== undefined)
    const typed = branches.filter(
      branch => !branch.some(each => each.keyword === 'type' && each.instancePath === error.instancePath),
    )
    kept.push(...(typed.toSorted((a, b) => a.length - b.length)[0] ?? [error]))
  }
  return kept
}

function isInside(error: ErrorObject, union: ErrorObject): boolean {
  return (
    error.schemaPath.startsWith(`${union.schemaPath}/`) &&
    (error.instancePath === union.instancePath || error.instancePath.startsWith(`${union.instancePath}/`))
  )
}

function branchOf(error: ErrorObject, union: ErrorObject): string {
  return error.schemaPath.slice(union.schemaPath.length + 1).split('/', 1)[0] ?? ''
}

function describe(error: ErrorObject, whole: string): Fault {
  const steps = error.instancePath
    .split('/')
    .slice(1)
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  const at = (step?: string) => [...steps, ...(step === undefined ? [] : [step])].map(short).join('.') || whole
  switch (error.keyword) {
    case 'required':
      return { path: at(error.params.missingProperty), message: `${at(error.params.missingProperty)} is required` }
    case 'additionalProperties':
      return {
        path: at(error.params.additionalProperty),
        message: `${at(error.params.additionalProperty)} is not a known field; check its spelling or leave it out`,
      }
    case 'discriminator': {
      const { tag } = error.params as { tag: string }
      const { oneOf } = error.parentSchema as { oneOf: { properties: Record<string, { const: string }> }[] }
      return {
        path: at(tag),
        message: `${at(tag)} must be one of ${listed(oneOf.map(each => each.properties[tag]?.const))}`,
      }
    }
    case 'enum':
      return { path: at(), message: `${at()} must be one of ${listed(error.params.allowedValues)}` }
    case 'const':
      return { path: at(), message: `${at()} must be ${JSON.stringify(error.params.allowedValue)}` }
    case 'pattern': {
      const example = (error.parentSchema as { examples?: string[] } | undefined)?.examples?.[0]
      return {
        path: at(),
        message: `${at()} has the wrong form${example === undefined ? '' : `; it looks like ${example}`}`,
      }
    }
    case 'format':
      return {
        path: at(),
        message: `${at()} must be ${formatsInWords[error.params.format as string] ?? 'of another form'}`,
      }
    case 'not':
      return {
        path: at(),
        message: `${at()} must not be ${JSON.stringify((error.schema as { const?: unknown } | undefined)?.const)}`,
      }
    case 'anyOf':
      return { path: at(), message: `${at()} has none of the forms that are allowed here` }
    default:
      return { path: at(), message: `${at()} ${error.message ?? 'is not valid'}` }
  }
}

const formatsInWords: Record<string, string> = {
  email: 'an e-mail address, like sam.okafor@example.com',
  date: 'a day that exists, like 2026-03-31',
  instant: 'an instant of a day that exists, like 2026-03-31T09:30:00.000Z',
  'day-or-instant': 'a day that exists, like 2026-03-31, or an instant of one, like 2026-03-31T09:30:00.000Z',
  [visibleFormat]: 'a text with a visible character',
}

// What the caller has named is told back, but not at any length.
function short(step: string): string {
  return step.slice(0, 100)
}

function listed(values: unknown[]): string {
  return values.length <= 12 ? values.join(', ') : `the ${values.length} listed values`
}

type QueryProperties = Record<string, { type?: string }>

function queryReader(schema: unknown): (query: unknown) => Record<string, unknown> {
  const properties = (schema as { properties?: QueryProperties } | undefined)?.properties ?? {}
  return query =>
    Object.fromEntries(
      Object.entries(query as Record<string, unknown>).map(([name, value]) => [
        name,
        read(value, properties[name]?.type),
      ]),
    )
}

function read(value: unknown, type: string | undefined): unknown {
  if (type === 'array') return Array.isArray(value) ? value : [value]
  if (type === 'integer' && typeof value === 'string' && /^(0|[1-9][0-9]{0,15})$/.test(value)) return Number(value)
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return value
}

function textFaults(values: unknown): Fault[] {
  return Object.entries((values ?? {}) as Record<string, unknown>).flatMap(([name, value]) =>
    [name, ...(Array.isArray(value) ? value : [value])].flatMap(text => {
      const fault = typeof text === 'string' ? textFault(text) : undefined
      return fault === undefined ? [] : [{ path: name, message: `${name} ${fault}` }]
    }),
  )
}
