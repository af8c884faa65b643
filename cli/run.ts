import { AssertionError } from 'node:assert'
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { Interrupted, setExitCode, type Terminal, terminal, withTerminal, writeErrorLine } from './terminal.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** Partners call the API of a service, which may be far away; operators open its database. */
type Audience = 'partner' | 'operator'

type Entry = {
  name: string
  description: string
  audience: Audience
  /** @param args after `openwage` on the command line */
  load: (args: string[]) => Promise<Command>
}

/** A command's module is most of its load time, so only the command that is named is loaded. */
const commands: Entry[] = [
  {
    name: 'login',
    audience: 'partner',
    description: 'Store the address and the API key of a service, for the commands of this group.',
    load: async () => (await import('./client/login.ts')).loginCommand,
  },
  {
    name: 'logout',
    audience: 'partner',
    description: 'Remove a stored login.',
    load: async () => (await import('./client/login.ts')).logoutCommand,
  },
  {
    name: 'whoami',
    audience: 'partner',
    description: 'Show which service and key the commands use, and check them.',
    load: async () => (await import('./client/login.ts')).whoamiCommand,
  },
  {
    name: 'members',
    audience: 'partner',
    description: 'List, import, export and invite members.',
    load: async () => (await import('./client/members.ts')).membersCommand,
  },
  {
    name: 'withdraw',
    audience: 'partner',
    description: 'Withdraw for a member: shows the quote, asks, and completes it.',
    load: async () => (await import('./client/withdraw.ts')).withdrawCommand,
  },
  {
    name: 'withdrawals',
    audience: 'partner',
    description: 'List withdrawals, and show the life of one.',
    load: async () => (await import('./client/withdrawals.ts')).withdrawalsCommand,
  },
  {
    name: 'cycles',
    audience: 'partner',
    description: 'Show pay cycles and their deductions.',
    load: async () => (await import('./client/cycles.ts')).cyclesCommand,
  },
  {
    name: 'events',
    audience: 'partner',
    description: 'Follow the event feed.',
    load: async () => (await import('./client/events.ts')).eventsCommand,
  },
  {
    name: 'webhooks',
    audience: 'partner',
    description: 'Develop against webhooks without a public address.',
    load: async () => (await import('./client/webhooks.ts')).webhooksCommand,
  },
  {
    name: 'sandbox',
    audience: 'partner',
    description: 'Move the clock of a sandbox, instruct its bank, fill and reset it.',
    load: async () => (await import('./client/sandbox.ts')).sandboxCommand,
  },
  {
    name: 'api',
    audience: 'partner',
    description: 'Call any operation of the API.',
    load: async args => (await import('./client/api.ts')).apiCommand(args),
  },
  {
    name: 'completion',
    audience: 'partner',
    description: 'Print the completion script for a shell.',
    load: async () => (await import('./client/completion.ts')).completionCommand(programFor),
  },
  {
    name: 'start',
    audience: 'operator',
    description: 'Start the API and the worker, or only one of them. Ctrl-C stops both.',
    load: async () => (await import('./start.ts')).startCommand,
  },
  {
    name: 'migrate',
    audience: 'operator',
    description: 'Migrate the database schema. Safe to run again, and from several machines at once.',
    load: async () => (await import('./migrate.ts')).migrateCommand,
  },
  {
    name: 'status',
    audience: 'operator',
    description: 'Check the health of the database, workers, queue, payouts, floats and partners. Changes nothing.',
    load: async () => (await import('./status.ts')).statusCommand,
  },
  {
    name: 'doctor',
    audience: 'operator',
    description: 'Check what is missing before this installation can pay in live mode. Changes nothing.',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  {
    name: 'partner',
    audience: 'operator',
    description: 'Manage partners: employers, gig platforms, payroll bureaus.',
    load: async () => (await import('./partner.ts')).partnerCommand,
  },
  {
    name: 'key',
    audience: 'operator',
    description: 'Manage API keys. To rotate one, create a new key, switch to it, then revoke the old one.',
    load: async () => (await import('./key.ts')).keyCommand,
  },
  {
    name: 'admin',
    audience: 'operator',
    description: 'Manage the people who sign in to the console, and operator keys. See docs/operations/users.md.',
    load: async () => (await import('./admin.ts')).adminCommand,
  },
  {
    name: 'tier',
    audience: 'operator',
    description: 'Manage tiers: the fees and limits of withdrawals.',
    load: async () => (await import('./tier.ts')).tierCommand,
  },
  {
    name: 'float',
    audience: 'operator',
    description: 'Manage the float, the money that funds withdrawals. Amounts are in minor units (pence, cents).',
    load: async () => (await import('./float.ts')).floatCommand,
  },
  {
    name: 'member',
    audience: 'operator',
    description: 'Inspect a member of any partner.',
    load: async () => (await import('./member.ts')).memberCommand,
  },
  {
    name: 'withdrawal',
    audience: 'operator',
    description: 'Inspect withdrawals across all partners.',
    load: async () => (await import('./withdrawal.ts')).withdrawalCommand,
  },
  {
    name: 'payouts',
    audience: 'operator',
    description: 'Manage payments through bank files: batches, approvals, files and exceptions.',
    load: async () => (await import('./payouts.ts')).payoutsCommand,
  },
  {
    name: 'job',
    audience: 'operator',
    description: 'Inspect member jobs: imported lists of members, and batches of changes.',
    load: async () => (await import('./job.ts')).jobCommand,
  },
  {
    name: 'audit',
    audience: 'operator',
    description: 'Show who changed what, by command or API request, newest first. See docs/operations/audit.md.',
    load: async () => (await import('./audit.ts')).auditCommand,
  },
  {
    name: 'ledger',
    audience: 'operator',
    description: 'Check the ledger.',
    load: async () => (await import('./ledger.ts')).ledgerCommand,
  },
]

const groups: Record<Audience, string> = {
  partner: 'Commands for partners, which call the API of a running service (docs/reference/cli.md):',
  operator: 'Commands for operators, which open the database (docs/operations/commands.md):',
}

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
      // As shells report a process that SIGINT has ended.
      else if (error instanceof Interrupted) setExitCode(130)
      else await fail(error, args)
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
Partners log in with openwage login, or set OPENWAGE_URL and OPENWAGE_API_KEY.
Settings of operators are environment variables: DATABASE_URL, PORT, HOST, OPENWAGE_MODE, … (docs/reference/settings.md).
Without DATABASE_URL, their commands use the embedded PostgreSQL and start it if needed.

Exit codes: 0 success, 1 failure (the reason is on standard error), 2 invalid usage or settings,
3 ledger verify found a mismatch, 4 the service cannot be reached, 5 a change may or may not have taken effect.
The status command has its own; see openwage status --help.`,
    )
    .configureOutput({
      writeOut: text => terminal().stdout.write(text),
      writeErr: text => terminal().stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'openwage: ')),
    })
    .exitOverride()
  for (const { name, audience, description, load } of commands) {
    const command = args.includes(name) ? await load(args) : new Command(name)
    program.addCommand(command.description(description).helpGroup(groups[audience]))
  }
  inherit(program)
  return program
}

/** Commands built in their own files do not inherit the program's error handling. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}

async function fail(error: unknown, args: string[]): Promise<void> {
  const command = commands.find(({ name }) => name === args.find(arg => !arg.startsWith('-')))
  if (command?.audience === 'partner') return (await import('./client/failure.ts')).reportFailure(error)
  // What failed has loaded these modules; a command that only prints its help never does.
  const [{ SettingsProblem }, { reasonOf }] = await Promise.all([import('../src/config.ts'), import('../src/main.ts')])
  setExitCode(error instanceof SettingsProblem ? 2 : 1)
  // A bug is reported with its stack; anything else is a message for the operator.
  const isBug = error instanceof TypeError || error instanceof ReferenceError || error instanceof AssertionError
  writeErrorLine(`openwage: ${isBug ? error.stack : reasonOf(error)}`)
}
