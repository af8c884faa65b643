import type { Transfer } from '../ledger/ledger.ts'
import type { Currency } from '../money.ts'

export type WithdrawalStatus = 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'

/** What a bank may say about a withdrawal that changes something, or should not. */
export type Outcome = 'paid' | 'failed' | 'returned'

// The same edges as in the table state_edges, whose trigger refuses all others.
const transitions: Record<WithdrawalStatus, readonly WithdrawalStatus[]> = {
  held: ['submitted', 'cancelled'],
  submitted: ['paid', 'failed'],
  paid: ['returned'],
  failed: [],
  returned: [],
  cancelled: [],
}

export function canTransition(from: WithdrawalStatus, to: WithdrawalStatus): boolean {
  return transitions[from].includes(to)
}

/**
 * Which states a withdrawal goes through because of what a bank says about it; none when that is known already, as banks
 * repeat themselves, and are late.
 * @returns null when the bank contradicts what it said before, or speaks of what it was never given: a person must look
 */
export function transitionsFor(status: WithdrawalStatus, outcome: Outcome): WithdrawalStatus[] | null {
  switch (status) {
    case 'submitted':
      // A bank returns only what it has paid, even when we never heard of that.
      return outcome === 'returned' ? ['paid', 'returned'] : [outcome]
    case 'paid':
      return outcome === 'paid' ? [] : outcome === 'returned' ? ['returned'] : null
    case 'returned':
      return outcome === 'failed' ? null : []
    case 'failed':
      return outcome === 'failed' ? [] : null
    case 'held':
    case 'cancelled':
      return null
    default:
      return status satisfies never
  }
}

/**
 * When the money is expected in the member's account; null if that is not known, or nothing is expected any more. No bank
 * says yet how long it takes, except the simulated one, which pays at once what is submitted when the hold is over.
 * @param dueAt when the next step with the bank is due
 */
export function expectedAt(
  { status, dueAt }: { status: WithdrawalStatus; dueAt: Date | null },
  { mode }: { mode: 'sandbox' | 'live' },
): Date | null {
  return status === 'held' && mode === 'sandbox' ? dueAt : null
}

/** Whether the member gets the money back. */
export function returnsFunds(to: WithdrawalStatus): boolean {
  return to === 'cancelled' || to === 'failed' || to === 'returned'
}

type Booked = { memberId: string; currency: Currency; netAmount: bigint; fee: bigint; employerFee: bigint }

/**
 * What arriving in a state books. Giving back is the opposite of what was booked, from where the money is by then: on its
 * way, or, once it was paid, in the float that it comes back to.
 * @param payCycleId the withdrawal's own cycle, or, when that has closed, the open one
 */
export function transfersOnEntering(
  to: WithdrawalStatus,
  { memberId, currency, netAmount, fee, employerFee }: Booked,
  payCycleId: string,
): Transfer[] {
  switch (to) {
    case 'held':
      throw new Error('Completing books what is held')
    case 'submitted':
      return []
    case 'paid':
      return [{ debit: 'payouts_pending', credit: 'float', amount: netAmount, currency, payCycleId }]
    case 'cancelled':
    case 'failed':
    case 'returned': {
      const from = to === 'returned' ? 'float' : 'payouts_pending'
      const all: Transfer[] = [
        { debit: from, credit: 'member_available', amount: netAmount, currency, memberId, payCycleId },
        { debit: 'fees', credit: 'member_available', amount: fee, currency, memberId, payCycleId },
        { debit: 'fees', credit: 'partner_fees', amount: employerFee, currency, memberId, payCycleId },
      ]
      return all.filter(transfer => transfer.amount > 0n)
    }
    default:
      return to satisfies never
  }
}

const minuteMs = 60_000

// The first question comes when a call that was cut off has surely ended; rails that hear back days later, and outages,
// are not asked more often than hourly.
const askAfterMs = { first: 2 * minuteMs, max: 60 * minuteMs }

/**
 * When to ask (again) about a withdrawal that the bank has told nothing final about. It is also how long a worker that
 * claimed it has: when it was killed, the next one takes over then.
 * @param attempts how often the bank was turned to before
 * @param random 0 to 1: up to half the wait is left out, so that what failed together does not come back together
 */
export function nextPollAt({ attempts, now, random }: { attempts: number; now: Date; random: number }): Date {
  const waitMs = Math.min(askAfterMs.max, askAfterMs.first * 2 ** Math.min(attempts, 10))
  return new Date(now.getTime() + waitMs * (1 - random / 2))
}
