import { readFileSync } from 'node:fs'
import { Argument, Command, Option } from 'commander'

/** What help and completion show of a command, so that they do not load the command's module and with it much of the service. */
export type Outline = {
  name: string
  description: string
  options: Shown[]
  arguments: Shown[]
  commands: Outline[]
  /** The text below the help. */
  after?: string
}

/** @property as an option by its flags, an argument by its name in brackets */
type Shown = { as: string; description: string; choices?: readonly string[]; default?: string }

export function outlineOf(command: Command): Outline {
  const after = textAfterHelp(command)
  return {
    name: command.name(),
    description: command.description(),
    options: command.options.map(each => shown(each.flags, each)),
    arguments: command.registeredArguments.map(each => shown(inBrackets(each), each)),
    commands: command
      .createHelp()
      .visibleCommands(command)
      .filter(each => each.name() !== 'help')
      .map(outlineOf),
    ...(after !== '' && { after }),
  }
}

/** The operators' commands, as `npm run generate` has outlined them. */
const outlines: Outline[] = JSON.parse(readFileSync(new URL('outline.json', import.meta.url), 'utf8'))

/** The operators' command of this name. */
export function outlinedCommand(name: string): Command {
  const outline = outlines.find(each => each.name === name)
  return outline === undefined ? new Command(name) : commandOf(outline)
}

export function outlinedDescription(name: string): string {
  return outlines.find(each => each.name === name)?.description ?? ''
}

function shown(as: string, given: Option | Argument): Shown {
  const { description, argChoices: choices, defaultValue, defaultValueDescription } = given
  const byDefault = defaultValueDescription ?? (defaultValue === undefined ? undefined : JSON.stringify(defaultValue))
  return {
    ...{ as, description },
    ...(choices && { choices }),
    ...(byDefault !== undefined && { default: byDefault }),
  }
}

function inBrackets(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

function textAfterHelp(command: Command): string {
  let help = ''
  const writeOut = (part: string) => {
    help += part
  }
  command.configureOutput({ writeOut }).outputHelp()
  return help.slice(command.helpInformation().length).trimEnd()
}

function commandOf({ name, description, options, arguments: all, commands, after }: Outline): Command {
  const command = new Command(name).description(description)
  for (const each of options) command.addOption(withValues(new Option(each.as, each.description), each))
  for (const each of all) command.addArgument(withValues(new Argument(each.as, each.description), each))
  for (const each of commands) command.addCommand(commandOf(each))
  return after === undefined ? command : command.addHelpText('after', after)
}

function withValues<Given extends Option | Argument>(given: Given, { choices, default: byDefault }: Shown): Given {
  if (choices !== undefined) given.choices(choices)
  if (byDefault !== undefined) given.default(byDefault, byDefault)
  return given
}
