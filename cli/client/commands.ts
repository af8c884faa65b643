import type { Commands } from '../program.ts'

/** The commands of partners' developers, for any machine: they call the API of a running service. */
export const partnerCommands: Commands = {
  heading: 'Commands for partners, which call the API of a running service (docs/reference/cli.md):',
  settings: 'Partners log in with midmonth login, or set MIDMONTH_URL and MIDMONTH_API_KEY.',
  exitCodes: '4 the service cannot be reached, 5 a change may or may not have taken effect',
  entries: [
    {
      name: 'login',
      description: 'Store the address and the API key of a service, for the commands of this group.',
      load: async () => (await import('./login.ts')).loginCommand,
    },
    {
      name: 'logout',
      description: 'Remove a stored login.',
      load: async () => (await import('./login.ts')).logoutCommand,
    },
    {
      name: 'whoami',
      description: 'Show which service and key the commands use, and check them.',
      load: async () => (await import('./login.ts')).whoamiCommand,
    },
    {
      name: 'members',
      description: 'List, import, export and invite members.',
      load: async () => (await import('./members.ts')).membersCommand,
    },
    {
      name: 'withdraw',
      description: 'Withdraw for a member: shows the quote, asks, and completes it.',
      load: async () => (await import('./withdraw.ts')).withdrawCommand,
    },
    {
      name: 'withdrawals',
      description: 'List withdrawals, and show the history of a withdrawal.',
      load: async () => (await import('./withdrawals.ts')).withdrawalsCommand,
    },
    {
      name: 'cycles',
      description: 'Show pay cycles and their deductions.',
      load: async () => (await import('./cycles.ts')).cyclesCommand,
    },
    {
      name: 'events',
      description: 'Follow the event feed.',
      load: async () => (await import('./events.ts')).eventsCommand,
    },
    {
      name: 'webhooks',
      description: 'Develop against webhooks without a public address.',
      load: async () => (await import('./webhooks.ts')).webhooksCommand,
    },
    {
      name: 'sandbox',
      description: 'Move the clock of a sandbox, instruct its bank, fill and reset it.',
      load: async () => (await import('./sandbox.ts')).sandboxCommand,
    },
    {
      name: 'api',
      description: 'Call any operation of the API.',
      load: async args => (await import('./api.ts')).apiCommand(args),
    },
    {
      name: 'completion',
      description: 'Print the completion script for a shell.',
      load: async (_, program) => (await import('./completion.ts')).completionCommand(program),
    },
  ],
  fail: async error => (await import('./failure.ts')).reportFailure(error),
}
