import assert from 'node:assert/strict'
import type { Reader } from '../database/database.ts'
import { memberNotFound } from '../members/rules.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { noOpenCycle } from '../pay-cycles/rules.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import type { Tier } from '../tiers/rules.ts'
import { type HasRail, readFacts } from './facts.ts'
import { suspensionReason } from './rules.ts'

/** The amount that a member can withdraw in the open pay cycle, and its limits. */
export type Balance = {
  tier: Tier
  available: bigint
  payCycle: Omit<payCycles.PayCycle, 'status'>
  /** When a pay run of the cycle last became available. */
  lastPayDate: Date | null
  isTemporarilyUnavailable: boolean
}

/** @throws Problem `MemberNotFound`, or `UnprocessableEntity` if no cycle is open */
export async function readBalance(
  db: Reader,
  { partner, memberId, hasRail, now }: { partner: { id: string }; memberId: string; hasRail: HasRail; now: Date },
): Promise<Balance> {
  const [asked] = await readFacts(db, [{ partnerId: partner.id, memberId, now }], { hasRail })
  assert(asked !== undefined)
  const { facts } = asked
  const { member } = facts
  if (member === null) throw memberNotFound(memberId)
  if (facts.payCycleId === null) throw noOpenCycle()
  // Not the open cycle: the one that the balance was read for may have ended meanwhile.
  const payCycle = await payCycles.find(db, { partnerId: partner.id, payCycleId: facts.payCycleId })
  return {
    tier: member.tier,
    available: member.available,
    payCycle,
    lastPayDate: await payRuns.lastAvailableAt(db, { partnerId: partner.id, payCycleId: payCycle.id }),
    isTemporarilyUnavailable: suspensionReason(facts) !== null,
  }
}
