import { Type } from 'typebox'

/**
 * The objects of the published operations are closed, so their answers never grow. A caller that sends
 * `Prefer: return=representation` gets the fuller shape that the operation declares in addition to the published one.
 *
 * The header is not part of a request's fingerprint: a repeated idempotency key replays the stored answer with its
 * `preference-applied`. There is no `vary`, because no answer may be cached.
 * Source: RFC 7240.
 */
export function prefersRepresentation({ headers }: Preferring): boolean {
  const { prefer } = headers
  if (prefer === undefined) return false
  return preferenceIn([prefer].flat().join(','), 'return') === 'representation'
}

/** A request with its headers. */
type Preferring = { headers: { [name: string]: string | string[] | undefined } }

/** The header that marks an answer in the fuller shape. */
export const representationApplied = { 'preference-applied': 'return=representation' }

export const preferHeader = {
  prefer: Type.Optional(
    Type.String({
      description:
        '`return=representation` requests the fuller shape, which is described by `/openapi.json?prefer=representation` (RFC 7240). Other preferences are ignored.',
      examples: ['return=representation'],
    }),
  ),
}

export const preferenceAppliedHeader = {
  'preference-applied': Type.String({
    description: '`return=representation` if the answer has the fuller shape; absent otherwise.',
  }),
}

/**
 * The value of a preference, in lower case; empty if it has none. Undefined if the header does not contain it, or contains it
 * only after an unclosed quote: an unreadable preference is ignored, like an unknown one. Of duplicates, the first counts.
 * @param name in lower case
 */
export function preferenceIn(header: string, name: string): string | undefined {
  for (const element of splitOutsideQuotes(header, ',')) {
    // The rest are parameters, which none of our preferences has.
    const [preference = ''] = splitOutsideQuotes(element, ';')
    const equals = preference.indexOf('=')
    const [key, value] = equals === -1 ? [preference, ''] : [preference.slice(0, equals), preference.slice(equals + 1)]
    if (key.trim().toLowerCase() === name) return unquoted(value.trim()).toLowerCase()
  }
  return undefined
}

// By hand, because a regular expression for quoted strings takes quadratic time on a hostile header.
function splitOutsideQuotes(text: string, separator: ',' | ';'): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (isQuoted && character === '\\') index += 1
    else if (character === '"') isQuoted = !isQuoted
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  return isQuoted ? parts : [...parts, text.slice(start)]
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, '$1') : value
}
