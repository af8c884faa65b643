import * as auditLog from '../audit-log/audit-log.ts'
import type { Reader } from '../database/database.ts'
import type { PartnerState } from './partners.ts'
import type { Stops } from './stops.ts'

/** Reads from the audit log why a partner is paused or suspended. */
export async function readStops(db: Reader, { id: partnerId, paused, suspendedAt }: PartnerState): Promise<Stops> {
  const last = async (actions: auditLog.Action[]) => {
    const [entry] = await auditLog.list(db, { filter: { partnerId, actions }, take: 1 })
    // Stopped before the audit log existed, or directly in the database.
    if (entry === undefined || entry.action !== actions[0]) return { since: null, by: null, reason: null }
    const { reason } = entry.details
    return { since: entry.at, by: entry.actor, reason: typeof reason === 'string' ? reason : null }
  }
  return {
    paused: paused ? await last(['partner.pause', 'partner.resume']) : null,
    suspended:
      suspendedAt === null ? null : { ...(await last(['partner.suspend', 'partner.restore'])), since: suspendedAt },
  }
}
