import { expect, test } from 'vitest'
import { cyclesOf, filesBelow, importsOf, roomOf } from './imports.ts'

const files = ['test', 'bench'].flatMap(filesBelow)
const modules = files.map(file => ({ file, imports: importsOf(file) }))

test('the checks see every file of test/ and bench/', () => {
  expect(files.length).toBeGreaterThan(150)
  const targets = modules.flatMap(({ imports }) => imports).filter(each => /^(test|bench)\//.test(each))
  expect(targets.length).toBeGreaterThan(250)
  expect(targets.filter(each => !files.includes(each))).toEqual([])
})

test('files of test/ and bench/ do not import each other in a cycle, types included', () => {
  expect(cyclesOf(new Map(modules.map(({ file, imports }) => [file, new Set(imports)])))).toEqual([])
})

test('folders of test/ and bench/ do not import each other in a cycle', () => {
  const edges = new Map<string, Set<string>>()
  for (const { file, imports } of modules) {
    for (const each of imports.filter(target => files.includes(target))) {
      if (roomOf(each) !== roomOf(file))
        edges.set(roomOf(file), (edges.get(roomOf(file)) ?? new Set()).add(roomOf(each)))
    }
  }
  expect(cyclesOf(edges)).toEqual([])
})

test('test/ and bench/ do not import each other, but for drills, which fill databases as benchmarks do', () => {
  const others = modules.filter(({ file }) => !file.startsWith('test/drills/'))
  const crossings = others.flatMap(({ file, imports }) =>
    imports
      .filter(each => /^(test|bench)\//.test(each) && each.split('/')[0] !== file.split('/')[0])
      .map(each => `${file} imports ${each}`),
  )
  expect(crossings).toEqual([])
})

test('a file that supports tests or benchmarks is in a folder that says what it holds', () => {
  const loose = files.filter(file => file.split('/').length === 2 && !file.endsWith('.test.ts'))
  expect(loose).toEqual(['bench/bench.ts', 'bench/options.ts', 'bench/report.ts'])
  const vague = /(^|\/)(support|utils?|common|helpers?|shared|misc)(\.ts|\/)/
  expect(files.filter(file => vague.test(file))).toEqual([])
})

test('the program and its packages import tests only in tests', () => {
  const offenders = ['src', 'cli', 'packages', 'scripts']
    .flatMap(filesBelow)
    .filter(file => !/\.(test|fixture)\.ts$/.test(file))
    .filter(file => importsOf(file).some(each => /^(test|bench)\//.test(each)))
  expect(offenders).toEqual([])
})
