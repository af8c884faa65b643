import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import { problem } from '../errors.ts'
import * as events from '../events/events.ts'
import { newId } from '../ids.ts'
import { scheduleTask } from '../tasks.ts'
import { addDays, type Day, dayIn, startOfDay } from '../time.ts'
import { cycleOf, type Schedule, type Span } from './rules.ts'

export type PayCycleStatus = 'Open' | 'Closed'

/** The days, both included, whose earnings one payday settles. */
export type PayCycle = { id: string; startDate: Day; endDate: Day; status: PayCycleStatus }

const columns = ['id', 'startDate', 'endDate', 'status'] as const

/** Opens a partner's first cycle: the one of the partner's schedule that today is in, in the partner's time zone. */
export async function openFirst(tx: Tx, { partner, now }: { partner: { id: string }; now: Date }): Promise<PayCycle> {
  const { timeZone, schedule } = await readTerms(tx, partner.id)
  return await open(tx, { partnerId: partner.id, timeZone, span: cycleOf(schedule, dayIn(timeZone, now)), now })
}

/** By what a partner's cycles follow each other, as it stands now. */
export async function readTerms(db: Reader, partnerId: string): Promise<{ timeZone: string; schedule: Schedule }> {
  const { timeZone, every, anchor } = await db
    .selectFrom('partners')
    .select(['timeZone', 'cycleSchedule as every', 'cycleAnchor as anchor'])
    .where('id', '=', partnerId)
    .executeTakeFirstOrThrow()
  return { timeZone, schedule: { every, anchor } }
}

/** Opens a cycle, and has the worker close it when its last day is over. No other may be open. */
export async function open(
  tx: Tx,
  { partnerId, timeZone, span, now }: { partnerId: string; timeZone: string; span: Span; now: Date },
): Promise<PayCycle> {
  const cycle: PayCycle = { id: newId('payCycle', now), ...span, status: 'Open' }
  await tx
    .insertInto('payCycles')
    .values({ ...cycle, partnerId, createdAt: now })
    .execute()
  await scheduleTask(tx, { task: 'close-pay-cycles', at: startOfDay(timeZone, addDays(cycle.endDate, 1)) })
  await appendEvent(tx, 'opened', { partnerId, cycle, now })
  return cycle
}

/** Whether the last day of a cycle is over where the partner is. */
export function isOver(cycle: Span, { timeZone, now }: { timeZone: string; now: Date }): boolean {
  return cycle.endDate < dayIn(timeZone, now)
}

/** Closes a cycle whose row the caller holds, and whose money is booked already (closing.ts). */
export async function markClosed(
  tx: Tx,
  { partnerId, cycle, now }: { partnerId: string; cycle: PayCycle; now: Date },
): Promise<PayCycle> {
  const closed: PayCycle = { ...cycle, status: 'Closed' }
  await tx
    .updateTable('payCycles')
    .set({ status: 'Closed', closedAt: now })
    .where('partnerId', '=', partnerId)
    .where('id', '=', cycle.id)
    .execute()
  await appendEvent(tx, 'closed', { partnerId, cycle: closed, now })
  return closed
}

/**
 * Settles a closed cycle, whose row is held from here on: of two settlements at once the second one waits, and is refused.
 * @throws Problem `Conflict` when it is settled already
 */
export async function markSettled(
  tx: Tx,
  { partnerId, cycle, now }: { partnerId: string; cycle: PayCycle; now: Date },
): Promise<void> {
  const settled = await tx
    .updateTable('payCycles')
    .set({ settledAt: now })
    .where('partnerId', '=', partnerId)
    .where('id', '=', cycle.id)
    .where('settledAt', 'is', null)
    .executeTakeFirst()
  if (settled.numUpdatedRows === 0n) {
    throw problem('Conflict', 'The pay cycle is settled already; correct a mistake with the next cycle’s settlement')
  }
}

/** The open cycle, if there is one. */
export async function findOpen(db: Reader, partnerId: string): Promise<PayCycle | undefined> {
  return await db
    .selectFrom('payCycles')
    .select(columns)
    .where('partnerId', '=', partnerId)
    .where('status', '=', 'Open')
    .executeTakeFirst()
}

/**
 * The open cycle, which stays open until the transaction ends: closing waits, and we wait for one that is closing. The
 * first lock of every operation that moves pay, before members and pay runs. Completing a withdrawal needs no such hold,
 * since closing takes every member's lock before it counts.
 */
export async function holdOpen(tx: Tx, partnerId: string): Promise<PayCycle | undefined> {
  const held = await tx
    .selectFrom('payCycles')
    .select(columns)
    .where('partnerId', '=', partnerId)
    .where('status', '=', 'Open')
    .forShare()
    .executeTakeFirst()
  if (held !== undefined) return held
  // The row that we waited for has closed; the one that has opened with it could not be seen yet.
  return (await findOpen(tx, partnerId)) === undefined ? undefined : await holdOpen(tx, partnerId)
}

/** The open cycle, held against everybody who holds it open; undefined when there is none, or it has closed meanwhile. */
export async function lockOpen(tx: Tx, partnerId: string): Promise<PayCycle | undefined> {
  return await tx
    .selectFrom('payCycles')
    .select(columns)
    .where('partnerId', '=', partnerId)
    .where('status', '=', 'Open')
    // Not `for update`: completing a withdrawal refers to the cycle, and would wait for us while we wait for its member.
    .forNoKeyUpdate()
    .executeTakeFirst()
}

/** The partners whose open cycle is over, longest first. */
export async function findOver(db: Reader, { now, countMax }: { now: Date; countMax: number }): Promise<string[]> {
  const { rows } = await sql<{ partnerId: string }>`
    select c.partner_id from pay_cycles c join partners p on p.id = c.partner_id
     where c.status = 'Open' and c.end_date < (${now}::timestamptz at time zone p.time_zone)::date
     order by c.end_date, c.partner_id
     limit ${countMax}`.execute(db)
  return rows.map(row => row.partnerId)
}

/** @throws Problem `NotFound`, also for another partner's cycle */
export async function find(
  db: Reader,
  { partnerId, payCycleId }: { partnerId: string; payCycleId: string },
): Promise<PayCycle & { settledAt: Date | null }> {
  const cycle = await db
    .selectFrom('payCycles')
    .select([...columns, 'settledAt'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', payCycleId)
    .executeTakeFirst()
  if (cycle === undefined) throw problem('NotFound', 'There is no such pay cycle')
  return cycle
}

/** Newest first. */
export async function list(
  db: Reader,
  { partnerId, statuses, page }: { partnerId: string; statuses: PayCycleStatus[]; page: Page },
): Promise<{ payCycles: PayCycle[]; total: number }> {
  const filtered = db
    .selectFrom('payCycles')
    .where('partnerId', '=', partnerId)
    .$if(statuses.length > 0, query => query.where('status', 'in', statuses))
  const payCycles = await filtered
    .select(columns)
    .orderBy('startDate', 'desc')
    .offset(page.skip)
    .limit(page.take)
    .execute()
  const { total } = await filtered.select(sql<number>`count(*)::integer`.as('total')).executeTakeFirstOrThrow()
  return { payCycles, total }
}

async function appendEvent(
  tx: Tx,
  step: 'opened' | 'closed',
  { partnerId, cycle, now }: { partnerId: string; cycle: PayCycle; now: Date },
): Promise<void> {
  const { id, startDate, endDate } = cycle
  await events.emit(tx, {
    partnerId,
    type: `pay_cycle.${step}`,
    resourceId: id,
    data: { payCycleId: id, startDate, endDate },
    now,
  })
}
