import { type Reader, sql, type Tx } from '../db.ts'
import { problem } from '../errors.ts'
import * as events from '../events/events.ts'
import { newId } from '../ids.ts'
import * as ledger from '../ledger/ledger.ts'
import { type Currency, inWords, type Money, toWire } from '../money.ts'

/** The money that pays a partner's withdrawals in one currency, in minor units. */
export type Float = {
  currency: Currency
  /** What the operator has put in, payroll has paid back, and banks have not paid out yet. Below zero when nobody funds it. */
  float: bigint
  /** What is on its way to members. */
  pending: bigint
  /** What neither is gone nor on its way. */
  free: bigint
  /** Below this much free nobody can withdraw; null where nobody watches. */
  floor: bigint | null
  lowSince: Date | null
}

/** A partner's floats, one per currency that it has a tier or a floor in. */
export async function read(db: Reader, partnerId: string): Promise<Float[]> {
  const sums = ledger.floatSums({ partnerId: sql`${partnerId}`, currency: sql`c.currency` })
  const { rows } = await sql<Float>`
    select c.currency, s.float, s.pending, s.float - s.pending as free, f.floor, f.low_since
      from (select currency from tiers where partner_id = ${partnerId}
             union select currency from float_limits where partner_id = ${partnerId}) c
      left join float_limits f on f.partner_id = ${partnerId} and f.currency = c.currency
     cross join lateral (${sums}) s
     order by c.currency`.execute(db)
  return rows
}

/**
 * Puts money in: the operator has made it available for withdrawals.
 * @throws Error when there is no such partner, it has no tier in the currency, or the amount is not positive
 */
export async function fund(
  tx: Tx,
  { partnerId, amount: money, now }: { partnerId: string; amount: Money; now: Date },
): Promise<void> {
  if (money.amount < 1n) throw new Error('The amount must be at least one minor unit')
  await holdPartner(tx, partnerId)
  await requireTier(tx, { partnerId, currency: money.currency })
  const transfers: ledger.Transfer[] = [{ debit: 'float', credit: 'funding', ...money }]
  await ledger.post(tx, { partnerId, movementId: newId('floatMovement', now), reason: 'float.funded', transfers, now })
  await note(tx, { partnerId, currency: money.currency, now })
}

/**
 * Takes money out again, no more than is free. A withdrawal that is being completed at this moment does not wait for this:
 * it may take its share of the same money.
 * @throws Problem `UnprocessableEntity` when it is more than is free; Error when there is no such partner
 */
export async function withdraw(
  tx: Tx,
  { partnerId, amount: money, now }: { partnerId: string; amount: Money; now: Date },
): Promise<void> {
  if (money.amount < 1n) throw new Error('The amount must be at least one minor unit')
  await holdPartner(tx, partnerId)
  const { currency } = money
  const free = await freeOf(tx, { partnerId, currency })
  if (money.amount > free) {
    throw problem(
      'UnprocessableEntity',
      `Only ${inWords({ amount: free, currency })} is free; take out no more than that`,
    )
  }
  const transfers: ledger.Transfer[] = [{ debit: 'funding', credit: 'float', ...money }]
  await ledger.post(tx, {
    partnerId,
    movementId: newId('floatMovement', now),
    reason: 'float.withdrawn',
    transfers,
    now,
  })
  await note(tx, { partnerId, currency, now })
}

/**
 * Says below which free amount nobody can withdraw; with null nobody watches any more.
 * @throws Error when there is no such partner, or it has no tier in the currency
 */
export async function setFloor(
  tx: Tx,
  { partnerId, currency, floor, now }: { partnerId: string; currency: Currency; floor: bigint | null; now: Date },
): Promise<void> {
  await holdPartner(tx, partnerId)
  if (floor === null) {
    await tx.deleteFrom('floatLimits').where('partnerId', '=', partnerId).where('currency', '=', currency).execute()
    return
  }
  await requireTier(tx, { partnerId, currency })
  await tx
    .insertInto('floatLimits')
    .values({ partnerId, currency, floor })
    .onConflict(conflict => conflict.columns(['partnerId', 'currency']).doUpdateSet({ floor }))
    .execute()
  await note(tx, { partnerId, currency, now })
}

/**
 * Notes that a watched float has fallen below its floor, with one `float.low` event per fall, or that it is above again.
 * Whoever lowers what is free calls this after booking. Holds the partner's row, so that two falls take turns, and takes
 * no lock after it. Twice is safe: what is noted already is not noted again.
 */
export async function note(
  tx: Tx,
  { partnerId, currency, now }: { partnerId: string; currency: Currency; now: Date },
): Promise<void> {
  await holdPartner(tx, partnerId)
  const limit = await tx
    .selectFrom('floatLimits')
    .select(['floor', 'lowSince'])
    .where('partnerId', '=', partnerId)
    .where('currency', '=', currency)
    .executeTakeFirst()
  if (limit === undefined) return
  const free = await freeOf(tx, { partnerId, currency })
  const isLow = free < limit.floor
  if (isLow === (limit.lowSince !== null)) return
  await tx
    .updateTable('floatLimits')
    .set({ lowSince: isLow ? now : null })
    .where('partnerId', '=', partnerId)
    .where('currency', '=', currency)
    .execute()
  if (!isLow) return
  await events.append(tx, {
    partnerId,
    type: 'float.low',
    resourceId: partnerId,
    data: { free: toWire({ amount: free, currency }), floor: toWire({ amount: limit.floor, currency }) },
    now,
  })
}

/**
 * The floats whose fall or recovery nobody has noted yet: money that came back from a bank or from payroll, or two
 * withdrawals that crossed the floor only together.
 */
export async function findUnnoted(db: Reader): Promise<{ partnerId: string; currency: Currency }[]> {
  const sums = ledger.floatSums({ partnerId: sql`f.partner_id`, currency: sql`f.currency` })
  const { rows } = await sql<{ partnerId: string; currency: Currency }>`
    select f.partner_id, f.currency
      from float_limits f cross join lateral (${sums}) s
     where (s.float - s.pending < f.floor) <> (f.low_since is not null)
     order by 1, 2`.execute(db)
  return rows
}

// Whoever moves the float by hand, or notes its fall, takes turns with the others. Keys may still refer to the partner.
async function holdPartner(tx: Tx, partnerId: string): Promise<void> {
  const { rows } = await sql`select 1 from partners where id = ${partnerId} for no key update`.execute(tx)
  if (rows.length === 0) throw new Error(`There is no partner ${partnerId}; partner list shows their ids`)
}

// Nothing is ever paid out in another currency, so that money there would be lost to sight.
async function requireTier(tx: Tx, { partnerId, currency }: { partnerId: string; currency: Currency }): Promise<void> {
  const tier = await tx
    .selectFrom('tiers')
    .select('name')
    .where('partnerId', '=', partnerId)
    .where('currency', '=', currency)
    .executeTakeFirst()
  if (tier === undefined) throw new Error(`The partner has no tier in ${currency}; make one with tier set first`)
}

async function freeOf(tx: Tx, { partnerId, currency }: { partnerId: string; currency: Currency }): Promise<bigint> {
  const sums = ledger.floatSums({ partnerId: sql`${partnerId}`, currency: sql`${currency}` })
  const { rows } = await sql<{ free: bigint }>`select float - pending as free from (${sums}) s`.execute(tx)
  return rows[0]?.free ?? 0n
}
