import { isDeepStrictEqual } from 'node:util'
import { type Action, type Details, differences } from '../audit-log/audit-log.ts'
import { lastFour } from '../bank-accounts/rules.ts'
import type { Member, Profile } from './rules.ts'

/**
 * What the audit log says of a change to a member: state, tier, payroll and the last four characters of the account, before
 * and after. Of the personal fields it says only which have changed, since the log is kept for ever.
 * @returns undefined when nothing has changed
 */
export function auditOf(
  action: Action,
  { before, after }: { before: Member | undefined; after: Member },
): { action: Action; details: Details } | undefined {
  if (before === undefined) return { action, details: { before: null, after: visible(after) } }
  const changed = fields.filter(field => !isDeepStrictEqual(before[field], after[field]))
  if (changed.length === 0) return undefined
  return { action, details: { changed, ...differences(visible(before), visible(after)) } }
}

const fields = [
  'status',
  'email',
  'firstName',
  'lastName',
  'phone',
  'tier',
  'workerId',
  'accountDetails',
  'enablePayroll',
  'dob',
  'gender',
] as const satisfies (keyof Profile | 'status')[]

function visible({ status, tier, enablePayroll, accountDetails }: Member): Details {
  const account = accountDetails === null ? null : { lastFour: lastFour(accountDetails) }
  return { status, tier, enablePayroll, account }
}
