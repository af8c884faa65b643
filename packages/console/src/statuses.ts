import type { WithdrawalStatus } from '@openwage/sdk'

const withdrawals: Record<WithdrawalStatus, true> = {
  ...{ held: true, submitted: true, paid: true, failed: true, returned: true, cancelled: true },
}

/** Every status of a withdrawal. Unless they are named, the service leaves out what failed or was cancelled. */
export const withdrawalStatuses = Object.keys(withdrawals) as WithdrawalStatus[]
