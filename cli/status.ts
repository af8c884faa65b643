import { Command } from 'commander'
import { readSettings, type Settings } from '../src/config.ts'
import { readSchemaState } from '../src/database/migrations.ts'
import { openDatabase, readRails, reasonOf, systemClock } from '../src/main.ts'
import {
  ago,
  bankOf,
  duration,
  readStatus as readStatusIn,
  type Status,
  statusOnWire,
} from '../src/operators/status.ts'
import { stopInWords } from '../src/operators/stops.ts'
import { checkMode } from '../src/partners/partners.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { countOf, printResult, sheet } from './print.ts'
import { setExitCode, terminal } from './terminal.ts'

const exitCodes = { fine: 0, needsAttention: 1, cannotTell: 2 }

export const statusCommand = new Command('status')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
Exit codes: 0 all is well, 1 something needs attention (listed on lines that start with "!"), 2 unknown, because the
database is unreachable, its schema is out of date, or it is for the other MIDMONTH_MODE. To check the books, use ledger verify.
${examples('status', 'status --json')}`,
  )
  .action(async options => {
    const settings = readSettings(terminal().env)
    const status = await readStatus(settings).catch((error: unknown) => reasonOf(error))
    if (typeof status === 'string') {
      printResult(options, { value: { state: 'cannotTell', reason: status }, text: () => `! ${status}` })
      setExitCode(exitCodes.cannotTell)
      return
    }
    const { attention } = status
    const state = attention.length === 0 ? 'fine' : 'needsAttention'
    printResult(options, { value: { state, ...statusOnWire(status) }, text: () => textOf(status) })
    setExitCode(exitCodes[state])
  })

/** @throws Error with a message for the operator if the status cannot be determined */
async function readStatus(settings: Settings): Promise<Status> {
  const database = await openDatabase(settings, openLog('warn'), { mayCreate: false, isStarting: false })
  try {
    const { db } = database
    // Unlike other commands, never migrates: status must not change anything.
    const { pending } = await readSchemaState(db)
    if (pending.length > 0)
      throw new Error(`The database schema is out of date; run midmonth migrate (pending: ${pending.join(', ')})`)
    await checkMode(db, settings.MIDMONTH_MODE)
    const now = systemClock()
    const rails = await readRails(settings)
    const { MIDMONTH_MODE: mode, MIDMONTH_AUDIT_ADDRESS_DAYS: auditAddressDays } = settings
    return await readStatusIn(db, { mode, rails, auditAddressDays, now })
  } finally {
    await database.close()
  }
}

function textOf(status: Status): string {
  const {
    now,
    postgres,
    mode,
    rails,
    batchesToApprove,
    openExceptions,
    importing,
    workers,
    queue,
    payouts,
    lastBackupAt,
    lowFloats,
    partners,
    stopped,
    attention,
  } = status
  const { held, submitted } = payouts
  const age = (oldest: Date | null) => (oldest === null ? '' : ` (oldest ${ago(oldest, now)})`)
  const suspended = stopped.filter(each => each.suspended !== null)
  return [
    sheet({
      database: `PostgreSQL ${postgres}, schema up to date`,
      mode,
      bank: bankOf({ mode, rails }) ?? 'none',
      workers: `${workers.filter(({ isAlive }) => isAlive).length} running`,
      queue: `${countOf(queue.due, 'task')} due${queue.oldestDueAt === null ? '' : ` (oldest for ${duration(queue.oldestDueAt, now)})`}`,
      held: `${held.count}${age(held.oldest)}, ${held.stuck} stuck`,
      submitted: `${submitted.count}${age(submitted.oldest)}, ${submitted.stuck} stuck`,
      'batches to approve': batchesToApprove,
      'payout exceptions': openExceptions,
      'bank files importing': importing.length,
      'last backup': lastBackupAt === null ? 'none recorded' : ago(lastBackupAt, now),
      'low floats': lowFloats.length,
      partners: `${partners}, ${stopped.filter(each => each.paused !== null).length} paused, ${suspended.length} suspended`,
    }),
    ...suspended.map(({ id, name, suspended: stop }) =>
      `${name} (${id}) has been suspended ${stop === null ? '' : stopInWords(stop)}`.trimEnd(),
    ),
    '',
    ...(attention.length === 0 ? ['All is well.'] : attention.map(sentence => `! ${sentence}`)),
  ].join('\n')
}
