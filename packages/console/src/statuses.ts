import type { WithdrawalStatus } from '@midmonth/sdk'

// The compiler refuses a record that lacks a status.
const statuses: Record<WithdrawalStatus, true> = {
  held: true,
  submitted: true,
  paid: true,
  failed: true,
  returned: true,
  cancelled: true,
}

/** Every status of a withdrawal. Unless they are named, the service leaves out what failed or was cancelled. */
export const withdrawalStatuses = Object.keys(statuses) as WithdrawalStatus[]
