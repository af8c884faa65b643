import { readFileSync } from 'node:fs'
import { Argument, Command, Option } from 'commander'

/** The parts of a command that completion needs, so that it does not load the command's module and with it the whole service. */
export type Outline = {
  name: string
  description: string
  options: { flags: string; description: string; choices?: readonly string[] }[]
  /** The choices of each argument. */
  arguments: (readonly string[])[]
  commands: Outline[]
}

export function outlineOf(command: Command): Outline {
  return {
    name: command.name(),
    description: command.description(),
    options: command.options.map(({ flags, description, argChoices: choices }) => ({
      ...{ flags, description },
      ...(choices && { choices }),
    })),
    arguments: command.registeredArguments.map(({ argChoices = [] }) => argChoices),
    commands: command
      .createHelp()
      .visibleCommands(command)
      .filter(each => each.name() !== 'help')
      .map(outlineOf),
  }
}

/** The operators' command of this name, as `npm run generate` has outlined it. */
export function outlinedCommand(name: string): Command {
  const outlines: Outline[] = JSON.parse(readFileSync(new URL('outline.json', import.meta.url), 'utf8'))
  const outline = outlines.find(each => each.name === name)
  return outline === undefined ? new Command(name) : commandOf(outline)
}

function commandOf({ name, description, options, arguments: all, commands }: Outline): Command {
  const command = new Command(name).description(description)
  for (const { flags, description, choices } of options) {
    const option = new Option(flags, description)
    command.addOption(choices === undefined ? option : option.choices(choices))
  }
  for (const choices of all) command.addArgument(new Argument('[argument]').choices(choices))
  for (const each of commands) command.addCommand(commandOf(each))
  return command
}
