import assert from 'node:assert/strict'
import { type Cursor, isBeyond, newestFirst, readingOrder, requireKnown } from '../database/cursor.ts'
import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import * as events from '../events/events.ts'
import { type Problem, problem } from '../kernel/errors.ts'
import { firstId, newId } from '../kernel/ids.ts'
import { byMemberRange } from '../kernel/member-ranges.ts'
import { byCurrency, type Currency, type Money, sumsByCurrency } from '../kernel/money.ts'
import { mapInSlices, piecesOf } from '../kernel/pace.ts'
import { addMinutes } from '../kernel/time.ts'
import * as ledger from '../ledger/ledger.ts'
import { lockMembers } from '../members/locks.ts'
import { hasMetadata, type Metadata } from '../metadata/metadata.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { inScope, type Scope, scheduleTask } from '../worker/task.ts'
import { balanceKey, type Line, opposite, type Payees, PayRunCheck, type PlacedLine, transfersOf } from './rules.ts'

type PayRunStatus = 'Scheduled' | 'Available' | 'Reverted'
export type PayRun = { id: string; payCycleId: string; status: PayRunStatus; scheduledFor: Date }

type OfPayRun = { partnerId: string; payRunId: string }
type Moving = { partnerId: string; payRun: PayRun; now: Date }

const columns = ['id', 'payCycleId', 'status', 'scheduledFor'] as const

/**
 * Creates a pay run. It becomes available after the partner's grace period, or at once without one; until then no money has
 * moved.
 * @throws Problem, with nothing done: `UnprocessableEntity` without an open cycle; `BodyValidation` for a line in another
 * currency than its member's, or for more than a number can hold; `MemberNotEligible` (400) with one issue per unknown or
 * inactive member
 */
export async function create(
  tx: Tx,
  {
    partner,
    lines,
    fileName = null,
    now,
  }: {
    partner: { id: string; graceMinutes: number }
    lines: Line[]
    /** Name of the file that was uploaded in the console. */
    fileName?: string | null
    now: Date
  },
): Promise<PayRun> {
  const partnerId = partner.id
  const cycle = await payCycles.holdOpen(tx, partnerId)
  const check = new PayRunCheck()
  for (const range of await rangesOf(lines)) {
    const payees = await lockPayees(tx, { partnerId, lines: range })
    const balances = await readBalances(tx, { partnerId, payCycleId: cycle?.id, lines: range })
    await mapInSlices(range, line => check.add(line, { payees, balances }))
  }
  const refusal = check.refusal({ hasOpenCycle: cycle !== undefined })
  if (refusal !== undefined) throw refusal
  assert(cycle !== undefined)
  const payRun: PayRun = {
    id: newId('payRun', now),
    payCycleId: cycle.id,
    status: 'Scheduled',
    scheduledFor: addMinutes(now, partner.graceMinutes),
  }
  await tx
    .insertInto('payRuns')
    .values({ ...payRun, partnerId, createdAt: now, fileName, ...summaryOf(lines) })
    .execute()
  await insertLines(tx, { partnerId, payRunId: payRun.id, lines })
  await emitStatus(tx, { partnerId, payRun, sequence: 1, now })
  if (payRun.scheduledFor > now) {
    await scheduleTask(tx, { task: 'make-pay-runs-available', at: payRun.scheduledFor, partnerId })
    return payRun
  }
  return await makeAvailable(tx, { partnerId, payRunId: payRun.id, now })
}

/** Summarises the lines for the list of pay runs. Amounts are text, because JSON has no bigint. */
function summaryOf(lines: Line[]): { lineCount: number; memberCount: number; totals: string } {
  const totals = sumsByCurrency(lines).map(({ currency, amount }) => [currency, String(amount)])
  return {
    lineCount: lines.length,
    memberCount: memberIdsOf(lines).length,
    totals: JSON.stringify(Object.fromEntries(totals)),
  }
}

/**
 * Makes the money of a scheduled pay run available. Idempotent: a pay run in any other status is left alone. Without an
 * open cycle it stays scheduled.
 * @throws Problem `NotFound`
 */
export async function makeAvailable(tx: Tx, { partnerId, payRunId, now }: OfPayRun & { now: Date }): Promise<PayRun> {
  const cycle = await payCycles.holdOpen(tx, partnerId)
  const payRun = await lock(tx, { partnerId, payRunId })
  if (payRun.status !== 'Scheduled' || cycle === undefined) return payRun
  const lines = await readLines(tx, { partnerId, payRunId })
  await book(tx, { partnerId, payRun, lines, reason: 'pay_run.available', now })
  return await transition(tx, { partnerId, payRun, to: 'Available', now })
}

/**
 * Reverts a pay run. Nothing is booked if it is still scheduled. If it is available, the reverse of every line is booked like
 * a correction: what members have already withdrawn is owed, and deducted from their next pay. Idempotent.
 * @returns the pay run, and whether it was already reverted
 * @throws Problem `NotFound`; `Conflict` once its pay cycle has closed
 */
export async function revert(
  tx: Tx,
  { partnerId, payRunId, now }: OfPayRun & { now: Date },
): Promise<PayRun & { isRepeated: boolean }> {
  const cycle = await payCycles.holdOpen(tx, partnerId)
  const payRun = await lock(tx, { partnerId, payRunId })
  if (payRun.status === 'Reverted') return { ...payRun, isRepeated: true }
  if (payRun.payCycleId !== cycle?.id) {
    throw problem('Conflict', 'The pay run’s pay cycle has closed; correct it with negative lines in a new pay run')
  }
  if (payRun.status === 'Available') {
    const lines = opposite(await readLines(tx, { partnerId, payRunId }))
    await book(tx, { partnerId, payRun, lines, reason: 'pay_run.reverted', now })
  }
  return { ...(await transition(tx, { partnerId, payRun, to: 'Reverted', now })), isRepeated: false }
}

async function transition(
  tx: Tx,
  { partnerId, payRun, to, now }: Moving & { to: 'Available' | 'Reverted' },
): Promise<PayRun> {
  await tx
    .updateTable('payRuns')
    .set({ status: to, ...(to === 'Available' ? { availableAt: now } : { revertedAt: now }) })
    .where('partnerId', '=', partnerId)
    .where('id', '=', payRun.id)
    .execute()
  const moved = { ...payRun, status: to }
  await emitStatus(tx, { partnerId, payRun: moved, sequence: payRun.status === 'Scheduled' ? 2 : 3, now })
  return moved
}

/** Moves the scheduled pay runs of a closing cycle to the next one. The caller has locked both cycles. */
export async function moveScheduled(
  tx: Tx,
  { partnerId, from, to }: { partnerId: string; from: string; to: string },
): Promise<void> {
  await tx
    .updateTable('payRuns')
    .set({ payCycleId: to })
    .where('partnerId', '=', partnerId)
    .where('payCycleId', '=', from)
    .where('status', '=', 'Scheduled')
    .execute()
}

export type PayRunDetails = PayRun & {
  createdAt: Date
  availableAt: Date | null
  revertedAt: Date | null
  lineCount: number
  /** Sum of the lines, one entry per currency. */
  totals: Money[]
}

/** @throws Problem `NotFound`, including for another partner's pay run */
export async function find(db: Reader, { partnerId, payRunId }: OfPayRun): Promise<PayRunDetails> {
  const found = await db
    .selectFrom('payRuns')
    .select([...columns, 'createdAt', 'availableAt', 'revertedAt', 'lineCount', 'totals'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', payRunId)
    .executeTakeFirst()
  if (found === undefined) throw notFound()
  return { ...found, totals: totalsOf(found.totals) }
}

/** A pay run as the console lists it. */
export type PayRunSummary = {
  id: string
  createdAt: Date
  lineCount: number
  memberCount: number
  totals: Money[]
  fileName: string | null
}

/** Summarises the pay runs with these ids that belong to the partner, in no particular order. */
export async function listSummaries(
  db: Reader,
  { partnerId, payRunIds }: { partnerId: string; payRunIds: string[] },
): Promise<PayRunSummary[]> {
  const rows = await db
    .selectFrom('payRuns')
    .select(['id', 'createdAt', 'lineCount', 'memberCount', 'totals', 'fileName'])
    .where('partnerId', '=', partnerId)
    .where('id', 'in', payRunIds)
    .execute()
  return rows.map(row => ({ ...row, totals: totalsOf(row.totals) }))
}

function totalsOf(stored: unknown): Money[] {
  // Written by `create`.
  const totals = Object.entries(stored as { [currency in Currency]: string })
  return totals
    .map(([currency, amount]) => ({ currency: currency as Currency, amount: BigInt(amount) }))
    .sort(byCurrency)
}

/** How long pay runs with the same lines are found: a day longer than an idempotency key is valid. */
const identicalDays = 8
/** Enough for a file whose parts are all identical, and for some reverted pay runs. */
const identicalMax = 20

/**
 * Finds the pay runs of the last days that have exactly these lines, newest first.
 * @param digest SHA-256 of the lines; each line is member, amount and currency, separated by spaces and ended by a line feed
 */
export async function findIdentical(
  db: Reader,
  { partnerId, lines, digest, now }: { partnerId: string; lines: Line[]; digest: string; now: Date },
): Promise<(Pick<PayRun, 'id' | 'status'> & { createdAt: Date })[]> {
  const [first, last] = [lines[0], lines.at(-1)]
  if (first === undefined || last === undefined) return []
  const has = (line: Line, place: number) => sql`exists (
    select from pay_run_lines l
     where l.partner_id = r.partner_id and l.pay_run_id = r.id and l.line = ${place}::integer
       and l.member_id = ${line.memberId} and l.amount = ${line.amount} and l.currency = ${line.currency})`
  // The first and last line tell nearly all pay runs apart, so few are read line by line.
  const { rows } = await sql<{ id: string; status: PayRunStatus; createdAt: Date }>`
    select r.id, r.status, r.created_at from pay_runs r
     where r.partner_id = ${partnerId} and r.id >= ${firstId('payRun', addMinutes(now, -identicalDays * 24 * 60))}
       and ${has(first, 1)} and ${has(last, lines.length)}
       and not exists (select from pay_run_lines l where l.partner_id = r.partner_id and l.pay_run_id = r.id
                          and l.line = ${lines.length + 1}::integer)
       and ${digest} = (
         select encode(sha256(convert_to(string_agg(l.member_id || ' ' || l.amount || ' ' || l.currency || chr(10), ''
                                                    order by l.line), 'UTF8')), 'hex')
           from pay_run_lines l where l.partner_id = ${partnerId} and l.pay_run_id = r.id)
     order by r.id desc limit ${identicalMax}`.execute(db)
  return rows
}

type PayRunFilter = { partnerId: string; statuses?: PayRunStatus[]; payCycleId?: string; metadata?: Metadata }

/**
 * Lists pay runs, newest first.
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function list(
  db: Reader,
  { page, cursor, ...filter }: PayRunFilter & { page: Page; cursor: Cursor | undefined },
): Promise<{ payRuns: PayRun[]; total: number }> {
  const { partnerId, statuses = [], payCycleId, metadata = {} } = filter
  const filtered = db
    .selectFrom('payRuns')
    .where('partnerId', '=', partnerId)
    .$if(statuses.length > 0, query => query.where('status', 'in', statuses))
    .$if(payCycleId !== undefined, query => query.where('payCycleId', '=', payCycleId ?? ''))
    .where(hasMetadata(metadata, { partnerId, kind: 'pay_run', resourceId: sql`pay_runs.id` }))
  await requireKnown(db, 'pay_runs', { partnerId, cursor })
  const found = await (cursor === undefined ? filtered : filtered.where(isBeyond(cursor)))
    .select(columns)
    .orderBy('id', readingOrder(cursor))
    .offset(page.skip)
    .limit(page.take)
    .execute()
  const { total } = await filtered.select(sql<number>`count(*)::integer`.as('total')).executeTakeFirstOrThrow()
  return { payRuns: newestFirst(found, cursor), total }
}

/** Finds the scheduled pay runs whose grace period is over, oldest first. */
export async function findDue(
  db: Reader,
  { now, countMax, scope }: { now: Date; countMax: number; scope: Scope | undefined },
): Promise<OfPayRun[]> {
  return await db
    .selectFrom('payRuns as r')
    // A pay run without an open cycle would stay due forever and starve the others.
    .innerJoin('payCycles as c', join =>
      join.onRef('c.partnerId', '=', 'r.partnerId').onRef('c.id', '=', 'r.payCycleId').on('c.status', '=', 'Open'),
    )
    .select(['r.partnerId', 'r.id as payRunId'])
    .where('r.status', '=', 'Scheduled')
    .where(sql<boolean>`r.scheduled_for <= ${now} ${inScope(scope, sql`r.partner_id`)}`)
    .orderBy('r.scheduledFor')
    .limit(countMax)
    .execute()
}

/** The instants at which a partner's scheduled pay runs become available. */
export const due = ({ partnerId }: { partnerId: string }) => sql<{ at: Date; work: number }>`
  select r.scheduled_for as at, 1 as work
    from pay_runs r join pay_cycles c on c.partner_id = r.partner_id and c.id = r.pay_cycle_id and c.status = 'Open'
   where r.partner_id = ${partnerId} and r.status = 'Scheduled'`

/** Returns when money last became available in a cycle; null if it has not yet. */
export async function lastAvailableAt(db: Reader, { partnerId, payCycleId }: payCycles.OfCycle): Promise<Date | null> {
  const { last } = await db
    .selectFrom('payRuns')
    .select(({ fn }) => fn.max('availableAt').as('last'))
    .where('partnerId', '=', partnerId)
    .where('payCycleId', '=', payCycleId)
    .where('status', '=', 'Available')
    .executeTakeFirstOrThrow()
  return last
}

async function lock(tx: Tx, { partnerId, payRunId }: OfPayRun): Promise<PayRun> {
  const payRun = await tx
    .selectFrom('payRuns')
    .select(columns)
    .where('partnerId', '=', partnerId)
    .where('id', '=', payRunId)
    .forUpdate()
    .executeTakeFirst()
  if (payRun === undefined) throw notFound()
  return payRun
}

async function insertLines(tx: Tx, { partnerId, payRunId, lines }: OfPayRun & { lines: Line[] }): Promise<void> {
  for (const [index, piece] of piecesOf(lines, linesPerStatement).entries()) {
    await sql`
      insert into pay_run_lines (partner_id, pay_run_id, line, member_id, amount, currency)
      select r.partner_id, r.id, ${index * linesPerStatement}::integer + line, member_id, amount, currency
        from pay_runs r, unnest(${piece.map(line => line.memberId)}::text[], ${piece.map(line => line.amount)}::bigint[],
                    ${piece.map(line => line.currency)}::text[]) with ordinality as t (member_id, amount, currency, line)
       where r.partner_id = ${partnerId} and r.id = ${payRunId}`.execute(tx)
  }
}

// Keeps each statement well below a second, and its cost on the main thread to a few milliseconds. A single statement for
// 100,000 lines would exceed the statement timeout and delay other requests.
const linesPerStatement = 2_000

/** Splits the lines into ascending member ranges; the lines of a member keep their order. */
async function rangesOf(lines: Line[]): Promise<PlacedLine[][]> {
  const placed = await mapInSlices(lines, (line, at) => ({ ...line, at }))
  return await byMemberRange(placed, { sizeAbout: linesPerStatement })
}

async function readLines(db: Reader, { partnerId, payRunId }: OfPayRun): Promise<Line[]> {
  const lines: Line[] = []
  for (let after = 0; ; ) {
    const page = await db
      .selectFrom('payRunLines')
      .select(['line', 'memberId', 'amount', 'currency'])
      .where('partnerId', '=', partnerId)
      .where('payRunId', '=', payRunId)
      .where('line', '>', after)
      .orderBy('line')
      .limit(linesPerStatement)
      .execute()
    for (const { line, ...rest } of page) {
      lines.push(rest)
      after = line
    }
    if (page.length < linesPerStatement) return lines
  }
}

async function book(
  tx: Tx,
  { partnerId, payRun, lines, reason, now }: Moving & { lines: Line[]; reason: string },
): Promise<void> {
  for (const range of await rangesOf(lines)) {
    await lockPayees(tx, { partnerId, lines: range })
    const balances = await readBalances(tx, { partnerId, payCycleId: payRun.payCycleId, lines: range })
    for (const piece of piecesOf(range, linesPerStatement)) {
      const transfers = transfersOf(piece, { payCycleId: payRun.payCycleId, balances })
      await ledger.post(tx, { partnerId, movementId: payRun.id, reason, transfers, now })
    }
  }
}

function notFound(): Problem {
  return problem('NotFound', 'There is no such pay run')
}

// Locks members in id order, so that two pay runs, or a pay run and a withdrawal, cannot deadlock. Must run before the lines
// are inserted: their foreign keys would take a weaker lock on the members first.
async function lockPayees(tx: Tx, { partnerId, lines }: { partnerId: string; lines: Line[] }): Promise<Payees> {
  const members = await lockMembers(tx, { partnerId, memberIds: memberIdsOf(lines) })
  return new Map(members.filter(({ isErased }) => !isErased).map(member => [member.id, member]))
}

// The caller has locked the members. Unused pay of an ended cycle is not available; posting releases it.
async function readBalances(
  tx: Tx,
  { partnerId, payCycleId = null, lines }: { partnerId: string; payCycleId: string | null | undefined; lines: Line[] },
) {
  const { rows } = await sql<{ memberId: string; currency: Currency; available: bigint; owed: bigint }>`
    select member_id, currency, case when pay_cycle_id = ${payCycleId} then available else 0 end as available, owed
      from ledger_balances
     where partner_id = ${partnerId} and member_id = any(${memberIdsOf(lines)})`.execute(tx)
  return new Map(rows.map(row => [balanceKey(row), row]))
}

function memberIdsOf(lines: Line[]): string[] {
  return [...new Set(lines.map(line => line.memberId))]
}

async function emitStatus(tx: Tx, { partnerId, payRun, sequence, now }: Moving & { sequence: number }): Promise<void> {
  const { id: payRunId, payCycleId, status } = payRun
  const data = { payRunId, payCycleId, status }
  await events.emit(tx, { partnerId, type: eventTypes[status], resourceId: payRunId, sequence, data, now })
}

const eventTypes = {
  Scheduled: 'pay_run.scheduled',
  Available: 'pay_run.available',
  Reverted: 'pay_run.reverted',
} as const satisfies Record<PayRunStatus, string>
