import { type Cursor, unknownCursor } from '../database/cursor.ts'
import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import * as events from '../events/events.ts'
import { type Problem, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { addDays, type Day, dayIn, startOfDay } from '../kernel/time.ts'
import { inScope, type Scope, scheduleTask } from '../worker/task.ts'
import { cycleOf, type Schedule, type Span } from './rules.ts'

export type PayCycleStatus = 'Open' | 'Closed'

/** The days that one payday settles, first and last included. */
export type PayCycle = { id: string; startDate: Day; endDate: Day; status: PayCycleStatus }

export type OfCycle = { partnerId: string; payCycleId: string }

const columns = ['id', 'startDate', 'endDate', 'status'] as const

/** Opens a partner's first cycle: the cycle of the schedule that contains today, in the partner's time zone. */
export async function openFirst(tx: Tx, { partner, now }: { partner: { id: string }; now: Date }): Promise<PayCycle> {
  const { timeZone, schedule } = await readTerms(tx, partner.id)
  return await open(tx, { partnerId: partner.id, timeZone, span: cycleOf(schedule, dayIn(timeZone, now)), now })
}

/** Reads a partner's current time zone and cycle schedule. */
export async function readTerms(db: Reader, partnerId: string): Promise<{ timeZone: string; schedule: Schedule }> {
  const { timeZone, every, anchor } = await db
    .selectFrom('partners')
    .select(['timeZone', 'cycleSchedule as every', 'cycleAnchor as anchor'])
    .where('id', '=', partnerId)
    .executeTakeFirstOrThrow()
  return { timeZone, schedule: { every, anchor } }
}

/** Opens a cycle and schedules its closing for when its last day is over. No other cycle may be open. */
export async function open(
  tx: Tx,
  { partnerId, timeZone, span, now }: { partnerId: string; timeZone: string; span: Span; now: Date },
): Promise<PayCycle> {
  const cycle: PayCycle = { id: newId('payCycle', now), ...span, status: 'Open' }
  await tx
    .insertInto('payCycles')
    .values({ ...cycle, partnerId, createdAt: now })
    .execute()
  await scheduleTask(tx, { task: 'close-pay-cycles', at: startOfDay(timeZone, addDays(cycle.endDate, 1)), partnerId })
  await emitStatus(tx, { partnerId, cycle, now })
  return cycle
}

/** Whether the last day of a cycle is over in the partner's time zone. */
export function isOver(cycle: Span, { timeZone, now }: { timeZone: string; now: Date }): boolean {
  return cycle.endDate < dayIn(timeZone, now)
}

type Marking = { partnerId: string; cycle: PayCycle; now: Date }

/**
 * Marks a cycle as closed: no pay is earned or withdrawn in it from now on. Its unused pay is still to be released, so its
 * deductions are not final yet. The caller has locked its row.
 */
export async function markClosed(tx: Tx, { partnerId, cycle, now }: Marking): Promise<PayCycle> {
  await tx
    .updateTable('payCycles')
    .set({ status: 'Closed', closedAt: now })
    .where('partnerId', '=', partnerId)
    .where('id', '=', cycle.id)
    .execute()
  return { ...cycle, status: 'Closed' }
}

/** Marks a closed cycle as released: its deductions are final. The caller has locked its row and released the last member's pay. */
export async function markReleased(tx: Tx, { partnerId, cycle, now }: Marking): Promise<void> {
  await tx
    .updateTable('payCycles')
    .set({ releasedAt: now })
    .where('partnerId', '=', partnerId)
    .where('id', '=', cycle.id)
    .execute()
  await emitStatus(tx, { partnerId, cycle, now })
}

/**
 * Marks a closed cycle as settled, and locks its row: of two concurrent settlements, the second waits and is refused.
 * @throws Problem `Conflict` if the cycle is already settled
 */
export async function markSettled(tx: Tx, { partnerId, cycle, now }: Marking): Promise<void> {
  const settled = await tx
    .updateTable('payCycles')
    .set({ settledAt: now })
    .where('partnerId', '=', partnerId)
    .where('id', '=', cycle.id)
    .where('settledAt', 'is', null)
    .executeTakeFirst()
  if (settled.numUpdatedRows === 0n) throw alreadySettled()
}

export function alreadySettled(): Problem {
  return problem('Conflict', 'The pay cycle is already settled; correct mistakes in the next cycle’s settlement')
}

/** Finds the open cycle. */
export async function findOpen(db: Reader, partnerId: string): Promise<PayCycle | undefined> {
  return await openOf(db, partnerId).executeTakeFirst()
}

function openOf(db: Reader, partnerId: string) {
  return db.selectFrom('payCycles').select(columns).where('partnerId', '=', partnerId).where('status', '=', 'Open')
}

/**
 * Takes a share lock on the open cycle, so that it cannot close before the transaction ends. Waits for a closing in
 * progress. It is the first lock of every operation that moves pay, before members and pay runs. Completing a withdrawal
 * does not need it, since closing locks every member with unused pay before it releases the pay.
 */
export async function holdOpen(tx: Tx, partnerId: string): Promise<PayCycle | undefined> {
  const held = await openOf(tx, partnerId).forShare().executeTakeFirst()
  if (held !== undefined) return held
  // The cycle that was waited for has closed, and the query's snapshot does not include the next one.
  return (await findOpen(tx, partnerId)) === undefined ? undefined : await holdOpen(tx, partnerId)
}

/** Locks the open cycle exclusively against `holdOpen`. Returns undefined if there is none or it has closed in the meantime. */
export async function lockOpen(tx: Tx, partnerId: string): Promise<PayCycle | undefined> {
  // Not `for update`: completing a withdrawal references the cycle and locks its member, so it would deadlock with closing.
  return await openOf(tx, partnerId).forNoKeyUpdate().executeTakeFirst()
}

/** Finds the closed cycle whose unused pay is still being released. */
export async function findReleasing(db: Reader, partnerId: string): Promise<PayCycle | undefined> {
  return await releasingOf(db, partnerId).executeTakeFirst()
}

/** Like `findReleasing`, and locks the cycle, so that transactions that release its pay take turns. */
export async function lockReleasing(tx: Tx, partnerId: string): Promise<PayCycle | undefined> {
  return await releasingOf(tx, partnerId).forNoKeyUpdate().executeTakeFirst()
}

function releasingOf(db: Reader, partnerId: string) {
  return db
    .selectFrom('payCycles')
    .select(columns)
    .where('partnerId', '=', partnerId)
    .where('status', '=', 'Closed')
    .where('releasedAt', 'is', null)
}

/** Finds the partners whose open cycle is over, or whose last one is still being released, the longest overdue first. */
export async function findOver(
  db: Reader,
  { now, countMax, scope }: { now: Date; countMax: number; scope: Scope | undefined },
): Promise<string[]> {
  const { rows } = await sql<{ partnerId: string }>`
    select c.partner_id from pay_cycles c join partners p on p.id = c.partner_id
     where (c.status = 'Open' and c.end_date < (${now}::timestamptz at time zone p.time_zone)::date
            or c.status = 'Closed' and c.released_at is null)
           ${inScope(scope, sql`c.partner_id`)}
     group by c.partner_id
     order by min(c.end_date), c.partner_id
     limit ${countMax}`.execute(db)
  return rows.map(row => row.partnerId)
}

type FoundCycle = PayCycle & { releasedAt: Date | null; settledAt: Date | null }

/** @throws Problem `NotFound`, including for another partner's cycle */
export async function find(db: Reader, { partnerId, payCycleId }: OfCycle): Promise<FoundCycle> {
  const cycle = await db
    .selectFrom('payCycles')
    .select([...columns, 'releasedAt', 'settledAt'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', payCycleId)
    .executeTakeFirst()
  if (cycle === undefined) throw problem('NotFound', 'There is no such pay cycle')
  return cycle
}

/**
 * Like `find`, for a cycle whose deductions are asked for: provisional while it is open, final once it is released.
 * @throws Problem `Conflict` in between
 */
export async function findWithDeductions(db: Reader, which: OfCycle): Promise<FoundCycle> {
  const cycle = await find(db, which)
  if (cycle.status === 'Closed' && cycle.releasedAt === null) {
    const message = 'The pay cycle is closing, and its deductions are not final yet; try again in some seconds'
    throw problem('Conflict', message, {}, { 'retry-after': String(retryAfterSeconds) })
  }
  return cycle
}

// Nearly all cycles close within a second. One of a million members takes a minute or two.
const retryAfterSeconds = 5

/** Counts the cycles that payroll can settle and has not reported on. */
export async function countUnsettled(db: Reader, partnerId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from pay_cycles
     where partner_id = ${partnerId} and released_at is not null and settled_at is null`.execute(db)
  return rows[0]?.count ?? 0
}

/** Lists pay cycles, newest first. */
export async function list(
  db: Reader,
  options: { partnerId: string; statuses: PayCycleStatus[]; page: Page; cursor?: Cursor | undefined },
): Promise<{ payCycles: PayCycle[]; total: number }> {
  const { partnerId, statuses, page, cursor } = options
  const startDate = cursor === undefined ? undefined : await startOf(db, { partnerId, cursor })
  const filtered = db
    .selectFrom('payCycles')
    .where('partnerId', '=', partnerId)
    .$if(statuses.length > 0, query => query.where('status', 'in', statuses))
  const payCycles = await filtered
    .$if(startDate !== undefined, query => query.where(sql<boolean>`start_date < ${startDate}::date`))
    .select(columns)
    .orderBy('startDate', 'desc')
    .offset(page.skip)
    .limit(page.take)
    .execute()
  const { total } = await filtered.select(sql<number>`count(*)::integer`.as('total')).executeTakeFirstOrThrow()
  return { payCycles, total }
}

async function startOf(db: Reader, { partnerId, cursor }: { partnerId: string; cursor: Cursor }): Promise<string> {
  const cycle = await db
    .selectFrom('payCycles')
    .select('startDate')
    .where('partnerId', '=', partnerId)
    .where('id', '=', cursor.id)
    .executeTakeFirst()
  if (cycle === undefined) throw unknownCursor(cursor)
  return cycle.startDate
}

async function emitStatus(tx: Tx, { partnerId, cycle, now }: Marking): Promise<void> {
  const { id, startDate, endDate, status } = cycle
  const of = { partnerId, resourceId: id, data: { payCycleId: id, startDate, endDate }, now }
  await events.emit(
    tx,
    status === 'Open'
      ? { ...of, type: 'pay_cycle.opened', sequence: 1 }
      : { ...of, type: 'pay_cycle.closed', sequence: 2 },
  )
}
