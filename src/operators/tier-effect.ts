import type { Reader } from '../database/database.ts'
import * as members from '../members/members.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { lowestAmount, mostReceivable } from '../tiers/rules.ts'
import type { TierTerms } from '../tiers/terms.ts'

const limits = {
  // Members per query: a few hundred kilobytes.
  membersAtOnce: 5_000,
  // Read and compared within two seconds. A larger tier is judged by this many of its members, the oldest.
  membersMax: 100_000,
  // Enough to see who is affected most.
  shownMax: 20,
}

/** The amount that a member receives for withdrawing as much as possible now, under two versions of the terms. */
type MemberEffect = { memberId: string; before: bigint; after: bigint }

/** Some members, and by how much they are better or worse off together. */
type Affected = { members: number; total: bigint }

export type TierEffect = {
  gain: Affected
  lose: Affected
  /** How many are as well off as before, including all members with nothing available. */
  unchanged: number
  /** Those with the largest differences, largest first. */
  most: MemberEffect[]
  /** False if the tier has more members than were compared. */
  isComplete: boolean
}

/** Compares what each active member of a tier could receive now under two versions of its terms. */
export async function effectOf(
  db: Reader,
  { partnerId, tier, before, after }: { partnerId: string; tier: string; before: TierTerms; after: TierTerms },
): Promise<TierEffect> {
  const compared: TierEffect = {
    gain: { members: 0, total: 0n },
    lose: { members: 0, total: 0n },
    unchanged: 0,
    most: [],
    isComplete: true,
  }
  const lowest = { before: lowestAmount(before), after: lowestAmount(after) }
  const payCycleId = (await payCycles.findOpen(db, partnerId))?.id
  let last = ''
  for (let read = 0; ; ) {
    const page = await members.listAvailable(db, {
      partnerId,
      tier,
      payCycleId,
      after: last,
      take: limits.membersAtOnce,
    })
    for (const { memberId, available } of page) {
      add(compared, {
        memberId,
        before: mostReceivable(before, { available, lowest: lowest.before }),
        after: mostReceivable(after, { available, lowest: lowest.after }),
      })
    }
    read += page.length
    last = page.at(-1)?.memberId ?? last
    if (page.length < limits.membersAtOnce) return compared
    if (read >= limits.membersMax) return { ...compared, isComplete: false }
  }
}

function add(compared: TierEffect, effect: MemberEffect): void {
  const difference = effect.after - effect.before
  if (difference === 0n) {
    compared.unchanged += 1
    return
  }
  const side = difference > 0n ? compared.gain : compared.lose
  side.members += 1
  side.total += difference > 0n ? difference : -difference
  const smallest = compared.most.at(-1)
  if (compared.most.length >= limits.shownMax && smallest !== undefined && sizeOf(effect) <= sizeOf(smallest)) return
  compared.most.push(effect)
  compared.most.sort((a, b) => Number(sizeOf(b) - sizeOf(a)))
  compared.most.length = Math.min(compared.most.length, limits.shownMax)
}

function sizeOf({ before, after }: MemberEffect): bigint {
  return after > before ? after - before : before - after
}
