import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import swagger from '@fastify/swagger'
import type { FastifySchema } from 'fastify'
import { type TSchema, Type } from 'typebox'
import { ownFormats } from '../kernel/json-schema.ts'
import { isOperatorPath } from './admission/operator-admission.ts'
import { documentText } from './document-text.ts'
import { fullerShape } from './operation.ts'
import type { App } from './server/server.ts'
import { revalidated, type StaticFile, sendStaticFile, staticFile } from './server/static-file.ts'
import { sortedByKey, withSharedParts } from './shared-parts.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const license = { name: 'Apache-2.0', identifier: 'Apache-2.0' }

/** One of the OpenAPI documents that the service serves: of which routes, and what its head says. */
export type DocumentHead = {
  /** The decorator under which the plugin keeps the document; one each. */
  decorator: 'swagger' | 'representationSwagger' | 'operatorSwagger'
  covers: (url: string) => boolean
  title: string
  introduction: string
  tags: { name: string; description: string }[]
  securitySchemes: Record<string, object>
  /** The scheme of operations that name none. */
  defaultScheme: string
  /** Whether operations that have a fuller shape are described with it, as callers get it who prefer it. */
  prefersRepresentation?: boolean
}

const idempotencyAndErrors = `Send \`x-idempotency-key\` with every request that you may have to retry: for 7 days, the same key with the same request returns the first answer again, without a second effect.

Every response has the headers \`x-request-id\`, \`ratelimit\` and \`ratelimit-policy\`; this document declares them once, in \`x-response-headers\`.

Every refusal is \`{ "issues": [ { "code", "message", … } ] }\`. Branch on \`code\`; \`GET /v1/errors\` lists them all.`

/** The API of partners: their servers, and the pages of their members. */
export const partnerDocument: DocumentHead = {
  decorator: 'swagger',
  covers: url => !isOperatorPath(url),
  title: 'Midmonth partner API',
  introduction: `On-demand pay: members see what they have earned and withdraw some of it before payday.

Every request needs the header \`x-api-key\`. ${idempotencyAndErrors}`,
  tags: [
    { name: 'Withdrawals', description: 'Quote a withdrawal, complete it and follow its status.' },
    {
      name: 'Member sessions',
      description:
        'What a page in a member’s browser may call, with a short-lived token instead of an API key. See [Embed withdrawals](/docs/guides/embed).',
    },
    { name: 'Members', description: 'The workers who can withdraw earned pay, and their tiers.' },
    {
      name: 'Member jobs',
      description:
        'Change many members at once, by a list of actions or by a file with the complete list of members. Templates: [members-template.xlsx](/members-template.xlsx), [members-template.csv](/members-template.csv).',
    },
    { name: 'Pay runs', description: 'Earned pay that members can withdraw.' },
    { name: 'Pay cycles', description: 'The days that one payday settles.' },
    { name: 'Events', description: 'A complete, ordered feed of all state changes.' },
    {
      name: 'Sandbox',
      description:
        'Move the clock, and decide what the simulated bank reports. Only on a sandbox; a live installation answers 404. See docs/guides/sandbox.md.',
    },
    {
      name: 'Webhooks',
      description:
        'Signed requests to your endpoints when something happens. See [Receive webhooks](/docs/guides/webhooks).',
    },
    { name: 'Service', description: 'Health, error codes and idempotency keys.' },
  ],
  securitySchemes: {
    apiKey: { type: 'apiKey', name: 'x-api-key', in: 'header', description: 'One key per partner and mode.' },
    memberSession: {
      type: 'http',
      scheme: 'bearer',
      description: 'The token of a member session, for the page of one member.',
    },
  },
  defaultScheme: 'apiKey',
}

/** The same API as callers see it who send `Prefer: return=representation` with every request. */
export const representationDocument: DocumentHead = {
  ...partnerDocument,
  decorator: 'representationSwagger',
  introduction: `${partnerDocument.introduction}

This document describes the responses to requests with \`Prefer: return=representation\`; \`/openapi.json\` describes the others.`,
  prefersRepresentation: true,
}

/** The API of operators, for all partners of an installation. */
export const operatorDocument: DocumentHead = {
  decorator: 'operatorSwagger',
  covers: isOperatorPath,
  title: 'Midmonth operator API',
  introduction: `What the operators of an installation do: partners and their keys, tiers, floats, payouts, and the health of the service.

Every request needs the header \`x-api-key\` with an operator key (\`midmonth operator key create\`). ${idempotencyAndErrors}`,
  tags: [
    { name: 'Partners', description: 'Employers, gig platforms and payroll bureaus, and their API keys.' },
    { name: 'Tiers', description: 'The fees and limits of withdrawals, by version.' },
    { name: 'Float', description: 'The money that funds withdrawals.' },
    { name: 'Finance', description: 'Fees, invoices, revenue, and the journal.' },
    { name: 'Payouts', description: 'Batches of payments, bank files, and bank answers that did not fit.' },
    { name: 'Operations', description: 'The health of the service, the books and the audit log.' },
  ],
  securitySchemes: {
    operatorKey: {
      type: 'apiKey',
      name: 'x-api-key',
      in: 'header',
      description: 'A key of an operator, `mmoperator_…`. Keys of partners are refused.',
    },
  },
  defaultScheme: 'operatorKey',
}

/**
 * Describes the routes that it covers, of those registered after this.
 * @param options.webhooks the requests that the service sends, by type of event
 * @returns the document; not before the app is ready
 */
export async function documentation(
  app: App,
  head: DocumentHead,
  { webhooks = {} }: { webhooks?: Record<string, object> } = {},
): Promise<() => object> {
  const { decorator, covers, title, introduction, tags, securitySchemes, defaultScheme } = head
  await app.register(swagger, {
    // The default is the only name that the plugin's types know.
    decorator: decorator as 'swagger',
    openapi: {
      openapi: '3.1.0',
      info: { title, version, description: introduction, license },
      servers: [{ url: '/', description: 'This server' }],
      tags,
      components: { securitySchemes: securitySchemes as Record<string, never> },
      security: [{ [defaultScheme]: [] }],
    },
    transform: ({ schema, url }) => {
      if (!covers(url)) return { schema: { hide: true }, url }
      const shaped = withOneShape(schema ?? {}, head)
      return { schema: Type.IsOptional(schema?.body) ? { ...shaped, [optionalBody]: true } : shaped, url }
    },
    transformObject: source =>
      'openapiObject' in source
        ? withSharedParts(withNamedSchemas(withOptionalBodies({ ...source.openapiObject, webhooks })))
        : source.swaggerObject,
  })

  let document: object | undefined
  return () => (document ??= app[decorator]())
}

/** Serves a document at an address, and another one to those who prefer fuller responses. */
export function serveDocument(
  app: App,
  address: string,
  { plain, representation }: { plain: () => object; representation?: () => object },
): void {
  const files = new Map<() => object, Promise<StaticFile>>()
  app.get(address, { schema: { hide: true } }, async (request, reply) => {
    const { prefer } = request.query as { prefer?: string }
    const document = prefer === 'representation' && representation !== undefined ? representation : plain
    const file = files.get(document) ?? staticFile('application/json; charset=utf-8', documentText(document()))
    files.set(document, file)
    return sendStaticFile(request, reply, { file: await file, cacheControl: revalidated })
  })
}

/** Leaves one shape of each response: a generator makes a union of two that no program can tell apart. */
function withOneShape(schema: FastifySchema, { prefersRepresentation = false }: DocumentHead): FastifySchema {
  let hasFuller = false
  const response = Object.fromEntries(
    Object.entries((schema.response ?? {}) as Record<string, Json>).map(([status, { content, ...answer }]) => {
      const { 'application/json': json, ...files } = (content ?? {}) as Record<string, Json>
      if (json === undefined || !(fullerShape in json)) return [status, { ...answer, ...(content ? { content } : {}) }]
      hasFuller = true
      const { [fullerShape]: fuller, schema: published, ...rest } = json
      const shaped = { schema: prefersRepresentation ? fuller : published, ...rest }
      return [status, { ...answer, content: { 'application/json': shaped, ...files } }]
    }),
  )
  if (!hasFuller) return schema
  const { properties } = schema.headers as { properties: Record<string, TSchema> }
  const prefer = Type.Literal('return=representation', {
    type: 'string',
    description: 'Requests this shape (RFC 7240).',
  })
  return {
    ...schema,
    response,
    ...(prefersRepresentation ? { headers: Type.Object({ ...properties, prefer }) } : {}),
  }
}

type Json = { [key: string]: unknown }

// Marks an operation until the document is complete. The plugin copies names that start so.
const optionalBody = 'x-optional-body'

/** The plugin declares every body as required; those that were declared optional are not. */
function withOptionalBodies<T extends { paths?: object }>(document: T): T {
  const paths = Object.entries((document.paths ?? {}) as Record<string, Record<string, Json>>).map(
    ([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [method, withMaps(withOptionalBody(operation))]),
      ),
    ],
  )
  return { ...document, paths: Object.fromEntries(paths) }
}

function withOptionalBody({ [optionalBody]: isOptional, ...operation }: Json): Json {
  if (isOptional !== true) return operation
  return { ...operation, requestBody: { ...(operation.requestBody as Json), required: false } }
}

/** A parameter that is an object is sent as `name[key]=value`, which is not the default of OpenAPI. */
function withMaps({ parameters, ...operation }: Json): Json {
  if (parameters === undefined) return operation
  const styled = (parameters as Json[]).map(parameter =>
    parameter.in === 'query' && (parameter.schema as Json).type === 'object'
      ? { ...parameter, style: 'deepObject', explode: true }
      : parameter,
  )
  return { ...operation, parameters: styled }
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
    const schema = Object.fromEntries(
      Object.entries(withExamplesInSchema(value)).map(([key, inner]) => [key, hoist(inner)]),
    ) as Json
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

/** The plugin moves the examples of a parameter or body beside its schema. Those of a named schema belong to the schema. */
function withExamplesInSchema(value: object): object {
  const { example, examples: byName, ...rest } = value as { example?: unknown; examples?: Record<string, Json> } & Json
  const given = example === undefined ? Object.values(byName ?? {}).map(each => each.value) : [example]
  const { schema } = rest as { schema?: Json }
  if (schema === undefined || typeof schema.title !== 'string' || given.length === 0) return value
  return { ...rest, schema: { examples: given, ...schema } }
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
