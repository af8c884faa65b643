import type { UpdateObject } from 'kysely'
import { type Cursor, unknownCursor } from '../database/cursor.ts'
import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import type { DB } from '../database/tables.ts'
import { type Problem, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { snakeCase } from '../kernel/text.ts'
import { defaultSettings, type Settings, settingNames } from './settings.ts'

/** A server, its database and its API keys all belong to one mode. */
export type Mode = 'sandbox' | 'live'

/** An employer, gig platform or payroll bureau, with the settings that its requests need. */
export type Partner = { id: string; name: string; suspendedAt: Date | null } & Settings

export type CycleSchedule = Settings['cycleSchedule']

/** How a payroll shortfall is handled: carried to the next cycle, or written off at the partner's expense. */
export type ShortfallPolicy = Settings['shortfallPolicy']

/** A partner as the operator sees it. */
export type PartnerState = Partner & { paused: boolean; createdAt: Date }

/** A partner before and after a change; both are equal if nothing changed. */
export type PartnerChange = { before: PartnerState; after: PartnerState }

export type PartnerSettings = Partial<Settings>

const partnerColumns = ['id', 'name', ...settingNames, 'suspendedAt'] as const

/** The columns of a `Partner`, for a statement in which the table is `p`. */
export const partnerColumnList = sql.raw(partnerColumns.map(column => `p.${snakeCase(column)}`).join(', '))

const stateColumns = ['paused', 'createdAt'] as const

/**
 * Creates a partner. Omitted settings take the defaults of the contract.
 * @throws Problem `Conflict` if the anchor does not fit the schedule
 */
export async function createPartner(
  tx: Tx,
  { name, settings = {}, now }: { name: string; settings?: PartnerSettings; now: Date },
): Promise<Partner> {
  return await tx
    .insertInto('partners')
    .values({ id: newId('partner', now), name, paused: false, createdAt: now, ...defaultSettings, ...settings })
    .returning(partnerColumns)
    .executeTakeFirstOrThrow()
    .catch(refuseAnchor)
}

/** @throws Problem `NotFound` */
export async function findState(db: Reader, partnerId: string): Promise<PartnerState> {
  const partner = await db
    .selectFrom('partners')
    .select([...partnerColumns, ...stateColumns])
    .where('id', '=', partnerId)
    .executeTakeFirst()
  if (partner === undefined) throw noSuchPartner(partnerId)
  return partner
}

/** The time zones of all partners, in the order of their ids. */
export async function listTimeZones(db: Reader): Promise<{ id: string; timeZone: string }[]> {
  return await db.selectFrom('partners').select(['id', 'timeZone']).orderBy('id').execute()
}

export async function findPartner(db: Reader, partnerId: string): Promise<Partner | undefined> {
  return await db.selectFrom('partners').select(partnerColumns).where('id', '=', partnerId).executeTakeFirst()
}

/** A filter of partners: by a part of the name or the whole id, and by state. */
export type PartnerFilter = { search?: string | undefined; state?: 'open' | 'paused' | 'suspended' | undefined }

/** Returns one page of partners, newest first, and their total number. */
export async function search(
  db: Reader,
  { filter: { search: text, state }, page, cursor }: { filter: PartnerFilter; page: Page; cursor: Cursor | undefined },
): Promise<{ partners: PartnerState[]; total: number }> {
  const matching = db
    .selectFrom('partners')
    .$if(text !== undefined, query =>
      query.where(sql<boolean>`(id = ${text} or strpos(lower(name), lower(${text})) > 0)`),
    )
    .$if(state === 'suspended', query => query.where('suspendedAt', 'is not', null))
    .$if(state === 'paused', query => query.where('paused', '=', true).where('suspendedAt', 'is', null))
    .$if(state === 'open', query => query.where('paused', '=', false).where('suspendedAt', 'is', null))
  const { total } = await matching.select(sql<number>`count(*)::integer`.as('total')).executeTakeFirstOrThrow()
  if (cursor !== undefined) await requirePartner(db, cursor)
  const partners = await matching
    .$if(cursor !== undefined, query => query.where('id', '<', cursor?.id ?? ''))
    .select([...partnerColumns, ...stateColumns])
    .orderBy('id', 'desc')
    .offset(page.skip)
    .limit(page.take)
    .execute()
  return { partners, total }
}

async function requirePartner(db: Reader, cursor: Cursor): Promise<void> {
  const known = await db.selectFrom('partners').select('id').where('id', '=', cursor.id).executeTakeFirst()
  if (known === undefined) throw unknownCursor(cursor)
}

/** Newest first. */
export async function listStates(db: Reader): Promise<PartnerState[]> {
  return await db
    .selectFrom('partners')
    .select([...partnerColumns, ...stateColumns])
    .orderBy('id', 'desc')
    .execute()
}

export async function listPartners(db: Reader): Promise<Partner[]> {
  return await db.selectFrom('partners').select(partnerColumns).orderBy('id', 'desc').execute()
}

/**
 * Changes settings of a partner; at least one is required, and omitted settings are unchanged. They apply from the next request,
 * pay run and pay cycle; work in progress keeps its old settings.
 * @throws Problem `NotFound`, as do the four functions below; `Conflict` if the anchor does not fit the schedule
 */
export async function updatePartner(
  tx: Tx,
  { partnerId, settings }: { partnerId: string; settings: PartnerSettings },
): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: settings })
}

/** Pauses withdrawals: quotes and completions are refused, and balances say so. Pay runs and payouts continue. */
export async function pausePartner(tx: Tx, partnerId: string): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { paused: true } })
}

export async function resumePartner(tx: Tx, partnerId: string): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { paused: false } })
}

/** Counts an event about the partner itself. The caller has locked the partner's row. @returns the event's sequence */
export async function countEvent(tx: Tx, partnerId: string): Promise<number> {
  const { eventCount } = await tx
    .updateTable('partners')
    .set({ eventCount: sql`event_count + 1` })
    .where('id', '=', partnerId)
    .returning('eventCount')
    .executeTakeFirstOrThrow()
  return eventCount
}

/** Refuses every request of the partner with `Forbidden`; pending payouts continue. Idempotent: the first time is kept. */
export async function suspendPartner(
  tx: Tx,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { suspendedAt: sql<Date>`coalesce(suspended_at, ${now})` } })
}

export async function restorePartner(tx: Tx, partnerId: string): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { suspendedAt: null } })
}

/** Whether a change has neither paused, resumed, suspended nor restored a partner. */
export function isSameState(before: PartnerState, after: PartnerState): boolean {
  return before.paused === after.paused && before.suspendedAt?.getTime() === after.suspendedAt?.getTime()
}

async function change(
  tx: Tx,
  { partnerId, columns }: { partnerId: string; columns: UpdateObject<DB, 'partners'> },
): Promise<PartnerChange> {
  await sql`select from partners where id = ${partnerId} for no key update`.execute(tx)
  const before = await findState(tx, partnerId)
  const after = await tx
    .updateTable('partners')
    .set(columns)
    .where('id', '=', partnerId)
    .returning([...partnerColumns, ...stateColumns])
    .executeTakeFirstOrThrow()
    .catch(refuseAnchor)
  return { before, after }
}

// The only rule that involves two settings, so only the database can check it.
function refuseAnchor(error: unknown): never {
  if (brokenConstraint(error) !== 'monthly_anchor_is_in_every_month') throw error
  const message =
    'A monthly pay cycle must start on a day that every month has; choose an anchor from the 1st to the 28th'
  throw problem('Conflict', message)
}

/** The settings of a partner, which `updatePartner` can change. */
export function settingsOf(partner: Partner): Settings {
  return Object.fromEntries(settingNames.map(each => [each, partner[each]])) as Settings
}

function noSuchPartner(partnerId: string): Problem {
  return problem('NotFound', `There is no partner ${partnerId}; run midmonth partner list to see the ids`)
}

/**
 * Binds a new database to a mode for good, or checks that an existing one is bound to it.
 * @throws Error with a message for the operator if the database belongs to the other mode
 */
export async function claimMode(tx: Tx, { mode, now }: { mode: Mode; now: Date }): Promise<void> {
  await sql`insert into installation (mode, created_at) values (${mode}, ${now}) on conflict do nothing`.execute(tx)
  await checkMode(tx, mode)
}

/**
 * Checks that the database is for this mode, or has not been claimed for any yet.
 * @throws with a sentence for the operator when the database belongs to the other mode
 */
export async function checkMode(db: Reader, mode: Mode): Promise<void> {
  const { rows } = await sql<{ mode: Mode }>`select mode from installation`.execute(db)
  const claimed = rows[0]?.mode
  if (claimed !== undefined && claimed !== mode) {
    throw new Error(
      `This is a ${claimed} database, but the program was started in ${mode} mode; set MIDMONTH_MODE=${claimed} or use another database`,
    )
  }
}
