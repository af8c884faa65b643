import { Command, type Option } from 'commander'
import { eventTypes } from '../contract.ts'
import { examples } from '../help.ts'
import { writeLine } from '../terminal.ts'
import { listProfiles } from './profiles.ts'

/** Builds the program, with the options and subcommands of the commands that the words name. */
type ProgramFor = (words: string[]) => Promise<Command>

// Each script asks the program for the candidates, so that a sourced script knows the commands of later versions.
const scripts = {
  bash: `_midmonth() {
  local candidate
  COMPREPLY=()
  while IFS= read -r candidate; do
    COMPREPLY+=("\${candidate%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" completion candidates -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _midmonth midmonth`,
  zsh: `#compdef midmonth
_midmonth() {
  local -a candidates
  local name description
  while IFS=$'\\t' read -r name description; do
    candidates+=("\${name//:/\\\\:}:\${description}")
  done < <("\${words[1]}" completion candidates -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then _describe midmonth candidates; else _files; fi
}
compdef _midmonth midmonth`,
  fish: `function __midmonth_candidates
    set -l words (commandline -opc)
    set -l found ($words[1] completion candidates -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c midmonth -f -a '(__midmonth_candidates)'`,
}

const installed = {
  bash: 'source <(midmonth completion bash)  # in ~/.bashrc',
  zsh: 'source <(midmonth completion zsh)  # in ~/.zshrc, after compinit',
  fish: 'midmonth completion fish | source  # in ~/.config/fish/config.fish',
}

export function completionCommand(programFor: ProgramFor): Command {
  const completion = new Command('completion')
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    completion
      .command(shell)
      .description(`Print the script for ${shell}.`)
      .option('--json', 'print the script as a JSON string')
      .addHelpText('after', `${examples(`completion ${shell}`)}\n\nTo install it:\n  ${installed[shell]}`)
      .action(({ json }: { json?: boolean }) => writeLine(json ? JSON.stringify(scripts[shell]) : scripts[shell]))
  }
  completion
    .command('candidates', { hidden: true })
    .argument('[words...]', 'the words after midmonth, up to the one that is completed')
    .action(async (words: string[]) => {
      for (const { name, description } of await candidatesFor(words, programFor))
        writeLine(`${name}\t${description.split('\n', 1)[0]}`)
    })
  return completion
}

type Candidate = { name: string; description: string }

/** The candidates for the last word. Empty for free text, and for a file, which the shell completes. */
async function candidatesFor(words: string[], programFor: ProgramFor): Promise<Candidate[]> {
  const before = words.slice(0, -1)
  const last = words.at(-1) ?? ''
  const { command, option, position } = follow(await programFor(before), before)
  const all = option === undefined ? candidatesOf(command, { last, position }) : await valuesOf(option)
  return all.filter(({ name }) => name.startsWith(last))
}

/** Finds the command that the words name, the number of its arguments so far, and the option whose value comes next. */
function follow(program: Command, words: string[]): { command: Command; option: Option | undefined; position: number } {
  let command = program
  let option: Option | undefined
  let position = 0
  for (const word of words) {
    if (option !== undefined && !word.startsWith('-')) {
      if (!option.variadic) option = undefined
      continue
    }
    option = undefined
    const next = command.commands.find(each => each.name() === word)
    const named = command.options.find(({ long, short }) => long === word || short === word)
    if (next !== undefined) {
      command = next
      position = 0
    } else if (named !== undefined) {
      if (named.required || named.optional) option = named
    } else if (!word.startsWith('-')) position += 1
  }
  return { command, option, position }
}

function candidatesOf(command: Command, { last, position }: { last: string; position: number }): Candidate[] {
  if (last.startsWith('-')) {
    const help = { name: '--help', description: 'show the help' }
    return [...command.options.flatMap(({ long, description }) => (long ? [{ name: long, description }] : [])), help]
  }
  const choices = command.registeredArguments[position]?.argChoices ?? []
  return [
    ...command
      .createHelp()
      .visibleCommands(command)
      .map(each => ({ name: each.name(), description: each.description() })),
    ...choices.map(name => ({ name, description: '' })),
  ]
}

async function valuesOf(option: Option): Promise<Candidate[]> {
  const names = await namesOf(option)
  return names.map(name => ({ name, description: '' }))
}

async function namesOf({ long, argChoices = [] }: Option): Promise<string[]> {
  if (long === '--profile') return await listProfiles()
  // Not among the choices of the option, because its help would list all thirty.
  return long === '--types' ? eventTypes() : argChoices
}
