import { Command } from 'commander'
import { readSettings, type Settings } from '../src/config.ts'
import { type Db, sql } from '../src/database/database.ts'
import { readSchemaState } from '../src/database/migrations.ts'
import * as float from '../src/float/float.ts'
import { openDatabase, readAllRails, reasonOf, systemClock } from '../src/main.ts'
import { inWords, toWire } from '../src/money.ts'
import { readStops, type Stop } from '../src/operators/partner-view.ts'
import { checkMode, listStates } from '../src/partners/partners.ts'
import * as exceptions from '../src/payouts/exceptions.ts'
import * as batches from '../src/payouts/rails/file/batches.ts'
import { readQueue } from '../src/task-queue.ts'
import * as inspection from '../src/withdrawals/inspection.ts'
import { listWorkers } from '../src/workers/heartbeats.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { stopInWords } from './partner-show.ts'
import { countOf, printResult, sheet } from './print.ts'
import { setExitCode, terminal } from './terminal.ts'

const limits = {
  // A running worker picks up due tasks within a second or two.
  queueAgeMsMax: 2 * 60_000,
}

const exitCodes = { fine: 0, needsAttention: 1, cannotTell: 2 }

export const statusCommand = new Command('status')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
Exit codes: 0 all is well, 1 something needs attention (listed on lines that start with "!"), 2 unknown, because the
database is unreachable, its schema is out of date, or it is for the other OPENWAGE_MODE. To check the books, use ledger verify.
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
    printResult(options, { value: { state, ...onWire(status) }, text: () => textOf(status) })
    setExitCode(exitCodes[state])
  })

type Status = Awaited<ReturnType<typeof readStatus>>

/** @throws Error with a message for the operator if the status cannot be determined */
async function readStatus(settings: Settings) {
  const database = await openDatabase(settings, openLog('warn'), { mayCreate: false })
  try {
    const { db } = database
    // Unlike other commands, never migrates: status must not change anything.
    const { pending } = await readSchemaState(db)
    if (pending.length > 0)
      throw new Error(`The database schema is out of date; run openwage migrate (pending: ${pending.join(', ')})`)
    await checkMode(db, settings.OPENWAGE_MODE)
    const now = systemClock()
    const facts = await readFacts(db, { settings, now })
    return { ...facts, now, attention: attentionOf(facts, now) }
  } finally {
    await database.close()
  }
}

async function readFacts(db: Db, { settings, now }: { settings: Settings; now: Date }) {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version') as version`.execute(db)
  const partners = await listStates(db)
  const stopped: { id: string; name: string; paused: Stop | null; suspended: Stop | null }[] = []
  for (const partner of partners.filter(({ paused, suspendedAt }) => paused || suspendedAt !== null)) {
    stopped.push({ id: partner.id, name: partner.name, ...(await readStops(db, partner)) })
  }
  const { files, adyen } = await readAllRails(settings)
  return {
    postgres: rows[0]?.version ?? 'unknown',
    mode: settings.OPENWAGE_MODE,
    rails: [...files, ...adyen],
    batchesToApprove: await batches.countWaiting(db),
    openExceptions: await exceptions.countOpen(db),
    workers: await listWorkers(db),
    queue: await readQueue(db, now),
    payouts: await inspection.countUnfinished(db, now),
    lowFloats: await float.listLow(db),
    partners: partners.length,
    stopped,
  }
}

/** Everything that needs manual action, one sentence each. */
function attentionOf(
  {
    mode,
    rails,
    batchesToApprove,
    openExceptions,
    workers,
    queue,
    payouts,
    lowFloats,
    stopped,
  }: Awaited<ReturnType<typeof readFacts>>,
  now: Date,
): string[] {
  const hasNoWorker = !workers.some(({ isAlive }) => isAlive)
  const lastBeatAt = workers[0]?.beatAt
  const { oldestDueAt, givenUp } = queue
  const isLate = oldestDueAt !== null && now.getTime() - oldestDueAt.getTime() > limits.queueAgeMsMax
  const stuck = payouts.held.stuck + payouts.submitted.stuck
  return [
    ...(mode === 'sandbox' || rails.length > 0
      ? []
      : [`No bank is connected in ${mode} mode, so withdrawals are refused; see docs/guides/go-live.md`]),
    ...(hasNoWorker
      ? [
          `No worker is running${lastBeatAt === undefined ? '' : ` (last seen ${ago(lastBeatAt, now)})`}; start one with openwage start --worker`,
        ]
      : []),
    ...(isLate && !hasNoWorker
      ? [`The oldest task is ${duration(oldestDueAt, now)} overdue; check the worker’s log`]
      : []),
    ...givenUp.map(
      ({ task, count }) =>
        `Task ${task} failed too often and will not be retried (${countOf(count, 'run')}); check the worker’s log`,
    ),
    ...(stuck === 0 ? [] : [`${countOf(stuck, 'stuck withdrawal')}; see openwage withdrawal list --stuck`]),
    ...(batchesToApprove === 0
      ? []
      : [
          `${countOf(batchesToApprove, 'batch', 'batches')} ${batchesToApprove === 1 ? 'waits' : 'wait'} for approval; see openwage payouts list --status building`,
        ]),
    ...(openExceptions === 0
      ? []
      : [`${countOf(openExceptions, 'open payout exception')}; see openwage payouts exceptions list`]),
    ...lowFloats.map(
      ({ partnerId, currency, free, floor }) =>
        `The float of ${partnerId} is low: ${inWords({ amount: free, currency })} free, floor ${inWords({ amount: floor, currency })}; top it up, then run openwage float fund`,
    ),
    ...stopped.flatMap(({ id, name, paused }) =>
      paused === null
        ? []
        : [`${name} (${id}) has been paused ${stopInWords(paused)}; resume it with openwage partner resume`],
    ),
  ]
}

function onWire({ now, postgres, mode, rails, workers, queue, lowFloats, ...status }: Status) {
  return {
    at: now,
    database: { postgres, schema: 'up to date' },
    mode,
    bank: bankOf({ mode, rails }),
    rails: rails.map(({ name, currency }) => ({ name, currency })),
    workers: workers.map(({ workerId: id, beatAt: lastSeenAt, ...worker }) => ({ id, ...worker, lastSeenAt })),
    queue,
    ...status,
    lowFloats: lowFloats.map(({ currency, free, floor, ...each }) => ({
      ...each,
      free: toWire({ amount: free, currency }),
      floor: toWire({ amount: floor, currency }),
    })),
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
    workers,
    queue,
    payouts,
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

/** Rails with the simulated bank for all other currencies are a rehearsal on a sandbox. */
function bankOf({ mode, rails }: Pick<Status, 'mode' | 'rails'>): 'simulated' | 'connected' | null {
  if (rails.length > 0) return 'connected'
  return mode === 'sandbox' ? 'simulated' : null
}

function ago(at: Date, now: Date): string {
  return `${duration(at, now)} ago`
}

function duration(from: Date, to: Date): string {
  const seconds = Math.max(0, Math.round((to.getTime() - from.getTime()) / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}
