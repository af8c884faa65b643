import { Command } from 'commander'
import { examples } from './help.ts'
import { printResult } from './print.ts'

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

/** A command that calls the operations of an API and prints the result. */
export abstract class ApiCommand<Api> extends PrintingCommand {
  /** Runs `work` with the API that the options name. */
  protected abstract withApi<T>(options: object, work: (api: Api) => PromiseLike<T>): Promise<T>

  /** Calls operations with the arguments and options of the command, and prints the result. */
  // biome-ignore lint/suspicious/noExplicitAny: the parsers of arguments and options return what their functions declare.
  prints<Result, Given extends any[]>(
    call: (api: Api, ...given: Given) => PromiseLike<Result>,
    words: (result: Result, ...given: Given) => string,
  ): this {
    return this.action(async (...all) => {
      const given = all.slice(0, -1) as Given
      const options = given.at(-1)
      const result = await this.withApi(options, api => call(api, ...given))
      printResult(options, { value: result, text: () => words(result, ...given) })
    })
  }
}
