import type { Operation } from './http/operation.ts'
import { tierOperations } from './tiers/operations.ts'

/** All operations of the API, in the order of the documents. Those of the sandbox are loaded by a sandbox only. */
export const operations: readonly Operation[] = [...tierOperations]
