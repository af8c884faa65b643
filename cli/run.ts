import { AssertionError } from 'node:assert'
import { reasonOf } from '../src/kernel/text.ts'
import { partnerCommands } from './client/commands.ts'
import { type Commands, runProgram } from './program.ts'
import { setExitCode, type Terminal, writeErrorLine } from './terminal.ts'

/** The commands of people who run an installation: they open its database. */
export const operatorCommands: Commands = {
  heading: 'Commands for operators, which open the database (docs/operations/commands.md):',
  settings: `Settings of operators are environment variables: DATABASE_URL, PORT, HOST, MIDMONTH_MODE, … (docs/reference/settings.md).
Without DATABASE_URL, their commands use the embedded PostgreSQL and start it if needed.`,
  exitCodes:
    '3 ledger verify or drill restore found a mismatch (the status command has its own; see midmonth status --help)',
  entries: [
    {
      name: 'start',
      description: 'Start the API and the worker, or only one of them. Ctrl-C stops both.',
      load: async () => (await import('./start.ts')).startCommand,
    },
    {
      name: 'migrate',
      description: 'Migrate the database schema. Safe to run again, and from several machines at once.',
      load: async () => (await import('./migrate.ts')).migrateCommand,
    },
    {
      name: 'distribute',
      description:
        'Spread the tables over the nodes of a distributed PostgreSQL (Citus). See docs/operations/scale-out.md.',
      load: async () => (await import('./distribute.ts')).distributeCommand,
    },
    {
      name: 'upgrade',
      description: 'Rehearse an upgrade on a copy of the database. See docs/operations/upgrading.md.',
      load: async () => (await import('./upgrade.ts')).upgradeCommand,
    },
    {
      name: 'drill',
      description: 'Rehearse the loss of the database. See docs/operations/high-availability.md.',
      load: async () => (await import('./drill.ts')).drillCommand,
    },
    {
      name: 'status',
      description: 'Check the health of the database, workers, queue, payouts, floats and partners. Changes nothing.',
      load: async () => (await import('./status.ts')).statusCommand,
    },
    {
      name: 'doctor',
      description: 'Check what is missing before this installation can pay in live mode. Changes nothing.',
      load: async () => (await import('./doctor.ts')).doctorCommand,
    },
    {
      name: 'bundle',
      description: 'Write a support bundle without personal data or secrets.',
      load: async () => (await import('./bundle.ts')).bundleCommand,
    },
    {
      name: 'partner',
      description: 'Manage partners: employers, gig platforms, payroll bureaus.',
      load: async () => (await import('./partner.ts')).partnerCommand,
    },
    {
      name: 'key',
      description: 'Manage API keys. To rotate one, create a new key, switch to it, then revoke the old one.',
      load: async () => (await import('./key.ts')).keyCommand,
    },
    {
      name: 'operator',
      description: 'Manage the people who sign in to the console, and operator keys. See docs/operations/users.md.',
      load: async () => (await import('./operator.ts')).operatorCommand,
    },
    {
      name: 'tier',
      description: 'Manage tiers: the fees and limits of withdrawals.',
      load: async () => (await import('./tier.ts')).tierCommand,
    },
    {
      name: 'float',
      description: 'Manage the float, the money that funds withdrawals. Amounts are in minor units (pence, cents).',
      load: async () => (await import('./float.ts')).floatCommand,
    },
    {
      name: 'revenue',
      description: 'Show fees and the operator’s income from them, and withdraw that income from the float.',
      load: async () => (await import('./revenue.ts')).revenueCommand,
    },
    {
      name: 'invoice',
      description: 'Bill the fees that employers pay.',
      load: async () => (await import('./invoice.ts')).invoiceCommand,
    },
    {
      name: 'member',
      description: 'Inspect a member of any partner.',
      load: async () => (await import('./member.ts')).memberCommand,
    },
    {
      name: 'withdrawal',
      description: 'Inspect withdrawals across all partners.',
      load: async () => (await import('./withdrawal.ts')).withdrawalCommand,
    },
    {
      name: 'payouts',
      description: 'Manage payments through bank files: batches, approvals, files and exceptions.',
      load: async () => (await import('./payouts.ts')).payoutsCommand,
    },
    {
      name: 'job',
      description: 'Inspect member jobs: imported lists of members, and batches of changes.',
      load: async () => (await import('./job.ts')).jobCommand,
    },
    {
      name: 'audit',
      description: 'Show who changed what, by command or API request, newest first. See docs/operations/audit.md.',
      load: async () => (await import('./audit.ts')).auditCommand,
    },
    {
      name: 'backup',
      description:
        'Back up the embedded PostgreSQL, and record backups by other tools, so that a missing one is noticed.',
      load: async () => (await import('./backup.ts')).backupCommand,
    },
    {
      name: 'restore',
      description: 'Restore the embedded PostgreSQL from its backups, into an empty data folder.',
      load: async () => (await import('./restore.ts')).restoreCommand,
    },
    {
      name: 'installation-key',
      description:
        'Manage the installation’s key, which opens the sealed values of the database. See docs/operations/keys.md.',
      load: async () => (await import('./installation-key.ts')).installationKeyCommand,
    },
    {
      name: 'ledger',
      description: 'Check the ledger, and export its journal.',
      load: async () => (await import('./ledger.ts')).ledgerCommand,
    },
  ],
  outlined: async name => (await import('./outline.ts')).outlinedCommand(name),
  fail: async error => {
    // The failed command has loaded this module; a command that only prints its help never does.
    const { SettingsProblem } = await import('../src/config.ts')
    setExitCode(error instanceof SettingsProblem ? 2 : 1)
    // A bug is reported with its stack; anything else is a message for the operator.
    const isBug = error instanceof TypeError || error instanceof ReferenceError || error instanceof AssertionError
    writeErrorLine(`midmonth: ${isBug ? error.stack : reasonOf(error)}`)
  },
}

/** Runs one command of the whole program; see `runProgram`. */
export async function run(args: string[], on: Terminal): Promise<number> {
  return await runProgram([partnerCommands, operatorCommands], args, on)
}
