import { type Reader, sql, type Tx } from '../db.ts'
import { newId } from '../ids.ts'
import type { Mode } from './api-keys.ts'

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
  requestsPerSecond: number
  requestsBurst: number
  suspendedAt: Date | null
}

export type PartnerSettings = Partial<
  Pick<
    Partner,
    'country' | 'timeZone' | 'autoActivate' | 'graceMinutes' | 'intentMinutes' | 'requestsPerSecond' | 'requestsBurst'
  >
>

const partnerColumns = [
  'id',
  'name',
  'country',
  'timeZone',
  'autoActivate',
  'graceMinutes',
  'intentMinutes',
  'requestsPerSecond',
  'requestsBurst',
  'suspendedAt',
] as const

/** Makes a partner. Settings that are left out take the defaults of the contract. */
export async function createPartner(
  tx: Tx,
  { name, settings = {}, now }: { name: string; settings?: PartnerSettings; now: Date },
): Promise<Partner> {
  return await tx
    .insertInto('partners')
    .values({
      id: newId('partner', now),
      name,
      country: 'GB',
      timeZone: 'Europe/London',
      autoActivate: false,
      graceMinutes: 10,
      intentMinutes: 15,
      requestsPerSecond: 100,
      requestsBurst: 200,
      paused: false,
      createdAt: now,
      ...settings,
    })
    .returning(partnerColumns)
    .executeTakeFirstOrThrow()
}

export async function findPartner(db: Reader, partnerId: string): Promise<Partner | undefined> {
  return await db.selectFrom('partners').select(partnerColumns).where('id', '=', partnerId).executeTakeFirst()
}

export async function listPartners(db: Reader): Promise<Partner[]> {
  return await db.selectFrom('partners').select(partnerColumns).orderBy('id', 'desc').execute()
}

/**
 * Says for good what this database is for, or checks that it is for that.
 * @throws with a sentence for the operator when the database belongs to the other mode
 */
export async function claimMode(tx: Tx, { mode, now }: { mode: Mode; now: Date }): Promise<void> {
  await sql`insert into installation (mode, created_at) values (${mode}, ${now}) on conflict do nothing`.execute(tx)
  const { rows } = await sql<{ mode: Mode }>`select mode from installation`.execute(tx)
  const claimed = rows[0]?.mode
  if (claimed !== mode) {
    throw new Error(
      `This database is for ${claimed} and the program was started for ${mode}: set OPENWAGE_MODE=${claimed} or use another database`,
    )
  }
}
