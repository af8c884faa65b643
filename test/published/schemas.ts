import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

type Json = Record<string, unknown>
type Operation = { operationId: string; responses: Record<string, { content: Record<string, { schema: object }> }> }
type Published = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object> }
}
/** Any JSON that the service sent. */
export type Body = unknown
export type PublishedOperation = { id: string; status: number; validate: ValidateFunction }

/** The published operations by `operationId`, each with its success status and a validator of its response. */
export function publishedOperations(file: string): Map<string, PublishedOperation> {
  const { paths, components } = JSON.parse(readFileSync(file, 'utf8')) as Published
  const ajv = validator()
  const $defs = closed(components.schemas) as Json
  return new Map(
    Object.values(paths)
      .flatMap(methods => Object.values(methods))
      .map(({ operationId: id, responses }) => {
        const success =
          Object.keys(responses).find(status => status.startsWith('2')) ?? assert.fail(`${id} never succeeds`)
        const schema = responses[success]?.content['application/json']?.schema
        assert(schema, `${id} responds without JSON`)
        return [id, { id, status: Number(success), validate: ajv.compile({ $defs, ...(closed(schema) as Json) }) }]
      }),
  )
}

/**
 * Validators of issues by code, from the tables of section 7: `code`, `message` and the extra fields of the code,
 * but no others.
 */
export function issueValidators(page: string): Map<string, ValidateFunction> {
  const [, section = ''] = /^## 7\. Errors$(.*?)^## 8\./ms.exec(readFileSync(page, 'utf8')) ?? []
  const ajv = validator()
  const validators = new Map<string, ValidateFunction>()
  for (const [heading, table] of tablesOf(section))
    for (const [code = '', cell = ''] of table) {
      const extra = heading.startsWith('Specific') ? fieldIn(cell) : heading.includes('path') ? { path: text } : {}
      const properties = { code: { const: code }, message: text, ...extra }
      validators.set(
        code,
        ajv.compile({ type: 'object', required: Object.keys(properties), properties, additionalProperties: false }),
      )
    }
  return validators
}

const text = { type: 'string', minLength: 1 }
const memberId = { type: 'string', pattern: '^mem_' }
// The page declares a limit's amount as a string but shows an integer, as in Money.
const money = {
  type: 'object',
  required: ['amount', 'currency'],
  properties: { amount: { type: 'integer' }, currency: { type: 'string', pattern: '^[A-Z]{3}$' } },
  additionalProperties: false,
}
const extraFields: Record<string, object> = { memberId, row: text, email: text, lowerLimit: money, upperLimit: money }

function fieldIn(cell: string): Json {
  const name = /^\w+/.exec(cell)?.[0] ?? ''
  if (name === 'none') return {}
  return { [name]: extraFields[name] ?? assert.fail(`Section 7 has the unknown field ${cell}`) }
}

/** The rows of each table, by the heading above it. */
function tablesOf(section: string): [heading: string, rows: string[][]][] {
  return section
    .split(/^### /m)
    .slice(1)
    .map(part => {
      const lines = part.split('\n').filter(line => line.startsWith('|'))
      const rows = lines.slice(2).map(line =>
        line
          .split('|')
          .slice(1, -1)
          .map(cell => cell.trim()),
      )
      return [part.split('\n', 1)[0] ?? '', rows]
    })
}

function validator(): Ajv2020 {
  // The published pattern of e-mail addresses is invalid with the flag u.
  const ajv = new Ajv2020({ strict: false, allErrors: true, unicodeRegExp: false })
  formats.default(ajv)
  return ajv
}

/** An OpenAPI 3.0 schema as JSON Schema in which every object is closed. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const { example: _, nullable, $ref, ...rest } = schema as Json
  if (typeof $ref === 'string') return { $ref: $ref.replace('#/components/schemas/', '#/$defs/') }
  const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, closed(value)]))
  const whole: AnySchemaObject = 'properties' in inner ? { ...inner, additionalProperties: false } : inner
  return nullable === true ? { anyOf: [whole, { type: 'null' }] } : whole
}

/** Copies of the body with an unknown field, in each of its objects in turn. */
export function* withOddField(body: Body): Generator<Body> {
  if (typeof body !== 'object' || body === null) return
  if (!Array.isArray(body)) yield { ...body, odd: 1 }
  for (const [key, value] of Object.entries(body))
    for (const inner of withOddField(value))
      yield Array.isArray(body) ? body.with(Number(key), inner) : { ...body, [key]: inner }
}
