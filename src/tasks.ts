import { closingTasks } from './closing/tasks.ts'
import { eventTasks } from './events/tasks.ts'
import { floatTasks } from './float/tasks.ts'
import { ledgerTasks } from './ledger/tasks.ts'
import { memberImportTasks } from './member-imports/tasks.ts'
import { memberTasks } from './members/tasks.ts'
import { overviewTasks } from './overview/tasks.ts'
import { partnerTasks } from './partners/tasks.ts'
import { payRunTasks } from './pay-runs/tasks.ts'
import { userTasks } from './users/tasks.ts'
import { withdrawalTasks } from './withdrawals/tasks.ts'
import type { Tasks } from './worker/task.ts'

export { noticeTasks } from './diagnosis/tasks.ts'
export { payoutTasks } from './payouts/tasks.ts'
export { retentionTasks } from './retention/tasks.ts'
export { auditTasks as longTasks } from './verification/tasks.ts'

/** The tasks that call no external system. */
export const internalTasks = {
  ...payRunTasks,
  ...memberImportTasks,
  ...memberTasks,
  ...closingTasks,
  ...withdrawalTasks,
  ...partnerTasks,
  ...userTasks,
  ...ledgerTasks,
  ...eventTasks,
  ...floatTasks,
  ...overviewTasks,
} satisfies Partial<Tasks>
