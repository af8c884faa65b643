import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'

/**
 * The objects of the published operations are closed, so their answers never grow. A caller that sends
 * `Prefer: return=representation` gets the fuller shape that the operation declares beside the published one.
 *
 * The header is no part of what makes two requests the same: a repeated idempotency key replays the answer that was stored,
 * with the `preference-applied` that it had. There is no `vary`, since no answer may be stored by a cache.
 * Source: RFC 7240.
 */
export function prefersRepresentation({ headers }: FastifyRequest): boolean {
  const { prefer } = headers
  if (prefer === undefined) return false
  return preferenceIn([prefer].flat().join(','), 'return') === 'representation'
}

/** What an answer in the fuller shape says about itself. */
export const representationApplied = { 'preference-applied': 'return=representation' }

export const preferHeader = {
  prefer: Type.Optional(
    Type.String({
      description:
        '`return=representation` requests the fuller of the two shapes (RFC 7240). Other preferences are ignored.',
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
 * The value of a preference, in lower case; empty if it has none. Undefined if it is not asked for, or only behind a quote that
 * never ends: a preference that cannot be read is ignored, like one that is not known. If it is there twice, the first counts.
 * @param name in lower case
 */
export function preferenceIn(header: string, name: string): string | undefined {
  for (const element of splitOutsideQuotes(header, ',')) {
    // What follows are parameters, of which none is known for any preference that we have.
    const [preference = ''] = splitOutsideQuotes(element, ';')
    const equals = preference.indexOf('=')
    const [key, value] = equals === -1 ? [preference, ''] : [preference.slice(0, equals), preference.slice(equals + 1)]
    if (key.trim().toLowerCase() === name) return unquoted(value.trim()).toLowerCase()
  }
  return undefined
}

// By hand, since an expression for quoted strings takes a time that grows with the square of a hostile header.
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
