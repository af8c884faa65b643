import type { ErrorObject } from 'ajv'
import { Type } from 'typebox'
import { type Issue, issue, type ProblemName, problemOf } from '../kernel/errors.ts'
import { ajv } from '../kernel/json-schema.ts'
import { visibleFormat } from '../kernel/text.ts'
import { FileBody, UnparsedJson } from './bodies.ts'
import { type Fault, faultsMax, textFault } from './faults.ts'
import { mediaTypes } from './media-types.ts'

// The most issues in one answer: more help no developer, and a hostile body could cause a hundred thousand.
const issuesMax = faultsMax - 1

type Part = 'params' | 'querystring' | 'body'
/** `disconnectSignal` aborts if the caller disconnects; `fingerprintStart` is set if the request has an idempotency key. */
export type Parts = {
  params: unknown
  query: unknown
  body: unknown
  bodyFaults: Fault[]
  disconnectSignal: () => AbortSignal
  fingerprintStart: ((query: unknown) => string) | undefined
}

/** The parsed query and body. `fingerprint` is set if the body was read in a thread. */
export type Validated = { query: unknown; body: unknown; fingerprint?: Buffer | undefined }

const partNames: Record<Part, { problem: ProblemName; whole: string }> = {
  params: { problem: 'PathValidation', whole: 'path' },
  querystring: { problem: 'QueryValidation', whole: 'query' },
  body: { problem: 'BodyValidation', whole: 'body' },
}

/** The schemas of the parts of a request. */
type Validatable = { params?: unknown; querystring?: unknown; body?: unknown }

/**
 * Compiles an operation's schema into a check of path, query and body that throws one `Problem` with all their issues, or with the
 * first hundred and a last one that says there are more.
 * A query arrives as text: the schema decides which values are parsed as integers or lists, and only canonical ones are.
 */
export function compileValidation(schema: Validatable): (parts: Parts) => Validated | Promise<Validated> {
  const checkParams = checkOf('params', schema.params ?? { type: 'object' })
  const checkQuery = checkOf('querystring', schema.querystring ?? { type: 'object', additionalProperties: false })
  const checkBody = bodyChecker(schema.body)
  const readQuery = queryReader(schema.querystring)
  return parts => {
    const query = readQuery(parts.query)
    const conclude = ({ found, body, fingerprint }: BodyChecked): Validated => {
      const all = [
        ...checkParams(parts.params, textFaults(parts.params)),
        ...checkQuery(query, textFaults(parts.query)),
        ...found,
      ]
      if (all.length > 0) throw problemOf(capped(all))
      return { query, body, fingerprint }
    }
    const checked = checkBody(parts, query)
    return checked instanceof Promise ? checked.then(conclude) : conclude(checked)
  }
}

type Found = { name: ProblemName; issue: Issue }[]

function capped(found: Found): Found {
  const next = found[issuesMax]
  if (next === undefined) return found
  const closing = issue(next.name, 'and more; fix these issues first', { path: next.issue.path })
  return [...found.slice(0, issuesMax), { name: next.name, issue: closing }]
}

type BodyChecked = { found: Found; body: unknown; fingerprint?: Buffer | undefined }

/** The schema decides whether a body is JSON, a file, or either. */
function bodyChecker(schema: unknown): (parts: Parts, query: unknown) => BodyChecked | Promise<BodyChecked> {
  if (schema === undefined) {
    return ({ body }) => ({ body, found: body === undefined ? [] : bodyRefused('This operation takes no body') })
  }
  const { content } = schema as { content?: Record<string, { schema: object }> }
  const json = content === undefined ? (schema as object) : content['application/json']?.schema
  const takesBytes = content?.[mediaTypes.bytes] !== undefined
  const takesFile = takesBytes || content?.[mediaTypes.csv] !== undefined
  const check = json === undefined ? undefined : checkOf('body', json)
  const isOptional = Type.IsOptional(schema)
  return ({ body, bodyFaults, disconnectSignal, fingerprintStart }, query) => {
    if (body === undefined && isOptional) return { body: {}, found: [] }
    const isFile = body instanceof FileBody
    // The file's reader reports its faults, row by row.
    if (isFile && takesFile) return { body, found: [] }
    if (json === undefined || check === undefined)
      return {
        body,
        found: bodyRefused(
          takesBytes
            ? `The body must be a file, sent as ${mediaTypes.bytes}`
            : 'The body must be a file: CSV (.csv) or an Excel workbook (.xlsx)',
        ),
      }
    if (!(body instanceof UnparsedJson)) return { body, found: check(body, bodyFaults) }
    return body
      .read(json, { signal: disconnectSignal(), fingerprintStart: fingerprintStart?.(query) })
      .then(({ faults, value, fingerprint }) => ({ body: value, found: issuesOf('body', faults), fingerprint }))
  }
}

function bodyRefused(message: string): Found {
  return [{ name: 'BodyValidation', issue: issue('BodyValidation', message, { path: 'body' }) }]
}

function checkOf(part: Part, schema: unknown): (value: unknown, faults: Fault[]) => Found {
  const find = compileFaults(schema as Schema, partNames[part].whole)
  return (value, faults) => issuesOf(part, [...faults, ...find(value)])
}

function issuesOf(part: Part, faults: Fault[]): Found {
  if (faults.length === 0) return []
  const { problem: name } = partNames[part]
  const issues = new Map<string, Issue>()
  for (const { path, message } of faults) {
    // Only the first fault of each field: a second one about the same place would confuse.
    if (!issues.has(path)) issues.set(path, issue(name, message, { path }))
  }
  return [...issues.values()].map(issue => ({ name, issue }))
}

/** The part of JSON Schema that `collect` uses. */
type Schema = {
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: unknown
  patternProperties?: Record<string, Schema>
  propertyNames?: Schema
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  discriminator?: { propertyName: string }
  const?: unknown
  not?: { const?: unknown }
  examples?: string[]
  minLength?: number
  maxLength?: number
}

/**
 * Compiles a schema into a function that finds the faults of a value, at most `faultsMax`.
 * @param whole the path of a fault that concerns the whole value
 */
export function compileFaults(schema: Schema, whole = partNames.body.whole): (value: unknown) => Fault[] {
  // On first use: compiling the schemas of all operations took longer than the rest of buildApp.
  let isValid: ReturnType<typeof ajv.compile> | undefined
  return value => {
    isValid ??= ajv.compile(schema)
    const faults: Fault[] = []
    if (!isValid(value)) collect(schema, value, { steps: [], whole, faults })
    return faults
  }
}

type Place = { steps: string[]; whole: string; faults: Fault[] }

// Descends the schema to the invalid values and lets Ajv name the fault of each. Does not descend into a value whose own type or
// length is wrong.
function collect(schema: Schema, value: unknown, place: Place): void {
  const { steps, faults } = place
  // Compiled on first use; Ajv caches it by schema.
  const isValid = ajv.compile(schema)
  if (faults.length >= faultsMax || isValid(value)) return
  const before = faults.length
  // The last error is that of the outermost keyword: a union's error comes after those of its branches.
  const error = isValid.errors?.at(-1)
  const inside = (step: string) => ({ ...place, steps: [...steps, step] })
  const isInside =
    error?.instancePath !== '' || ['required', 'additionalProperties', 'propertyNames'].includes(error.keyword)
  if (schema.oneOf !== undefined) {
    const branch = isInside || error?.keyword === 'oneOf' ? chosenBranch(schema, value) : undefined
    if (branch !== undefined) collect(branch, value, place)
  } else if (schema.anyOf !== undefined) {
    faults.push(...faultsOfBranch(schema.anyOf, value, place).slice(0, faultsMax - faults.length))
  } else if (isInside && Array.isArray(value) && schema.items !== undefined) {
    const isValidItem = ajv.compile(schema.items)
    for (let index = 0; index < value.length && faults.length < faultsMax; index++) {
      if (!isValidItem(value[index])) collect(schema.items, value[index], inside(String(index)))
    }
  } else if (isInside && typeof value === 'object' && value !== null) {
    const properties = schema.properties ?? {}
    for (const name of schema.required ?? []) {
      if (!Object.hasOwn(value, name)) faults.push(describe(required(name), schema, place))
    }
    const known = Object.entries(properties).filter(([name]) => Object.hasOwn(value, name))
    if (Object.keys(value).length > known.length) {
      for (const [name, further] of Object.entries(value)) {
        if (faults.length >= faultsMax) break
        if (!Object.hasOwn(properties, name)) collectFurther(schema, [name, further], { ...inside(name), outer: place })
      }
    }
    for (const [name, property] of known) collect(property, (value as Record<string, unknown>)[name], inside(name))
  }
  if (faults.length === before && error !== undefined) faults.push(describe(error, schema, place))
}

/** Finds the faults of a property that has no schema by name: one of a map, or an unknown one. */
function collectFurther(
  { patternProperties = {}, additionalProperties, propertyNames, ...schema }: Schema,
  [name, value]: [string, unknown],
  { outer, ...place }: Place & { outer: Place },
): void {
  const matching = Object.entries(patternProperties).filter(([pattern]) => new RegExp(pattern, 'u').test(name))
  if (propertyNames !== undefined && !ajv.compile(propertyNames)(name)) {
    const error = { keyword: 'propertyNames', instancePath: '', params: { propertyName: name } }
    outer.faults.push(describe(error, { ...schema, propertyNames }, outer))
  } else if (matching.length > 0) {
    for (const [, inner] of matching) collect(inner, value, place)
  } else if (additionalProperties === false) outer.faults.push(describe(unknown(name), schema, outer))
  else if (typeof additionalProperties === 'object') collect(additionalProperties as Schema, value, place)
}

const required = (missingProperty: string) => ({ keyword: 'required', instancePath: '', params: { missingProperty } })
const unknown = (additionalProperty: string) => ({
  keyword: 'additionalProperties',
  instancePath: '',
  params: { additionalProperty },
})

function chosenBranch({ oneOf, discriminator }: Schema, value: unknown): Schema | undefined {
  const tag = discriminator?.propertyName ?? ''
  const chosen = (value as Record<string, unknown> | null)?.[tag]
  return chosen === undefined ? undefined : oneOf?.find(each => each.properties?.[tag]?.const === chosen)
}

// Reports only the branch that the caller most likely meant: of the right type, with the fewest faults.
function faultsOfBranch(branches: Schema[], value: unknown, place: Place): Fault[] {
  const typed = branches.filter(branch => {
    const isValid = ajv.compile(branch)
    isValid(value)
    return !isValid.errors?.some(({ keyword, instancePath }) => keyword === 'type' && instancePath === '')
  })
  const found = typed.map(branch => {
    const faults: Fault[] = []
    collect(branch, value, { ...place, faults })
    return faults
  })
  return found.toSorted((a, b) => a.length - b.length)[0] ?? []
}

function describe(
  error: Pick<ErrorObject, 'keyword' | 'instancePath' | 'params' | 'message'>,
  schema: Schema,
  { steps: parents, whole }: Place,
): Fault {
  const steps = [
    ...parents,
    ...error.instancePath
      .split('/')
      .slice(1)
      .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~')),
  ]
  const at = (step?: string) => [...steps, ...(step === undefined ? [] : [step])].map(short).join('.') || whole
  const fault = (path: string, message: string) => ({ path, message: `${path} ${message}` })
  switch (error.keyword) {
    case 'required':
      return fault(at(error.params.missingProperty), 'is required')
    case 'additionalProperties':
      return fault(at(error.params.additionalProperty), 'is not a known field; check its spelling or leave it out')
    case 'propertyNames': {
      const { minLength = 0, maxLength = 0 } = schema.propertyNames ?? {}
      return fault(at(error.params.propertyName), `must have a name of ${minLength} to ${maxLength} characters`)
    }
    case 'maxProperties':
      return fault(at(), `must have at most ${error.params.limit} fields`)
    case 'discriminator': {
      const { tag } = error.params as { tag: string }
      return fault(at(tag), `must be one of ${listed((schema.oneOf ?? []).map(each => each.properties?.[tag]?.const))}`)
    }
    case 'enum':
      return fault(at(), `must be one of ${listed(error.params.allowedValues)}`)
    case 'const':
      return fault(at(), `must be ${JSON.stringify(error.params.allowedValue)}`)
    case 'pattern': {
      const example = schema.examples?.[0]
      return fault(at(), `has the wrong format${example === undefined ? '' : `; example: ${example}`}`)
    }
    case 'format':
      return fault(at(), `must be ${formatDescriptions[error.params.format as string] ?? 'in another format'}`)
    case 'not':
      return fault(at(), `must not be ${JSON.stringify(schema.not?.const)}`)
    case 'anyOf':
      return fault(at(), 'matches none of the allowed forms')
    default:
      return fault(at(), error.message ?? 'is not valid')
  }
}

const formatDescriptions: Record<string, string> = {
  email: 'an e-mail address, like sam.okafor@example.com',
  date: 'a day that exists, like 2026-03-31',
  instant: 'an instant of a day that exists, like 2026-03-31T09:30:00.000Z',
  'day-or-instant': 'a day that exists, like 2026-03-31, or an instant of one, like 2026-03-31T09:30:00.000Z',
  [visibleFormat]: 'a text with a visible character',
}

// Names that the caller sent are repeated in the answer, but not at full length.
function short(step: string): string {
  return step.slice(0, 100)
}

function listed(values: unknown[]): string {
  return values.length <= 12 ? values.join(', ') : `the ${values.length} listed values`
}

type QueryProperties = Record<string, { type?: string }>

/** Reads the values of a query by the schema. A property that is an object is sent as `name[key]=value`. */
function queryReader(schema: unknown): (query: unknown) => Record<string, unknown> {
  const properties = (schema as { properties?: QueryProperties } | undefined)?.properties ?? {}
  const maps = Object.keys(properties).filter(name => properties[name]?.type === 'object')
  return query => {
    const given = Object.entries(query as Record<string, unknown>)
    if (given.length === 0) return {}
    const isOfMap = (map: string, name: string) => name.startsWith(`${map}[`) && name.endsWith(']')
    const plain = given
      .filter(([name]) => !maps.some(map => isOfMap(map, name)))
      .map(([name, value]) => [name, read(value, properties[name]?.type)])
    const nested = maps.flatMap(map => {
      const pairs = given
        .filter(([name]) => isOfMap(map, name))
        .map(([name, value]) => [name.slice(map.length + 1, -1), value])
      return pairs.length === 0 ? [] : [[map, Object.fromEntries(pairs)]]
    })
    // Both `map=` and `map[key]=`: the former is the fault.
    return Object.fromEntries([...nested, ...plain])
  }
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
