import assert from 'node:assert/strict'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import { type Tier, termsFault } from './rules.ts'
import { type TierTerms, termNames } from './terms.ts'

/** Lists the names of a partner's tiers, in alphabetical order. */
export async function listTiers(db: Reader, partnerId: string): Promise<{ name: string }[]> {
  return await db.selectFrom('tiers').select('name').where('partnerId', '=', partnerId).orderBy('name').execute()
}

/** Returns the currency of each of a partner's tiers, keyed by tier name. */
export async function listCurrencies(db: Reader, partnerId: string): Promise<Map<string, Currency>> {
  const tiers = await db
    .selectFrom('tiers')
    .select(['name', 'currency'])
    .where('partnerId', '=', partnerId)
    .orderBy('name')
    .execute()
  return new Map(tiers.map(({ name, currency }) => [name, currency]))
}

/** A version of a tier's terms, and when it took effect. */
export type TierVersion = Tier & { since: Date }

const termColumns = termNames.map(name => `v.${name}` as const)

function selectVersions(db: Reader, partnerId: string) {
  return db
    .selectFrom('tiers as t')
    .innerJoin('tierVersions as v', join =>
      join.onRef('v.partnerId', '=', 't.partnerId').onRef('v.tier', '=', 't.name'),
    )
    .select(['t.name', 'v.version', 't.currency', ...termColumns, 'v.createdAt as since'])
    .where('t.partnerId', '=', partnerId)
}

/** Lists a partner's tiers with their current terms, by name. @param options.name only this tier */
export async function listTerms(
  db: Reader,
  partnerId: string,
  { name }: { name?: string } = {},
): Promise<TierVersion[]> {
  const current = selectVersions(db, partnerId).whereRef('v.version', '=', 't.version').orderBy('t.name')
  return await (name === undefined ? current : current.where('t.name', '=', name)).execute()
}

/**
 * Finds a tier with its current terms. @param options.locks whether to lock the tier against changes until the transaction ends
 */
export async function findTier(
  db: Reader,
  { partnerId, name, locks = false }: { partnerId: string; name: string; locks?: boolean },
): Promise<Tier | undefined> {
  if (locks) await sql`select from tiers where partner_id = ${partnerId} and name = ${name} for update`.execute(db)
  const [found] = await listTerms(db, partnerId, { name })
  if (found === undefined) return undefined
  const { since: _, ...tier } = found
  return tier
}

/** Lists all versions of a tier's terms, newest first. @param options.version only this one */
export async function listVersions(
  db: Reader,
  { partnerId, name, version }: { partnerId: string; name: string; version?: number },
): Promise<TierVersion[]> {
  const versions = selectVersions(db, partnerId).where('t.name', '=', name).orderBy('v.version', 'desc')
  return await (version === undefined ? versions : versions.where('v.version', '=', version)).execute()
}

type NewTerms = { partnerId: string; name: string; currency: Currency; terms: TierTerms; now: Date }

/**
 * Creates a tier, or adds a version with new terms to an existing one. New intents use the new version at once; existing
 * intents and withdrawals keep theirs. Unchanged terms create no version.
 * @throws Problem `Conflict` if the terms are invalid or the currency would change
 */
export async function setTier(tx: Tx, { partnerId, name, currency, terms, now }: NewTerms): Promise<Tier> {
  const fault = termsFault(terms)
  if (fault !== undefined) throw problem('Conflict', fault)
  await tx
    .insertInto('tiers')
    .values({ partnerId, name, currency, version: 1, createdAt: now })
    .onConflict(conflict => conflict.columns(['partnerId', 'name']).doNothing())
    .execute()
  const { rows } = await sql<{ currency: Currency; version: number }>`
    select currency, version from tiers where partner_id = ${partnerId} and name = ${name} for update`.execute(tx)
  const tier = rows[0]
  assert(tier !== undefined)
  if (tier.currency !== currency) {
    throw problem(
      'Conflict',
      `Tier ${name} is in ${tier.currency}, and the currency of a tier cannot change; create another tier for ${currency}`,
    )
  }
  const current = await findTier(tx, { partnerId, name })
  if (current !== undefined && isSameTerms(current, terms)) return current
  const version = current === undefined ? 1 : tier.version + 1
  await tx
    .insertInto('tierVersions')
    .values({ partnerId, tier: name, version, createdAt: now, ...terms })
    .execute()
  await tx.updateTable('tiers').set({ version }).where('partnerId', '=', partnerId).where('name', '=', name).execute()
  return { name, version, currency, ...terms }
}

/** The current terms of all partners' tiers that ask for instant payouts. */
export async function listInstant(db: Reader): Promise<{ partnerId: string; name: string; currency: Currency }[]> {
  const { rows } = await sql<{ partnerId: string; name: string; currency: Currency }>`
    select t.partner_id, t.name, t.currency
      from tiers t join tier_versions v on (v.partner_id, v.tier, v.version) = (t.partner_id, t.name, t.version)
     where v.payout_speed = 'instant'
     order by t.partner_id, t.name`.execute(db)
  return rows
}

function isSameTerms(current: TierTerms, terms: TierTerms): boolean {
  return termNames.every(name => current[name] === terms[name])
}
