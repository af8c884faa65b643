import type { Jobs } from '../jobs.ts'
import { takeSnapshots } from './snapshots.ts'

// Summing this many rows takes well under a millisecond.
const rowsMin = 500

export const ledgerJobs: Jobs = {
  // Twice is safe: a snapshot is computed from the one before, and an older one never replaces a newer.
  async 'take-float-snapshots'({ db }) {
    await takeSnapshots(db, { rowsMin })
  },
}
