import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { filesBelow, importsOf } from '../architecture/imports.ts'
import { testsReachedBy } from './selection.ts'

// Runs the tests that the changes since a commit can reach, committed or not: npm run test:changed [-- COMMIT] [-- --all]
const { values, positionals } = parseArgs({
  options: { all: { type: 'boolean', default: false }, list: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean)
const [since = ''] = git('merge-base', positionals[0] ?? 'origin/HEAD', 'HEAD')
const changed = [...git('diff', '--name-only', since), ...git('ls-files', '--others', '--exclude-standard')]
const modules = ['src', 'cli', 'packages', 'test', 'scripts']
  .flatMap(filesBelow)
  .map(file => ({ file, imports: importsOf(file, { types: false }) }))
const endToEnd = /^(test\/(alerts|browser|journeys|program|properties)|packages\/embedded-postgres)\//
const tests = testsReachedBy(changed, modules, { all: values.all, textOf: file => readFileSync(file, 'utf8') }).filter(
  file => existsSync(file) && (changed.includes(file) || !endToEnd.test(file)),
)
console.log(`${changed.length} files changed since ${since.slice(0, 10)}: ${tests.length} test files`)
if (values.list) console.log(tests.join('\n'))
else if (tests.length > 0) {
  const { status } = spawnSync('vitest', ['run', ...tests], { stdio: 'inherit' })
  process.exitCode = status ?? 1
}
