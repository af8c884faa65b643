import type { Lanes } from '../../src/kernel/lanes.ts'
import type { Scope } from '../../src/worker/task.ts'
import { citusUrl } from './citus.ts'

/** The lanes of batches in tests that choose none: those of the shell, `MIDMONTH_LANES=partner npm test`, or those that Citus needs. */
export const lanesOfTests: Lanes =
  process.env.MIDMONTH_LANES === 'partner' || citusUrl !== undefined ? 'partner' : 'shared'

/** The scope of work in tests that is for all partners at once, or on Citus for one. */
export function scopeOfTests(partnerId: string): Scope {
  return citusUrl === undefined ? 'all' : { only: partnerId }
}
