import type { Mode } from '../partners/partners.ts'

/** What a user may do for one partner. An operator is not a role of a partner: operators may do everything, for every partner. */
export const roles = ['admin', 'payroll', 'support', 'developer', 'viewer'] as const
export type Role = (typeof roles)[number]

export const readers: readonly Role[] = [...roles]
export const staff: readonly Role[] = ['admin', 'payroll', 'support', 'viewer']
export const payroll: readonly Role[] = ['admin', 'payroll']
export const cancelling: readonly Role[] = ['admin', 'payroll', 'support']
export const tracing: readonly Role[] = ['admin', 'support', 'developer']
export const building: readonly Role[] = ['admin', 'developer']

/**
 * The users who may call an operation of the partner API from the console. `noLiveUser` is for a member’s own decisions: on a
 * live installation no user makes them, not even an operator. `keysOnly` is for what only a partner’s server needs.
 */
export type PartnerAccess = readonly Role[] | 'noLiveUser' | 'keysOnly'

/** The rights of a user with a partner. */
export type Rights = { isOperator: boolean; roles: readonly Role[] }

/**
 * Whether the user may call an operation with this access; none if it is undefined. On a sandbox, where no member is a real person, a
 * developer may do what an admin may.
 */
export function mayCall(allowed: PartnerAccess | undefined, { isOperator, roles: held }: Rights, mode: Mode): boolean {
  if (allowed === undefined || allowed === 'keysOnly') return false
  if (allowed === 'noLiveUser') return mode === 'sandbox' && (isOperator || held.some(role => building.includes(role)))
  if (isOperator) return true
  const effective: readonly Role[] = mode === 'sandbox' && held.includes('developer') ? [...held, 'admin'] : held
  return effective.some(role => allowed.includes(role))
}
