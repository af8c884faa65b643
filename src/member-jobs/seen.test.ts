import { expect, test } from 'vitest'
import { limits } from '../tabular/tabular.ts'
import { Seen } from './seen.ts'

test('as many texts as a file may have rows are told apart, and one that comes again is noticed', () => {
  const seen = new Seen()
  for (let number = 0; number < limits.rowsMax; number++) seen.add(`W${number}`)
  expect(seen.hasPerhapsTwice).toBe(false)
  seen.add(`W${limits.rowsMax / 2}`)
  expect(seen.hasPerhapsTwice).toBe(true)
})

test('texts that differ in their order or in one letter are told apart', () => {
  const seen = new Seen()
  for (const text of ['', 'a', 'b', 'ab', 'ba', 'aa', 'sam@example.com', 'sam@example.org', 'max@example.com'])
    seen.add(text)
  expect(seen.hasPerhapsTwice).toBe(false)
})
