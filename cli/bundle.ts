import { createHash } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { stat, writeFile } from 'node:fs/promises'
import { cpus, freemem, release, totalmem, uptime } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { Command } from 'commander'
import { ZipFile } from 'yazl'
import { systemClock } from '../src/clock.ts'
import { describeSettings, readSettings, type Settings } from '../src/config.ts'
import type { Db } from '../src/database/database.ts'
import { exposeInstallation } from '../src/diagnosis/installation-metrics.ts'
import { leakIn, secretsOf } from '../src/diagnosis/leaks.ts'
import { readStatus } from '../src/diagnosis/status.ts'
import { findingsForSupport, readServer, readTaskFacts, statusForSupport } from '../src/diagnosis/support-facts.ts'
import { logLineForSupport } from '../src/diagnosis/support-log.ts'
import { retentionOf } from '../src/kernel/retention.ts'
import { reasonOf } from '../src/kernel/text.ts'
import { openDatabase } from '../src/open-database.ts'
import { readRails } from '../src/rails.ts'
import { readFindings } from './doctor.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { jsonOf, printResult, table } from './print.ts'
import { terminal, writeLine } from './terminal.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const limits = {
  // The hours before a fault, of a busy service; about a megabyte in the bundle.
  logLinesMax: 20_000,
  // Read from the end: a log can be larger than the memory.
  logBytesMax: 16_000_000,
}

type Options = { json?: boolean; log?: string; dryRun?: boolean }

export const bundleCommand = new Command('bundle')
  .description('Write a support bundle without personal data or secrets.')
  .argument('[file]', 'the file to write, by default midmonth-support-TIME.zip in this folder')
  .option('--log <file>', 'add the last lines of this log of the service; - reads them from standard input')
  .option('--dry-run', 'only say what the file would have')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
The bundle has versions, names of settings, states, counts and sizes: only what is on a list. It has no names, addresses, accounts,
secrets or notes. See docs/operations/support.md.
${examples('bundle', 'bundle --log /var/log/midmonth.log support.zip')}`,
  )
  .action(async (file: string | undefined, options: Options) => {
    const settings = readSettings(terminal().env)
    const now = systemClock()
    const log = options.log === undefined ? undefined : await readLogEnd(options.log)
    const { files, missing } = await collect(partsOf(settings, { now, log }))
    requireClean(files, settings)
    const manifest = {
      ...{ format: 1, program: version, at: now, missing },
      files: files.map(({ name, holds, content }) => ({ name, holds, bytes: content.length, sha256: hashOf(content) })),
    }
    if (!options.json) writeLine(contentsOf(manifest))
    const target = file ?? `midmonth-support-${now.toISOString().replace(/[-:]|\.\d+/g, '')}.zip`
    const all = [{ name: 'manifest.json', content: Buffer.from(jsonOf(manifest, 2)) }, ...files]
    const archive = await zipOf(all, now)
    if (!options.dryRun) await writeFile(target, archive, { flag: 'wx', mode: 0o600 })
    const written = options.dryRun
      ? null
      : { file: path.resolve(target), bytes: archive.length, sha256: hashOf(archive) }
    printResult(options, {
      value: { ...manifest, written },
      text: () => (written === null ? 'Nothing was written.' : `Written to ${written.file}, SHA-256 ${written.sha256}`),
    })
  })

/** @property holds for the operator who decides whether to send it */
type Part = { name: string; holds: string; read: () => Promise<string> }
type BundledFile = { name: string; holds: string; content: Buffer }
type Missing = { name: string; reason: string }

/** Everything that a bundle may have. */
function partsOf(settings: Settings, { now, log }: { now: Date; log: string[] | undefined }): Part[] {
  const retention = retentionOf(settings)
  const mode = settings.MIDMONTH_MODE
  const json = (name: string, holds: string, read: () => unknown): Part => ({
    ...{ name, holds },
    read: async () => `${jsonOf(await read(), 2)}\n`,
  })
  const ofDatabase = <T>(read: (db: Db) => Promise<T>) => withReader(settings, read)
  const parts = [
    json('program.json', 'versions, machine', describeProgram),
    json('settings.json', 'names of settings, numbers and choices, no texts', () => describeSettings(settings)),
    json('status.json', 'what needs attention, by kind and id', () =>
      ofDatabase(async db => {
        const rails = await readRails(settings)
        return statusForSupport(await readStatus(db, { mode, rails, retention, now }))
      }),
    ),
    json('findings.json', 'names and levels of the checks of doctor', async () =>
      findingsForSupport(await readFindings(settings, now)),
    ),
    json('database.json', 'version, settings and connections of the server, migrations, sizes of tables', () =>
      ofDatabase(db => db.transaction().setAccessMode('read only').execute(readServer)),
    ),
    json('tasks.json', 'background tasks that are due or have failed', () => ofDatabase(db => readTaskFacts(db, now))),
    {
      ...{ name: 'metrics.txt', holds: 'the metrics of the installation: counts by state, amounts of floats by id' },
      read: () => ofDatabase(db => exposeInstallation(db, { mode, retention, now, isForSupport: true })),
    },
  ]
  if (log === undefined) return parts
  const lines = log.flatMap(line => logLineForSupport(line) ?? [])
  const holds = `${lines.length} lines of the log: the program’s words, numbers and ids`
  return [...parts, { name: 'log.jsonl', holds, read: async () => lines.map(line => `${line}\n`).join('') }]
}

function describeProgram() {
  const { timeZone, locale } = Intl.DateTimeFormat().resolvedOptions()
  const { node, openssl, v8, uv } = process.versions
  return {
    ...{ midmonth: version, node, openssl, v8, uv, platform: process.platform, arch: process.arch, kernel: release() },
    ...{ cpus: cpus().length, memoryBytes: totalmem(), freeBytes: freemem(), uptimeSeconds: Math.round(uptime()) },
    ...{ timeZone, locale },
  }
}

/** Changes nothing: neither migrates nor creates a database. Each part connects anew, because one may fail alone. */
async function withReader<T>(settings: Settings, read: (db: Db) => Promise<T>): Promise<T> {
  const database = await openDatabase(settings, openLog('silent'), { mayCreate: false, isStarting: false })
  try {
    return await read(database.db)
  } finally {
    await database.close()
  }
}

/** Reads the parts. What cannot be read is missing with its reason: a bundle is needed most when something is broken. */
async function collect(parts: Part[]): Promise<{ files: BundledFile[]; missing: Missing[] }> {
  const files: BundledFile[] = []
  const missing: Missing[] = []
  for (const { name, holds, read } of parts) {
    try {
      files.push({ name, holds, content: Buffer.from(await read()) })
    } catch (error) {
      missing.push({ name, reason: nameOf(error) })
    }
  }
  return { files, missing }
}

/** An error without its message, which can have addresses and values: the code of its cause, or its type. */
function nameOf(error: unknown): string {
  if (error instanceof AggregateError) return nameOf(error.errors[0])
  if (!(error instanceof Error)) return 'an unknown error'
  if ('code' in error) return String(error.code)
  return error.cause === undefined ? error.constructor.name : nameOf(error.cause)
}

/** @throws Error if a file has what must not leave the installation, which is a fault of this program */
function requireClean(files: BundledFile[], settings: Settings): void {
  for (const { name, content } of files) {
    const leak = leakIn(content.toString('utf8'), secretsOf(settings))
    if (leak !== undefined) throw new Error(`${name} has ${leak}, so nothing was written; please report this as a bug`)
  }
}

type Contents = { files: { name: string; holds: string; bytes: number }[]; missing: Missing[] }

function contentsOf({ files, missing }: Contents) {
  const rows = files.map(({ name: file, bytes, holds: contents }) => ({ file, bytes, contents }))
  return [table(rows), ...missing.map(({ name, reason }) => `${name} is missing (${reason})`), ''].join('\n')
}

async function zipOf(files: { name: string; content: Buffer }[], at: Date): Promise<Buffer> {
  const zip = new ZipFile()
  for (const { name, content } of files) zip.addBuffer(content, name, { mtime: at, mode: 0o100600 })
  zip.end()
  return await buffer(zip.outputStream)
}

function hashOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** @throws Error with a message for the operator if the file cannot be read */
async function readLogEnd(file: string): Promise<string[]> {
  try {
    return await lastLines(file === '-' ? terminal().stdin : await endOf(file))
  } catch (error) {
    throw new Error(`Cannot read the log: ${reasonOf(error)}`, { cause: error })
  }
}

/** The end of a file. Its first line may be cut, and is then left out, because it is not JSON. */
async function endOf(file: string): Promise<Readable> {
  const { size } = await stat(file)
  return createReadStream(file, { start: Math.max(0, size - limits.logBytesMax) })
}

async function lastLines(input: Readable): Promise<string[]> {
  const lines: string[] = []
  for await (const line of createInterface({ input })) {
    lines.push(line)
    if (lines.length >= 2 * limits.logLinesMax) lines.splice(0, limits.logLinesMax)
  }
  return lines.slice(-limits.logLinesMax)
}
