import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The migrations of this version of the program. */
export const migrationsFolder = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** Steps that expand the schema run before the new program starts; those that contract it, once no older program is running. */
export type Phase = 'expand' | 'contract'

/** One step of a migration, which is run and recorded on its own. */
export type Step = {
  number: number
  phase: Phase
  sql: string
  /**
   * `at-once`: in one short transaction, which may lock tables. `concurrently`: one statement outside a transaction, which locks out no
   * reads or writes and may take long. `back-fill`: a statement per chunk of the rows of a table, in the order of a unique key.
   */
  way: { kind: 'at-once' } | { kind: 'concurrently' } | { kind: 'back-fill'; table: string; key: readonly string[] }
  /** Runs once for each partition of this table. */
  partitionsOf: string | undefined
}

export type MigrationFile = {
  name: string
  checksum: string
  /** The number of the newest migration that a program must know to serve the schema before it is contracted; undefined if the file names none. */
  compatibleWith: string | undefined
  steps: Step[]
}

/** The names of the migrations in a folder, in order. */
export function listMigrations(folder = migrationsFolder): string[] {
  return readdirSync(folder)
    .filter(file => file.endsWith('.sql'))
    .map(file => file.replace(/\.sql$/, ''))
    .sort()
}

export function readMigration(name: string, folder = migrationsFolder): MigrationFile {
  const bytes = readFileSync(path.join(folder, `${name}.sql`))
  return { name, checksum: createHash('sha256').update(bytes).digest('hex'), ...parseMigration(name, bytes.toString()) }
}

/** A migration's place in the order: the number that its name begins with. */
export const numberOf = (name: string): string => name.slice(0, 4)

const header =
  /^-- step: (?<phase>expand|contract)(?<concurrently>, concurrently)?(?:, back-fill of (?<table>\w+) by (?<key>\w+(?:, \w+)*))?(?:, each partition of (?<parent>\w+))?$/

/**
 * Splits a migration into its steps, at lines such as `-- step: expand, back-fill of events by partner_id, id`. A file without such a
 * line is one step. @throws Error that names the line
 */
export function parseMigration(name: string, text: string): Pick<MigrationFile, 'compatibleWith' | 'steps'> {
  const compatibleWith = /^-- compatible-with: ([0-9]{4})$/m.exec(text)?.[1]
  const [, ...parts] = text.split(/^(?=-- step:)/m)
  if (parts.length === 0) {
    const step: Step = { number: 1, phase: 'expand', way: { kind: 'at-once' }, partitionsOf: undefined, sql: text }
    return { compatibleWith, steps: [step] }
  }
  const steps = parts.map((part, index) => {
    const [line = ''] = part.split('\n')
    const groups = header.exec(line)?.groups
    const sql = part.slice(line.length).trim()
    const reject = (reason: string) => new Error(`${name}: ${reason}: ${line}`)
    if (groups === undefined) throw reject('this is not a step')
    const step: Step = {
      number: index + 1,
      phase: groups.phase as Phase,
      way: wayOf(groups),
      partitionsOf: groups.parent,
      sql,
    }
    const code = sql.replace(/--.*$/gm, '').trim()
    if (code === '') throw reject('a step without a statement')
    if (step.way.kind === 'concurrently' && !concurrent.test(code))
      throw reject('only one statement that locks out no reads or writes can run concurrently')
    if (step.way.kind === 'back-fill' && !/\bCHUNK\b/.test(code))
      throw reject('a back-fill without CHUNK in its condition')
    if (step.partitionsOf !== undefined && !code.includes('_PARTITION')) throw reject('no name ends with _PARTITION')
    return step
  })
  const phases = steps.map(({ phase }) => phase)
  if (phases.lastIndexOf('expand') > phases.indexOf('contract') && phases.includes('contract'))
    throw new Error(`${name}: the steps that expand the schema come first`)
  return { compatibleWith, steps }
}

// What a semicolon may stand in, a comment or a quoted text, and the semicolon itself.
const tokens = /--[^\n]*|\/\*.*?\*\/|'(?:[^']|'')*'|"[^"]*"|\$(\w*)\$.*?\$\1\$|;/gs

/** The statements of a step, one by one: a distributed PostgreSQL passes each on to its nodes, and cannot with several in one text. */
export function statementsOf(sql: string): string[] {
  const ends = [...sql.matchAll(tokens)].filter(([token]) => token === ';').map(({ index }) => index)
  const parts = [...ends, sql.length].map((end, index) => sql.slice(index === 0 ? 0 : (ends[index - 1] ?? 0) + 1, end))
  return parts.map(part => part.trim()).filter(part => part.replaceAll(/--.*$/gm, '').trim() !== '')
}

function wayOf({ concurrently, table, key }: Record<string, string | undefined>): Step['way'] {
  if (concurrently !== undefined) return { kind: 'concurrently' }
  if (table === undefined || key === undefined) return { kind: 'at-once' }
  return { kind: 'back-fill', table, key: key.split(', ') }
}

// Statements that take no lock that excludes reads or writes, however long they take.
const concurrent =
  /^(create (unique )?index concurrently|drop index concurrently if exists|alter table \S+ validate constraint|analyze)\s[^;]*;?$/
