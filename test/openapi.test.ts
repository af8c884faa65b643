import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expect, test } from 'vitest'
import { withPartsInPlace } from '../src/contract/shared-parts.ts'

type Schema = { properties: Record<string, { enum: string[] }> }
type Discriminated = {
  discriminator: { propertyName: string; mapping: Record<string, string> }
  oneOf: { $ref: string }[]
}
const text = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')
const document = JSON.parse(text)
type Operation = { responses: Record<string, object> }

function formatsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  // An example may have a field with this name.
  const inside = Object.entries(value).flatMap(([key, inner]) => (/^examples?$/.test(key) ? [] : formatsIn(inner)))
  return 'format' in value && typeof value.format === 'string' ? [value.format, ...inside] : inside
}

function discriminatedIn(value: unknown): Discriminated[] {
  if (typeof value !== 'object' || value === null) return []
  const inside = Object.values(value).flatMap(discriminatedIn)
  return 'discriminator' in value ? [value as Discriminated, ...inside] : inside
}

test('every format is known to a strict client', () => {
  const strict = new Ajv2020({ strict: true })
  formats.default(strict)
  const named = formatsIn(document)
  // A format in a named schema counts once, however many fields use it.
  expect(named.length).toBeGreaterThanOrEqual(15)
  for (const format of new Set(named)) {
    expect(() => strict.compile({ type: 'string', format }), format).not.toThrow()
  }
})

test('every discriminator maps each value to the only schema with that value', () => {
  const found = discriminatedIn(document)
  expect(found.length).toBeGreaterThanOrEqual(2)
  for (const { discriminator, oneOf } of found) {
    const { propertyName, mapping } = discriminator
    expect(new Set(Object.values(mapping))).toEqual(new Set(oneOf.map(({ $ref }) => $ref)))
    expect(Object.keys(mapping)).toHaveLength(oneOf.length)
    for (const [value, $ref] of Object.entries(mapping)) {
      const schema: Schema = document.components.schemas[$ref.replace('#/components/schemas/', '')]
      expect(schema.properties[propertyName]?.enum).toEqual([value])
    }
  }
})

test('a body is required, unless the operation works without one', () => {
  type Operation = { operationId: string; requestBody?: { required: boolean } }
  const operations = Object.values<Record<string, Operation>>(document.paths).flatMap(path => Object.values(path))
  const withOptionalBody = operations.filter(({ requestBody }) => requestBody?.required === false)
  expect(withOptionalBody.map(({ operationId }) => operationId).sort()).toEqual([
    'failSandboxWithdrawal',
    'holdSandboxWithdrawal',
    'paySandboxWithdrawal',
    'returnSandboxWithdrawal',
    'rotateWebhookSecret',
    'submitSandboxWithdrawal',
  ])
})

test('an error, header or parameter that operations share is declared once', () => {
  type Operation = { parameters?: object[]; responses: Record<string, { $ref?: string; headers?: object }> }
  const operations = Object.values<Record<string, Operation>>(document.paths).flatMap(path => Object.values(path))
  const inPlace = operations.flatMap(({ parameters = [], responses }) => [
    ...parameters,
    ...Object.values(responses).flatMap(({ headers = {} }) => Object.values(headers)),
    ...Object.entries(responses).flatMap(([status, answer]) => (Number(status) >= 400 ? [answer] : [])),
  ])
  const spelledOut = inPlace.filter(part => !('$ref' in part)).map(part => JSON.stringify(part))
  expect(spelledOut.length).toBeGreaterThan(20)
  expect(new Set(spelledOut).size).toBe(spelledOut.length)
})

test('the headers of every response are declared once, and a tool that inlines shared parts finds them everywhere', () => {
  const common = ['x-request-id', 'ratelimit-policy', 'ratelimit']
  expect(Object.keys(document['x-response-headers'])).toEqual(common)
  // For a client that does not read the extension.
  expect(Object.keys(document.components.responses.AnyOperation.headers)).toEqual(expect.arrayContaining(common))
  const answersOf = ({ paths }: typeof document) =>
    Object.values<Record<string, Operation>>(paths)
      .flatMap(Object.values)
      .flatMap(({ responses }: Operation) => Object.values(responses)) as { headers?: object; $ref?: string }[]
  for (const { headers = {} } of answersOf(document))
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['ratelimit']))
  const inPlace = answersOf(withPartsInPlace(document))
  expect(inPlace.length).toBeGreaterThan(1000)
  for (const { headers = {} } of inPlace) expect(Object.keys(headers)).toEqual(expect.arrayContaining(common))
})

test('is smaller than 320,000 bytes, so that a person can open it and a generator reads it quickly', () => {
  expect(Buffer.byteLength(text)).toBeLessThan(320_000)
})

test('the errors that every operation can return are declared once, by status', () => {
  const { responses, schemas } = document.components
  const common = responses.AnyOperation['x-statuses']
  expect(Object.keys(common)).toEqual(['408', '413', '415', '429', '431', '500', '503'])
  const codes = ({ content }: typeof common) =>
    [content['application/json'].schema.properties.issues.items]
      .flatMap(items => items.anyOf ?? items)
      .map(({ $ref }) => schemas[$ref.split('/').at(-1)].properties.code.enum[0])
  expect(Object.values(common).flatMap(codes)).toEqual([
    ...['BadRequest', 'BadRequest', 'BadRequest', 'RateLimitExceeded', 'BadRequest'],
    ...['InternalServerError', 'InternalServerError'],
  ])
  // A client that does not read the extension sees the union of their shapes.
  expect(codes(responses.AnyOperation)).toEqual(['BadRequest', 'RateLimitExceeded', 'InternalServerError'])
  for (const { responses } of Object.values<Record<string, Operation>>(document.paths).flatMap(Object.values)) {
    expect(responses.default).toEqual({ $ref: '#/components/responses/AnyOperation' })
  }
})

const representation = JSON.parse(readFileSync(new URL('../openapi-representation.json', import.meta.url), 'utf8'))

test('each success has one shape; with a preference, the second document declares the fuller one and requires the header', () => {
  const successesOf = (from: typeof document) =>
    Object.values<Record<string, Operation & { operationId: string }>>(from.paths)
      .flatMap(methods => Object.values(methods))
      .map(({ operationId, responses }) => ({
        operationId,
        success: Object.entries(responses).filter(([status]) => status.startsWith('2')),
      }))
  for (const each of [document, representation])
    for (const { operationId, success } of successesOf(each))
      for (const [, answer] of success) {
        const { content = {} } = answer as { content?: Record<string, { schema?: object }> }
        expect(Object.keys(content['application/json']?.schema ?? {}), operationId).not.toContain('anyOf')
      }
  const [published, fuller] = [successesOf(document), successesOf(representation)]
  const differing = published.filter(
    ({ success }, index) => JSON.stringify(success) !== JSON.stringify(fuller[index]?.success),
  )
  expect(differing.map(({ operationId }) => operationId).sort()).toEqual([
    'completeWithdrawal',
    'createWithdrawalIntent',
    'getTiers',
    'getWithdrawals',
  ])
  expect(document.components.parameters.prefer.required).toBeUndefined()
  expect(representation.components.parameters.prefer).toMatchObject({
    required: true,
    schema: { enum: ['return=representation'] },
  })
})
