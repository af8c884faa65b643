import type { TaskContext, Tasks } from '../tasks.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { cursorOf, setCursor } from './payouts.ts'
import { type Payment, type Rail, type Report, within } from './rail.ts'
import { backOffFrom } from './rules.ts'

// One turn of a step; what is left comes in the next, so that a worker that is told to stop is not kept long.
const turnsMax = 50
const reportsMax = 500

/**
 * The steps that carry withdrawals to the bank and hear what became of them. What a call did not tell, the next step asks.
 * @param rail null when there is none: withdrawals stay held, and can be cancelled
 */
export function payoutTasks(rail: Rail | null) {
  return {
    // Twice is safe: a withdrawal is claimed once, and under its reference it stays one payment however often it is sent.
    async 'submit-withdrawals'(context) {
      if (rail !== null) await inTurns(() => submitSome(context, rail))
    },
    // Twice is safe: asking changes nothing at the bank, and what is heard again changes nothing here.
    async 'ask-about-withdrawals'(context) {
      if (rail !== null) await inTurns(() => askAboutSome(context, rail))
    },
    // Twice is safe: what is heard again changes nothing, and the cursor moves only after what it passes was recorded.
    async 'read-rail-reports'(context) {
      if (rail !== null) await inTurns(() => readSomeReports(context, rail))
    },
  } satisfies Partial<Tasks>
}

async function inTurns(turn: () => Promise<boolean>): Promise<void> {
  for (let count = 0; count < turnsMax; count++) if (!(await turn())) return
}

// Claim and commit, call, record and commit. Cut off in between, the withdrawals are submitted, and asked about later.
async function submitSome(context: TaskContext, rail: Rail): Promise<boolean> {
  const { db } = context
  const now = context.now()
  const payouts = await db
    .transaction()
    .execute(tx => withdrawals.submitDue(tx, { now, countMax: rail.paymentsMax, nextPollAt: backOffFrom(now) }))
  if (payouts.length === 0) return false
  const isHeard = await submit(context, rail, payouts)
  return isHeard && payouts.length === rail.paymentsMax
}

async function askAboutSome(context: TaskContext, rail: Rail): Promise<boolean> {
  const { db, log } = context
  const now = context.now()
  const payouts = await db
    .transaction()
    .execute(tx => withdrawals.claimUnresolved(tx, { now, countMax: rail.paymentsMax, nextPollAt: backOffFrom(now) }))
  if (payouts.length === 0) return false
  for (const { partnerId, withdrawalId, attempts } of payouts.filter(
    ({ attempts }) => attempts > withdrawals.attemptsQuietMax,
  )) {
    log.error(
      { rail: rail.name, partnerId, withdrawalId, attempts },
      'the bank has said nothing final about a withdrawal; it is asked again every hour',
    )
  }
  const references = payouts.map(({ withdrawalId }) => withdrawalId)
  const reports = await call(context, rail, 'ask', signal => rail.ask(references, signal))
  // A bank that is away is left alone until the next round: each turn would only take more withdrawals out of reach of a
  // cancellation, and keep a worker from stopping.
  if (reports === null) return false
  const unknown = new Set(reports.filter(({ outcome }) => outcome === 'unknown').map(({ reference }) => reference))
  const lost = payouts.filter(({ withdrawalId }) => unknown.has(withdrawalId))
  // What the bank does not know goes to it again first: a report that cannot be recorded must not hold it up.
  const isHeard = lost.length === 0 || (await submit(context, rail, lost))
  await record(context, rail, reports)
  return isHeard && payouts.length === rail.paymentsMax
}

// Whether the bank said anything at all.
async function submit(context: TaskContext, rail: Rail, payouts: withdrawals.Payout[]): Promise<boolean> {
  const payments: Payment[] = payouts.map(({ withdrawalId, netAmount: amount, account }) => ({
    reference: withdrawalId,
    amount,
    account,
  }))
  const reports = await call(context, rail, 'submit', signal => rail.submit(payments, signal))
  if (reports === null) return false
  await record(context, rail, reports, { submitted: payments.length, heard: reports.length })
  return true
}

async function readSomeReports(context: TaskContext, rail: Rail): Promise<boolean> {
  const { db, now } = context
  const after = await cursorOf(db, rail.name)
  const read = await within(rail.callMsMax, signal => rail.reports(after, reportsMax, signal))
  await record(context, rail, read.reports)
  const { cursor } = read
  if (cursor === null || cursor === after) return false
  await db.transaction().execute(tx => setCursor(tx, { rail: rail.name, cursor, now: now() }))
  return read.reports.length === reportsMax
}

// A call that failed or did not end tells nothing; the claim's due time sees to it that it is asked.
async function call(
  { log }: TaskContext,
  rail: Rail,
  what: 'submit' | 'ask',
  made: (signal: AbortSignal) => Promise<Report[]>,
): Promise<Report[] | null> {
  try {
    return await within(rail.callMsMax, made)
  } catch (error) {
    log.warn({ err: error, rail: rail.name, call: what }, 'the bank did not answer; it is asked later')
    return null
  }
}

// Each report is a transaction of its own. One that cannot be recorded now does not keep the others from being so.
// Logs one line per batch: what was submitted, if anything, and how many withdrawals came into which status.
async function record(
  context: TaskContext,
  rail: Rail,
  reports: Report[],
  submission?: { submitted: number; heard: number },
): Promise<void> {
  const { log } = context
  const failures: unknown[] = []
  const changes: Partial<Record<withdrawals.ReportEffect['to'], number>> = {}
  for (const report of reports) {
    try {
      const to = await recordOne(context, rail, report)
      if (to !== undefined) changes[to] = (changes[to] ?? 0) + 1
    } catch (error) {
      failures.push(error)
      log.error({ err: error, rail: rail.name, reference: report.reference }, 'a report was not recorded')
    }
  }
  if (submission !== undefined) log.info({ rail: rail.name, ...submission, ...changes }, 'withdrawals submitted')
  else if (Object.keys(changes).length > 0) log.info({ rail: rail.name, ...changes }, 'bank reports recorded')
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} reports were not recorded; they come again`)
}

/** @returns the status that the report has changed a withdrawal to */
async function recordOne(
  { db, log, now }: TaskContext,
  rail: Rail,
  report: Report,
): Promise<withdrawals.ReportEffect['to'] | undefined> {
  const { reference: withdrawalId, outcome, reason } = report
  if (outcome === 'pending' || outcome === 'unknown') return undefined
  const found = await withdrawals.findByReference(db, withdrawalId)
  if (found === undefined) {
    log.error({ rail: rail.name, reference: withdrawalId, outcome }, 'the bank reports a payment that is none of ours')
    return undefined
  }
  const { partnerId } = found
  const { result, from, to } = await db
    .transaction()
    .execute(tx => withdrawals.applyBankReport(tx, { partnerId, withdrawalId, outcome, reason, now: now() }))
  if (result === 'changed') log.debug({ rail: rail.name, partnerId, withdrawalId, from, to }, 'withdrawal changed')
  if (result === 'contradiction') {
    log.error(
      { rail: rail.name, partnerId, withdrawalId, status: from, outcome },
      'the bank contradicts what is known of a withdrawal; nothing was changed',
    )
  }
  return result === 'changed' ? to : undefined
}
