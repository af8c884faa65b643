import { Command } from 'commander'
import { examples } from './help.ts'

/** A command that prints its result: as words, or with `--json` as JSON. */
export class PrintingCommand extends Command {
  override createCommand(name?: string): PrintingCommand {
    return new PrintingCommand(name)
  }

  /** Adds the option `--json`, and examples below the help. */
  examples(...commands: string[]): this {
    return this.option('--json', 'print JSON').addHelpText('after', examples(...commands))
  }
}
