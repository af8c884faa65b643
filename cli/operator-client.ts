import { type Command, InvalidArgumentError } from 'commander'
import { operations as declared, type OperatorOperations } from '../packages/console/src/generated/operator.ts'
import type { ApiResponse } from '../packages/sdk/src/call.ts'
import { type Arguments, Client, type Operation as Described } from '../packages/sdk/src/client.ts'
import { ApiError } from '../packages/sdk/src/errors.ts'
import { type FileSource, isFile } from '../packages/sdk/src/files.ts'
import { systemClock } from '../src/clock.ts'
import type { Operation } from '../src/http/operation.ts'
import type { Caller } from '../src/in-process.ts'
import type { InstallationContext } from '../src/operators/operation-context.ts'
import { loginOf, operator, personOf } from './actor.ts'
import { PrintingCommand } from './command.ts'
import { printResult } from './print.ts'
import { terminal } from './terminal.ts'

/** The options that say where a command of operators works, and who decides. */
export type OperatorOptions = { url?: string; key?: string; as?: string }

/**
 * A command that calls the operators' operations and prints the result.
 * @param load the modules of the operations; the commands below it use the same
 */
export class OperatorCommand extends PrintingCommand {
  readonly #load: () => Promise<object>

  constructor(name: string | undefined, load: () => Promise<object>) {
    super(name)
    this.#load = load
  }

  override createCommand(name?: string): OperatorCommand {
    return new OperatorCommand(name, this.#load)
  }

  /** Calls operations with the arguments and options of the command, and prints the result. */
  // biome-ignore lint/suspicious/noExplicitAny: the parsers of arguments and options return what their functions declare.
  prints<Result, Given extends any[]>(
    call: (api: OperatorOperations, ...given: Given) => PromiseLike<Result>,
    words: (result: Result, ...given: Given) => string,
  ): this {
    return this.action(async (...all) => {
      const given = all.slice(0, -1) as Given
      const options = given.at(-1)
      const result = await withOperators(options, this.#load, api => call(api, ...given))
      printResult(options, { value: result, text: () => words(result, ...given) })
    })
  }
}

/** Gives all commands below a command the options that say on which server they work. */
export function addServerOptions(command: Command): void {
  if (command.commands.length > 0) for (const each of command.commands) addServerOptions(each)
  else
    command
      .option('--url <url>', 'work on the server at this address, instead of on the database', serverUrl)
      .option('--key <key>', 'operator key for --url; prefer MIDMONTH_OPERATOR_KEY, which process listings don’t show')
}

/**
 * Calls the operators' operations: on the configured database, in this process, as the actor of the command line; or with `--url` on
 * a server, with an operator key.
 * @param load the modules whose operations the command needs: only they are loaded
 * @param options.mayBeOtherMode for what must work whatever MIDMONTH_MODE says
 */
export async function withOperators<T>(
  given: OperatorOptions & { mayBeOtherMode?: true },
  load: () => Promise<object>,
  work: (operators: OperatorOperations) => PromiseLike<T>,
): Promise<T> {
  if (given.url !== undefined) return await onServer(given.url, given.key, work)
  // Loaded here: a command that works on a server needs none of it.
  const [{ operatorContext }, { claimMode }, { withDatabase }] = await Promise.all([
    import('../src/main.ts'),
    import('../src/partners/partners.ts'),
    import('./with-database.ts'),
  ])
  return await withDatabase(async (db, settings, { database, sealer, log }) => {
    const context = await operatorContext(database, { settings, sealer, log })
    const mayShareLogin = settings.MIDMONTH_APPROVAL_LOGINS === 'any'
    const actor = operator()
    const caller: Caller = {
      actor,
      operator: { kind: 'cli', id: actor.name, person: personOf(given.as), login: loginOf(), mayShareLogin },
    }
    const operations = Object.values(await load())
      .flat()
      .filter(isOperation)
    const claim = async () => {
      if (given.mayBeOtherMode) return
      await db.transaction().execute(tx => claimMode(tx, { mode: settings.MIDMONTH_MODE, now: systemClock() }))
    }
    return await work(methodsOf(new LocalClient(operations, { context, caller, claim })))
  })
}

/** Reads all pages of a list, or as many as have this number of entries. */
export async function allOf<Entry>(
  list: AsyncIterable<Entry>,
  { countMax = Number.POSITIVE_INFINITY }: { countMax?: number } = {},
): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const entry of list) if (entries.push(entry) >= countMax) break
  return entries
}

async function onServer<T>(
  baseUrl: string,
  key: string | undefined,
  work: (operators: OperatorOperations) => PromiseLike<T>,
): Promise<T> {
  const apiKey = key ?? terminal().env.MIDMONTH_OPERATOR_KEY ?? ''
  if (apiKey === '') throw new Error('Set MIDMONTH_OPERATOR_KEY to an operator key, or use --key')
  try {
    return await work(methodsOf(new Client({ baseUrl, apiKey })))
  } catch (error) {
    if (error instanceof ApiError)
      throw new Error(error.issues.map(({ message }) => message).join('; '), { cause: error })
    throw error
  }
}

function methodsOf(client: Client): OperatorOperations {
  const methods: Record<string, (...given: unknown[]) => unknown> = {}
  for (const [name, each] of Object.entries(declared)) methods[name] = (...given) => client.call(each, given)
  return methods as typeof methods & OperatorOperations
}

function serverUrl(text: string): string {
  if (!/^https?:\/\/[^\s?#@]+$/.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('Use a URL, for example https://pay.example.com.')
  return text
}

function isOperation(value: unknown): value is Operation<InstallationContext> {
  return typeof value === 'object' && value !== null && 'method' in value && 'path' in value
}

type Local = { context: InstallationContext; caller: Caller; claim: () => Promise<void> }

/** The client of the SDK, with functions of this process in place of requests. */
class LocalClient extends Client {
  readonly #operations: Operation<InstallationContext>[]
  readonly #local: Local

  constructor(operations: Operation<InstallationContext>[], local: Local) {
    super({ apiKey: 'none', baseUrl: 'http://localhost' })
    this.#operations = operations
    this.#local = local
  }

  protected override async send(
    { method, path: template, takesFile, accepts }: Described,
    { path, body, query = {} }: Arguments,
  ): Promise<ApiResponse<unknown>> {
    const operation = this.#operations.find(
      each => each.method === method && each.path.replace(/:(\w+)/g, '{$1}') === template,
    )
    if (operation === undefined) throw new Error(`${method} ${template} is not loaded`)
    if (method !== 'GET') await this.#local.claim()
    const { callInProcess } = await import('../src/in-process.ts')
    const uploaded = takesFile && isFile(body) ? await receive(body) : undefined
    try {
      const done = await callInProcess(
        operation,
        {
          params: paramsOf(template, path),
          query: textsOf(query),
          body: uploaded ?? jsonOf(body),
          prefersCsv: accepts !== undefined,
        },
        this.#local,
      )
      const status = 'status' in done ? done.status : 200
      const content = 'parts' in done ? ReadableStream.from(encoded(done.parts)) : String(done.body)
      return {
        body:
          accepts === undefined && 'body' in done
            ? done.body
            : new Response(content as ConstructorParameters<typeof Response>[0]),
        ...{ status, headers: new Headers(), requestId: '', isReplayed: false, attempts: 1 },
      }
    } finally {
      await uploaded?.answered()
    }
  }
}

/** A query as it arrives over HTTP: values are text, and omitted ones are absent. */
function textsOf(query: Record<string, unknown>): Record<string, unknown> {
  const text = (value: unknown) => (Array.isArray(value) ? value.map(String) : String(value))
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([name, value]) => [name, text(value)]))
}

/** A body as it arrives over HTTP. */
function jsonOf(body: unknown): unknown {
  return body === undefined ? undefined : JSON.parse(JSON.stringify(body))
}

async function* encoded(parts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const part of parts) yield encoder.encode(part)
}

/** The ids in a path, by their names in its template. */
function paramsOf(template: string, path: string): Record<string, string> {
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '([^/]+)')}$`)
  const values = pattern.exec(path)?.slice(1) ?? []
  return Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(values[index] ?? '')]))
}

/** Puts a file where operations expect those that were uploaded. */
async function receive(file: FileSource) {
  const { openNameless, UploadedFile } = await import('../src/http/bodies/uploaded-file.ts')
  const { createHash } = await import('node:crypto')
  const handle = await openNameless()
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of new Response(file as ConstructorParameters<typeof Response>[0]).body ?? []) {
    hash.update(chunk)
    bytes += chunk.length
    await handle.writeFile(chunk)
  }
  return new UploadedFile(handle, { kind: 'bytes', bytes, sha256: hash.digest('hex') })
}
