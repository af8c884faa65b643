import type { Operation } from '../http/operation.ts'
import { bankFileOperations } from './bank-file-operations.ts'
import { bankOperations } from './bank-operations.ts'
import { clockOperations } from './clock-operations.ts'
import { memberOperations } from './member-operations.ts'
import { moneyOperations } from './money-operations.ts'
import type { SandboxContext } from './operation-context.ts'
import { resetOperations } from './reset-operations.ts'
import { testValueOperations } from './test-value-operations.ts'

export { ClockDriver } from './clock-driver.ts'
export { refuseProvoked } from './test-value-operations.ts'

/**
 * The operations of a sandbox, for the partner of the key. They move the partner's clock and instruct the simulated bank; production's
 * tasks do the rest.
 */
export const sandboxOperations: readonly Operation<SandboxContext>[] = [
  ...clockOperations,
  ...bankOperations,
  ...bankFileOperations,
  ...memberOperations,
  ...moneyOperations,
  ...resetOperations,
  ...testValueOperations,
]
