import { expect, test } from 'vitest'
import { newKey } from '../sealing/data-key.ts'
import { importKey } from './import-key.ts'

test('a sealed row is opened only as the same row of the same import', () => {
  const bytes = newKey()
  const ofImport = { partnerId: 'par_1', importId: 'maj_1' }
  const sealed = importKey(bytes, ofImport).seal('ada@example.com', 'row 2')
  expect(importKey(bytes, ofImport).open(sealed, 'row 2')).toBe('ada@example.com')
  expect(() => importKey(bytes, ofImport).open(sealed, 'row 3')).toThrow('(row 3 of par_1 maj_1) cannot be opened')
  expect(() => importKey(bytes, ofImport).open(sealed, 'command')).toThrow('cannot be opened')
  for (const other of [
    { ...ofImport, importId: 'maj_2' },
    { ...ofImport, partnerId: 'par_2' },
  ])
    expect(() => importKey(bytes, other).open(sealed, 'row 2')).toThrow('cannot be opened')
  expect(() => importKey(newKey(), ofImport).open(sealed, 'row 2')).toThrow('cannot be opened')
})
