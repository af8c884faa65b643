import { expect, test } from 'vitest'
import { testsReachedBy } from './selection.ts'

const modules = [
  { file: 'src/kernel/money.ts', imports: [] },
  { file: 'src/kernel/money.test.ts', imports: ['src/kernel/money.ts'] },
  { file: 'src/fees/rules.ts', imports: ['src/kernel/money.ts'] },
  { file: 'src/fees/fees.test.ts', imports: ['test/harness/harness.ts'] },
  { file: 'src/tiers/rules.test.ts', imports: ['src/fees/rules.ts'] },
  { file: 'src/app.ts', imports: ['src/fees/rules.ts'] },
  { file: 'test/harness/harness.ts', imports: ['src/app.ts'] },
  { file: 'src/users/users.test.ts', imports: ['test/harness/harness.ts'] },
]
const texts: Record<string, string> = { 'src/users/users.test.ts': "readFileSync('openapi.json')" }
const reached = (changed: string[], all = false) =>
  testsReachedBy(changed, modules, { all, textOf: file => texts[file] ?? '' })

test('a change reaches the tests that import it, also through others, and those beside it', () => {
  expect(reached(['src/kernel/money.ts'])).toEqual(['src/kernel/money.test.ts', 'src/tiers/rules.test.ts'])
  expect(reached(['src/fees/rules.ts'])).toEqual(['src/fees/fees.test.ts', 'src/tiers/rules.test.ts'])
  expect(reached(['src/users/users.test.ts'])).toEqual(['src/users/users.test.ts'])
})

test('imports through the whole program count only on request, and for a change of the program', () => {
  const ofApi = ['src/fees/fees.test.ts', 'src/tiers/rules.test.ts', 'src/users/users.test.ts']
  expect(reached(['src/fees/rules.ts'], true)).toEqual(ofApi)
  expect(reached(['test/harness/harness.ts'])).toEqual(['src/fees/fees.test.ts', 'src/users/users.test.ts'])
})

test('a changed document reaches the tests that name it', () => {
  expect(reached(['openapi.json'])).toEqual(['src/users/users.test.ts'])
})
