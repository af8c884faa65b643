import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { filesBelow, importsOf } from '../architecture/imports.ts'
import { randomOf } from '../crash/random.ts'
import { instrument, type Mutant, type Run, runTests } from './instrumented.ts'
import { faults } from './sql-faults.ts'

// Breaks the program on purpose, and lists the breakages that its tests do not notice; see README.md.
//   npm run mutation                         every mutant of money, the rules and the lifecycle of withdrawals
//   npm run mutation -- FILE...              every mutant of these files
//   npm run mutation -- --sample 200         a sample of the mutants of bookings, batches and the books of payouts
//   npm run mutation -- --sql [TEXT]         the faults of sql-faults.ts, or those whose names contain a text
const { values, positionals } = parseArgs({
  options: { sample: { type: 'string' }, seed: { type: 'string', default: '1' }, sql: { type: 'boolean' } },
  allowPositionals: true,
})

const all = filesBelow('src')
const rules = ['src/kernel/money.ts', ...all.filter(file => /\/rules\.ts$/.test(file)), 'src/withdrawals/lifecycle.ts']
const books = all.filter(
  file => /^src\/(withdrawals\/(bookings|batches)|batch\/batch|payouts\/books\/[^/]+)\.ts$/.test(file) && !isTest(file),
)
// Of the tests that reach the books, those whose subject they are.
const testsOfBooks = all.filter(file =>
  /^src\/(withdrawals|batch|payouts\/books|payouts\/channels\/(files|adyen)|float)\/[^/]+\.test\.ts$|^src\/(payouts\/payouts|operators\/rejected-batches)\.test\.ts$/.test(
    file,
  ),
)

// A run that is interrupted has printed the survivors of the mutants tried so far.
const mutantsAtOnce = 20
const repetitionsMax = 2

const copy = mkdtempSync(path.join(tmpdir(), 'midmonth-mutation-'))
try {
  copyProject()
  if (values.sql === true) tryFaults()
  else if (values.sample !== undefined)
    await tryMutants(books, { countMax: Number(values.sample), tests: testsOfBooks })
  else await tryMutants(positionals.length > 0 ? positionals : rules, {})
} finally {
  rmSync(copy, { recursive: true, force: true })
}

/** Copies the files of the repository as they are now. What is installed and built is shared. */
function copyProject(): void {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  for (const file of files.split('\n')) {
    if (file !== '' && existsSync(file)) cpSync(file, path.join(copy, file))
  }
  for (const shared of ['node_modules', 'packages/dist', 'packages/console/dist']) {
    if (existsSync(shared)) symlinkSync(path.resolve(shared), path.join(copy, shared))
  }
}

async function tryMutants(files: string[], { countMax, tests }: { countMax?: number; tests?: string[] }) {
  const mutants = await instrument(copy, files)
  const candidates = tests ?? testsOf(files)
  console.log(`${mutants.length} mutants in ${files.length} files; ${candidates.length} test files`)
  // Which mutants a test file runs through, and how long it takes.
  const runs = runPatiently({ names: candidates.map(file => [file]) })
  const failing = runs.filter(run => !run.isPassed)
  if (failing.length > 0)
    throw new Error(`fail without a mutant: ${failing.map(run => `${run.tests.join(' ')}: ${run.problem}`).join('\n')}`)
  const chosen =
    countMax === undefined ? mutants : randomOf(Number(values.seed), 'mutants').shuffled(mutants).slice(0, countMax)
  const killed = new Set<string>()
  for (let first = 0; first < chosen.length; first += mutantsAtOnce) {
    const batch = chosen.slice(first, first + mutantsAtOnce)
    const tried = batch
      .map(mutant => ({ mutant, tests: testsOfMutant(mutant, runs) }))
      .filter(({ tests }) => tests.length > 0)
    const results = runPatiently({
      names: tried.map(({ tests }) => tests),
      mutants: tried.map(({ mutant }) => mutant.id),
    })
    const runOf = new Map(results.map(run => [run.mutant, run]))
    for (const mutant of batch) {
      const run = runOf.get(mutant.id)
      if (run?.isPassed === false) killed.add(mutant.id)
      if (run === undefined) print('NOT TESTED', mutant)
      else if (run.isPassed) print('SURVIVED', mutant)
      else if (run.isLate) print('killed because something took too long', mutant)
    }
    console.log(`\n${killed.size} of ${first + batch.length} killed`)
  }
  report(chosen, killed)
}

/** Repeats the runs in which something took too long, so that a busy machine does not look like a mutant that was noticed. */
function runPatiently({ names, mutants }: { names: string[][]; mutants?: string[] }): Run[] {
  const runs = runTests(copy, { names, ...(mutants && { mutants }) })
  for (let count = 0; count < repetitionsMax; count++) {
    const late = runs.flatMap((run, index) => (run.isLate ? index : []))
    const again = runTests(copy, {
      names: late.map(index => names[index] ?? []),
      ...(mutants && { mutants: late.map(index => mutants[index] ?? '') }),
    })
    for (const [position, run] of again.entries()) runs[late[position] ?? 0] = run
  }
  return runs
}

function testsOf(files: string[]): string[] {
  const importing = all.filter(
    each => isTest(each) && importsOf(each, { types: false }).some(file => files.includes(file)),
  )
  // Tests of pure functions take milliseconds; a rule without any is tested through the API.
  const pure = importing.filter(each => !readFileSync(each, 'utf8').includes('/harness/harness.ts'))
  const uncovered = files.filter(file => !pure.some(test => importsOf(test, { types: false }).includes(file)))
  return [
    ...pure,
    ...importing.filter(
      test => !pure.includes(test) && importsOf(test, { types: false }).some(file => uncovered.includes(file)),
    ),
  ]
}

// The quickest first, since the first that fails ends the run.
function testsOfMutant({ id }: Mutant, runs: Run[]): string[] {
  return runs
    .filter(run => run.covered.has(id))
    .sort((a, b) => a.ms - b.ms)
    .flatMap(run => run.tests)
}

function report(mutants: Mutant[], killed: Set<string>): void {
  const files = [...new Set(mutants.map(({ file }) => file))]
  for (const file of files) {
    const ofFile = mutants.filter(each => each.file === file)
    printShare(file, { killed: ofFile.filter(({ id }) => killed.has(id)).length, all: ofFile.length })
  }
  printShare('all', { killed: killed.size, all: mutants.length })
}

function print(what: string, { file, line, code, replacement }: Mutant): void {
  console.log(`\n${what}: ${file}:${line}\n- ${code.slice(0, 300)}\n+ ${replacement.slice(0, 300)}`)
}

function printShare(name: string, { killed, all }: { killed: number; all: number }): void {
  console.log(`${((100 * killed) / all).toFixed(1).padStart(5)} %  ${killed} of ${all}  ${name}`)
}

function tryFaults(): void {
  const tests = [...all, ...filesBelow('test')].filter(isTest)
  let noticed = 0
  const chosen = faults.filter(({ what }) => what.includes(positionals[0] ?? ''))
  for (const { what, file, from, to, tests: named } of chosen) {
    const name = path.join(copy, file)
    const text = readFileSync(name, 'utf8')
    if (text.split(from).length !== 2) throw new Error(`${what}: ${file} does not have this text once: ${from}`)
    writeFileSync(
      name,
      text.replace(from, () => to),
    )
    const [run] = runPatiently({ names: [tests.filter(test => named.some(each => test.startsWith(each)))] })
    writeFileSync(name, text)
    if (run?.isPassed === false) noticed++
    console.log(`${run?.isPassed === false ? 'noticed ' : 'SURVIVED'}  ${what}`)
  }
  printShare('faults in SQL', { killed: noticed, all: chosen.length })
}

function isTest(file: string): boolean {
  return file.endsWith('.test.ts')
}
