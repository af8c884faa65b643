import type { Lanes } from '../../src/kernel/lanes.ts'
import { citusUrl } from './citus.ts'

/** The lanes of batches in tests that choose none: those of the shell, `MIDMONTH_LANES=partner npm test`, or those that Citus needs. */
export const lanesOfTests: Lanes =
  process.env.MIDMONTH_LANES === 'partner' || citusUrl !== undefined ? 'partner' : 'shared'
