import { inspect } from 'node:util'
import { callerOf, type Document, exampleOf, exampleOfContent, type Operation, type Parameter } from './openapi.ts'
import { sdkNames } from './sdk-names.ts'

/** One way to send the request of an operation. */
export type Sample = { title: string; code: string }

type SampleOf = (operation: Operation, document: Document) => string | undefined

/** The samples that the reference shows besides curl, by title. Add another library or command here. */
const others: Record<string, SampleOf> = { 'the SDK': sdkOf, 'the command line': cliSampleOf }

/** The samples of an operation, curl first. */
export function samplesOf(operation: Operation, document: Document): [curl: Sample, ...others: Sample[]] {
  const found = Object.entries(others).map(([title, sampleOf]) => ({ title, code: sampleOf(operation, document) }))
  const rest = found.flatMap(({ title, code }) => (code === undefined ? [] : [{ title, code }]))
  return [{ title: 'curl', code: curlOf(operation, document) }, ...rest]
}

/**
 * The request with example values: required parameters, and the body with its required fields. The service accepts the request
 * once the ids are ids of your own resources. The script of the pages rebuilds the request from the form.
 */
function curlOf(operation: Operation, document: Document): string {
  const { method, path, parameters = [], requestBody } = operation
  const exampleText = ({ example, schema }: Parameter) =>
    encodeURIComponent(String(example ?? exampleOf(schema, document)))
  const required = parameters.filter(each => each.required)
  const query = required.flatMap(each => (each.in === 'query' ? [`${each.name}=${exampleText(each)}`] : []))
  const filled = required.reduce(
    (text, each) => (each.in === 'path' ? text.replace(`{${each.name}}`, exampleText(each)) : text),
    path,
  )
  const url = query.length > 0 ? `${filled}?${query.join('&')}` : filled
  const header = {
    key: ['-H "x-api-key: $MIDMONTH_API_KEY"'],
    token: ['-H "authorization: Bearer $TOKEN"'],
    anyone: [],
  }
  return [
    `curl -X ${method} "$MIDMONTH_URL${url}"`,
    ...header[callerOf(operation)],
    ...bodyOptions(requestBody, document),
  ].join(' \\\n  ')
}

/** The call of the SDK with the same values; `midmonth` is the client. */
function sdkOf({ operationId, parameters = [], requestBody }: Operation, document: Document): string | undefined {
  const names = sdkNames[operationId]
  if (names === undefined) return undefined
  const ids = parameters.flatMap(each => (each.in === 'path' ? [each.example ?? exampleOf(each.schema, document)] : []))
  const body = exampleBody(requestBody, document)
  const values = body === undefined ? ids : [...ids, body.value]
  const call = typeof names === 'string' ? names : names.json
  return `await midmonth.${call}(${values.map(value => inspect(value, { depth: null })).join(', ')})`
}

/** The command with the same values; the key comes from `midmonth login` or MIDMONTH_API_KEY. */
export function cliSampleOf(
  { operationId, parameters = [], requestBody }: Operation,
  document: Document,
): string | undefined {
  const names = sdkNames[operationId]
  if (names === undefined) return undefined
  const values = parameters.flatMap(each => {
    if (each.in !== 'path' && !(each.in === 'query' && each.required)) return []
    const value = quotedIfNeeded(String(each.example ?? exampleOf(each.schema, document)))
    return [each.in === 'path' ? value : `--${each.name} ${value}`]
  })
  const body = exampleBody(requestBody, document)
  const text = typeof body?.value === 'string' ? body.value : JSON.stringify(body?.value)
  return [
    `midmonth api ${typeof names === 'string' ? names : names.json}`,
    ...values,
    ...(body === undefined ? [] : [`--body ${quoted(text)}`]),
  ].join(' ')
}

function exampleBody(requestBody: Operation['requestBody'], document: Document) {
  const [first] = Object.entries(requestBody?.content ?? {})
  if (first === undefined) return undefined
  const [mediaType, content] = first
  const value = exampleOfContent(content, document)
  // A file's line ends do not matter, and a shell does not show a carriage return.
  return { mediaType, value: typeof value === 'string' ? value.replaceAll('\r\n', '\n') : value }
}

function bodyOptions(requestBody: Operation['requestBody'], document: Document): string[] {
  const body = exampleBody(requestBody, document)
  if (body === undefined) return []
  const text = typeof body.value === 'string' ? body.value : JSON.stringify(body.value)
  return [`-H ${quoted(`content-type: ${body.mediaType}`)}`, `--data-binary ${quoted(text)}`]
}

function quotedIfNeeded(text: string): string {
  return /^[\w.:@/+-]+$/.test(text) ? text : quoted(text)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
