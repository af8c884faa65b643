import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { faults } from './sql-faults.ts'

test.each(faults)('the fault "$what" still has its place in the sources, and tests that could notice it', fault => {
  expect(readFileSync(fault.file, 'utf8').split(fault.from)).toHaveLength(2)
  expect(fault.tests.filter(each => !existsSync(each))).toEqual([])
})
