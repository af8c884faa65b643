import { STATUS_CODES } from 'node:http'

type Json = { [key: string]: unknown }
type Operation = { parameters?: Json[]; responses: Record<string, Json> } & Json
type Paths = Record<string, Record<string, Operation>>
type Kind = 'headers' | 'parameters' | 'responses'

/**
 * Replaces a part that operations may share.
 * @param names candidates for its name in `components`, the preferred one first; parts that are used more often choose first
 */
type Replace = (kind: Kind, names: string[], part: Json) => Json

/**
 * Moves the errors, headers and parameters that operations have in common to `components`. Spelled out at every operation,
 * they would make the document many times as large.
 */
export function withSharedParts<T extends object>(document: T): T {
  // The parts of errors come first, so that equal errors stay equal.
  return share(share(document as Json, mapInnerParts), mapErrors) as T
}

/** The opposite of `withSharedParts`: puts each shared error, header and parameter back where it is used. */
export function withPartsInPlace<T extends object>(document: T): T {
  const { components, ...rest } = document as { components: Record<string, Json> }
  const inPlace = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inPlace)
    if (typeof value !== 'object' || value === null) return value
    const [, kind = '', name = ''] = /^#\/components\/(responses|headers|parameters)\/(.+)$/.exec(refOf(value)) ?? []
    if (kind !== '') return inPlace(components[kind]?.[name])
    return mapValues(value as Json, inPlace)
  }
  return { ...(inPlace(rest) as object), components } as unknown as T
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

  const named: Record<Kind, Json> = { headers: {}, parameters: {}, responses: {} }
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
      parameters: parameters.map(each => replace('parameters', [`${each.name}`, `${each.name}_in_${each.in}`], each)),
    }),
    responses: mapValues(responses, ({ headers, ...answer }) => ({
      ...answer,
      ...(headers !== undefined && {
        headers: mapValues(headers as Record<string, Json>, (header, name) => replace('headers', [name], header)),
      }),
    })),
  }
}

function mapErrors({ responses, ...rest }: Operation, replace: Replace): Operation {
  return {
    ...rest,
    responses: mapValues(responses, (answer, status) =>
      Number(status) >= 400 && answer.content !== undefined
        ? replace('responses', namesOf(status, answer), answer)
        : answer,
    ),
  }
}

/** The status text, such as 'NotFound', and as a second choice with the codes of its errors. */
function namesOf(status: string, { content }: Json): string[] {
  const reason = (STATUS_CODES[status] ?? status).replaceAll(/[^A-Za-z]/g, '')
  const { examples, schema } = (content as { 'application/json': { schema: object; examples?: object } })[
    'application/json'
  ]
  const codes = [...JSON.stringify(schema).matchAll(/\/([A-Za-z]+)Issue"/g)].map(([, code]) => code)
  return [reason, `${reason}_${(examples === undefined ? codes : Object.keys(examples)).join('_')}`]
}

function mapValues<In, Out>(record: Record<string, In>, map: (value: In, key: string) => Out): Record<string, Out> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]))
}

/** Sorts the keys, so that a generated document changes only where its content does. */
export function sortedByKey(object: Json): Json {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
}
