import type { Tx } from '../database/database.ts'
import { outageOutcome } from '../database/errors.ts'
import { Problem } from '../kernel/errors.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { partnerOf, type TaskContext, type Tasks } from '../worker/task.ts'
import { cursorOf, setCursor } from './books/cursors.ts'
import * as exceptions from './books/exceptions.ts'
import { detectRestore, restoreInWords } from './books/restores.ts'
import { type BackgroundWork, type Channel, within } from './channels/channel.ts'
import { type Report, toReport } from './payments/payment.ts'
import { create, findByReference } from './payouts.ts'
import { backOffFrom } from './rules.ts'

// Per run of a task; the rest is left to the next run, so that a stopping worker does not wait long.
const turnsMax = 50
const reportsMax = 500

/**
 * The tasks that submit withdrawals to the bank and read its reports. Withdrawals whose outcome a call did not give are
 * polled later.
 * @param channels at most one for each currency; without one, withdrawals stay held and can be cancelled
 */
export function payoutTasks(channels: readonly Channel[]) {
  return {
    // Safe to run twice: a withdrawal is claimed once, and its reference makes repeated submissions one payment.
    async 'submit-withdrawals'(context) {
      await inTurns(context, submitSome)
    },
    // Safe to run twice: polling changes nothing at the bank, and a repeated report changes nothing here.
    async 'ask-about-withdrawals'(context) {
      await inTurns(context, askAboutSome)
    },
    // Safe to run twice: a repeated report changes nothing, and the cursor moves only after the reports are recorded.
    async 'read-rail-reports'(context) {
      await inTurns(context, readSomeReports)
    },
    // Safe to run twice: a batch always gives the same file, which is delivered once.
    async 'send-payout-batches'(context) {
      await doWork('send-payout-batches', context)
    },
    // Safe to run twice: a file is recognised by its checksum, and each of its records counts once; so does each change.
    async 'read-bank-files'(context) {
      await doWork('read-bank-files', context)
    },
    // Safe to run twice: the differences are computed anew, and each is one exception.
    async 'reconcile-bank-accounts'(context) {
      await doWork('reconcile-bank-accounts', context)
    },
  } satisfies Partial<Tasks>

  async function doWork(task: BackgroundWork['task'], context: TaskContext): Promise<void> {
    await inTurns(context, async (_, { work }) => {
      for (const each of work.filter(one => one.task === task)) await each.run(context)
      return false
    })
  }

  async function inTurns(
    context: TaskContext,
    turn: (context: TaskContext, channel: Channel) => Promise<boolean>,
  ): Promise<void> {
    const { db, log } = context
    const restore = await detectRestore(db, { now: context.now() })
    if (restore !== undefined) log.error(restoreInWords({ how: restore, recoveredUntil: null }))
    const failures: unknown[] = []
    for (const channel of channels) {
      // One channel's failure must not stop the others.
      await turnsOf(channel, context, turn).catch(error => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }
}

async function turnsOf(
  channel: Channel,
  context: TaskContext,
  turn: (context: TaskContext, channel: Channel) => Promise<boolean>,
): Promise<void> {
  const { scope = 'all' } = context
  const { time } = channel
  const scoped = scope !== 'all' && time.kept === 'by partner' ? time.inScope(context) : channel
  for (let count = 0; count < turnsMax; count++) if (!(await turn(context, scoped))) return
}

function claimingFor(channel: Channel, { scope }: TaskContext, now: Date) {
  return { now, countMax: channel.paymentsMax, nextPollAt: backOffFrom(now, channel), scope }
}

// Claim and commit, call, record and commit. If the worker is killed in between, the withdrawals are polled later.
async function submitSome(context: TaskContext, channel: Channel): Promise<boolean> {
  const { db } = context
  const now = context.now()
  const claiming = {
    ...claimingFor(channel, context, now),
    currencies: channel.currencies === 'rest' ? undefined : channel.currencies,
    nameForBank: (tx: Tx, claimed: Omit<withdrawals.Claimed, 'reference'>[]) =>
      create(tx, { rail: channel.name, claimed, now }),
  }
  const payouts = await db.transaction().execute(tx => withdrawals.submitDue(tx, claiming))
  if (payouts.length === 0) return false
  const hasAnswered = await submit(context, channel, payouts.filter(withdrawals.hasAccount))
  return hasAnswered && payouts.length === channel.paymentsMax
}

async function askAboutSome(context: TaskContext, channel: Channel): Promise<boolean> {
  const { db, log } = context
  const now = context.now()
  const claiming = { ...claimingFor(channel, context, now), rail: channel.name }
  const payouts = await db.transaction().execute(tx => withdrawals.claimUnresolved(tx, claiming))
  if (payouts.length === 0) return false
  for (const { partnerId, withdrawalId, attempts } of payouts.filter(
    ({ attempts }) => attempts > withdrawals.attemptsQuietMax,
  )) {
    log.error(
      { rail: channel.name, partnerId, withdrawalId, attempts },
      'the bank has given no final report about a withdrawal; polling goes on',
    )
  }
  const references = payouts.map(({ reference }) => reference)
  const reports = await call(context, channel, 'ask', signal => channel.ask(references, signal))
  // If the bank is down, stop until the next run: going on would only use up polls and delay a stopping worker.
  if (reports === null) return false
  const unknown = new Set(reports.filter(({ outcome }) => outcome === 'unknown').map(({ reference }) => reference))
  const lost = payouts.filter(withdrawals.hasAccount).filter(({ reference }) => unknown.has(reference))
  // Resubmit unknown payments first: a report that cannot be recorded must not delay them.
  const hasAnswered = await submit(context, channel, lost)
  await record(context, channel, reports)
  return hasAnswered && payouts.length === channel.paymentsMax
}

// Returns whether the bank answered.
async function submit(context: TaskContext, channel: Channel, payouts: withdrawals.Payout[]): Promise<boolean> {
  if (payouts.length === 0) return true
  const reports = await call(context, channel, 'submit', signal => channel.submit(payouts, signal))
  if (reports === null) return false
  await record(context, channel, reports, { submitted: payouts.length, reported: reports.length })
  return true
}

async function readSomeReports(context: TaskContext, channel: Channel): Promise<boolean> {
  const { db, now, scope } = context
  const { feed } = channel
  // Banks keep the real time, so the reports about a partner whose clock was moved come with those of all others.
  if (channel.time.kept === 'real' && partnerOf(scope) !== undefined) {
    await retryRefused(context, channel)
    return false
  }
  const after = await cursorOf(db, feed)
  const read = await within(channel.callMsMax, signal => channel.collect(after, reportsMax, signal))
  await record(context, channel, read.reports)
  await retryRefused(context, channel)
  const { cursor } = read
  if (cursor === null || cursor === after) return false
  await db.transaction().execute(tx => setCursor(tx, { rail: feed, cursor, now: now() }))
  return read.reports.length === reportsMax
}

// A call that failed or timed out proves nothing about the payments; they are polled when their lease ends.
async function call(
  { log, tracing }: TaskContext,
  channel: Channel,
  what: 'submit' | 'ask',
  made: (signal: AbortSignal) => Promise<Report[]>,
): Promise<Report[] | null> {
  try {
    const work = () => within(channel.callMsMax, made)
    const attributes = { 'midmonth.rail': channel.name }
    return await (tracing?.inSpan(`bank ${what}`, { kind: 'CLIENT', attributes }, work) ?? work())
  } catch (error) {
    log.warn({ err: error, rail: channel.name, call: what }, 'the bank did not answer; it is polled later')
    return null
  }
}

// Each report has its own transaction, so that a failing one does not block the others. Logs one line per batch: how many
// were submitted, and how many withdrawals entered which status.
async function record(
  context: TaskContext,
  channel: Channel,
  reports: Report[],
  submission?: { submitted: number; reported: number },
): Promise<void> {
  const { log } = context
  const failures: unknown[] = []
  const changes: Partial<Record<withdrawals.ReportEffect['to'], number>> = {}
  for (const report of reports) {
    try {
      const to = await recordOne(context, channel, report)
      if (to !== undefined) changes[to] = (changes[to] ?? 0) + 1
    } catch (error) {
      log.error({ err: error, rail: channel.name, reference: report.reference }, 'a report was not recorded')
      // Without the database, it is read again. Otherwise it must not keep back the reports after it.
      if (outageOutcome(error) === undefined) await setAside(context, channel, report, error)
      else failures.push(error)
    }
  }
  if (submission !== undefined) log.info({ rail: channel.name, ...submission, ...changes }, 'withdrawals submitted')
  else if (Object.keys(changes).length > 0) log.info({ rail: channel.name, ...changes }, 'bank reports recorded')
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} reports were not recorded; they will be read again`)
}

/** Opens an exception for a report that cannot be recorded now; it is tried again with every reading. */
async function setAside({ db, now }: TaskContext, channel: Channel, report: Report, error: unknown): Promise<void> {
  const { reference, outcome, reason: reasonCode, restriction = null, recoveryId = null } = report
  if (outcome === 'pending' || outcome === 'unknown') return
  const payout = await findByReference(db, reference)
  const why = error instanceof Problem ? error.message : 'See the log of the worker'
  const reason = `The report could not be recorded and is tried again: ${why}`
  const fingerprint = `refused ${reference} ${outcome}${recoveryId === null ? '' : ` ${recoveryId}`}`
  const opened = {
    rail: channel.name,
    kind: 'refused',
    fingerprint,
    reason,
    reference,
    outcome,
    reasonCode,
    restriction,
    recoveryId,
    payout,
  } as const
  await db.transaction().execute(tx => exceptions.open(tx, [opened], now()))
}

async function retryRefused(context: TaskContext, channel: Channel): Promise<void> {
  const { db, now } = context
  for (const { id, reasonCode: reason, ...report } of await exceptions.listRefused(db, {
    rail: channel.name,
    countMax: reportsMax,
    scope: context.scope,
  })) {
    try {
      await recordOne(context, channel, toReport({ ...report, reason }))
    } catch (error) {
      if (outageOutcome(error) !== undefined) throw error
      continue
    }
    await db.transaction().execute(tx => exceptions.closeApplied(tx, { id, now: now() }))
  }
}

/** @returns the status that the report has changed a withdrawal to */
async function recordOne(
  { db, log, now }: TaskContext,
  channel: Channel,
  report: Report,
): Promise<withdrawals.ReportEffect['to'] | undefined> {
  const { reference, outcome, reason, restriction = null, recoveryId = null } = report
  if (outcome === 'pending' || outcome === 'unknown') return undefined
  const openException = async (kind: exceptions.ExceptionKind, why: string, payout?: typeof found) => {
    const fingerprint = `${kind} ${reference} ${outcome}`
    const opened = { rail: channel.name, kind, fingerprint, reason: why, reference, outcome, payout }
    await db.transaction().execute(tx => exceptions.open(tx, [opened], now()))
  }
  const found = await findByReference(db, reference)
  if (found === undefined) {
    log.error({ rail: channel.name, reference, outcome }, 'the bank reports a payment that is not ours')
    await openException('unmatched', `The bank reports a payment that is not ours as ${outcome}`)
    return undefined
  }
  const { partnerId, withdrawalId } = found
  const { result, from, to } = await db.transaction().execute(tx =>
    withdrawals.applyBankReport(tx, {
      partnerId,
      withdrawalId,
      outcome,
      reason,
      restriction,
      recoveryId,
      now: now(),
    }),
  )
  if (result === 'changed') log.debug({ rail: channel.name, partnerId, withdrawalId, from, to }, 'withdrawal changed')
  if (result === 'contradiction') {
    log.error(
      { rail: channel.name, partnerId, withdrawalId, status: from, outcome },
      'the bank contradicts an earlier report about a withdrawal; nothing was changed',
    )
    await openException(
      'contradiction',
      `The bank reports the payment as ${outcome}, but the withdrawal is ${from}`,
      found,
    )
  }
  return result === 'changed' ? to : undefined
}
