import type { Db, Tx } from '../database/database.ts'
import { conflict } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import { restrictionOf } from '../payouts/books/reasons.ts'
import { type InstructedOutcome, instruct } from '../payouts/channels/simulated/simulated-bank.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'

// ISO 20022 external return reason codes with which credit transfers to people come back.
export const reasons = {
  AC01: 'The account number is wrong',
  AC03: 'The account of the payee is invalid',
  AC04: 'The account is closed',
  AC06: 'The account is blocked',
  AG01: 'The account does not accept such payments',
  AM09: 'The amount is wrong',
  BE01: 'The account holder does not match',
  FOCR: 'Returned after a request to cancel',
  MD07: 'The payee has died',
  MS03: 'The bank gives no reason',
  RC01: 'The bank code is wrong',
  RR04: 'Returned for a regulatory reason',
} as const
export type ReasonCode = keyof typeof reasons

/** The instructions that a partner can give the bank about a withdrawal, with the state that each leads to and the bank's outcome. */
const instructions = {
  submit: { to: 'submitted', outcome: 'hold' },
  pay: { to: 'paid', outcome: 'paid' },
  fail: { to: 'failed', outcome: 'failed' },
  return: { to: 'returned', outcome: 'returned' },
  hold: { to: null, outcome: 'hold' },
} as const satisfies Record<string, { to: withdrawals.Withdrawal['status'] | null; outcome: InstructedOutcome }>
export type InstructionName = keyof typeof instructions

/** The tasks that carry out an instruction. */
export const bankTasks = ['submit-withdrawals', 'ask-about-withdrawals', 'read-rail-reports'] as const

// The states from which a withdrawal can reach the target state of the instruction.
const startsFrom: Record<InstructionName, readonly withdrawals.Withdrawal['status'][]> = {
  submit: ['held'],
  pay: ['held', 'submitted'],
  fail: ['held', 'submitted'],
  return: ['held', 'submitted', 'paid'],
  hold: ['held', 'submitted'],
}

type BankInstruction = {
  partnerId: string
  withdrawalId: string
  name: InstructionName
  reason: ReasonCode | undefined
  isSimulated: (currency: Currency) => boolean
  now: Date
}

/**
 * Instructs the simulated bank about a withdrawal, and brings its submission or next poll forward to now. Idempotent: a
 * withdrawal that is already in the state is left alone.
 * @throws Problem `NotFound`; `Conflict` if the withdrawal can no longer reach the state, or another bank pays it
 */
export async function instructBank(
  tx: Tx,
  { partnerId, withdrawalId, name, reason, isSimulated, now }: BankInstruction,
): Promise<void> {
  const { status, currency } = await withdrawals.find(tx, { partnerId, withdrawalId })
  const { to, outcome } = instructions[name]
  if (status === to) return
  if (!startsFrom[name].includes(status)) {
    const possible = startsFrom[name].join(' or ')
    throw conflict(`The withdrawal is ${status}; ${name} requires one that is ${possible}`)
  }
  if (name !== 'submit' && !isSimulated(currency))
    throw conflict(`Withdrawals in ${currency} go to a bank in files; see GET /v1/sandbox/bank-files`)
  const why = outcome === 'failed' || outcome === 'returned' ? inWords(reason ?? defaultReasons[outcome]) : null
  // Only an explicit reason restricts the member, so a payment can also fail without further effects.
  const restriction = why === null || reason === undefined ? null : restrictionOf(reason)
  await instruct(tx, { partnerId, withdrawalId, outcome, reason: why, restriction, now })
  if (name !== 'hold') await withdrawals.bringForward(tx, { partnerId, withdrawalId, now })
}

const defaultReasons = { failed: 'AC04', returned: 'BE01' } as const

function inWords(code: ReasonCode): string {
  return `${code} ${reasons[code]}`
}

/** Whether a withdrawal is in the state that the instruction leads to. */
export async function hasArrived(
  db: Db,
  { partnerId, withdrawalId, name }: { partnerId: string; withdrawalId: string; name: InstructionName },
): Promise<boolean> {
  const { status } = await withdrawals.find(db, { partnerId, withdrawalId })
  return instructions[name].to === null || instructions[name].to === status
}
