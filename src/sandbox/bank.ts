import type { Db, Tx } from '../database/database.ts'
import { problem } from '../errors.ts'
import { restrictionOf } from '../payouts/rails/reasons.ts'
import { type InstructedOutcome, instruct } from '../payouts/simulated-bank.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'

// ISO 20022, external codes of return reasons: those that credit transfers to people come back with.
export const reasons = {
  AC01: 'The account number is wrong',
  AC03: 'The account of the payee is invalid',
  AC04: 'The account is closed',
  AC06: 'The account is blocked',
  AG01: 'The account takes no such payments',
  AM09: 'The amount is wrong',
  BE01: 'The account holder does not match',
  FOCR: 'Returned after a request to cancel',
  MD07: 'The payee has died',
  MS03: 'The bank gives no reason',
  RC01: 'The bank code is wrong',
  RR04: 'Returned for a regulatory reason',
} as const
export type ReasonCode = keyof typeof reasons

/** What a partner can make the bank do with a withdrawal. */
const instructions = {
  submit: { to: 'submitted', tells: 'hold' },
  pay: { to: 'paid', tells: 'paid' },
  fail: { to: 'failed', tells: 'failed' },
  return: { to: 'returned', tells: 'returned' },
  hold: { to: null, tells: 'hold' },
} as const satisfies Record<string, { to: withdrawals.Withdrawal['status'] | null; tells: InstructedOutcome }>
export type InstructionName = keyof typeof instructions

// The states from which a withdrawal can get where the instruction wants it.
const startsFrom: Record<InstructionName, readonly withdrawals.Withdrawal['status'][]> = {
  submit: ['held'],
  pay: ['held', 'submitted'],
  fail: ['held', 'submitted'],
  return: ['held', 'submitted', 'paid'],
  hold: ['held', 'submitted'],
}

/**
 * Instructs the simulated bank about a withdrawal, and makes its next step with the bank due. Idempotent: a withdrawal that is
 * in the wanted state is left alone.
 * @throws Problem `NotFound`; `Conflict` if the withdrawal can no longer get there
 */
export async function instructBank(
  tx: Tx,
  {
    partnerId,
    withdrawalId,
    name,
    reason,
    now,
  }: { partnerId: string; withdrawalId: string; name: InstructionName; reason: ReasonCode | undefined; now: Date },
): Promise<void> {
  const { status } = await withdrawals.find(tx, { partnerId, withdrawalId })
  const { to, tells } = instructions[name]
  if (status === to) return
  if (!startsFrom[name].includes(status)) {
    const possible = startsFrom[name].join(' or ')
    throw problem('Conflict', `The withdrawal is ${status}; only one that is ${possible} can be told to ${name}`)
  }
  const why = tells === 'failed' || tells === 'returned' ? inWords(reason ?? defaultReasons[tells]) : null
  // Only a reason that was asked for restricts the member, so that a payment can also fail without further effects.
  const restriction = why === null || reason === undefined ? null : restrictionOf(reason)
  await instruct(tx, { partnerId, withdrawalId, outcome: tells, reason: why, restriction, now })
  if (name !== 'hold') await withdrawals.hasten(tx, { partnerId, withdrawalId, now })
}

const defaultReasons = { failed: 'AC04', returned: 'BE01' } as const

function inWords(code: ReasonCode): string {
  return `${code} ${reasons[code]}`
}

/** Whether a withdrawal has got to where the instruction wants it. */
export async function hasArrived(
  db: Db,
  { partnerId, withdrawalId, name }: { partnerId: string; withdrawalId: string; name: InstructionName },
): Promise<boolean> {
  const { status } = await withdrawals.find(db, { partnerId, withdrawalId })
  return instructions[name].to === null || instructions[name].to === status
}
