import type * as float from '../float/float.ts'
import { toWire } from '../money.ts'

/** A float with its amounts as Money objects. */
export function floatOnWire({ currency, float: there, pending, free, floor, lowSince }: float.Float) {
  const money = (amount: bigint) => toWire({ amount, currency })
  return {
    currency,
    float: money(there),
    pending: money(pending),
    free: money(free),
    floor: floor === null ? null : money(floor),
    lowSince: lowSince?.toISOString() ?? null,
  }
}
