import { type Reader, sql, type Tx } from '../../database/database.ts'
import * as float from '../../float/float.ts'
import { conflict } from '../../kernel/errors.ts'
import { inWords, type Money } from '../../kernel/money.ts'
import * as dues from '../../settlements/dues.ts'
import { recordMovement } from './bank-records.ts'
import { type Booked, isUndecidedElsewhere } from './bookings.ts'
import { isAccountOf } from './debtors.ts'
import type { FileRailSettings } from './file-rail-settings.ts'

// Money that reaches or leaves an account of a rail without a payment is a movement of a partner's float. Callers hold the
// lock of the rail's records, and keep the movement with the entry, so that each movement explains one entry.

/** An entry that is not a payment of ours. */
export type OtherMoney = {
  /** The bank's words about the entry. */
  texts: readonly string[]
  /** Negative if money left. */
  amount: Money
  /** The account; null if the bank's file does not name it. */
  account: string | null
}

/** Candidates to explain some entries: movements that the operator has recorded, and settlements that the entries name. */
export class Explanations {
  readonly #rail: FileRailSettings
  readonly #recorded: Map<string, float.Recorded[]>
  readonly #named: Map<string, dues.Named[]>

  private constructor(rail: FileRailSettings, recorded: float.Recorded[], named: dues.Named[]) {
    this.#rail = rail
    this.#recorded = Map.groupBy(recorded, ({ reference }) => reference)
    this.#named = Map.groupBy(named, ({ reference }) => reference)
  }

  static async read(db: Reader, rail: FileRailSettings, entries: readonly OtherMoney[]): Promise<Explanations> {
    const { currency } = rail
    const texts = new Set(entries.flatMap(each => each.texts))
    const references = new Set(entries.flatMap(each => dues.referencesIn(each.texts)))
    const recorded = await float.listRecorded(db, { references: [...texts], currency })
    const named = await dues.listNamed(db, { references: [...references], currency })
    return new Explanations(rail, await withoutEntry(db, recorded), named)
  }

  /** The partner of the candidate that may explain an entry; undefined if there is none. */
  partnerOf(entry: OtherMoney): string | undefined {
    return this.#recordedOf(entry)[0]?.partnerId ?? this.#settlementsOf(entry)[0]?.partnerId
  }

  /**
   * Claims the movement that the operator recorded for an entry: with the same amount, under a text that the entry bears, and of a partner
   * that the account pays for. Undefined if no unclaimed movement fits.
   */
  takeRecorded(entry: OtherMoney): string | undefined {
    const [first] = this.#recordedOf(entry)
    if (first === undefined) return undefined
    const left = this.#recorded.get(first.reference)?.filter(each => each !== first) ?? []
    this.#recorded.set(first.reference, left)
    return first.movementId
  }

  /**
   * Books money that pays a settlement whose reference an entry bears, if it is exactly what is due, and cannot be money that
   * was reported or recorded before.
   * @param booked the same entry, as a booking
   * @returns the movement, or why there is none; undefined if the entry names no settlement of a partner that the account pays for
   */
  async settle(
    tx: Tx,
    { entry, booked, now }: { entry: OtherMoney; booked: Booked; now: Date },
  ): Promise<{ movementId: string } | { partnerId: string; reason: string } | undefined> {
    const { amount } = entry
    const named = this.#settlementsOf(entry)
    const [first] = named
    if (first === undefined) return undefined
    const { partnerId } = first
    const { currency } = amount
    const cycles = named.map(({ payCycleId }) => payCycleId).join(', ')
    const settlement = `the settlement${named.length > 1 ? 's' : ''} of ${cycles}`
    const refusal = (reason: string) => ({ partnerId, reason })
    if (named.some(each => each.partnerId !== partnerId))
      return refusal(
        'It names settlements of several partners; book each with float receive, and ignore this exception',
      )
    if (named.some(({ isSettled }) => !isSettled))
      return refusal(`It names ${settlement}, which payroll has not reported yet`)
    if (named.every(({ due }) => due === null)) return refusal(`It names ${settlement}, for which no money was due`)
    const due = sum(named.map(each => each.due ?? 0n))
    if (named.every(each => (each.due ?? 0n) === 0n))
      return refusal(`It names ${settlement}, whose money has arrived before`)
    if (due !== amount.amount) {
      const expected = inWords({ amount: due, currency })
      return refusal(`It names ${settlement}, but is ${inWords(amount)} instead of ${expected}`)
    }
    const receivedByHand = sum(named.map(each => each.receivedByHand))
    if (receivedByHand !== 0n) {
      const recorded = inWords({ amount: receivedByHand, currency })
      return refusal(
        `It names ${settlement}, for which ${recorded} was recorded by hand; book it if it is other money, otherwise ignore this exception`,
      )
    }
    if (await isUndecidedElsewhere(tx, { rail: this.#rail.name, booked }))
      return refusal(
        `It names ${settlement}, but another message has reported an equal amount of the same day; book it if it is other money, otherwise ignore this exception`,
      )
    const parts = named.flatMap(({ payCycleId, due }) =>
      due === null || due === 0n ? [] : [{ payCycleId, amount: due }],
    )
    for (const each of named) each.due = 0n
    return await dues.receiveParts(tx, { partnerId, currency, parts, now })
  }

  /** Oldest first. */
  #recordedOf({ texts, amount, account }: OtherMoney): float.Recorded[] {
    return [...new Set(texts)]
      .flatMap(text => this.#recorded.get(text) ?? [])
      .filter(each => each.amount === amount.amount && this.#isPaidFrom(account, each.partnerId))
      .sort((a, b) => (a.movementId < b.movementId ? -1 : 1))
  }

  #settlementsOf({ texts, account }: OtherMoney): dues.Named[] {
    return dues
      .referencesIn(texts)
      .flatMap(reference => this.#named.get(reference) ?? [])
      .filter(({ partnerId }) => this.#isPaidFrom(account, partnerId))
      .sort((a, b) => (a.payCycleId < b.payCycleId ? -1 : 1))
  }

  #isPaidFrom(account: string | null, partnerId: string): boolean {
    return account === null || isAccountOf(this.#rail, { account, partnerId })
  }
}

type Booking = { id: string; rail: string; reference: string | null; amount: Money; partnerId: string; now: Date }

/**
 * Books the money of an exception as a movement of a partner's float, or recognises the movement that was recorded for it.
 * @param booking.id the exception's
 * @param booking.isCover the money covers a cost of the operator; ignored if a movement was recorded
 * @param given the movement's reference; otherwise that of the entry if such a movement was recorded, or else the exception's id
 * @throws Error if the movement belongs to another entry, or for any reason of `float.fund` and `float.withdraw`
 */
export async function bookMovement(
  tx: Tx,
  { id, rail, reference: ofEntry, amount: money, partnerId, isCover = false, now }: Booking & { isCover?: boolean },
  given: string | undefined,
): Promise<void> {
  const known = given ?? ofEntry
  const { amount, currency } = money
  const recorded = known === null ? [] : await float.listRecorded(tx, { references: [known], currency })
  const ofPartner = recorded.filter(each => each.partnerId === partnerId && each.amount === amount)
  const [free] = await withoutEntry(tx, ofPartner)
  if (given !== undefined && free === undefined && ofPartner.length > 0)
    throw conflict(`The movement "${given}" belongs to another entry of the bank; use a new reference`)
  const reference = given ?? free?.reference ?? id
  const { movementId } =
    amount < 0n
      ? await float.withdraw(tx, { partnerId, amount: { amount: -amount, currency }, reference, now })
      : await ((free === undefined ? isCover : free.direction === 'cover') ? float.cover : float.fund)(tx, {
          partnerId,
          amount: money,
          reference,
          now,
        })
  await recordMovement(tx, { rail, key: id, reference, movementId, now })
}

type SettlementBooking = Omit<Booking, 'reference'> & { payCycleId: string; texts: readonly string[] }

/**
 * Books the money of an exception as received for a settlement, in part or in whole. Any excess pays the other settlements of the partner
 * that the entry names, and the remainder funds the float: all of the money is in one account.
 * @param booking.texts what the bank says about the entry
 * @throws Error as `dues.receive`
 */
export async function bookSettlement(
  tx: Tx,
  { id, rail, amount: money, partnerId, payCycleId, texts, now }: SettlementBooking,
): Promise<void> {
  const { amount, currency } = money
  const reference = dues.referenceOf(payCycleId)
  const named = await dues.listNamed(tx, { references: dues.referencesIn([reference, ...texts]), currency })
  const isChosen = (each: dues.Named) => each.payCycleId === payCycleId
  const due = named.filter(each => each.partnerId === partnerId && (each.due ?? 0n) > 0n)
  const ordered = [...due.filter(isChosen), ...due.filter(each => !isChosen(each))]
  const parts: dues.Part[] = []
  let left = amount
  for (const { payCycleId, due } of ordered) {
    const part = due === null || left < due ? left : due
    if (part > 0n) parts.push({ payCycleId, amount: part })
    left -= part
  }
  // Money that was paid out, or for which nothing is due, is refused with an explanation. So is more than is due if a part was recorded by
  // hand: the transfer may be that part.
  const isDue = amount > 0n && due.some(isChosen) && (left === 0n || due.every(each => each.receivedByHand === 0n))
  const { movementId } = isDue
    ? await dues.receiveParts(tx, { partnerId, currency, parts, now })
    : await dues.receive(tx, { partnerId, payCycleId, amount: money, isByHand: false, now })
  if (isDue && left > 0n) await float.fundRest(tx, { partnerId, amount: { amount: left, currency }, movementId, now })
  await recordMovement(tx, { rail, key: id, reference, movementId, now })
}

function sum(amounts: bigint[]): bigint {
  return amounts.reduce((all, amount) => all + amount, 0n)
}

/** Filters movements: returns those that explain no entry yet. */
async function withoutEntry(db: Reader, movements: float.Recorded[]): Promise<float.Recorded[]> {
  if (movements.length === 0) return []
  const { rows } = await sql<{ movementId: string }>`
    select movement_id from bank_records
     where movement_id = any(${movements.map(({ movementId }) => movementId)}::text[])`.execute(db)
  const taken = new Set(rows.map(({ movementId }) => movementId))
  return movements.filter(({ movementId }) => !taken.has(movementId))
}
