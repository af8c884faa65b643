import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const fetched = ['@stryker-mutator/instrumenter@10.1.1', 'typed-inject@5.0.0']

/** @property code the text that the mutant replaces */
export type Mutant = { id: string; file: string; line: number; code: string; replacement: string }

/**
 * Test files that ran in one process.
 * @property problem what the first failed test says
 * @property isLate whether a test failed only because something took too long, which a busy machine causes as well as a mutant
 * @property covered the mutants that they ran through, if none was active
 */
export type Run = {
  tests: string[]
  mutant?: string
  isPassed: boolean
  problem: string
  isLate: boolean
  ms: number
  covered: Set<string>
}

type TestResult = {
  name: string
  status: string
  startTime: number
  endTime: number
  message: string
  assertionResults: { failureMessages: string[] }[]
}

type Instrumented = {
  files: { name: string; content: string }[]
  mutants: { id: string; fileName: string; replacement: string; location: { start: Place; end: Place } }[]
}
type Place = { line: number; column: number }

/**
 * Puts every mutant that Stryker knows into the files of a copy of the project, switched off. Stryker's instrumenter is fetched:
 * its own runner would start the tests anew for every mutant, which takes ten times as long.
 */
export async function instrument(copy: string, files: string[]): Promise<Mutant[]> {
  const tools = path.join(copy, 'instrumenter')
  const { status } = spawnSync('npm', ['install', '--prefix', tools, '--no-save', '--ignore-scripts', ...fetched], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new Error('The instrumenter could not be fetched')
  const load = async (name: string) => await import(pathToFileURL(path.join(tools, 'node_modules', name)).href)
  const { createInstrumenter } = await load('@stryker-mutator/instrumenter/dist/src/index.js')
  const { createInjector } = await load('typed-inject/dist/src/index.js')
  const log = new Proxy({}, { get: () => () => false })
  const options = { plugins: null, excludedMutations: [], ignorers: [], mutator: { plugins: null } }
  const instrumenter = createInjector()
    .provideValue('options', options)
    .provideValue('logger', log)
    .provideValue('getLogger', () => log)
    .injectFunction(createInstrumenter)
  const sources = files.map(file => ({
    name: path.join(copy, file),
    content: readFileSync(path.join(copy, file), 'utf8'),
    mutate: true,
  }))
  const found: Instrumented = await instrumenter.instrument(sources, options)
  for (const { name, content } of found.files) writeFileSync(name, content)
  const lines = new Map(sources.map(({ name, content }) => [name, content.split('\n')]))
  return found.mutants.map(({ id, fileName, replacement, location: { start, end } }) => {
    const text = lines.get(fileName)?.slice(start.line, end.line + 1) ?? []
    text.push((text.pop() ?? '').slice(0, end.column))
    text[0] = (text[0] ?? '').slice(start.column)
    return { id, file: path.relative(copy, fileName), line: start.line + 1, code: text.join('\n'), replacement }
  })
}

/**
 * Runs test files of the copy, one process for each list of names, two at a time, with the mutant of the same place switched on.
 * The first test that fails ends its process, as does a loop without an end.
 */
export function runTests(copy: string, { names, mutants }: { names: string[][]; mutants?: string[] }): Run[] {
  if (names.length === 0) return []
  const folder = path.join(copy, 'mutants')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  const width = String(names.length).length
  const fileOf = (index: number) => path.join(folder, `${String(index).padStart(width, '0')}.test.ts`)
  for (const [index, tests] of names.entries()) {
    writeFileSync(fileOf(index), testFile(tests, { coverage: `${fileOf(index)}.json`, mutant: mutants?.[index] }))
  }
  const output = path.join(copy, 'results.json')
  rmSync(output, { force: true })
  spawnSync(
    path.join(copy, 'node_modules/.bin/vitest'),
    ['run', '--root', copy, '--config', 'test/mutation/vitest.config.ts', '--outputFile', output],
    { cwd: copy, stdio: ['ignore', 'ignore', 'ignore'] },
  )
  const results: { testResults: TestResult[] } = JSON.parse(readFileSync(output, 'utf8'))
  const byName = new Map(results.testResults.map(result => [result.name, result]))
  return names.map((tests, index) => {
    const result = byName.get(fileOf(index))
    const isPassed = result?.status === 'passed'
    const covered = mutants === undefined && isPassed ? JSON.parse(readFileSync(`${fileOf(index)}.json`, 'utf8')) : []
    const ms = (result?.endTime ?? 0) - (result?.startTime ?? 0)
    const mutant = mutants?.[index]
    const problem = problemOf(result)
    const isLate = !isPassed && lateness.test(problem)
    return {
      ...{ tests, isPassed, problem, isLate, ms, covered: new Set<string>(covered) },
      ...(mutant === undefined ? {} : { mutant }),
    }
  })
}

const lateness = /no result|timed out in|The service is busy|TimeoutError/

function problemOf(result: TestResult | undefined): string {
  if (result === undefined) return 'no result'
  const [first = result.message] = result.assertionResults.flatMap(({ failureMessages }) => failureMessages)
  return first
}

// The mutant is switched on before the tests are loaded, since some are in code that runs when its module is loaded.
function testFile(tests: string[], { mutant, coverage }: { mutant: string | undefined; coverage: string }): string {
  const state = mutant === undefined ? {} : { activeMutant: mutant, hitCount: 0, hitLimit: 5_000_000 }
  return [
    `import { writeFileSync } from 'node:fs'`,
    `import { afterAll, afterEach, beforeEach } from 'vitest'`,
    `globalThis.__stryker__ = ${JSON.stringify(state)}`,
    `let hasFailed = false`,
    `beforeEach(({ skip }) => { if (hasFailed) skip() })`,
    `afterEach(({ task }) => { hasFailed ||= task.result?.state === 'fail' })`,
    `afterAll(() => {`,
    `  const { static: atLoad = {} } = globalThis.__stryker__.mutantCoverage ?? {}`,
    `  writeFileSync(${JSON.stringify(coverage)}, JSON.stringify(Object.keys(atLoad)))`,
    `})`,
    ...tests.map(test => `await import(${JSON.stringify(`../${test}`)})`),
    '',
  ].join('\n')
}
