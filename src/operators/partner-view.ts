import type { Reader } from '../database/database.ts'
import * as float from '../float/float.ts'
import * as members from '../members/members.ts'
import { countKeys } from '../partners/api-keys.ts'
import { findState } from '../partners/partners.ts'
import { readStops } from '../partners/read-stops.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'

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
