import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { hasVisible, visibleFormat } from '../../src/kernel/text.ts'
import type { ApiResponse } from './api-response.ts'

type Declared = {
  $ref?: string
  content?: Record<string, { schema?: object }>
  headers?: Record<string, object>
  'x-statuses'?: Record<string, Declared>
}
type Operation = { operationId: string; responses: Record<string, Declared> }
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: object; responses: Record<string, Declared> }
}

const documentIn = (file: string): Document =>
  JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'))
const documents = {
  partners: documentIn('openapi.json'),
  representation: documentIn('openapi-representation.json'),
  operators: documentIn('openapi-operator.json'),
}
type Api = keyof typeof documents

const ajv = new Ajv2020({ allErrors: true, strict: false, formats: { [visibleFormat]: hasVisible } })
formats.default(ajv)
for (const [api, document] of Object.entries(documents)) ajv.addSchema({ $id: api, ...document })

const operations = (Object.keys(documents) as Api[]).flatMap(api =>
  Object.entries(documents[api].paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      api,
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
      literal: !path.includes('{'),
      path,
      operation,
    })),
  ),
)
const validators = new Map<string, ValidateFunction>()

/**
 * Checks a response against openapi.json, openapi-representation.json or openapi-operator.json: common headers and, for a
 * documented operation, a declared status with exactly the declared body.
 */
export function verifyResponse(method: string, path: string, response: ApiResponse): void {
  assertCommonParts(response)
  const bare = path.split('?', 1)[0] ?? ''
  const isFuller = response.headers['preference-applied'] !== undefined
  const candidates = operations
    .filter(known => known.method === method && known.pattern.test(bare))
    .filter(known => (known.api === 'representation') === isFuller)
  const found = candidates.find(candidate => candidate.literal) ?? candidates[0]
  if (found === undefined) {
    assert(response.status >= 400, `${method} ${path} is undocumented, but responded ${response.status}`)
    return
  }
  const { operationId, responses } = found.operation
  const { components } = documents[found.api]
  // The statuses behind the default response of every operation.
  const commonResponses = components.responses.AnyOperation?.['x-statuses'] ?? {}
  const isCommon = !(response.status in responses)
  const given = isCommon ? commonResponses[response.status] : responses[response.status]
  assert(given, `${operationId} responded ${response.status}, which its document does not declare: ${response.text}`)
  const shared = given.$ref?.split('/').at(-1)
  const declared = shared === undefined ? given : components.responses[shared]
  const fileType = fileTypeOf(response)
  if (fileType !== undefined) {
    assert(declared?.content?.[fileType], `${operationId} declares no ${fileType} body`)
    return
  }
  const hasFuller = declared?.headers?.['preference-applied'] !== undefined
  assert(hasFuller || !isFuller, `${operationId} declares no fuller representation`)
  const key = `${found.api} ${shared ?? `${operationId} ${response.status}`}`
  let validate = validators.get(key)
  if (validate === undefined) {
    const place = isCommon
      ? ['components', 'responses', 'AnyOperation', 'x-statuses', response.status]
      : shared === undefined
        ? ['paths', found.path, method.toLowerCase(), 'responses', response.status]
        : ['components', 'responses', shared]
    const pointer = [...place, 'content', 'application/json', 'schema']
    const escaped = pointer.map(step => encodeURIComponent(String(step).replaceAll('~', '~0').replaceAll('/', '~1')))
    validate = ajv.compile({ $ref: `${found.api}#/${escaped.join('/')}` })
    validators.set(key, validate)
  }
  assert(
    validate(response.body),
    `${operationId} ${response.status} is not as declared: ${ajv.errorsText(validate.errors)} in ${response.text}`,
  )
}

function fileTypeOf({ status, headers }: ApiResponse): string | undefined {
  const [, text, bytes] =
    /^(?:(text\/(?:csv|xml|html)); charset=utf-8|(application\/octet-stream))$/.exec(headers['content-type'] ?? '') ??
    []
  return status < 300 ? (text ?? bytes) : undefined
}

/** Checks the parts that every response has, whether or not openapi.json declares them. */
export function assertCommonParts(response: ApiResponse): void {
  const { headers, status, text } = response
  assert.equal(headers['cache-control'], 'no-store')
  if (fileTypeOf(response) === undefined) assert.equal(headers['content-type'], 'application/json; charset=utf-8')
  assert(headers['x-request-id'], 'x-request-id is missing')
  assert(headers.ratelimit, 'ratelimit is missing')
  assert(headers['ratelimit-policy'], 'ratelimit-policy is missing')
  assert(text.length > 0, 'the body is empty')
  if (status < 400) {
    assert.equal(headers['x-should-retry'], undefined)
    return
  }
  assert.match(headers['x-should-retry'] ?? 'missing', /^(true|false)$/)
  // A response that says when to retry must also say that a retry is right, unless the request may have taken effect.
  if (headers['retry-after'] !== undefined && !/may have taken effect/.test(text))
    assert.equal(headers['x-should-retry'], 'true')
  const { issues } = JSON.parse(text) as { issues: { code: unknown; message: unknown }[] }
  assert(Array.isArray(issues) && issues.length > 0, 'an error has no issues')
  for (const issue of issues) {
    assert.equal(typeof issue.code, 'string')
    assert.equal(typeof issue.message, 'string')
  }
}
