import { type Page, type Reader, sql, type Tx } from '../db.ts'
import { problem } from '../errors.ts'
import * as events from '../events/events.ts'
import { newId } from '../ids.ts'
import { type Day, dayIn } from '../time.ts'
import { calendarMonth } from './rules.ts'

export type PayCycleStatus = 'Open' | 'Closed'

/** The days, both included, whose earnings one payday settles. */
export type PayCycle = { id: string; startDate: Day; endDate: Day; status: PayCycleStatus }

const columns = ['id', 'startDate', 'endDate', 'status'] as const

/** Opens a partner's first cycle: the calendar month of today, in the partner's time zone. */
export async function openFirst(
  tx: Tx,
  { partner, now }: { partner: { id: string; timeZone: string }; now: Date },
): Promise<PayCycle> {
  const cycle = { id: newId('payCycle', now), ...calendarMonth(dayIn(partner.timeZone, now)), status: 'Open' as const }
  await tx
    .insertInto('payCycles')
    .values({ ...cycle, partnerId: partner.id, createdAt: now })
    .execute()
  await events.append(tx, {
    partnerId: partner.id,
    type: 'pay_cycle.opened',
    resourceId: cycle.id,
    data: { payCycleId: cycle.id, startDate: cycle.startDate, endDate: cycle.endDate },
    now,
  })
  return cycle
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

/** @throws Problem `NotFound`, also for another partner's cycle */
export async function find(
  db: Reader,
  { partnerId, payCycleId }: { partnerId: string; payCycleId: string },
): Promise<PayCycle> {
  const cycle = await db
    .selectFrom('payCycles')
    .select(columns)
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
