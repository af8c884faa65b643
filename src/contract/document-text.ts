// In the OpenAPI document, the fifth level is the properties of a schema, the parameters and the answers.
const depthMax = 4
const lineCharsMax = 160

/**
 * Prints an OpenAPI document so that a change of a property, a parameter or an answer is the change of a line. It is not
 * indented: two spaces for each level would make the file almost twice as large.
 */
export function documentText(document: object): string {
  return `${print(document, 0)}\n`
}

function print(value: unknown, depth: number): string {
  const line = JSON.stringify(value)
  if (typeof value !== 'object' || value === null || line.length <= lineCharsMax || depth === depthMax) return line
  const entries = Array.isArray(value)
    ? value.map(each => print(each, depth + 1))
    : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${print(each, depth + 1)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${entries.join(',\n')}\n${close}`
}
