import type { WithdrawalStatus } from '@midmonth/sdk'

// Typed as a record so that the compiler rejects a missing status.
const statuses: Record<WithdrawalStatus, true> = {
  held: true,
  submitted: true,
  paid: true,
  failed: true,
  returned: true,
  cancelled: true,
}

/** Every status of a withdrawal. By default, the service leaves out withdrawals that failed or were cancelled. */
export const withdrawalStatuses = Object.keys(statuses) as WithdrawalStatus[]
