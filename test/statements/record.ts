import { appendFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { names } from '../../src/database/embedded.ts'

// Loaded into each process of the tests by `node --import`, if vitest.config.ts finds the variable. Writes each statement that the
// program sends as the app role once, with the function that sent it: see lint.ts.

/**
 * One statement. @property place the function that sent it @property partners the parameters that named partners, by number: equal
 * letters for equal partners, '*' for an array of several
 */
export type Recorded = { text: string; place: string; partners: Record<number, string> }

// Finding the place is slow, and a text has one or two: later executions are not looked at.
const executionsMax = 20
const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = process.env.MIDMONTH_TEST_STATEMENTS
const counts = new Map<string, number>()
const written = new Set<string>()

if (folder !== undefined) {
  const send = pg.Client.prototype.query as (this: pg.Client, ...args: unknown[]) => unknown
  const query = function (this: pg.Client & { user?: string }, ...args: unknown[]) {
    if (this.user === names.roles.app) record(folder, args)
    return send.apply(this, args)
  }
  pg.Client.prototype.query = query as typeof pg.Client.prototype.query
}

function record(folder: string, [first, second]: unknown[]): void {
  const { text, values } = (typeof first === 'string' ? { text: first, values: second } : first) as {
    text: string
    values?: unknown
  }
  const count = counts.get(text) ?? 0
  if (count === executionsMax) return
  const place = placeOf(stack())
  // Statements of tests are not counted: the program may send the same text later.
  if (place === undefined) return
  counts.set(text, count + 1)
  const recorded: Recorded = { text, place, partners: partnersIn(Array.isArray(values) ? values : []) }
  const line = `${JSON.stringify(recorded)}\n`
  if (written.has(line)) return
  written.add(line)
  appendFileSync(path.join(folder, `${process.pid}.jsonl`), line)
}

function partnersIn(values: readonly unknown[]): Record<number, string> {
  const letters = new Map<unknown, string>()
  const named: Record<number, string> = {}
  for (const [index, value] of values.entries()) {
    const ids = new Set(idsIn(value))
    if (ids.size === 0) continue
    const [id] = ids
    const letter = letters.get(id) ?? String.fromCodePoint(65 + letters.size)
    letters.set(id, letter)
    named[index + 1] = ids.size === 1 ? letter : '*'
  }
  return named
}

/** An id, or those of an array, which src/database/parameters.ts may have written as text. */
function idsIn(value: unknown): string[] {
  const elements = String(value)
    .replace(/^\{"|"\}$/g, '')
    .split(/"?,"?/)
  return elements.every(each => /^par_\w+$/.test(each)) ? elements : []
}

function stack(): string[] {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 100
  const lines = (new Error().stack ?? '').split('\n')
  Error.stackTraceLimit = stackTraceLimit
  return lines
}

// They send the statements of others.
const senders = /^src\/(database\/(cached-sql|copy|database|lease|prepared)|worker)\.ts$/

/** The innermost function of the program on the stack, as 'file function'; undefined if a test sent the statement itself. */
function placeOf(lines: string[]): string | undefined {
  const frames = lines.flatMap(line => {
    const [, name, file] =
      /^ +at (?:async )?(?:(.+?) \()?(?:file:\/\/)?(\/[^?]+?)(?:\?.*)?:\d+:\d+\)?$/.exec(line) ?? []
    if (file === undefined || !file.startsWith(root) || file.includes('/node_modules/')) return []
    const relative = path.relative(root, file)
    return relative.startsWith('test/statements/') || senders.test(relative) ? [] : [{ file: relative, name }]
  })
  const [{ file } = { file: undefined }] = frames
  if (file === undefined || /^(test|bench)\/|\.test\.ts$/.test(file)) return undefined
  const [name = ''] = frames.filter(frame => frame.file === file).flatMap(frame => nameIn(frame.name) ?? [])
  return `${file} ${name}`.trim()
}

/** The name of a function; of a property that holds a function, only the name of the function around it. */
function nameIn(frame: string | undefined): string | undefined {
  return /^(?:Object\.|Module\.)?((?:[A-Z]\w*\.)?#?[a-z]\w*)/.exec(frame ?? '')?.[1]
}
