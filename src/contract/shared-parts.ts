import assert from 'node:assert/strict'

type Json = { [key: string]: unknown }
type Operation = { parameters?: Json[]; requestBody?: Json; responses: Record<string, Json> } & Json
type Paths = Record<string, Record<string, Operation>>
const kinds = ['headers', 'parameters', 'requestBodies', 'responses'] as const
type Kind = (typeof kinds)[number]

/** The key of a part's candidates for its name. It does not reach the document. */
export const nameHints = 'x-names'

/**
 * Replaces a part that operations may share.
 * @param names candidates for its name in `components`, the preferred one first; parts that are used more often choose first
 */
type Replace = (kind: Kind, names: string[], part: Json) => Json

/**
 * Moves the errors, headers, parameters and bodies that operations have in common to `components`. Spelled out at every
 * operation, they would make the document many times as large.
 */
export function withSharedParts<T extends object>(document: T): T {
  // The parts of errors come first, so that equal errors stay equal.
  return withDefaultAnswer(share(withCommonHeaders(share(document as Json, mapInnerParts)), mapAnswers)) as T
}

/** The key of the headers that every response has. */
const commonHeadersKey = 'x-response-headers'

/** Declares the headers that all responses of all operations have once, for the whole document. */
function withCommonHeaders({ paths, ...rest }: Json): Json {
  const all = Object.values(paths as Paths).flatMap(methods =>
    Object.values(methods).flatMap(({ responses }) => Object.values(responses)),
  )
  const [first = {}, ...further] = all.map(({ headers = {} }) => headers as Json)
  const common = Object.keys(first).filter(name => further.every(headers => name in headers))
  const isCommon = ([name]: [string, unknown]) => common.includes(name)
  return {
    ...rest,
    [commonHeadersKey]: Object.fromEntries(Object.entries(first).filter(isCommon)),
    paths: mapOperations(paths as Paths, ({ responses, ...operation }) => ({
      ...operation,
      responses: mapValues(responses, ({ headers = {}, ...response }) => {
        const own = Object.entries(headers as Json).filter(entry => !isCommon(entry))
        return { ...response, ...(own.length > 0 && { headers: Object.fromEntries(own) }) }
      }),
    })),
  }
}

/** The key of the responses, by status, that a default response stands for. */
const statusesKey = 'x-statuses'
const defaultName = 'AnyOperation'

/** Replaces the responses that all operations have in common by one default response, which lists them. */
function withDefaultAnswer(document: Json): Json {
  const { paths, webhooks, components, ...rest } = document as {
    paths: Paths
    webhooks: Paths
    components: Json & { responses: ErrorResponses }
    [commonHeadersKey]: Json
  }
  const [first = {}, ...further] = Object.values(paths).flatMap(methods =>
    Object.values(methods).map(({ responses }) => responses),
  )
  const statuses = Object.keys(first).filter(
    status =>
      refOf(first[status] ?? {}) !== '' &&
      further.every(each => refOf(each[status] ?? {}) === refOf(first[status] ?? {})),
  )
  const responses = statuses.map(status => resolve(first[status] ?? {}, components.responses))
  const others = Object.fromEntries(
    Object.entries(components.responses).filter(([, each]) => !responses.includes(each)),
  )
  const response: ErrorResponse = {
    description: [
      'An error that any operation can answer with, by status:',
      ...statuses.map((status, index) => `${status} ${responses[index]?.description}`),
    ].join('\n\n'),
    // A client that does not read the extension finds the headers of every response here.
    headers: Object.assign({}, rest[commonHeadersKey], ...responses.map(({ headers }) => headers)),
    content: { 'application/json': { schema: unionOf(responses) } },
    [statusesKey]: Object.fromEntries(statuses.map((status, index) => [status, responses[index]])),
  }
  return {
    ...rest,
    paths: mapOperations(paths, ({ responses, ...operation }) => ({
      ...operation,
      responses: {
        ...Object.fromEntries(Object.entries(responses).filter(([status]) => !statuses.includes(status))),
        default: { $ref: `#/components/responses/${defaultName}` },
      },
    })),
    webhooks,
    components: { ...components, responses: sortedByKey({ ...others, [defaultName]: response }) },
  }
}

type Issues = { type: 'array'; items: Json & { anyOf?: Json[] }; minItems: number }
type IssuesSchema = Json & { properties: { issues: Issues } }
type ErrorResponse = Json & {
  description: string
  headers: Json
  content: { 'application/json': { schema: IssuesSchema } }
}
type ErrorResponses = Record<string, ErrorResponse>

function resolve(part: Json, responses: ErrorResponses): ErrorResponse {
  const name = refOf(part).split('/').at(-1) ?? ''
  const response = responses[name]
  assert(response, `components.responses has no ${name}`)
  return response
}

/** The schema of a list of issues of any of the responses. */
function unionOf(responses: ErrorResponse[]): IssuesSchema {
  const [schema, ...others] = responses.map(({ content }) => content['application/json'].schema)
  assert(schema, 'operations have no responses in common')
  const { issues } = schema.properties
  const items = [schema, ...others].flatMap(each => {
    const { items } = each.properties.issues
    return items.anyOf ?? [items]
  })
  const anyOf = [...new Map(items.map(item => [JSON.stringify(item), item])).values()]
  return { ...schema, properties: { issues: { ...issues, items: { anyOf } } } }
}

/** The opposite of `withSharedParts`: puts each shared part back where it is used. */
export function withPartsInPlace<T extends object>(document: T): T {
  const {
    components,
    [commonHeadersKey]: commonHeaders,
    ...rest
  } = document as Json & {
    components: Record<string, Json>
  }
  const reference = new RegExp(`^#/components/(${kinds.join('|')})/(.+)$`)
  const inPlace = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inPlace)
    if (typeof value !== 'object' || value === null) return value
    const [, kind = '', name = ''] = reference.exec(refOf(value)) ?? []
    if (kind !== '') return inPlace(components[kind]?.[name])
    const { default: common, ...others } = mapValues(value as Json, inPlace)
    if (isDefaultAnswer(common)) return { ...others, ...common[statusesKey] }
    return common === undefined ? others : { ...others, default: common }
  }
  const whole = inPlace(rest) as { paths: Paths }
  const headers = inPlace(commonHeaders) as Json | undefined
  const paths = mapOperations(whole.paths, ({ responses, ...operation }) => ({
    ...operation,
    responses: mapValues(responses, response => ({
      ...response,
      headers: { ...headers, ...(response.headers as Json) },
    })),
  }))
  return { ...whole, paths, components } as unknown as T
}

function isDefaultAnswer(value: unknown): value is { [statusesKey]: Json } {
  return typeof value === 'object' && value !== null && statusesKey in value
}

const refOf = (value: object) => ('$ref' in value ? String(value.$ref) : '')

function share(document: Json, map: (operation: Operation, replace: Replace) => Operation): Json {
  const { paths, webhooks, components, ...rest } = document as { paths: Paths; webhooks: Paths; components: Json }
  const mapAll = (replace: Replace) => [
    mapOperations(paths, operation => map(operation, replace)),
    mapOperations(webhooks, operation => map(operation, replace)),
  ]
  const parts = new Map<string, { kind: Kind; names: string[]; part: Json; count: number }>()
  mapAll((kind, names, part) => {
    const text = JSON.stringify(part)
    parts.set(text, { kind, names, part, count: (parts.get(text)?.count ?? 0) + 1 })
    return part
  })

  const named: Record<Kind, Json> = { headers: {}, parameters: {}, requestBodies: {}, responses: {} }
  const references = new Map<string, string>()
  for (const [text, { kind, names, part, count }] of [...parts].sort(([, a], [, b]) => b.count - a.count)) {
    const name = names.find(each => !(each in named[kind]))
    if (count === 1 || name === undefined) continue
    named[kind][name] = part
    references.set(text, `#/components/${kind}/${name}`)
  }
  const [mappedPaths, mappedWebhooks] = mapAll((_kind, _names, part) => {
    const $ref = references.get(JSON.stringify(part))
    return $ref === undefined ? part : { $ref }
  })
  const found = Object.entries(named).filter(([, byName]) => Object.keys(byName).length > 0)
  const shared = Object.fromEntries(found.map(([kind, byName]) => [kind, sortedByKey(byName)]))
  return { ...rest, paths: mappedPaths, webhooks: mappedWebhooks, components: { ...components, ...shared } }
}

function mapOperations(paths: Paths, map: (operation: Operation) => Operation): Paths {
  return mapValues(paths, methods => mapValues(methods, map))
}

function mapInnerParts({ parameters, responses, ...rest }: Operation, replace: Replace): Operation {
  return {
    ...rest,
    ...(parameters && {
      parameters: parameters.map(({ required, ...each }) =>
        replace('parameters', [`${each.name}`, `${each.name}_in_${each.in}`], required ? { ...each, required } : each),
      ),
    }),
    responses: mapValues(responses, ({ headers, ...response }) => ({
      ...response,
      ...(headers !== undefined && {
        headers: mapValues(headers as Record<string, Json>, (header, name) => replace('headers', [name], header)),
      }),
    })),
  }
}

function mapAnswers({ requestBody, responses, ...rest }: Operation, replace: Replace): Operation {
  return {
    ...rest,
    ...(requestBody && { requestBody: replaceHinted('requestBodies', requestBody, replace) }),
    responses: mapValues(responses, response => replaceHinted('responses', response, replace)),
  }
}

/** Shares a part that has hints, directly or in its content, and removes them. */
function replaceHinted(kind: Kind, part: Json, replace: Replace): Json {
  const { [nameHints]: names, content, ...rest } = part as { [nameHints]?: string[]; content?: Record<string, Json> }
  const inside = Object.values(content ?? {}).flatMap(each => (each[nameHints] as string[] | undefined) ?? [])
  const plain = {
    ...rest,
    ...(content && { content: mapValues(content, ({ [nameHints]: _, ...media }) => media) }),
  }
  const all = [...(names ?? []), ...inside]
  return all.length === 0 ? plain : replace(kind, all, plain)
}

function mapValues<In, Out>(record: Record<string, In>, map: (value: In, key: string) => Out): Record<string, Out> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]))
}

/** Sorts the keys, so that a generated document changes only where its content does. */
export function sortedByKey(object: Json): Json {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
}
