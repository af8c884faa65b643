/** A place in a JSON text that `JSON.parse` would repair or drop in silence. */
export type Fault = { path: string; message: string }

// No body of ours is nested deeper than 5; a deeper one only costs time.
const depthMax = 64
// Nobody reads more.
const faultsMax = 1_000
// A path is for people; a key of a megabyte, told a thousand times, is for nobody.
const stepLengthMax = 100

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads a JSON text as it stands. Grammar is `JSON.parse`'s; on top of it come the faults that it passes over: a key
 * that stands twice in one object, NUL and lone surrogates in strings (the database refuses the one and alters the
 * other), and integers in the clothes of a float (`1.0`, `1e2`, `1.00000000000000001`), which a double may have rounded.
 * @throws SyntaxError for what is not JSON or is nested too deeply, TypeError for what is not UTF-8
 */
export function parseStrictJson(bytes: Uint8Array): { value: unknown; faults: Fault[] } {
  const text = utf8.decode(bytes)
  const value: unknown = JSON.parse(text)
  return { value, faults: [...faultsIn(text).take(faultsMax)] }
}

type Level = { keys: Set<string> | undefined; step: string; index: number }

const stringToken = /"(?:[^"\\]|\\.)*"/y
const numberToken = /-?[0-9][0-9.eE+-]*/y

// The grammar is known to be right, so that looking at strings, numbers and brackets is enough.
function* faultsIn(text: string): Generator<Fault> {
  const levels: Level[] = []
  // A value that is the whole body has no way to it.
  const path = () => levels.map(level => level.step).join('.') || 'body'
  let expectsKey = false
  for (let at = 0; at < text.length; at++) {
    const level = levels.at(-1)
    const character = text[at]
    if (levels.length > depthMax) throw new SyntaxError(`Nested deeper than ${depthMax}`)
    if (character === '{') {
      levels.push({ keys: new Set(), step: '', index: 0 })
      expectsKey = true
    } else if (character === '[') {
      levels.push({ keys: undefined, step: '0', index: 0 })
      expectsKey = false
    } else if (character === '}' || character === ']') {
      levels.pop()
      expectsKey = false
    } else if (character === ',' && level !== undefined) {
      if (level.keys === undefined) level.step = String(++level.index)
      else expectsKey = true
    } else if (character === '"') {
      const token = tokenAt(stringToken, text, at)
      const decoded = token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1)
      if (expectsKey && level?.keys !== undefined) {
        level.step = decoded.slice(0, stepLengthMax)
        if (level.keys.has(decoded)) yield { path: path(), message: `${path()} stands twice in one object` }
        level.keys.add(decoded)
        expectsKey = false
      }
      const fault = textFault(decoded)
      if (fault !== undefined) yield { path: path(), message: `${path()} ${fault}` }
      at += token.length - 1
    } else if (character === '-' || (character !== undefined && character >= '0' && character <= '9')) {
      const token = tokenAt(numberToken, text, at)
      if (/[.eE]/.test(token) && Number.isInteger(Number(token))) {
        yield { path: path(), message: `${path()} must be written in plain digits, without a point or an exponent` }
      }
      at += token.length - 1
    }
  }
}

/** What is wrong with a text that PostgreSQL could not store as it stands; undefined for a good one. */
export function textFault(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain NUL'
  if (!text.isWellFormed()) return 'must not contain half of a surrogate pair'
  return undefined
}

function tokenAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at
  const token = pattern.exec(text)?.[0]
  if (token === undefined) throw new SyntaxError(`Unexpected text at ${at}`)
  return token
}
