import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { Interrupted, setExitCode, type Terminal, terminal, withTerminal } from './terminal.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

type CommandEntry = {
  name: string
  description: string
  /**
   * A command's module is most of its load time, so only the command that is named is loaded.
   * @param args after `midmonth` on the command line
   * @param program the whole program, with the options and subcommands of the named commands, for completion
   */
  load: (args: string[], program: (args: string[]) => Promise<Command>) => Promise<Command>
}

/** Commands for the same readers. */
export type Commands = {
  heading: string
  settings: string
  /** The exit codes that only these commands have. */
  exitCodes: string
  entries: CommandEntry[]
  /** The named command as help and completion show it, without loading its module. */
  outlined?: (name: string) => Promise<Command>
  /** Reports an error of one of the commands. */
  fail: (error: unknown) => Promise<void>
}

/**
 * Runs one command. Reads the environment and writes the output only through `on`, so that a caller can run several at once;
 * `start` and `status --watch` also handle the signals of the process.
 * @param args as after `midmonth` on a command line
 * @returns the exit code
 */
export async function runProgram(groups: Commands[], args: string[], on: Terminal): Promise<number> {
  return await withTerminal(on, async () => {
    try {
      // The words to be completed name commands too, which completion itself loads or outlines.
      const named = args[0] === 'completion' ? args.slice(0, 2) : args
      const isOutline = args[0] === 'help' || ['--help', '-h'].includes(args.at(-1) ?? '')
      await (await programOf(groups, named, { isOutline })).parseAsync(args, { from: 'user' })
    } catch (error) {
      // Commander has printed the message already. Asking for help is not an error.
      if (error instanceof CommanderError) setExitCode(error.exitCode === 0 ? 0 : 2)
      // The code with which shells report a process that SIGINT has ended.
      else if (error instanceof Interrupted) setExitCode(130)
      else await groupOf(groups, args).fail(error)
    }
  })
}

/** Runs the command of this process. */
export async function runProcess(run: (args: string[], on: Terminal) => Promise<number>): Promise<void> {
  // The reader may close the pipe early, as in `midmonth key list … | head -1`.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    console.error(`midmonth: ${error.message}`)
    process.exitCode = 1
  })
  const code = await run(process.argv.slice(2), process)
  // Not process.exit: the output may still be on its way into a pipe. A failed write has set the exit code already.
  if (code !== 0) process.exitCode = code
}

/** The whole program, with the modules of the commands that the arguments name. The others are listed by the help. */
async function programOf(groups: Commands[], args: string[], { isOutline = false } = {}): Promise<Command> {
  const program = new Command('midmonth')
    .description('The open, self-hosted on-demand pay platform.')
    .version(version)
    .showHelpAfterError('Add --help for usage.')
    .addHelpText('after', helpAfter(groups))
    .configureOutput({
      writeOut: text => terminal().stdout.write(text),
      writeErr: text => terminal().stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'midmonth: ')),
    })
    .exitOverride()
  const outlineOf = (words: string[]) => programOf(groups, words, { isOutline: true })
  for (const { heading, entries, outlined } of groups)
    for (const { name, description, load } of entries) {
      const loadOrOutline = () => (isOutline && outlined !== undefined ? outlined(name) : load(args, outlineOf))
      const command = args.includes(name) ? await loadOrOutline() : new Command(name)
      program.addCommand(command.description(description).helpGroup(heading))
    }
  inherit(program)
  return program
}

function helpAfter(groups: Commands[]): string {
  const exitCodes = groups.map(group => group.exitCodes).toSorted()
  return `
${groups.map(group => group.settings).join('\n')}

Exit codes: 0 success, 1 failure (the reason is on standard error), 2 invalid usage or settings,
${exitCodes.join(', ')}.
`
}

/** Commands built in their own files do not inherit the program's error handling. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}

function groupOf(groups: Commands[], args: string[]): Commands {
  const name = args.find(arg => !arg.startsWith('-'))
  const found = groups.find(({ entries }) => entries.some(each => each.name === name)) ?? groups.at(-1)
  if (found === undefined) throw new Error('A program needs commands')
  return found
}
