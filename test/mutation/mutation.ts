import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { filesBelow, importsOf } from '../architecture/imports.ts'

// Changes the rules in every small way that Stryker knows, one mutant at a time, and lists the mutants that the tests which
// import the file do not notice: npm run mutation [-- FILE...]. Stryker is fetched.
const stryker = '@stryker-mutator/core@10.1.1'
const all = filesBelow('src')
const rules = all.filter(file => /^src\/[^/]+\/rules\.ts$/.test(file))
const named = process.argv.slice(2)
const mutated = named.length > 0 ? named : ['src/kernel/money.ts', ...rules, 'src/withdrawals/lifecycle.ts']

const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-mutation-'))
const failed: string[] = []
try {
  for (const file of mutated) if (!mutate(file)) failed.push(file)
} finally {
  rmSync(folder, { recursive: true })
}
if (failed.length > 0) {
  console.error(`Not tested: ${failed.join(', ')}`)
  process.exitCode = 1
}

function mutate(file: string): boolean {
  const importing = all.filter(each => each.endsWith('.test.ts') && importsOf(each, { types: false }).includes(file))
  if (importing.length === 0) return false
  // Starting a database for every mutant would take several times as long.
  const pure = importing.filter(each => !readFileSync(each, 'utf8').includes('/harness/harness.ts'))
  const tests = pure.length > 0 ? pure : importing
  const config = pure.length > 0 ? '--config test/mutation/vitest.config.ts --root .' : '--bail 1'
  console.log(`\n${file}, by ${tests.join(' ')}`)
  const settings = path.join(folder, 'stryker.json')
  writeFileSync(
    settings,
    JSON.stringify({
      testRunner: 'command',
      commandRunner: { command: `node_modules/.bin/vitest run ${config} ${tests.join(' ')}` },
      mutate: [file],
      reporters: ['clear-text'],
      clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
      tempDirName: path.join(folder, 'copies'),
      ignorePatterns: ['/bench', '/docs', '/site'],
      // Without plugins, and without the TypeScript compiler, which Stryker would import for a tsconfig.json.
      ...{ plugins: [], checkers: [], tsconfigFile: 'none.json' },
    }),
  )
  const { status } = spawnSync('npm', ['exec', '--yes', `--package=${stryker}`, '--', 'stryker', 'run', settings], {
    stdio: 'inherit',
  })
  return status === 0
}
