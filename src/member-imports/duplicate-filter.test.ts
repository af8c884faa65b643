import { expect, test } from 'vitest'
import { limits } from '../tabular/tabular.ts'
import { DuplicateFilter } from './duplicate-filter.ts'

test('as many texts as a file may have rows are told apart, and one that comes again is noticed', () => {
  const seen = new DuplicateFilter()
  for (let number = 0; number < limits.rowsMax; number++) seen.add(`W${number}`)
  expect(seen.mayHaveRepeated).toBe(false)
  seen.add(`W${limits.rowsMax / 2}`)
  expect(seen.mayHaveRepeated).toBe(true)
})

test('texts that differ in their order or in one letter are told apart', () => {
  const seen = new DuplicateFilter()
  for (const text of ['', 'a', 'b', 'ab', 'ba', 'aa', 'sam@example.com', 'sam@example.org', 'max@example.com'])
    seen.add(text)
  expect(seen.mayHaveRepeated).toBe(false)
})
