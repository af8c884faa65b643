import assert from 'node:assert/strict'
import * as auditLog from '../audit-log/audit-log.ts'
import type { Tx } from '../database/database.ts'
import type { Audit } from './operation.ts'

/** Writes the changes of a response to the audit log, in the transaction that made them. @param caller what an entry does not say itself */
export async function recordAudit(
  tx: Tx,
  { audit = [], resourceId: ofResponse }: { audit?: Audit | readonly Audit[] | undefined; resourceId?: string | null },
  caller: { actor: auditLog.Actor; partnerId: string | null; now: Date },
): Promise<void> {
  for (const each of [audit].flat()) {
    const { resourceId = ofResponse, partnerId = caller.partnerId, now = caller.now, ...change } = each
    assert(typeof resourceId === 'string')
    await auditLog.record(tx, { partnerId, actor: caller.actor, change: { ...change, resourceId }, now })
  }
}
