import type { PayoutBatchSummary } from '../packages/console/src/generated/operator.ts'

export function stateInWords(batch: Pick<PayoutBatchSummary, 'status' | 'held' | 'needsApproval'>): string {
  const state = batch.needsApproval ? 'waiting for approval' : batch.status
  return batch.held ? `${state}, held` : state
}
