import { isDeepStrictEqual } from 'node:util'
import { type Action, type Details, differences } from '../audit-log/audit-log.ts'
import { lastFour } from '../bank-accounts/rules.ts'
import { auditedFields, fieldNames } from './fields.ts'
import type { Member } from './rules.ts'

/**
 * The entry of the audit log for a change to a member: status, audited fields and the last four characters of the account,
 * before and after. Personal fields are only named if they changed, because the log is kept forever.
 * @returns undefined if nothing changed
 */
export function auditOf(
  action: Action,
  { before, after }: { before: Member | undefined; after: Member },
): { action: Action; details: Details } | undefined {
  if (before === undefined) return { action, details: { before: null, after: auditedValues(after) } }
  const changed = (['status', ...fieldNames] as const).filter(field => !isDeepStrictEqual(before[field], after[field]))
  if (changed.length === 0) return undefined
  return { action, details: { changed, ...differences(auditedValues(before), auditedValues(after)) } }
}

function auditedValues(member: Member): Details {
  const { status, accountDetails } = member
  const account = accountDetails === null ? null : { lastFour: lastFour(accountDetails) }
  return { status, ...Object.fromEntries(auditedFields.map(field => [field, member[field]])), account }
}
