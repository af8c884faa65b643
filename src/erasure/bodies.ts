import type { Sealer } from '../sealing/sealer.ts'
import { claimsOf, type Preview } from './erasure.ts'
import { publicKeyOf } from './receipts.ts'
import type { MemberErasure } from './schema.ts'

// Response bodies for both the partner and the operator.

export function bodyOf(sealer: Sealer, memberId: string, outcome: Preview | { receipt: string }): MemberErasure {
  const publicKey = publicKeyOf(sealer)
  if (!('receipt' in outcome))
    return { memberId, erasedAt: null, ...outcome, destroyed: [...outcome.destroyed], receipt: null, publicKey }
  const { erasedAt, destroyed, kept } = claimsOf(outcome.receipt)
  return { memberId, erasedAt, obstacles: [], destroyed: [...destroyed], kept, receipt: outcome.receipt, publicKey }
}
