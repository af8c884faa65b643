import type { Lanes } from '../../src/kernel/lanes.ts'

/** The lanes of batches in tests that choose none: those of the shell, `MIDMONTH_LANES=partner npm test`. */
export const lanesOfTests: Lanes = process.env.MIDMONTH_LANES === 'partner' ? 'partner' : 'shared'
