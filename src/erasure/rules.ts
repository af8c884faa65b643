import type { Day } from '../kernel/time.ts'

/** What prevents an erasure, and what it would have to keep. Read under the member's lock. */
export type Facts = {
  status: 'active' | 'invited' | 'inactive'
  pendingIntents: string[]
  unfinishedWithdrawals: string[]
  /** Payments that may still come back, and until when. */
  returnable: { withdrawalId: string; until: Date }[]
  openExceptions: string[]
  balances: { currency: string; available: bigint; owed: bigint }[]
  scheduledPayRuns: string[]
  unfinishedImports: string[]
  unsettledCycles: { payCycleId: string; status: 'Open' | 'Closed' }[]
  /** When the latest withdrawal was made; null if there is none. */
  lastPaidAt: Date | null
}

const dayOf = (at: Date): Day => at.toISOString().slice(0, 10)

/** A day in milliseconds. */
export const dayMs = 86_400_000

export const periods = {
  /**
   * A bank returns a credit transfer within days. In SEPA a payment can be recalled within 10 banking days, and the payee's bank answers
   * within 15 more; with holidays that is less than 40 days. Bacs returns take six days.
   */
  returnDays: 40,
}

/** Every reason why the member cannot be erased yet, each with what to do. Empty if the member can be erased. */
export function obstaclesOf(facts: Facts): string[] {
  const { status, balances } = facts
  return [
    ...(status === 'inactive'
      ? []
      : [`The member is ${status}; offboard the member with DELETE /v1/members/{memberId} first`]),
    ...facts.pendingIntents.map(id => `The withdrawal intent ${id} is pending; cancel it or let it expire`),
    ...facts.unfinishedWithdrawals.map(id => `The withdrawal ${id} is not finished; wait for its bank`),
    ...facts.returnable.map(
      ({ withdrawalId, until }) =>
        `The bank may still return the withdrawal ${withdrawalId}; wait until ${dayOf(until)}`,
    ),
    ...facts.openExceptions.map(
      id => `The exception ${id} names a payment to the member; ask the operator to close it`,
    ),
    ...balances.flatMap(({ currency, available, owed }) => [
      ...(available > 0n
        ? [`The member has pay in ${currency} available; it is released when its pay cycle closes`]
        : []),
      ...(owed > 0n ? [`The member owes money in ${currency}; later pay or a settlement has to cover it`] : []),
    ]),
    ...facts.scheduledPayRuns.map(id => `The pay run ${id} is scheduled and pays the member; revert it or wait`),
    ...facts.unfinishedImports.map(
      id => `The member job ${id} is not finished and names the member; wait or reject it`,
    ),
    ...facts.unsettledCycles.map(
      ({ payCycleId, status }) =>
        `The pay cycle ${payCycleId} has a deduction of the member and is ${status === 'Open' ? 'open; wait until it has closed, then settle it' : 'not settled; settle it'}`,
    ),
  ]
}

/** Until when it stays known which accounts were paid; null if nothing was paid. */
export function paymentsKeptUntil(lastPaidAt: Date | null, { evidenceDays }: { evidenceDays: number }): Date | null {
  return lastPaidAt === null ? null : new Date(lastPaidAt.getTime() + evidenceDays * dayMs)
}

/** Until when backups from before an erasure are kept. */
export function backupsKeptUntil(erasedAt: Date, { backupDays }: { backupDays: number }): Date {
  return new Date(erasedAt.getTime() + backupDays * dayMs)
}

/** What an erasure keeps: what, why, and until when; null is for ever. */
export type Kept = { what: string; rule: string; until: Day | null }

/** What an erasure destroys. */
export const destroyed = [
  'The first and the last name',
  'The key of the profile, without which no copy of the e-mail address, the phone number, the worker id, the date of birth and the gender can be opened',
  'The bank account of the member',
  'The fingerprints by which the member was found',
  'The restrictions of the member',
  'The metadata of the member and of their withdrawals',
  'Sessions of the member',
  'Rows and actions of member jobs that name the member',
  'Stored responses to requests about the member, which are not run again',
] as const

/** @param until.backups until when backups from before the erasure are kept */
export function keptOf({ payments: paymentsUntil, backups }: { payments: Date | null; backups: Date }): Kept[] {
  const payments =
    paymentsUntil === null
      ? []
      : [
          {
            what: 'The accounts that withdrawals were paid to, sealed with a key of the member',
            rule: 'Records of payments are kept for tax authorities and against money laundering',
            until: dayOf(paymentsUntil),
          },
        ]
  return [
    ...payments,
    {
      what: 'The member’s data in backups of the whole database that are older than the erasure',
      rule: 'Backups are not changed, but deleted when they are old enough; a restore erases the member again',
      until: dayOf(backups),
    },
    {
      what: 'Ids, amounts, states and times of pay, withdrawals, deductions and settlements, with the codes of banks',
      rule: 'The books are complete and cannot be changed; they do not say who the member was',
      until: null,
    },
    {
      what: 'The audit log: who changed the member and when, the last four characters of accounts, and why banks refused payments',
      rule: 'What was done with members’ money stays provable',
      until: null,
    },
  ]
}
