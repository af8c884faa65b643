import * as auditLog from '../audit-log/audit-log.ts'
import type { Reader } from '../database/database.ts'
import * as float from '../float/float.ts'
import * as members from '../members/members.ts'
import { countKeys } from '../partners/api-keys.ts'
import { findState, type PartnerState } from '../partners/partners.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
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

/** A partner as operators see it, with the numbers of its keys and members. */
export type PartnerView = Awaited<ReturnType<typeof readPartner>>

/** @throws Problem `NotFound` */
export async function readPartner(db: Reader, { partnerId, now }: { partnerId: string; now: Date }) {
  const state = await findState(db, partnerId)
  return {
    state,
    stops: await readStops(db, state),
    openCycle: (await payCycles.findOpen(db, partnerId)) ?? null,
    floats: await float.read(db, partnerId),
    keys: await countKeys(db, { partnerId, now }),
    members: await members.countByStatus(db, { partnerId }),
  }
}
