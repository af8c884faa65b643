import * as auditLog from '../src/audit-log/audit-log.ts'
import type { Db } from '../src/database/database.ts'
import * as float from '../src/float/float.ts'
import * as members from '../src/members/members.ts'
import { listKeys } from '../src/partners/api-keys.ts'
import { findState, type PartnerState } from '../src/partners/partners.ts'
import * as payCycles from '../src/pay-cycles/pay-cycles.ts'
import { inTable, onWire } from './float.ts'
import { sheet } from './print.ts'

/** Since when, by whom and why a partner is paused or suspended; null for what was not recorded then. */
export type Stop = { since: Date | null; by: string | null; reason: string | null }

export type Stops = { paused: Stop | null; suspended: Stop | null }

/** What stops a partner, as the audit log has it. */
export async function readStops(db: Db, { id: partnerId, paused, suspendedAt }: PartnerState): Promise<Stops> {
  const last = async (actions: auditLog.Action[]) => {
    const [entry] = await auditLog.list(db, { filter: { partnerId, actions }, take: 1 })
    // Stopped before there was an audit log, or behind the program's back.
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

export type FoundPartner = Awaited<ReturnType<typeof readPartner>>

/** @throws Error with a sentence when there is no such partner */
export async function readPartner(db: Db, { partnerId, now }: { partnerId: string; now: Date }) {
  const state = await findState(db, partnerId)
  const keys = await listKeys(db, partnerId)
  const isExpired = (expiresAt: Date | null) => expiresAt !== null && expiresAt <= now
  return {
    state,
    stops: await readStops(db, state),
    openCycle: (await payCycles.findOpen(db, partnerId)) ?? null,
    floats: await float.read(db, partnerId),
    keys: {
      valid: keys.filter(({ revokedAt, expiresAt }) => revokedAt === null && !isExpired(expiresAt)).length,
      expired: keys.filter(({ revokedAt, expiresAt }) => revokedAt === null && isExpired(expiresAt)).length,
      revoked: keys.filter(({ revokedAt }) => revokedAt !== null).length,
    },
    members: await members.countByStatus(db, { partnerId }),
  }
}

export function partnerOnWire({ state, stops, openCycle, floats, keys, members: counts }: FoundPartner) {
  const { paused: _, suspendedAt: __, id, name, createdAt, ...settings } = state
  return { id, name, createdAt, ...stops, settings, openCycle, floats: floats.map(onWire), keys, members: counts }
}

export function partnerInWords({ state, stops, openCycle, floats, keys, members: counts }: FoundPartner): string {
  const { paused: _, suspendedAt: __, id, name, createdAt, ...settings } = state
  return [
    sheet({
      id,
      name,
      created: createdAt.toISOString(),
      paused: stops.paused === null ? 'no' : stopInWords(stops.paused),
      suspended: stops.suspended === null ? 'no' : stopInWords(stops.suspended),
      'open cycle': openCycle === null ? null : `${openCycle.id}, ${openCycle.startDate} to ${openCycle.endDate}`,
      members: `${counts.active} active, ${counts.invited} invited, ${counts.inactive} inactive`,
      keys: `${keys.valid} valid, ${keys.expired} expired, ${keys.revoked} revoked`,
    }),
    '',
    sheet(settings),
    '',
    inTable(floats),
  ].join('\n')
}

export function stopInWords({ since, by, reason }: Stop): string {
  const known = [
    ...(since === null ? [] : [`since ${since.toISOString()}`]),
    ...(by === null ? [] : [`by ${by}`]),
    ...(reason === null ? [] : [`(${reason})`]),
  ]
  return known.length === 0 ? 'yes; the audit log does not say since when' : known.join(' ')
}
