import { bankFileOperations } from './bank-file-operations.ts'
import { batchOperations } from './batch-operations.ts'
import { exceptionOperations } from './exception-operations.ts'
import { notOursOperations } from './not-ours-operations.ts'
import { paymentOperations } from './payment-operations.ts'
import { proposalOperations } from './proposal-operations.ts'

/** The way of payments through batches and banks. */
export const payoutOperations = [
  ...batchOperations,
  ...paymentOperations,
  ...bankFileOperations,
  ...exceptionOperations,
  ...proposalOperations,
  ...notOursOperations,
]
