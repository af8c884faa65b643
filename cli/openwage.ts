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
import { webhooksCommand } from './webhooks.ts'
import { withdrawalCommand } from './withdrawal.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const program = new Command('openwage')
  .description('The open, self-hosted on-demand pay platform.')
  .version(version)
  .showHelpAfterError('Add --help for usage.')
  .addHelpText(
    'after',
    `
Settings are environment variables: DATABASE_URL, PORT, HOST, OPENWAGE_MODE, … (docs/reference/settings.md).
Without DATABASE_URL, commands use the embedded PostgreSQL and start it if needed.
The members and webhooks commands call the API of a running service.

Exit codes: 0 success, 1 failure (the reason is on standard error), 2 invalid usage or settings,
3 ledger verify found a mismatch. The status command has its own; see openwage status --help.

Examples of every command are in docs/operations/commands.md.`,
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
  webhooksCommand,
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

// The reader may close the pipe early, as in `openwage key list … | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') fail(error, 1)
})

try {
  await program.parseAsync()
} catch (error) {
  // Commander has printed the message already. Asking for help is not an error.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else fail(error, error instanceof SettingsProblem ? 2 : 1)
}

/** Commands built in their own files do not inherit the program's error handling. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}

function fail(error: unknown, exitCode: 1 | 2): void {
  // A bug is reported with its stack; anything else is a message for the operator.
  const isBug = error instanceof TypeError || error instanceof ReferenceError || error instanceof AssertionError
  console.error(`openwage: ${isBug ? error.stack : reasonOf(error)}`)
  process.exitCode = exitCode
}
