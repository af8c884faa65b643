/** The states of a payout batch. */
export const batchStatuses = [
  'building',
  'approved',
  'sent',
  'acknowledged',
  'settled',
  'rejected',
  'cancelled',
] as const
export type BatchStatus = (typeof batchStatuses)[number]

/** The transitions of a batch. The database lists the same ones in state_transitions, and its trigger refuses all others. */
export const batchTransitions: Record<BatchStatus, readonly BatchStatus[]> = {
  // Cancelled when every payment was removed.
  building: ['approved', 'cancelled'],
  approved: ['sent', 'cancelled'],
  sent: ['acknowledged', 'settled', 'rejected'],
  acknowledged: ['settled', 'rejected'],
  settled: [],
  rejected: [],
  cancelled: [],
}

/** The states from which one transition leads to a state. */
export function statusesBefore(to: BatchStatus): BatchStatus[] {
  return batchStatuses.filter(from => batchTransitions[from].includes(to))
}

/** The states in which the bank does not have the file. A batch can be held, and payments removed. */
export const unsentStatuses = ['building', 'approved'] as const satisfies BatchStatus[]

export function isUnsent(status: BatchStatus): status is (typeof unsentStatuses)[number] {
  return unsentStatuses.some(each => each === status)
}

/** The states in which the bank has the file and owes an answer. */
export const unansweredStatuses = ['sent', 'acknowledged'] as const satisfies BatchStatus[]
