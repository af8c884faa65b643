import type { Reader } from '../src/database/database.ts'
import { systemClock } from '../src/main.ts'
import { readOffsetMs } from '../src/partners/clocks.ts'

/** The time by the partner's clock, which a sandbox's partner may have moved ahead of real time. */
export async function partnerNow(db: Reader, partnerId: string): Promise<Date> {
  return new Date(systemClock().getTime() + (await readOffsetMs(db, partnerId)))
}
