import { expect, test } from 'vitest'
import { limits } from '../tabular/tabular.ts'
import { DuplicateFilter } from './duplicate-filter.ts'

test('a full file of distinct texts has no false positive, and a duplicate is detected', () => {
  const seen = new DuplicateFilter()
  for (let number = 0; number < limits.rowsMax; number++) seen.add(`W${number}`)
  expect(seen.mayHaveRepeated).toBe(false)
  seen.add(`W${limits.rowsMax / 2}`)
  expect(seen.mayHaveRepeated).toBe(true)
})

test('texts that differ in order or in one letter are distinguished', () => {
  const seen = new DuplicateFilter()
  for (const text of ['', 'a', 'b', 'ab', 'ba', 'aa', 'sam@example.com', 'sam@example.org', 'max@example.com'])
    seen.add(text)
  expect(seen.mayHaveRepeated).toBe(false)
})
