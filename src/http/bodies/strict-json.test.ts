import fc from 'fast-check'
import { expect, test } from 'vitest'
import { extent } from '../../../test/runner/extent.ts'
import { parseStrictJson, TooComplex } from './strict-json.ts'

const parse = (text: string) => parseStrictJson(new TextEncoder().encode(text))
const faultsOf = (text: string) => parse(text).faults.map(fault => fault.path)

test('serialised JSON is parsed as by JSON.parse, without faults', () => {
  fc.assert(
    fc.property(fc.json(), text => {
      // The only integer that fc.json may write as a float is -0, which JSON.stringify writes as 0.
      const written = JSON.stringify(JSON.parse(text))
      expect(parse(written).value).toEqual(JSON.parse(written))
    }),
  )
})

test('duplicate keys are found at any depth and in any escaping', () => {
  expect(faultsOf('{"a":1,"a":1}')).toEqual(['a'])
  expect(faultsOf('{"a":1,"\\u0061":2}')).toEqual(['a'])
  expect(faultsOf('{"x":[{"y":1},{"a":{"b":1,"b":2}}]}')).toEqual(['x.1.a.b'])
  expect(faultsOf('[{"a":1},{"a":1}]')).toEqual([])
  expect(faultsOf('{"a":{"b":1},"c":{"b":1}}')).toEqual([])
  expect(faultsOf('{"a":["a","a"],"b":"a"}')).toEqual([])
})

test('NUL and lone surrogates are found in values and in keys', () => {
  expect(faultsOf('{"name":"a\\u0000b"}')).toEqual(['name'])
  expect(faultsOf('{"name":"\\ud800"}')).toEqual(['name'])
  expect(faultsOf('{"list":["ok","\\udc00"]}')).toEqual(['list.1'])
  expect(faultsOf('{"a\\u0000":1}')).toEqual(['a\0'])
  expect(faultsOf('{"name":"\\ud83d\\ude00"}')).toEqual([])
})

test('an integer written as a float is a fault, a fraction is left to the schema', () => {
  expect(faultsOf('{"a":1.0}')).toEqual(['a'])
  expect(faultsOf('{"a":1e2}')).toEqual(['a'])
  expect(faultsOf('{"a":1.00000000000000001}')).toEqual(['a'])
  expect(faultsOf('{"a":1.5,"b":-3,"c":[0.25]}')).toEqual([])
  expect(faultsOf('1.0')).toEqual(['body'])
})

test('JSON inside a string is not parsed as structure', () => {
  expect(parse('{"a":"{\\"a\\":1,\\"a\\":1e2}","b":"\\\\"}')).toEqual({
    value: { a: '{"a":1,"a":1e2}', b: '\\' },
    faults: [],
  })
})

test('a body that is not JSON or not UTF-8 is refused', () => {
  for (const text of ['', '{', '{"a":1,}', "{'a':1}", 'nul', '[1 2]', '\ufeff{}', '{"a":"\n"}', '01']) {
    expect(() => parse(text), text).toThrow(SyntaxError)
  }
  expect(() => parseStrictJson(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(TypeError)
})

test('excessive nesting is refused, and a hostile body yields a bounded number of faults', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  expect(parse(nested(64)).faults).toEqual([])
  expect(() => parse(nested(65))).toThrow(TooComplex)
  expect(() => parse('['.repeat(32 * 1024 * 1024))).toThrow(TooComplex)
  expect(() => parse(`[${'{},'.repeat(2_000_000)}{}]`)).toThrow(TooComplex)
  const fields = (count: number) => `{${Array.from({ length: count }, (_, index) => `"f${index}":1`).join()}}`
  expect(parse(fields(10_000)).faults).toEqual([])
  expect(() => parse(fields(10_001))).toThrow(TooComplex)
  const longKey = 'x'.repeat(200_000)
  const { faults } = parse(`{"${longKey}":[${Array(2_000).fill('1.0').join()}]}`)
  expect(JSON.stringify(faults).length).toBeLessThan(500_000)
  expect(parse(`[${Array(50_000).fill('1.0').join()}]`).faults).toHaveLength(101)
})

test('malformed JSON is a SyntaxError, regardless of the place of the error', () => {
  const written = fc.tuple(fc.json(), fc.nat(), fc.constantFrom('', '"', '\\', ',', '{', ']', '\\u00', '0', '\n'))
  fc.assert(
    fc.property(written, ([text, place, inserted]) => {
      const at = place % (text.length + 1)
      const broken = text.slice(0, at) + inserted + text.slice(at + 1)
      let parsed: unknown
      try {
        parsed = JSON.parse(broken)
      } catch {
        expect(() => parse(broken)).toThrow(SyntaxError)
        return
      }
      expect(parse(broken).value).toEqual(parsed)
    }),
    { numRuns: extent({ short: 500, long: 2_000 }) },
  )
})
