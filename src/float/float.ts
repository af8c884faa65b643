import { type Reader, sql, type Tx } from '../database/database.ts'
import * as events from '../events/events.ts'
import { inFloatOf } from '../fees/revenue.ts'
import { problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { amountMax, type Currency, inWords, type Money, toWire } from '../kernel/money.ts'
import * as ledger from '../ledger/ledger.ts'
import * as partners from '../partners/partners.ts'
import { inScope, type Scope } from '../worker/task.ts'

/** The money that funds a partner's withdrawals in one currency, in minor units. */
export type Float = {
  currency: Currency
  /** Funded by the operator or repaid by payroll, less what banks have paid out. Negative if it is underfunded. */
  float: bigint
  /** Pending payouts. */
  pending: bigint
  /** The float less what is pending. */
  free: bigint
  /** Costs that the operator bears and has not covered, so that the float lacks them. */
  uncovered: bigint
  /** While less than this is free, members cannot withdraw; null disables the floor. */
  floor: bigint | null
  lowSince: Date | null
}

/** Reads a partner's floats, one per currency with a tier or a floor. */
export async function read(db: Reader, partnerId: string): Promise<Float[]> {
  const floats = await select(db, partnerId)
  return floats.map(({ partnerId: _, ...float }) => float)
}

/** Reads the floats of all partners; see `read`. */
export async function listAll(db: Reader): Promise<(Float & { partnerId: string })[]> {
  return await select(db)
}

async function select(db: Reader, partnerId?: string): Promise<(Float & { partnerId: string })[]> {
  const where = partnerId === undefined ? sql`` : sql`where partner_id = ${partnerId}`
  const of = { partnerId: partnerId === undefined ? sql`c.partner_id` : sql`${partnerId}`, currency: sql`c.currency` }
  const { rows: costs } = await sql<{ float: string }>`
    select distinct partner_id || ' ' || currency as float from float_costs ${where}`.execute(db)
  const { rows } = await sql<Float & { partnerId: string }>`
    select c.partner_id, c.currency, s.float, s.pending, s.float - s.pending as free, f.floor, f.low_since,
           case when c.partner_id || ' ' || c.currency = any(${costs.map(({ float }) => float)}::text[])
                then ${ledger.operatorCosts(of)} else 0 end as uncovered
      from (select partner_id, currency from tiers ${where}
             union select partner_id, currency from float_limits ${where}) c
      left join float_limits f on f.partner_id = ${of.partnerId} and f.currency = c.currency
     cross join lateral (${ledger.floatSums(of)}) s
     order by c.partner_id, c.currency`.execute(db)
  return rows
}

/**
 * A movement of money into or out of a float. A `reference` makes it idempotent. A partner's references are shared by both
 * directions.
 */
type Movement = { partnerId: string; amount: Money; reference?: string | undefined; now: Date }

type OfFloat = { partnerId: string; currency: Currency }

/** `isRepeated`: the reference was used for the same movement before, at `at`; nothing moved now. */
export type Moved = { movementId: string; at: Date; isRepeated: boolean }

/**
 * Funds a float.
 * @throws Problem `NotFound` if there is no such partner; `Conflict` if it has no tier in the currency, the amount is not
 * positive, the float would exceed what JSON can represent exactly, or the reference belongs to another movement
 */
export async function fund(tx: Tx, movement: Movement): Promise<Moved> {
  return await move(tx, 'fund', movement, async ({ partnerId, amount: { amount, currency } }) => {
    await requireTier(tx, { partnerId, currency })
    const room = BigInt(amountMax) - (await sumsOf(tx, { partnerId, currency })).float
    if (amount <= room) return
    const most = inWords({ amount: BigInt(amountMax), currency })
    throw problem(
      'Conflict',
      `A float cannot hold more than ${most}: add at most ${inWords({ amount: room, currency })}`,
    )
  })
}

/**
 * Takes money out of a float, at most what is free. Does not block withdrawals that are being completed at the same time;
 * they may take the same money.
 * @throws Problem `UnprocessableEntity` if it is more than is free; `NotFound` if there is no such partner; `Conflict` if the
 * amount is not positive, or the reference belongs to another movement
 */
export async function withdraw(tx: Tx, movement: Movement): Promise<Moved> {
  return await move(tx, 'withdraw', movement, async ({ partnerId, amount: { amount, currency } }) => {
    const { free } = await sumsOf(tx, { partnerId, currency })
    if (amount <= free) return
    throw problem('UnprocessableEntity', `Only ${inWords({ amount: free, currency })} is free; withdraw at most that`)
  })
}

/**
 * Takes collected fees out of a float, at most what is free above the floor. They are the operator's own money, so this does not
 * count as a withdrawal from the float.
 * @throws Problem `UnprocessableEntity` if it is more than has been collected or than is free above the floor; otherwise as
 * `withdraw`
 */
export async function withdrawRevenue(tx: Tx, movement: Movement & { reference: string }): Promise<Moved> {
  return await move(tx, 'revenue', movement, async ({ partnerId, amount: { amount, currency } }) => {
    const collected = await inFloatOf(tx, { partnerId, currency })
    if (amount > collected) {
      const most = inWords({ amount: collected > 0n ? collected : 0n, currency })
      throw problem('UnprocessableEntity', `Only ${most} of the collected fees is in the float; take out at most that`)
    }
    const { free } = await sumsOf(tx, { partnerId, currency })
    const floor = await floorOf(tx, { partnerId, currency })
    if (amount <= free - (floor ?? 0n)) return
    const words = inWords({ amount: free, currency })
    const above = floor === null ? '' : `, and the floor is ${inWords({ amount: floor, currency })}`
    throw problem('UnprocessableEntity', `Only ${words} of the float is free${above}`)
  })
}

/**
 * Covers costs that the operator bears, after the operator has paid its own money into the float.
 * @throws Problem `UnprocessableEntity` if the amount is more than the float lacks; otherwise as `fund`
 */
export async function cover(tx: Tx, movement: Movement): Promise<Moved> {
  return await move(tx, 'cover', movement, async ({ partnerId, amount: { amount, currency } }) => {
    const { rows } = await sql<{ uncovered: bigint }>`
      select ${ledger.operatorCosts({ partnerId: sql`${partnerId}`, currency: sql`${currency}` })} as uncovered`.execute(
      tx,
    )
    const uncovered = rows[0]?.uncovered ?? 0n
    if (amount > uncovered)
      throw problem(
        'UnprocessableEntity',
        `The float lacks only ${inWords({ amount: uncovered, currency })} of the operator's costs; cover at most that`,
      )
  })
}

type Cost = { partnerId: string; amount: Money; exceptionId: string | null; now: Date }

/**
 * Books money that has left the float at the operator's cost. The float lacks the amount until the operator covers it.
 * @param cost.exceptionId the exception that the decision is about, which is booked only once; null if there is none
 */
export async function bearCost(
  tx: Tx,
  { partnerId, amount: money, exceptionId, now }: Cost,
): Promise<{ movementId: string }> {
  await lockPartner(tx, partnerId)
  await requireTier(tx, { partnerId, currency: money.currency })
  const movementId = newId('floatMovement', now)
  const transfers = [{ debit: 'operator_costs' as const, credit: 'float' as const, ...money }]
  await ledger.post(tx, { partnerId, movementId, reason: 'float.cost', transfers, now })
  await tx
    .insertInto('floatCosts')
    .values({ partnerId, movementId, exceptionId, ...money, createdAt: now })
    .execute()
  await updateLowAlert(tx, { partnerId, currency: money.currency, now })
  return { movementId }
}

/** Funds a float with the rest of a transfer. The other parts are booked under the same movement. */
export async function fundRest(
  tx: Tx,
  { partnerId, amount: money, movementId, now }: { partnerId: string; amount: Money; movementId: string; now: Date },
): Promise<void> {
  await lockPartner(tx, partnerId)
  const transfers = [{ debit: 'float' as const, credit: 'funding' as const, ...money }]
  await ledger.post(tx, { partnerId, movementId, reason: 'float.funded', transfers, now })
  await updateLowAlert(tx, { partnerId, currency: money.currency, now })
}

/** Books a charge of the bank that the partner bears. */
export async function chargePartner(
  tx: Tx,
  { partnerId, amount: money, now }: { partnerId: string; amount: Money; now: Date },
): Promise<{ movementId: string }> {
  await lockPartner(tx, partnerId)
  return await postCharge(tx, { partnerId, transfer: { debit: 'written_off', credit: 'float', ...money }, now })
}

/** Books the amount that the bank deducted from a payment. That money did not leave the account, so the float keeps it. */
export async function keepDeducted(
  tx: Tx,
  { partnerId, amount: money, now }: { partnerId: string; amount: Money; now: Date },
): Promise<{ movementId: string }> {
  await lockPartner(tx, partnerId)
  return await postCharge(tx, { partnerId, transfer: { debit: 'float', credit: 'written_off', ...money }, now })
}

type Charge = {
  partnerId: string
  transfer: Money & { debit: 'written_off' | 'float'; credit: 'written_off' | 'float' }
  now: Date
}

async function postCharge(tx: Tx, { partnerId, transfer, now }: Charge): Promise<{ movementId: string }> {
  const movementId = newId('floatMovement', now)
  await ledger.post(tx, { partnerId, movementId, reason: 'float.charged', transfers: [transfer], now })
  await updateLowAlert(tx, { partnerId, currency: transfer.currency, now })
  return { movementId }
}

const directions = {
  fund: { debit: 'float', credit: 'funding', reason: 'float.funded' },
  withdraw: { debit: 'funding', credit: 'float', reason: 'float.withdrawn' },
  cover: { debit: 'float', credit: 'operator_costs', reason: 'float.covered' },
  revenue: { debit: 'operator_account', credit: 'float', reason: 'revenue.withdrawn' },
} as const
type Direction = keyof typeof directions

async function move(
  tx: Tx,
  direction: Direction,
  movement: Movement,
  check: (movement: Movement) => Promise<void>,
): Promise<Moved> {
  const { partnerId, amount: money, reference, now } = movement
  if (money.amount < 1n) throw problem('Conflict', 'The amount must be at least one minor unit')
  await lockPartner(tx, partnerId)
  // Before the check, which may fail because the movement has already been made.
  const earlier = reference === undefined ? undefined : await findEarlier(tx, direction, { ...movement, reference })
  if (earlier !== undefined) return earlier
  await check(movement)
  const movementId = newId('floatMovement', now)
  const { debit, credit, reason } = directions[direction]
  await ledger.post(tx, { partnerId, movementId, reason, transfers: [{ debit, credit, ...money }], now })
  if (reference !== undefined) {
    const columns = { partnerId, reference, direction, ...money, movementId, createdAt: now }
    await tx.insertInto('floatReferences').values(columns).execute()
  }
  await updateLowAlert(tx, { partnerId, currency: money.currency, now })
  return { movementId, at: now, isRepeated: false }
}

/** A movement that was recorded under a reference. `amount` is negative if money left the float. */
export type Recorded = {
  partnerId: string
  movementId: string
  reference: string
  direction: Direction
  amount: bigint
}

/** Lists the movements of all partners with any of these references, oldest first. */
export async function listRecorded(
  db: Reader,
  { references, currency }: { references: readonly string[]; currency: Currency },
): Promise<Recorded[]> {
  if (references.length === 0) return []
  const { rows } = await sql<Recorded>`
    select partner_id, movement_id, reference, direction,
           case when direction in ('fund', 'cover') then amount else -amount end as amount
      from float_references
     where reference = any(${references}::text[]) and currency = ${currency}
     order by movement_id`.execute(db)
  return rows
}

async function findEarlier(
  tx: Tx,
  direction: Direction,
  { partnerId, amount: money, reference }: Movement & { reference: string },
): Promise<Moved | undefined> {
  const earlier = await tx
    .selectFrom('floatReferences')
    .select(['direction', 'amount', 'currency', 'movementId', 'createdAt'])
    .where('partnerId', '=', partnerId)
    .where('reference', '=', reference)
    .executeTakeFirst()
  if (earlier === undefined) return undefined
  const { movementId, createdAt: at } = earlier
  const isSame =
    earlier.direction === direction && earlier.amount === money.amount && earlier.currency === money.currency
  if (isSame) return { movementId, at, isRepeated: true }
  throw problem(
    'Conflict',
    `The reference "${reference}" belongs to another movement (${earlier.direction} ${inWords(earlier)}, ${at.toISOString()}), so nothing was done; use a new reference`,
  )
}

/**
 * Sets the free amount below which no member can withdraw; null disables the floor.
 * @returns the previous floor
 * @throws Problem `NotFound` if there is no such partner; `Conflict` if it has no tier in the currency
 */
export async function setFloor(
  tx: Tx,
  { partnerId, currency, floor, now }: { partnerId: string; currency: Currency; floor: bigint | null; now: Date },
): Promise<bigint | null> {
  await lockPartner(tx, partnerId)
  const before = await floorOf(tx, { partnerId, currency })
  if (floor === null) {
    await tx.deleteFrom('floatLimits').where('partnerId', '=', partnerId).where('currency', '=', currency).execute()
    return before
  }
  await requireTier(tx, { partnerId, currency })
  await tx
    .insertInto('floatLimits')
    .values({ partnerId, currency, floor })
    .onConflict(conflict => conflict.columns(['partnerId', 'currency']).doUpdateSet({ floor }))
    .execute()
  await updateLowAlert(tx, { partnerId, currency, now })
  return before
}

async function floorOf(tx: Tx, { partnerId, currency }: OfFloat): Promise<bigint | null> {
  const limit = await tx
    .selectFrom('floatLimits')
    .select('floor')
    .where('partnerId', '=', partnerId)
    .where('currency', '=', currency)
    .executeTakeFirst()
  return limit?.floor ?? null
}

/**
 * Raises the low-float alert if a float has fallen below its floor, with one `float.low` event per fall, or clears it. Call
 * it after booking anything that lowers the free amount. Idempotent. Locks the partner's row, so that falls are handled one
 * at a time, and takes no lock after it.
 * @param waits whether to wait for that lock; if not, a lock time-out is thrown at once
 */
export async function updateLowAlert(
  tx: Tx,
  { partnerId, currency, now, waits = true }: { partnerId: string; currency: Currency; now: Date; waits?: boolean },
): Promise<void> {
  await lockPartner(tx, partnerId, { waits })
  const limit = await tx
    .selectFrom('floatLimits')
    .select(['floor', 'lowSince'])
    .where('partnerId', '=', partnerId)
    .where('currency', '=', currency)
    .executeTakeFirst()
  if (limit === undefined) return
  const { free } = await sumsOf(tx, { partnerId, currency })
  const isLow = free < limit.floor
  if (isLow === (limit.lowSince !== null)) return
  await tx
    .updateTable('floatLimits')
    .set({ lowSince: isLow ? now : null })
    .where('partnerId', '=', partnerId)
    .where('currency', '=', currency)
    .execute()
  if (!isLow) return
  await events.emit(tx, {
    partnerId,
    type: 'float.low',
    resourceId: partnerId,
    sequence: await partners.countEvent(tx, partnerId),
    data: { free: toWire({ amount: free, currency }), floor: toWire({ amount: limit.floor, currency }) },
    now,
  })
}

/**
 * Finds the floats whose low-float alert is out of date: a bank or payroll has returned money, or two concurrent withdrawals
 * crossed the floor only together.
 */
export async function findStaleLowAlerts(
  db: Reader,
  scope: Scope | undefined,
): Promise<{ partnerId: string; currency: Currency }[]> {
  const sums = ledger.floatSums({ partnerId: sql`f.partner_id`, currency: sql`f.currency` })
  const { rows } = await sql<{ partnerId: string; currency: Currency }>`
    select f.partner_id, f.currency
      from float_limits f cross join lateral (${sums}) s
     where (s.float - s.pending < f.floor) <> (f.low_since is not null) ${inScope(scope, sql`f.partner_id`)}
     order by 1, 2`.execute(db)
  return rows
}

// Movements by the operator and alerts of one partner run one at a time. Foreign keys to the partner are not blocked.
async function lockPartner(tx: Tx, partnerId: string, { waits = true } = {}): Promise<void> {
  const { rows } = await sql`
    select 1 from partners where id = ${partnerId} for no key update ${waits ? sql`` : sql`nowait`}`.execute(tx)
  if (rows.length === 0)
    throw problem('NotFound', `There is no partner ${partnerId}; run midmonth partner list to see the ids`)
}

// Nothing is paid out in a currency without a tier, so money there would go unnoticed.
async function requireTier(tx: Tx, { partnerId, currency }: OfFloat): Promise<void> {
  const tier = await tx
    .selectFrom('tiers')
    .select('name')
    .where('partnerId', '=', partnerId)
    .where('currency', '=', currency)
    .executeTakeFirst()
  if (tier === undefined) throw problem('Conflict', `The partner has no tier in ${currency}; create one first`)
}

async function sumsOf(tx: Tx, { partnerId, currency }: OfFloat): Promise<{ float: bigint; free: bigint }> {
  const sums = ledger.floatSums({ partnerId: sql`${partnerId}`, currency: sql`${currency}` })
  const { rows } = await sql<{ float: bigint; free: bigint }>`
    select float, float - pending as free from (${sums}) s`.execute(tx)
  return rows[0] ?? { float: 0n, free: 0n }
}
