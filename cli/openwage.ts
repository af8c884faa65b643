#!/usr/bin/env node
import { AssertionError } from 'node:assert'
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { SettingsProblem } from '../src/config.ts'
import { reasonOf } from '../src/main.ts'
import { auditCommand } from './audit.ts'
import { floatCommand } from './float.ts'
import { jobCommand } from './job.ts'
import { keyCommand } from './key.ts'
import { ledgerCommand } from './ledger.ts'
import { memberCommand } from './member.ts'
import { membersCommand } from './members.ts'
import { migrateCommand } from './migrate.ts'
import { partnerCommand } from './partner.ts'
import { startCommand } from './start.ts'
import { statusCommand } from './status.ts'
import { tierCommand } from './tier.ts'
import { withdrawalCommand } from './withdrawal.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const program = new Command('openwage')
  .description('The open, self-hosted on-demand pay platform.')
  .version(version)
  .showHelpAfterError('Add --help to see what is possible.')
  .addHelpText(
    'after',
    `
Settings come from the environment: DATABASE_URL, PORT, HOST, OPENWAGE_MODE, … (docs/reference/settings.md).
Without a DATABASE_URL every command uses the PostgreSQL that comes with Openwage, running or not;
the members commands use the API of a running service.
Exit codes: 0 done, 1 it failed (the reason is on standard error), 2 wrong usage or settings, 3 the books disagree;
status has its own, see its help. docs/operations/commands.md has examples of all.`,
  )
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'openwage: ')) })
  .exitOverride()

for (const command of [
  startCommand,
  migrateCommand,
  statusCommand,
  partnerCommand,
  keyCommand,
  tierCommand,
  membersCommand,
  floatCommand,
  memberCommand,
  withdrawalCommand,
  jobCommand,
  auditCommand,
  ledgerCommand,
]) {
  program.addCommand(command)
}
inherit(program)

// Whoever reads our output may have seen enough, as in `openwage key list … | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') fail(error, 1)
})

try {
  await program.parseAsync()
} catch (error) {
  // Commander has told the person already; asking for help is no mistake.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else fail(error, error instanceof SettingsProblem ? 2 : 1)
}

/** Commands that were made apart do not take over how the program treats errors. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}

function fail(error: unknown, exitCode: 1 | 2): void {
  // A mistake of ours is reported with where it happened; anything else is a sentence for the operator.
  const isOurs = error instanceof TypeError || error instanceof ReferenceError || error instanceof AssertionError
  console.error(`openwage: ${isOurs ? error.stack : reasonOf(error)}`)
  process.exitCode = exitCode
}
