import { Type } from 'typebox'
import { amountMax } from '../../kernel/money.ts'
import { strictObject } from '../../kernel/schemas.ts'

const Amount = Type.Integer({ minimum: 0, maximum: amountMax })

/** How payments of a rail are approved. Without it, two people approve every batch. */
export const Approval = Type.Optional(
  strictObject({ automatic: strictObject({ paymentMax: Amount, batchMax: Amount, dayMax: Amount }) }),
)
type GivenApproval = { automatic: { paymentMax: number; batchMax: number; dayMax: number } } | undefined

/** Limits, in minor units, up to which a batch needs no person. */
export type AutomaticApproval = { paymentMax: bigint; batchMax: bigint; dayMax: bigint }

export function faultsOfApproval(name: string, approval: GivenApproval): string[] {
  if (approval === undefined) return []
  const { paymentMax, batchMax, dayMax } = approval.automatic
  return paymentMax > batchMax || batchMax > dayMax
    ? [`${name}: paymentMax must not exceed batchMax, nor batchMax dayMax`]
    : []
}

export function toAutomatic(approval: GivenApproval): AutomaticApproval | null {
  if (approval === undefined) return null
  const { paymentMax, batchMax, dayMax } = approval.automatic
  return { paymentMax: BigInt(paymentMax), batchMax: BigInt(batchMax), dayMax: BigInt(dayMax) }
}
