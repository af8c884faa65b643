import type { Db } from '../database/database.ts'
import { refingerprintAll } from '../member-imports/refingerprint.ts'
import { addNextFingerprints, dropNextFingerprints, useNextFingerprints } from '../members/rehash.ts'
import type { Rehash } from '../sealing/rotation.ts'

/** What changes stored fingerprints at each step of the rotation of their key. */
export const rehash: Rehash = {
  known: addNextFingerprints,
  async used(db: Db) {
    await refingerprintAll(db)
    await useNextFingerprints(db)
  },
  retired: dropNextFingerprints,
}
