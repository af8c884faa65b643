import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMs } from '../../test/runner/cpu.ts'
import { preferenceIn } from './prefer.ts'

describe('a preference is found', () => {
  test.each([
    'return=representation',
    'Return=Representation',
    'return="representation"',
    ' return = representation ',
    'respond-async, return=representation',
    'respond-async,,return=representation;foo=bar',
    'return=representation; foo="a, return=minimal"',
    'foo="a\\", return=minimal", return=representation',
    'wait=10, return="repre\\sentation"',
    'return=representation, return=minimal',
    'priority, handling=lenient; wait=5, return=representation, "odd',
  ])('in %s', header => {
    expect(preferenceIn(header, 'return')).toBe('representation')
  })
})

describe('nothing else is mistaken for one', () => {
  test.each([
    ['', undefined],
    ['return', ''],
    ['return=', ''],
    ['return=""', ''],
    ['return=minimal, return=representation', 'minimal'],
    ['foo; return=representation', undefined],
    ['foo="return=representation"', undefined],
    ['foo=", return=representation', undefined],
    ['returns=representation', undefined],
    ['"return"=representation', undefined],
  ] as const)('%s', (header, value) => {
    expect(preferenceIn(header, 'return')).toBe(value)
  })

  test('whatever the header contains, in linear time', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('return', '=', '"', '\\', ',', ';', ' ', 'x') }), header => {
        const value = preferenceIn(header, 'return')
        expect(value === undefined || typeof value === 'string').toBe(true)
      }),
    )
    const startMs = cpuMs()
    for (const part of ['"\\', ' ;', '",', 'return=']) preferenceIn(part.repeat(8_000), 'x')
    expect(cpuMs() - startMs).toBeLessThan(1_000)
  })
})
