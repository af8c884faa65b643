/** The part of OpenAPI 3.1 that our document uses. */
export type Document = {
  info: { title: string; version: string; description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, OperationObject>>
  /** The requests that the service sends, by type of event. */
  webhooks?: Record<string, { post: OperationObject }>
  components: { schemas: Record<string, Schema> }
}

type OperationObject = {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  deprecated?: boolean
  security?: object[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, DocumentedResponse>
}

/** The credential that a caller of an operation sends: an API key, the token of a member session, or nothing. */
export function callerOf({ security }: { security?: object[] }): 'key' | 'token' | 'anyone' {
  if (security === undefined) return 'key'
  if (security.some(each => 'memberSession' in each)) return 'token'
  return security.length > 0 ? 'key' : 'anyone'
}

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  example?: unknown
  schema: Schema
}

export type DocumentedResponse = {
  description: string
  headers?: Record<string, { description?: string }>
  content?: Record<string, Content>
}

export type Content = { schema: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }

export type Schema = {
  $ref?: string
  title?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  default?: unknown
  example?: unknown
  examples?: unknown[]
}

/** One operation with its method and path. */
export type Operation = OperationObject & { method: string; path: string }

export function operationsOf(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
}

/** Resolves a reference; the name becomes the title. Its siblings, such as a description, take precedence. */
export function resolve(schema: Schema, { components }: Document): Schema {
  if (schema.$ref === undefined) return schema
  const { $ref, ...beside } = schema
  const title = $ref.replace('#/components/schemas/', '')
  return { title, ...components.schemas[title], ...beside }
}

/** The alternatives of a union except `null`, and whether null is among them. */
export function alternativesOf({ anyOf, oneOf }: Schema): { schemas: Schema[]; isNullable: boolean } {
  const all = anyOf ?? oneOf ?? []
  const schemas = all.filter(schema => schema.type !== 'null')
  return { schemas, isNullable: schemas.length < all.length }
}

/** The given example of a body, or one that its schema allows. */
export function exampleOfContent({ schema, example, examples = {} }: Content, document: Document): unknown {
  return example ?? Object.values(examples)[0]?.value ?? exampleOf(schema, document)
}

/** A value that the schema allows. An object gets its required fields or, if it has none, the fields with an example. */
export function exampleOf(schema: Schema, document: Document): unknown {
  const resolved = resolve(schema, document)
  const given = resolved.example ?? resolved.examples?.[0] ?? resolved.const ?? resolved.enum?.[0] ?? resolved.default
  if (given !== undefined) return given
  const [alternative] = alternativesOf(resolved).schemas
  if (alternative !== undefined) return exampleOf(alternative, document)
  if (resolved.allOf !== undefined) {
    return Object.assign({}, ...resolved.allOf.map(part => exampleOf(part, document)))
  }
  if (resolved.type === 'array') return resolved.items === undefined ? [] : [exampleOf(resolved.items, document)]
  if (resolved.type === 'object') {
    const { properties = {}, required = [] } = resolved
    const hasExample = (name: string) => resolve(properties[name] ?? {}, document).examples !== undefined
    const wanted = required.length > 0 ? required : Object.keys(properties).filter(hasExample)
    return Object.fromEntries(wanted.map(name => [name, exampleOf(properties[name] ?? {}, document)]))
  }
  if (resolved.type === 'integer') return resolved.minimum ?? 0
  if (resolved.type === 'boolean') return true
  if (resolved.format === 'date-time') return '2026-03-31T09:30:00.000Z'
  if (resolved.format === 'date') return '2026-03-31'
  return ''
}
