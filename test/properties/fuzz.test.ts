import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withPartsInPlace } from '../../src/contract/shared-parts.ts'
import { euroRail } from '../banks/file-bank.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { extent } from '../runner/extent.ts'

type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  required?: string[]
  pattern?: string
  format?: string
  properties?: Record<string, Schema>
  items?: Schema
  examples?: unknown[]
  minimum?: number
  maximum?: number
}
type Parameter = { in: string; name: string; schema: Schema; example?: unknown }
type Operation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema }> }
}

type Schemas = Record<string, Schema>

function operationsIn(file: string) {
  const { paths, components } = withPartsInPlace(
    JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')),
  )
  const schemas: Schemas = components.schemas
  return Object.entries<Record<string, Operation>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation, schemas })),
  )
}
const [operations, ofOperators] = [operationsIn('openapi.json'), operationsIn('openapi-operator.json')]

/** Operations that move time, delete data that others need, or take seconds, so they are tried last and less often. */
const farReaching = new Set([
  'moveSandboxClock',
  'seedSandbox',
  'resetSandbox',
  'getSandboxTestValues',
  'pauseSandbox',
  'addSandboxBankFault',
])
const isFarReaching = ({ operation }: { operation: Operation }) => farReaching.has(operation.operationId)

let harness: Harness
let ids: string[]
beforeAll(async () => {
  harness = await startHarness({ rails: [euroRail({ automatic: null })] })
  const memberId = await harness.addMember({ available: 1_000_000 })
  const foreign = await harness.addMember({ available: 1_000_000, key: harness.other.key })
  const amount = { amount: 5_000, currency: 'GBP' }
  const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount } })
  // Not the partner of the requests, because the fuzzed operations also suspend it.
  const { partner, payCycle } = await harness.addPartner('Administered')
  const key = await harness.addKey(['members:read'], { partnerId: partner.id })
  ids = [memberId, foreign, intent.body.withdrawalIntentId, harness.payCycle.id, partner.id, payCycle.id, key.key.id]
  ids.push('euro-files')
})
afterAll(() => harness.stop())

const nastyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    '\ud800',
    '__proto__',
    "'; drop table members; --",
    '%00',
    '../..',
    '\u202e',
    'x'.repeat(5_000),
    '=1+1',
    '2026-02-30',
  ),
)
const nastyValue = fc.oneof(
  nastyText,
  fc.constantFrom(null, true, 0, -1, 1.5, 1e308, 2 ** 53, -0, [], {}),
  fc.jsonValue({ maxDepth: 2 }),
)

/** Generates values that match a schema; with `odd`, sometimes also near misses and arbitrary values. */
function like(schema: Schema, { odd, schemas }: { odd: boolean; schemas: Schemas }): fc.Arbitrary<unknown> {
  const good = fitting(schema, { odd, schemas })
  return odd ? fc.oneof({ weight: 6, arbitrary: good }, { weight: 1, arbitrary: nastyValue }) : good
}

function fitting(schema: Schema, how: { odd: boolean; schemas: Schemas }): fc.Arbitrary<unknown> {
  const { odd, schemas } = how
  if (schema.$ref !== undefined) return fitting(schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, how)
  const branches = schema.anyOf ?? schema.oneOf
  if (branches !== undefined) return fc.oneof(...branches.map(each => fitting(each, how)))
  if (schema.enum !== undefined)
    return fc.constantFrom(...schema.enum, ...(schema.enum.includes('GBP') ? Array(200).fill('GBP') : []))
  if ('const' in schema) return fc.constant(schema.const)
  switch (schema.type) {
    case 'object': {
      const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => [name, like(field, how)] as const)
      const requiredKeys = odd ? [] : (schema.required ?? [])
      return fc.record(Object.fromEntries([...fields, ...(odd ? [['surprise', fc.constant(1)] as const] : [])]), {
        requiredKeys,
      })
    }
    case 'array':
      return fc.array(like(schema.items ?? {}, how), { minLength: odd ? 0 : 1, maxLength: 4 })
    case 'integer':
      return fc.oneof(
        fc.constantFrom(1, 50, 1_000, 5_000),
        fc.integer({ min: schema.minimum ?? -1e15, max: schema.maximum ?? 1e15 }),
      )
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default: {
      const known = [
        ...ids,
        ...((schema.examples ?? []) as string[]),
        'Silver',
        '2026-03-10',
        '2026-03-10T09:00:00Z',
        '2016-12-31T23:59:60Z',
        'FR1420041010050500013M02606',
      ]
      const matching = known.filter(text => schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(text))
      const formatted =
        schema.format === 'email' ? fc.emailAddress() : fc.constantFrom(...(matching.length > 0 ? matching : known))
      return odd ? fc.oneof(formatted, fc.constantFrom(...known)) : formatted
    }
  }
}

const numRuns = extent({ short: 200, long: 5_000 })
const numRunsFar = extent({ short: 24, long: 200 })
const numRunsOfOperators = extent({ short: 200, long: 5_000 })

test('every input gets a response declared in openapi.json, and never a server error', {
  timeout: 120_000,
}, async () => {
  const statuses = await fuzz(
    operations.filter(each => !isFarReaching(each)),
    { numRuns },
  )
  // Fuzzing that never gets past validation would prove little.
  expect(statuses.filter(status => status < 300).length).toBeGreaterThan(numRuns / 30)
  expect(statuses.filter(status => status === 404 || status === 422).length).toBeGreaterThan(numRuns / 60)
})

test('every input of operations that move time or empty a sandbox gets a declared response too', {
  timeout: 120_000,
}, async () => {
  const statuses = await fuzz(operations.filter(isFarReaching), { numRuns: numRunsFar })
  expect(statuses.filter(status => status < 300).length).toBeGreaterThan(numRunsFar / 30)
})

test('every input of the operators’ API gets a declared response too', { timeout: 120_000 }, async () => {
  const statuses = await fuzz(ofOperators, { numRuns: numRunsOfOperators })
  expect(statuses.filter(status => status < 300).length).toBeGreaterThan(numRunsOfOperators / 10)
  expect(statuses.filter(status => status === 404 || status === 409).length).toBeGreaterThan(numRunsOfOperators / 60)
})

let operatorKey = ''
let operatorKeyUses = 0

/** A key for some requests, because one operator may send only a hundred at once. */
async function nextOperatorKey(): Promise<string> {
  if (operatorKeyUses % 90 === 0) operatorKey = (await harness.addOperator()).secret
  operatorKeyUses += 1
  return operatorKey
}

/** A session for each request, because one session may send only a few requests at once. */
async function newToken(): Promise<string> {
  const body = { memberId: ids[0], scope: 'withdraw' }
  return (await harness.call('POST', '/v1/member-sessions', { body })).body.token
}

/** Null four times out of five. */
function sometimes<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary })
}

async function fuzz(some: typeof operations, { numRuns }: { numRuns: number }): Promise<number[]> {
  const request = fc
    .tuple(fc.constantFrom(...some), fc.boolean())
    .chain(([{ path, method, operation, schemas }, odd]) => {
      const how = { odd, schemas }
      const parameters = (operation.parameters ?? []).filter(({ in: where }) => where !== 'header')
      const body = operation.requestBody?.content['application/json']?.schema
      return fc.record({
        method: fc.constant(method),
        path: fc.constant(path),
        parameters: fc.tuple(
          ...parameters.map(({ in: where, name, schema }) =>
            fc.record({ where: fc.constant(where), name: fc.constant(name), value: like(schema, how) }),
          ),
        ),
        extraQuery: odd ? sometimes(fc.tuple(nastyText, nastyText)) : fc.constant(null),
        body: body === undefined ? fc.constant(undefined) : like(body, how),
        isFile: fc.constant(operation.requestBody?.content['application/octet-stream'] !== undefined),
        file: nastyText,
        idempotencyKey: sometimes(fc.constantFrom('a', 'b', 'odd key', ' ', 'x'.repeat(1_025))),
      })
    })
  const statuses: number[] = []
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, parameters, extraQuery, body, isFile, file, idempotencyKey }) => {
      // This operation takes ten seconds.
      fc.pre(!JSON.stringify(body ?? null).includes('ten_thousand_members'))
      const text = (value: unknown) =>
        (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).toWellFormed()
      const query = new URLSearchParams()
      let url = path
      for (const { where, name, value } of parameters) {
        if (where === 'path') url = url.replace(`{${name}}`, encodeURIComponent(text(value)).slice(0, 2_000))
        else for (const each of [value].flat()) query.append(name, text(each).slice(0, 500))
      }
      if (extraQuery !== null) query.append(text(extraQuery[0]).slice(0, 50), text(extraQuery[1]).slice(0, 500))
      const isOfMember = path.startsWith('/v1/me/') || path === '/v1/me'
      const answer = await harness.call(method, query.size === 0 ? url : `${url}?${query}`, {
        ...(path.startsWith('/operator/') ? { key: await nextOperatorKey() } : {}),
        ...(isFile ? { raw: file } : body === undefined ? {} : { raw: JSON.stringify(body) }),
        // Node refuses to send header values outside Latin-1.
        headers: {
          ...(idempotencyKey === null ? {} : { 'x-idempotency-key': idempotencyKey }),
          ...(isFile ? { 'content-type': 'application/octet-stream' } : {}),
          ...(isOfMember ? { authorization: `Bearer ${await newToken()}` } : {}),
        },
      })
      expect(answer.status).toBeLessThan(500)
      statuses.push(answer.status)
    }),
    { numRuns },
  )
  return statuses
}
