import { Command, InvalidArgumentError, Option } from 'commander'
import { List } from '../../packages/sdk/src/call.ts'
import { Client, type Settings } from '../../packages/sdk/src/client.ts'
import { cliSampleOf } from '../../src/site/docs/samples.ts'
import { detailsOf, type Method, methods, type QueryParameter } from '../contract.ts'
import { writeErrorLine, writeLine } from '../terminal.ts'
import { type Address, addConnectionOptions, settingsOf } from './connection.ts'
import { WrongUsage } from './failure.ts'
import { fileToUpload, readInput, saveAnswer } from './files.ts'
import { printJson, printLines } from './output.ts'

/**
 * The command that calls any operation. Each operation is a subcommand under its name in the SDK. Only the operations that the arguments
 * name get their parameters, because building those takes longer than the rest of the start.
 */
export function apiCommand(args: readonly string[]): Command {
  const api = new Command('api').addHelpText(
    'after',
    `
The names are those of the SDK (docs/reference/sdk.md). Ids of the path are arguments, in their order; parameters of the query are
options under their own names; --body is JSON, @file, or - for standard input. The response is printed as JSON.

Examples:
  midmonth api members.list --statuses active --take 10
  midmonth api withdrawals.get w_…
  midmonth api payRuns.create --body @pay-run.json
  midmonth api members.list --help`,
  )
  for (const method of methods()) {
    const command = api.command(method.name).description(method.summary)
    if (args.includes(method.name)) describe(command, method)
  }
  return api
}

type Options = Address & {
  json?: boolean
  all?: boolean
  body?: string
  output?: string
  idempotencyKey?: string
  header?: Record<string, string>
}

function describe(command: Command, method: Method): void {
  const { call, name, operationId } = method
  const { operation, document, query } = detailsOf(method)
  for (const id of idsOf(call.path)) command.argument(`<${id}>`)
  for (const parameter of query) command.addOption(queryOption(parameter))
  if (call.hasBody)
    command.option('--body <body>', `${call.takesFile ? 'the content' : 'JSON'}, @file, or - for standard input`)
  if (call.method !== 'GET')
    command.option('--idempotency-key <key>', 'repeat an earlier call with its key; it takes effect once')
  if (call.entries !== undefined) command.option('--all', 'print the entries of all pages, one per line')
  if (call.accepts !== undefined) command.option('--output <file>', 'a new file (default: standard output)')
  command.option('--header <header>', 'another header, for example "x-request-id: 4711"; repeatable', header)
  addConnectionOptions(command).option('--json', 'print JSON without line breaks')
  const sample = cliSampleOf(operation, document) ?? `midmonth api ${name}`
  command.addHelpText(
    'after',
    `\nSends ${call.method} ${call.path}, documented at /docs/reference/${operationId}.\n\nExample:\n  ${sample}`,
  )
  command.action(async (...given: unknown[]) => {
    // Commander adds the options and the command itself.
    const [options] = given.slice(-2) as [Options & Record<string, unknown>]
    const search = Object.fromEntries(query.map(parameter => [parameter.name, options[parameter.name]]))
    await send(method, { ids: given.slice(0, -2) as string[], search, options })
  })
}

async function send(
  { call }: Method,
  { ids, search, options }: { ids: string[]; search: Record<string, unknown>; options: Options },
): Promise<void> {
  const { body, idempotencyKey, header: headers, output, json, all } = options
  const settings = await settingsOf(options)
  const content = body === undefined ? undefined : await contentOf(body, { takesFile: call.takesFile !== undefined })
  const client = new Client(content?.json === undefined ? settings : sending(content.json, settings))
  const open = () =>
    client.call(call, [
      ...ids,
      ...(call.hasBody ? [content?.value] : []),
      ...(call.hasQuery ? [search] : []),
      { idempotencyKey, headers },
    ])
  if (call.accepts !== undefined) return await saveAnswer(open as () => Promise<Response>, { file: output })
  const answer = open()
  if (answer instanceof List && all) return await printLines(answer)
  const { body: value, isReplayed } = await answer.withResponse()
  if (isReplayed) writeErrorLine('This is the stored response to an earlier call with this idempotency key.')
  if (json) writeLine(JSON.stringify(value))
  else printJson(value)
}

/** A body from the command line: JSON, unless the operation takes a file and the content does not begin like JSON. */
async function contentOf(
  text: string,
  { takesFile }: { takesFile: boolean },
): Promise<{ value: unknown; json: string | undefined }> {
  const source = await sourceOf(text)
  const isJson = !takesFile || /^\s*[{[]/.test(await source.slice(0, 1_024).text())
  if (!isJson) return { value: source, json: undefined }
  const json = await source.text()
  try {
    return { value: JSON.parse(json), json }
  } catch (error) {
    throw new WrongUsage(`--body is not JSON: ${error instanceof Error ? error.message : error}`)
  }
}

/** Sends JSON unchanged. Parsing and rewriting it would lose large numbers and repeated keys. */
function sending(json: string, { fetch = globalThis.fetch, ...settings }: Settings): Settings {
  return { ...settings, fetch: (input, init) => fetch(input, { ...init, body: json }) }
}

async function sourceOf(text: string): Promise<Blob> {
  if (text === '-' || text === '@-') return await readInput()
  return text.startsWith('@') ? await fileToUpload(text.slice(1)) : new Blob([text])
}

function queryOption({ name, description, kind, isList, choices }: QueryParameter): Option {
  const option = new Option(
    `--${name} <${kind === 'whole' ? 'n' : kind === 'map' ? 'key=value' : 'value'}>`,
    description + (isList || kind === 'map' ? '; repeatable' : ''),
  )
  const parse = (text: string) => {
    if (choices.length > 0 && !choices.includes(text))
      throw new InvalidArgumentError(`Use one of ${choices.join(', ')}.`)
    if (kind === 'whole' && !/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Use a whole number.')
    return text
  }
  // For the completion; the parser below would be replaced by that of `choices`.
  if (choices.length > 0) option.argChoices = choices
  if (kind === 'map') return option.argParser(pair)
  return isList
    ? option.argParser((text: string, before: string[] = []) => [...before, parse(text)])
    : option.argParser(parse)
}

/** Adds `key=value` to the values given before. */
function pair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, key = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === '') throw new InvalidArgumentError('Write it like "site=Leeds".')
  return { ...before, [key]: value }
}

function header(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name = '', value = ''] = /^([A-Za-z0-9-]+): *(.*)$/.exec(text) ?? []
  if (name === '') throw new InvalidArgumentError('Write it like "x-request-id: 4711".')
  // The client sets these itself, so a header would not count: a repeated call would take effect twice.
  const option = { 'x-idempotency-key': '--idempotency-key', 'x-api-key': '--key' }[name.toLowerCase()]
  if (option !== undefined) throw new InvalidArgumentError(`Use the option ${option}.`)
  return { ...before, [name]: value }
}

function idsOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}
