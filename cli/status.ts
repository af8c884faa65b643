import { Command } from 'commander'
import type { Status } from '../packages/console/src/generated/operator.ts'
import type { Settings } from '../src/config.ts'
import { ago, duration, snakeCase } from '../src/kernel/text.ts'
import { stopInWords } from '../src/operators/stops.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { addServerOptions, type OperatorOptions, withOperators } from './operator-client.ts'
import { countOf, printResult, sheet } from './print.ts'
import { setExitCode, terminal } from './terminal.ts'

const exitCodes = { fine: 0, needsAttention: 1, cannotTell: 2 }

const operations = () => import('../src/operators/installation-operations.ts')

export const statusCommand = new Command('status')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
Exit codes: 0 all is well, 1 something needs attention (listed on lines that start with "!"), 2 unknown, because the
database is unreachable, its schema is out of date, or it is for the other MIDMONTH_MODE. To check the books, use ledger verify.
${examples('status', 'status --json')}`,
  )
  .action(async (options: OperatorOptions & { json?: boolean }) => {
    const [{ readSettings }, { reasonOf }] = await Promise.all([import('../src/config.ts'), import('../src/main.ts')])
    const reading =
      options.url === undefined
        ? readHere(readSettings(terminal().env))
        : withOperators(options, operations, api => api.getStatus())
    const status = await reading.catch((error: unknown) => reasonOf(error))
    if (typeof status === 'string') {
      printResult(options, { value: { state: 'cannotTell', reason: status }, text: () => `! ${status}` })
      setExitCode(exitCodes.cannotTell)
      return
    }
    printResult(options, { value: status, text: () => textOf(status) })
    setExitCode(exitCodes[status.state])
  })

addServerOptions(statusCommand)

/**
 * Reads the status from the database. Unlike other commands, must change nothing: it neither migrates nor creates a database, and does
 * not need the installation's key.
 * @throws Error with a message for the operator if the status cannot be determined
 */
async function readHere(settings: Settings): Promise<Status> {
  const [
    { openDatabase, readRails, requireSchema, systemClock },
    { checkMode },
    { readStatus },
    schema,
    { retentionOf },
  ] = await Promise.all([
    import('../src/main.ts'),
    import('../src/partners/partners.ts'),
    import('../src/operators/status.ts'),
    import('../src/operators/installation-schema.ts'),
    import('../src/kernel/retention.ts'),
  ])
  const database = await openDatabase(settings, openLog('warn'), { mayCreate: false, isStarting: false })
  try {
    const { db } = database
    await requireSchema(db)
    await checkMode(db, settings.MIDMONTH_MODE)
    const mode = settings.MIDMONTH_MODE
    const rails = await readRails(settings)
    const status = await readStatus(db, { mode, rails, retention: retentionOf(settings), now: systemClock() })
    return JSON.parse(JSON.stringify(schema.statusOnWire(status)))
  } finally {
    await database.close()
  }
}

function textOf(status: Status): string {
  const { mode, bank, workers, queue, payouts, lastBackupAt, stopped, attention } = status
  const now = new Date(status.at)
  const { held, submitted } = payouts
  const age = (oldest: string | null) => (oldest === null ? '' : ` (oldest ${ago(new Date(oldest), now)})`)
  const late = queue.oldestDueAt === null ? '' : ` (oldest for ${duration(new Date(queue.oldestDueAt), now)})`
  const paused = stopped.filter(each => each.paused !== null)
  const suspended = stopped.filter(each => each.suspended !== null)
  return [
    sheet({
      database: `PostgreSQL ${status.database.postgres}, schema up to date`,
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
    '',
    ...(attention.length === 0 ? ['All is well.'] : attention.map(sentence => `! ${sentence}`)),
  ].join('\n')
}
