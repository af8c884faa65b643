import { setTimeout as pause } from 'node:timers/promises'
import { Command } from 'commander'
import type { Logger } from 'pino'
import type { Status } from '../packages/console/src/generated/operator.ts'
import { systemClock } from '../src/clock.ts'
import type { Settings } from '../src/config.ts'
import { ago, duration, reasonOf, snakeCase } from '../src/kernel/text.ts'
import { within } from '../src/kernel/within.ts'
import type { Database } from '../src/open-database.ts'
import { stopInWords } from '../src/partners/stops.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { addServerOptions, type OperatorOptions, withOperators } from './operator-client.ts'
import { countOf, jsonOf, printResult, sheet } from './print.ts'
import { setExitCode, terminal } from './terminal.ts'
import { isScreen, watch } from './watch.ts'
import { whole } from './whole.ts'

const limits = {
  // Connecting gives up after 5 s, and a status of many partners takes a second.
  readingMsMax: 10_000,
  closingMsMax: 1_000,
}

// Changes show at once, and a status takes some milliseconds of the database.
const defaultSeconds = 2

const exitCodes = { fine: 0, needsAttention: 1, cannotTell: 2 }

const operations = () => import('../src/operators/installation-operations.ts')

export const statusCommand = new Command('status')
  .description('Check the health of the database, workers, queue, payouts, floats and partners. Changes nothing.')
  .option('--json', 'print JSON; with --watch one line each time')
  .option(
    '--watch [seconds]',
    'show the status again and again, by default every 2 seconds, until Ctrl-C',
    whole({ min: 1, max: 3_600 }),
  )
  .addHelpText(
    'after',
    `
Exit codes: 0 all is well, 1 something needs attention (listed on lines that start with "!"), 2 unknown, because the
database is unreachable, its schema is out of date, or it is for the other MIDMONTH_MODE. With --watch, the code is that of
the last status. To check the books, use ledger verify.
${examples('status', 'status --json', 'status --watch')}`,
  )
  .action(async ({ watch: every, ...options }: Options & { watch?: number | true }) => {
    const seconds = every === true ? defaultSeconds : every
    const source = options.url === undefined ? await openHere({ isWatching: seconds !== undefined }) : serverOf(options)
    try {
      if (seconds === undefined) printReading(options, await readingOf(source.read()))
      else await watchStatus(source, { options, seconds })
    } finally {
      await source.close()
    }
  })

addServerOptions(statusCommand)

type Options = OperatorOptions & { json?: boolean }

/** @throws Error with a message for the operator if the status cannot be determined */
type Source = { read(): Promise<Status>; close(): Promise<void> }

/** A status, or why it cannot be determined. */
type Reading = Status | { state: 'cannotTell'; reason: string }

async function readingOf(status: Promise<Status>): Promise<Reading> {
  return await status.catch(error => ({ state: 'cannotTell', reason: reasonOf(error) }))
}

function printReading(options: { json?: boolean }, reading: Reading): void {
  printResult(options, { value: reading, text: () => textOf(reading) })
  setExitCode(exitCodes[reading.state])
}

/** Ends with the last status, printed as without `--watch`, unless the printed lines already have it. */
async function watchStatus(source: Source, { options, seconds }: { options: Options; seconds: number }): Promise<void> {
  const isInPlace = isScreen() && !options.json
  const readingMsMax = Math.max(limits.readingMsMax, seconds * 1_000)
  let last: Reading | undefined
  let lastReadAt: Date | undefined
  const read = async () => {
    // A database that hangs is shown as well. The next reading opens another connection.
    const late = () => new Error(`No response within ${readingMsMax / 1_000} s`)
    last = await readingOf(within(readingMsMax, source.read(), late))
    if (last.state === 'cannotTell') await source.close()
    else lastReadAt = new Date(last.at)
    if (options.json) return jsonOf(last)
    return isInPlace ? screenOf(last, { seconds, lastReadAt }) : `${textOf(last)}\n`
  }
  await watch(read, { everyMs: seconds * 1_000, isInPlace })
  if (last === undefined) return
  if (isInPlace) printReading(options, last)
  else setExitCode(exitCodes[last.state])
}

function serverOf(options: OperatorOptions): Source {
  return { read: () => withOperators(options, operations, api => api.getStatus()), close: async () => {} }
}

async function openHere({ isWatching }: { isWatching: boolean }): Promise<Source> {
  const { readSettings } = await import('../src/config.ts')
  // A log line would break the screen.
  return new StatusHere(readSettings(terminal().env), openLog(isWatching ? 'silent' : 'warn'))
}

/**
 * Reads the status from the configured database. Unlike other commands, must change nothing: it neither migrates nor creates a
 * database, and does not need the installation's key.
 */
class StatusHere implements Source {
  readonly #settings: Settings
  readonly #log: Logger
  #opened: Promise<Database> | undefined

  constructor(settings: Settings, log: Logger) {
    this.#settings = settings
    this.#log = log
  }

  async read(): Promise<Status> {
    const [{ openDatabase, requireSchema }, { readRails }, ...modules] = await Promise.all([
      import('../src/open-database.ts'),
      import('../src/rails.ts'),
      import('../src/partners/partners.ts'),
      import('../src/diagnosis/status.ts'),
      import('../src/operators/installation-schema.ts'),
      import('../src/kernel/retention.ts'),
    ])
    const [{ checkMode }, { readStatus }, { statusOnWire }, { retentionOf }] = modules
    const settings = this.#settings
    this.#opened ??= openDatabase(settings, this.#log, { mayCreate: false, isStarting: false })
    const { db } = await this.#opened
    await requireSchema(db)
    const mode = settings.MIDMONTH_MODE
    await checkMode(db, mode)
    const rails = await readRails(settings)
    const status = await readStatus(db, { mode, rails, retention: retentionOf(settings), now: systemClock() })
    return JSON.parse(JSON.stringify(statusOnWire(status)))
  }

  /** The next reading opens the database again. */
  async close(): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    // A database that was not opened has nothing to close. One that hangs must not delay the command.
    const closed = opened?.then(({ close }) => close()).catch(() => undefined)
    await Promise.race([closed, pause(limits.closingMsMax, undefined, { ref: false })])
    // Left open, a connection to a database that hangs would keep the process alive.
    void opened?.then(({ abandon }) => abandon()).catch(() => undefined)
  }
}

/** What needs attention first: the rest may be below the end of the screen. */
function screenOf(
  reading: Reading,
  { seconds, lastReadAt }: { seconds: number; lastReadAt: Date | undefined },
): string {
  const title = `midmonth status every ${seconds} s, Ctrl-C ends`
  if (reading.state !== 'cannotTell')
    return [`${title}, read at ${reading.at}`, '', ...attentionOf(reading), '', ...factsOf(reading)].join('\n')
  const before = lastReadAt === undefined ? [] : ['', `It could last be read at ${lastReadAt.toISOString()}.`]
  return [title, '', textOf(reading), ...before].join('\n')
}

function textOf(reading: Reading): string {
  if (reading.state === 'cannotTell') return `! ${reading.reason}`
  return [...factsOf(reading), '', ...attentionOf(reading)].join('\n')
}

function attentionOf({ attention }: Status): string[] {
  return attention.length === 0 ? ['All is well.'] : attention.map(sentence => `! ${sentence}`)
}

function factsOf(status: Status): string[] {
  const { mode, bank, workers, queue, payouts, lastBackupAt, stopped } = status
  const now = new Date(status.at)
  const { held, submitted } = payouts
  const age = (oldest: string | null) => (oldest === null ? '' : ` (oldest ${ago(new Date(oldest), now)})`)
  const late = queue.oldestDueAt === null ? '' : ` (oldest for ${duration(new Date(queue.oldestDueAt), now)})`
  const paused = stopped.filter(each => each.paused !== null)
  const suspended = stopped.filter(each => each.suspended !== null)
  return [
    sheet({
      database: `PostgreSQL ${status.database.postgres}, schema ${status.database.schema}`,
      mode,
      bank: bank ?? 'none',
      workers: `${workers.filter(({ isAlive }) => isAlive).length} running`,
      queue: `${countOf(queue.due, 'task')} due${late}`,
      held: `${held.count}${age(held.oldest)}, ${held.stuck} stuck`,
      submitted: `${submitted.count}${age(submitted.oldest)}, ${submitted.stuck} stuck`,
      'batches to approve': status.batchesToApprove,
      'payout exceptions': status.openExceptions,
      'bank files importing': status.importing.length,
      'last backup': lastBackupAt === null ? 'none recorded' : ago(new Date(lastBackupAt), now),
      ...Object.fromEntries(
        status.removals.map(({ kind, count, at }) => [
          `removed ${snakeCase(kind).replaceAll('_', ' ')}`,
          `${count}, ${ago(new Date(at), now)}`,
        ]),
      ),
      'low floats': status.lowFloats.length,
      partners: `${status.partners}, ${paused.length} paused, ${suspended.length} suspended`,
    }),
    ...suspended.map(({ id, name, suspended: stop }) =>
      `${name} (${id}) has been suspended ${stop === null ? '' : stopInWords(stop)}`.trimEnd(),
    ),
  ]
}
