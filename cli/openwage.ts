#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { keyCommand } from './key.ts'
import { ledgerCommand } from './ledger.ts'
import { migrateCommand } from './migrate.ts'
import { partnerCommand } from './partner.ts'
import { startCommand } from './start.ts'
import { tierCommand } from './tier.ts'

const program = new Command('openwage')
  .description('The open, self-hosted on-demand pay platform.')
  .showHelpAfterError('Add --help to see what is possible.')
  .addHelpText(
    'after',
    `
Settings come from the environment: DATABASE_URL, PORT, HOST, OPENWAGE_MODE, … (docs/operations/settings.md).
Exit codes: 0 done, 1 it failed (the reason is on standard error), 2 wrong usage, 3 the books disagree.`,
  )
  .exitOverride()

for (const command of [startCommand, migrateCommand, partnerCommand, keyCommand, tierCommand, ledgerCommand]) {
  program.addCommand(command)
}

try {
  await program.parseAsync()
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has told the person already; asking for help is no mistake.
    process.exitCode = error.exitCode === 0 || error.code === 'commander.help' ? 0 : 2
  } else {
    console.error(`openwage: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}
