/** The states of a withdrawal. Its schema, queries, statement and timeline use these. */
export const statuses = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled'] as const
export type WithdrawalStatus = (typeof statuses)[number]

/**
 * The states in which the money has left the member's pay. In the other states the member has it back. The published listing has
 * no status, so by default it lists only withdrawals in these states. Only these count towards a tier's limits.
 */
export const deductedStatuses = ['held', 'submitted', 'paid'] as const satisfies WithdrawalStatus[]

/** The states that wait for the bank. */
export type UnfinishedStatus = Extract<WithdrawalStatus, 'held' | 'submitted'>

/** The states of an intent. `completed`: it became a withdrawal. */
export const intentStatuses = ['pending', 'completed', 'expired', 'cancelled'] as const
export type IntentStatus = (typeof intentStatuses)[number]

/** A final report of the bank about a payment. */
export type FinalOutcome = 'paid' | 'failed' | 'returned'

/**
 * The transitions of a withdrawal. The database lists the same ones in state_transitions, and its trigger refuses all others. Only an
 * operator's decision (`recover`) leads from failed or returned to paid, never a bank report.
 */
export const transitions: Record<WithdrawalStatus, readonly WithdrawalStatus[]> = {
  held: ['submitted', 'cancelled'],
  submitted: ['paid', 'failed'],
  paid: ['returned'],
  failed: ['paid'],
  returned: ['paid'],
  cancelled: [],
}

export function canTransition(from: WithdrawalStatus, to: WithdrawalStatus): boolean {
  return transitions[from].includes(to)
}

/**
 * The states that a bank report takes a withdrawal through. Empty if the outcome is already known: banks repeat reports and send
 * them late.
 * @returns null if the report contradicts an earlier one or is about a payment that was never submitted; this needs
 * manual review
 */
export function transitionsFor(status: WithdrawalStatus, outcome: FinalOutcome): WithdrawalStatus[] | null {
  switch (status) {
    case 'submitted':
      // A bank returns only what it has paid, so a report of the payment was lost.
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
 * When the money is expected in the member's account; null if unknown, or if none is expected. A rail with a calendar knows
 * it once the withdrawal is submitted. The simulated bank pays as soon as a withdrawal is submitted, at the end of its hold.
 * @param dueAt when the next step with the bank is due
 * @param byRail the rail's estimate
 * @param isSimulated whether the simulated bank pays this currency
 */
export function expectedAt(
  { status, dueAt, expectedAt: byRail }: { status: WithdrawalStatus; dueAt: Date | null; expectedAt: Date | null },
  { isSimulated }: { isSimulated: boolean },
): Date | null {
  if (status === 'held') return isSimulated ? dueAt : null
  return status === 'submitted' || status === 'paid' ? byRail : null
}

/** Whether the member gets the money back on entering a state. */
export function returnsFunds(to: WithdrawalStatus): boolean {
  return to === 'cancelled' || to === 'failed' || to === 'returned'
}
