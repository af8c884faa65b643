import { type TSchema, Type } from 'typebox'
import type { ProblemName } from '../kernel/errors.ts'
import { deprecationHeaders, IdempotencyHeader, replayedHeader, responseHeaders } from './headers.ts'
import { mediaTypes } from './media-types.ts'
import { preferenceAppliedHeader, preferHeader } from './prefer.ts'
import { commonProblems, keyProblems, refusals } from './refusals.ts'
import { nameHints } from './shared-parts.ts'

/** A file of text as the OpenAPI document describes it. */
type TextFile = { description: string; example: string }

/** The key of the fuller of two shapes, beside the published one. It does not reach a document. */
export const fullerShape = 'x-fuller'

/** What an operation says about itself: its requests, its responses, and who may send it. */
export type Declaration = {
  /** The `operationId`, the name of the method in generated clients. */
  id: string
  summary: string
  description?: string
  tag: string
  params?: TSchema
  query?: TSchema
  body?: TSchema
  /** The body may be this file; also JSON, if there is a `body`. */
  csvBody?: TextFile
  /** The body must be a file: CSV, XLSX, or a form that contains one. */
  fileBody?: TextFile & { name: string }
  /** The body must be a file of any kind. */
  bytesBody?: { name: string; description: string }
  success: {
    /** By default 200. */
    status?: 201 | 202
    description: string
    /** Of the JSON; without it, the response is one of the files. */
    schema?: TSchema
    headers?: Record<string, TSchema>
    csv?: TextFile
    xml?: TextFile
    html?: TextFile
    /** A file of any kind. */
    bytes?: string
    /** The fuller shape, for callers that request it; see `prefersRepresentation`. `schema` is the published shape. */
    representation?: { description: string; schema: TSchema }
  }
  /** A second successful response, with the status 200. */
  alternative?: { description: string; schema: TSchema }
  /** The problems that it can respond with in addition to those of every operation. */
  problems?: ProblemName[]
}

/** What a caller shows to be admitted. */
export type Credential = 'key' | 'session' | 'none'

type Content = Record<string, { schema: object; [fullerShape]?: object }>

/** An operation in the terms of JSON Schema, from which the OpenAPI document and the validation of requests derive. */
export type Described = {
  method: string
  path: string
  operationId: string
  summary: string
  tags: string[]
  description?: string
  deprecated?: true
  security?: Record<string, string[]>[]
  headers?: TSchema
  params?: TSchema
  querystring?: TSchema
  body?: object
  response: Record<string, { description: string; headers: Record<string, object>; content?: Content }>
}

const sessionProblems = keyProblems.map(name => (name === 'ApiKeyRefused' ? 'SessionRefused' : name))

/** Describes an operation, with every status and code that it can respond with. */
export function describe(
  declared: Declaration,
  { credential, isDeprecated }: { credential: Credential; isDeprecated: boolean },
): Omit<Described, 'method' | 'path'> {
  const isPublic = credential === 'none'
  const names: ProblemName[] = [
    ...commonProblems,
    ...(isPublic ? [] : credential === 'session' ? sessionProblems : keyProblems),
    ...(declared.params === undefined ? [] : (['PathValidation'] as const)),
    ...(declared.problems ?? []),
  ]
  const { params, query, body, csvBody, fileBody, bytesBody } = declared
  const { status = 200, representation, ...success } = declared.success
  return {
    operationId: declared.id,
    summary: declared.summary,
    tags: [declared.tag],
    ...(declared.description === undefined ? {} : { description: declared.description }),
    ...(isDeprecated ? { deprecated: true } : {}),
    ...(credential === 'session' ? { security: [{ memberSession: [] }] } : {}),
    ...(isPublic ? { security: [] } : { headers: requestHeaders(representation !== undefined) }),
    response: {
      [status]: {
        description: [success.description, ...(representation ? [withPreference(representation)] : [])].join('\n\n'),
        headers: {
          ...responseHeaders,
          ...(isPublic ? {} : replayedHeader),
          ...(isDeprecated ? deprecationHeaders : {}),
          ...(representation === undefined ? {} : preferenceAppliedHeader),
          ...success.headers,
        },
        content: {
          ...jsonContent(success.schema, representation?.schema),
          ...csvContent(success.csv),
          ...textContent('text/xml', success.xml),
          ...textContent('text/html', success.html),
          ...bytesContent(success.bytes),
        },
      },
      ...alternativeOf(declared.alternative),
      ...refusals(names),
    },
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { querystring: query }),
    ...bodyOf(body, csvBody),
    ...(fileBody === undefined ? {} : { body: fileSchema(fileBody) }),
    ...(bytesBody === undefined ? {} : { body: bytesSchema(bytesBody) }),
  }
}

function requestHeaders(hasRepresentation: boolean) {
  return hasRepresentation ? Type.Object({ ...IdempotencyHeader.properties, ...preferHeader }) : IdempotencyHeader
}

function withPreference({ description }: { description: string }): string {
  return `With \`Prefer: return=representation\`: ${description} Its schema is in \`/openapi.json?prefer=representation\`.`
}

function alternativeOf(alternative: Declaration['alternative']) {
  if (alternative === undefined) return {}
  const { description, schema } = alternative
  const headers = { ...responseHeaders, ...replayedHeader }
  return { 200: { description, headers, content: jsonContent(schema, undefined) } }
}

function bodyOf(json: TSchema | undefined, csv: TextFile | undefined): { body?: object } {
  if (csv === undefined) return json === undefined ? {} : { body: json }
  const jsonOrNone = json === undefined ? {} : { 'application/json': { schema: json } }
  return { body: { content: { ...jsonOrNone, ...csvContent(csv) } } }
}

function fileSchema({ name, description, example }: TextFile & { name: string }): object {
  const file = { title: name, type: 'string', format: 'binary', description }
  const form = { type: 'object', required: ['file'], properties: { file }, additionalProperties: false }
  return {
    content: {
      [mediaTypes.csv]: { schema: { ...file, examples: [example] } },
      [mediaTypes.xlsx]: { schema: file },
      [mediaTypes.form]: { schema: form },
    },
  }
}

function bytesSchema({ name, description }: { name: string; description: string }): object {
  const schema = { title: name, type: 'string', format: 'binary', description }
  return { content: { [mediaTypes.bytes]: { schema } } }
}

function bytesContent(description: string | undefined) {
  if (description === undefined) return {}
  return { [mediaTypes.bytes]: { schema: Type.Unsafe<string>({ type: 'string', format: 'binary', description }) } }
}

function jsonContent(schema: TSchema | undefined, fuller: TSchema | undefined) {
  if (schema === undefined) return {}
  const hints = { [nameHints]: namesOf(schema) }
  return { 'application/json': { schema, ...(fuller === undefined ? {} : { [fullerShape]: fuller }), ...hints } }
}

function namesOf(schema: TSchema): string[] {
  return 'title' in schema ? [`${schema.title}`] : []
}

function csvContent(csv: TextFile | undefined) {
  return textContent('text/csv', csv)
}

function textContent(mediaType: string, file: TextFile | undefined) {
  if (file === undefined) return {}
  return { [mediaType]: { schema: Type.String({ description: file.description, examples: [file.example] }) } }
}
