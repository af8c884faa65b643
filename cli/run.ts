import { AssertionError } from 'node:assert'
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { setExitCode, type Terminal, terminal, withTerminal, writeErrorLine } from './terminal.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** A command's module is most of its load time, so only the command that is named is loaded. */
const commands: { name: string; description: string; load: () => Promise<Command> }[] = [
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
    name: 'admin',
    description: 'Manage the people who sign in to the console. See docs/operations/users.md.',
    load: async () => (await import('./admin.ts')).adminCommand,
  },
  {
    name: 'tier',
    description: 'Manage tiers: the fees and limits of withdrawals.',
    load: async () => (await import('./tier.ts')).tierCommand,
  },
  {
    name: 'members',
    description:
      'Import and export a partner’s members as files, through the API of a running service (OPENWAGE_URL, OPENWAGE_API_KEY).',
    load: async () => (await import('./members.ts')).membersCommand,
  },
  {
    name: 'webhooks',
    description:
      'Develop against webhooks without a public address, through the API of a running service (OPENWAGE_URL, OPENWAGE_API_KEY).',
    load: async () => (await import('./webhooks.ts')).webhooksCommand,
  },
  {
    name: 'float',
    description: 'Manage the float, the money that funds withdrawals. Amounts are in minor units (pence, cents).',
    load: async () => (await import('./float.ts')).floatCommand,
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
    name: 'ledger',
    description: 'Check the ledger.',
    load: async () => (await import('./ledger.ts')).ledgerCommand,
  },
]

/**
 * Runs one command. Reads the environment and writes the output only through `on`, so that a caller can run several at once;
 * `start` alone also handles the signals of its process.
 * @param args as after `openwage` on a command line
 * @returns the exit code
 */
export async function run(args: string[], on: Terminal): Promise<number> {
  return await withTerminal(on, async () => {
    try {
      await (await programFor(args)).parseAsync(args, { from: 'user' })
    } catch (error) {
      // Commander has printed the message already. Asking for help is not an error.
      if (error instanceof CommanderError) setExitCode(error.exitCode === 0 ? 0 : 2)
      else await fail(error)
    }
  })
}

/** The whole program, with the modules of the commands that the arguments name. The others are listed by the help. */
async function programFor(args: string[]): Promise<Command> {
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
    .configureOutput({
      writeOut: text => terminal().stdout.write(text),
      writeErr: text => terminal().stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'openwage: ')),
    })
    .exitOverride()
  for (const { name, description, load } of commands) {
    const command = args.includes(name) ? await load() : new Command(name)
    program.addCommand(command.description(description))
  }
  inherit(program)
  return program
}

/** Commands built in their own files do not inherit the program's error handling. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}

async function fail(error: unknown): Promise<void> {
  // What failed has loaded these modules; a command that only prints its help never does.
  const [{ SettingsProblem }, { reasonOf }] = await Promise.all([import('../src/config.ts'), import('../src/main.ts')])
  setExitCode(error instanceof SettingsProblem ? 2 : 1)
  // A bug is reported with its stack; anything else is a message for the operator.
  const isBug = error instanceof TypeError || error instanceof ReferenceError || error instanceof AssertionError
  writeErrorLine(`openwage: ${isBug ? error.stack : reasonOf(error)}`)
}
