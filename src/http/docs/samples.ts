import { callerOf, type Document, exampleOf, type Operation, type Parameter } from './openapi.ts'

/** One way to send the request of an operation. */
export type Sample = { title: string; code: string }

type SampleOf = (operation: Operation, document: Document) => string | undefined

/** The ways that the reference shows beside curl, by title. A library or command adds its own here. */
const others: Record<string, SampleOf> = {}

/** The samples of an operation, curl first. */
export function samplesOf(operation: Operation, document: Document): [curl: Sample, ...others: Sample[]] {
  const found = Object.entries(others).map(([title, sampleOf]) => ({ title, code: sampleOf(operation, document) }))
  const rest = found.flatMap(({ title, code }) => (code === undefined ? [] : [{ title, code }]))
  return [{ title: 'curl', code: curlOf(operation, document) }, ...rest]
}

/**
 * The request with example values: required parameters, and the body with its required fields. It is accepted once the ids are
 * those of your own resources. The script of the pages rebuilds it from the form.
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
    key: ['-H "x-api-key: $OPENWAGE_API_KEY"'],
    token: ['-H "authorization: Bearer $TOKEN"'],
    anyone: [],
  }
  return [
    `curl -X ${method} "$OPENWAGE_URL${url}"`,
    ...header[callerOf(operation)],
    ...bodyOptions(requestBody, document),
  ].join(' \\\n  ')
}

function bodyOptions(requestBody: Operation['requestBody'], document: Document): string[] {
  const [first] = Object.entries(requestBody?.content ?? {})
  if (first === undefined) return []
  const [mediaType, { schema, example }] = first
  const value = example ?? exampleOf(schema, document)
  // A file's own line ends do not matter, and a shell shows a carriage return as nothing.
  const text = typeof value === 'string' ? value.replaceAll('\r\n', '\n') : JSON.stringify(value)
  return [`-H ${quoted(`content-type: ${mediaType}`)}`, `--data-binary ${quoted(text)}`]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
