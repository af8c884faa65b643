const kept = {
  // Fields whose values the program chooses: words, routes without their ids, numbers.
  words: new Set(['level', 'time', 'msg', 'method', 'route', 'task', 'rail', 'code', 'constraint', 'type']),
  // One line of a stack of 50 frames is 5 KB.
  textLengthMax: 8_192,
}

const idPattern = /^[a-z]{1,4}_[0-9a-hjkmnp-tv-z]{26}$/
// The HTTP server logs where it listens.
const addressPattern = /\b([a-z]+):\/\/\S+/g
const framePattern =
  /^ +at (?:(?:async |new )?[\w$.<>#[\] ]+ \()?(?:node:|file:\/\/|\/)\S*?((?:src|cli|packages|node_modules)\/\S+:\d+:\d+|[\w/]+:\d+:\d+)\)?$/

/**
 * The part of a log line that a supporter may read: the program's own words, numbers, ids, and the frames of stacks. Everything else,
 * such as the message of an error, the name of a file or the address of a caller, is left out.
 * @returns undefined for a line that the program did not write
 */
export function logLineForSupport(line: string): string | undefined {
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch {
    return undefined
  }
  if (!isRecord(fields) || typeof fields.msg !== 'string' || typeof fields.time !== 'string') return undefined
  return JSON.stringify(allowed(fields))
}

function allowed(fields: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    if (name === 'stack' && typeof value === 'string') return [[name, framesOf(value)]]
    if (['err', 'error', 'cause'].includes(name) && isRecord(value)) return [[name, allowed(value)]]
    if (name === 'errors' && Array.isArray(value)) return [[name, value.filter(isRecord).map(allowed)]]
    if (typeof value === 'number' || typeof value === 'boolean') return [[name, value]]
    if (typeof value !== 'string' || value.length > kept.textLengthMax) return []
    if (name === 'msg') return [[name, value.replace(addressPattern, '$1://…')]]
    return kept.words.has(name) || idPattern.test(value) ? [[name, value]] : []
  })
  return Object.fromEntries(entries)
}

/** Only the places in the program and its packages: a path may begin with the name of a person. */
function framesOf(stack: string): string[] {
  const frames = stack.split('\n').flatMap(line => framePattern.exec(line)?.[1] ?? [])
  // pnpm's folders are named like e-mail addresses: node_modules/.pnpm/pg@8.16.3/node_modules/pg.
  return frames.map(frame => frame.replace(/^.*node_modules\//, 'node_modules/'))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
