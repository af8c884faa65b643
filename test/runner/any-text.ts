import fc from 'fast-check'

/**
 * Any text without lone surrogates. Not `fc.string` with the unit 'binary': it builds a table of all code points, which takes
 * seconds.
 */
export function anyText({ maxLength }: { maxLength: number }): fc.Arbitrary<string> {
  const codePoint = fc.oneof(fc.nat({ max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  return fc.array(codePoint, { maxLength }).map(codePoints => String.fromCodePoint(...codePoints))
}
