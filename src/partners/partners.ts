import type { UpdateObject } from 'kysely'
import { type Reader, sql, type Tx } from '../db.ts'
import { newId } from '../ids.ts'
import type { DB } from '../tables.ts'
import type { Day } from '../time.ts'

/** What a server, its database and a key are for. */
export type Mode = 'sandbox' | 'live'

/** An employer, gig platform or payroll bureau, as far as its own requests need to know it. */
export type Partner = {
  id: string
  name: string
  /** ISO 3166 two-letter code; the country of phone numbers that are written without one. */
  country: string
  timeZone: string
  autoActivate: boolean
  graceMinutes: number
  intentMinutes: number
  /** How long a withdrawal waits before it goes to the bank, and can be cancelled. */
  holdSeconds: number
  requestsPerSecond: number
  requestsBurst: number
  cycleSchedule: CycleSchedule
  /** A day on which a cycle of the schedule starts. */
  cycleAnchor: Day
  shortfallPolicy: ShortfallPolicy
  /** A file that would offboard more than this share of the members waits for a yes. */
  offboardReviewPercent: number
  suspendedAt: Date | null
}

export const cycleSchedules = ['weekly', 'two_weekly', 'four_weekly', 'semi_monthly', 'monthly'] as const
export type CycleSchedule = (typeof cycleSchedules)[number]

/** What becomes of what payroll could not take: it is taken in the next cycle, or the partner bears it. */
export const shortfallPolicies = ['carry', 'write_off'] as const
export type ShortfallPolicy = (typeof shortfallPolicies)[number]

/** A partner as its operator sees it. */
export type PartnerState = Partner & { paused: boolean; createdAt: Date }

/** What a change made of a partner; the two are equal when it changed nothing. */
export type PartnerChange = { before: PartnerState; after: PartnerState }

export type PartnerSettings = Partial<Omit<Partner, 'id' | 'name' | 'suspendedAt'>>

/** What the contract says where an operator says nothing. */
export const defaultSettings = {
  country: 'GB',
  timeZone: 'Europe/London',
  autoActivate: false,
  graceMinutes: 10,
  intentMinutes: 15,
  holdSeconds: 30,
  requestsPerSecond: 100,
  requestsBurst: 200,
  cycleSchedule: 'monthly',
  cycleAnchor: '2024-01-01',
  shortfallPolicy: 'carry',
  offboardReviewPercent: 10,
} as const satisfies Required<PartnerSettings>

const partnerColumns = [
  'id',
  'name',
  'country',
  'timeZone',
  'autoActivate',
  'graceMinutes',
  'intentMinutes',
  'holdSeconds',
  'requestsPerSecond',
  'requestsBurst',
  'cycleSchedule',
  'cycleAnchor',
  'shortfallPolicy',
  'offboardReviewPercent',
  'suspendedAt',
] as const

const stateColumns = ['paused', 'createdAt'] as const

/** Makes a partner. Settings that are left out take the defaults of the contract. */
export async function createPartner(
  tx: Tx,
  { name, settings = {}, now }: { name: string; settings?: PartnerSettings; now: Date },
): Promise<Partner> {
  return await tx
    .insertInto('partners')
    .values({ id: newId('partner', now), name, paused: false, createdAt: now, ...defaultSettings, ...settings })
    .returning(partnerColumns)
    .executeTakeFirstOrThrow()
}

/** @throws Error with a sentence for the operator when there is no such partner */
export async function findState(db: Reader, partnerId: string): Promise<PartnerState> {
  const partner = await db
    .selectFrom('partners')
    .select([...partnerColumns, ...stateColumns])
    .where('id', '=', partnerId)
    .executeTakeFirst()
  if (partner === undefined) throw noSuchPartner(partnerId)
  return partner
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
 * Changes settings of a partner; what is left out stays, and one is needed. They hold from the next request, pay run and
 * pay cycle on: what has begun ends by the settings that it began with.
 * @throws Error with a sentence for the operator when there is no such partner; so do the four below
 */
export async function updatePartner(
  tx: Tx,
  { partnerId, settings }: { partnerId: string; settings: PartnerSettings },
): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: settings })
}

/** Lets no member withdraw for the while: quotes, completions and balances say so. Pay runs and payouts go on. */
export async function pausePartner(tx: Tx, partnerId: string): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { paused: true } })
}

export async function resumePartner(tx: Tx, partnerId: string): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { paused: false } })
}

/** Refuses every request of the partner with `Forbidden`; what is on its way to a bank goes on. Twice keeps the first time. */
export async function suspendPartner(
  tx: Tx,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { suspendedAt: sql<Date>`coalesce(suspended_at, ${now})` } })
}

export async function restorePartner(tx: Tx, partnerId: string): Promise<PartnerChange> {
  return await change(tx, { partnerId, columns: { suspendedAt: null } })
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
  return { before, after }
}

function noSuchPartner(partnerId: string): Error {
  return new Error(`There is no partner ${partnerId}; partner list shows their ids`)
}

/**
 * Says for good what this database is for, or checks that it is for that.
 * @throws with a sentence for the operator when the database belongs to the other mode
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
      `This database is for ${claimed} and the program was started for ${mode}: set OPENWAGE_MODE=${claimed} or use another database`,
    )
  }
}
