import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { type Drill, Skipped } from './drill.ts'

// Runs the drills beside this file, one after the other: `npm run drills`, or `npm run drills -- restore` for one of them. A drill is a
// file `NAME.drill.ts` that exports its title and a function `run`, which throws if what the title promises does not hold.

const suffix = '.drill.ts'

if (import.meta.main) {
  const { positionals: wanted } = parseArgs({ allowPositionals: true })
  const names = (await readdir(import.meta.dirname))
    .filter(file => file.endsWith(suffix))
    .map(file => file.slice(0, -suffix.length))
    .filter(name => wanted.length === 0 || wanted.includes(name))
  const unknown = wanted.filter(name => !names.includes(name))
  if (unknown.length > 0) throw new Error(`There is no drill ${unknown.join(', ')}`)
  const outcomes: { name: string; outcome: 'passed' | 'skipped' | 'failed' }[] = []
  for (const name of names.toSorted()) outcomes.push({ name, outcome: await runDrill(name) })
  const count = (wantedOutcome: string) => outcomes.filter(({ outcome }) => outcome === wantedOutcome).length
  console.log(`\n${count('passed')} passed, ${count('skipped')} skipped, ${count('failed')} failed`)
  if (count('failed') > 0) process.exitCode = 1
}

async function runDrill(name: string): Promise<'passed' | 'skipped' | 'failed'> {
  const { title, run }: Drill = await import(path.join(import.meta.dirname, `${name}${suffix}`))
  console.log(`\n== ${name}: ${title}`)
  const startedAt = performance.now()
  try {
    await run(line => console.log(`   ${line}`))
    console.log(`   passed in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
    return 'passed'
  } catch (error) {
    if (error instanceof Skipped) {
      console.log(`   skipped: ${error.message}`)
      return 'skipped'
    }
    console.error(error)
    console.log(`   FAILED: ${name}`)
    return 'failed'
  }
}
