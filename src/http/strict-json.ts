/** A place in a JSON text that `JSON.parse` would repair or drop in silence. */
export type Fault = { path: string; message: string }

/** As many faults of a part of a request as are looked for: an answer names the first hundred, and says that there are more. */
export const faultsMax = 101

// No body of ours is nested deeper than 5; a deeper one only costs time.
const depthMax = 64
// The largest settlement has 250,000 lines of five values; in memory a value takes ten times its bytes.
const valuesMax = 1_500_000
// Fields of one object. The largest object that an operation takes has fifteen; a million of them take seconds to tell apart.
const keysMax = 10_000
// A path is for people; a key of a megabyte, told a hundred times, is for nobody.
const stepLengthMax = 100

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The body is nested more deeply, or has more fields or values, than any that an operation takes. */
export class TooIntricate extends Error {
  override readonly message =
    `The body is nested deeper than ${depthMax}, or holds more than ${valuesMax} values or ${keysMax} fields of one object`
}

/**
 * Reads a JSON text as it stands. Grammar is `JSON.parse`'s; on top of it come the faults that it passes over: a key
 * that stands twice in one object, NUL and lone surrogates in strings (the database refuses the one and alters the
 * other), and integers in the clothes of a float (`1.0`, `1e2`, `1.00000000000000001`), which a double may have rounded.
 * @returns at most `faultsMax` faults
 * @throws SyntaxError for what is not JSON, TypeError for what is not UTF-8, TooIntricate
 */
export function parseStrictJson(bytes: Uint8Array): { value: unknown; faults: Fault[] } {
  const text = utf8.decode(bytes)
  // First, since what is nested without end, or holds nothing but brackets, takes a gigabyte as values.
  const faults = faultsIn(text)
  return { value: JSON.parse(text), faults }
}

// Looks at strings, numbers and brackets only: whether the grammar is right is for `JSON.parse` to say, behind it.
function faultsIn(text: string): Fault[] {
  const faults: Fault[] = []
  const keys: (Set<string> | undefined)[] = []
  const steps: (string | number)[] = []
  // A value that is the whole body has no way to it.
  const path = () => steps.join('.') || 'body'
  const add = (message: string) => {
    if (faults.length < faultsMax) faults.push({ path: path(), message: `${path()} ${message}` })
  }
  let depth = 0
  let values = 1
  let expectsKey = false
  let nextBackslash = -1
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === quote) {
      if (nextBackslash < at) nextBackslash = indexOr(text, '\\', at)
      const end = endOfString(text, at, nextBackslash)
      const hasEscape = nextBackslash < end
      const decoded = hasEscape ? (JSON.parse(text.slice(at, end + 1)) as string) : undefined
      if (expectsKey) {
        const key = decoded ?? text.slice(at + 1, end)
        const known = keys[depth - 1] ?? new Set()
        keys[depth - 1] = known
        steps[depth - 1] = key.slice(0, stepLengthMax)
        if (known.has(key)) add('stands twice in one object')
        known.add(key)
        if (known.size > keysMax) throw new TooIntricate()
        expectsKey = false
      }
      // UTF-8 holds no half of a pair, and JSON no bare NUL: both come by an escape only.
      const fault = decoded === undefined ? undefined : textFault(decoded)
      if (fault !== undefined) add(fault)
      at = end
    } else if (character === comma) {
      if (++values > valuesMax) throw new TooIntricate()
      const step = steps[depth - 1]
      if (typeof step === 'number') steps[depth - 1] = step + 1
      else expectsKey = depth > 0
    } else if (character === openBrace || character === openBracket) {
      if (++values > valuesMax || depth === depthMax) throw new TooIntricate()
      expectsKey = character === openBrace
      keys[depth] = undefined
      steps[depth++] = expectsKey ? '' : 0
    } else if (character === closeBrace || character === closeBracket) {
      depth = Math.max(0, depth - 1)
      steps.length = depth
      expectsKey = false
    } else if (character === minus || (character >= zero && character <= nine)) {
      const start = at
      let isPlain = true
      for (; at + 1 < text.length; at++) {
        const next = text.charCodeAt(at + 1)
        if (next >= zero && next <= nine) continue
        if (!inNumber.has(next)) break
        isPlain = false
      }
      if (!isPlain && Number.isInteger(Number(text.slice(start, at + 1)))) {
        add('must be written in plain digits, without a point or an exponent')
      }
    }
  }
  return faults
}

const [quote, comma, minus, zero, nine] = [0x22, 0x2c, 0x2d, 0x30, 0x39]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]
const inNumber = new Set([...'.eE+-'].map(sign => sign.charCodeAt(0)))

function endOfString(text: string, start: number, nextBackslash: number): number {
  let end = indexOr(text, '"', start + 1)
  for (let backslash = nextBackslash; backslash < end; ) {
    // What follows a backslash ends nothing.
    const from = backslash + 2
    // Looked for only when it was escaped: from each backslash anew, a string of nothing but escapes would never end.
    if (end < from) end = indexOr(text, '"', from)
    backslash = indexOr(text, '\\', from)
  }
  if (end === Number.POSITIVE_INFINITY) throw new SyntaxError('A string does not end')
  return end
}

function indexOr(text: string, searched: string, from: number): number {
  const index = text.indexOf(searched, from)
  return index === -1 ? Number.POSITIVE_INFINITY : index
}

/** Why a body cannot be read, by what `parseStrictJson` has thrown. @throws what is no fault of the body */
export function refusalOf(error: unknown): string {
  if (error instanceof TooIntricate) return error.message
  if (error instanceof SyntaxError) return 'The body is not well-formed JSON'
  if (error instanceof TypeError) return 'The body is not valid UTF-8'
  throw error
}

/** What is wrong with a text that PostgreSQL could not store as it stands; undefined for a good one. */
export function textFault(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain NUL'
  if (!text.isWellFormed()) return 'must not contain half of a surrogate pair'
  return undefined
}
