import type { Operation } from './http/operation.ts'
import { keyOperations } from './operators/key-operations.ts'
import type { RailsContext } from './operators/operation-context.ts'
import { partnerOperations } from './operators/partner-operations.ts'
import { railOperations } from './operators/rail-operations.ts'
import { tierOperations } from './tiers/operations.ts'
import type { WebhookContext } from './webhooks/operation-context.ts'
import { webhookOperations } from './webhooks/operations.ts'
import type { WithdrawalContext } from './withdrawals/operation-context.ts'
import { withdrawalOperations } from './withdrawals/operations.ts'

/** What the operations run on. */
export type OperationContext = WithdrawalContext & WebhookContext & RailsContext

/** All operations of the API, in the order of the documents. Those of the sandbox are loaded by a sandbox only. */
export const operations: readonly Operation<OperationContext>[] = [
  ...tierOperations,
  ...withdrawalOperations,
  ...webhookOperations,
  ...partnerOperations,
  ...keyOperations,
  ...railOperations,
]
