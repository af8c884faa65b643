import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'
import { ownFormats } from '../kernel/json-schema.ts'
import { type Described, fullerShape } from './description.ts'
import type { DocumentHead } from './documents.ts'
import { sortedByKey, withSharedParts } from './shared-parts.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

type Json = { [key: string]: unknown }

/**
 * The OpenAPI document of the operations that it covers.
 * @param options.webhooks the requests that the service sends, by type of event
 */
export function openApiDocument(
  head: DocumentHead,
  operations: readonly Described[],
  { webhooks = {} }: { webhooks?: Record<string, object> } = {},
): object {
  const { covers, title, introduction, tags, securitySchemes, defaultScheme } = head
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    if (!covers(operation.path)) continue
    const path = operation.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: operationObject(operation, head) }
  }
  return withSharedParts(
    withNamedSchemas({
      openapi: '3.1.0',
      info: { title, version, description: introduction, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
      servers: [{ url: '/', description: 'This server' }],
      security: [{ [defaultScheme]: [] }],
      tags,
      paths,
      webhooks,
      components: { securitySchemes },
    }),
  )
}

function operationObject(described: Described, { prefersRepresentation = false }: DocumentHead): Json {
  const { operationId, summary, tags, description, deprecated, security, params, querystring, headers, body } =
    described
  const { hasFuller, responses } = withOneShape(described.response, prefersRepresentation)
  const parameters = [
    ...parametersOf('query', querystring),
    ...parametersOf('path', params),
    ...parametersOf('header', hasFuller && prefersRepresentation ? requiringFuller(headers) : headers),
  ]
  return {
    ...{ operationId, summary, tags },
    ...(description === undefined ? {} : { description }),
    ...(deprecated === undefined ? {} : { deprecated }),
    ...(security === undefined ? {} : { security }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: requestBody(body) }),
    responses,
  }
}

/** Leaves one shape of each response: a generator makes a union of two that no program can tell apart. */
function withOneShape(response: Described['response'], prefersRepresentation: boolean) {
  let hasFuller = false
  const shaped = Object.entries(response).map(([status, { headers, content, ...rest }]) => {
    const media = Object.entries(content ?? {}).map(([type, { [fullerShape]: fuller, ...published }]) => {
      if (fuller !== undefined) hasFuller = true
      return [
        type,
        openApiSchema(fuller !== undefined && prefersRepresentation ? { ...published, schema: fuller } : published),
      ]
    })
    return [
      status,
      {
        ...rest,
        headers: Object.fromEntries(Object.entries(headers).map(([name, schema]) => [name, headerObject(schema)])),
        ...(content === undefined ? {} : { content: Object.fromEntries(media) }),
      },
    ]
  })
  return { hasFuller, responses: Object.fromEntries(shaped) as Json }
}

function headerObject({ description, ...schema }: { description?: string } & object): Json {
  return { schema, ...(description === undefined ? {} : { description }) }
}

/** The headers of a request for the fuller shapes. */
function requiringFuller(headers: Described['headers']): TSchema {
  const { properties } = headers as unknown as { properties: Record<string, TSchema> }
  const description = 'Requests this shape (RFC 7240).'
  return Type.Object({ ...properties, prefer: Type.Literal('return=representation', { type: 'string', description }) })
}

type ObjectSchema = { properties: Record<string, Json>; required?: string[] }

function parametersOf(place: 'query' | 'path' | 'header', schema: object | undefined): Json[] {
  const { properties = {}, required = [] } = (schema ?? {}) as Partial<ObjectSchema>
  return Object.entries(properties).map(([name, property]) => {
    const { description, required: _, ...value } = openApiSchema(property) as Json
    return {
      ...mediaObject(value),
      ...{ in: place, name },
      ...(description === undefined ? {} : { description }),
      // A parameter that is an object is sent as `name[key]=value`, which is not the default of OpenAPI.
      ...(place === 'query' && value.type === 'object' ? { style: 'deepObject', explode: true } : {}),
      ...(place === 'path' || required.includes(name) ? { required: true } : {}),
    }
  })
}

function requestBody(body: NonNullable<Described['body']>): Json {
  const { content, description } = body as Json & { content?: Record<string, { schema: object }> }
  const media = content ?? { 'application/json': { schema: body } }
  return {
    required: !Type.IsOptional(body),
    content: Object.fromEntries(
      Object.entries(media).map(([type, { schema: each }]) => [type, mediaObject(openApiSchema(each) as Json)]),
    ),
    ...(content === undefined && description !== undefined ? { description } : {}),
  }
}

/** Places the examples of a schema beside it, unless it is shared by its name. */
function mediaObject(schema: Json): Json {
  const { examples, ...rest } = schema as { examples?: unknown[] } & Json
  if (examples === undefined || examples.length === 0 || typeof schema.title === 'string') return { schema }
  const [example, ...more] = examples
  if (more.length === 0) return { schema: rest, example }
  const nameOf = (value: unknown, index: number) => (typeof value === 'object' ? `example${index + 1}` : String(value))
  return { schema: rest, examples: Object.fromEntries(examples.map((each, n) => [nameOf(each, n), { value: each }])) }
}

/** A schema of ours as generators read it: they know neither `const` nor `patternProperties`. */
function openApiSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(openApiSchema)
  if (typeof value !== 'object' || value === null) return value
  const { const: only, patternProperties, ...rest } = value as Json
  return {
    ...Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, openApiSchema(inner)])),
    ...('const' in value ? { enum: [only] } : {}),
    ...(patternProperties === undefined
      ? {}
      : { additionalProperties: openApiSchema(Object.values(patternProperties as Json)[0]) }),
  }
}

/**
 * Moves every schema that has a title to `components.schemas`, so that generated clients get named types, and drops our
 * formats. The name replaces the title. What belongs to a use stays there: a default, a deprecation, and a description unless all uses have the same.
 * @throws if one name stands for different schemas
 */
function withNamedSchemas<T extends object>(document: T): T {
  const named: Json = {}
  const descriptions = new Map<string, Set<unknown>>()
  const hoist = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(hoist)
    if (typeof value !== 'object' || value === null) return value
    const schema = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hoist(inner)])) as Json
    if (isDiscriminated(value)) schema.discriminator = withMapping(value)
    if (typeof schema.format === 'string' && schema.format in ownFormats) delete schema.format
    const { title, description, default: absent, deprecated, examples, ...rest } = schema
    if (typeof title !== 'string' || !('type' in schema || 'anyOf' in schema)) return schema
    const known = named[title] as Json | undefined
    if (known !== undefined) {
      const { examples: _, ...same } = known
      assert.deepEqual(rest, same, `${title} is the name of different schemas`)
    }
    named[title] = { ...rest, ...(examples === undefined ? {} : { examples }), ...known }
    descriptions.set(title, (descriptions.get(title) ?? new Set()).add(description))
    return {
      $ref: `#/components/schemas/${title}`,
      ...(description === undefined ? {} : { description }),
      ...(absent === undefined ? {} : { default: absent }),
      ...(deprecated === undefined ? {} : { deprecated }),
    }
  }
  const { components, ...rest } = document as Json
  const hoisted = hoist(rest) as Json
  const whole = { ...hoisted, components: { ...(components as Json), schemas: sortedByKey(named) } }
  return withSharedDescriptions(whole, descriptions) as T
}

/** Moves a description that all uses of a named schema have to the schema. */
function withSharedDescriptions(document: object, descriptions: Map<string, Set<unknown>>): object {
  const shared = new Map(
    [...descriptions].flatMap(([title, [description, ...others]]) =>
      description === undefined || others.length > 0 ? [] : [[`#/components/schemas/${title}`, description]],
    ),
  )
  const strip = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(strip)
    if (typeof value !== 'object' || value === null) return value
    const { description, ...rest } = value as Json
    if (shared.has(String(rest.$ref))) return rest
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, strip(inner)]))
  }
  const { components, ...rest } = strip(document) as { components: { schemas: Record<string, Json> } }
  const schemas = Object.entries(components.schemas).map(([name, schema]) => {
    const description = shared.get(`#/components/schemas/${name}`)
    return [name, description === undefined ? schema : { ...schema, description }]
  })
  return { ...rest, components: { ...components, schemas: Object.fromEntries(schemas) } }
}

type Discriminated = {
  discriminator: { propertyName: string }
  oneOf: { title: string; properties: Record<string, { enum: [string] }> }[]
}

function isDiscriminated(value: object): value is Discriminated {
  return 'discriminator' in value && 'oneOf' in value
}

// Without a mapping, OpenAPI treats the values of the property as schema names.
function withMapping({ discriminator, oneOf }: Discriminated): Json {
  const mapping = oneOf.map(({ title, properties }) => [
    // A `const` has become an `enum` of one value by now.
    properties[discriminator.propertyName]?.enum[0],
    `#/components/schemas/${title}`,
  ])
  return { ...discriminator, mapping: Object.fromEntries(mapping) }
}
