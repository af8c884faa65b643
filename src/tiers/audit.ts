import { type Details, differences } from '../audit-log/audit-log.ts'
import { type Tier, versionToWire } from './rules.ts'

/**
 * Returns what the audit log records about a change to a tier; null if the terms are the same. @param before undefined for a new
 * tier
 */
export function changesOf(before: Tier | undefined, after: Tier): Details | null {
  if (before === undefined) return { before: null, after: versionToWire(after) }
  return differences(versionToWire(before), versionToWire(after))
}
