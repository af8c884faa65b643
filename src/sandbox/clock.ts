import type { Reader } from '../database/database.ts'
import { readOffsetMs } from '../partners/clocks.ts'
import * as moves from './moves.ts'

/** The partner's clock and its last move, as the API shows them. */
export async function readClock(reader: Reader, { partnerId, realNow }: { partnerId: string; realNow: Date }) {
  const offsetMs = await readOffsetMs(reader, partnerId)
  const move = await moves.findLatest(reader, partnerId)
  return {
    now: new Date(realNow.getTime() + offsetMs),
    aheadSeconds: Math.floor(offsetMs / 1_000),
    status: move === undefined || move.isComplete ? ('Still' as const) : ('Moving' as const),
    lastMove: move === undefined ? null : { from: move.startsAt, to: move.target, ran: move.ran },
  }
}
