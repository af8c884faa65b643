import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseInstant } from './time.ts'

const nanosPerMs = 1_000_000n

test('a bound with more decimals than milliseconds selects exactly the same rows as without rounding', () => {
  const day = Date.parse('2026-03-10T09:00:00.000Z')
  const nanos = fc.oneof(fc.bigInt({ min: 0n, max: 999_999_999n }), fc.constantFrom(0n, 999_999_999n, 123_000_001n))
  fc.assert(
    fc.property(nanos, fc.integer({ min: 3, max: 30 }), fc.integer({ min: -2, max: 1_002 }), (bound, digits, row) => {
      const text = `2026-03-10T09:00:00.${String(bound).padStart(9, '0').padEnd(digits, '0')}Z`
      const [up, down] = (['up', 'down'] as const).map(decimals => parseInstant(text, { decimals }).getTime() - day)
      const exactly = BigInt(row) * nanosPerMs
      expect(row >= (up ?? Number.NaN)).toBe(exactly >= bound)
      expect(row < (up ?? Number.NaN)).toBe(exactly < bound)
      expect(row <= (down ?? Number.NaN)).toBe(exactly <= bound)
    }),
  )
})

test.each([
  ['2026-03-31', '2026-03-31T00:00:00.000Z'],
  ['2024-01-01T00:00Z', '2024-01-01T00:00:00.000Z'],
  ['2024-01-01T00:00:07Z', '2024-01-01T00:00:07.000Z'],
  ['2024-01-01T00:00:00.5Z', '2024-01-01T00:00:00.500Z'],
  ['2024-01-01T00:00:00.12Z', '2024-01-01T00:00:00.120Z'],
  ['2024-02-29T23:59:59.999Z', '2024-02-29T23:59:59.999Z'],
  [`2024-01-01T00:00:00.1230${'0'.repeat(500)}Z`, '2024-01-01T00:00:00.123Z'],
])('reads %s', (text, expected) => {
  for (const decimals of ['up', 'down'] as const) expect(parseInstant(text, { decimals }).toISOString()).toBe(expected)
})

test('rounding up carries into the next second, day and year', () => {
  const text = '2025-12-31T23:59:59.9990001Z'
  expect(parseInstant(text, { decimals: 'up' }).toISOString()).toBe('2026-01-01T00:00:00.000Z')
  expect(parseInstant(text, { decimals: 'down' }).toISOString()).toBe('2025-12-31T23:59:59.999Z')
})
