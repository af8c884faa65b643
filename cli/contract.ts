import { readFileSync } from 'node:fs'
import type { Operation as Call } from '../packages/sdk/src/client.ts'
import { operations } from '../packages/sdk/src/generated/operations.ts'
import { withPartsInPlace } from '../src/contract/shared-parts.ts'
import {
  type Document,
  exampleOf,
  type Operation,
  type Parameter,
  resolve,
  type Schema,
} from '../src/site/docs/openapi.ts'
import { sdkNames } from '../src/site/docs/sdk-names.ts'

/** An operation under its name in the SDK, with what the SDK needs to call it. */
export type Method = { name: string; operationId: string; summary: string; call: Call }

/** The methods of the SDK that send one request, in its order. */
export function methods(): Method[] {
  const summaries = new Map(
    Object.values(contract().paths)
      .flatMap(Object.values<Document['paths'][string][string]>)
      .map(({ operationId, summary }) => [operationId, summary]),
  )
  return Object.entries(sdkNames).flatMap(([operationId, names]) =>
    (typeof names === 'string' ? [names] : [names.json, names.file]).flatMap(name => {
      const call = operations[name]
      if (call === undefined) return []
      const isFile = typeof names !== 'string' && name === names.file
      return [{ name, operationId, summary: `${summaries.get(operationId)}${isFile ? ', as a file' : ''}`, call }]
    }),
  )
}

export type QueryParameter = {
  name: string
  description: string
  kind: 'text' | 'whole' | 'flag' | 'map'
  isList: boolean
  choices: string[]
}

/** The details of a method in its help and completion, beyond its summary. Resolves only the references of this operation. */
export function detailsOf({ call: { method, path, accepts, entries } }: Method): {
  operation: Operation
  document: Document
  query: QueryParameter[]
} {
  const { paths, components } = contract()
  const key = method.toLowerCase()
  const document = withPartsInPlace({ ...contract(), paths: { [path]: { [key]: paths[path]?.[key] } }, components })
  const found = document.paths[path]?.[key]
  if (found === undefined) throw new Error(`openapi.json lacks ${method} ${path}`)
  const operation = { ...found, method, path } as Operation
  const isWholeFile = accepts !== undefined && entries === undefined
  const query = (operation.parameters ?? [])
    .filter(each => each.in === 'query')
    // A file has every entry.
    .filter(({ name }) => !(isWholeFile && /^(skip|take)$/.test(name)))
  return {
    operation,
    document: document as Document,
    query: query.map(each => queryParameter(each, document as Document)),
  }
}

/** The types of events. */
export function eventTypes(): string[] {
  return enumOf('EventType')
}

/** The values of a named schema. */
export function enumOf(name: string): string[] {
  const values = valuesOf(contract().components.schemas[name] ?? {})
  if (values.length === 0) throw new Error(`openapi.json has no values for ${name}`)
  return values
}

function valuesOf({ enum: values = [], const: value, anyOf = [] }: Schema): string[] {
  return [...values, ...(value === undefined ? [] : [value]), ...anyOf.flatMap(valuesOf)].map(String)
}

function queryParameter({ name, description, schema }: Parameter, document: Document): QueryParameter {
  const resolved = resolve(schema, document)
  const isList = resolved.type === 'array'
  const value = isList ? resolve(resolved.items ?? {}, document) : resolved
  const kind =
    value.type === 'integer' ? 'whole' : value.type === 'boolean' ? 'flag' : value.type === 'object' ? 'map' : 'text'
  const choices = kind === 'flag' ? ['true', 'false'] : valuesOf(value)
  // A whole number explains itself.
  const example =
    choices.length > 0 || kind === 'whole' || kind === 'map' ? '' : `for example ${exampleOf(value, document)}`
  const about = (description ?? resolved.description ?? '').replace(/\.$/, '')
  return { name, kind, isList, choices, description: [about, example].filter(text => text !== '').join('; ') }
}

let read: Document | undefined

function contract(): Document {
  read ??= JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')) as Document
  return read
}
