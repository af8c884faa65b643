import { AssertionError } from 'node:assert'
import { reasonOf } from '../src/kernel/text.ts'
import { partnerCommands } from './client/commands.ts'
import { outlinedCommand, outlinedDescription } from './outline.ts'
import { type Commands, runProgram } from './program.ts'
import { setExitCode, type Terminal, writeErrorLine } from './terminal.ts'

/** The commands of people who run an installation: they open its database. */
export const operatorCommands = {
  heading: 'Commands for operators, which open the database (docs/operations/commands.md):',
  settings: `Settings of operators are environment variables: DATABASE_URL, PORT, HOST, MIDMONTH_MODE, … (docs/reference/settings.md).
Without DATABASE_URL, their commands use the embedded PostgreSQL and start it if needed.`,
  exitCodes:
    '3 ledger verify or drill restore found a mismatch (the status command has its own; see midmonth status --help)',
  entries: Object.entries({
    start: async () => (await import('./start.ts')).startCommand,
    migrate: async () => (await import('./migrate.ts')).migrateCommand,
    distribute: async () => (await import('./distribute.ts')).distributeCommand,
    upgrade: async () => (await import('./upgrade.ts')).upgradeCommand,
    drill: async () => (await import('./drill.ts')).drillCommand,
    status: async () => (await import('./status.ts')).statusCommand,
    doctor: async () => (await import('./doctor.ts')).doctorCommand,
    bundle: async () => (await import('./bundle.ts')).bundleCommand,
    partner: async () => (await import('./partner.ts')).partnerCommand,
    key: async () => (await import('./key.ts')).keyCommand,
    operator: async () => (await import('./operator.ts')).operatorCommand,
    tier: async () => (await import('./tier.ts')).tierCommand,
    float: async () => (await import('./float.ts')).floatCommand,
    revenue: async () => (await import('./revenue.ts')).revenueCommand,
    invoice: async () => (await import('./invoice.ts')).invoiceCommand,
    member: async () => (await import('./member.ts')).memberCommand,
    withdrawal: async () => (await import('./withdrawal.ts')).withdrawalCommand,
    payouts: async () => (await import('./payouts.ts')).payoutsCommand,
    job: async () => (await import('./job.ts')).jobCommand,
    audit: async () => (await import('./audit.ts')).auditCommand,
    backup: async () => (await import('./backup.ts')).backupCommand,
    restore: async () => (await import('./restore.ts')).restoreCommand,
    'installation-key': async () => (await import('./installation-key.ts')).installationKeyCommand,
    ledger: async () => (await import('./ledger.ts')).ledgerCommand,
  }).map(([name, load]) => ({ name, load, description: outlinedDescription(name) })),
  outlined: async name => outlinedCommand(name),
  fail: async error => {
    // The failed command has loaded this module; a command that only prints its help never does.
    const { SettingsProblem } = await import('../src/config.ts')
    setExitCode(error instanceof SettingsProblem ? 2 : 1)
    // A bug is reported with its stack; anything else is a message for the operator.
    const isBug = error instanceof TypeError || error instanceof ReferenceError || error instanceof AssertionError
    writeErrorLine(`midmonth: ${isBug ? error.stack : reasonOf(error)}`)
  },
} satisfies Commands

/** Runs one command of the whole program; see `runProgram`. */
export async function run(args: string[], on: Terminal): Promise<number> {
  return await runProgram([partnerCommands, operatorCommands], args, on)
}
