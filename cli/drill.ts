import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { restoreDrill } from './drill-restore.ts'
import { examples } from './help.ts'
import { setExitCode, terminal } from './terminal.ts'
import { whole } from './whole.ts'

const failover = fileURLToPath(new URL('../test/drills/failover/failover.ts', import.meta.url))

export const drillCommand = new Command('drill')
  .description('Rehearse the loss of the database. See docs/operations/high-availability.md.')
  .addCommand(restoreDrill)

drillCommand
  .command('failover')
  .description(
    'Run a cluster of the files in deploy/ha on this machine, lose its primary in four ways under load, and audit the books. Needs root and Debian’s packages; touches no other database.',
  )
  .option('--rounds <number>', 'how often each way', whole({ min: 1, max: 1_000 }), 5)
  .addHelpText(
    'after',
    `\nTakes about half an hour. Exit codes: 0 nothing was lost and writes were back in time, 1 otherwise, 2 something is not installed.\n${examples('drill failover', 'drill failover --rounds 1')}`,
  )
  .action(async ({ rounds }: { rounds: number }) => {
    // The drill is a test, with the load and the auditor of others, so that the program does not contain it.
    if (!existsSync(failover)) throw new Error('The drill is not part of this copy; run it in a checkout')
    const child = spawn(process.execPath, [failover, '--rounds', String(rounds)], {
      stdio: 'inherit',
      env: terminal().env,
    })
    const [code] = await once(child, 'exit')
    setExitCode(code ?? 1)
  })
