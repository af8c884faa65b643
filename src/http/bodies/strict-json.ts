import { type Fault, faultsMax, textFault } from '../../contract/faults.ts'

// No operation accepts a body with more than 5 levels, so parsing deeper levels is wasted time.
const depthMax = 64
// The largest settlement has 250,000 lines of five values. In memory, a value takes ten times its bytes.
const valuesMax = 1_500_000
// Fields of one object. The largest object of an operation has fifteen; checking a million for duplicates takes seconds.
const keysMax = 10_000
// Keeps a hostile key of a megabyte from being repeated in a hundred issues.
const stepLengthMax = 100

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The body is nested deeper, or has more fields or values, than any operation accepts. */
export class TooComplex extends Error {
  override readonly message =
    `The body is nested deeper than ${depthMax} levels, or has more than ${valuesMax} values or ${keysMax} fields in one object`
}

/**
 * Parses JSON strictly. Has the grammar of `JSON.parse`, which ignores the faults reported here: duplicate keys in one object, NUL
 * and lone surrogates in strings (the database refuses NUL and alters surrogates), and integers written as floats (`1.0`, `1e2`,
 * `1.00000000000000001`), which a double may have rounded.
 * @returns at most `faultsMax` faults
 * @throws SyntaxError if the bytes are not JSON, TypeError if they are not UTF-8, TooComplex
 */
export function parseStrictJson(bytes: Uint8Array): { value: unknown; faults: Fault[] } {
  const text = utf8.decode(bytes)
  // Before `JSON.parse`, because endless nesting or a body of only brackets would take a gigabyte once parsed.
  const faults = faultsIn(text)
  return { value: JSON.parse(text), faults }
}

// Checks only strings, numbers and brackets; `JSON.parse` checks the grammar afterwards.
function faultsIn(text: string): Fault[] {
  const faults: Fault[] = []
  const keys: (Set<string> | undefined)[] = []
  const steps: (string | number)[] = []
  // A value that is the whole body has no path.
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
        if (known.has(key)) add('appears twice in one object')
        known.add(key)
        if (known.size > keysMax) throw new TooComplex()
        expectsKey = false
      }
      // UTF-8 cannot encode a lone surrogate, and JSON forbids a bare NUL, so both can only be escapes.
      const fault = decoded === undefined ? undefined : textFault(decoded)
      if (fault !== undefined) add(fault)
      at = end
    } else if (character === comma) {
      if (++values > valuesMax) throw new TooComplex()
      const step = steps[depth - 1]
      if (typeof step === 'number') steps[depth - 1] = step + 1
      else expectsKey = depth > 0
    } else if (character === openBrace || character === openBracket) {
      if (++values > valuesMax || depth === depthMax) throw new TooComplex()
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
    // The character after a backslash never ends the string.
    const from = backslash + 2
    // Search again only if the quote was escaped: a search from every backslash would take quadratic time.
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

/** Explains an error of `parseStrictJson` to the caller. @throws any error that is not the body's fault */
export function refusalOf(error: unknown): string {
  if (error instanceof TooComplex) return error.message
  if (error instanceof SyntaxError) return 'The body is not well-formed JSON'
  if (error instanceof TypeError) return 'The body is not valid UTF-8'
  throw error
}
