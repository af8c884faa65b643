/**
 * Writes a list in PostgreSQL's array format. The driver needs three times as long, because it checks each element for every
 * type. Lists of objects are left to the driver. One loop without closures: a statement has fifty lists, mostly short.
 */
export function parameterOf(value: unknown): unknown {
  if (!Array.isArray(value)) return value
  let text = '{'
  for (let index = 0; index < value.length; index++) {
    const element: unknown = value[index]
    if (typeof element === 'object' && element !== null) return value
    if (index > 0) text += ','
    text += elementOf(element)
  }
  return `${text}}`
}

function elementOf(value: unknown): string {
  if (typeof value !== 'string') return String(value ?? 'null')
  const isPlain = !value.includes('"') && !value.includes('\\')
  return isPlain ? `"${value}"` : `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
