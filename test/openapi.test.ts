import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expect, test } from 'vitest'

type Schema = { properties: Record<string, { enum: string[] }> }
type Discriminated = {
  discriminator: { propertyName: string; mapping: Record<string, string> }
  oneOf: { $ref: string }[]
}
const document = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8'))

function formatsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  // An example may have a field of this name.
  const inside = Object.entries(value).flatMap(([key, inner]) => (/^examples?$/.test(key) ? [] : formatsIn(inner)))
  return 'format' in value && typeof value.format === 'string' ? [value.format, ...inside] : inside
}

function discriminatedIn(value: unknown): Discriminated[] {
  if (typeof value !== 'object' || value === null) return []
  const inside = Object.values(value).flatMap(discriminatedIn)
  return 'discriminator' in value ? [value as Discriminated, ...inside] : inside
}

test('every format is one that a strict client knows', () => {
  const strict = new Ajv2020({ strict: true })
  formats.default(strict)
  const named = formatsIn(document)
  expect(named.length).toBeGreaterThanOrEqual(50)
  for (const format of new Set(named)) {
    expect(() => strict.compile({ type: 'string', format }), format).not.toThrow()
  }
})

test('every discriminator maps each value to the one schema with that value', () => {
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

test('an error, a header or a parameter that operations have in common is declared once', () => {
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
